/* ad_implicit.h: tensors that an equation defines. Included by ad.h.
 *
 *     static ad_tensor residual(ad_tape tape, ad_tensor y, int n, const ad_tensor *x,
 *                               void *payload)
 *     {
 *         return ad_sub(ad_mul(y, ad_exp(y)), x[0]);           // y e^y = x: Lambert's W
 *     }
 *
 *     ad_tensor w = ad_root(tape, residual, NULL, guess, 1, &x, NULL);
 *
 * How y was found plays no part in its derivative: where F(y, x) = 0 and dF/dy is not singular,
 * dy/dx = -(dF/dy)^-1 dF/dx (implicit function theorem; A. Griewank, A. Walther, Evaluating
 * Derivatives, 2nd ed., SIAM 2008, ch. 15). So nothing of the iteration is recorded, and a sweep
 * solves one linear system: (dF/dy)^T l = y', x' -= (dF/dx)^T l.
 */
#include <tapescope/ad.h> /* which includes this one where its types are there */

#ifndef TAPESCOPE_AD_IMPLICIT_H
#define TAPESCOPE_AD_IMPLICIT_H

#ifdef __cplusplus
extern "C" {
#endif

/* A function of y and x[n], by ops on `tape`: for ad_root F, of as many elements as y; for
 * ad_fixed_point g, of y's shape; f64. It is called on a tape of the library's own, and in
 * ad_create_graph on the user's, so it may use what it is given and its payload, no other tensors:
 * all that it depends on is among x. It must do the same at each call on the same numbers. It may
 * use what the function of a checkpoint may (ad_checkpoint.h). */
typedef ad_tensor ad_residual(ad_tape tape, ad_tensor y, int n, const ad_tensor *x, void *payload);

/* Finds y by the caller's own means: y->data [size of y], f64, begins as the guess and is to be
 * set. It cannot use the tape of the call; other tapes it can. */
typedef ad_status ad_solver(const ad_custom_array *y, int n, const ad_custom_array *x,
                            void *payload);

typedef struct ad_root_report {
    int steps;       /* of Newton's method or of the iteration; 0 with a solver */
    double residual; /* the largest |F_i|, or |y_i - g_i|, at the result */
} ad_root_report;

typedef struct ad_root_options {
    double tolerance;       /* of that residual; 0: 1e-10 */
    int most;               /* steps; 0: 50 of Newton's, 1000 of the iteration */
    ad_solver *solver;      /* instead of these; NULL: none */
    ad_root_report *report; /* is told, also if the call fails; NULL: not */
} ad_root_options;

/* y with F(y, x) = 0, by Newton's method from the guess (f64, any shape, which is y's; its value
 * alone counts, no derivative goes to it). x[n]: 0 <= n <= 63 tensors of any dtype. options: NULL
 * for the defaults; read during the call. payload: as in ad_custom.
 *
 * It is one op of the name "root", recorded where one of x needs a gradient. Of n elements of y it
 * keeps dF/dy, n^2 numbers, found by sweeps of F from n seeds, up to 16 at once; each step of
 * Newton's method makes as many, and solves one system. A sweep computes F once, solves one system
 * with LAPACK, and sweeps F once. ad_create_graph records F and dF/dy. The forward and backward
 * time is the line's of the call, not that of the lines of F.
 *
 * Errors, which leave the tape as it was: AD_ERROR_VALUE where the residual is larger than the
 * tolerance after `most` steps (or after the solver), or not finite, or dF/dy is singular; the
 * message has the residual. Those of F and of the solver. AD_ERROR_ARGUMENT, AD_ERROR_SHAPE,
 * AD_ERROR_DTYPE, AD_ERROR_LIMIT (more than 2^15 elements), AD_ERROR_HANDLE, AD_ERROR_MEMORY. */
AD_INLINE ad_tensor ad_root(ad_tape tape, ad_residual *residual, void *payload, ad_tensor guess,
                            int n, const ad_tensor *x,
                            const ad_root_options *options AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_root,
         (ad_tape tape, ad_residual *residual, void *payload, ad_tensor guess, int n,
          const ad_tensor *x, const ad_root_options *options),
         (tape, residual, payload, guess, n, x, options))

/* y with y = g(y, x), by the iteration y <- g(y, x) from the guess; else as ad_root, of the name
 * "fixed_point". */
AD_INLINE ad_tensor ad_fixed_point(ad_tape tape, ad_residual *g, void *payload, ad_tensor guess,
                                   int n, const ad_tensor *x,
                                   const ad_root_options *options AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_fixed_point,
         (ad_tape tape, ad_residual *g, void *payload, ad_tensor guess, int n, const ad_tensor *x,
          const ad_root_options *options),
         (tape, g, payload, guess, n, x, options))

#if AD_LINE_MACROS
#define ad_root(...) ad_root_at(__VA_ARGS__, __LINE__)
#define ad_fixed_point(...) ad_fixed_point_at(__VA_ARGS__, __LINE__)
#endif

#ifdef __cplusplus
}
#endif

#endif
