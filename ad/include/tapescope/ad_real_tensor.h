/* ad_real_tensor.h: the elements of a tensor as real numbers, and a tensor made of real numbers;
 * included by ad_real.h.
 *
 *     ad_real u[6];
 *     ad_reals_of_tensor(h, 6, u);                                        // h [2,3]
 *     for (int i = 0; i < 6; i++)
 *         if (u[i].value > 1)
 *             ad_set(&u[i], ad_real_sub(ad_real_mul(2, ad_real_sqrt(u[i])), 1));
 *     ad_tensor y = ad_tensor_of_reals(tape, 2, (int64_t[]){2, 3}, u);    // y [2,3]
 *
 * Tensors and statements lie on one tape then, in any order: ad_backward reaches the leaves of both
 * kinds through both, and so does ad_real_backward. Tensors' gradients are read by ad_gradient,
 * those of ad_real_leaves by ad_real_gradients.
 */
#ifndef TAPESCOPE_AD_REAL_TENSOR_H
#define TAPESCOPE_AD_REAL_TENSOR_H

#include <tapescope/ad_real_expression.h>

#ifdef __cplusplus
extern "C" {
#endif

/* y[n] = the elements of x, row-major, as doubles; n is x's size. They are variables if x needs a
 * gradient, with indices that follow each other; then recording begins if the thread records on no
 * tape. Else, and under no_grad, they are constants. Where x is f32 the adjoints are rounded to f32
 * as they are added to its own. Takes 40 bytes on the tape. If it fails y[n] are poisoned. Errors:
 * AD_ERROR_ARGUMENT (n is not x's size; y is NULL), AD_ERROR_STATE (the thread records on another
 * tape), AD_ERROR_LIMIT (2^32 - 2 indices), AD_ERROR_MEMORY; those of handles. */
AD_INLINE ad_status ad_reals_of_tensor(ad_tensor x, int64_t n, ad_real *y AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_reals_of_tensor, (ad_tensor x, int64_t n, ad_real *y), (x, n, y))

/* A tensor of f64 [shape] on `tape` whose elements are x, row-major; values are copied. Any of them
 * may be constants or stand there several times; if all are, or under no_grad, the tensor is a
 * constant. Takes 4 bytes an element on the tape besides its value. Sweeps through it need 8 bytes
 * for each statement on the tape. Errors, whose result is refused by ops: AD_ERROR_SHAPE,
 * AD_ERROR_ARGUMENT (shape or x is NULL), AD_ERROR_HANDLE (an element is no value of this tape),
 * AD_ERROR_LIMIT (2^29 elements), AD_ERROR_MEMORY. */
AD_INLINE ad_tensor ad_tensor_of_reals(ad_tape tape, int rank, const int64_t *shape,
                                       const ad_real *x AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_tensor_of_reals,
         (ad_tape tape, int rank, const int64_t *shape, const ad_real *x), (tape, rank, shape, x))

#if AD_LINE_MACROS
#define ad_reals_of_tensor(...) ad_reals_of_tensor_at(__VA_ARGS__, __LINE__)
#define ad_tensor_of_reals(...) ad_tensor_of_reals_at(__VA_ARGS__, __LINE__)
#endif

#ifdef __cplusplus
}
#endif

#endif
