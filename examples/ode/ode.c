/* ode.c: finds the four rates of a predator-prey system from noisy counts, by gradient descent
 * (Adam's step) through an integrator that is recorded on the tape.
 *
 * Lotka and Volterra: x' = alpha x - beta x y, y' = delta x y - gamma y. Integrated are u = ln x
 * and v = ln y, so that counts stay positive and noise of a few percent is additive. The program
 * ends with an error unless the gradient is right (reference.h), the memory stays flat, and the
 * rates are found as well as the noise permits.
 */
#include "reference.h"

#include <tapescope/ad.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ITERATIONS = 500 };

static const char *const name[RATES] = {"alpha", "beta", "gamma", "delta"};
static const double truth[RATES] = {1.5, 1.0, 1.0, 0.75};
static const double guess[RATES] = {1.0, 0.7, 0.7, 0.5};
static const double noise = 0.03;

/* ---- the model, recorded ---- */

struct rates {
    ad_tensor alpha, beta, gamma, delta; /* [] */
};

/* Logarithms of prey and predators, an element for each of the systems. */
struct state {
    ad_tensor u, v; /* [SYSTEMS] */
};

static struct state slope(const struct rates *rates, struct state s)
{
    return (struct state){
        .u = ad_sub(rates->alpha, ad_mul(rates->beta, ad_exp(s.v))),
        .v = ad_sub(ad_mul(rates->delta, ad_exp(s.u)), rates->gamma),
    };
}

/* s + h k */
static struct state ahead(struct state s, double h, struct state k)
{
    return (struct state){
        .u = ad_add(s.u, ad_scale(k.u, h)),
        .v = ad_add(s.v, ad_scale(k.v, h)),
    };
}

/* One step of the classical method of Runge and Kutta. */
static struct state step(const struct rates *rates, struct state s, double h)
{
    struct state k1 = slope(rates, s);
    struct state k2 = slope(rates, ahead(s, h / 2, k1));
    struct state k3 = slope(rates, ahead(s, h / 2, k2));
    struct state k4 = slope(rates, ahead(s, h, k3));
    s = ahead(ahead(s, h / 6, k1), h / 3, k2);
    return ahead(ahead(s, h / 3, k3), h / 6, k4);
}

/* Half the mean square of (computed - observed) / noise, both as logarithms. */
static ad_tensor misfit(ad_tensor theta, ad_tensor u0, ad_tensor v0, ad_tensor observed)
{
    struct rates rates = {
        .alpha = ad_select(theta, 0, 0),
        .beta = ad_select(theta, 0, 1),
        .gamma = ad_select(theta, 0, 2),
        .delta = ad_select(theta, 0, 3),
    };
    struct state s = {u0, v0};
    ad_tensor computed[2 * TIMES];
    for (int t = 0; t < TIMES; ++t) {
        for (int i = 0; i < STEPS; ++i)
            s = step(&rates, s, INTERVAL / STEPS);
        computed[2 * t] = s.u;
        computed[2 * t + 1] = s.v;
    }
    ad_tensor residuals = ad_sub(ad_stack(computed, 2 * TIMES, 0), observed);
    return ad_scale(ad_mean(ad_square(residuals)), 0.5 / (noise * noise));
}

/* ---- the fit ---- */

/* What Adam remembers of the gradients. */
struct moments {
    double mean[RATES], square[RATES];
};

/* Kingma and Ba 2015, algorithm 1 (arXiv 1412.6980), its rate falling to nothing in a half cosine.
 * The second moments make up for rates that the counts depend on in different measure. */
static void adam(double *theta, struct moments *moments, const double *gradient, int iteration)
{
    double *mean = moments->mean, *square = moments->square;
    const double beta1 = 0.9, beta2 = 0.99, pi = 3.14159265358979323846;
    double rate = 0.02 * (1.0 + cos(pi * iteration / ITERATIONS));
    for (int i = 0; i < RATES; ++i) {
        mean[i] = beta1 * mean[i] + (1.0 - beta1) * gradient[i];
        square[i] = beta2 * square[i] + (1.0 - beta2) * gradient[i] * gradient[i];
        double m = mean[i] / (1.0 - pow(beta1, iteration));
        double s = square[i] / (1.0 - pow(beta2, iteration));
        theta[i] -= rate * m / (sqrt(s) + 1e-8);
    }
}

