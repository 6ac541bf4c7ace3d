/* row_checks.c: reads the tests in the rows of elementwise.def.
 *
 * Functions that C has not got are written as their definitions, in forms that lose no digits; psi
 * and its derivatives by recurrence to where the asymptotic series holds (Abramowitz & Stegun,
 * 6.3.18, 6.4.11), and by reflection below zero (6.3.7, 6.4.7). A new row adds a function here only
 * if it cannot be written in one expression.
 */
#include "row_checks.h"
#include "check_quietly.h"

#include <float.h>
#include <string.h>
#include <tgmath.h>

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

/* Second derivatives. */
static const long double root_pi = 1.772453850905516027298L;

/* The derivative of the logistic function, and that one's. */
static long double logistic1(long double x)
{
    const long double c = coshl(x / 2);
    return 1 / (4 * c * c);
}

static long double logistic2(long double x)
{
    return -logistic1(x) * tanhl(x / 2);
}

static long double gelu_tanh2(long double x)
{
    const long double c = 0.044715L, k = 2 * sqrtl(2) / root_pi, u = k * (x + c * x * x * x);
    const long double v = k * (1 + 3 * c * x * x), w = 6 * k * c * x;
    return 2 * logistic1(u) * v + x * (logistic2(u) * v * v + logistic1(u) * w);
}

/* psi' and psi'': by recurrence to where few terms of the series are enough, or by them alone. */
static long double psi1(long double x)
{
    long double sum = 0;
    if (fabsl(x) > 1e6L)
        return x > 0 ? 1 / x : (long double)INFINITY;
    while (x < 300) {
        sum += 1 / (x * x);
        x += 1;
    }
    return sum + 1 / x + 0.5L / (x * x) + 1 / (6 * x * x * x);
}

static long double psi2(long double x)
{
    long double sum = 0;
    if (fabsl(x) > 1e6L)
        return x > 0 ? -1 / (x * x) : (long double)NAN;
    while (x < 300) {
        sum -= 2 / (x * x * x);
        x += 1;
    }
    const long double square = x * x;
    return sum - (1 / square + 1 / (square * x) + 0.5L / (square * square));
}

/* The branches that a row takes; a branch by its number, for the operands and the parameters. */
static int by_sign(const double *x, const double *p)
{
    (void)p;
    return x[0] > 0;
}

static int by_zero(const double *x, const double *p)
{
    (void)p;
    return x[0] != 0;
}

static int by_order(const double *x, const double *p)
{
    (void)p;
    return x[0] > x[1];
}

static int by_order_or_tie(const double *x, const double *p)
{
    (void)p;
    return x[0] < x[1] ? 0 : x[0] > x[1] ? 1 : 2;
}

static int by_bounds(const double *x, const double *p)
{
    return x[0] < p[0] ? 0 : x[0] > p[1] ? 1 : 2;
}

static int by_quadrant(const double *x, const double *p)
{
    (void)p;
    return (x[0] > 0) + 2 * (x[1] > 0);
}

/* Both signs of both operands, and quotients of size 0 and above. */
static int by_quotient(const double *x, const double *p)
{
    (void)p;
    return fabs(x[0]) < fabs(x[1]) ? 0 : x[0] < 0 ? 1 : x[1] < 0 ? 2 : 3;
}

static int by_exponent(const double *x, const double *p)
{
    (void)p;
    return x[1] == 0 ? 0 : x[0] < 0 ? 1 : x[0] < 1 ? 2 : 3;
}

/* A rounding of x^2 in an exponent. */
static double by_square(double x, double y, int dtype)
{
    (void)y, (void)dtype;
    return 1 + x * x;
}

static double by_square_below(double x, double y, int dtype)
{
    return x < 0 ? by_square(x, y, dtype) : 1;
}

/* A rounding of the cubic in gelu_tanh's exponent. */
static double by_cubic(double x, double y, int dtype)
{
    (void)y, (void)dtype;
    return 1 + 1.6 * fabs(x) * (1 + 0.044715 * x * x);
}

