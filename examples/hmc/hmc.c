/* hmc.c: samples of a posterior by Hamiltonian Monte Carlo (R. M. Neal, Handbook of Markov Chain
 * Monte Carlo, 2011, ch. 5), with the gradient of its logarithm.
 *
 *     hmc
 *
 * A parabola is fitted to noisy measurements, with normal noise and a normal prior. So the
 * posterior is normal, and its moments are known: the program ends with an error unless the samples
 * have them.
 */
#include "training.h"

#include <tapescope/ad_real.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WEIGHTS = 3,
    MEASURED = 40,
    BATCHES = 20,
    OF_BATCH = 200,
    SAMPLES = BATCHES * OF_BATCH,
    WARM_UP = 200
};

static const double NOISE = 0.5, PRIOR = 10; /* standard deviations */
static const double TRUE[WEIGHTS] = {1, -2, 0.5}, STEP = 0.06;

struct data {
    double feature[MEASURED][WEIGHTS], y[MEASURED];
};

/* Uniform in (0, 1]. */
static double uniform(uint64_t *state)
{
    return ((double)(random_bits(state) >> 11) + 1) * 0x1p-53;
}

/* By G. E. P. Box and M. E. Muller, doi 10.1214/aoms/1177706645. */
static double normal(uint64_t *state)
{
    const double radius = sqrt(-2 * log(uniform(state)));
    return radius * cos(2 * 3.14159265358979323846 * uniform(state));
}

static void measure(struct data *d, uint64_t *state)
{
    for (int i = 0; i < MEASURED; i++) {
        const double x = -1 + 2.0 * i / (MEASURED - 1);
        d->y[i] = NOISE * normal(state);
        for (int k = 0; k < WEIGHTS; k++) {
            d->feature[i][k] = k == 0 ? 1 : d->feature[i][k - 1] * x;
            d->y[i] += TRUE[k] * d->feature[i][k];
        }
    }
}

static ad_real residual_of(const double *feature, double y, const ad_real *w)
{
    ad_real residual = ad_real_of(y);
    for (int k = 0; k < WEIGHTS; k++)
        ad_set(&residual, ad_real_sub(residual, ad_real_mul(feature[k], w[k])));
    return residual;
}

/* Adds -x^2 / (2 deviation^2), a normal distribution's logarithm. */
static void take_square(ad_real *sum, ad_real x, double deviation)
{
    ad_real part;
    ad_set(&part, ad_real_square(ad_real_div(x, deviation)));
    ad_set(sum, ad_real_sub(*sum, ad_real_mul(0.5, part)));
}

/* The logarithm of the posterior, without its constant, and its gradient. */
static double log_posterior(ad_tape tape, const struct data *d, const double *at, double *gradient)
{
    ad_real w[WEIGHTS], sum = ad_real_of(0);
    ad_tape_reset(tape);
    ad_real_leaves(tape, WEIGHTS, at, w);
    for (int k = 0; k < WEIGHTS; k++)
        take_square(&sum, w[k], PRIOR);
    for (int i = 0; i < MEASURED; i++)
        take_square(&sum, residual_of(d->feature[i], d->y[i], w), NOISE);
    const bool swept = ad_real_backward(tape, sum) == AD_OK &&
                       ad_real_gradients(tape, WEIGHTS, w, gradient) == AD_OK;
    return swept ? sum.value : NAN; /* the tape keeps its error: run() asks for it */
}

static double kinetic(const double *momentum)
{
    double sum = 0;
    for (int k = 0; k < WEIGHTS; k++)
        sum += momentum[k] * momentum[k] / 2;
    return sum;
}

/* One sample after w, by leapfrog steps; whether it was accepted. *log_p, slope: at w. */
static bool sample(ad_tape tape, const struct data *d, uint64_t *state, double *w, double *log_p,
                   double *slope)
{
    double at[WEIGHTS], momentum[WEIGHTS], gradient[WEIGHTS], value = *log_p;
    for (int k = 0; k < WEIGHTS; k++)
        momentum[k] = normal(state);
    memcpy(at, w, sizeof at);
    memcpy(gradient, slope, sizeof gradient);
    const double energy = kinetic(momentum) - value;
    const int steps = 3 + (int)(random_bits(state) % 5);
    for (int s = 0; s < steps; s++) {
        for (int k = 0; k < WEIGHTS; k++) {
            momentum[k] += STEP / 2 * gradient[k];
            at[k] += STEP * momentum[k];
        }
        value = log_posterior(tape, d, at, gradient);
        for (int k = 0; k < WEIGHTS; k++)
            momentum[k] += STEP / 2 * gradient[k];
    }
    if (!(log(uniform(state)) < energy - (kinetic(momentum) - value)))
        return false;
    memcpy(w, at, sizeof at);
    memcpy(slope, gradient, sizeof gradient);
    *log_p = value;
    return true;
}

