/* analyze_fit.h: powers fitted to costs at several sizes. */
#ifndef PROFILER_ANALYZE_FIT_H
#define PROFILER_ANALYZE_FIT_H

#include <stdbool.h>
#include <stddef.h>

/* y = factor * x^exponent, by least squares of log y on log x. */
struct prof_fit {
    size_t points;     /* with x > 0 and y > 0; what follows holds if `fits` */
    bool fits;         /* at least two different x */
    bool has_interval; /* at least three points */
    double factor, exponent;
    double low, high; /* the exponent's 95 % confidence interval */
};

/* Fits n points; those that are not positive are left out. */
struct prof_fit prof_fit_power(const double *x, const double *y, size_t n);

/* Whether the exponent is over `limit` by the whole interval. */
bool prof_fit_is_above(const struct prof_fit *fit, double limit);

/* The t that |T| exceeds with probability 1 - confidence, for Student's T with n > 0 degrees of
 * freedom; confidence between 0 and 1. */
double prof_student_t(unsigned n, double confidence);

#endif
