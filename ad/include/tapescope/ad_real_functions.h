/* ad_real_functions.h: arithmetic and the functions of <math.h> on ad_real. Included by ad_real.h.
 *
 * An operand is an ad_real, a formula, or any number; the result is a formula, to be assigned by
 * ad_set or ad_real_of. Values are those of libm, derivatives those of the formula. At the ends of
 * the domains, where that is not obvious, the derivative is
 *
 *     sqrt            inf at 0, -inf at -0, NaN below 0
 *     cbrt            inf at 0 and at -0
 *     reciprocal      -inf at 0 and at -0
 *     log, log2, log10
 *                     inf at 0, -inf at -0; below 0 the value is NaN, the derivative 1/x all the
 *                     same
 *     log1p           inf at -1
 *     asin, acos      inf and -inf at 1 and -1, NaN beyond
 *     acosh           inf at 1, NaN below
 *     atanh           inf at 1 and -1
 *     atan, asinh, tanh, erf, erfc
 *                     0 at infinities
 *     exp, exp2, exp10, expm1
 *                     0 at -inf, inf at inf
 *     sin, cos, tan   NaN at infinities
 *     lgamma          digamma: -inf at 0, NaN at negative integers, inf at inf
 *     tgamma          value times digamma: -inf at 0
 *     fabs            sign of x: 0 at 0, at -0 and at NaN
 *     floor, ceil, trunc, round, rint, nearbyint, logb, ilogb
 *                     none: they give a double or int
 *     div             by 0: inf or -inf as 1/b has it; 0/0 gives NaN by b
 *     pow(a, b)       by a: 0 where b is 0; by b: 0 where the value is 0, -inf at pow(0, 0), NaN
 *                     where a < 0
 *     hypot           NaN where both are 0, and by an infinite operand
 *     atan2           NaN where both are 0; 0 where one is infinite
 *     fmod, remainder
 *                     by a: 1; by b: minus the quotient that was subtracted, also at a jump; NaN
 *                     where b is 0
 *     fmax, fmin      1 for the operand taken, the other has none; 1/2 each where they are equal;
 *                     beside NaN the other is taken; 1 each where both are NaN
 *     fdim            0 where the value is 0 or NaN
 *     copysign(a, b)  by a: 1 or -1, 0 at 0; by b: 0
 *     ldexp, scalbn, scalbln
 *                     2^exponent; an exponent that is no integer type does not compile
 *     modf(x, &whole)
 *                     1, also at integers and infinities; whole is a double
 *     frexp(x, &exponent)
 *                     2^-exponent, also at a power of 2, inf below 2^-1023; 1 at 0, infinities and
 *                     NaN
 *     remquo(x, y, &quotient)
 *                     as remainder
 *     j0, j1, jn(n, x)
 *                     0 at infinities
 *     y0, y1, yn(n, x)
 *                     inf at 0 (-inf for odd n < 0), 0 at inf, NaN below 0
 */
#ifndef TAPESCOPE_AD_REAL_FUNCTIONS_H
#define TAPESCOPE_AD_REAL_FUNCTIONS_H

#include <math.h>

#include <tapescope/ad_real_expression.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ln |Gamma(x)| without the global variable of libm's, and its first two derivatives. */
AD_API double ad_lgamma_(double x);
AD_API double ad_digamma_(double x);
AD_API double ad_trigamma_(double x);
/* 10^x; Bessel functions of the first and second kind of order n, and their derivatives. */
AD_API double ad_exp10_(double x);
AD_API double ad_bessel_(bool second, int n, double x);
AD_API double ad_bessel_slope_(bool second, int n, double x);

/* Each row: name, value v of x, derivative dx by x, derivative of that. The derivative of a
 * constant is not computed; one that is written 1 or -1 is not stored. Second ones are for
 * programs (ad_real_program.h). */
#define AD_REAL_FUNCTIONS_(X)                                                                      \
    X(neg, -x, -1, 0)                                                                              \
    X(square, x *x, 2 * x, 2)                                                                      \
    X(reciprocal, 1 / x, -v * v, -2 * v * dx)                                                      \
    X(sqrt, sqrt(x), 0.5 / v, -2 * dx * dx * dx)                                                   \
    X(cbrt, cbrt(x), 1 / (3 * v * v), -2 * dx * dx / v)                                            \
    X(exp, exp(x), v, v)                                                                           \
    X(exp2, exp2(x), v * 0.69314718055994530942, dx * 0.69314718055994530942)                      \
    X(exp10, ad_exp10_(x), v * 2.30258509299404568402, dx * 2.30258509299404568402)                \
    X(expm1, expm1(x), exp(x), dx)                                                                 \
    X(log, log(x), 1 / x, -dx * dx)                                                                \
    X(log2, log2(x), 1.44269504088896340736 / x, -dx / x)                                          \
    X(log10, log10(x), 0.43429448190325182765 / x, -dx / x)                                        \
    X(log1p, log1p(x), 1 / (1 + x), -dx * dx)                                                      \
    X(sin, sin(x), cos(x), -v)                                                                     \
    X(cos, cos(x), -sin(x), -v)                                                                    \
    X(tan, tan(x), 1 + v * v, 2 * v * dx)                                                          \
    X(asin, asin(x), 1 / sqrt((1 - x) * (1 + x)), x * dx * dx * dx)                                \
    X(acos, acos(x), -1 / sqrt((1 - x) * (1 + x)), x * dx * dx * dx)                               \
    X(atan, atan(x), 1 / (1 + x * x), -2 * x * dx * dx)                                            \
    X(sinh, sinh(x), cosh(x), v)                                                                   \
    X(cosh, cosh(x), sinh(x), v)                                                                   \
    X(tanh, tanh(x), (1 - v) * (1 + v), -2 * v * dx)                                               \
    X(asinh, asinh(x), 1 / hypot(1.0, x), -x * dx * dx * dx)                                       \
    X(acosh, acosh(x), 1 / sqrt(x - 1) / sqrt(x + 1), -x * dx * dx * dx)                           \
    X(atanh, atanh(x), 1 / ((1 - x) * (1 + x)), 2 * x * dx * dx)                                   \
    X(erf, erf(x), 1.12837916709551257390 * exp(-x * x), -2 * x * dx)                              \
    X(erfc, erfc(x), -1.12837916709551257390 * exp(-x * x), -2 * x * dx)                           \
    X(lgamma, ad_lgamma_(x), ad_digamma_(x), ad_trigamma_(x))                                      \
    X(tgamma, tgamma(x), v *ad_digamma_(x), dx *(dx / v) + v * ad_trigamma_(x))                    \
    X(fabs, fabs(x), (double)((x > 0) - (x < 0)), 0)

