/* gmm.c: inputs, objective and gradient of gmm.h.
 *
 * Invariant: the gradient computes the objective as the objective does, term by term.
 */
#include "gmm.h"

#include "problem_input.h"

#include <math.h>
#include <stdlib.h>

int gmm_factor_size(const struct gmm *g)
{
    return g->d + g->d * (g->d - 1) / 2;
}

double gmm_constant(const struct gmm *g)
{
    const double w = g->d + g->m + 1;
    double log_gamma_d = 0.25 * g->d * (g->d - 1) * log(M_PI);
    for (int j = 1; j <= g->d; ++j)
        log_gamma_d += lgamma(0.5 * w + 0.5 * (1 - j));
    const double c = w * g->d * (log(g->gamma) - 0.5 * log(2.0)) - log_gamma_d;
    return -0.5 * g->n * g->d * log(2.0 * M_PI) - g->k * c;
}

/* ---- inputs ---- */

static bool allocate(struct problem *problem, int d, int k, int n)
{
    struct gmm *g = calloc(1, sizeof *g);
    problem->input = g;
    if (!g)
        return false;
    *g = (struct gmm){.d = d, .k = k, .n = n};
    problem->n_variables = (size_t)k * (1 + (size_t)d + (size_t)gmm_factor_size(g));
    problem->n_outputs = 1;
    problem->n_gradient = problem->n_variables;
    /* Of each k: the diagonal, the sum of q, the term; for the gradient also a difference, a
     * product and the derivative with respect to the diagonal. */
    problem->work_bytes = (size_t)k * (4 * (size_t)d + 2) * sizeof(double);
    problem->x = malloc(problem->n_variables * sizeof *problem->x);
    g->points = malloc((size_t)n * (size_t)d * sizeof *g->points);
    return problem->x && g->points;
}

static bool make(struct problem *problem, const int *sizes)
{
    const int d = sizes[0], k = sizes[1], n = sizes[2];
    if (!allocate(problem, d, k, n))
        return false;
    struct gmm *g = problem->input;
    struct numbers numbers = {(uint64_t)(d * 1000 + k)};
    g->gamma = 1.0;
    g->m = 0;
    for (size_t i = 0; i < problem->n_variables; ++i)
        problem->x[i] = number_normal(&numbers);
    for (int i = 0; i < k * d; ++i) /* means */
        problem->x[k + i] = number_in(&numbers, 0.0, 1.0);
    for (int i = 0; i < n * d; ++i)
        g->points[i] = number_normal(&numbers);
    return true;
}

static bool read_file(struct problem *problem, const char *folder)
{
    const char *name = problem->spec->file;
    FILE *file = input_open(folder, name);
    if (!file)
        return false;
    int size[3];
    bool done = input_ints(file, 3, size) && size[0] > 0 && size[0] <= 1000 && size[1] > 0 &&
                size[1] <= 1000 && size[2] > 0 && size[2] <= 10000000 &&
                allocate(problem, size[0], size[1], size[2]);
    struct gmm *g = problem->input;
    done = done && input_doubles(file, problem->n_variables, problem->x) &&
           input_doubles(file, (size_t)g->n * (size_t)g->d, g->points) &&
           input_doubles(file, 1, &g->gamma) && input_ints(file, 1, &g->m);
    fclose(file);
    return done || input_refuse(folder, name);
}

static void drop(void *input)
{
    struct gmm *g = input;
    free(g->points);
    free(g);
}

/* ---- the objective ---- */

static double log_sum_exp(const double *x, int n)
{
    double most = x[0], sum = 0.0;
    for (int i = 1; i < n; ++i)
        if (x[i] > most)
            most = x[i];
    for (int i = 0; i < n; ++i)
        sum += exp(x[i] - most);
    return most + log(sum);
}

/* Of each factor: the sum of q, exp(q), and what the prior adds. */
static double prepare(const struct gmm *g, const double *factors, double *diagonal, double *sum_q)
{
    const int d = g->d, size = gmm_factor_size(g);
    const double half = 0.5 * g->gamma * g->gamma;
    double prior = 0.0;
    for (int k = 0; k < g->k; ++k) {
        const double *q = factors + (size_t)k * (size_t)size, *l = q + d;
        double squares = 0.0, sum = 0.0;
        for (int j = 0; j < d; ++j) {
            double e = exp(q[j]);
            diagonal[k * d + j] = e;
            sum += q[j];
            squares += e * e;
        }
        for (int j = 0; j < size - d; ++j)
            squares += l[j] * l[j];
        sum_q[k] = sum;
        prior += half * squares - g->m * sum;
    }
    return prior;
}

/* y = Q a for a = p - mu; the square of its norm. */
static double transform(int d, const double *restrict p, const double *restrict mu,
                        const double *restrict diagonal, const double *restrict l,
                        double *restrict a, double *restrict y)
{
    for (int j = 0; j < d; ++j) {
        a[j] = p[j] - mu[j];
        y[j] = diagonal[j] * a[j];
    }
    for (int c = 0; c < d; ++c)
        for (int r = c + 1; r < d; ++r)
            y[r] += *l++ * a[c];
    double norm = 0.0;
    for (int j = 0; j < d; ++j)
        norm += y[j] * y[j];
    return norm;
}

