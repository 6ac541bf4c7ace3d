/* gp.c: a Gaussian process is fitted to noisy measurements of a curve: amplitude, length and noise
 * by the gradient of the marginal likelihood (C. E. Rasmussen, C. K. I. Williams, Gaussian
 * Processes for Machine Learning, 2006, eq. 2.30 and 5.8).
 *
 *     gp
 *
 * The covariance is K = amplitude^2 exp(-(x - x')^2 / (2 length^2)) + noise^2 where x = x'. The
 * program ends with an error unless plain C without Tapescope has the same likelihood and finds no
 * better one near it, and the curve is predicted where it was not measured.
 */
#include "optimisers.h"
#include "training.h"

#include <tapescope/ad.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 80, PARAMETERS = 3 }; /* logarithms of amplitude, length, noise */

static const double NOISE = 0.1, PI = 3.14159265358979323846;

struct problem {
    ad_tape tape;
    double x[POINTS], y[POINTS], distance[POINTS][POINTS] /* squared */, one[POINTS][POINTS];
};

static double curve(double x)
{
    return sin(3 * x) + 0.5 * cos(7 * x);
}

static void measure(struct problem *p)
{
    uint64_t seed = 3;
    for (int i = 0; i < POINTS; i++) {
        double noise = -6; /* of nearly normal distribution: the sum of 12 of uniform one */
        for (int k = 0; k < 12; k++)
            noise += (double)(random_bits(&seed) >> 11) * 0x1p-53;
        p->x[i] = -2 + 4 * (double)(random_bits(&seed) >> 11) * 0x1p-53;
        p->y[i] = curve(p->x[i]) + NOISE * noise;
    }
    for (int i = 0; i < POINTS; i++)
        for (int j = 0; j < POINTS; j++) {
            p->distance[i][j] = (p->x[i] - p->x[j]) * (p->x[i] - p->x[j]);
            p->one[i][j] = i == j;
        }
}

/* ---- by Tapescope ---- */

/* exp(factor x) */
static ad_tensor exp_of(ad_tensor x, double factor)
{
    return ad_exp(ad_scale(x, factor));
}

/* -log p(y | x, parameters), the constant included. */
static ad_tensor likelihood_of(const struct problem *p, const ad_tensor *parameter)
{
    const int64_t shape[] = {POINTS, POINTS};
    ad_tensor distance = ad_constant(p->tape, AD_F64, 2, shape, p->distance);
    ad_tensor one = ad_constant(p->tape, AD_F64, 2, shape, p->one);
    ad_tensor y = ad_constant(p->tape, AD_F64, 1, shape, p->y);
    ad_tensor near = ad_exp(ad_scale(ad_mul(distance, exp_of(parameter[1], -2)), -0.5));
    ad_tensor k =
        ad_add(ad_mul(near, exp_of(parameter[0], 2)), ad_mul(one, exp_of(parameter[2], 2)));
    ad_tensor l = ad_cholesky(k);
    ad_tensor z = ad_solve_triangular(l, y, 0);
    ad_tensor determinant = ad_sum(ad_log(ad_diagonal(l, 0)));
    return ad_offset(ad_add(ad_scale(ad_dot(z, z), 0.5), determinant), POINTS / 2.0 * log(2 * PI));
}

static bool likelihood(int n, const double *at, double *value, double *gradient, void *payload)
{
    const struct problem *p = payload;
    ad_tensor parameter[PARAMETERS];
    ad_tape_reset(p->tape);
    for (int k = 0; k < n; k++)
        parameter[k] = ad_leaf(p->tape, AD_F64, 0, NULL, &at[k]);
    ad_tensor result = likelihood_of(p, parameter);
    *value = ad_item(result);
    ad_status status = ad_backward(result);
    for (int k = 0; k < n && status == AD_OK; k++)
        status = ad_gradient(parameter[k], &gradient[k], 1);
    return status == AD_OK;
}

/* ---- by plain C ---- */

