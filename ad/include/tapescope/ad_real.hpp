// ad_real.hpp: infix formulas over ad_real in C++14.
//
//     std::vector<ad_real> x(2);
//     ad_real_leaves(tape, 2, start, x.data());
//     ad_real y = x[0] * sin(x[1]) + 3;          // one statement, one record
//     y += exp(-x[0]);                           // another
//     ad_real_backward(tape, y);
//
//     template <class T> T norm(const T &a, const T &b) { return sqrt(a * a + b * b); }
//
// A formula has the type of its operands' number and holds copies, so `auto` may keep one; it is
// recorded where it becomes an ad_real, by the code that ad_set runs in C. Functions have the names
// of <cmath> and are found by their arguments; templates over ad_real and double say `using
// std::sin;` and so on for the latter, as with any type of one's own. Comparisons are of values.
// Where the two sides of ?: are formulas of different types, or a formula and a number, one of them
// says ad_real(...).
#ifndef TAPESCOPE_AD_REAL_HPP
#define TAPESCOPE_AD_REAL_HPP

#include <cmath>
#include <limits>
#include <type_traits>

#include <tapescope/ad_real.h>

// A formula or an ad_real: what makes an expression one of ours.
template <class X>
using ad_is_real_ =
    std::integral_constant<bool, ad_is_formula_<X>::value || std::is_same<X, ad_real>::value>;
template <class X> using ad_infix1_ = std::enable_if_t<ad_is_real_<X>::value>;
// Of two operands one is such, the other may be a number.
template <class X, class Y>
using ad_infix2_ = std::enable_if_t<(ad_is_real_<X>::value &&
                                     (ad_is_real_<Y>::value || std::is_arithmetic<Y>::value)) ||
                                    (ad_is_real_<Y>::value && std::is_arithmetic<X>::value)>;

#define AD_INFIX_(operation, name)                                                                 \
    template <class X, class Y, class = ad_infix2_<X, Y>>                                          \
    AD_INLINE AD_MUST_USE auto operator operation(const X &x, const Y &y)                          \
    {                                                                                              \
        return ad_real_##name(x, y);                                                               \
    }
AD_INFIX_(+, add)
AD_INFIX_(-, sub)
AD_INFIX_(*, mul)
AD_INFIX_(/, div)
AD_INFIX_(<, less)
AD_INFIX_(<=, less_equal)
AD_INFIX_(>, greater)
AD_INFIX_(>=, greater_equal)
AD_INFIX_(==, equal)
AD_INFIX_(!=, not_equal)
#undef AD_INFIX_

template <class X, class = ad_infix1_<X>> AD_INLINE AD_MUST_USE auto operator-(const X &x)
{
    return ad_real_neg(x);
}

template <class X, class = ad_infix1_<X>> AD_INLINE AD_MUST_USE X operator+(const X &x)
{
    return x;
}

#define AD_INFIX_(operation, name)                                                                 \
    template <class X, class = ad_infix2_<ad_real, X>>                                             \
    AD_INLINE ad_real &operator operation(ad_real &y, const X &x)                                  \
    {                                                                                              \
        return y = ad_real_##name(y, x);                                                           \
    }
AD_INFIX_(+=, add)
AD_INFIX_(-=, sub)
AD_INFIX_(*=, mul)
AD_INFIX_(/=, div)
#undef AD_INFIX_

#define AD_NAMED_AS_(name, real)                                                                   \
    template <class X, class = ad_infix1_<X>> AD_INLINE AD_MUST_USE auto name(const X &x)          \
    {                                                                                              \
        return ad_real_##real(x);                                                                  \
    }
