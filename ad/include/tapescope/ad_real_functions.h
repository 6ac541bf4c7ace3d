/* ad_real_functions.h: arithmetic and the functions of <math.h> on ad_real. Included by ad_real.h.
 *
 * An operand is an ad_real, a formula, or any number; the result is a formula, to be assigned by
 * ad_set or ad_real_of. What holds at the ends of the domains is in the table of docs/SCALARS.md.
 */
#ifndef TAPESCOPE_AD_REAL_FUNCTIONS_H
#define TAPESCOPE_AD_REAL_FUNCTIONS_H

#include <math.h>

#include <tapescope/ad_real_expression.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ln |Gamma(x)| without the global variable of libm's, and its derivative. */
AD_API double ad_lgamma_(double x);
AD_API double ad_digamma_(double x);
/* 10^x; Bessel functions of the first and second kind of order n, and their derivatives. */
AD_API double ad_exp10_(double x);
AD_API double ad_bessel_(bool second, int n, double x);
AD_API double ad_bessel_slope_(bool second, int n, double x);

/* Each row: name, value v of x, derivative by x. The derivative of a constant is not computed. */
#define AD_REAL_FUNCTIONS_(X)                                                                      \
    X(neg, -x, -1.0)                                                                               \
    X(square, x *x, 2 * x)                                                                         \
    X(reciprocal, 1 / x, -v * v)                                                                   \
    X(sqrt, sqrt(x), 0.5 / v)                                                                      \
    X(cbrt, cbrt(x), 1 / (3 * v * v))                                                              \
    X(exp, exp(x), v)                                                                              \
    X(exp2, exp2(x), v * 0.69314718055994530942)                                                   \
    X(exp10, ad_exp10_(x), v * 2.30258509299404568402)                                             \
    X(expm1, expm1(x), exp(x))                                                                     \
    X(log, log(x), 1 / x)                                                                          \
    X(log2, log2(x), 1.44269504088896340736 / x)                                                   \
    X(log10, log10(x), 0.43429448190325182765 / x)                                                 \
    X(log1p, log1p(x), 1 / (1 + x))                                                                \
    X(sin, sin(x), cos(x))                                                                         \
    X(cos, cos(x), -sin(x))                                                                        \
    X(tan, tan(x), 1 + v * v)                                                                      \
    X(asin, asin(x), 1 / sqrt((1 - x) * (1 + x)))                                                  \
    X(acos, acos(x), -1 / sqrt((1 - x) * (1 + x)))                                                 \
    X(atan, atan(x), 1 / (1 + x * x))                                                              \
    X(sinh, sinh(x), cosh(x))                                                                      \
    X(cosh, cosh(x), sinh(x))                                                                      \
    X(tanh, tanh(x), (1 - v) * (1 + v))                                                            \
    X(asinh, asinh(x), 1 / hypot(1.0, x))                                                          \
    X(acosh, acosh(x), 1 / sqrt(x - 1) / sqrt(x + 1))                                              \
    X(atanh, atanh(x), 1 / ((1 - x) * (1 + x)))                                                    \
    X(erf, erf(x), 1.12837916709551257390 * exp(-x * x))                                           \
    X(erfc, erfc(x), -1.12837916709551257390 * exp(-x * x))                                        \
    X(lgamma, ad_lgamma_(x), ad_digamma_(x))                                                       \
    X(tgamma, tgamma(x), v *ad_digamma_(x))                                                        \
    X(fabs, fabs(x), (double)((x > 0) - (x < 0)))

#define AD_DEFINE_(name_, v_, dx_)                                                                 \
    AD_INLINE ad_expr ad_expr_##name_##_(ad_expr a)                                                \
    {                                                                                              \
        const double x = a.value, v = v_;                                                          \
        return a.n ? ad_chain1_(v, a, dx_) : ad_expr_double_(v);                                   \
    }
AD_REAL_FUNCTIONS_(AD_DEFINE_)
#undef AD_DEFINE_

/* a / h^2: of an angle v at infinite distance h, 0. */
AD_INLINE double ad_turn_(double v, double a, double h)
{
    return v == v && isinf(h) ? 0 : a / h / h;
}

