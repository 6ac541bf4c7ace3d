/* spectrum.c: how sharp the spectrum of a tone is, by KISS FFT (kiss_fft.c of its source, which
 * knows nothing of Tapescope), and how that changes with the tone. scripts/demo plain compiles
 * both.
 *
 * What is computed is the sum of |X|^4 over the spectrum X, divided by the square of the sum of
 * |X|^2: 1 if all is in one frequency. A drift of the frequency and damping blur it.
 */
#include <tapescope/ad_plain.h>

#include <kiss_fft.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 60 * 64, INPUTS = 3 };

/* x: the frequency beyond 440 periods, what is added to it until the end, and damping. */
static double sharpness(int64_t n, const double *x, void *payload)
{
    static kiss_fft_cpx tone[SAMPLES], spectrum[SAMPLES];
    double squares = 0, fourths = 0;
    (void)n;
    for (int i = 0; i < SAMPLES; i++) {
        const double t = (double)i / SAMPLES;
        const double phase = 2 * acos(-1) * (440 + x[0] + 0.5 * x[1] * t) * t;
        tone[i].r = exp(-x[2] * t) * cos(phase);
        tone[i].i = exp(-x[2] * t) * sin(phase);
    }
    kiss_fft((kiss_fft_cfg)payload, tone, spectrum);
    for (int i = 0; i < SAMPLES; i++) {
        const double power = spectrum[i].r * spectrum[i].r + spectrum[i].i * spectrum[i].i;
        squares += power;
        fourths += power * power;
    }
    return fourths / (squares * squares);
}

int main(void)
{
    static const char *const by[INPUTS] = {"frequency", "drift", "damping"};
    const double tone[INPUTS] = {0.3, 2.5, 1.2};
    double x[INPUTS], gradient[INPUTS];
    ad_real key[INPUTS];
    ad_gradient_report report = {.wrong = 0};
    ad_tape tape;
    kiss_fft_cfg plan = kiss_fft_alloc(SAMPLES, 0, NULL, NULL);
    ad_tape_create(&tape, NULL);
    for (int i = 0; i < INPUTS; i++)
        x[i] = tone[i];
    if (plan && ad_plain_leaves(tape, INPUTS, x, key) == AD_OK) {
        double y = sharpness(INPUTS, x, plan);
        if (ad_plain_backward(tape, &y) == AD_OK &&
            ad_plain_gradients(tape, INPUTS, key, gradient) == AD_OK) {
            printf("sharpness %.6f\n", y);
            for (int i = 0; i < INPUTS; i++)
                printf("%+.6f by the %s\n", gradient[i], by[i]);
        }
        ad_tape_reset(tape);
        if (ad_plain_check(tape, sharpness, INPUTS, tone, 1e-6, plan, &report) == AD_OK)
            puts("differences agree");
    }
    const bool failed = !plan || ad_tape_status(tape) != AD_OK || report.wrong > 0;
    if (failed)
        fprintf(stderr, "%s\n", report.wrong > 0 ? report.message : ad_tape_message(tape));
    ad_tape_destroy(tape);
    free(plan);
    return failed;
}
