/* row_reference.c: what every row computes, by the C library in double.
 *
 * May include: row_reference.h, Check. Rows that libm has not got are written as their definitions;
 * psi and its derivative by long recurrences in long double, so that few terms of a series remain.
 */
#include "row_reference.h"

#include <check.h>
#include <math.h>
#include <string.h>

static double logistic(double x)
{
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

static double normal(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752440);
}

static double density(double x)
{
    return exp(-0.5 * x * x) * 0.39894228040143267794;
}

/* What gelu_tanh multiplies x by, and its derivative. */
static double cubic_cdf(double x)
{
    return logistic(1.5957691216057308 * (x + 0.044715 * x * x * x));
}

static double cubic_pdf(double x)
{
    const double u = 1.5957691216057308 * (x + 0.044715 * x * x * x);
    return logistic(u) * logistic(-u) * 1.5957691216057308 * (1 + 0.134145 * x * x);
}

static double psi(double x)
{
    long double at = (long double)x, sum = 0;
    while (at < 300) {
        sum -= 1 / at;
        at += 1;
    }
    const long double square = at * at;
    return (double)(sum + logl(at) - 0.5L / at - 1 / (12 * square) + 1 / (120 * square * square));
}

static double trigamma(double x)
{
    long double at = (long double)x, sum = 0;
    while (at < 300) {
        sum += 1 / (at * at);
        at += 1;
    }
    const long double cube = at * at * at;
    return (double)(sum + 1 / at + 0.5L / (at * at) + 1 / (6 * cube) - 1 / (30 * cube * at * at));
}

