/* analyze_fit.h: powers fitted to costs at several sizes. */
#ifndef PROFILER_ANALYZE_FIT_H
#define PROFILER_ANALYZE_FIT_H

#include <stdbool.h>
#include <stddef.h>

/* y = factor * x^exponent, by least squares of log y on log x. */
struct analyze_fit {
    size_t points;     /* with x > 0 and y > 0; what follows holds if `fits` */
    bool fits;         /* at least two different x */
    bool has_interval; /* at least three different x */
    double factor, exponent;
    double low, high; /* the exponent's 95 % confidence interval */
};

/* Fits n points; those that are not positive are left out. */
struct analyze_fit analyze_fit_power(const double *x, const double *y, size_t n);

/* Whether the exponent is over `limit` by the whole interval. */
bool analyze_fit_is_above(const struct analyze_fit *fit, double limit);

/* The t that |T| exceeds with probability 1 - confidence, for Student's T with n > 0 degrees of
 * freedom; confidence between 0 and 1. */
double analyze_student_t(unsigned n, double confidence);

#endif
