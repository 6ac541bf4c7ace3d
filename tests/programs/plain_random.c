/* plain_random.c: the functions of plain_generate.c (random.h) as plain C, over ad_real (REALS), or
 * the program that compares their gradients (COMPARES). */
#ifndef COMPARES
#include <math.h>
#include <stdint.h>
#include <string.h>
#endif
#ifndef REALS
#ifdef COMPARES
#include <tapescope/ad_plain.h>
#endif
#define NUMBER double
#define NAMED(name) plain_##name
#define SET(y, e) ((y) = (e))
#define VALUE(x) (x)
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / ((b) * (b) + 1.5))
#define MAX(a, b) fmax(a, b)
#define SIN(a) sin(a)
#define COS(a) cos(a)
#define TANH(a) tanh(a)
#define ATAN(a) atan(a)
#define ABS(a) fabs(a)
#define ROOT(a) sqrt((a) * (a) + 0.5)
#define BELL(a) exp(-(a) * (a))
#else
#include <tapescope/ad_real.h>
#define NUMBER ad_real
#define NAMED(name) reals_##name
#define SET(y, e) ad_set(&(y), e)
#define VALUE(x) ad_real_value(x)
#define ADD(a, b) ad_real_add(a, b)
#define SUB(a, b) ad_real_sub(a, b)
#define MUL(a, b) ad_real_mul(a, b)
#define DIV(a, b) ad_real_div(a, ad_real_add(ad_real_square(b), 1.5))
#define MAX(a, b) ad_real_fmax(a, b)
#define SIN(a) ad_real_sin(a)
#define COS(a) ad_real_cos(a)
#define TANH(a) ad_real_tanh(a)
#define ATAN(a) ad_real_atan(a)
#define ABS(a) ad_real_fabs(a)
#define ROOT(a) ad_real_sqrt(ad_real_add(ad_real_square(a), 0.5))
#define BELL(a) ad_real_exp(ad_real_neg(ad_real_square(a)))
#endif

struct NAMED(some) {
    NUMBER p;
    int n;
    NUMBER q[2];
};

#ifndef COMPARES

#define APART __attribute__((noinline))

typedef uint64_t word __attribute__((may_alias));

__attribute__((unused)) static void copy_bytes(void *to, const void *from)
{
    for (size_t k = 0; k < sizeof(NUMBER) / sizeof(word); k++)
        ((word *)to)[k] = ((const word *)from)[k];
}

#pragma GCC diagnostic ignored "-Wunused-function"
#include "random.h"

#else

#include <math.h>
#include <stdio.h>

struct reals_some {
    ad_real p;
    int n;
    ad_real q[2];
};

extern double (*const plain_functions[])(const double *, struct plain_some, struct plain_some *);
extern ad_real (*const reals_functions[])(const ad_real *, struct reals_some, struct reals_some *);
extern const int plain_count;

static const double at[4] = {0.7, -0.4, 1.3, 0.25};

static int by_plain(ad_tape tape, int k, double *y, double gradient[4])
{
    double x[4];
    ad_real leaf[4];
    ad_tape_reset(tape);
    for (int i = 0; i < 4; i++)
        x[i] = at[i];
    if (ad_plain_leaves(tape, 4, x, leaf) != AD_OK)
        return 1;
    struct plain_some s = {x[1], k % 2, {x[2], 0.5}}, t = {x[3], 1, {x[0], x[1]}};
    *y = plain_functions[k](x, s, &t);
    return ad_plain_backward(tape, y) != AD_OK ||
           ad_plain_gradients(tape, 4, leaf, gradient) != AD_OK;
}

static int by_reals(ad_tape tape, int k, double *y, double gradient[4])
{
    ad_real x[4];
    ad_tape_reset(tape);
    if (ad_real_leaves(tape, 4, at, x) != AD_OK)
        return 1;
    struct reals_some s = {x[1], k % 2, {x[2], ad_real_of(0.5)}}, t = {x[3], 1, {x[0], x[1]}};
    const ad_real z = reals_functions[k](x, s, &t);
    *y = z.value;
    return ad_real_backward(tape, z) != AD_OK || ad_real_gradients(tape, 4, x, gradient) != AD_OK;
}

int main(void)
{
    ad_tape tape;
    int wrong = 0, constants = 0;
    if (ad_tape_create(&tape, NULL) != AD_OK)
        return 2;
    for (int k = 0; k < plain_count; k++) {
        double y, z, g[4], h[4], worst = 0;
        const int a = by_plain(tape, k, &y, g);
        ad_tape_clear_error(tape);
        const int b = by_reals(tape, k, &z, h);
        ad_tape_clear_error(tape);
        if (a != b) { /* a constant has no gradient by either */
            printf("random_%d: one of two has a gradient\n", k);
            wrong++;
            continue;
        }
        constants += a;
        worst = fabs(y - z) / fmax(1, fabs(z));
        for (int i = 0; i < 4 && a == 0; i++)
            worst = fmax(worst, fabs(g[i] - h[i]) / fmax(1, fabs(h[i])));
        if (!(worst < 1e-11)) {
            printf("random_%d: %g: %g %g %g %g, not %g %g %g %g\n", k, worst, g[0], g[1], g[2],
                   g[3], h[0], h[1], h[2], h[3]);
            wrong++;
        }
    }
    if (ad_plain_dropped() > 0) {
        printf("%llu gradients are said to be lost\n", (unsigned long long)ad_plain_dropped());
        wrong++;
    }
    ad_tape_destroy(tape);
    printf("%d compared\n", plain_count);
    return wrong > 0 || constants > plain_count / 10;
}

#endif
