/* plain_lines.c: plain C whose records have lines that are known. PLAIN_MAIN: the program that asks
 * for the gradient. */
void plain_lines(const double *x, int n, double *y);

#ifndef PLAIN_MAIN

#include <complex.h>
#include <math.h>

static double (*volatile by_address[])(double) = {sin, exp};

static double inner(double a, double b)
{
    const double product = a * b;
    return product * product * a; /* inner */
}

/* What the runtime does instead of the C library stands here too. */
static double library(double a)
{
    int exponent;
    const double m = frexp(by_address[0](a), &exponent), l = ldexp(m, exponent);
    const double complex z = cexp(l + 0.1 * I) / (a + 1.0 * I);
    return cabs(z) + by_address[1](creal(z)) + remainder(a, 0.3) + jn(2, a) + scalbn(a, 2);
}

void plain_lines(const double *x, int n, double *y)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        const double t = inner(x[i % 4], sum + 1);
        sum = sum * 0.5 + t / 3; /* sum */
    }
    *y = sum + library(x[1]);
}

#else

#include <tapescope/ad_plain.h>

#include <stdio.h>

int main(void)
{
    ad_tape tape;
    ad_stats stats;
    double x[4] = {0.1, 0.2, 0.3, 0.4}, gradient[4];
    ad_real k[4];
    if (ad_tape_create(&tape, NULL) != AD_OK || ad_plain_leaves(tape, 4, x, k) != AD_OK)
        return 1;
    double y;
    plain_lines(x, 1000, &y);
    if (ad_plain_backward(tape, &y) != AD_OK || ad_plain_gradients(tape, 4, k, gradient) != AD_OK)
        return 1;
    ad_tape_stats(tape, &stats);
    printf("%llu %llu\n", (unsigned long long)stats.statements,
           (unsigned long long)stats.statement_bytes);
    ad_tape_destroy(tape);
    return 0;
}

#endif
