/* ad_real_functions.c: functions of libm that not every user's dialect of C declares. */
#include <tapescope/ad_real.h>

#include "gamma_functions.h"

#include <math.h>

double ad_lgamma_(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

double ad_digamma_(double x)
{
    return kernel_digamma(x);
}

double ad_trigamma_(double x)
{
    return kernel_polygamma(1, x);
}

double ad_exp10_(double x)
{
    return exp10(x);
}

double ad_bessel_(bool second, int n, double x)
{
    return second ? yn(n, x) : jn(n, x);
}

double ad_bessel_slope_(bool second, int n, double x)
{
    if (n == 0)
        return -ad_bessel_(second, 1, x);
    /* Y_n goes to infinity there, and both terms to infinities that would cancel. Negative orders
     * have the sign (-1)^n: DLMF 10.4.1. */
    if (second && x == 0)
        return n < 0 && n % 2 ? -INFINITY : INFINITY;
    return (ad_bessel_(second, n - 1, x) - ad_bessel_(second, n + 1, x)) / 2;
}
