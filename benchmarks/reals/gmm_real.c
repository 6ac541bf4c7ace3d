/* gmm_real.c: the mixture of Gaussians over ad_real, twice: as a loop over double is written, one
 * product a statement, and with up to five products in one statement.
 *
 * Invariant: as in real.h.
 */
#include "gmm.h"
#include "real.h"

static size_t room(const struct problem *problem)
{
    const struct gmm *g = problem->input;
    /* Of each k as in the objective over double; y, and as many pointers, which are smaller, or
     * differences. */
    return (size_t)g->k * ((size_t)g->d + 2) + 2 * (size_t)g->d;
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

/* The entry of Q in row r and column c < r times entry c of p - mu. */
#define PRODUCT(c) ad_real_mul(column[c][r], ad_real_sub(p[c], mu[c]))

/* Row r of Q (p - mu), several products a statement: the first has as many as leave five for each
 * of the others. column[c] + r is where entry r of column c is. */
static ad_real row(int r, const double *p, const ad_real *mu, ad_real diagonal,
                   const ad_real *const *column)
{
    ad_real y;
    int c = r % 5;
#define FIRST ad_real_mul(diagonal, ad_real_sub(p[r], mu[r]))
    if (c == 0)
        ad_set(&y, FIRST);
    else if (c == 1)
        ad_set(&y, ad_real_add(FIRST, PRODUCT(0)));
    else if (c == 2)
        ad_set(&y, ad_real_add(ad_real_add(FIRST, PRODUCT(0)), PRODUCT(1)));
    else if (c == 3)
        ad_set(&y,
               ad_real_add(ad_real_add(ad_real_add(FIRST, PRODUCT(0)), PRODUCT(1)), PRODUCT(2)));
    else
        ad_set(&y, ad_real_add(ad_real_add(ad_real_add(ad_real_add(FIRST, PRODUCT(0)), PRODUCT(1)),
                                           PRODUCT(2)),
                               PRODUCT(3)));
#undef FIRST
    for (; c < r; c += 5)
        ad_set(&y, ad_real_add(ad_real_add(ad_real_add(ad_real_add(ad_real_add(y, PRODUCT(c)),
                                                                   PRODUCT(c + 1)),
                                                       PRODUCT(c + 2)),
                                           PRODUCT(c + 3)),
                               PRODUCT(c + 4)));
    return y;
}

/* The sum of squares, five a statement. */
static ad_real sum_of_squares(int n, const ad_real *y)
{
    ad_real sum = {0};
    int j = 0;
    for (; j < n % 5; ++j)
        ad_set(&sum, ad_real_add(sum, ad_real_square(y[j])));
    for (; j < n; j += 5)
        ad_set(&sum, ad_real_add(ad_real_add(ad_real_add(sum, ad_real_square(y[j])),
                                             ad_real_add(ad_real_square(y[j + 1]),
                                                         ad_real_square(y[j + 2]))),
                                 ad_real_add(ad_real_square(y[j + 3]), ad_real_square(y[j + 4]))));
    return sum;
}

/* |Q (p - mu)|^2, by y and column, which are room for d each. */
static ad_real square_norm(int d, const double *p, const ad_real *mu, const ad_real *diagonal,
                           const ad_real *l, ad_real *y, const ad_real **column)
{
    for (int c = 0; c < d; ++c) {
        column[c] = l - (c + 1);
        l += d - c - 1;
    }
    for (int r = 0; r < d; ++r)
        y[r] = row(r, p, mu, diagonal[r], column);
    return sum_of_squares(d, y);
}

/* The same, by one product a statement, as the objective over double is written. */
static ad_real square_norm_by_loop(int d, const double *p, const ad_real *mu,
                                   const ad_real *diagonal, const ad_real *l, ad_real *a,
                                   ad_real *y)
{
    ad_real norm = {0};
    for (int j = 0; j < d; ++j) {
        ad_set(&a[j], ad_real_sub(p[j], mu[j]));
        ad_set(&y[j], ad_real_mul(diagonal[j], a[j]));
    }
    for (int c = 0; c < d; ++c)
        for (int r = c + 1; r < d; ++r, ++l)
            ad_set(&y[r], ad_real_add(y[r], ad_real_mul(*l, a[c])));
    for (int j = 0; j < d; ++j)
        ad_set(&norm, ad_real_add(norm, ad_real_mul(y[j], y[j])));
    return norm;
}

/* by_loop is a constant wherever this is inlined. */
static inline __attribute__((always_inline)) void
objective(const struct problem *problem, const ad_real *x, ad_real *work, ad_real *out, int by_loop)
{
    const struct gmm *g = problem->input;
    const int d = g->d, n_k = g->k, size = gmm_factor_size(g);
    const ad_real *alpha = x, *mu = x + n_k, *factors = mu + (size_t)n_k * (size_t)d;
    ad_real *diagonal = work, *sum_q = diagonal + n_k * d, *term = sum_q + n_k, *y = term + n_k;
    const ad_real **column = (const ad_real **)(void *)(y + d);
    ad_real prior, by_point, of_alpha, sum = {0};
    prepare(g, factors, diagonal, sum_q, &prior);
    for (int i = 0; i < g->n; ++i) {
        const double *p = g->points + (size_t)i * (size_t)d;
        for (int k = 0; k < n_k; ++k) {
            const ad_real *l = factors + (size_t)k * (size_t)size + d;
            const ad_real *of_k = mu + k * d, *e = diagonal + k * d;
            ad_real norm = by_loop ? square_norm_by_loop(d, p, of_k, e, l, y + d, y)
                                   : square_norm(d, p, of_k, e, l, y, column);
            ad_set(&term[k], ad_real_sub(ad_real_add(alpha[k], sum_q[k]), ad_real_mul(0.5, norm)));
        }
        log_sum_exp(term, n_k, &by_point);
        ad_set(&sum, ad_real_add(sum, by_point));
    }
    log_sum_exp(alpha, n_k, &of_alpha);
    ad_set(out, ad_real_add(ad_real_sub(sum, ad_real_mul(g->n, of_alpha)),
                            ad_real_add(prior, gmm_constant(g))));
}

static void value(const struct problem *problem, const ad_real *x, ad_real *work, ad_real *out)
{
    objective(problem, x, work, out, 0);
}

static void value_by_loop(const struct problem *problem, const ad_real *x, ad_real *work,
                          ad_real *out)
{
    objective(problem, x, work, out, 1);
}

const struct real_objective real_gmm = {room, value};
const struct real_objective real_gmm_loop = {room, value_by_loop};
