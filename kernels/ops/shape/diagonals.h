/* diagonals.h: what the ops on diagonals of matrices have in common.
 *
 * Internal to kernels/. Matrices are the last two axes [m,n] of an array; diagonal 0 is the main
 * one, k lies k columns to its right, -k lies k rows below it.
 */
#ifndef DIAGONALS_H
#define DIAGONALS_H

#include "op_rules.h"

/* Elements of a diagonal; where it begins in row and column. False if it lies outside of the
 * matrix: the nearest ones that have no element are inside. */
struct kernel_diagonal {
    int64_t length, row, column;
};
bool kernel_diagonal_of(int64_t m, int64_t n, int64_t number, struct kernel_diagonal *diagonal);

/* Refuses, naming the shape, unless x is [...,m,n] and has the diagonal. */
int kernel_diagonal_find(const struct kernel_call *call, int64_t number,
                         struct kernel_diagonal *diagonal);

/* The diagonal [...,length] as a view of a matrix's array. */
void kernel_diagonal_view(struct kernel_view *view, const struct kernel_array *of,
                          const struct kernel_diagonal *diagonal);

/* Output 0 = 0 but for x on a diagonal, or x added there. Floats; any dtype if not accumulated. */
void kernel_diagonal_put(const struct kernel_call *call, int64_t number);

#endif
