/* bundle.c: inputs, residuals and Jacobian of bundle.h.
 *
 * Invariant: the Jacobian computes the residuals as the objective does.
 */
#include "bundle.h"

#include "problem_input.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- inputs ---- */

static bool allocate(struct problem *problem, int n, int m, int p)
{
    struct bundle *b = calloc(1, sizeof *b);
    problem->input = b;
    if (!b)
        return false;
    const size_t cameras = (size_t)n, points = (size_t)m, seen = (size_t)p;
    *b = (struct bundle){.n = n, .m = m, .p = p};
    problem->n_variables = BUNDLE_CAMERA * cameras + BUNDLE_POINT * points + seen;
    problem->n_outputs = 3 * seen;
    problem->n_gradient = (2 * BUNDLE_ROW + 1) * seen;
    problem->x = malloc(problem->n_variables * sizeof *problem->x);
    b->observation = malloc(2 * seen * sizeof *b->observation);
    b->feature = malloc(2 * seen * sizeof *b->feature);
    return problem->x && b->observation && b->feature;
}

/* Copies of a camera, a point and a weight, each number changed by up to half a percent, since an
 * error in what is the same everywhere would not be seen. */
static void fill(struct problem *problem, const double *camera, const double *point, double weight,
                 const double *feature)
{
    const struct bundle *b = problem->input;
    struct numbers numbers = {(uint64_t)b->p};
    double *x = problem->x;
    for (int i = 0; i < b->n * BUNDLE_CAMERA; ++i)
        *x++ = camera[i % BUNDLE_CAMERA] * number_in(&numbers, 0.995, 1.005);
    for (int i = 0; i < b->m * BUNDLE_POINT; ++i)
        *x++ = point[i % BUNDLE_POINT] * number_in(&numbers, 0.995, 1.005);
    for (int i = 0; i < b->p; ++i) {
        *x++ = weight * number_in(&numbers, 0.995, 1.005);
        b->observation[2 * i] = i % b->n;
        b->observation[2 * i + 1] = i % b->m;
        memcpy(b->feature + (size_t)i * 2, feature, 2 * sizeof *feature);
    }
}

static bool make(struct problem *problem, const int *sizes)
{
    static const double camera[BUNDLE_CAMERA] = {0.4,   -0.7, 0.3,  2.0,   -1.5,  -9.0,
                                                 520.0, 12.0, -7.0, 0.031, 0.0042};
    static const double point[BUNDLE_POINT] = {0.8, -0.6, 1.1}, feature[2] = {35.0, -60.0};
    if (!allocate(problem, sizes[0], sizes[1], sizes[2]))
        return false;
    fill(problem, camera, point, 0.83, feature);
    return true;
}

static bool read_file(struct problem *problem, const char *folder)
{
    const char *name = problem->spec->file;
    FILE *file = input_open(folder, name);
    if (!file)
        return false;
    int size[3];
    double camera[BUNDLE_CAMERA], point[BUNDLE_POINT], weight, feature[2];
    bool done = input_ints(file, 3, size) && size[0] > 0 && size[0] <= 1000000 && size[1] > 0 &&
                size[1] <= 10000000 && size[2] > 0 && size[2] <= 10000000 &&
                input_doubles(file, BUNDLE_CAMERA, camera) &&
                input_doubles(file, BUNDLE_POINT, point) && input_doubles(file, 1, &weight) &&
                input_doubles(file, 2, feature) && allocate(problem, size[0], size[1], size[2]);
    if (done)
        fill(problem, camera, point, weight, feature);
    fclose(file);
    return done || input_refuse(folder, name);
}

static void drop(void *input)
{
    struct bundle *b = input;
    free(b->observation);
    free(b->feature);
    free(b);
}

/* ---- the residuals ---- */

static double dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void cross(const double *a, const double *b, double *c)
{
    c[0] = a[1] * b[2] - a[2] * b[1];
    c[1] = a[2] * b[0] - a[0] * b[2];
    c[2] = a[0] * b[1] - a[1] * b[0];
}

/* R(r) v = v cos t + (w x v) sin t + w (w . v) (1 - cos t), t = |r|, w = r / t; v + r x v at t = 0.
 */
static void rotate(const double *r, const double *v, double *rotated)
{
    double square = dot(r, r), c[3];
    if (square == 0.0) {
        cross(r, v, c);
        for (int j = 0; j < 3; ++j)
            rotated[j] = v[j] + c[j];
        return;
    }
    double t = sqrt(square), cosine = cos(t), sine = sin(t), inverse = 1.0 / t, w[3];
    for (int j = 0; j < 3; ++j)
        w[j] = r[j] * inverse;
    cross(w, v, c);
    double along = dot(w, v) * (1.0 - cosine);
    for (int j = 0; j < 3; ++j)
        rotated[j] = v[j] * cosine + c[j] * sine + w[j] * along;
}

static void residual(const double *camera, const double *point, double weight,
                     const double *feature, double *result)
{
    double v[3], q[3];
    for (int j = 0; j < 3; ++j)
        v[j] = point[j] - camera[3 + j];
    rotate(camera, v, q);
    double a = q[0] / q[2], b = q[1] / q[2], square = a * a + b * b;
    double radial = 1.0 + camera[9] * square + camera[10] * square * square;
    result[0] = weight * (a * radial * camera[6] + camera[7] - feature[0]);
    result[1] = weight * (b * radial * camera[6] + camera[8] - feature[1]);
}

