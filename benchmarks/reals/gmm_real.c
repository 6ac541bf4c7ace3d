/* gmm_real.c: the mixture of Gaussians over ad_real.
 *
 * May include: real.h, gmm.h. Invariant: as in real.h.
 */
#include "gmm.h"
#include "real.h"

static size_t room(const struct problem *problem)
{
    const struct gmm *g = problem->input;
    return (size_t)g->k * ((size_t)g->d + 2) + (size_t)g->d;
}

static void log_sum_exp(const ad_real *x, int n, ad_real *y)
{
    ad_real most = x[0], sum = {0};
    for (int i = 1; i < n; ++i)
        if (ad_real_greater(x[i], most))
            most = x[i];
    for (int i = 0; i < n; ++i)
        ad_set(&sum, ad_real_add(sum, ad_real_exp(ad_real_sub(x[i], most))));
    ad_set(y, ad_real_add(most, ad_real_log(sum)));
}

/* Of each factor: the sum of q, exp(q), and what the prior adds. */
static void prepare(const struct gmm *g, const ad_real *factors, ad_real *diagonal, ad_real *sum_q,
                    ad_real *prior)
{
    const int d = g->d, size = gmm_factor_size(g);
    const double half = 0.5 * g->gamma * g->gamma;
    *prior = (ad_real){0};
    for (int k = 0; k < g->k; ++k) {
        const ad_real *q = factors + (size_t)k * (size_t)size, *l = q + d;
        ad_real squares = {0}, sum = {0};
        for (int j = 0; j < d; ++j) {
            ad_real e = ad_real_of(ad_real_exp(q[j]));
            diagonal[k * d + j] = e;
            ad_set(&sum, ad_real_add(sum, q[j]));
            ad_set(&squares, ad_real_add(squares, ad_real_square(e)));
        }
        for (int j = 0; j < size - d; ++j)
            ad_set(&squares, ad_real_add(squares, ad_real_square(l[j])));
        sum_q[k] = sum;
        ad_set(prior, ad_real_add(*prior, ad_real_sub(ad_real_mul(half, squares),
                                                      ad_real_mul((double)g->m, sum))));
    }
}

/* y = Q (p - mu), and half the square of its norm. */
static void transform(int d, const double *p, const ad_real *mu, const ad_real *diagonal,
                      const ad_real *l, ad_real *y, ad_real *half_norm)
{
    for (int j = 0; j < d; ++j)
        ad_set(&y[j], ad_real_mul(diagonal[j], ad_real_sub(p[j], mu[j])));
    for (int c = 0; c < d; ++c)
        for (int r = c + 1; r < d; ++r, ++l)
            ad_set(&y[r], ad_real_add(y[r], ad_real_mul(*l, ad_real_sub(p[c], mu[c]))));
    ad_real norm = {0};
    for (int j = 0; j < d; ++j)
        ad_set(&norm, ad_real_add(norm, ad_real_square(y[j])));
    ad_set(half_norm, ad_real_mul(0.5, norm));
}

static void value(const struct problem *problem, const ad_real *x, ad_real *work, ad_real *out)
{
    const struct gmm *g = problem->input;
    const int d = g->d, n_k = g->k, size = gmm_factor_size(g);
    const ad_real *alpha = x, *mu = x + n_k, *factors = mu + (size_t)n_k * (size_t)d;
    ad_real *diagonal = work, *sum_q = diagonal + n_k * d, *term = sum_q + n_k, *y = term + n_k;
    ad_real prior, half_norm, by_point, of_alpha, sum = {0};
    prepare(g, factors, diagonal, sum_q, &prior);
    for (int i = 0; i < g->n; ++i) {
        const double *p = g->points + (size_t)i * (size_t)d;
        for (int k = 0; k < n_k; ++k) {
            const ad_real *l = factors + (size_t)k * (size_t)size + d;
            transform(d, p, mu + k * d, diagonal + k * d, l, y, &half_norm);
            ad_set(&term[k], ad_real_sub(ad_real_add(alpha[k], sum_q[k]), half_norm));
        }
        log_sum_exp(term, n_k, &by_point);
        ad_set(&sum, ad_real_add(sum, by_point));
    }
    log_sum_exp(alpha, n_k, &of_alpha);
    ad_set(out, ad_real_add(ad_real_sub(sum, ad_real_mul(g->n, of_alpha)),
                            ad_real_add(prior, gmm_constant(g))));
}

const struct real_objective real_gmm = {room, value};
