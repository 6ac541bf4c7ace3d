/* ad_program_functions.c: see ad_program_functions.h. */
#include "ad_program_functions.h"

#include "ad_program_usual.h"

#include "kernel.h"

#include <math.h>

#define ALWAYS USUAL_ALWAYS

/* ---- what is no row of the tables ---- */

/* The second derivative of a Bessel function, by the equation that it solves: DLMF 10.2.1. */
static double bessel_curve(bool second, double n, double x, double v, double dx)
{
    if (x == 0 && !second)
        return n == 0 ? -0.5 : fabs(n) == 2 ? 0.25 : 0;
    return (n / x * n / x - 1) * v - dx / x;
}

static double mantissa(double x)
{
    int exponent;
    return frexp(x, &exponent);
}

static double mantissa_slope(double x)
{
    int exponent;
    return isfinite(frexp(x, &exponent)) ? ldexp(1, -exponent) : 1;
}

static double fraction(double x)
{
    double whole;
    return modf(x, &whole);
}

static double rest(double x, double y)
{
    int quotient;
    return remquo(x, y, &quotient);
}

#define ORDER ((int)parameter)
#define WITH of[OF_PARAMETER][i]

/* ---- loops ---- */

/* m: of which machine; `target` is its attribute. */
#define ONE(m, name, parameter_, v_, dx_, dxx_)                                                    \
    TARGET_##m static void m##_values_##name(size_t n, const double *const *of,                    \
                                             double *restrict to)                                  \
    {                                                                                              \
        const double *restrict const at = of[OF_X];                                                \
        for (size_t i = 0; i < n; i++) {                                                           \
            const double x = at[i], parameter = parameter_;                                        \
            (void)parameter;                                                                       \
            to[i] = v_;                                                                            \
        }                                                                                          \
    }                                                                                              \
    TARGET_##m static void m##_slopes_##name(size_t n, const double *const *of,                    \
                                             const double *restrict value, double *const *d)       \
    {                                                                                              \
        const double *restrict const at = of[OF_X];                                                \
        double *restrict const to = d[OF_X];                                                       \
        for (size_t i = 0; i < n; i++) {                                                           \
            const double x = at[i], v = value[i], parameter = parameter_;                          \
            (void)x, (void)v, (void)parameter;                                                     \
            to[i] = dx_;                                                                           \
        }                                                                                          \
    }                                                                                              \
    TARGET_##m static void m##_curves_##name(size_t n, const double *const *of,                    \
                                             const double *restrict value, double *const *d,       \
                                             double *const *dd)                                    \
    {                                                                                              \
        const double *restrict const at = of[OF_X], *restrict const slope = d[OF_X];               \
        double *restrict const to = dd[0];                                                         \
        for (size_t i = 0; i < n; i++) {                                                           \
            const double x = at[i], v = value[i], dx = slope[i], parameter = parameter_;           \
            (void)x, (void)v, (void)dx, (void)parameter;                                           \
            to[i] = dxx_;                                                                          \
        }                                                                                          \
    }
