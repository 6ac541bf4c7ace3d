/* gamma_functions.h: derivatives of the logarithm of the gamma function, which libm has not got.
 *
 * Pure functions; f32 rows round their results.
 */
#ifndef GAMMA_FUNCTIONS_H
#define GAMMA_FUNCTIONS_H

/* psi(x) = d ln|Gamma(x)| / dx. NaN at negative integers and -inf, -inf at 0, inf at -0. The error
 * is a few units in the last place of max(|psi|, 1): near the roots it is absolute. */
double kernel_digamma(double x);

/* The derivative of psi of this order, an integer >= 1. Below -10000 it is NaN for orders > 1. */
double kernel_polygamma(double order, double x);

#endif