/* Two operands: value v of x and y, derivatives by x and by y. */
#define AD_REAL_FUNCTIONS2_(X)                                                                     \
    X(add, x + y, 1, 1)                                                                            \
    X(sub, x - y, 1, -1)                                                                           \
    X(mul, x *y, y, x)                                                                             \
    X(div, x / y, 1 / y, -v / y)                                                                   \
    X(pow, pow(x, y), y == 0 ? 0 : y * pow(x, y - 1), v == 0 ? 0 : v * log(x))                     \
    X(hypot, hypot(x, y), x / v, y / v)                                                            \
    X(atan2, atan2(x, y), ad_turn_(v, y, hypot(x, y)), -ad_turn_(v, x, hypot(x, y)))               \
    X(fmod, fmod(x, y), 1, -rint((x - v) / y))                                                     \
    X(remainder, remainder(x, y), 1, -rint((x - v) / y))                                           \
    X(fmax, fmax(x, y), ad_share_(x > y, x == y, y != y), ad_share_(y > x, x == y, x != x))        \
    X(fmin, fmin(x, y), ad_share_(x < y, x == y, y != y), ad_share_(y < x, x == y, x != x))        \
    X(fdim, fdim(x, y), x > y ? 1 : 0, x > y ? -1 : 0)                                             \
    X(copysign, copysign(x, y), x == 0 ? 0 : signbit(x) == signbit(y) ? 1 : -1, 0)

/* The chosen operand has the derivative; both have half of it where they are equal. */
AD_INLINE double ad_share_(bool chosen, bool tie, bool other_is_nan)
{
    return chosen || other_is_nan ? 1 : tie ? 0.5 : 0;
}

#define AD_DEFINE_(name_, v_, dx_, dy_)                                                            \
    AD_INLINE ad_expr ad_expr_##name_##_(ad_expr a, ad_expr b)                                     \
    {                                                                                              \
        const double x = a.value, y = b.value, v = v_;                                             \
        return ad_chain2_(v, a, a.n ? (double)(dx_) : 0, b, b.n ? (double)(dy_) : 0);              \
    }
AD_REAL_FUNCTIONS2_(AD_DEFINE_)
#undef AD_DEFINE_

AD_INLINE ad_expr ad_expr_fma_(ad_expr a, ad_expr b, ad_expr c)
{
    return ad_chain3_(fma(a.value, b.value, c.value), a, b.value, b, a.value, c, 1);
}

AD_INLINE ad_expr ad_expr_ldexp_(ad_expr a, long long exponent)
{
    /* No double is multiplied by 2^5000 or its inverse without being 0 or inf then. */
    const int e = exponent > 5000 ? 5000 : exponent < -5000 ? -5000 : (int)exponent;
    return ad_chain1_(ldexp(a.value, e), a, ldexp(1.0, e));
}

AD_INLINE ad_expr ad_expr_bessel_(bool second, int n, ad_expr a)
{
    const double x = a.value, v = ad_bessel_(second, n, x);
    return a.n ? ad_chain1_(v, a, ad_bessel_slope_(second, n, x)) : ad_expr_double_(v);
}

AD_INLINE ad_expr ad_expr_modf_(ad_expr a, double *whole)
{
    return ad_chain1_(modf(a.value, whole), a, 1);
}

AD_INLINE ad_expr ad_expr_frexp_(ad_expr a, int *exponent)
{
    const double v = frexp(a.value, exponent);
    return ad_chain1_(v, a, isfinite(v) ? ldexp(1.0, -*exponent) : 1);
}

AD_INLINE ad_expr ad_expr_remquo_(ad_expr a, ad_expr b, int *quotient)
{
    const double x = a.value, y = b.value, v = remquo(x, y, quotient);
    return ad_chain2_(v, a, 1, b, b.n ? -rint((x - v) / y) : 0);
}

