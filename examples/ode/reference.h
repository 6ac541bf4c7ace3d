/* reference.h: the same predator-prey systems in plain C, without a tape: the noisy counts to fit,
 * and the gradient by forward sensitivities, to compare with.
 *
 * Arrays of counts are logarithms, [2 TIMES, SYSTEMS]: at each time a row of prey and a row of
 * predators.
 */
#ifndef ODE_REFERENCE_H
#define ODE_REFERENCE_H

#include <stdbool.h>

enum { RATES = 4, SYSTEMS = 4, TIMES = 12, STEPS = 5 };

/* Time between two counts, which the model crosses in STEPS steps. */
#define INTERVAL 0.5

/* Logarithms of prey and of predators at time 0, which are known. */
extern const double reference_start[2][SYSTEMS];

/* What is counted of systems with rates theta[RATES]: integrated in steps ten times as fine as the
 * model's, each count with normal noise of standard deviation `noise` on its logarithm. The same
 * numbers at each call. */
void reference_counts(const double *theta, double noise, double *counts);

/* gradient[RATES] of half the mean of ((computed - observed) / noise)^2. */
void reference_gradient(const double *theta, const double *observed, double noise,
                        double *gradient);

/* error[RATES]: the standard errors of a least-squares estimate near theta, noise times the square
 * roots of the diagonal of (J^T J)^-1, J being the sensitivities of all counts. False if that
 * matrix is not positive definite; the errors are NaN then. */
bool reference_standard_errors(const double *theta, double noise, double *error);

#endif
