/* optimisers.h: what the examples minimise with: for noisy gradients Adam in f32 and descent with
 * momentum in f64, and methods of NLopt (https://nlopt.readthedocs.io) for smooth functions in f64.
 *
 * None of it is a part of Tapescope. It shows what stands between a gradient and a minimum.
 */
#ifndef OPTIMISERS_H
#define OPTIMISERS_H

#include <stdbool.h>
#include <stdint.h>

/* One step of Adam, the step-th from 1, of x[n] along gradient[n]; mean[n] and square[n], zeros at
 * first, are what it remembers (D. P. Kingma, J. Ba 2015, algorithm 1, arXiv 1412.6980). */
void adam_step(int64_t n, float rate, int step, const float *gradient, float *mean, float *square,
               float *x);

/* One step of stochastic gradient descent, of x[n] against gradient[n]; velocity[n], zeros at
 * first, is what it remembers (B. T. Polyak 1964, doi 10.1016/0041-5553(64)90137-5). momentum 0:
 * plain descent. */
void sgd_step(int64_t n, double rate, double momentum, const double *gradient, double *velocity,
              double *x);

/* The value at x[n] into *value, and its gradient into gradient[n]. False ends the search. */
typedef bool minimised_function(int n, const double *x, double *value, double *gradient,
                                void *payload);

enum minimiser { LBFGS, TRUNCATED_NEWTON };

struct minimum {
    double value;
    int evaluations;
    const char *method, *ending; /* in NLopt's words */
};

/* Looks for a minimum of f from x[n], until the value falls by less than 1e-15 of itself, and
 * leaves it in x. NLopt's L-BFGS is that of J. Nocedal (1980, doi
 * 10.1090/S0025-5718-1980-0572855-7). Returns false where f did, where 5000 evaluations were not
 * enough, and without memory; m->ending says which. Where rounding stops the search, the caller
 * judges whether that was near enough. */
bool minimise(enum minimiser method, int n, minimised_function *f, void *payload, double *x,
              struct minimum *m);

#endif
