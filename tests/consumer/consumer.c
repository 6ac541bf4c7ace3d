/* consumer.c: a user's program in C: a gradient, checked, and the version it ran with. */
#include <tapescope/ad.h>
#include <tapescope/ad_real.h>

#include <math.h>
#include <stdio.h>

static ad_tensor energy(ad_tape tape, const ad_tensor *x, int n, void *payload)
{
    (void)tape;
    (void)n;
    (void)payload;
    return ad_sum(ad_exp(ad_matmul(x[0], x[1]))); /* the line that costs */
}

/* x^3 by a loop over real numbers. */
static int cube(ad_tape tape)
{
    ad_real x = ad_real_leaf(tape, 1.5), y = ad_real_of(1);
    for (int i = 0; i < 3; i++)
        ad_set(&y, ad_real_mul(y, x));
    return ad_real_backward(tape, y) == AD_OK &&
           fabs(ad_real_gradient(tape, x) - 3 * 1.5 * 1.5) < 1e-14;
}

int main(void)
{
    double a[4] = {0.1, -0.2, 0.3, 0.4}, b[4] = {1, 2, -1, 0.5}, g[4];
    ad_tape tape;
    if (ad_tape_create(&tape, NULL) != AD_OK)
        return puts(ad_tape_message(tape)), 1;
    ad_tensor x[2] = {ad_leaf(tape, AD_F64, 2, (int64_t[]){2, 2}, a),
                      ad_leaf(tape, AD_F64, 2, (int64_t[]){2, 2}, b)};
    ad_gradient_report report;
    if (ad_check_gradient(tape, energy, 2, x, 1e-8, NULL, &report) != AD_OK)
        return puts(report.message), 1;
    ad_tensor y = energy(tape, x, 2, NULL);
    if (ad_backward(y) != AD_OK || ad_gradient(x[0], g, 4) != AD_OK)
        return puts(ad_tape_message(tape)), 1;
    /* y_00 of the product is 0.1 + 0.2, y_01 is 0.2 - 0.1. */
    if (fabs(g[0] - (exp(0.3) + 2 * exp(0.1))) > 1e-12)
        return printf("wrong gradient: %.17g\n", g[0]), 1;
    if (!cube(tape))
        return puts(ad_tape_message(tape)), 1;
    printf("tapescope %s, %lld derivatives agree\n", ad_version(), (long long)report.compared);
    return ad_tape_destroy(tape) == AD_OK ? 0 : 1;
}
