/* oscillations.c: see oscillations.h.
 *
 * Two damped oscillations: f(t) = p0 exp(-p1 t) sin(p2 t) + p3 exp(-p4 t) cos(p5 t) + p6.
 */
#include "oscillations.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

const double guess[PARAMETERS] = {0.9, 0.25, 3.2, 0.6, 0.12, 0.9, 0.05};
static const double truth[PARAMETERS] = {1.0, 0.2, 3.0, 0.5, 0.1, 1.0, 0.1};

static const double quarter = 1.57079632679489662; /* of a turn */

static double measured[MEASUREMENTS];

static double time_of(int i)
{
    return i * (20.0 / MEASUREMENTS);
}

void measure(void)
{
    uint64_t state = 1;
    const double *p = truth;
    for (int i = 0; i < MEASUREMENTS; i++) {
        const double t = time_of(i);
        state = state * 6364136223846793005u + 1442695040888963407u;
        const double noise = (double)(state >> 11) * 0x1p-53 - 0.5;
        measured[i] = p[0] * exp(-p[1] * t) * sin(p[2] * t) +
                      p[3] * exp(-p[4] * t) * sin(p[5] * t + quarter) + p[6] + 0.1 * noise;
    }
}

/* q0 exp(-q1 t) */
static ad_real damping(const ad_real *q, double t)
{
    return ad_real_of(ad_real_mul(q[0], ad_real_exp(ad_real_mul(q[1], -t))));
}

static ad_real angle(const ad_real *q, double t, double phase)
{
    return ad_real_of(ad_real_add(ad_real_mul(q[2], t), phase));
}

/* q0 exp(-q1 t) sin(q2 t + phase) */
static ad_real oscillation(const ad_real *q, double t, double phase)
{
    return ad_real_of(ad_real_mul(damping(q, t), ad_real_sin(angle(q, t, phase))));
}

ad_real squared_residuals(const ad_real *p, int from, int to)
{
    ad_real sum = ad_real_of(0.0), f, residual;
    for (int i = from; i < to; i++) {
        const double t = time_of(i);
        ad_set(&f, ad_real_add(oscillation(p, t, 0), oscillation(p + 3, t, quarter)));
        ad_set(&residual, ad_real_sub(ad_real_add(f, p[6]), measured[i]));
        ad_set(&sum, ad_real_add(sum, ad_real_square(residual)));
    }
    return sum;
}

static int is_close(double a, double b)
{
    return fabs(a - b) <= 1e-11 * (1 + fabs(b));
}

int judge(double loss, const double *gradient)
{
    ad_tape tape;
    ad_real p[PARAMETERS], sum;
    double serial[PARAMETERS];
    ad_tape_create(&tape, NULL);
    ad_tape_record_begin(tape);
    ad_real_leaves(tape, PARAMETERS, guess, p);
    sum = squared_residuals(p, 0, MEASUREMENTS);
    if (ad_real_backward(tape, sum) != AD_OK ||
        ad_real_gradients(tape, PARAMETERS, p, serial) != AD_OK) {
        fprintf(stderr, "%s\n", ad_tape_message(tape));
        return 1;
    }
    int wrong = !is_close(loss, sum.value);
    printf("loss %.12g\n", loss);
    for (int i = 0; i < PARAMETERS; i++) {
        printf("d loss / d p%d = %17.9f\n", i, gradient[i]);
        wrong += !is_close(gradient[i], serial[i]);
    }
    printf("%s\n", wrong ? "differs from one tape's: FAILED" : "the same on one tape");
    ad_tape_record_end(tape);
    ad_tape_destroy(tape);
    return wrong != 0;
}
