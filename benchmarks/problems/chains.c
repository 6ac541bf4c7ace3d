/* chains.c: inputs, objectives and gradients of chains.h.
 *
 * Invariant: each gradient keeps the states that its reverse reads, and makes everything else of
 * them again.
 */
#include "chains.h"

#include "problem_input.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool allocate(struct problem *problem, const int *sizes, size_t n_variables, size_t kept)
{
    struct chain *c = calloc(1, sizeof *c);
    problem->input = c;
    if (!c)
        return false;
    *c = (struct chain){.n = sizes[0], .s = sizes[1]};
    problem->n_variables = problem->n_gradient = n_variables;
    problem->n_outputs = 1;
    problem->work_bytes = kept * sizeof(double);
    problem->x = malloc(n_variables * sizeof *problem->x);
    return problem->x != NULL;
}

static void drop(void *input)
{
    free(input);
}

/* ---- Lorenz ---- */

struct state {
    double x, y, z;
};

static inline struct state lorenz_slope(struct state u)
{
    return (struct state){lorenz_sigma * (u.y - u.x), u.x * (lorenz_rho - u.z) - u.y,
                          u.x * u.y - lorenz_beta * u.z};
}

/* u + h k */
static inline struct state ahead(struct state u, double h, struct state k)
{
    return (struct state){u.x + h * k.x, u.y + h * k.y, u.z + h * k.z};
}

/* The mean of the four slopes of a step, times its length. */
static inline struct state lorenz_next(struct state u)
{
    const double h = lorenz_step;
    struct state a = lorenz_slope(u), b = lorenz_slope(ahead(u, 0.5 * h, a));
    struct state c = lorenz_slope(ahead(u, 0.5 * h, b)), d = lorenz_slope(ahead(u, h, c));
    return (struct state){u.x + h / 6.0 * (a.x + 2.0 * b.x + 2.0 * c.x + d.x),
                          u.y + h / 6.0 * (a.y + 2.0 * b.y + 2.0 * c.y + d.y),
                          u.z + h / 6.0 * (a.z + 2.0 * b.z + 2.0 * c.z + d.z)};
}

/* The integrator as it is written for any system of up to LORENZ_ROOM equations: dy/dt = slope(y).
 */
enum { LORENZ_ROOM = 8 };

typedef void slope_function(const double *u, double *k);

static void lorenz_right(const double *u, double *k)
{
    k[0] = lorenz_sigma * (u[1] - u[0]);
    k[1] = u[0] * (lorenz_rho - u[2]) - u[1];
    k[2] = u[0] * u[1] - lorenz_beta * u[2];
}

/* to = u + h k */
static void step_along(int n, const double *restrict u, double h, const double *restrict k,
                       double *restrict to)
{
    for (int j = 0; j < n; ++j)
        to[j] = u[j] + h * k[j];
}

static void runge_kutta(int n, slope_function *slope, double *u, double h, int steps)
{
    double p[LORENZ_ROOM], a[LORENZ_ROOM], b[LORENZ_ROOM], c[LORENZ_ROOM], d[LORENZ_ROOM];
    for (int i = 0; i < steps; ++i) {
        slope(u, a);
        step_along(n, u, 0.5 * h, a, p);
        slope(p, b);
        step_along(n, u, 0.5 * h, b, p);
        slope(p, c);
        step_along(n, u, h, c, p);
        slope(p, d);
        for (int j = 0; j < n; ++j)
            u[j] = u[j] + h / 6.0 * (a[j] + 2.0 * b[j] + 2.0 * c[j] + d[j]);
    }
}

static bool lorenz_make(struct problem *problem, const int *sizes)
{
    if (!allocate(problem, sizes, 3, 3 * (size_t)sizes[0]))
        return false;
    struct chain *c = problem->input;
    c->n_equations = 3;
    c->slope = lorenz_right;
    problem->x[0] = 1.5;
    problem->x[1] = -0.5;
    problem->x[2] = 22.0;
    return true;
}

