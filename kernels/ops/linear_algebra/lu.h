/* lu.h: the LU decomposition that several ops keep for their pullbacks, and its adjoint.
 *
 * Internal to kernels/. a P = l u: lu [n,n] holds l, lower triangular with the pivots on its
 * diagonal, and above it u, whose diagonal of ones is not stored; P exchanges column i with column
 * exchanges[i], for i = 0, 1, ... The exchanges are whole numbers in the matrix's own dtype, so
 * that they are an output as any other, and constant.
 */
#ifndef LU_H
#define LU_H

#include "matrix.h"

/* Bytes of workspace of lu_factor_all. */
size_t lu_workspace(int64_t n);

/* x [n,k] = a^-1 x. */
void lu_solve(int dtype, int64_t n, const void *lu, const void *exchanges, int64_t k, void *x);

/* Exchanges rows of x [n,k] in the order of the exchanges, or backwards. One that names no row of x
 * is left out. */
void lu_exchange_rows(int dtype, int64_t n, const void *exchanges, bool backwards, int64_t k,
                      void *x);

double lu_determinant(int dtype, int64_t n, const void *lu, const void *exchanges);

/* The sign of the determinant, 0 if it is 0 and NaN if it is; *log_abs is ln |det|. */
double lu_sign(int dtype, int64_t n, const void *lu, const void *exchanges, double *log_abs);

/* Functions of the ops whose n_out - 2 results are numbers, one for each matrix, and whose last two
 * outputs are lu and exchanges: `family` is a struct lu_numbers. */
struct lu_numbers {
    /* The numbers of one matrix. */
    void (*find)(int dtype, int64_t n, const void *lu, const void *exchanges, double *numbers);
    uint64_t flops; /* for each pivot */
};
int lu_numbers_shape(const struct kernel_call *call, struct kernel_shape *out);
size_t lu_numbers_workspace(const struct kernel_call *call);
int lu_numbers_forward(const struct kernel_call *call);
struct kernel_cost lu_numbers_cost(const struct kernel_call *call);
bool lu_numbers_sample(int k, struct kernel_sample *sample);

/* Factors each matrix of call->in[0] into outputs `at` (lu) and `at` + 1 (exchanges). Refuses a
 * singular one where `refuse`. */
int lu_factor_all(const struct kernel_call *call, int at, bool refuse);

/* Shapes of those two outputs. */
void lu_shapes(const struct kernel_call *call, int at, struct kernel_shape *out);

/* a^-T b. */
kernel_ref lu_emit_solve_transposed(struct kernel_rule *rule, kernel_ref lu, kernel_ref exchanges,
                                    kernel_ref b);

/* Adds to input 0's adjoint what comes of the adjoint g of lu. */
void lu_pullback(struct kernel_rule *rule, kernel_ref lu, kernel_ref exchanges, kernel_ref g);

/* a^-T times g [...], one number for each matrix; NULL of NULL. */
kernel_ref lu_emit_scaled_inverse(struct kernel_rule *rule, kernel_ref lu, kernel_ref exchanges,
                                  kernel_ref g);

/* Adds that to input 0's adjoint. */
void lu_pullback_scaled_inverse(struct kernel_rule *rule, kernel_ref lu, kernel_ref exchanges,
                                kernel_ref g);

#endif
