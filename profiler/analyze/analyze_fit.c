/* analyze_fit.c: see analyze_fit.h.
 *
 * The slope's standard error and interval are those of simple linear regression (Draper, Smith:
 * Applied Regression Analysis, 3rd edition, equations 1.4.8 and 1.4.11).
 */
#include "analyze_fit.h"

#include <math.h>

/* P(|T| < t) for whole degrees of freedom, as finite sums (Abramowitz, Stegun: Handbook of
 * Mathematical Functions, equations 26.7.3 and 26.7.4). */
static double student_inside(double t, unsigned n)
{
    double angle = atan(t / sqrt(n)), cosine = cos(angle), term = n % 2 ? cosine : 1, sum = 0;
    if (n == 1)
        return 2 * angle / M_PI;
    for (unsigned i = n % 2 ? 2 : 1; i < n; i += 2) {
        sum += term;
        term *= cosine * cosine * i / (i + 1);
    }
    return n % 2 ? 2 / M_PI * (angle + sin(angle) * sum) : sin(angle) * sum;
}

double analyze_student_t(unsigned n, double confidence)
{
    double low = 0, high = 1;
    while (student_inside(high, n) < confidence && high < 1e9)
        high *= 2;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (student_inside(middle, n) < confidence)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* How many different positive ones there are, up to three. */
static unsigned fit_sizes(const double *x, const double *y, size_t n)
{
    double size[2];
    unsigned sizes = 0;
    for (size_t i = 0; i < n && sizes < 3; i++) {
        bool known = !(x[i] > 0) || !(y[i] > 0);
        for (unsigned k = 0; k < sizes; k++)
            known |= x[i] == size[k];
        if (!known && sizes < 2)
            size[sizes] = x[i];
        sizes += !known;
    }
    return sizes;
}

struct analyze_fit analyze_fit_power(const double *x, const double *y, size_t n)
{
    struct analyze_fit fit = {0};
    double mean_x = 0, mean_y = 0, xx = 0, xy = 0, rest = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(x[i] > 0) || !(y[i] > 0))
            continue;
        mean_x += log(x[i]);
        mean_y += log(y[i]);
        fit.points++;
    }
    if (fit.points < 2)
        return fit;
    mean_x /= (double)fit.points;
    mean_y /= (double)fit.points;
    for (size_t i = 0; i < n; i++) {
        if (!(x[i] > 0) || !(y[i] > 0))
            continue;
        double dx = log(x[i]) - mean_x;
        xx += dx * dx;
        xy += dx * (log(y[i]) - mean_y);
    }
    fit.fits = xx > 1e-12; /* sizes that differ */
    if (!fit.fits)
        return fit;
    fit.exponent = xy / xx;
    fit.factor = exp(mean_y - fit.exponent * mean_x);
    fit.low = fit.high = fit.exponent;
    if (fit_sizes(x, y, n) < 3) /* a line goes through two, whatever the rest is */
        return fit;
    for (size_t i = 0; i < n; i++) {
        if (!(x[i] > 0) || !(y[i] > 0))
            continue;
        double off = log(y[i]) - mean_y - fit.exponent * (log(x[i]) - mean_x);
        rest += off * off;
    }
    unsigned freedom = (unsigned)(fit.points - 2);
    double margin = analyze_student_t(freedom, 0.95) * sqrt(rest / freedom / xx);
    fit.has_interval = true;
    fit.low = fit.exponent - margin;
    fit.high = fit.exponent + margin;
    return fit;
}

bool analyze_fit_is_above(const struct analyze_fit *fit, double limit)
{
    return fit->has_interval && fit->low > limit + 1e-9; /* rounding of the logarithms */
}