#define TWO(m, name, v_, dx_, dy_, dxx_, dxy_, dyy_)                                               \
    TARGET_##m static void m##_values_##name(size_t n, const double *const *of,                    \
                                             double *restrict to)                                  \
    {                                                                                              \
        const double *restrict const at = of[OF_X], *restrict const other = of[OF_Y];              \
        for (size_t i = 0; i < n; i++) {                                                           \
            const double x = at[i], y = other[i];                                                  \
            to[i] = v_;                                                                            \
        }                                                                                          \
    }                                                                                              \
    TARGET_##m static void m##_slopes_##name(size_t n, const double *const *of,                    \
                                             const double *restrict value, double *const *d)       \
    {                                                                                              \
        const double *restrict const at = of[OF_X], *restrict const other = of[OF_Y];              \
        double *restrict const by_x = d[OF_X], *restrict const by_y = d[OF_Y];                     \
        for (size_t i = 0; i < n; i++) {                                                           \
            const double x = at[i], y = other[i], v = value[i];                                    \
            (void)x, (void)y, (void)v;                                                             \
            by_x[i] = dx_;                                                                         \
            by_y[i] = dy_;                                                                         \
        }                                                                                          \
    }                                                                                              \
    TARGET_##m static void m##_curves_##name(size_t n, const double *const *of,                    \
                                             const double *restrict value, double *const *d,       \
                                             double *const *dd)                                    \
    {                                                                                              \
        const double *restrict const at = of[OF_X], *restrict const other = of[OF_Y];              \
        for (size_t i = 0; i < n; i++) {                                                           \
            const double x = at[i], y = other[i], v = value[i], dx = d[OF_X][i], dy = d[OF_Y][i];  \
            (void)x, (void)y, (void)v, (void)dx, (void)dy;                                         \
            dd[0][i] = dxx_;                                                                       \
            dd[1][i] = dxy_;                                                                       \
            dd[2][i] = dyy_;                                                                       \
        }                                                                                          \
    }
#define FMA(m)                                                                                     \
    TARGET_##m static void m##_values_fma(size_t n, const double *const *of, double *restrict to)  \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            to[i] = fma(of[OF_X][i], of[OF_Y][i], of[OF_Z][i]);                                    \
    }                                                                                              \
    TARGET_##m static void m##_slopes_fma(size_t n, const double *const *of,                       \
                                          const double *restrict value, double *const *d)          \
    {                                                                                              \
        (void)value;                                                                               \
        for (size_t i = 0; i < n; i++) {                                                           \
            d[OF_X][i] = of[OF_Y][i];                                                              \
            d[OF_Y][i] = of[OF_X][i];                                                              \
            d[OF_Z][i] = 1;                                                                        \
        }                                                                                          \
    }                                                                                              \
    TARGET_##m static void m##_curves_fma(size_t n, const double *const *of,                       \
                                          const double *restrict value, double *const *d,          \
                                          double *const *dd)                                       \
    {                                                                                              \
        (void)of, (void)value, (void)d;                                                            \
        for (size_t i = 0; i < n; i++) {                                                           \
            dd[0][i] = dd[2][i] = 0;                                                               \
            dd[1][i] = 1;                                                                          \
        }                                                                                          \
    }

ALWAYS void times_add(size_t n, uint32_t width, double *restrict to, const double *restrict from,
                      const double *restrict d)
{
    for (size_t i = 0; i < n; i++)
        for (uint32_t l = 0; l < width; l++) {
            const double x = from[i * width + l];
            to[i * width + l] += x == 0 ? 0 : x * d[i];
        }
}

ALWAYS void curve_add(size_t n, uint32_t width, double *restrict to, const double *restrict tangent,
                      const double *restrict adjoint, const double *restrict by)
{
    for (size_t i = 0; i < n; i++)
        for (uint32_t l = 0; l < width; l++) {
            const double x = tangent[i * width + l], a = adjoint[i], b = by[i];
            to[i * width + l] += ((x == 0) | (a == 0) | (b == 0)) ? 0 : x * (a * b);
        }
}

typedef struct usual_rule usual_rule_of(double x, double y, double v);

ALWAYS void pull_both(size_t n, const double *restrict x, const double *restrict y,
                      const double *restrict v, const double *restrict adjoint,
                      double *restrict to_x, double *restrict to_y, usual_rule_of *rule_of)
{
    for (size_t i = 0; i < n; i++) {
        const struct usual_rule rule = rule_of(x[i], y[i], v[i]);
        usual_share(&to_x[i], adjoint[i], rule.by[0], rule.unit[0]);
        usual_share(&to_y[i], adjoint[i], rule.by[1], rule.unit[1]);
    }
}

ALWAYS void pull_one(size_t n, const double *restrict x, const double *restrict y,
                     const double *restrict v, const double *restrict adjoint, double *restrict to,
                     unsigned k, usual_rule_of *rule_of)
{
    for (size_t i = 0; i < n; i++) {
        const struct usual_rule rule = rule_of(x[i], y[i], v[i]);
        usual_share(&to[i], adjoint[i], rule.by[k], rule.unit[k]);
    }
}

