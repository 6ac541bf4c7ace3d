/* outer_rows.h: the outer products of rows of two operands, strip by strip, and products with them.
 *
 * Internal to kernels/.
 */
#ifndef OUTER_ROWS_H
#define OUTER_ROWS_H

#include "gemm.h"

/* rows of m and of n elements, whose m n products meet o forms; `strip` rows at a time. */
struct outer_rows {
    int dtype;
    int64_t rows, m, n, o, strip;
};

/* Whether both have axes, and the same ones but for the last. */
bool outer_rows_fit(kernel_ref a, kernel_ref b);

struct outer_rows outer_rows_make(kernel_ref x1, kernel_ref x2, int64_t o);
size_t outer_rows_space(const struct outer_rows *all);

/* y [rows,o] = products [rows,m n] times w^T [m n,o]; w [o,m n] = g^T [o,rows] times products; or
 * += with accumulate. All arrays are row-major. */
void outer_rows_forward(const struct outer_rows *all, const void *x1, const void *x2, const void *w,
                        void *y, bool accumulate, void *space);
void outer_rows_to_weights(const struct outer_rows *all, const void *g, const void *x1,
                           const void *x2, void *w, bool accumulate, void *space);

/* One product for each element of the outer ones, and two operations for each in a form. */
uint64_t outer_rows_flops(const struct outer_rows *all);

#endif
