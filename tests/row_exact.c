/* row_exact.c: what every row computes, by the C library in long double.
 *
 * May include: row_exact.h. Rows that libm has not got are written as their definitions, in forms
 * that lose no digits; psi and its derivatives by recurrence to where the asymptotic series holds
 * (Abramowitz & Stegun, 6.3.18, 6.4.11), and by reflection below zero (6.3.7, 6.4.7).
 */
#include "row_exact.h"

#include <math.h>
#include <string.h>

static const long double pi = 3.141592653589793238463L;
static const long double root_half = 0.707106781186547524401L;

static long double logistic(long double x)
{
    return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}

/* x p, and 0 where p is: also for infinite x. */
static long double times(long double x, long double p)
{
    return p == 0 ? 0 : x * p;
}

static long double normal(long double x)
{
    return 0.5L * erfcl(-x * root_half);
}

static long double density(long double x)
{
    return expl(-0.5L * x * x) * root_half * sqrtl(1 / pi);
}

/* The argument of the logistic function in gelu_tanh, and its derivative. */
static long double cubic(long double x)
{
    return 2 * sqrtl(2 / pi) * x * (1 + 0.044715L * x * x);
}

static long double cubic_slope(long double x)
{
    return 2 * sqrtl(2 / pi) * (1 + 0.134145L * x * x);
}

static long double cubic_density(long double x)
{
    return times(cubic_slope(x), logistic(cubic(x)) * logistic(-cubic(x)));
}

/* B_2k / (2k)! and so on are small at x >= 40: ten terms leave 1e-30. */
static const long double bernoulli[] = {1.0L / 6,       -1.0L / 30,      1.0L / 42, -1.0L / 30,
                                        5.0L / 66,      -691.0L / 2730,  7.0L / 6,  -3617.0L / 510,
                                        43867.0L / 798, -174611.0L / 330};

static long double psi(long double x)
{
    long double sum = 0, series = 0;
    if (isnan(x) || x == (long double)INFINITY)
        return x;
    if (x == 0)
        return -copysignl((long double)INFINITY, x);
    if (x < 0) {
        if (x == floorl(x))
            return (long double)NAN;
        return psi(1 - x) - pi / tanl(pi * (x - rintl(x)));
    }
    while (x < 40) {
        sum -= 1 / x;
        x += 1;
    }
    for (int k = 10; k > 0; k--)
        series = (series + bernoulli[k - 1] / (2 * k)) / (x * x);
    return sum + (logl(x) - 0.5L / x - series);
}

static long double trigamma(long double x)
{
    long double sum = 0, series = 0;
    if (isnan(x) || x == -(long double)INFINITY)
        return (long double)NAN;
    if (x == (long double)INFINITY)
        return 0;
    if (x <= 0) {
        const long double sine = sinl(pi * (x - rintl(x)));
        return pi / sine * (pi / sine) - (x < 0 ? trigamma(1 - x) : 0);
    }
    while (x < 40) {
        sum += 1 / (x * x);
        x += 1;
    }
    for (int k = 10; k > 0; k--)
        series = (series + bernoulli[k - 1]) / (x * x);
    return sum + (1 / x + 0.5L / (x * x) + series / x);
}

static long double log_gamma(long double x)
{
    int sign;
    return lgammal_r(x, &sign);
}