#define PULL_ONE(m, name)                                                                          \
    TARGET_##m static void m##_pull_##name(size_t n, const double *const *of, const double *v,     \
                                           const double *adjoint, double *const *to)               \
    {                                                                                              \
        if (to[0])                                                                                 \
            pull_one(n, of[OF_X], of[OF_X], v, adjoint, to[0], 0, usual_rule_##name);              \
    }
#define PULL_TWO(m, name)                                                                          \
    TARGET_##m static void m##_pull_##name(size_t n, const double *const *of, const double *v,     \
                                           const double *adjoint, double *const *to)               \
    {                                                                                              \
        if (to[0] && to[1])                                                                        \
            pull_both(n, of[OF_X], of[OF_Y], v, adjoint, to[0], to[1], usual_rule_##name);         \
        else if (to[0])                                                                            \
            pull_one(n, of[OF_X], of[OF_Y], v, adjoint, to[0], 0, usual_rule_##name);              \
        else if (to[1])                                                                            \
            pull_one(n, of[OF_X], of[OF_Y], v, adjoint, to[1], 1, usual_rule_##name);              \
    }
#define PULL_ROW(m, name) [AD_PROGRAM_##name##_] = m##_pull_##name,

/* Widths that there are: 1 and 8. */
#define LANES(m)                                                                                   \
    TARGET_##m static void m##_add_times(size_t n, uint32_t width, double *to, const double *from, \
                                         const double *d)                                          \
    {                                                                                              \
        if (width == 1)                                                                            \
            times_add(n, 1, to, from, d);                                                          \
        else                                                                                       \
            times_add(n, 8, to, from, d);                                                          \
    }                                                                                              \
    TARGET_##m static void m##_add(size_t n, double *restrict to, const double *restrict from)     \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            to[i] += from[i];                                                                      \
    }                                                                                              \
    TARGET_##m static void m##_subtract(size_t n, double *restrict to,                             \
                                        const double *restrict from)                               \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            to[i] -= from[i];                                                                      \
    }                                                                                              \
    TARGET_##m static void m##_add_curve(size_t n, uint32_t width, double *to,                     \
                                         const double *tangent, const double *adjoint,             \
                                         const double *by)                                         \
    {                                                                                              \
        if (width == 1)                                                                            \
            curve_add(n, 1, to, tangent, adjoint, by);                                             \
        else                                                                                       \
            curve_add(n, 8, to, tangent, adjoint, by);                                             \
    }

/* ---- for each machine ---- */

/* A derivative that is always 1 or -1, and second derivatives that are 0, by their text. */
#define ROW(m, n, name, dx, dy, ddx)                                                               \
    [AD_PROGRAM_##name##_] = {.values = m##_values_##name,                                         \
                              .slopes = m##_slopes_##name,                                         \
                              .curves = PROGRAM_IS_ZERO(ddx) ? NULL : m##_curves_##name,           \
                              .arity = n,                                                          \
                              .unit = {AD_WRITTEN_UNIT_(dx), AD_WRITTEN_UNIT_(dy)}},
#define NO_CURVES(xx, xy, yy) (PROGRAM_IS_ZERO(xx) && PROGRAM_IS_ZERO(xy) && PROGRAM_IS_ZERO(yy))
#define ROW_TWO(m, name, dx, dy, xx, xy, yy)                                                       \
    [AD_PROGRAM_##name##_] = {.values = m##_values_##name,                                         \
                              .slopes = m##_slopes_##name,                                         \
                              .curves = NO_CURVES(xx, xy, yy) ? NULL : m##_curves_##name,          \
                              .arity = 2,                                                          \
                              .unit = {AD_WRITTEN_UNIT_(dx), AD_WRITTEN_UNIT_(dy)}},
