/* chains.h: three loops that say what a tape of statements costs.
 *
 * lorenz: n steps of the classical Runge-Kutta method for x' = 10 (y - x), y' = x (28 - z) - y,
 *     z' = x y - 8/3 z (E. N. Lorenz, 1963, doi:10.1175/1520-0469(1963)020<0130:DNF>2.0.CO;2), of
 *     24 statements each and 1e-4 long, by an integrator for any system whose slope is a function;
 *     x: the state at the start; output: half its squared length at the end.
 * burgers: s steps on n points of an explicit scheme,
 *     u_i <- m - 0.1 m (r - l) + 0.2 (r - 2 m + l) with m = u_i, l and r to its left and right, the
 *     ends fixed: 9 operations on 7 operands a statement; x: u at the start; output: the sum of u^2
 *     at the end.
 * mulchain: n times s <- s a + b; x: s, a, b; output: s.
 *
 * Invariant: input is a struct chain.
 */
#ifndef CHAINS_H
#define CHAINS_H

#include "problem.h"

#ifdef __cplusplus
extern "C" {
#endif

struct chain {
    int n, s;
    int n_equations; /* lorenz: what its integrator, which takes any system, is called with */
    void (*slope)(const double *u, double *k);
};

static const double lorenz_step = 1e-4;
static const double lorenz_sigma = 10.0, lorenz_rho = 28.0, lorenz_beta = 8.0 / 3.0;
static const double burgers_drift = 0.1, burgers_diffusion = 0.2;

extern const struct problem_kind lorenz_kind, burgers_kind, mulchain_kind;

#ifdef __cplusplus
}
#endif

#endif
