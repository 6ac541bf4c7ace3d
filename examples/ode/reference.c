/* reference.c: predator-prey systems in plain C doubles, with their derivatives by the rates.
 *
 * The derivatives s = dz/dtheta of the state z are integrated along with it, s' = df/dz s +
 * df/dtheta, by the same method; what results is the derivative of the discrete solution, up to
 * rounding.
 */
#include "reference.h"

#include <math.h>
#include <stdint.h>

/* u, v, and their derivatives by alpha, beta, gamma, delta. */
enum { U, V, DU, DV = DU + RATES, WIDTH = DV + RATES };

const double reference_start[2][SYSTEMS] = {{0.0, 0.7, -0.5, 0.2}, {0.0, -0.4, 0.3, 0.9}};

static void slope(const double *theta, const double *z, double *dz)
{
    double prey = exp(z[U]), predators = exp(z[V]);
    double of_u[RATES] = {1.0, -predators, 0.0, 0.0}, of_v[RATES] = {0.0, 0.0, -1.0, prey};
    dz[U] = theta[0] - theta[1] * predators;
    dz[V] = theta[3] * prey - theta[2];
    for (int i = 0; i < RATES; ++i) {
        dz[DU + i] = of_u[i] - theta[1] * predators * z[DV + i];
        dz[DV + i] = of_v[i] + theta[3] * prey * z[DU + i];
    }
}

static void step(const double *theta, double *z, double h)
{
    static const double place[] = {0.0, 0.5, 0.5, 1.0}, weight[] = {1.0, 2.0, 2.0, 1.0};
    double sum[WIDTH] = {0}, k[WIDTH] = {0}, at[WIDTH];
    for (int stage = 0; stage < 4; ++stage) {
        for (int i = 0; i < WIDTH; ++i)
            at[i] = z[i] + h * place[stage] * k[i];
        slope(theta, at, k);
        for (int i = 0; i < WIDTH; ++i)
            sum[i] += weight[stage] * k[i];
    }
    for (int i = 0; i < WIDTH; ++i)
        z[i] += h / 6.0 * sum[i];
}

/* Calls visit with the state at each time of each system. */
static void integrate(const double *theta, int steps,
                      void (*visit)(void *payload, int time, int system, const double *z),
                      void *payload)
{
    for (int system = 0; system < SYSTEMS; ++system) {
        double z[WIDTH] = {reference_start[0][system], reference_start[1][system]};
        for (int time = 0; time < TIMES; ++time) {
            for (int i = 0; i < steps; ++i)
                step(theta, z, INTERVAL / steps);
            visit(payload, time, system, z);
        }
    }
}

/* ---- the counts ---- */

/* splitmix64 (Steele, Lea and Flood 2014, doi 10.1145/2660193.2660195), in (0, 1). */
static double uniform(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return ((double)((z ^ z >> 31) >> 12) + 0.5) * 0x1p-52;
}

struct counting {
    double *counts, noise;
    uint64_t seed;
};

static void count(void *payload, int time, int system, const double *z)
{
    struct counting *c = payload;
    /* Two normal deviates of two uniform ones: Box and Muller 1958. */
    double radius = sqrt(-2.0 * log(uniform(&c->seed)));
    double angle = 2.0 * 3.14159265358979323846 * uniform(&c->seed);
    double *row = c->counts + 2 * time * SYSTEMS;
    row[system] = z[U] + c->noise * radius * cos(angle);
    row[SYSTEMS + system] = z[V] + c->noise * radius * sin(angle);
}

void reference_counts(const double *theta, double noise, double *counts)
{
    struct counting counting = {counts, noise, 1};
    integrate(theta, 10 * STEPS, count, &counting);
}

/* ---- the gradient ---- */

struct comparing {
    const double *observed;
    double *gradient, scale;
};

static void compare(void *payload, int time, int system, const double *z)
{
    struct comparing *c = payload;
    const double *row = c->observed + 2 * time * SYSTEMS;
    double off_u = z[U] - row[system], off_v = z[V] - row[SYSTEMS + system];
    for (int i = 0; i < RATES; ++i)
        c->gradient[i] += c->scale * (off_u * z[DU + i] + off_v * z[DV + i]);
}

void reference_gradient(const double *theta, const double *observed, double noise, double *gradient)
{
    struct comparing comparing = {observed, gradient,
                                  1.0 / (2.0 * TIMES * SYSTEMS * noise * noise)};
    for (int i = 0; i < RATES; ++i)
        gradient[i] = 0.0;
    integrate(theta, STEPS, compare, &comparing);
}

/* ---- the standard errors ---- */

static void add_products(void *payload, int time, int system, const double *z)
{
    double(*a)[RATES] = payload;
    (void)time;
    (void)system;
    for (int i = 0; i < RATES; ++i)
        for (int j = 0; j < RATES; ++j)
            a[i][j] += z[DU + i] * z[DU + j] + z[DV + i] * z[DV + j];
}

bool reference_standard_errors(const double *theta, double noise, double *error)
{
    double a[RATES][RATES] = {{0}}, inverse[RATES][RATES] = {{0}};
    integrate(theta, STEPS, add_products, a);
    for (int i = 0; i < RATES; ++i) {
        inverse[i][i] = 1.0;
        error[i] = NAN;
    }
    /* Gauss and Jordan's elimination, which needs no exchange of rows for such a matrix. */
    for (int pivot = 0; pivot < RATES; ++pivot) {
        double diagonal = a[pivot][pivot];
        if (!(diagonal > 0.0))
            return false;
        for (int j = 0; j < RATES; ++j) {
            a[pivot][j] /= diagonal;
            inverse[pivot][j] /= diagonal;
        }
        for (int i = 0; i < RATES; ++i) {
            double factor = i == pivot ? 0.0 : a[i][pivot];
            for (int j = 0; j < RATES; ++j) {
                a[i][j] -= factor * a[pivot][j];
                inverse[i][j] -= factor * inverse[pivot][j];
            }
        }
    }
    for (int i = 0; i < RATES; ++i)
        error[i] = noise * sqrt(inverse[i][i]);
    return true;
}
