/* heat.c: inputs, objective and gradient of heat.h.
 *
 * Invariant: a step is linear, so that the gradient keeps no states.
 */
#include "heat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool make(struct problem *problem, const int *sizes)
{
    struct heat *h = calloc(1, sizeof *h);
    problem->input = h;
    if (!h)
        return false;
    *h = (struct heat){.n = sizes[0], .s = sizes[1]};
    const size_t n = (size_t)h->n;
    problem->n_variables = problem->n_gradient = n * n;
    problem->n_outputs = 1;
    problem->work_bytes = 2 * n * n * sizeof(double);
    problem->x = malloc(n * n * sizeof *problem->x);
    if (!problem->x)
        return false;
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j)
            problem->x[i * n + j] =
                sin(3.0 * (double)i / (double)n) * cos(5.0 * (double)j / (double)n);
    return true;
}

static void drop(void *input)
{
    free(input);
}

static void step(int n, const double *restrict u, double *restrict next)
{
    memcpy(next, u, (size_t)n * sizeof *u);
    memcpy(next + (size_t)n * (size_t)(n - 1), u + (size_t)n * (size_t)(n - 1),
           (size_t)n * sizeof *u);
    for (int i = 1; i < n - 1; ++i) {
        const double *m = u + (size_t)i * (size_t)n;
        double *to = next + (size_t)i * (size_t)n;
        to[0] = m[0];
        to[n - 1] = m[n - 1];
        for (int j = 1; j < n - 1; ++j)
            to[j] = m[j] + heat_share * (m[j - 1] + m[j + 1] + m[j - n] + m[j + n] - 4.0 * m[j]);
    }
}

/* The state after all steps, one of two that `work` has room for. */
static double *last_state(const struct heat *h, const double *x, double *work)
{
    const size_t n = (size_t)h->n * (size_t)h->n;
    double *u = work, *next = work + n;
    memcpy(u, x, n * sizeof *u);
    for (int s = 0; s < h->s; ++s) {
        step(h->n, u, next);
        double *before = u;
        u = next;
        next = before;
    }
    return u;
}

static double sum_of_squares(const struct heat *h, const double *u)
{
    double sum = 0.0;
    for (size_t i = 0; i < (size_t)h->n * (size_t)h->n; ++i)
        sum += u[i] * u[i];
    return sum;
}

static void value(const struct problem *problem, const double *x, void *work, double *outputs)
{
    const struct heat *h = problem->input;
    outputs[0] = sum_of_squares(h, last_state(h, x, work));
}

/* The adjoint before a step from that after it: each inner point gives to itself and to its four
 * neighbours. */
static void step_back(int n, const double *restrict after, double *restrict before)
{
    const size_t all = (size_t)n * (size_t)n;
    memcpy(before, after, all * sizeof *after);
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j) {
            double *m = before + (size_t)i * (size_t)n + j;
            const double by = heat_share * after[(size_t)i * (size_t)n + (size_t)j];
            m[0] -= 4.0 * by;
            m[-1] += by;
            m[1] += by;
            m[-n] += by;
            m[n] += by;
        }
}

static void gradient(const struct problem *problem, const double *x, void *work, double *outputs,
                     double *g)
{
    const struct heat *h = problem->input;
    const size_t all = (size_t)h->n * (size_t)h->n;
    double *after = last_state(h, x, work), *before = after == work ? (double *)work + all : work;
    outputs[0] = sum_of_squares(h, after);
    for (size_t i = 0; i < all; ++i)
        after[i] *= 2.0;
    for (int s = 0; s < h->s; ++s) {
        step_back(h->n, after, before);
        double *of_step = after;
        after = before;
        before = of_step;
    }
    memcpy(g, after, all * sizeof *g);
}

const struct problem_kind heat_kind = {make, NULL, drop, value, gradient};