#define ROWS(ROW)                                                                                  \
    ROW(neg, -a)                                                                                   \
    ROW(exp, expl(a))                                                                              \
    ROW(log, logl(a))                                                                              \
    ROW(tanh, tanhl(a))                                                                            \
    ROW(sigmoid, logistic(a))                                                                      \
    ROW(relu, a > 0 || isnan(a) ? a : 0)                                                           \
    ROW(square, a *a)                                                                              \
    ROW(sqrt, sqrtl(a))                                                                            \
    ROW(scale, p[0] * a)                                                                           \
    ROW(offset, a + p[0])                                                                          \
    ROW(copy, a)                                                                                   \
    ROW(add, a + b)                                                                                \
    ROW(sub, a - b)                                                                                \
    ROW(mul, a *b)                                                                                 \
    ROW(div, a / b)                                                                                \
    ROW(gate, a > 0 ? b : 0)                                                                       \
    ROW(tie, a == b || (isnan(a) && isnan(b)) ? 1 : 0)                                             \
    ROW(abs, fabsl(a))                                                                             \
    ROW(sign, a > 0 ? 1 : a < 0 ? -1 : a)                                                          \
    ROW(floor, floorl(a))                                                                          \
    ROW(log1p, log1pl(a))                                                                          \
    ROW(expm1, expm1l(a))                                                                          \
    ROW(rsqrt, 1 / sqrtl(a))                                                                       \
    ROW(reciprocal, 1 / a)                                                                         \
    ROW(sin, sinl(a))                                                                              \
    ROW(cos, cosl(a))                                                                              \
    ROW(tan, tanl(a))                                                                              \
    ROW(asin, asinl(a))                                                                            \
    ROW(acos, acosl(a))                                                                            \
    ROW(atan, atanl(a))                                                                            \
    ROW(sinh, sinhl(a))                                                                            \
    ROW(cosh, coshl(a))                                                                            \
    ROW(asinh, asinhl(a))                                                                          \
    ROW(acosh, acoshl(a))                                                                          \
    ROW(atanh, atanhl(a))                                                                          \
    ROW(softplus, fmaxl(a, 0) + log1pl(expl(-fabsl(a))) + 0 * (isnan(a) ? a : 0))                  \
    ROW(leaky_relu, a > 0 ? a : p[0] * a)                                                          \
    ROW(elu, a > 0 ? a : p[0] * expm1l(a))                                                         \
    ROW(gelu, times(a, normal(a)))                                                                 \
    ROW(gelu_tanh, times(a, logistic(cubic(a))))                                                   \
    ROW(silu, times(a, logistic(a)))                                                               \
    ROW(erf, erfl(a))                                                                              \
    ROW(erfc, erfcl(a))                                                                            \
    ROW(lgamma, log_gamma(a))                                                                      \
    ROW(digamma, psi(a))                                                                           \
    ROW(polygamma, trigamma(a))                                                                    \
    ROW(clamp, a<p[0] ? p[0] : a> p[1] ? p[1] : a)                                                 \
    ROW(inside, a >= p[0] && a <= p[1] ? 1 : 0)                                                    \
    ROW(pow, powl(a, b))                                                                           \
    ROW(atan2, atan2l(a, b))                                                                       \
    ROW(hypot, hypotl(a, b))                                                                       \
    ROW(fmod, fmodl(a, b))                                                                         \
    ROW(quotient, rintl((a - fmodl(a, b)) / b))                                                    \
    ROW(maximum, a > b ? a : a <= b ? b : (long double)NAN)                                        \
    ROW(minimum, a < b ? a : a >= b ? b : (long double)NAN)                                        \
    ROW(less, a < b ? 1 : 0)                                                                       \
    ROW(less_equal, a <= b ? 1 : 0)                                                                \
    ROW(greater, a > b ? 1 : 0)                                                                    \
    ROW(greater_equal, a >= b ? 1 : 0)                                                             \
    ROW(equal, a == b ? 1 : 0)                                                                     \
    ROW(not_equal, a != b ? 1 : 0)                                                                 \
    ROW(where, a != 0 ? b : c)                                                                     \
    ROW(block, a > 0 ? 0 : b)                                                                      \
    ROW(pick, a != 0 ? b : 0)                                                                      \
    ROW(omit, a != 0 ? 0 : b)                                                                      \
    ROW(vanish, times(b, a))                                                                       \
    ROW(xlogy, times(logl(b), a))                                                                  \
    ROW(squared_difference, (a - b) * (a - b))                                                     \
    ROW(huber, fabsl(a - b) <= c ? (a - b) * (a - b) / 2 : c * (fabsl(a - b) - c / 2))             \
    ROW(bernoulli_loss, -times(logl(a), b) - times(log1pl(-a), 1 - b))                             \
    ROW(logistic_loss, logl(1 + expl(a)) - a * b)                                                  \
    ROW(standardize, (a - b) * c)                                                                  \
    ROW(multiply_add, a *b + c)                                                                    \
    ROW(rhypot1, 1 / hypotl(1, a))                                                                 \
    ROW(lorentz, 1 / (1 + a * a))                                                                  \
    ROW(gauss, expl(-a *a))                                                                        \
    ROW(normal_cdf, normal(a))                                                                     \
    ROW(normal_pdf, density(a))                                                                    \
    ROW(normal_moment, times(a, density(a)))                                                       \
    ROW(sigmoid_moment, times(a, logistic(a) * logistic(-a)))                                      \
    ROW(tanh_cdf, logistic(cubic(a)))                                                              \
    ROW(tanh_pdf, cubic_density(a))                                                                \
    ROW(tanh_moment, times(a, cubic_density(a)))

#define DEFINE(id, text)                                                                           \
    static long double row_##id(long double a, long double b, long double c, const double *p)      \
    {                                                                                              \
        (void)a, (void)b, (void)c, (void)p;                                                        \
        return text;                                                                               \
    }
#define ENTRY(id, text) {#id, row_##id},

ROWS(DEFINE)

row_exact_value *row_exact(const char *name)
{
    static const struct {
        const char *name;
        row_exact_value *value;
    } rows[] = {ROWS(ENTRY)};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].value;
    return NULL;
}
