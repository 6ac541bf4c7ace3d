/* gmm_fused_loops_real.c: the mixture of Gaussians over ad_real, by loops that are one record each.
 *
 * Invariant: as in real.h. Points are taken BLOCK at a time, so that a factor's product with all
 * of them is one record.
 */
#include "gmm.h"
#include "real.h"

enum { BLOCK = 32 };

static size_t room(const struct problem *problem)
{
    const struct gmm *g = problem->input;
    const size_t k = (size_t)g->k, d = (size_t)g->d;
    return k * (d + 2) + BLOCK * d + k * BLOCK + (size_t)g->n;
}

/* Of each factor: exp(q), alpha plus the sum of q, and what the prior adds. */
static void prepare(const struct gmm *g, const ad_real *alpha, const ad_real *factors,
                    ad_real *diagonal, ad_real *offset, ad_real *prior)
{
    const int d = g->d, size = gmm_factor_size(g);
    const double half = 0.5 * g->gamma * g->gamma;
    *prior = (ad_real){0};
    for (int k = 0; k < g->k; ++k) {
        const ad_real *q = factors + (size_t)k * (size_t)size, *l = q + d;
        ad_real *e = diagonal + k * d;
        for (int j = 0; j < d; ++j)
            ad_set(&e[j], ad_real_exp(q[j]));
        const ad_real sum = ad_real_sum(d, q);
        const ad_real of_e = ad_real_sum_of_squares(d, e);
        const ad_real of_l = ad_real_sum_of_squares(size - d, l);
        ad_set(&offset[k], ad_real_add(alpha[k], sum));
        ad_set(prior, ad_real_add(*prior, ad_real_sub(ad_real_mul(half, ad_real_add(of_e, of_l)),
                                                      ad_real_mul((double)g->m, sum))));
    }
}

static void value(const struct problem *problem, const ad_real *x, ad_real *work, ad_real *out)
{
    const struct gmm *g = problem->input;
    const int d = g->d, n_k = g->k, size = gmm_factor_size(g);
    const ad_real *alpha = x, *mu = x + n_k, *factors = mu + (size_t)n_k * (size_t)d;
    ad_real *diagonal = work, *offset = diagonal + n_k * d, *term = offset + n_k;
    ad_real *y = term + n_k, *norm = y + BLOCK * d, *by_point = norm + n_k * BLOCK;
    ad_real prior;
    prepare(g, alpha, factors, diagonal, offset, &prior);
    for (int i = 0; i < g->n; i += BLOCK) {
        const double *p = g->points + (size_t)i * (size_t)d;
        const int n = g->n - i < BLOCK ? g->n - i : BLOCK;
        for (int k = 0; k < n_k; ++k) {
            const ad_real *l = factors + (size_t)k * (size_t)size + d;
            ad_real_trmm(n, d, diagonal + k * d, l, mu + k * d, p, y);
            ad_real_sums_of_squares(n, d, y, norm + k * BLOCK);
        }
        for (int j = 0; j < n; ++j) {
            for (int k = 0; k < n_k; ++k)
                ad_set(&term[k], ad_real_sub(offset[k], ad_real_mul(0.5, norm[k * BLOCK + j])));
            by_point[i + j] = ad_real_log_sum_exp(n_k, term);
        }
    }
    const ad_real sum = ad_real_sum(g->n, by_point), of_alpha = ad_real_log_sum_exp(n_k, alpha);
    ad_set(out, ad_real_add(ad_real_sub(sum, ad_real_mul(g->n, of_alpha)),
                            ad_real_add(prior, gmm_constant(g))));
}

const struct real_objective real_gmm_fused_loops = {room, value};