AD_INLINE void ad_sincos_(ad_expr a, ad_real *s, ad_real *c, uint32_t site)
{
    const double sine = sin(a.value), cosine = cos(a.value);
    *s = ad_statement_(ad_chain1_(sine, a, cosine), site);
    *c = ad_statement_(ad_chain1_(cosine, a, -sine), site);
}

#ifdef __cplusplus
}
#endif

/* ---- arithmetic ---- */

#define ad_real_add(a, b) ad_expr_add_(AD_EXPR(a), AD_EXPR(b))
#define ad_real_sub(a, b) ad_expr_sub_(AD_EXPR(a), AD_EXPR(b))
#define ad_real_mul(a, b) ad_expr_mul_(AD_EXPR(a), AD_EXPR(b))
#define ad_real_div(a, b) ad_expr_div_(AD_EXPR(a), AD_EXPR(b))
#define ad_real_neg(x) ad_expr_neg_(AD_EXPR(x))
/* x^2 and 1/x: one operand, where mul(x, x) has two until it is assigned. */
#define ad_real_square(x) ad_expr_square_(AD_EXPR(x))
#define ad_real_reciprocal(x) ad_expr_reciprocal_(AD_EXPR(x))

/* ---- <math.h> ---- */

#define ad_real_sqrt(x) ad_expr_sqrt_(AD_EXPR(x))
#define ad_real_cbrt(x) ad_expr_cbrt_(AD_EXPR(x))
#define ad_real_exp(x) ad_expr_exp_(AD_EXPR(x))
#define ad_real_exp2(x) ad_expr_exp2_(AD_EXPR(x))
#define ad_real_exp10(x) ad_expr_exp10_(AD_EXPR(x))
#define ad_real_expm1(x) ad_expr_expm1_(AD_EXPR(x))
#define ad_real_log(x) ad_expr_log_(AD_EXPR(x))
#define ad_real_log2(x) ad_expr_log2_(AD_EXPR(x))
#define ad_real_log10(x) ad_expr_log10_(AD_EXPR(x))
#define ad_real_log1p(x) ad_expr_log1p_(AD_EXPR(x))
#define ad_real_sin(x) ad_expr_sin_(AD_EXPR(x))
#define ad_real_cos(x) ad_expr_cos_(AD_EXPR(x))
#define ad_real_tan(x) ad_expr_tan_(AD_EXPR(x))
#define ad_real_asin(x) ad_expr_asin_(AD_EXPR(x))
#define ad_real_acos(x) ad_expr_acos_(AD_EXPR(x))
#define ad_real_atan(x) ad_expr_atan_(AD_EXPR(x))
#define ad_real_sinh(x) ad_expr_sinh_(AD_EXPR(x))
#define ad_real_cosh(x) ad_expr_cosh_(AD_EXPR(x))
#define ad_real_tanh(x) ad_expr_tanh_(AD_EXPR(x))
#define ad_real_asinh(x) ad_expr_asinh_(AD_EXPR(x))
#define ad_real_acosh(x) ad_expr_acosh_(AD_EXPR(x))
#define ad_real_atanh(x) ad_expr_atanh_(AD_EXPR(x))
#define ad_real_erf(x) ad_expr_erf_(AD_EXPR(x))
#define ad_real_erfc(x) ad_expr_erfc_(AD_EXPR(x))
#define ad_real_lgamma(x) ad_expr_lgamma_(AD_EXPR(x))
#define ad_real_tgamma(x) ad_expr_tgamma_(AD_EXPR(x))
#define ad_real_fabs(x) ad_expr_fabs_(AD_EXPR(x))
#define ad_real_pow(x, y) ad_expr_pow_(AD_EXPR(x), AD_EXPR(y))
#define ad_real_hypot(x, y) ad_expr_hypot_(AD_EXPR(x), AD_EXPR(y))
#define ad_real_atan2(y, x) ad_expr_atan2_(AD_EXPR(y), AD_EXPR(x))
#define ad_real_fmod(x, y) ad_expr_fmod_(AD_EXPR(x), AD_EXPR(y))
#define ad_real_remainder(x, y) ad_expr_remainder_(AD_EXPR(x), AD_EXPR(y))
#define ad_real_fmax(x, y) ad_expr_fmax_(AD_EXPR(x), AD_EXPR(y))
#define ad_real_fmin(x, y) ad_expr_fmin_(AD_EXPR(x), AD_EXPR(y))
#define ad_real_fdim(x, y) ad_expr_fdim_(AD_EXPR(x), AD_EXPR(y))
#define ad_real_copysign(x, y) ad_expr_copysign_(AD_EXPR(x), AD_EXPR(y))
#define ad_real_fma(x, y, z) ad_expr_fma_(AD_EXPR(x), AD_EXPR(y), AD_EXPR(z))
/* exponent: of an integer type, else it does not compile. */
#define ad_real_ldexp(x, exponent) ad_expr_ldexp_(AD_EXPR(x), AD_WHOLE_(exponent))
#define ad_real_scalbn(x, exponent) ad_expr_ldexp_(AD_EXPR(x), AD_WHOLE_(exponent))
#define ad_real_scalbln(x, exponent) ad_expr_ldexp_(AD_EXPR(x), AD_WHOLE_(exponent))
/* The part behind the point; *whole: double *, the rest. */
#define ad_real_modf(x, whole) ad_expr_modf_(AD_EXPR(x), whole)
/* The mantissa; *exponent: int *, which is constant between powers of 2. */
#define ad_real_frexp(x, exponent) ad_expr_frexp_(AD_EXPR(x), exponent)
#define ad_real_remquo(x, y, quotient) ad_expr_remquo_(AD_EXPR(x), AD_EXPR(y), quotient)
/* POSIX: Bessel functions; n: an int. J_n' = (J_n-1 - J_n+1) / 2, J_0' = -J_1, and so for Y: DLMF
 * 10.6.1 and 10.6.3, https://dlmf.nist.gov/10.6. */
