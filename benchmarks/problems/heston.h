/* heston.h: a European call by Monte Carlo under the Heston model.
 *
 * ds = r s dt + sqrt(v) s dW, dv = kappa (theta - v) dt + sigma sqrt(v) dZ, with correlation rho of
 * W and Z (S. L. Heston, 1993, doi:10.1093/rfs/6.2.327), by Euler's method for ln s and v, where
 * the positive part of v is read (full truncation: R. Lord, R. Koekkoek, D. van Dijk, 2010,
 * doi:10.1080/14697680802565961). x: s, v, kappa, theta, sigma, rho, r; output: the price.
 *
 * Invariant: input is a struct heston.
 */
#ifndef HESTON_H
#define HESTON_H

#include "problem.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HESTON_VARIABLES = 7 };

struct heston {
    int paths, steps;
    double *normals; /* [paths, steps, 2] */
};

static const double heston_strike = 105.0, heston_maturity = 1.0;
/* Added to the variance, so that the slope of its root is finite where it is 0. */
static const double heston_least = 1e-300;

extern const struct problem_kind heston_kind;

#ifdef __cplusplus
}
#endif

#endif
