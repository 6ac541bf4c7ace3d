/* heat_real.c: heat on a square over ad_real.
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

const struct real_objective real_heat = {room, value};