static void lorenz_value(const struct problem *problem, const double *x, void *work,
                         double *outputs)
{
    (void)work;
    const struct chain *c = problem->input;
    double u[LORENZ_ROOM] = {x[0], x[1], x[2]};
    runge_kutta(c->n_equations, c->slope, u, lorenz_step, c->n);
    outputs[0] = 0.5 * (u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
}

/* The transposed Jacobian of the slope at u times an adjoint. */
static inline struct state slope_back(struct state u, struct state a)
{
    return (struct state){(lorenz_rho - u.z) * a.y + u.y * a.z - lorenz_sigma * a.x,
                          lorenz_sigma * a.x - a.y + u.x * a.z, -u.x * a.y - lorenz_beta * a.z};
}

/* The adjoint before the step that began at u, from the one after it. */
static inline struct state lorenz_back(struct state u, struct state after)
{
    const double h = lorenz_step;
    const struct state none = {0.0, 0.0, 0.0};
    struct state ub = ahead(u, 0.5 * h, lorenz_slope(u));
    struct state uc = ahead(u, 0.5 * h, lorenz_slope(ub));
    struct state ud = ahead(u, h, lorenz_slope(uc));
    struct state d = slope_back(ud, ahead(none, h / 6.0, after));
    struct state c = slope_back(uc, ahead(ahead(none, h / 3.0, after), h, d));
    struct state b = slope_back(ub, ahead(ahead(none, h / 3.0, after), 0.5 * h, c));
    struct state a = slope_back(u, ahead(ahead(none, h / 6.0, after), 0.5 * h, b));
    return (struct state){after.x + a.x + b.x + c.x + d.x, after.y + a.y + b.y + c.y + d.y,
                          after.z + a.z + b.z + c.z + d.z};
}

static void lorenz_gradient(const struct problem *problem, const double *x, void *work,
                            double *outputs, double *gradient)
{
    const struct chain *c = problem->input;
    struct state *kept = work, u = {x[0], x[1], x[2]};
    for (int i = 0; i < c->n; ++i) {
        kept[i] = u;
        u = lorenz_next(u);
    }
    outputs[0] = 0.5 * (u.x * u.x + u.y * u.y + u.z * u.z);
    for (int i = c->n - 1; i >= 0; --i)
        u = lorenz_back(kept[i], u);
    gradient[0] = u.x;
    gradient[1] = u.y;
    gradient[2] = u.z;
}

/* ---- Burgers ---- */

static bool burgers_make(struct problem *problem, const int *sizes)
{
    const size_t n = (size_t)sizes[0], s = (size_t)sizes[1];
    if (!allocate(problem, sizes, n, (s + 2) * n))
        return false;
    for (size_t i = 0; i < n; ++i)
        problem->x[i] = 0.1 + 0.5 * sin(2.0 * M_PI * (double)i / (double)(n - 1));
    return true;
}

static void burgers_step(int n, const double *restrict u, double *restrict next)
{
    next[0] = u[0];
    next[n - 1] = u[n - 1];
    for (int i = 1; i < n - 1; ++i)
        next[i] = u[i] - burgers_drift * u[i] * (u[i + 1] - u[i - 1]) +
                  burgers_diffusion * (u[i + 1] - 2.0 * u[i] + u[i - 1]);
}

static double sum_of_squares(int n, const double *u)
{
    double sum = 0.0;
    for (int i = 0; i < n; ++i)
        sum += u[i] * u[i];
    return sum;
}

static void burgers_value(const struct problem *problem, const double *x, void *work,
                          double *outputs)
{
    const struct chain *c = problem->input;
    double *u = work, *next = u + c->n;
    memcpy(u, x, (size_t)c->n * sizeof *u);
    for (int s = 0; s < c->s; ++s) {
        burgers_step(c->n, u, next);
        double *last = u;
        u = next;
        next = last;
    }
    outputs[0] = sum_of_squares(c->n, u);
}

/* What point i of the step that began at u gives to itself, to its left and to its right. */
static inline double to_itself(const double *u, const double *after, int i)
{
    return after[i] * (1.0 - burgers_drift * (u[i + 1] - u[i - 1]) - 2.0 * burgers_diffusion);
}

static inline double to_left(const double *u, const double *after, int i)
{
    return after[i] * (burgers_diffusion + burgers_drift * u[i]);
}

static inline double to_right(const double *u, const double *after, int i)
{
    return after[i] * (burgers_diffusion - burgers_drift * u[i]);
}

/* The adjoint before the step that began at u, of at least four points. */
static void burgers_back(int n, const double *restrict u, const double *restrict after,
                         double *restrict before)
{
    before[0] = after[0] + to_left(u, after, 1);
    before[1] = to_itself(u, after, 1) + to_left(u, after, 2);
    for (int i = 2; i < n - 2; ++i)
        before[i] = to_itself(u, after, i) + to_right(u, after, i - 1) + to_left(u, after, i + 1);
    before[n - 2] = to_itself(u, after, n - 2) + to_right(u, after, n - 3);
    before[n - 1] = after[n - 1] + to_right(u, after, n - 2);
}

static void burgers_gradient(const struct problem *problem, const double *x, void *work,
                             double *outputs, double *gradient)
{
    const struct chain *c = problem->input;
    const size_t n = (size_t)c->n;
    double *kept = work, *u = kept, *before = kept + ((size_t)c->s + 1) * n;
    memcpy(u, x, n * sizeof *u);
    for (int s = 0; s < c->s; ++s, u += n)
        burgers_step(c->n, u, u + n);
    outputs[0] = sum_of_squares(c->n, u);
    double *after = gradient;
    for (size_t i = 0; i < n; ++i)
        after[i] = 2.0 * u[i];
    for (int s = c->s - 1; s >= 0; --s) {
        burgers_back(c->n, kept + (size_t)s * n, after, before);
        double *last = after;
        after = before;
        before = last;
    }
    if (after != gradient)
        memcpy(gradient, after, n * sizeof *gradient);
}

/* ---- the chain of products and sums ---- */

static bool mulchain_make(struct problem *problem, const int *sizes)
{
    if (!allocate(problem, sizes, 3, (size_t)sizes[0]))
        return false;
    problem->x[0] = 1.5;
    problem->x[1] = 1.0 - 1e-7;
    problem->x[2] = 3e-8;
    return true;
}

static void mulchain_value(const struct problem *problem, const double *x, void *work,
                           double *outputs)
{
    (void)work;
    const struct chain *c = problem->input;
    double s = x[0];
    const double a = x[1], b = x[2];
    for (int i = 0; i < c->n; ++i)
        s = s * a + b;
    outputs[0] = s;
}

static void mulchain_gradient(const struct problem *problem, const double *x, void *work,
                              double *outputs, double *gradient)
{
    const struct chain *c = problem->input;
    double *kept = work, s = x[0];
    const double a = x[1], b = x[2];
    for (int i = 0; i < c->n; ++i) {
        kept[i] = s;
        s = s * a + b;
    }
    outputs[0] = s;
    double adjoint = 1.0, by_a = 0.0, by_b = 0.0;
    for (int i = c->n - 1; i >= 0; --i) {
        by_a += adjoint * kept[i];
        by_b += adjoint;
        adjoint *= a;
    }
    gradient[0] = adjoint;
    gradient[1] = by_a;
    gradient[2] = by_b;
}

const struct problem_kind lorenz_kind = {lorenz_make, NULL, drop, lorenz_value, lorenz_gradient};
const struct problem_kind burgers_kind = {burgers_make, NULL, drop, burgers_value,
                                          burgers_gradient};
const struct problem_kind mulchain_kind = {mulchain_make, NULL, drop, mulchain_value,
                                           mulchain_gradient};