static void value(const struct problem *problem, const double *x, void *work, double *outputs)
{
    (void)work;
    const struct bundle *b = problem->input;
    const double *points = x + (size_t)b->n * BUNDLE_CAMERA;
    const double *weights = points + (size_t)b->m * BUNDLE_POINT;
    for (int i = 0; i < b->p; ++i)
        residual(x + (size_t)b->observation[2 * i] * BUNDLE_CAMERA,
                 points + (size_t)b->observation[2 * i + 1] * BUNDLE_POINT, weights[i],
                 b->feature + (size_t)i * 2, outputs + (size_t)i * 2);
    for (int i = 0; i < b->p; ++i)
        outputs[(size_t)b->p * 2 + (size_t)i] = 1.0 - weights[i] * weights[i];
}

/* ---- the Jacobian ---- */

/* A rotation with what its derivatives need. */
struct rotation {
    double inverse, sine, cosine, w[3], c[3], along;
};

static void rotate_keeping(const double *r, const double *v, struct rotation *k, double *rotated)
{
    double square = dot(r, r);
    *k = (struct rotation){.cosine = 1.0};
    if (square > 0.0) {
        double t = sqrt(square);
        k->inverse = 1.0 / t;
        k->sine = sin(t);
        k->cosine = cos(t);
    }
    for (int j = 0; j < 3; ++j)
        k->w[j] = r[j] * k->inverse;
    cross(k->w, v, k->c);
    k->along = dot(k->w, v);
    for (int j = 0; j < 3; ++j)
        rotated[j] = v[j] * k->cosine + k->c[j] * k->sine + k->w[j] * k->along * (1.0 - k->cosine);
}

/* For an adjoint a of R(r) v: d_v = R(-r) a, and d_r. With u, the derivative by w that is not
 * restricted to |w| = 1, d_r = w (a . dR/dt v) + (u - w (w . u)) / t. */
static void rotate_back(const struct rotation *k, const double *v, const double *a, double *d_r,
                        double *d_v)
{
    double c[3];
    if (k->inverse == 0.0) { /* v + r x v */
        cross(v, a, d_r);
        memcpy(d_v, a, 3 * sizeof *d_v);
        return;
    }
    const double rest = 1.0 - k->cosine, a_w = dot(a, k->w);
    double u[3], by_t = 0.0;
    cross(v, a, u);
    cross(k->w, a, c);
    for (int j = 0; j < 3; ++j) {
        d_v[j] = a[j] * k->cosine - c[j] * k->sine + k->w[j] * a_w * rest;
        by_t += a[j] * (k->sine * (k->w[j] * k->along - v[j]) + k->cosine * k->c[j]);
        u[j] = k->sine * u[j] + rest * (a_w * v[j] + k->along * a[j]);
    }
    const double part = dot(k->w, u);
    for (int j = 0; j < 3; ++j)
        d_r[j] = k->w[j] * by_t + (u[j] - k->w[j] * part) * k->inverse;
}

/* Residuals and rows: by rotation, centre, focal length, principal point, k1, k2, point, weight. */
static void jacobian(const double *camera, const double *point, double weight,
                     const double *feature, double *result, double *row)
{
    struct rotation k;
    double v[3], q[3];
    for (int j = 0; j < 3; ++j)
        v[j] = point[j] - camera[3 + j];
    rotate_keeping(camera, v, &k, q);
    const double over = 1.0 / q[2], p[2] = {q[0] * over, q[1] * over};
    const double square = p[0] * p[0] + p[1] * p[1], focal = camera[6];
    const double radial = 1.0 + camera[9] * square + camera[10] * square * square;
    const double slope = 2.0 * (camera[9] + 2.0 * camera[10] * square);
    for (int e = 0; e < 2; ++e, row += BUNDLE_ROW) {
        const double error = p[e] * radial * focal + camera[7 + e] - feature[e];
        const double scale = weight * focal;
        double by_p[2], by_q[3], by_v[3];
        for (int j = 0; j < 2; ++j)
            by_p[j] = scale * (p[e] * slope * p[j] + (j == e ? radial : 0.0));
        by_q[0] = by_p[0] * over;
        by_q[1] = by_p[1] * over;
        by_q[2] = -(by_p[0] * p[0] + by_p[1] * p[1]) * over;
        rotate_back(&k, v, by_q, row, by_v);
        for (int j = 0; j < 3; ++j) {
            row[3 + j] = -by_v[j];
            row[BUNDLE_CAMERA + j] = by_v[j];
        }
        row[6] = weight * p[e] * radial;
        row[7] = e == 0 ? weight : 0.0;
        row[8] = e == 0 ? 0.0 : weight;
        row[9] = scale * p[e] * square;
        row[10] = row[9] * square;
        row[BUNDLE_ROW - 1] = error;
        result[e] = weight * error;
    }
}

static void gradient(const struct problem *problem, const double *x, void *work, double *outputs,
                     double *gradient)
{
    (void)work;
    const struct bundle *b = problem->input;
    const double *points = x + (size_t)b->n * BUNDLE_CAMERA;
    const double *weights = points + (size_t)b->m * BUNDLE_POINT;
    for (int i = 0; i < b->p; ++i)
        jacobian(x + (size_t)b->observation[2 * i] * BUNDLE_CAMERA,
                 points + (size_t)b->observation[2 * i + 1] * BUNDLE_POINT, weights[i],
                 b->feature + (size_t)i * 2, outputs + (size_t)i * 2,
                 gradient + (size_t)i * 2 * BUNDLE_ROW);
    for (int i = 0; i < b->p; ++i) {
        outputs[(size_t)b->p * 2 + (size_t)i] = 1.0 - weights[i] * weights[i];
        gradient[(size_t)b->p * 2 * BUNDLE_ROW + (size_t)i] = -2.0 * weights[i];
    }
}

const struct problem_kind bundle_kind = {make, read_file, drop, value, gradient};