#define ad_real_j0(x) ad_expr_bessel_(false, 0, AD_EXPR(x))
#define ad_real_j1(x) ad_expr_bessel_(false, 1, AD_EXPR(x))
#define ad_real_jn(n, x) ad_expr_bessel_(false, (int)AD_WHOLE_(n), AD_EXPR(x))
#define ad_real_y0(x) ad_expr_bessel_(true, 0, AD_EXPR(x))
#define ad_real_y1(x) ad_expr_bessel_(true, 1, AD_EXPR(x))
#define ad_real_yn(n, x) ad_expr_bessel_(true, (int)AD_WHOLE_(n), AD_EXPR(x))
/* GNU: sets *sine and *cosine, two statements. */
#define ad_real_sincos(x, sine, cosine)                                                            \
    ad_sincos_(AD_EXPR(x), AD_TARGET_(sine), AD_TARGET_(cosine), AD_STATEMENT_SITE_)

/* Piecewise constant, so a double, through which no gradient flows. */
#define ad_real_floor(x) floor(AD_VALUE_(x))
#define ad_real_ceil(x) ceil(AD_VALUE_(x))
#define ad_real_trunc(x) trunc(AD_VALUE_(x))
#define ad_real_round(x) round(AD_VALUE_(x))
#define ad_real_rint(x) rint(AD_VALUE_(x))
#define ad_real_nearbyint(x) nearbyint(AD_VALUE_(x))
#define ad_real_logb(x) logb(AD_VALUE_(x))
#define ad_real_ilogb(x) ilogb(AD_VALUE_(x)) /* an int */

/* ---- comparisons of values ---- */

#define ad_real_less(a, b) (AD_VALUE_(a) < AD_VALUE_(b))
#define ad_real_less_equal(a, b) (AD_VALUE_(a) <= AD_VALUE_(b))
#define ad_real_greater(a, b) (AD_VALUE_(a) > AD_VALUE_(b))
#define ad_real_greater_equal(a, b) (AD_VALUE_(a) >= AD_VALUE_(b))
#define ad_real_equal(a, b) (AD_VALUE_(a) == AD_VALUE_(b))
#define ad_real_not_equal(a, b) (AD_VALUE_(a) != AD_VALUE_(b))

#endif