static void value(const struct problem *problem, const double *x, void *work, double *outputs)
{
    const struct gmm *g = problem->input;
    const int d = g->d, n_k = g->k, size = gmm_factor_size(g);
    const double *alpha = x, *mu = x + n_k, *factors = mu + (size_t)n_k * (size_t)d;
    double *diagonal = work, *sum_q = diagonal + n_k * d, *term = sum_q + n_k;
    double *a = term + n_k, *y = a + d;
    const double prior = prepare(g, factors, diagonal, sum_q);
    double sum = 0.0;
    for (int i = 0; i < g->n; ++i) {
        const double *p = g->points + (size_t)i * (size_t)d;
        for (int k = 0; k < n_k; ++k) {
            const double *l = factors + (size_t)k * (size_t)size + d;
            double norm = transform(d, p, mu + k * d, diagonal + k * d, l, a, y);
            term[k] = alpha[k] + sum_q[k] - 0.5 * norm;
        }
        sum += log_sum_exp(term, n_k);
    }
    outputs[0] = sum - g->n * log_sum_exp(alpha, n_k) + prior + gmm_constant(g);
}

/* ---- the gradient ---- */

/* Makes of terms their shares: exp(x_k - logsumexp x). */
static double shares(double *x, int n)
{
    double most = x[0], sum = 0.0;
    for (int i = 1; i < n; ++i)
        if (x[i] > most)
            most = x[i];
    for (int i = 0; i < n; ++i) {
        x[i] = exp(x[i] - most);
        sum += x[i];
    }
    for (int i = 0; i < n; ++i)
        x[i] /= sum;
    return most + log(sum);
}

/* Adds what a point gives by one Gaussian of that share: with z = - share y, the derivative with
 * respect to y = Q a, dQ = z a^T and dmu = - Q^T z. */
static void add_point(int d, double share, const double *restrict diagonal,
                      const double *restrict l, const double *restrict a, double *restrict y,
                      double *restrict d_mu, double *restrict d_diagonal, double *restrict d_l)
{
    for (int j = 0; j < d; ++j) {
        y[j] *= share;
        d_mu[j] += diagonal[j] * y[j];
        d_diagonal[j] -= y[j] * a[j];
    }
    for (int c = 0; c < d; ++c) {
        const double s = a[c];
        double sum = 0.0;
        for (int r = c + 1; r < d; ++r) {
            sum += *l++ * y[r];
            *d_l++ -= y[r] * s;
        }
        d_mu[c] += sum;
    }
}

/* What is left when all points are added: the prior, the sums of q and the mean of alpha. */
static void finish(const struct gmm *g, const double *x, const double *diagonal,
                   const double *d_diagonal, double *share, double *gradient)
{
    const int d = g->d, n_k = g->k, size = gmm_factor_size(g);
    const double square = g->gamma * g->gamma;
    const size_t first = (size_t)n_k * (1 + (size_t)d);
    for (int k = 0; k < n_k; ++k) {
        const double *l = x + first + (size_t)k * (size_t)size + d;
        double *d_q = gradient + first + (size_t)k * (size_t)size, *d_l = d_q + d;
        for (int j = 0; j < d; ++j) {
            const double e = diagonal[k * d + j];
            d_q[j] = gradient[k] - g->m + e * (d_diagonal[k * d + j] + square * e);
        }
        for (int j = 0; j < size - d; ++j)
            d_l[j] += square * l[j];
    }
    for (int k = 0; k < n_k; ++k)
        share[k] = x[k];
    shares(share, n_k);
    for (int k = 0; k < n_k; ++k)
        gradient[k] -= g->n * share[k];
}

static void gradient(const struct problem *problem, const double *x, void *work, double *outputs,
                     double *gradient)
{
    const struct gmm *g = problem->input;
    const int d = g->d, n_k = g->k, size = gmm_factor_size(g);
    const double *alpha = x, *mu = x + n_k, *factors = mu + (size_t)n_k * (size_t)d;
    double *diagonal = work, *sum_q = diagonal + n_k * d, *term = sum_q + n_k;
    double *a = term + n_k, *y = a + n_k * d, *d_diagonal = y + n_k * d;
    double *d_mu = gradient + n_k, *d_factors = d_mu + (size_t)n_k * (size_t)d;
    const double prior = prepare(g, factors, diagonal, sum_q);
    double sum = 0.0;
    for (size_t j = 0; j < problem->n_gradient; ++j)
        gradient[j] = 0.0;
    for (int j = 0; j < n_k * d; ++j)
        d_diagonal[j] = 0.0;
    for (int i = 0; i < g->n; ++i) {
        const double *p = g->points + (size_t)i * (size_t)d;
        for (int k = 0; k < n_k; ++k) {
            const double *l = factors + (size_t)k * (size_t)size + d;
            double norm = transform(d, p, mu + k * d, diagonal + k * d, l, a + k * d, y + k * d);
            term[k] = alpha[k] + sum_q[k] - 0.5 * norm;
        }
        sum += shares(term, n_k);
        for (int k = 0; k < n_k; ++k) {
            const size_t below = (size_t)k * (size_t)size + (size_t)d;
            gradient[k] += term[k];
            add_point(d, term[k], diagonal + k * d, factors + below, a + k * d, y + k * d,
                      d_mu + k * d, d_diagonal + k * d, d_factors + below);
        }
    }
    finish(g, x, diagonal, d_diagonal, term, gradient);
    for (int k = 0; k < n_k; ++k)
        term[k] = alpha[k];
    outputs[0] = sum - g->n * log_sum_exp(term, n_k) + prior + gmm_constant(g);
}

const struct problem_kind gmm_kind = {make, read_file, drop, value, gradient};