/* Two operands: value v of x and y, derivatives dx by x and dy by y, then those of dx by x, of
 * dx by y, and of dy by y. */
#define AD_REAL_FUNCTIONS2_(X)                                                                     \
    X(add, x + y, 1, 1, 0, 0, 0)                                                                   \
    X(sub, x - y, 1, -1, 0, 0, 0)                                                                  \
    X(mul, x *y, y, x, 0, 1, 0)                                                                    \
    X(div, x / y, 1 / y, -v / y, 0, -dx * dx, -2 * dy / y)                                         \
    X(pow, pow(x, y), y == 0 ? 0 : y * pow(x, y - 1), v == 0 ? 0 : v * log(x),                     \
      y == 0 || y == 1 ? 0 : y * (y - 1) * pow(x, y - 2),                                          \
      v == 0 ? 0 : pow(x, y - 1) * (1 + y * log(x)), v == 0 ? 0 : v * log(x) * log(x))             \
    X(hypot, hypot(x, y), x / v, y / v, dy * dy / v, -dx * dy / v, dx * dx / v)                    \
    X(atan2, atan2(x, y), ad_turn_(v, y, hypot(x, y)), -ad_turn_(v, x, hypot(x, y)), 2 * dx * dy,  \
      dy * dy - dx * dx, -2 * dx * dy)                                                             \
    X(fmod, fmod(x, y), 1, -rint((x - v) / y), 0, 0, 0)                                            \
    X(remainder, remainder(x, y), 1, -rint((x - v) / y), 0, 0, 0)                                  \
    X(fmax, fmax(x, y), ad_share_(x > y, x == y, y != y), ad_share_(y > x, x == y, x != x), 0, 0,  \
      0)                                                                                           \
    X(fmin, fmin(x, y), ad_share_(x < y, x == y, y != y), ad_share_(y < x, x == y, x != x), 0, 0,  \
      0)                                                                                           \
    X(fdim, fdim(x, y), x > y ? 1 : 0, x > y ? -1 : 0, 0, 0, 0)                                    \
    X(copysign, copysign(x, y), x == 0 ? 0 : signbit(x) == signbit(y) ? 1 : -1, 0, 0, 0, 0)

/* Numbers of the functions, and of what is asked of values, in programs (ad_real_program.h). */
#define AD_NUMBER_(name, ...) AD_PROGRAM_##name##_,
enum {
    AD_PROGRAM_NONE_,
    AD_REAL_FUNCTIONS_(AD_NUMBER_) AD_REAL_FUNCTIONS2_(AD_NUMBER_) AD_PROGRAM_ldexp_,
    AD_PROGRAM_jn_,
    AD_PROGRAM_yn_,
    AD_PROGRAM_modf_,
    AD_PROGRAM_frexp_,
    AD_PROGRAM_remquo_,
    AD_PROGRAM_fma_,
    AD_PROGRAM_floor_,
    AD_PROGRAM_ceil_,
    AD_PROGRAM_trunc_,
    AD_PROGRAM_round_,
    AD_PROGRAM_rint_,
    AD_PROGRAM_nearbyint_,
    AD_PROGRAM_logb_,
    AD_PROGRAM_ilogb_,
    AD_PROGRAM_read_,
    AD_PROGRAM_less_,
    AD_PROGRAM_less_equal_,
    AD_PROGRAM_greater_,
    AD_PROGRAM_greater_equal_,
    AD_PROGRAM_equal_,
    AD_PROGRAM_not_equal_
};
#undef AD_NUMBER_

