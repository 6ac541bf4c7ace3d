/* chains_real.c: the three loops over ad_real.
 *
 * Invariant: as in real.h.
 */
#include "chains.h"
#include "real.h"

#include <string.h>

/* ---- Lorenz ---- */

enum { LORENZ_ROOM = 8 };

typedef void slope_function(const ad_real *u, ad_real *k);

static void lorenz_right(const ad_real *u, ad_real *k)
{
    ad_set(&k[0], ad_real_mul(lorenz_sigma, ad_real_sub(u[1], u[0])));
    ad_set(&k[1], ad_real_sub(ad_real_mul(u[0], ad_real_sub(lorenz_rho, u[2])), u[1]));
    ad_set(&k[2], ad_real_sub(ad_real_mul(u[0], u[1]), ad_real_mul(lorenz_beta, u[2])));
}

/* to = u + h k */
static void step_along(int n, const ad_real *restrict u, double h, const ad_real *restrict k,
                       ad_real *restrict to)
{
    for (int j = 0; j < n; ++j)
        ad_set(&to[j], ad_real_add(u[j], ad_real_mul(h, k[j])));
}

static void runge_kutta(int n, slope_function *slope, ad_real *u, double h, int steps)
{
    ad_real p[LORENZ_ROOM], a[LORENZ_ROOM], b[LORENZ_ROOM], c[LORENZ_ROOM], d[LORENZ_ROOM];
    for (int i = 0; i < steps; ++i) {
        slope(u, a);
        step_along(n, u, 0.5 * h, a, p);
        slope(p, b);
        step_along(n, u, 0.5 * h, b, p);
        slope(p, c);
        step_along(n, u, h, c, p);
        slope(p, d);
        for (int j = 0; j < n; ++j)
            ad_set(&u[j],
                   ad_real_add(
                       u[j], ad_real_mul(h / 6.0,
                                         ad_real_add(ad_real_add(a[j], ad_real_mul(2.0, b[j])),
                                                     ad_real_add(ad_real_mul(2.0, c[j]), d[j])))));
    }
}

static size_t no_room(const struct problem *problem)
{
    (void)problem;
    return 0;
}

/* The slope is what the integrator cannot see through, as it is in the objective over double. */
static slope_function *volatile lorenz_slope = lorenz_right;

static void lorenz(const struct problem *problem, const ad_real *x, ad_real *work, ad_real *out)
{
    (void)work;
    const struct chain *c = problem->input;
    ad_real u[LORENZ_ROOM] = {x[0], x[1], x[2]};
    runge_kutta(c->n_equations, lorenz_slope, u, lorenz_step, c->n);
    ad_set(out,
           ad_real_mul(0.5, ad_real_add(ad_real_add(ad_real_square(u[0]), ad_real_square(u[1])),
                                        ad_real_square(u[2]))));
}

/* ---- Burgers ---- */

static size_t burgers_room(const struct problem *problem)
{
    return 2 * problem->n_variables;
}

static void burgers_step(int n, const ad_real *restrict u, ad_real *restrict next)
{
    next[0] = u[0];
    next[n - 1] = u[n - 1];
    for (int i = 1; i < n - 1; ++i) {
        const ad_real m = u[i], l = u[i - 1], r = u[i + 1];
        ad_set(&next[i],
               ad_real_add(
                   ad_real_sub(m, ad_real_mul(ad_real_mul(burgers_drift, m), ad_real_sub(r, l))),
                   ad_real_mul(burgers_diffusion,
                               ad_real_add(ad_real_sub(r, ad_real_mul(2.0, m)), l))));
    }
}

static void burgers(const struct problem *problem, const ad_real *x, ad_real *work, ad_real *out)
{
    const struct chain *c = problem->input;
    ad_real *u = work, *next = u + c->n, sum = {0};
    memcpy(u, x, (size_t)c->n * sizeof *u);
    for (int s = 0; s < c->s; ++s) {
        burgers_step(c->n, u, next);
        ad_real *last = u;
        u = next;
        next = last;
    }
    for (int i = 0; i < c->n; ++i)
        ad_set(&sum, ad_real_add(sum, ad_real_square(u[i])));
    *out = sum;
}

/* ---- the chain of products and sums ---- */

static void mulchain(const struct problem *problem, const ad_real *x, ad_real *work, ad_real *out)
{
    (void)work;
    const struct chain *c = problem->input;
    ad_real s = x[0];
    const ad_real a = x[1], b = x[2];
    for (int i = 0; i < c->n; ++i)
        ad_set(&s, ad_real_add(ad_real_mul(s, a), b));
    *out = s;
}

const struct real_objective real_lorenz = {no_room, lorenz};
const struct real_objective real_burgers = {burgers_room, burgers};
const struct real_objective real_mulchain = {no_room, mulchain};
