/* gamma_functions.c: psi and its derivatives by recurrence to where the asymptotic series holds.
 *
 * Abramowitz & Stegun, Handbook of Mathematical Functions (1964): 6.3.5, 6.3.7, 6.3.18 (psi),
 * 6.4.7, 6.4.10 (its derivatives), 23.1.30 (Euler-Maclaurin sum).
 */
#include "gamma_functions.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

/* Bernoulli numbers B_2, B_4, ... */
static const double bernoulli[] = {1.0 / 6,       -1.0 / 30, 1.0 / 42,      -1.0 / 30,    5.0 / 66,
                                   -691.0 / 2730, 7.0 / 6,   -3617.0 / 510, 43867.0 / 798};
enum { TERMS = sizeof bernoulli / sizeof *bernoulli };

double kernel_digamma(double x)
{
    if (isnan(x) || x == INFINITY)
        return x;
    if (x == 0)
        return -copysign((double)INFINITY, x);
    if (x == -INFINITY || (x < 0 && x == floor(x)))
        return (double)NAN;
    double sum = 0;
    if (x < 0) { /* 6.3.7, with the argument of tan reduced exactly */
        sum = -pi / tan(pi * (x - rint(x)));
        x = 1 - x;
    }
    double below = 0;
    while (x < 10) {
        below -= 1 / x;
        x += 1;
    }
    const double square = 1 / (x * x);
    double series = 0, power = square;
    for (int k = 0; k < TERMS; k++) {
        series += bernoulli[k] / (2 * (k + 1)) * power;
        power *= square;
    }
    return sum + (below + (log(x) - 0.5 / x - series));
}

/* sum over k >= 0 of (x + k)^-s */
static double hurwitz_zeta(double s, double x)
{
    double sum = 0;
    while (x < s + 10) {
        sum += pow(x, -s);
        x += 1;
    }
    const double power = pow(x, -s);
    double term = s * power / x, series = 0, factorial = 2;
    for (int k = 1; k <= TERMS; k++) {
        series += bernoulli[k - 1] / factorial * term;
        term *= (s + 2 * k - 1) * (s + 2 * k) / (x * x);
        factorial *= (2 * k + 1) * (2 * k + 2);
    }
    return sum + (pow(x, 1 - s) / (s - 1) + (0.5 * power + series));
}

double kernel_polygamma(double order, double x)
{
    if (isnan(x) || x == -INFINITY)
        return (double)NAN;
    if (x == INFINITY)
        return 0;
    if (order == 1 && x < 0) { /* 6.4.7 */
        const double sine = sin(pi * (x - rint(x)));
        return pi / sine * (pi / sine) - hurwitz_zeta(2, 1 - x);
    }
    if (x < -10000)
        return (double)NAN;
    const double size = tgamma(order + 1) * hurwitz_zeta(order + 1, x);
    return fmod(order, 2) == 0 ? -size : size;
}
