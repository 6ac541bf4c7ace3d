/* plain_lines.c: plain C whose records have lines that are known. PLAIN_MAIN: the program that asks
 * for the gradient; with a number as argument it breaks on the records of that line, counts the
 * signals, and prints how many there were forward and in all. */
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

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static volatile sig_atomic_t traps;

static void trapped(int number)
{
    (void)number;
    traps = traps + 1;
}

int main(int argc, char **argv)
{
    ad_tape tape;
    ad_stats stats;
    double x[4] = {0.1, 0.2, 0.3, 0.4}, gradient[4];
    ad_real k[4];
    if (ad_tape_create(&tape, NULL) != AD_OK || ad_plain_leaves(tape, 4, x, k) != AD_OK)
        return 1;
    signal(SIGTRAP, trapped);
    if (argc > 1 && ad_break_on_line(tape, "plain_lines.c", (unsigned)strtoul(argv[1], NULL, 10),
                                     AD_BREAK_BOTH) != AD_OK)
        return 1;
    double y;
    plain_lines(x, 1000, &y);
    const int forward = (int)traps;
    if (ad_plain_backward(tape, &y) != AD_OK || ad_plain_gradients(tape, 4, k, gradient) != AD_OK)
        return 1;
    ad_tape_stats(tape, &stats);
    if (argc > 1)
        printf("%d %d\n", forward, (int)traps);
    else
        printf("%llu %llu\n", (unsigned long long)stats.statements,
               (unsigned long long)stats.statement_bytes);
    ad_tape_destroy(tape);
    return 0;
}

#endif