/* The first gradient agrees with forward sensitivities to 1e-10 of the largest element. */
static bool gradient_agrees(const double *theta, const double *observed, const double *gradient)
{
    double expected[RATES], largest = 0.0, worst = 0.0;
    reference_gradient(theta, observed, noise, expected);
    for (int i = 0; i < RATES; ++i) {
        largest = fmax(largest, fabs(expected[i]));
        worst = fmax(worst, fabs(gradient[i] - expected[i]));
    }
    printf("first gradient against forward sensitivities: relative difference %.1e\n",
           worst / largest);
    return worst <= 1e-10 * largest; /* false for NaN too */
}

/* The tape after an iteration is as full as before the first, and its peak, if one is known, is
 * the same. */
static bool memory_is_flat(ad_tape tape, const ad_stats *before, uint64_t *peak_bytes)
{
    ad_stats now;
    if (ad_tape_stats(tape, &now) != AD_OK)
        return false;
    if (*peak_bytes == 0) {
        *peak_bytes = now.peak_bytes;
        printf("the tape peaks at %.1f KiB\n", (double)now.peak_bytes / 1024.0);
    }
    return now.live_bytes == before->live_bytes && now.values == before->values &&
           now.records == before->records && now.peak_bytes == *peak_bytes;
}

/* Changes theta until it fits; returns an error of the tape's, or AD_ERROR_STATE if what must hold
 * does not, after one line that says so. */
static ad_status fit(ad_tape tape, double *theta, const double *observed)
{
    ad_tensor x = ad_leaf(tape, AD_F64, 1, (int64_t[]){RATES}, theta);
    ad_tensor u0 = ad_constant(tape, AD_F64, 1, (int64_t[]){SYSTEMS}, reference_start[0]);
    ad_tensor v0 = ad_constant(tape, AD_F64, 1, (int64_t[]){SYSTEMS}, reference_start[1]);
    ad_tensor data = ad_constant(tape, AD_F64, 2, (int64_t[]){2 * TIMES, SYSTEMS}, observed);
    ad_mark mark = ad_tape_mark(tape);
    struct moments moments = {0};
    uint64_t peak_bytes = 0;
    ad_stats before;
    ad_status status = ad_tape_stats(tape, &before);
    for (int i = 1; i <= ITERATIONS && status == AD_OK; ++i) {
        double gradient[RATES];
        ad_tensor loss = misfit(x, u0, v0, data);
        double value = ad_item(loss);
        /* Whatever failed above, ad_backward returns it. */
        status = ad_backward(loss);
        if (status == AD_OK)
            status = ad_gradient(x, gradient, RATES);
        if (status == AD_OK)
            status = ad_tape_rewind(tape, mark);
        if (status != AD_OK)
            break;
        if (i == 1 && !gradient_agrees(theta, observed, gradient)) {
            fprintf(stderr, "ode: the gradient is wrong\n");
            return AD_ERROR_STATE;
        }
        if (!memory_is_flat(tape, &before, &peak_bytes)) {
            fprintf(stderr, "ode: iteration %d left something on the tape\n", i);
            return AD_ERROR_STATE;
        }
        adam(theta, &moments, gradient, i);
        if (i == 1 || i % 100 == 0)
            printf("iteration %3d, loss %9.4f, rates %.4f %.4f %.4f %.4f\n", i, value, theta[0],
                   theta[1], theta[2], theta[3]);
    }
    return status;
}

/* Each rate is found within four of its standard errors, which follow from the noise. */
static bool recovered(const double *theta)
{
    double error[RATES];
    bool all = reference_standard_errors(theta, noise, error);
    for (int i = 0; i < RATES; ++i) {
        double off = (theta[i] - truth[i]) / error[i];
        printf("%-5s  true %.4f  found %.4f +- %.4f  off by %4.1f standard errors\n", name[i],
               truth[i], theta[i], error[i], off);
        all = all && fabs(off) <= 4.0;
    }
    return all;
}

int main(void)
{
    double theta[RATES], observed[2 * TIMES * SYSTEMS];
    for (int i = 0; i < RATES; ++i)
        theta[i] = guess[i];
    reference_counts(truth, noise, observed);

    ad_tape tape;
    ad_status status = ad_tape_create(&tape, NULL);
    if (status == AD_OK)
        status = fit(tape, theta, observed);
    if (ad_tape_status(tape) != AD_OK)
        fprintf(stderr, "ode: %s\n", ad_tape_message(tape));
    if (status == AD_OK && !recovered(theta)) {
        fprintf(stderr, "ode: the rates are further off than the noise permits\n");
        status = AD_ERROR_STATE;
    }
    ad_tape_destroy(tape);
    return status == AD_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
