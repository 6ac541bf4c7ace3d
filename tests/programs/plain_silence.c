/* plain_silence.c: the random functions of plain_silence_generate.c (silence.h), each of four
 * numbers. Compiled by `tapescope cc`, with plain_silence_foreign.c by another compiler.
 *
 * For each it prints whether its gradient is that of central differences, and how often it was said
 * at run time that a gradient is lost. The test looks whether the compiler has said so. */
#include <tapescope/ad_plain.h>

#include "plain_silence.h"

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <unistd.h>

#include <emmintrin.h>

#define APART __attribute__((noinline))

double known_global, known_array[1000];
_Thread_local double known_own;

static double parameter;

typedef uint64_t word __attribute__((may_alias));

union bits {
    double d;
    word u;
    unsigned char byte[8];
};

APART static double scaled(double x)
{
    return x * 0.75;
}

APART static double of_payload(void *payload)
{
    const double *const x = payload;
    return x[0] * x[1];
}

APART static double with_parameter(double x)
{
    return parameter * x;
}

APART static void changed(double *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = sin(x[i]) + 0.25 * x[(i + 1) % n];
}

APART static struct many many_changed(struct many m)
{
    m.v[1] = m.v[2] * m.v[3];
    return m;
}

static void *posix_start(void *at)
{
    double *const x = at;
    x[2] = of_payload(at);
    return NULL;
}

static int c11_start(void *at)
{
    return posix_start(at) != NULL;
}

APART static void on_posix_thread(double *x)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, posix_start, x) != 0)
        abort();
    pthread_join(thread, NULL);
}

static void *keep_start(void *at)
{
    foreign_keep(at);
    return NULL;
}

APART static void kept_by_thread(double *x)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, keep_start, x) != 0)
        abort();
    pthread_join(thread, NULL);
}

APART static void on_c11_thread(double *x)
{
    thrd_t thread;
    if (thrd_create(&thread, c11_start, x) != thrd_success)
        abort();
    thrd_join(thread, NULL);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* What each function begins with, and makes of it. Apart, so that hundreds compile soon. */
APART static void begin(const double *x, double v[6], double h[8], struct many *m)
{
    const double first[6] = {x[0], x[1] * x[2], x[3], x[0] - x[1], x[2], 0.5 * x[3]};
    memcpy(v, first, sizeof first);
    for (int i = 0; i < 8; i++)
        h[i] = x[i % 4] * 0.5;
    *m = (struct many){{x[0], x[1], x[2], x[3], 0.5, x[0]}};
}

APART static double end(double v[6], double *h, const struct many *m, const double w[4])
{
    for (int i = 0; i < 6; i++)
        v[0] += 0.25 * v[i] * (m->v[i] + h[i] + w[i % 4]);
    free(h);
    return sin(v[0]);
}

#define BEGIN                                                                                      \
    double v[6], w[4] = {0, 0, 0, 0}, *h = malloc(8 * sizeof *h);                                  \
    struct many m;                                                                                 \
    char text[160] = "";                                                                           \
    FILE *const file = tmpfile();                                                                  \
    if (!h || !file)                                                                               \
        abort();                                                                                   \
    begin(x, v, h, &m);

#define END                                                                                        \
    fclose(file);                                                                                  \
    (void)text;                                                                                    \
    return end(v, h, &m, w);

#include "silence.h"

static void differences(double (*f)(const double *), const double *at, double h, double d[4])
{
    for (int i = 0; i < 4; i++) {
        double up[4], down[4];
        memcpy(up, at, sizeof up);
        memcpy(down, at, sizeof down);
        up[i] += h;
        down[i] -= h;
        const double above = f(up);
        d[i] = (above - f(down)) / (2 * h);
    }
}

int main(void)
{
    static const double at[4] = {0.7, -0.4, 1.3, 0.25};
    ad_tape tape;
    for (size_t k = 0; k < sizeof silent / sizeof *silent; k++) /* before there is a variable */
        silent[k].function(at);
    if (ad_tape_create(&tape, NULL) != AD_OK)
        return 2;
    for (size_t k = 0; k < sizeof silent / sizeof *silent; k++) {
        double x[4], g[4] = {0}, near[4], far[4], worst = 0, doubt = 0;
        ad_real leaf[4];
        ad_tape_clear_error(tape);
        ad_tape_reset(tape);
        memcpy(x, at, sizeof x);
        if (ad_plain_leaves(tape, 4, x, leaf) != AD_OK)
            return 2;
        const uint64_t before = ad_plain_dropped();
        const double y = silent[k].function(x);
        if (ad_plain_read(&y).index != 0 &&
            (ad_plain_backward(tape, &y) != AD_OK || ad_plain_gradients(tape, 4, leaf, g) != AD_OK))
            return 2;
        const uint64_t lost = ad_plain_dropped() - before;
        differences(silent[k].function, at, 1e-6, near);
        differences(silent[k].function, at, 3e-6, far);
        for (int i = 0; i < 4; i++) {
            worst = fmax(worst, fabs(g[i] - near[i]) / (1 + fabs(near[i])));
            doubt = fmax(doubt, fabs(far[i] - near[i]) / (1 + fabs(near[i])));
        }
        printf("%s %s %llu %g\n", silent[k].name,
               doubt > 1e-6   ? "bent"
               : worst < 1e-5 ? "right"
                              : "wrong",
               (unsigned long long)lost, worst);
    }
    ad_tape_destroy(tape);
    return 0;
}