static double by_cubic_below(double x, double y, int dtype)
{
    return x < 0 ? by_cubic(x, y, dtype) : 1;
}

/* x times a subnormal number. */
static double by_underflow(double x, double y, int dtype)
{
    (void)y;
    return fabs(x) > (dtype == KERNEL_F32 ? 87 : 708) ? 1 + fabs(x) : 1;
}

/* 0 where x^2 overflows: the value is subnormal. */
static double but_overflow(double x, double y, int dtype)
{
    (void)y;
    return fabs(x) > (dtype == KERNEL_F32 ? 0x1p63 : 0x1p511) ? (double)INFINITY : 1;
}

/* The size of the terms that cancel near a root; below 0 one is pi / tan(pi x). */
static double by_terms(double x, double y, int dtype)
{
    const double turn = (double)pi * (x - rint(x));
    (void)dtype;
    return 2 + (1 + (x < 0 ? fabs((double)pi / tan(turn)) : 0)) / fabs(y);
}

double row_grows(const struct row_check *row, double x, double y, int dtype)
{
    static const struct {
        const char *words; /* as the row has them */
        row_factor *factor;
    } list[] = {{"1 + x^2", by_square},
                {"1 + x^2 where x < 0", by_square_below},
                {"1 + 1.6 |x| (1 + 0.044715 x^2)", by_cubic},
                {"1 + 1.6 |x| (1 + 0.044715 x^2) where x < 0", by_cubic_below},
                {"1 + |x| where e^x is subnormal", by_underflow},
                {"inf where x^2 overflows", but_overflow},
                {"2 + (1 + |pi / tan(pi x)|, where x < 0) / |y|", by_terms}};
    if (row->op->ulps_times == NULL)
        return 1;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (strcmp(list[i].words, row->op->ulps_times) == 0)
            return list[i].factor(x, y, dtype);
    ck_abort_msg("row %s: no function for \"%s\"", row->op->name, row->op->ulps_times);
    return 1;
}

double row_distance(double y, long double exact, int dtype)
{
    const int digits = dtype == KERNEL_F32 ? FLT_MANT_DIG : DBL_MANT_DIG;
    const int least = dtype == KERNEL_F32 ? FLT_MIN_EXP : DBL_MIN_EXP;
    const long double most = ldexpl(1, dtype == KERNEL_F32 ? FLT_MAX_EXP : DBL_MAX_EXP);
    int exponent;
    if (isnan(exact) || isnan(y))
        return isnan(exact) && isnan(y) ? 0 : (double)INFINITY;
    if (fabsl(exact) > most)
        exact = copysignl(most, exact);
    const long double value = isinf(y) ? copysignl(most, y) : y;
    (void)frexpl(exact == most || exact == -most ? exact / 2 : exact, &exponent);
    exponent = (exact == 0 || exponent < least ? least : exponent) - digits;
    return (double)ldexpl(fabsl(value - exact), -exponent);
}