/* One row: its value over a, b, c and p, and how near a kernel has to come. */
#define ROWS(ROW)                                                                                  \
    ROW(neg, -a, 0, true)                                                                          \
    ROW(exp, exp(a), 6, true)                                                                      \
    ROW(log, log(a), 6, true)                                                                      \
    ROW(tanh, tanh(a), 6, true)                                                                    \
    ROW(sigmoid, logistic(a), 6, true)                                                             \
    ROW(relu, a > 0 || isnan(a) ? a : 0, 0, true)                                                  \
    ROW(square, a *a, 0, true)                                                                     \
    ROW(sqrt, sqrt(a), 0, true)                                                                    \
    ROW(scale, p[0] * a, 0, true)                                                                  \
    ROW(offset, a + p[0], 0, true)                                                                 \
    ROW(copy, a, 0, true)                                                                          \
    ROW(add, a + b, 0, true)                                                                       \
    ROW(sub, a - b, 0, true)                                                                       \
    ROW(mul, a *b, 0, true)                                                                        \
    ROW(div, a / b, 0, true)                                                                       \
    ROW(gate, a > 0 ? b : 0, 0, true)                                                              \
    ROW(tie, a == b || (isnan(a) && isnan(b)) ? 1 : 0, 0, true)                                    \
    ROW(abs, fabs(a), 0, true)                                                                     \
    ROW(sign, a > 0 ? 1 : a < 0 ? -1 : a, 0, true)                                                 \
    ROW(floor, floor(a), 0, true)                                                                  \
    ROW(log1p, log1p(a), 6, true)                                                                  \
    ROW(expm1, expm1(a), 6, true)                                                                  \
    ROW(sin, sin(a), 6, true)                                                                      \
    ROW(cos, cos(a), 6, true)                                                                      \
    ROW(tan, tan(a), 6, true)                                                                      \
    ROW(asin, asin(a), 6, true)                                                                    \
    ROW(acos, acos(a), 6, true)                                                                    \
    ROW(atan, atan(a), 6, true)                                                                    \
    ROW(sinh, sinh(a), 6, true)                                                                    \
    ROW(cosh, cosh(a), 6, true)                                                                    \
    ROW(asinh, asinh(a), 6, true)                                                                  \
    ROW(acosh, acosh(a), 6, true)                                                                  \
    ROW(atanh, atanh(a), 6, true)                                                                  \
    ROW(erf, erf(a), 6, true)                                                                      \
    ROW(erfc, erfc(a), 6, true)                                                                    \
    ROW(lgamma, lgamma(a), 6, true)                                                                \
    ROW(rsqrt, 1 / sqrt(a), 2, true)                                                               \
    ROW(reciprocal, 1 / a, 0, true)                                                                \
    ROW(softplus, fmax(a, 0) + log1p(exp(-fabs(a))), 8, false)                                     \
    ROW(leaky_relu, a > 0 ? a : p[0] * a, 0, true)                                                 \
    ROW(elu, a > 0 ? a : p[0] * expm1(a), 6, false)                                                \
    ROW(gelu, a *normal(a), 32, false)                                                             \
    ROW(gelu_tanh, 0.5 * a * (1 + tanh(0.79788456080286535588 * (a + 0.044715 * a * a * a))), 64,  \
        false)                                                                                     \
    ROW(silu, a *logistic(a), 10, false)                                                           \
    ROW(digamma, psi(a), 8, false)                                                                 \
    ROW(polygamma, trigamma(a), 8, false)                                                          \
    ROW(clamp, a<p[0] ? p[0] : a> p[1] ? p[1] : a, 0, true)                                        \
    ROW(inside, a >= p[0] && a <= p[1] ? 1 : 0, 0, true)                                           \
    ROW(pow, pow(a, b), 6, true)                                                                   \
    ROW(atan2, atan2(a, b), 6, true)                                                               \
    ROW(hypot, hypot(a, b), 6, true)                                                               \
    ROW(fmod, fmod(a, b), 0, true)                                                                 \
    ROW(quotient, trunc(a / b), 0, false)                                                          \
    ROW(maximum, a > b ? a : a <= b ? b : (double)NAN, 0, true)                                    \
    ROW(minimum, a < b ? a : a >= b ? b : (double)NAN, 0, true)                                    \
    ROW(less, a < b ? 1 : 0, 0, true)                                                              \
    ROW(less_equal, a <= b ? 1 : 0, 0, true)                                                       \
    ROW(greater, a > b ? 1 : 0, 0, true)                                                           \
    ROW(greater_equal, a >= b ? 1 : 0, 0, true)                                                    \
    ROW(equal, a == b ? 1 : 0, 0, true)                                                            \
    ROW(not_equal, a != b ? 1 : 0, 0, true)                                                        \
    ROW(where, a != 0 ? b : c, 0, true)                                                            \
    ROW(block, a > 0 ? 0 : b, 0, true)                                                             \
    ROW(pick, a != 0 ? b : 0, 0, true)                                                             \
    ROW(omit, a != 0 ? 0 : b, 0, true)                                                             \
    ROW(xlogy, a *log(b), 8, false)                                                                \
    ROW(squared_difference, (a - b) * (a - b), 8, true)                                            \
    ROW(huber, fabs(a - b) <= c ? (a - b) * (a - b) / 2 : c * (fabs(a - b) - c / 2), 4, false)     \
    ROW(bernoulli_loss, -b *log(a) - (1 - b) * log1p(-a), 16, false)                               \
    ROW(logistic_loss, log1p(exp(-fabs(a))) + fmax(a, 0) * (1 - b) + fmax(-a, 0) * b, 16, false)   \
    ROW(standardize, (a - b) * c, 8, true)                                                         \
    ROW(multiply_add, a *b + c, 8, true)                                                           \
    ROW(vanish, a != 0 ? a * b : 0, 0, true)                                                       \
    ROW(rhypot1, 1 / hypot(1, a), 8, true)                                                         \
    ROW(lorentz, 1 / (1 + a * a), 2, false)                                                        \
    ROW(gauss, exp(-(a * a)), 8, false)                                                            \
    ROW(tanh_cdf, cubic_cdf(a), 16, false)                                                         \
    ROW(tanh_pdf, cubic_pdf(a), 32, false)                                                         \
    ROW(tanh_moment, a *cubic_pdf(a), 32, false)                                                   \
    ROW(normal_cdf, normal(a), 32, false)                                                          \
    ROW(normal_pdf, density(a), 16, false)                                                         \
    ROW(normal_moment, a *density(a), 16, false)                                                   \
    ROW(sigmoid_moment, a *logistic(a) * logistic(-a), 16, false)

#define DEFINE(id, text, ulps, at_edges)                                                           \
    static double row_##id(double a, double b, double c, const double *p)                          \
    {                                                                                              \
        (void)a, (void)b, (void)c, (void)p;                                                        \
        return text;                                                                               \
    }
#define ENTRY(id, text, ulps, at_edges) {#id, row_##id, ulps, at_edges},

ROWS(DEFINE)

static const struct row_reference references[] = {ROWS(ENTRY)};

const struct row_reference *row_reference(const char *name)
{
    for (size_t i = 0; i < sizeof references / sizeof *references; i++)
        if (strcmp(references[i].name, name) == 0)
            return &references[i];
    ck_abort_msg("row %s has no reference", name);
    return NULL;
}
