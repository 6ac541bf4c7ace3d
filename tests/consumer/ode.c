/* ode.c: a program that solves a differential equation by the installed libtapescope_ode. */
#include <math.h>
#include <stdio.h>
#include <tapescope/ad_ode.h>

static ad_tensor decay(ad_tape tape, ad_tensor t, ad_tensor y, int n, const ad_tensor *k,
                       void *payload)
{
    (void)tape;
    (void)t;
    (void)n;
    (void)payload;
    return ad_neg(ad_mul(k[0], y));
}

int main(void)
{
    const double begin[1] = {1}, rate[1] = {2}, when[2] = {0, 1};
    const int64_t one[1] = {1}, two[1] = {2};
    double g;
    ad_tape tape;
    printf("tapescope %s\n", ad_version());
    ad_tape_create(&tape, NULL);
    ad_tensor y0 = ad_leaf(tape, AD_F64, 1, one, begin), k = ad_leaf(tape, AD_F64, 1, one, rate);
    ad_tensor times = ad_constant(tape, AD_F64, 1, two, when);
    ad_tensor y = ad_ode(tape, decay, NULL, y0, times, 1, &k, NULL); /* the line that costs */
    if (ad_backward(ad_sum(y)) != AD_OK || ad_gradient(k, &g, 1) != AD_OK)
        puts(ad_tape_message(tape));
    ad_tape_destroy(tape);
    return fabs(g + exp(-2)) > 1e-5;
}