/* Cholesky's factor of K in l, and K^-1 y in a; the same number as likelihood_of. */
static double by_hand(const struct problem *p, const double *at, double l[POINTS][POINTS],
                      double *a)
{
    double sum = POINTS / 2.0 * log(2 * PI);
    for (int i = 0; i < POINTS; i++) {
        for (int j = 0; j <= i; j++) {
            double s = exp(2 * at[0]) * exp(-0.5 * p->distance[i][j] * exp(-2 * at[1])) +
                       (i == j ? exp(2 * at[2]) : 0);
            for (int k = 0; k < j; k++)
                s -= l[i][k] * l[j][k];
            l[i][j] = i == j ? sqrt(s) : s / l[j][j];
        }
        a[i] = p->y[i];
        for (int k = 0; k < i; k++)
            a[i] -= l[i][k] * a[k];
        a[i] /= l[i][i];
        sum += log(l[i][i]) + a[i] * a[i] / 2;
    }
    for (int i = POINTS; i-- > 0;) {
        for (int k = i + 1; k < POINTS; k++)
            a[i] -= l[k][i] * a[k];
        a[i] /= l[i][i];
    }
    return sum;
}

/* The error of the predicted curve, root of the mean square, between the measured points. */
static double prediction_error(const struct problem *p, const double *at, const double *a)
{
    enum { PLACES = 200 };
    double squares = 0;
    for (int i = 0; i < PLACES; i++) {
        const double x = -1.9 + 3.8 * i / (PLACES - 1);
        double mean = 0;
        for (int j = 0; j < POINTS; j++)
            mean += a[j] * exp(2 * at[0] - 0.5 * (x - p->x[j]) * (x - p->x[j]) * exp(-2 * at[1]));
        squares += (mean - curve(x)) * (mean - curve(x)) / PLACES;
    }
    return sqrt(squares);
}

/* One line for what must hold; returns whether it does. */
static bool holds(const char *what, double value, double bound)
{
    bool does = value <= bound; /* false for NaN */
    printf("%-58s %9.2g <= %g%s\n", what, value, bound, does ? "" : "  FAILED");
    return does;
}

static bool run(struct problem *p)
{
    static double l[POINTS][POINTS], a[POINTS];
    double at[PARAMETERS] = {0, 0, log(0.5)}, near[PARAMETERS], slope[PARAMETERS];
    struct minimum m;
    measure(p);
    if (!minimise(LBFGS, PARAMETERS, likelihood, p, at, &m) ||
        !likelihood(PARAMETERS, at, &m.value, slope, p)) {
        fprintf(stderr, "gp: %s\n",
                ad_tape_status(p->tape) == AD_OK ? m.ending : ad_tape_message(p->tape));
        return false;
    }
    printf("amplitude %.4f, length %.4f, noise %.4f: -log likelihood %.8f\n", exp(at[0]),
           exp(at[1]), exp(at[2]), m.value);
    const double value = by_hand(p, at, l, a), error = prediction_error(p, at, a);
    double gradient = 0, better = 0;
    for (int k = 0; k < 2 * PARAMETERS; k++) {
        for (int i = 0; i < PARAMETERS; i++)
            near[i] = at[i] + (i == k / 2 ? k % 2 ? 0.01 : -0.01 : 0);
        better = fmax(better, value - by_hand(p, near, l, a));
        gradient = fmax(gradient, fabs(slope[k / 2]));
    }
    bool all = holds("largest derivative by a parameter", gradient, 1e-5);
    all &= holds("likelihood against plain C, relative", fabs(value / m.value - 1), 1e-10);
    all &= holds("better by plain C, a hundredth beside any parameter", better, 0);
    all &= holds("noise against the true one, relative", fabs(exp(at[2]) / NOISE - 1), 0.3);
    all &= holds("error of the predicted curve, in noise", error / NOISE, 0.6);
    if (!all)
        fprintf(stderr, "gp: the result is not what it must be\n");
    return all;
}

int main(void)
{
    static struct problem p;
    if (ad_tape_create(&p.tape, NULL) != AD_OK) {
        fprintf(stderr, "gp: %s\n", ad_tape_message((ad_tape){0}));
        return EXIT_FAILURE;
    }
    const bool right = run(&p);
    ad_tape_destroy(p.tape);
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
