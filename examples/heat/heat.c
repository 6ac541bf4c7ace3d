/* heat.c: which source of heat brings a rod to a wanted temperature, by the gradient through all
 * steps in time, with a tape for few of them.
 *
 *     heat
 *
 * The rod has temperature 0 at both ends and everywhere at the beginning. u_t = u_xx + c, by
 * Euler's method, until the time T; the source c(x) is the same all the time. Wanted is the least
 * of
 *
 *     J(c) = sum (u(T) - target)^2 + a sum c^2,
 *
 * which the program has in millionths: NLopt's search ends where derivatives are about 1e-8.
 *
 * The steps are a loop of checkpoints that plans itself (docs/how-to/checkpoint.md). In sines the
 * problem falls apart into an equation for each, so that the best source is known; the program ends
 * with an error unless it is found.
 */
#include "optimisers.h"

#include <tapescope/ad_real.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    POINTS = 48,
    STEPS = 600,
    STATES = 12,            /* that are kept of them */
    EVERYTHING = 2 * POINTS /* what a step is given: temperatures, and behind them the source */
};

static const double PI = 3.14159265358979323846, WEIGHT = 1e-5 /* a */, UNIT = 1e6;
static const double SPACE = 1.0 / (POINTS + 1) /* h */, RATIO = 0.4 /* of a step to h^2 */;
static const double TIME = RATIO * SPACE * SPACE; /* of a step */

static long computed; /* steps */

static double target(int i)
{
    const double x = (i + 1) * SPACE;
    return fmin(x, 1 - x);
}

/* The second difference at point k. */
static ad_real bend(const ad_real *u, int k)
{
    ad_real sides = k > 0 ? u[k - 1] : ad_real_of(0), result;
    if (k < POINTS - 1)
        ad_set(&sides, ad_real_add(sides, u[k + 1]));
    ad_set(&result, ad_real_sub(sides, ad_real_mul(2, u[k])));
    return result;
}

static bool step(ad_tape tape, int64_t i, int64_t n_in, const ad_real *in, int64_t n_out,
                 ad_real *out, void *payload)
{
    const ad_real *source = in + POINTS;
    (void)tape, (void)i, (void)n_in, (void)payload;
    for (int k = 0; k < n_out; k++) {
        const ad_real flows = bend(in, k);
        ad_set(&out[k], ad_real_add(in[k], ad_real_mul(RATIO, flows)));
        ad_set(&out[k], ad_real_add(out[k], ad_real_mul(TIME, source[k])));
    }
    computed++;
    return true;
}

static ad_real sum_of_squares(const ad_real *u, const double *less)
{
    ad_real sum = ad_real_of(0);
    for (int k = 0; k < POINTS; k++)
        ad_set(&sum, ad_real_add(sum, ad_real_square(ad_real_sub(u[k], less[k]))));
    return sum;
}

/* J at the source c[n], and its gradient. */
static bool cost(int n, const double *c, double *value, double *gradient, void *payload)
{
    const ad_tape tape = *(const ad_tape *)payload;
    const ad_checkpoint_budget budget = {.states = STATES};
    static const double nothing[POINTS];
    double wanted[POINTS];
    ad_real u[EVERYTHING], j, *source = u + POINTS;
    ad_tape_reset(tape);
    for (int k = 0; k < POINTS; k++) {
        u[k] = ad_real_of(0);
        wanted[k] = target(k);
    }
    ad_real_leaves(tape, n, c, source);
    ad_real_checkpoint_loop(tape, STEPS, step, NULL, EVERYTHING, u, POINTS, u, &budget);
    const ad_real far = sum_of_squares(u, wanted), large = sum_of_squares(source, nothing);
    ad_set(&j, ad_real_mul(UNIT, ad_real_add(far, ad_real_mul(WEIGHT, large))));
    *value = j.value;
    return ad_real_backward(tape, j) == AD_OK &&
           ad_real_gradients(tape, n, source, gradient) == AD_OK;
}

/* The best source, sine by sine: after all steps the k-th is s_k c_k, where s_k = TIME
 * (1 - l^STEPS) / (1 - l) and l = 1 - 4 RATIO sin^2(k pi h / 2), so c_k = s_k t_k / (s_k^2 + a). */
static void best(double *c)
{
    memset(c, 0, POINTS * sizeof *c);
    for (int k = 1; k <= POINTS; k++) {
        double t = 0;
        for (int i = 0; i < POINTS; i++)
            t += 2 * SPACE * target(i) * sin(k * PI * (i + 1) * SPACE);
        const double s = sin(k * PI * SPACE / 2), l = 1 - 4 * RATIO * s * s;
        const double gain = TIME * (1 - pow(l, STEPS)) / (1 - l);
        for (int i = 0; i < POINTS; i++)
            c[i] += gain * t / (gain * gain + WEIGHT) * sin(k * PI * (i + 1) * SPACE);
    }
}

static bool run(ad_tape tape)
{
    double c[POINTS] = {0}, wanted[POINTS], gradient[POINTS], least, error = 0, largest = 0;
    struct minimum m;
    ad_stats stats;
    const bool found = minimise(LBFGS, POINTS, cost, &tape, c, &m);
    best(wanted);
    const long before = computed;
    if (!found || !cost(POINTS, wanted, &least, gradient, &tape) ||
        ad_tape_stats(tape, &stats) != AD_OK) {
        fprintf(stderr, "heat: %s\n",
                ad_tape_status(tape) == AD_OK ? m.ending : ad_tape_message(tape));
        return false;
    }
    for (int i = 0; i < POINTS; i++) {
        error = fmax(error, fabs(c[i] - wanted[i]));
        largest = fmax(largest, fabs(wanted[i]));
    }
    printf("%d steps of %d points, %d states kept: peak %.0f KiB, %ld steps computed\n", STEPS,
           POINTS, STATES, (double)stats.peak_bytes / 1024, computed - before);
    printf("cost %.6f after %d evaluations; the least is %.6f\n", m.value, m.evaluations, least);
    printf("the source is up to %.2f, and differs from the best by %.1e of that\n", largest,
           error / largest);
    const bool right = error <= 1e-4 * largest && fabs(m.value - least) <= 1e-9 * least;
    if (!right)
        fprintf(stderr, "heat: the source is not the best\n");
    return right;
}

int main(void)
{
    ad_tape tape;
    if (ad_tape_create(&tape, NULL) != AD_OK) {
        fprintf(stderr, "heat: %s\n", ad_tape_message((ad_tape){0}));
        return EXIT_FAILURE;
    }
    const bool right = run(tape);
    ad_tape_destroy(tape);
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
