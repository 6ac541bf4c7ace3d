/* bodies.c: inputs, objective and gradient of bodies.h.
 *
 * Invariant: the gradient keeps the positions before each step, and makes everything else of them
 * again.
 */
#include "bodies.h"

#include "problem_input.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool make(struct problem *problem, const int *sizes)
{
    struct bodies *b = calloc(1, sizeof *b);
    problem->input = b;
    if (!b)
        return false;
    *b = (struct bodies){.n = sizes[0], .s = sizes[1]};
    const size_t n = (size_t)b->n;
    problem->n_variables = problem->n_gradient = 7 * n;
    problem->n_outputs = 1;
    problem->work_bytes = 3 * n * ((size_t)b->s + 4) * sizeof(double);
    problem->x = malloc(7 * n * sizeof *problem->x);
    if (!problem->x)
        return false;
    struct numbers numbers = {7};
    for (size_t i = 0; i < 6 * n; ++i)
        problem->x[i] = number_in(&numbers, -1.0, 1.0);
    for (size_t i = 6 * n; i < 7 * n; ++i)
        problem->x[i] = number_in(&numbers, 0.5, 1.5);
    return true;
}

static void drop(void *input)
{
    free(input);
}

/* a [n,3]: of bodies at x [n,3] with masses [n]. */
static void accelerations(int n, const double *x, const double *mass, double *a)
{
    memset(a, 0, 3 * (size_t)n * sizeof *a);
    for (int i = 0; i < n; ++i)
        for (int j = i + 1; j < n; ++j) {
            double d[3];
            for (int k = 0; k < 3; ++k)
                d[k] = x[3 * j + k] - x[3 * i + k];
            const double square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + bodies_softening;
            const double w = 1.0 / (square * sqrt(square));
            for (int k = 0; k < 3; ++k) {
                a[3 * i + k] += mass[j] * w * d[k];
                a[3 * j + k] -= mass[i] * w * d[k];
            }
        }
}

/* Runs all steps on x and v, by room for a; kept: positions before each step, or NULL. */
static void run(const struct bodies *b, const double *mass, double *x, double *v, double *a,
                double *kept)
{
    const int n = 3 * b->n;
    for (int s = 0; s < b->s; ++s) {
        if (kept)
            memcpy(kept + (size_t)s * (size_t)n, x, (size_t)n * sizeof *x);
        accelerations(b->n, x, mass, a);
        for (int i = 0; i < n; ++i) {
            v[i] += bodies_step * a[i];
            x[i] += bodies_step * v[i];
        }
    }
}

static double squares(int n, const double *x)
{
    double sum = 0.0;
    for (int i = 0; i < n; ++i)
        sum += x[i] * x[i];
    return sum;
}

static void value(const struct problem *problem, const double *x, void *work, double *outputs)
{
    const struct bodies *b = problem->input;
    const size_t n = 3 * (size_t)b->n;
    double *position = work, *velocity = position + n;
    memcpy(position, x, 2 * n * sizeof *x);
    run(b, x + 2 * n, position, velocity, velocity + n, NULL);
    outputs[0] = squares((int)n, position);
}

/* Adds to by_x and by_mass what by_a, the adjoint of the accelerations at x, gives. */
static void accelerations_back(int n, const double *x, const double *mass, const double *by_a,
                               double *by_x, double *by_mass)
{
    for (int i = 0; i < n; ++i)
        for (int j = i + 1; j < n; ++j) {
            const double *to_i = by_a + (size_t)3 * (size_t)i, *to_j = by_a + (size_t)3 * (size_t)j;
            double d[3], q[3], by_w = 0.0, along_i = 0.0, along_j = 0.0;
            for (int k = 0; k < 3; ++k)
                d[k] = x[3 * j + k] - x[3 * i + k];
            const double square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + bodies_softening;
            const double w = 1.0 / (square * sqrt(square));
            for (int k = 0; k < 3; ++k) {
                q[k] = mass[j] * to_i[k] - mass[i] * to_j[k];
                by_w += d[k] * q[k];
                along_i += d[k] * to_i[k];
                along_j += d[k] * to_j[k];
            }
            by_mass[j] += w * along_i;
            by_mass[i] -= w * along_j;
            const double by_square = -3.0 * by_w * w / square;
            for (int k = 0; k < 3; ++k) {
                const double by_d = w * q[k] + by_square * d[k];
                by_x[3 * j + k] += by_d;
                by_x[3 * i + k] -= by_d;
            }
        }
}

static void gradient(const struct problem *problem, const double *x, void *work, double *outputs,
                     double *g)
{
    const struct bodies *b = problem->input;
    const size_t n = 3 * (size_t)b->n;
    const double *mass = x + 2 * n;
    double *position = work, *velocity = position + n, *a = velocity + n, *kept = a + n;
    memcpy(position, x, 2 * n * sizeof *x);
    run(b, mass, position, velocity, a, kept);
    outputs[0] = squares((int)n, position);
    memset(g, 0, problem->n_gradient * sizeof *g);
    double *by_x = g, *by_v = g + n;
    for (size_t i = 0; i < n; ++i)
        by_x[i] = 2.0 * position[i];
    for (int s = b->s - 1; s >= 0; --s) {
        for (size_t i = 0; i < n; ++i) {
            by_v[i] += bodies_step * by_x[i];
            a[i] = bodies_step * by_v[i];
        }
        accelerations_back(b->n, kept + (size_t)s * n, mass, a, by_x, g + 2 * n);
    }
}

const struct problem_kind bodies_kind = {make, NULL, drop, value, gradient};
