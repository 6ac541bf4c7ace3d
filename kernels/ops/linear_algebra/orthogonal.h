/* orthogonal.h: the QR decomposition that several ops keep for their pullbacks, and its adjoint.
 *
 * Internal to kernels/. a [m,n] = q [m,k] r [k,n], k = min(m, n), with no negative element on the
 * diagonal of r.
 */
#ifndef ORTHOGONAL_H
#define ORTHOGONAL_H

#include "matrix.h"

size_t orthogonal_workspace(kernel_ref a);

/* Multiplications and additions of all matrices of a. */
uint64_t orthogonal_flops(kernel_ref a);

/* Shapes of outputs `at` (q) and `at` + 1 (r) of a decomposition of input 0. */
void orthogonal_shapes(const struct kernel_call *call, int at, struct kernel_shape *out);

/* Decomposes each matrix of call->in[0] into them. One that has NaN or infinity gives NaN. */
void orthogonal_factor_all(const struct kernel_call *call, int at);

/* Adds to input 0's adjoint what comes of the adjoints of q and r, either of which may be NULL. */
void orthogonal_pullback(struct kernel_rule *rule, kernel_ref q, kernel_ref r, kernel_ref gq,
                         kernel_ref gr);

#endif
