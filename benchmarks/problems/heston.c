/* heston.c: inputs, objective and gradient of heston.h.
 *
 * Invariant: the gradient keeps the variances of one path, and makes everything else of them again.
 */
#include "heston.h"

#include "problem_input.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool make(struct problem *problem, const int *sizes)
{
    static const double x[HESTON_VARIABLES] = {100.0, 0.04, 2.0, 0.05, 0.4, -0.6, 0.02};
    const size_t paths = (size_t)sizes[0], steps = (size_t)sizes[1];
    struct heston *h = calloc(1, sizeof *h);
    problem->input = h;
    if (!h)
        return false;
    *h = (struct heston){.paths = sizes[0], .steps = sizes[1]};
    h->normals = malloc(2 * paths * steps * sizeof *h->normals);
    problem->x = malloc(sizeof x);
    problem->n_variables = problem->n_gradient = HESTON_VARIABLES;
    problem->n_outputs = 1;
    problem->work_bytes = steps * sizeof(double);
    if (!h->normals || !problem->x)
        return false;
    memcpy(problem->x, x, sizeof x);
    struct numbers numbers = {42};
    for (size_t i = 0; i < 2 * paths * steps; ++i)
        h->normals[i] = number_normal(&numbers);
    return true;
}

static void drop(void *input)
{
    struct heston *h = input;
    free(h->normals);
    free(h);
}

static void value(const struct problem *problem, const double *x, void *work, double *outputs)
{
    (void)work;
    const struct heston *h = problem->input;
    const double kappa = x[2], theta = x[3], sigma = x[4], rho = x[5], rate = x[6];
    const double dt = heston_maturity / h->steps, root_dt = sqrt(dt);
    const double other = sqrt(1.0 - rho * rho), *z = h->normals;
    double sum = 0.0;
    for (int i = 0; i < h->paths; ++i) {
        double log_s = log(x[0]), v = x[1];
        for (int j = 0; j < h->steps; ++j, z += 2) {
            const double positive = v > 0.0 ? v : 0.0, root = sqrt(positive + heston_least);
            const double dw = root_dt * (rho * z[0] + other * z[1]);
            log_s = log_s + (rate - 0.5 * positive) * dt + root * dw;
            v = v + kappa * (theta - positive) * dt + sigma * root * (root_dt * z[0]);
        }
        const double s = exp(log_s);
        if (s > heston_strike)
            sum = sum + (s - heston_strike);
    }
    outputs[0] = exp(-rate * heston_maturity) * sum / h->paths;
}

/* Adds to g what a path that ended at s gives: by, the adjoint of ln s, and by_other, that of
 * sqrt(1 - rho^2). v: the variance before each step. */
static void path_back(const struct heston *h, const double *x, const double *z, const double *v,
                      double by, double *g, double *by_other)
{
    const double kappa = x[2], theta = x[3], sigma = x[4], rho = x[5];
    const double dt = heston_maturity / h->steps, root_dt = sqrt(dt);
    const double other = sqrt(1.0 - rho * rho);
    double by_v = 0.0;
    for (int j = h->steps - 1; j >= 0; --j) {
        const double positive = v[j] > 0.0 ? v[j] : 0.0, root = sqrt(positive + heston_least);
        const double dz = root_dt * z[2 * j], de = root_dt * z[2 * j + 1];
        const double by_root = by * (rho * dz + other * de) + by_v * sigma * dz;
        g[2] += by_v * (theta - positive) * dt;
        g[3] += by_v * kappa * dt;
        g[4] += by_v * root * dz;
        g[5] += by * root * dz;
        g[6] += by * dt;
        *by_other += by * root * de;
        if (v[j] > 0.0)
            by_v += 0.5 * by_root / root - 0.5 * dt * by - kappa * dt * by_v;
    }
    g[0] += by / x[0];
    g[1] += by_v;
}

static void gradient(const struct problem *problem, const double *x, void *work, double *outputs,
                     double *g)
{
    const struct heston *h = problem->input;
    const double kappa = x[2], theta = x[3], sigma = x[4], rho = x[5], rate = x[6];
    const double dt = heston_maturity / h->steps, root_dt = sqrt(dt);
    const double other = sqrt(1.0 - rho * rho), *z = h->normals;
    const double by_sum = exp(-rate * heston_maturity) / h->paths;
    double *kept = work, sum = 0.0, by_other = 0.0;
    memset(g, 0, HESTON_VARIABLES * sizeof *g);
    for (int i = 0; i < h->paths; ++i, z += 2 * h->steps) {
        double log_s = log(x[0]), v = x[1];
        for (int j = 0; j < h->steps; ++j) {
            const double positive = v > 0.0 ? v : 0.0, root = sqrt(positive + heston_least);
            const double dw = root_dt * (rho * z[2 * j] + other * z[2 * j + 1]);
            kept[j] = v;
            log_s = log_s + (rate - 0.5 * positive) * dt + root * dw;
            v = v + kappa * (theta - positive) * dt + sigma * root * (root_dt * z[2 * j]);
        }
        const double s = exp(log_s);
        if (s > heston_strike) {
            sum += s - heston_strike;
            path_back(h, x, z, kept, by_sum * s, g, &by_other);
        }
    }
    outputs[0] = by_sum * sum;
    g[5] -= by_other * rho / other;
    g[6] -= heston_maturity * outputs[0];
}

const struct problem_kind heston_kind = {make, NULL, drop, value, gradient};