AD_NAMED_AS_(abs, fabs)
AD_NAMED_AS_(fabs, fabs)
AD_NAMED_AS_(sqrt, sqrt)
AD_NAMED_AS_(cbrt, cbrt)
AD_NAMED_AS_(exp, exp)
AD_NAMED_AS_(exp2, exp2)
AD_NAMED_AS_(expm1, expm1)
AD_NAMED_AS_(log, log)
AD_NAMED_AS_(log2, log2)
AD_NAMED_AS_(log10, log10)
AD_NAMED_AS_(log1p, log1p)
AD_NAMED_AS_(sin, sin)
AD_NAMED_AS_(cos, cos)
AD_NAMED_AS_(tan, tan)
AD_NAMED_AS_(asin, asin)
AD_NAMED_AS_(acos, acos)
AD_NAMED_AS_(atan, atan)
AD_NAMED_AS_(sinh, sinh)
AD_NAMED_AS_(cosh, cosh)
AD_NAMED_AS_(tanh, tanh)
AD_NAMED_AS_(asinh, asinh)
AD_NAMED_AS_(acosh, acosh)
AD_NAMED_AS_(atanh, atanh)
AD_NAMED_AS_(erf, erf)
AD_NAMED_AS_(erfc, erfc)
AD_NAMED_AS_(lgamma, lgamma)
AD_NAMED_AS_(tgamma, tgamma)
AD_NAMED_AS_(floor, floor)
AD_NAMED_AS_(ceil, ceil)
AD_NAMED_AS_(trunc, trunc)
AD_NAMED_AS_(round, round)
AD_NAMED_AS_(rint, rint)
AD_NAMED_AS_(nearbyint, nearbyint)
AD_NAMED_AS_(logb, logb)
AD_NAMED_AS_(ilogb, ilogb)
#undef AD_NAMED_AS_

#define AD_NAMED_AS_(name, real)                                                                   \
    template <class X, class Y, class = ad_infix2_<X, Y>>                                          \
    AD_INLINE AD_MUST_USE auto name(const X &x, const Y &y)                                        \
    {                                                                                              \
        return ad_real_##real(x, y);                                                               \
    }
AD_NAMED_AS_(pow, pow)
AD_NAMED_AS_(hypot, hypot)
AD_NAMED_AS_(atan2, atan2)
AD_NAMED_AS_(fmod, fmod)
AD_NAMED_AS_(remainder, remainder)
AD_NAMED_AS_(fmax, fmax)
AD_NAMED_AS_(fmin, fmin)
AD_NAMED_AS_(fdim, fdim)
AD_NAMED_AS_(copysign, copysign)
#undef AD_NAMED_AS_

// The operand that std::max and std::min take, recorded or not: no statement.
template <class X, class Y, class = ad_infix2_<X, Y>> AD_INLINE ad_real max(const X &x, const Y &y)
{
    return ad_real_less(x, y) ? ad_real(y) : ad_real(x);
}

template <class X, class Y, class = ad_infix2_<X, Y>> AD_INLINE ad_real min(const X &x, const Y &y)
{
    return ad_real_less(y, x) ? ad_real(y) : ad_real(x);
}

template <class X, class Y, class Z,
          class = std::enable_if_t<ad_is_real_<X>::value || ad_is_real_<Y>::value ||
                                   ad_is_real_<Z>::value>>
AD_INLINE AD_MUST_USE auto fma(const X &x, const Y &y, const Z &z)
{
    return ad_real_fma(x, y, z);
}

template <class X, class = ad_infix1_<X>> AD_INLINE AD_MUST_USE auto ldexp(const X &x, int exponent)
{
    return ad_real_ldexp(x, exponent);
}

template <class X, class = ad_infix1_<X>> AD_INLINE bool isnan(const X &x)
{
    return std::isnan(ad_real_value(x));
}

template <class X, class = ad_infix1_<X>> AD_INLINE bool isinf(const X &x)
{
    return std::isinf(ad_real_value(x));
}

template <class X, class = ad_infix1_<X>> AD_INLINE bool isfinite(const X &x)
{
    return std::isfinite(ad_real_value(x));
}

namespace std
{
// Limits are those of double, as constants.
template <> class numeric_limits<ad_real> : public numeric_limits<double>
{
};
} // namespace std

#endif
