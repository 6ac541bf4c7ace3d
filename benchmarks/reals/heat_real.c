/* heat_real.c: heat on a square over ad_real, by statements and by a stencil that is one record.
 *
 * Invariant: as in real.h.
 */
#include "heat.h"
#include "real.h"

#include <string.h>

static size_t room(const struct problem *problem)
{
    return 2 * problem->n_variables;
}

static void step(int n, const ad_real *restrict u, ad_real *restrict next)
{
    memcpy(next, u, (size_t)n * sizeof *u);
    memcpy(next + (size_t)n * (size_t)(n - 1), u + (size_t)n * (size_t)(n - 1),
           (size_t)n * sizeof *u);
    for (int i = 1; i < n - 1; ++i) {
        const ad_real *m = u + (size_t)i * (size_t)n;
        ad_real *to = next + (size_t)i * (size_t)n;
        to[0] = m[0];
        to[n - 1] = m[n - 1];
        for (int j = 1; j < n - 1; ++j)
            ad_set(
                &to[j],
                ad_real_add(
                    m[j],
                    ad_real_mul(heat_share,
                                ad_real_sub(ad_real_add(ad_real_add(ad_real_add(m[j - 1], m[j + 1]),
                                                                    m[j - n]),
                                                        m[j + n]),
                                            ad_real_mul(4.0, m[j])))));
    }
}

static void value(const struct problem *problem, const ad_real *x, ad_real *work, ad_real *out)
{
    const struct heat *h = problem->input;
    const size_t all = problem->n_variables;
    ad_real *u = work, *next = work + all, sum = {0};
    memcpy(u, x, all * sizeof *u);
    for (int s = 0; s < h->s; ++s) {
        step(h->n, u, next);
        ad_real *before = u;
        u = next;
        next = before;
    }
    for (size_t i = 0; i < all; ++i)
        ad_set(&sum, ad_real_add(sum, ad_real_square(u[i])));
    *out = sum;
}

static void value_by_stencil(const struct problem *problem, const ad_real *x, ad_real *work,
                             ad_real *out)
{
    static const double w[] = {0.0, heat_share, 0.0, heat_share, 1.0 - 4.0 * heat_share, heat_share,
                               0.0, heat_share, 0.0};
    const struct heat *h = problem->input;
    const ad_real *u = x;
    for (int s = 0; s < h->s; ++s) {
        ad_real *next = work + (size_t)(s % 2) * problem->n_variables;
        ad_real_stencil_2d(h->n, h->n, u, 3, 3, w, AD_EDGE_KEEP, next);
        u = next;
    }
    *out = ad_real_sum_of_squares((int64_t)problem->n_variables, u);
}

const struct real_objective real_heat = {room, value};
const struct real_objective real_heat_fused_loops = {room, value_by_stencil};