/* The posterior's moments: its precision is A = X^T X / noise^2 + 1 / prior^2, its mean A^-1 X^T y
 * / noise^2. By elimination; A is positive definite. */
static void known_moments(const struct data *d, double *mean, double *deviation)
{
    double a[WEIGHTS][2 * WEIGHTS + 1] = {{0}}; /* A, the unit matrix, X^T y / noise^2 */
    for (int j = 0; j < WEIGHTS; j++) {
        a[j][j] = 1 / (PRIOR * PRIOR);
        a[j][WEIGHTS + j] = 1;
        for (int i = 0; i < MEASURED; i++) {
            const double f = d->feature[i][j] / (NOISE * NOISE);
            for (int k = 0; k < WEIGHTS; k++)
                a[j][k] += f * d->feature[i][k];
            a[j][2 * WEIGHTS] += f * d->y[i];
        }
    }
    for (int j = 0; j < WEIGHTS; j++) {
        const double pivot = a[j][j];
        for (int k = 0; k <= 2 * WEIGHTS; k++)
            a[j][k] /= pivot;
        for (int i = 0; i < WEIGHTS; i++) {
            const double f = a[i][j];
            for (int k = 0; k <= 2 * WEIGHTS && i != j; k++)
                a[i][k] -= f * a[j][k];
        }
    }
    for (int j = 0; j < WEIGHTS; j++) {
        mean[j] = a[j][2 * WEIGHTS];
        deviation[j] = sqrt(a[j][WEIGHTS + j]);
    }
}

/* The moments of one weight's samples against the known ones; the error of the mean is that of
 * BATCHES means of samples that follow each other. */
static bool agrees(int weight, const double *x, double mean, double deviation)
{
    double sum = 0, squares = 0, batches = 0;
    for (int b = 0; b < BATCHES; b++) {
        double of_batch = 0;
        for (int i = 0; i < OF_BATCH; i++)
            of_batch += (x[b * OF_BATCH + i] - mean) / OF_BATCH;
        sum += of_batch / BATCHES;
        batches += of_batch * of_batch / BATCHES;
    }
    for (int i = 0; i < SAMPLES; i++)
        squares += (x[i] - mean - sum) * (x[i] - mean - sum) / (SAMPLES - 1);
    const double error = sqrt((batches - sum * sum) / (BATCHES - 1));
    const bool right = fabs(sum) <= 4 * error && error < deviation / 10 &&
                       fabs(sqrt(squares) / deviation - 1) < 0.05;
    printf("%6d %+10.4f %+10.4f %8.4f %10.4f %10.4f%s\n", weight, mean, mean + sum, error,
           deviation, sqrt(squares), right ? "" : "  FAILED");
    return right;
}

static bool run(ad_tape tape)
{
    static double x[WEIGHTS][SAMPLES];
    double w[WEIGHTS] = {0}, slope[WEIGHTS], mean[WEIGHTS], deviation[WEIGHTS];
    struct data d;
    uint64_t state = 1;
    int accepted = 0;
    measure(&d, &state);
    double log_p = log_posterior(tape, &d, w, slope);
    for (int i = -WARM_UP; i < SAMPLES; i++) {
        const bool taken = sample(tape, &d, &state, w, &log_p, slope);
        accepted += taken && i >= 0;
        for (int k = 0; k < WEIGHTS && i >= 0; k++)
            x[k][i] = w[k];
    }
    if (ad_tape_status(tape) != AD_OK) {
        fprintf(stderr, "hmc: %s\n", ad_tape_message(tape));
        return false;
    }
    known_moments(&d, mean, deviation);
    printf("%d samples, %.0f%% accepted\n", SAMPLES, 100.0 * accepted / SAMPLES);
    printf("weight       mean    samples    error  deviation    samples\n");
    bool right = accepted > SAMPLES * 6 / 10;
    for (int k = 0; k < WEIGHTS; k++)
        right = agrees(k, x[k], mean[k], deviation[k]) && right;
    if (!right)
        fprintf(stderr, "hmc: the samples are not those of the posterior\n");
    return right;
}

int main(void)
{
    ad_tape tape;
    if (ad_tape_create(&tape, NULL) != AD_OK) {
        fprintf(stderr, "hmc: %s\n", ad_tape_message((ad_tape){0}));
        return EXIT_FAILURE;
    }
    const bool right = run(tape);
    ad_tape_destroy(tape);
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
