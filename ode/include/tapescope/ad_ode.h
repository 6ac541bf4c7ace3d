/* ad_ode.h: solutions of ordinary differential equations as one op, by SUNDIALS' CVODES: adaptive
 * steps of variable order forward, its adjoint method backward. A library of its own:
 * -ltapescope_ode, which is built where SUNDIALS was found.
 *
 *     static ad_tensor f(ad_tape tape, ad_tensor t, ad_tensor y, int n, const ad_tensor *x,
 *                        void *payload)
 *     {
 *         return ad_mul(ad_neg(x[0]), y);                      // y' = -k y
 *     }
 *
 *     ad_tensor y = ad_ode(tape, f, NULL, y0, times, 1, &k, NULL);   // [times, shape of y0]
 *
 * A. C. Hindmarsh et al., SUNDIALS, ACM TOMS 31 (2005) 363, doi 10.1145/1089014.1089020;
 * R. Serban, A. C. Hindmarsh, CVODES, the sensitivity-enabled ODE solver in SUNDIALS, 2005,
 * doi 10.1115/DETC2005-85597. docs/how-to/ode.md has more.
 */
#ifndef TAPESCOPE_AD_ODE_H
#define TAPESCOPE_AD_ODE_H

#include <tapescope/ad.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { AD_ODE_MOST_OPERANDS = 61, AD_ODE_MOST_STIFF = 1 << 13 };

/* dy/dt at t (f64 []) and y, of y's shape, f64, by ops on `tape`, which is a tape of the library's
 * own: it uses what it is given and its payload, no other tensors. All that it depends on is among
 * x[n]. It must give the same at each call on the same numbers. Where it is not finite the step is
 * taken again, smaller. It is called for t between the first and the last of the times. */
typedef ad_tensor ad_ode_function(ad_tape tape, ad_tensor t, ad_tensor y, int n, const ad_tensor *x,
                                  void *payload);

/* What the integration forward took. */
typedef struct ad_ode_report {
    int64_t steps, evaluations, jacobians; /* of f; of df/dy */
    double reached;                        /* the time to which y is known; NaN: not begun */
} ad_ode_report;

typedef struct ad_ode_options {
    double relative;         /* the error of a step is held to relative |y_i| + absolute; 0: 1e-7 */
    double absolute;         /* 0: 1e-9 */
    ad_tensor absolute_each; /* f64 of y0's shape: instead of `absolute`, one for each element;
                              * >= 0. A zero handle: none. No derivative goes to it */
    /* The same of adjoints, and of the derivatives by x, while all adjoints of the results are
     * scaled so that the largest is 1. */
    double adjoint_relative; /* 0: as `relative` */
    double adjoint_absolute; /* 0: as `absolute` */
    bool stiff;              /* backward differentiation formulas and Newton's method with the dense
                              * df/dy (by n sweeps of f), not Adams' and functional iteration */
    int64_t most;            /* steps from one time to the next; 0: 100 000 */
    int64_t interval;        /* steps between two checkpoints of a sweep: it holds so many states,
                              * and integrates again from each checkpoint, but the last; 0: all
                              * steps if that is at most 64 MiB, else as many as that holds */
    ad_ode_report *report;   /* is told, also if the call fails; NULL: not */
} ad_ode_options;

/* y at times[m], [m, shape of y0], the first of which is y0, at times[0]: dy/dt = f(t, y, x).
 * y0: f64 of rank 7 at most. times: f64 [m], m >= 1, each later than the one before, or each
 * earlier. x[n]: 0 <= n <= AD_ODE_MOST_OPERANDS tensors of f64, or of
 * i64, which have no derivative. payload: as in ad_custom.
 * options: NULL for the defaults; read during the call.
 *
 * One op of the name "ode", recorded where an operand needs a gradient. A sweep integrates forward
 * once more, through checkpoints, and the adjoint back, from time to time; with it the derivatives
 * by x as quadratures. Gradients go to y0, to x and to the times: they are those of the exact
 * solution, to the tolerances, not those of the steps. All of its time is on the line of the call,
 * none on the lines of f. What CVODES holds meanwhile is memory of the process, not of the tape.
 * ad_create_graph through it is refused.
 *
 * Errors, which leave the tape as it was: AD_ERROR_VALUE where CVODES fails (too many steps, a
 * tolerance not reached, f not finite; the message has its reason), and for y0, times or a
 * tolerance that cannot be; those of f; AD_ERROR_ARGUMENT, AD_ERROR_SHAPE, AD_ERROR_DTYPE,
 * AD_ERROR_LIMIT (more than AD_ODE_MOST_STIFF elements where stiff), AD_ERROR_HANDLE (in[0] is y0,
 * in[1] the times, then x, then absolute_each), AD_ERROR_MEMORY. A sweep fails with the same. */
AD_INLINE ad_tensor ad_ode(ad_tape tape, ad_ode_function *f, void *payload, ad_tensor y0,
                           ad_tensor times, int n, const ad_tensor *x,
                           const ad_ode_options *options AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_ode,
         (ad_tape tape, ad_ode_function *f, void *payload, ad_tensor y0, ad_tensor times, int n,
          const ad_tensor *x, const ad_ode_options *options),
         (tape, f, payload, y0, times, n, x, options))

#if AD_LINE_MACROS
#define ad_ode(...) ad_ode_at(__VA_ARGS__, __LINE__)
#endif

#ifdef __cplusplus
}
#endif

#endif