#define MORE_ROW(m, name, parameter, v, dx, dxx) ROW(m, 1, name, #dx, "?", #dxx)
#define FUNCTIONS(m)                                                                               \
    AD_REAL_FUNCTIONS_(m##_ONE)                                                                    \
    AD_REAL_FUNCTIONS2_(m##_TWO)                                                                   \
    PROGRAM_MORE_ONE(ONE, m)                                                                       \
    PROGRAM_MORE_TWO(TWO, m)                                                                       \
    FMA(m)                                                                                         \
    LANES(m)                                                                                       \
    USUAL_ONE(PULL_ONE, m)                                                                         \
    USUAL_TWO(PULL_TWO, m)                                                                         \
    static program_pull *const m##_pulls[AD_PROGRAM_floor_] = {USUAL_ONE(PULL_ROW, m)              \
                                                                   USUAL_TWO(PULL_ROW, m)};        \
    static const struct program_function m##_functions[] = {                                       \
        AD_REAL_FUNCTIONS_(m##_ROW) AD_REAL_FUNCTIONS2_(m##_ROW2) PROGRAM_MORE_ONE(MORE_ROW, m)    \
            ROW_TWO(m, remquo, "1", "?", "0", "0",                                                 \
                    "0")[AD_PROGRAM_fma_] = {.values = m##_values_fma,                             \
                                             .slopes = m##_slopes_fma,                             \
                                             .curves = m##_curves_fma,                             \
                                             .arity = 3}};                                         \
    static const struct program_loops m##_loops = {m##_functions, m##_pulls,    m##_add_times,     \
                                                   m##_add,       m##_subtract, m##_add_curve};

#define TARGET_portable
#define portable_ONE(name, v, dx, dxx) ONE(portable, name, 0, v, dx, dxx)
#define portable_TWO(name, ...) TWO(portable, name, __VA_ARGS__)
#define portable_ROW(name, v, dx, dxx) ROW(portable, 1, name, #dx, "?", #dxx)
#define portable_ROW2(name, v, dx, dy, xx, xy, yy) ROW_TWO(portable, name, #dx, #dy, #xx, #xy, #yy)
FUNCTIONS(portable)

#ifdef __x86_64__
#define TARGET_avx2 __attribute__((target("avx2,fma")))
#define avx2_ONE(name, v, dx, dxx) ONE(avx2, name, 0, v, dx, dxx)
#define avx2_TWO(name, ...) TWO(avx2, name, __VA_ARGS__)
#define avx2_ROW(name, v, dx, dxx) ROW(avx2, 1, name, #dx, "?", #dxx)
#define avx2_ROW2(name, v, dx, dy, xx, xy, yy) ROW_TWO(avx2, name, #dx, #dy, #xx, #xy, #yy)
FUNCTIONS(avx2)

#ifdef __clang__ /* knows this preference as an option alone */
#define PREFERRED_avx512 ""
#else
#define PREFERRED_avx512 ",prefer-vector-width=512"
#endif
#define TARGET_avx512 __attribute__((target("avx512f,avx512vl,avx512dq,avx2,fma" PREFERRED_avx512)))
#define avx512_ONE(name, v, dx, dxx) ONE(avx512, name, 0, v, dx, dxx)
#define avx512_TWO(name, ...) TWO(avx512, name, __VA_ARGS__)
#define avx512_ROW(name, v, dx, dxx) ROW(avx512, 1, name, #dx, "?", #dxx)
#define avx512_ROW2(name, v, dx, dy, xx, xy, yy) ROW_TWO(avx512, name, #dx, #dy, #xx, #xy, #yy)
FUNCTIONS(avx512)
#endif

const struct program_loops *ad_program_loops(void)
{
#ifdef __x86_64__
    const int level = kernel_isa_level();
    if (KERNEL_HAS_AVX512 && level == 2)
        return &avx512_loops;
    if (KERNEL_HAS_AVX2 && level == 1)
        return &avx2_loops;
#endif
    return &portable_loops;
}