#define AD_DEFINE_(name_, v_, dx_, dxx_)                                                           \
    AD_FORMULA_ ad_rule1_ ad_rule_##name_##_(double x, bool active)                                \
    {                                                                                              \
        const double v = v_;                                                                       \
        return AD_RULE1_IS_(ad_rule1_of_(v, active ? dx_ : 0, AD_WRITTEN_UNIT_(#dx_)), name_, 0);  \
    }
AD_REAL_FUNCTIONS_(AD_DEFINE_)
#undef AD_DEFINE_

/* a / h^2: of an angle v at infinite distance h, 0. */
AD_INLINE double ad_turn_(double v, double a, double h)
{
    return v == v && isinf(h) ? 0 : a / h / h;
}

/* The chosen operand has the derivative; both have half of it where they are equal. */
AD_INLINE double ad_share_(bool chosen, bool tie, bool other_is_nan)
{
    return chosen || other_is_nan ? 1 : tie ? 0.5 : 0;
}

#define AD_DEFINE_(name_, v_, dx_, dy_, dxx_, dxy_, dyy_)                                          \
    AD_FORMULA_ ad_rule2_ ad_rule_##name_##_(double x, double y, bool x_active, bool y_active)     \
    {                                                                                              \
        const double v = v_;                                                                       \
        return AD_RULE2_IS_(ad_rule2_of_(v, x_active ? (double)(dx_) : 0,                          \
                                         y_active ? (double)(dy_) : 0, AD_WRITTEN_UNIT_(#dx_),     \
                                         AD_WRITTEN_UNIT_(#dy_)),                                  \
                            name_, 0);                                                             \
    }
AD_REAL_FUNCTIONS2_(AD_DEFINE_)
#undef AD_DEFINE_

AD_FORMULA_ ad_rule1_ ad_rule_ldexp_(double x, bool active, long long exponent)
{
    /* No double is multiplied by 2^5000 or its inverse without being 0 or inf then. */
    const int e = exponent > 5000 ? 5000 : exponent < -5000 ? -5000 : (int)exponent;
    return AD_RULE1_IS_(ad_rule1_of_(ldexp(x, e), active ? ldexp(1.0, e) : 0, 0), ldexp, e);
}

AD_FORMULA_ ad_rule1_ ad_rule_jn_(double x, bool active, int n)
{
    return AD_RULE1_IS_(
        ad_rule1_of_(ad_bessel_(false, n, x), active ? ad_bessel_slope_(false, n, x) : 0, 0), jn,
        n);
}

AD_FORMULA_ ad_rule1_ ad_rule_yn_(double x, bool active, int n)
{
    return AD_RULE1_IS_(
        ad_rule1_of_(ad_bessel_(true, n, x), active ? ad_bessel_slope_(true, n, x) : 0, 0), yn, n);
}

AD_FORMULA_ ad_rule1_ ad_rule_modf_(double x, bool active, double *whole)
{
    (void)active;
    return AD_RULE1_IS_(ad_rule1_of_(modf(x, whole), 1, 1), modf, 0);
}

AD_FORMULA_ ad_rule1_ ad_rule_frexp_(double x, bool active, int *exponent)
{
    const double v = frexp(x, exponent);
    return AD_RULE1_IS_(ad_rule1_of_(v, active && isfinite(v) ? ldexp(1.0, -*exponent) : 1, 0),
                        frexp, 0);
}

AD_FORMULA_ ad_rule2_ ad_rule_remquo_(double x, double y, bool x_active, bool y_active,
                                      int *quotient)
{
    const double v = remquo(x, y, quotient);
    (void)x_active;
    return AD_RULE2_IS_(ad_rule2_of_(v, 1, y_active ? -rint((x - v) / y) : 0, 1, 0), remquo, 0);
}

#ifdef __cplusplus
}
#endif

/* What is asked of values, and not recorded: a program has to know of it. */
#if AD_REAL_PROGRAM
#define AD_ASK_(name, a, site) ad_program_ask_(AD_PROGRAM_##name##_, a, site)
#define AD_COMPARE_(name, a, operation, b, site)                                                   \
    ad_program_compare_(AD_PROGRAM_##name##_, a, b, site)
#else
#define AD_ASK_(name, a, site) name((double)(a).value)
#define AD_COMPARE_(name, a, operation, b, site) ((a).value operation(b).value)
#endif

#ifdef __cplusplus

/* The functions that C has as macros below; what is special about one is said there. */
#define AD_DEFINE_(name, v, dx, dxx)                                                               \
    template <class X> AD_INLINE AD_MUST_USE auto ad_real_##name(const X &x)                       \
    {                                                                                              \
        const auto a = ad_lift_(x);                                                                \
        return ad_scale_(a, ad_rule_##name##_(a.value, AD_ACTIVE_(a)));                            \
    }
AD_REAL_FUNCTIONS_(AD_DEFINE_)
#undef AD_DEFINE_

#define AD_DEFINE_(name, v, dx, dy, dxx, dxy, dyy)                                                 \
    template <class X, class Y> AD_INLINE AD_MUST_USE auto ad_real_##name(const X &x, const Y &y)  \
    {                                                                                              \
        const auto a = ad_lift_(x);                                                                \
        const auto b = ad_lift_(y);                                                                \
        return ad_join_(a, b, ad_rule_##name##_(a.value, b.value, AD_ACTIVE_(a), AD_ACTIVE_(b)));  \
    }
AD_REAL_FUNCTIONS2_(AD_DEFINE_)
#undef AD_DEFINE_

/* Of an operand and something that is none. */
#define AD_DEFINE_(name, parameters, more)                                                         \
    template <class X> AD_INLINE AD_MUST_USE auto ad_real_##name parameters                        \
    {                                                                                              \
        const auto a = ad_lift_(x);                                                                \
        return ad_scale_(a, more);                                                                 \
    }
AD_DEFINE_(modf, (const X &x, double *whole), ad_rule_modf_(a.value, AD_ACTIVE_(a), whole))
AD_DEFINE_(frexp, (const X &x, int *exponent), ad_rule_frexp_(a.value, AD_ACTIVE_(a), exponent))
AD_DEFINE_(j0, (const X &x), ad_rule_jn_(a.value, AD_ACTIVE_(a), 0))
AD_DEFINE_(j1, (const X &x), ad_rule_jn_(a.value, AD_ACTIVE_(a), 1))
AD_DEFINE_(y0, (const X &x), ad_rule_yn_(a.value, AD_ACTIVE_(a), 0))
AD_DEFINE_(y1, (const X &x), ad_rule_yn_(a.value, AD_ACTIVE_(a), 1))
#undef AD_DEFINE_

#define AD_DEFINE_(name, first, second, rule, n)                                                   \
    template <class X, class N> AD_INLINE AD_MUST_USE auto ad_real_##name(first, second)           \
    {                                                                                              \
        const auto a = ad_lift_(x);                                                                \
        return ad_scale_(a, rule(a.value, AD_ACTIVE_(a), n));                                      \
    }
AD_DEFINE_(ldexp, const X &x, N exponent, ad_rule_ldexp_, ad_whole_(exponent))
AD_DEFINE_(scalbn, const X &x, N exponent, ad_rule_ldexp_, ad_whole_(exponent))
AD_DEFINE_(scalbln, const X &x, N exponent, ad_rule_ldexp_, ad_whole_(exponent))
AD_DEFINE_(jn, N n, const X &x, ad_rule_jn_, (int)ad_whole_(n))
AD_DEFINE_(yn, N n, const X &x, ad_rule_yn_, (int)ad_whole_(n))
#undef AD_DEFINE_

template <class X, class Y>
AD_INLINE AD_MUST_USE auto ad_real_remquo(const X &x, const Y &y, int *quotient)
{
    const auto a = ad_lift_(x);
    const auto b = ad_lift_(y);
    return ad_join_(a, b,
                    ad_rule_remquo_(a.value, b.value, AD_ACTIVE_(a), AD_ACTIVE_(b), quotient));
}

template <class X, class Y, class Z>
AD_INLINE AD_MUST_USE auto ad_real_fma(const X &x, const Y &y, const Z &z)
{
    const auto a = ad_lift_(x);
    const auto b = ad_lift_(y);
    const auto c = ad_lift_(z);
#if AD_REAL_PROGRAM
    return ad_program_fma_(a, b, c, AD_STATEMENT_SITE_);
#else
    const auto ab = ad_join_(a, b, ad_rule2_of_(0, b.value, a.value, 0, 0));
    return ad_join_(ab, c, ad_rule2_of_(fma(a.value, b.value, c.value), 1, 1, 1, 1));
#endif
}

template <class X>
AD_INLINE void ad_real_sincos(const X &x, ad_real *sine, ad_real *cosine,
                              unsigned ad_line_ = __builtin_LINE())
{
    const auto a = ad_lift_(x);
    const double s = sin(a.value), c = cos(a.value);
    const uint32_t site = AD_CALL_SITE_;
    *sine = ad_statement_(ad_scale_(a, AD_RULE1_IS_(ad_rule1_of_(s, c, 0), sin, 0)), site);
    *cosine = ad_statement_(ad_scale_(a, AD_RULE1_IS_(ad_rule1_of_(c, -s, 0), cos, 0)), site);
}

#define AD_DEFINE_(name, type)                                                                     \
    template <class X> AD_INLINE type ad_real_##name(const X &x)                                   \
    {                                                                                              \
        return (type)AD_ASK_(name, ad_lift_(x), AD_STATEMENT_SITE_);                               \
    }
AD_DEFINE_(floor, double)
AD_DEFINE_(ceil, double)
AD_DEFINE_(trunc, double)
AD_DEFINE_(round, double)
AD_DEFINE_(rint, double)
AD_DEFINE_(nearbyint, double)
AD_DEFINE_(logb, double)
AD_DEFINE_(ilogb, int)
#undef AD_DEFINE_

#define AD_DEFINE_(name, operation)                                                                \
    template <class X, class Y> AD_INLINE bool ad_real_##name(const X &x, const Y &y)              \
    {                                                                                              \
        return AD_COMPARE_(name, ad_lift_(x), operation, ad_lift_(y), AD_STATEMENT_SITE_);         \
    }
AD_DEFINE_(less, <)
AD_DEFINE_(less_equal, <=)
AD_DEFINE_(greater, >)
AD_DEFINE_(greater_equal, >=)
AD_DEFINE_(equal, ==)
AD_DEFINE_(not_equal, !=)
#undef AD_DEFINE_

/* Sums and products of any number of operands, from the left to the right. */
template <class X> AD_INLINE AD_MUST_USE auto ad_real_sum_of(const X &x)
{
    return ad_lift_(x);
}

template <class X, class Y, class... More>
AD_INLINE AD_MUST_USE auto ad_real_sum_of(const X &x, const Y &y, const More &...more)
{
    return ad_real_sum_of(ad_real_add(x, y), more...);
}

template <class X> AD_INLINE AD_MUST_USE auto ad_real_product_of(const X &x)
{
    return ad_lift_(x);
}

template <class X, class Y, class... More>
AD_INLINE AD_MUST_USE auto ad_real_product_of(const X &x, const Y &y, const More &...more)
{
    return ad_real_product_of(ad_real_mul(x, y), more...);
}

#else

/* ---- arithmetic ---- */

#define ad_real_add(a, b) AD_TAKE_ AD_OF_TWO_(AD_TWO_, add, a, b, __COUNTER__) AD_TAKEN_
#define ad_real_sub(a, b) AD_TAKE_ AD_OF_TWO_(AD_TWO_, sub, a, b, __COUNTER__) AD_TAKEN_
#define ad_real_mul(a, b) AD_TAKE_ AD_OF_TWO_(AD_TWO_, mul, a, b, __COUNTER__) AD_TAKEN_
#define ad_real_div(a, b) AD_TAKE_ AD_OF_TWO_(AD_TWO_, div, a, b, __COUNTER__) AD_TAKEN_
#define ad_real_neg(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, neg, x, __COUNTER__) AD_TAKEN_
/* x^2 and 1/x: one operand, where mul(x, x) has two until it is assigned. */
#define ad_real_square(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, square, x, __COUNTER__) AD_TAKEN_
#define ad_real_reciprocal(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, reciprocal, x, __COUNTER__) AD_TAKEN_

/* ---- of many operands ---- */

/* The sum and the product of up to 32 operands, from the left to the right, as one formula. */
#define ad_real_sum_of(...) AD_TAKE_ AD_FOLD_(add, __COUNTER__, __VA_ARGS__) AD_TAKEN_
#define ad_real_product_of(...) AD_TAKE_ AD_FOLD_(mul, __COUNTER__, __VA_ARGS__) AD_TAKEN_

/* Each step binds the formula so far: nested, the text of the first operand would be scanned again
 * for every other. AD_FOLD_n_ has n operands
 * left, counted with the formula so far, and a 0, since __VA_ARGS__ may not be empty. */
#define AD_FOLD_(name, id, ...) AD_FOLD_OF_(AD_COUNT_(__VA_ARGS__), name, id, __VA_ARGS__)
#define AD_FOLD_OF_(n, name, id, ...) AD_FOLD_FROM_(n, name, id, __VA_ARGS__, 0)
#define AD_FOLD_FROM_(n, name, id, x, ...)                                                         \
    __extension__({                                                                                \
        __auto_type ad_f_##id##_##n = (x);                                                         \
        AD_FOLD_##n##_(name, id, __VA_ARGS__)                                                      \
    })
#define AD_STEP_(name, id, from, to, x)                                                            \
    __auto_type ad_f_##id##_##to = AD_OF_TWO_(AD_TWO_, name, ad_f_##id##_##from, x, __COUNTER__).e;
#define AD_FOLD_1_(name, id, ...) AD_OF_ONE_(AD_AS_OPERAND_, , ad_f_##id##_1, __COUNTER__);
#if AD_REAL_PROGRAM
#define AD_AS_OPERAND_(name, id) (ad_new_expr1_){ad_a_##id};
#else
#define AD_AS_OPERAND_(name, id)                                                                   \
    AD_SCALE_(ad_a_##id)(ad_a_##id, ad_rule1_of_(ad_a_##id.value, 1, 1));
#endif
#define AD_FOLD_2_(name, id, x, ...) AD_OF_TWO_(AD_TWO_, name, ad_f_##id##_2, x, __COUNTER__);
#define AD_FOLD_3_(name, id, x, ...) AD_STEP_(name, id, 3, 2, x) AD_FOLD_2_(name, id, __VA_ARGS__)
#define AD_FOLD_4_(name, id, x, ...) AD_STEP_(name, id, 4, 3, x) AD_FOLD_3_(name, id, __VA_ARGS__)
#define AD_FOLD_5_(name, id, x, ...) AD_STEP_(name, id, 5, 4, x) AD_FOLD_4_(name, id, __VA_ARGS__)
#define AD_FOLD_6_(name, id, x, ...) AD_STEP_(name, id, 6, 5, x) AD_FOLD_5_(name, id, __VA_ARGS__)
#define AD_FOLD_7_(name, id, x, ...) AD_STEP_(name, id, 7, 6, x) AD_FOLD_6_(name, id, __VA_ARGS__)
#define AD_FOLD_8_(name, id, x, ...) AD_STEP_(name, id, 8, 7, x) AD_FOLD_7_(name, id, __VA_ARGS__)
#define AD_FOLD_9_(name, id, x, ...) AD_STEP_(name, id, 9, 8, x) AD_FOLD_8_(name, id, __VA_ARGS__)
#define AD_FOLD_10_(name, id, x, ...) AD_STEP_(name, id, 10, 9, x) AD_FOLD_9_(name, id, __VA_ARGS__)
#define AD_FOLD_11_(name, id, x, ...)                                                              \
    AD_STEP_(name, id, 11, 10, x) AD_FOLD_10_(name, id, __VA_ARGS__)
#define AD_FOLD_12_(name, id, x, ...)                                                              \
    AD_STEP_(name, id, 12, 11, x) AD_FOLD_11_(name, id, __VA_ARGS__)
#define AD_FOLD_13_(name, id, x, ...)                                                              \
    AD_STEP_(name, id, 13, 12, x) AD_FOLD_12_(name, id, __VA_ARGS__)
#define AD_FOLD_14_(name, id, x, ...)                                                              \
    AD_STEP_(name, id, 14, 13, x) AD_FOLD_13_(name, id, __VA_ARGS__)
#define AD_FOLD_15_(name, id, x, ...)                                                              \
    AD_STEP_(name, id, 15, 14, x) AD_FOLD_14_(name, id, __VA_ARGS__)
#define AD_FOLD_16_(name, id, x, ...)                                                              \
    AD_STEP_(name, id, 16, 15, x) AD_FOLD_15_(name, id, __VA_ARGS__)
#define AD_FOLD_17_(name, id, x, ...)                                                              \
    AD_STEP_(name, id, 17, 16, x) AD_FOLD_16_(name, id, __VA_ARGS__)
#define AD_FOLD_18_(name, id, x, ...)                                                              \
    AD_STEP_(name, id, 18, 17, x) AD_FOLD_17_(name, id, __VA_ARGS__)
#define AD_FOLD_19_(name, id, x, ...)                                                              \
    AD_STEP_(name, id, 19, 18, x) AD_FOLD_18_(name, id, __VA_ARGS__)
#define AD_FOLD_20_(name, id, x, ...)                                                              \
    AD_STEP_(name, id, 20, 19, x) AD_FOLD_19_(name, id, __VA_ARGS__)
#define AD_FOLD_21_(name, id, x, ...)                                                              \
    AD_STEP_(name, id, 21, 20, x) AD_FOLD_20_(name, id, __VA_ARGS__)
#define AD_FOLD_22_(name, id, x, ...)                                                              \
    AD_STEP_(name, id, 22, 21, x) AD_FOLD_21_(name, id, __VA_ARGS__)
#define AD_FOLD_23_(name, id, x, ...)                                                              \
    AD_STEP_(name, id, 23, 22, x) AD_FOLD_22_(name, id, __VA_ARGS__)
#define AD_FOLD_24_(name, id, x, ...)                                                              \
    AD_STEP_(name, id, 24, 23, x) AD_FOLD_23_(name, id, __VA_ARGS__)
#define AD_FOLD_25_(name, id, x, ...)                                                              \
    AD_STEP_(name, id, 25, 24, x) AD_FOLD_24_(name, id, __VA_ARGS__)
#define AD_FOLD_26_(name, id, x, ...)                                                              \
    AD_STEP_(name, id, 26, 25, x) AD_FOLD_25_(name, id, __VA_ARGS__)
#define AD_FOLD_27_(name, id, x, ...)                                                              \
    AD_STEP_(name, id, 27, 26, x) AD_FOLD_26_(name, id, __VA_ARGS__)
#define AD_FOLD_28_(name, id, x, ...)                                                              \
    AD_STEP_(name, id, 28, 27, x) AD_FOLD_27_(name, id, __VA_ARGS__)
#define AD_FOLD_29_(name, id, x, ...)                                                              \
    AD_STEP_(name, id, 29, 28, x) AD_FOLD_28_(name, id, __VA_ARGS__)
#define AD_FOLD_30_(name, id, x, ...)                                                              \
    AD_STEP_(name, id, 30, 29, x) AD_FOLD_29_(name, id, __VA_ARGS__)
#define AD_FOLD_31_(name, id, x, ...)                                                              \
    AD_STEP_(name, id, 31, 30, x) AD_FOLD_30_(name, id, __VA_ARGS__)
#define AD_FOLD_32_(name, id, x, ...)                                                              \
    AD_STEP_(name, id, 32, 31, x) AD_FOLD_31_(name, id, __VA_ARGS__)
#define AD_COUNT_(...)                                                                             \
    AD_COUNTED_(__VA_ARGS__, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16,   \
                15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define AD_COUNTED_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17,    \
                    a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, n,  \
                    ...)                                                                           \
    n

/* ---- <math.h> ---- */

#define ad_real_sqrt(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, sqrt, x, __COUNTER__) AD_TAKEN_
#define ad_real_cbrt(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, cbrt, x, __COUNTER__) AD_TAKEN_
#define ad_real_exp(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, exp, x, __COUNTER__) AD_TAKEN_
#define ad_real_exp2(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, exp2, x, __COUNTER__) AD_TAKEN_
#define ad_real_exp10(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, exp10, x, __COUNTER__) AD_TAKEN_
#define ad_real_expm1(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, expm1, x, __COUNTER__) AD_TAKEN_
#define ad_real_log(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, log, x, __COUNTER__) AD_TAKEN_
#define ad_real_log2(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, log2, x, __COUNTER__) AD_TAKEN_
#define ad_real_log10(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, log10, x, __COUNTER__) AD_TAKEN_
#define ad_real_log1p(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, log1p, x, __COUNTER__) AD_TAKEN_
#define ad_real_sin(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, sin, x, __COUNTER__) AD_TAKEN_
#define ad_real_cos(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, cos, x, __COUNTER__) AD_TAKEN_
#define ad_real_tan(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, tan, x, __COUNTER__) AD_TAKEN_
#define ad_real_asin(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, asin, x, __COUNTER__) AD_TAKEN_
#define ad_real_acos(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, acos, x, __COUNTER__) AD_TAKEN_
#define ad_real_atan(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, atan, x, __COUNTER__) AD_TAKEN_
#define ad_real_sinh(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, sinh, x, __COUNTER__) AD_TAKEN_
#define ad_real_cosh(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, cosh, x, __COUNTER__) AD_TAKEN_
#define ad_real_tanh(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, tanh, x, __COUNTER__) AD_TAKEN_
#define ad_real_asinh(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, asinh, x, __COUNTER__) AD_TAKEN_
#define ad_real_acosh(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, acosh, x, __COUNTER__) AD_TAKEN_
#define ad_real_atanh(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, atanh, x, __COUNTER__) AD_TAKEN_
#define ad_real_erf(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, erf, x, __COUNTER__) AD_TAKEN_
#define ad_real_erfc(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, erfc, x, __COUNTER__) AD_TAKEN_
#define ad_real_lgamma(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, lgamma, x, __COUNTER__) AD_TAKEN_
#define ad_real_tgamma(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, tgamma, x, __COUNTER__) AD_TAKEN_
#define ad_real_fabs(x) AD_TAKE_ AD_OF_ONE_(AD_ONE_, fabs, x, __COUNTER__) AD_TAKEN_
#define ad_real_pow(x, y) AD_TAKE_ AD_OF_TWO_(AD_TWO_, pow, x, y, __COUNTER__) AD_TAKEN_
#define ad_real_hypot(x, y) AD_TAKE_ AD_OF_TWO_(AD_TWO_, hypot, x, y, __COUNTER__) AD_TAKEN_
#define ad_real_atan2(y, x) AD_TAKE_ AD_OF_TWO_(AD_TWO_, atan2, y, x, __COUNTER__) AD_TAKEN_
#define ad_real_fmod(x, y) AD_TAKE_ AD_OF_TWO_(AD_TWO_, fmod, x, y, __COUNTER__) AD_TAKEN_
#define ad_real_remainder(x, y) AD_TAKE_ AD_OF_TWO_(AD_TWO_, remainder, x, y, __COUNTER__) AD_TAKEN_
#define ad_real_fmax(x, y) AD_TAKE_ AD_OF_TWO_(AD_TWO_, fmax, x, y, __COUNTER__) AD_TAKEN_
#define ad_real_fmin(x, y) AD_TAKE_ AD_OF_TWO_(AD_TWO_, fmin, x, y, __COUNTER__) AD_TAKEN_
#define ad_real_fdim(x, y) AD_TAKE_ AD_OF_TWO_(AD_TWO_, fdim, x, y, __COUNTER__) AD_TAKEN_
#define ad_real_copysign(x, y) AD_TAKE_ AD_OF_TWO_(AD_TWO_, copysign, x, y, __COUNTER__) AD_TAKEN_
#define ad_real_fma(x, y, z) AD_TAKE_ AD_OF_THREE_(AD_FMA_, , x, y, z, __COUNTER__) AD_TAKEN_
/* exponent: of an integer type, else it does not compile. */
#define ad_real_ldexp(x, exponent)                                                                 \
    AD_TAKE_ AD_OF_ONE_WITH_(AD_ONE_WITH_, ldexp, x, AD_WHOLE_(exponent), __COUNTER__) AD_TAKEN_
#define ad_real_scalbn(x, exponent)                                                                \
    AD_TAKE_ AD_OF_ONE_WITH_(AD_ONE_WITH_, ldexp, x, AD_WHOLE_(exponent), __COUNTER__) AD_TAKEN_
#define ad_real_scalbln(x, exponent)                                                               \
    AD_TAKE_ AD_OF_ONE_WITH_(AD_ONE_WITH_, ldexp, x, AD_WHOLE_(exponent), __COUNTER__) AD_TAKEN_
/* The part behind the point; *whole: double *, the rest. */
#define ad_real_modf(x, whole)                                                                     \
    AD_TAKE_ AD_OF_ONE_WITH_(AD_ONE_WITH_, modf, x, whole, __COUNTER__) AD_TAKEN_
/* The mantissa; *exponent: int *, which is constant between powers of 2. */
#define ad_real_frexp(x, exponent)                                                                 \
    AD_TAKE_ AD_OF_ONE_WITH_(AD_ONE_WITH_, frexp, x, exponent, __COUNTER__) AD_TAKEN_
#define ad_real_remquo(x, y, quotient)                                                             \
    AD_TAKE_ AD_OF_TWO_WITH_(AD_TWO_WITH_, remquo, x, y, quotient, __COUNTER__) AD_TAKEN_
/* POSIX: Bessel functions; n: an int. J_n' = (J_n-1 - J_n+1) / 2, J_0' = -J_1, and so for Y: DLMF
 * 10.6.1 and 10.6.3, https://dlmf.nist.gov/10.6. */
#define ad_real_j0(x) AD_TAKE_ AD_OF_ONE_WITH_(AD_ONE_WITH_, jn, x, 0, __COUNTER__) AD_TAKEN_
#define ad_real_j1(x) AD_TAKE_ AD_OF_ONE_WITH_(AD_ONE_WITH_, jn, x, 1, __COUNTER__) AD_TAKEN_
#define ad_real_jn(n, x)                                                                           \
    AD_TAKE_ AD_OF_ONE_WITH_(AD_ONE_WITH_, jn, x, (int)AD_WHOLE_(n), __COUNTER__) AD_TAKEN_
#define ad_real_y0(x) AD_TAKE_ AD_OF_ONE_WITH_(AD_ONE_WITH_, yn, x, 0, __COUNTER__) AD_TAKEN_
#define ad_real_y1(x) AD_TAKE_ AD_OF_ONE_WITH_(AD_ONE_WITH_, yn, x, 1, __COUNTER__) AD_TAKEN_
#define ad_real_yn(n, x)                                                                           \
    AD_TAKE_ AD_OF_ONE_WITH_(AD_ONE_WITH_, yn, x, (int)AD_WHOLE_(n), __COUNTER__) AD_TAKEN_
/* GNU: sets *sine and *cosine, two statements. */
#define ad_real_sincos(x, sine, cosine)                                                            \
    AD_OF_ONE_AND_(AD_SINCOS_, , x, AD_TARGET_(sine), AD_TARGET_(cosine), __COUNTER__)
#define AD_SINCOS_(name, id)                                                                       \
    const double ad_s_##id = sin(ad_a_##id.value), ad_c_##id = cos(ad_a_##id.value);               \
    __auto_type ad_sine_##id =                                                                     \
        AD_SCALE_(ad_a_##id)(ad_a_##id,                                                            \
                             AD_RULE1_IS_(ad_rule1_of_(ad_s_##id, ad_c_##id, 0), sin, 0))          \
            .e;                                                                                    \
    __auto_type ad_cosine_##id =                                                                   \
        AD_SCALE_(ad_a_##id)(ad_a_##id,                                                            \
                             AD_RULE1_IS_(ad_rule1_of_(ad_c_##id, -ad_s_##id, 0), cos, 0))         \
            .e;                                                                                    \
    *ad_y_##id = AD_RECORD_OF_(ad_sine_##id)(ad_sine_##id, AD_STATEMENT_SITE_);                    \
    *ad_z_##id = AD_RECORD_OF_(ad_cosine_##id)(ad_cosine_##id, AD_STATEMENT_SITE_);                \
    (void)0;
/* x y + z, rounded once. */
#if AD_REAL_PROGRAM
#define AD_FMA_(name, id)                                                                          \
    (ad_new_expr1_){ad_program_fma_(ad_a_##id, ad_b_##id, ad_c_##id, AD_STATEMENT_SITE_)};
#else
#define AD_FMA_(name, id)                                                                          \
    __auto_type ad_ab_##id =                                                                       \
        AD_JOIN_(ad_a_##id, ad_b_##id)(ad_a_##id, ad_b_##id,                                       \
                                       ad_rule2_of_(0, ad_b_##id.value, ad_a_##id.value, 0, 0))    \
            .e;                                                                                    \
    AD_JOIN_(ad_ab_##id, ad_c_##id)                                                                \
    (ad_ab_##id, ad_c_##id,                                                                        \
     ad_rule2_of_(fma(ad_a_##id.value, ad_b_##id.value, ad_c_##id.value), 1, 1, 1, 1));
#endif

/* Piecewise constant, so a double, through which no gradient flows. */
#define ad_real_floor(x) AD_OF_ONE_(AD_ASK_OF_, floor, x, __COUNTER__)
#define ad_real_ceil(x) AD_OF_ONE_(AD_ASK_OF_, ceil, x, __COUNTER__)
#define ad_real_trunc(x) AD_OF_ONE_(AD_ASK_OF_, trunc, x, __COUNTER__)
#define ad_real_round(x) AD_OF_ONE_(AD_ASK_OF_, round, x, __COUNTER__)
#define ad_real_rint(x) AD_OF_ONE_(AD_ASK_OF_, rint, x, __COUNTER__)
#define ad_real_nearbyint(x) AD_OF_ONE_(AD_ASK_OF_, nearbyint, x, __COUNTER__)
#define ad_real_logb(x) AD_OF_ONE_(AD_ASK_OF_, logb, x, __COUNTER__)
#define ad_real_ilogb(x) ((int)AD_OF_ONE_(AD_ASK_OF_, ilogb, x, __COUNTER__))
#define AD_ASK_OF_(name, id) AD_ASK_(name, ad_a_##id, AD_STATEMENT_SITE_);

/* ---- comparisons of values ---- */

#define ad_real_less(a, b) AD_OF_TWO_(AD_IS_less_, , a, b, __COUNTER__)
#define ad_real_less_equal(a, b) AD_OF_TWO_(AD_IS_less_equal_, , a, b, __COUNTER__)
#define ad_real_greater(a, b) AD_OF_TWO_(AD_IS_greater_, , a, b, __COUNTER__)
#define ad_real_greater_equal(a, b) AD_OF_TWO_(AD_IS_greater_equal_, , a, b, __COUNTER__)
#define ad_real_equal(a, b) AD_OF_TWO_(AD_IS_equal_, , a, b, __COUNTER__)
#define ad_real_not_equal(a, b) AD_OF_TWO_(AD_IS_not_equal_, , a, b, __COUNTER__)
#define AD_IS_less_(name, id) AD_COMPARE_(less, ad_a_##id, <, ad_b_##id, AD_STATEMENT_SITE_);
#define AD_IS_less_equal_(name, id)                                                                \
    AD_COMPARE_(less_equal, ad_a_##id, <=, ad_b_##id, AD_STATEMENT_SITE_);
#define AD_IS_greater_(name, id) AD_COMPARE_(greater, ad_a_##id, >, ad_b_##id, AD_STATEMENT_SITE_);
#define AD_IS_greater_equal_(name, id)                                                             \
    AD_COMPARE_(greater_equal, ad_a_##id, >=, ad_b_##id, AD_STATEMENT_SITE_);
#define AD_IS_equal_(name, id) AD_COMPARE_(equal, ad_a_##id, ==, ad_b_##id, AD_STATEMENT_SITE_);
#define AD_IS_not_equal_(name, id)                                                                 \
    AD_COMPARE_(not_equal, ad_a_##id, !=, ad_b_##id, AD_STATEMENT_SITE_);

#endif

#endif
