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
                      p[3] * exp(-p[4] * t) * cos(p[5] * t) + p[6] + 0.1 * noise;
    }
}

ad_real squared_residuals(const ad_real *p, int from, int to)
{
    ad_real sum = ad_real_of(0.0), fast, slow, residual;
    for (int i = from; i < to; i++) {
        const double t = time_of(i);
        ad_set(&fast, ad_real_mul(ad_real_mul(p[0], ad_real_exp(ad_real_mul(p[1], -t))),
                                  ad_real_sin(ad_real_mul(p[2], t))));
        ad_set(&slow, ad_real_mul(ad_real_mul(p[3], ad_real_exp(ad_real_mul(p[4], -t))),
                                  ad_real_cos(ad_real_mul(p[5], t))));
        ad_set(&residual, ad_real_sub(ad_real_add(ad_real_add(fast, slow), p[6]), measured[i]));
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
    ad_record_begin(tape);
    ad_real_leaves(tape, PARAMETERS, guess, p);
    sum = squared_residuals(p, 0, MEASUREMENTS);
    ad_real_backward(tape, sum);
    ad_real_gradients(tape, PARAMETERS, p, serial);
    if (ad_status_of(tape) != AD_OK) {
        fprintf(stderr, "%s\n", ad_message_of(tape));
        return 1;
    }
    int wrong = !is_close(loss, sum.value);
    printf("loss %.12g\n", loss);
    for (int i = 0; i < PARAMETERS; i++) {
        printf("d loss / d p%d = %17.9f\n", i, gradient[i]);
        wrong += !is_close(gradient[i], serial[i]);
    }
    printf("%s\n", wrong ? "differs from one tape's: FAILED" : "the same on one tape");
    ad_record_end(tape);
    ad_tape_destroy(tape);
    return wrong != 0;
}