double row_meant(double x, int dtype)
{
    const double tiny = dtype == KERNEL_F32 ? 0x1p-149 : 0x1p-1074;
    const double list[][2] = {{ROW_TINY, tiny},
                              {ROW_NEGTINY, -tiny},
                              {ROW_TWICE_TINY, 2 * tiny},
                              {ROW_LOG_TINY, log(tiny)},
                              {ROW_NEGLOG_TINY, -log(tiny)},
                              {ROW_ROOT_TINY, sqrt(tiny)},
                              {ROW_RROOT_TINY, 1 / sqrt(tiny)},
                              {ROW_HALF_RROOT_TINY, 0.5 / sqrt(tiny)}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (x == list[i][0])
            return list[i][1];
    return x;
}

#define VALUES(id, text)                                                                           \
    static double value_##id(double a, double b, double c, const double *p)                        \
    {                                                                                              \
        (void)a, (void)b, (void)c, (void)p;                                                        \
        return (double)(text);                                                                     \
    }                                                                                              \
    static long double exact_##id(long double a, long double b, long double c, const double *p)    \
    {                                                                                              \
        (void)a, (void)b, (void)c, (void)p;                                                        \
        return text;                                                                               \
    }
#define CHECK(id, text, ...) VALUES(id, text)
#define CHECK1(id, text, text_second, ...)                                                         \
    VALUES(id, text)                                                                               \
    static long double second_##id(long double a)                                                  \
    {                                                                                              \
        return text_second;                                                                        \
    }
#include "elementwise.def"

#define INF ((double)INFINITY)
#define NaN ((double)NAN)
#define TINY ROW_TINY
#define NEGTINY ROW_NEGTINY
#define TWICE_TINY ROW_TWICE_TINY
#define LOG_TINY ROW_LOG_TINY
#define NEGLOG_TINY ROW_NEGLOG_TINY
#define ROOT_TINY ROW_ROOT_TINY
#define RROOT_TINY ROW_RROOT_TINY
#define HALF_RROOT_TINY ROW_HALF_RROOT_TINY
#define PI 3.14159265358979323846
#define ERF_SLOPE 1.12837916709551257390 /* 2 / sqrt(pi) */
#define LOG_TWO 0.69314718055994530942
#define GAMMA 0.57721566490153286061 /* Euler's */

/* Members of struct row_check in a row. */
#define CANCELS(ulps) .cancels = true, .apart = (ulps)
#define SAMPLES_ONLY(ulps) CANCELS(ulps), .samples_only = true
#define BRANCHES(n, by) .n_branches = (n), .branch = (by)
#define LIST(type, member, ...)                                                                    \
    .member = (const type[]){__VA_ARGS__},                                                         \
    .n_##member = (int)(sizeof((const type[]){__VA_ARGS__}) / sizeof(type))
#define ENDS(...) LIST(struct row_end, ends, __VA_ARGS__)
#define EDGES(...) LIST(struct row_edge, edges, __VA_ARGS__)

/* Edges. One operand: value and derivative at x; the same at 0, -0, the smallest subnormal, inf,
 * -inf and NaN. More operands: the value and each derivative. */
/* clang-format off */
#define AT(x, v, d) {{x}, v, {d}, {0}}
#define TWO(a, b, v, da, db) {{a, b}, v, {da, db}, {0}}
#define THREE(c, a, b, v, da, db) {{c, a, b}, v, {0, da, db}, {0}}
/* clang-format on */
#define SIX(v0, d0, vm, dm, vt, dt, vi, di, vn, dn, vx, dx)                                        \
    AT(0, v0, d0), AT(-0.0, vm, dm), AT(TINY, vt, dt), AT(INF, vi, di), AT(-INF, vn, dn),          \
        AT(NaN, vx, dx)
/* Comparisons of equal, ordered and unordered operands. */
#define ORDERS(zeros, tiny, infs, opposite, nan_a, nan_b, nans)                                    \
    TWO(0, -0.0, zeros, 0, 0), TWO(0, TINY, tiny, 0, 0), TWO(INF, INF, infs, 0, 0),                \
        TWO(INF, -INF, opposite, 0, 0), TWO(NaN, 1, nan_a, 0, 0), TWO(1, NaN, nan_b, 0, 0),        \
        TWO(NaN, NaN, nans, 0, 0)

static const struct row_check checks[] = {
#define CHECK(id, text, ...)                                                                       \
    {.op = &kernel_op_##id, .value = value_##id, .exact = exact_##id, __VA_ARGS__},
#define CHECK1(id, text, text_second, ...) CHECK(id, text, .second = second_##id, __VA_ARGS__)
#include "elementwise.def"
};

const struct row_check *row_checks(int *n)
{
    *n = (int)(sizeof checks / sizeof *checks);
    return checks;
}

const struct row_check *row_check(const struct kernel_op *op)
{
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (strcmp(checks[i].op->name, op->name) == 0)
            return &checks[i];
    ck_abort_msg("row %s has no CHECK in elementwise.def", op->name);
    return NULL;
}
