/* lanes_functions.h: the elementary functions of the row language on vectors.
 *
 * A template: included by elementwise_isa.c after lanes.h, for each dtype. Functions that libmvec
 * has come from there: measured against long double they are within 4 ulp, and at zeros,
 * infinities, NaN and subnormals as libm. The others are libm's, lane by lane; so is erf in f32,
 * which libmvec's 16 lanes give with 4 ulp only just.
 */
#if LANES_ISA > 1
#undef LANES_FUNCTION2
#if LANES_ISA == 2 && LANES_DTYPE == 32
#define LANES_FUNCTION2(name) _ZGVdN8vv_##name##f
#elif LANES_ISA == 2
#define LANES_FUNCTION2(name) _ZGVdN4vv_##name
#elif LANES_DTYPE == 32
#define LANES_FUNCTION2(name) _ZGVeN16vv_##name##f
#else
#define LANES_FUNCTION2(name) _ZGVeN8vv_##name
#endif
#undef LANES_DECLARE1
#undef LANES_DECLARE2
#define LANES_DECLARE1(name) ON(vec) LANES_FUNCTION(name)(ON(vec));
#define LANES_DECLARE2(name) ON(vec) LANES_FUNCTION2(name)(ON(vec), ON(vec));
#else
#undef LANES_FUNCTION2
#undef LANES_DECLARE1
#undef LANES_DECLARE2
#define LANES_FUNCTION2(name) LANES_FUNCTION(name)
#define LANES_DECLARE1(name)
#define LANES_DECLARE2(name)
#endif

#undef LANES_SCALAR
#if LANES_DTYPE == 32
#define LANES_SCALAR(name) name##f
#else
#define LANES_SCALAR(name) name
#endif

#undef LANES_MVEC1
#undef LANES_MVEC2
#undef LANES_EACH
#define LANES_MVEC1(name)                                                                          \
    LANES_DECLARE1(name)                                                                           \
    LANES_INLINE ON(vec) ON(lane_##name)(ON(vec) x)                                                \
    {                                                                                              \
        return LANES_FUNCTION(name)(x);                                                            \
    }
#define LANES_MVEC2(name)                                                                          \
    LANES_DECLARE2(name)                                                                           \
    LANES_INLINE ON(vec) ON(lane_##name)(ON(vec) a, ON(vec) b)                                     \
    {                                                                                              \
        return LANES_FUNCTION2(name)(a, b);                                                        \
    }
/* lane_NAME(parameters), one lane after the other: `value` of a, a lane of the vector x, and b, the
 * same lane of y. */
#define LANES_EACH(name, parameters, x, y, value)                                                  \
    LANES_INLINE ON(vec) ON(lane_##name) parameters                                                \
    {                                                                                              \
        REAL first[LANES], second[LANES], result[LANES];                                           \
        ON(store)(first, x);                                                                       \
        ON(store)(second, y);                                                                      \
        for (int k = 0; k < LANES; k++) {                                                          \
            const REAL a = first[k], b = second[k];                                                \
            (void)b;                                                                               \
            result[k] = (REAL)(value);                                                             \
        }                                                                                          \
        return ON(load)(result);                                                                   \
    }

LANES_MVEC1(log1p)
LANES_MVEC1(expm1)
LANES_MVEC1(sin)
LANES_MVEC1(cos)
LANES_MVEC1(tan)
LANES_MVEC1(asin)
LANES_MVEC1(acos)
LANES_MVEC1(atan)
LANES_MVEC1(sinh)
LANES_MVEC1(cosh)
LANES_MVEC1(asinh)
LANES_MVEC1(acosh)
LANES_MVEC1(atanh)
LANES_MVEC1(erfc)
LANES_MVEC2(pow)
LANES_MVEC2(atan2)
LANES_MVEC2(hypot)
#if LANES_DTYPE == 64
LANES_MVEC1(erf)
#else
LANES_EACH(erf, (ON(vec) x), x, x, erff(a))
#endif
LANES_EACH(floor, (ON(vec) x), x, x, LANES_SCALAR(floor)(a))
/* lgamma itself writes the global signgam. */
LANES_EACH(lgamma, (ON(vec) x), x, x, lgamma_r((double)a, &(int){0}))
LANES_EACH(digamma, (ON(vec) x), x, x, kernel_digamma((double)a))
LANES_EACH(polygamma, (REAL order, ON(vec) x), x, x, kernel_polygamma((double)order, (double)a))
LANES_EACH(fmod, (ON(vec) x, ON(vec) y), x, y, LANES_SCALAR(fmod)(a, b))
/* What fmod subtracts, in multiples of b: an integer, exact where it is below 2^24 or 2^53. */
LANES_EACH(quotient, (ON(vec) x, ON(vec) y), x, y,
           LANES_SCALAR(rint)((a - LANES_SCALAR(fmod)(a, b)) / b))

/* By e^-|x|, which cannot overflow: 1 / (1 + e) for x >= 0, e / (1 + e) below. */
LANES_INLINE ON(vec) ON(lane_sigmoid)(ON(vec) x)
{
    const ON(vec) zero = ON(splat)(0), one = ON(splat)(1);
    const ON(vec) e = ON(lane_exp)(ON_SELECT(x > zero, -x, x));
    return ON_SELECT(x < zero, e, one) / (one + e);
}

LANES_INLINE ON(vec) ON(lane_abs)(ON(vec) x)
{
    /* 0 - x gives 0 at both zeros. */
    return ON_SELECT(x > ON(splat)(0), x, ON(splat)(0) - x);
}

LANES_INLINE ON(vec) ON(lane_sign)(ON(vec) x)
{
    const ON(vec) zero = ON(splat)(0), one = ON(splat)(1);
    return ON_SELECT(x > zero, one, ON_SELECT(x < zero, -one, x));
}

LANES_INLINE ON(vec) ON(lane_reciprocal)(ON(vec) x)
{
    return ON(splat)(1) / x;
}

LANES_INLINE ON(vec) ON(lane_rsqrt)(ON(vec) x)
{
    return ON(splat)(1) / ON(lane_sqrt)(x);
}

LANES_INLINE ON(vec) ON(lane_rhypot1)(ON(vec) x)
{
    return ON(splat)(1) / ON(lane_hypot)(ON(splat)(1), x);
}

LANES_INLINE ON(vec) ON(lane_lorentz)(ON(vec) x)
{
    return ON(splat)(1) / (ON(splat)(1) + x * x);
}

LANES_INLINE ON(vec) ON(lane_gauss)(ON(vec) x)
{
    return ON(lane_exp)(-(x * x));
}

/* e^x overflows where x does itself only in this form. */
LANES_INLINE ON(vec) ON(lane_softplus)(ON(vec) x)
{
    const ON(vec) e = ON(lane_exp)(-ON(lane_abs)(x));
    return ON(lane_relu)(x) + ON(lane_log1p)(e);
}

LANES_INLINE ON(vec) ON(lane_leaky_relu)(REAL slope, ON(vec) x)
{
    return ON_SELECT(x > ON(splat)(0), x, ON(splat)(slope) * x);
}

LANES_INLINE ON(vec) ON(lane_elu)(REAL alpha, ON(vec) x)
{
    return ON_SELECT(x > ON(splat)(0), x, ON(splat)(alpha) * ON(lane_expm1)(x));
}

/* x p, and 0 where p is 0, also at infinite x. */
LANES_INLINE ON(vec) ON(vanishing)(ON(vec) x, ON(vec) p)
{
    return ON_SELECT(p == ON(splat)(0), ON(splat)(0), x * p);
}

LANES_INLINE ON(vec) ON(lane_vanish)(ON(vec) a, ON(vec) b)
{
    return ON(vanishing)(b, a);
}

LANES_INLINE ON(vec) ON(lane_normal_cdf)(ON(vec) x)
{
    return ON(splat)((REAL)0.5) * ON(lane_erfc)(ON(splat)((REAL)-0.70710678118654752440) * x);
}

LANES_INLINE ON(vec) ON(lane_normal_pdf)(ON(vec) x)
{
    const ON(vec) scale = ON(splat)((REAL)0.39894228040143267794);
    return scale * ON(lane_exp)(ON(splat)((REAL)-0.5) * (x * x));
}

LANES_INLINE ON(vec) ON(lane_normal_moment)(ON(vec) x)
{
    return ON(vanishing)(x, ON(lane_normal_pdf)(x));
}

LANES_INLINE ON(vec) ON(lane_gelu)(ON(vec) x)
{
    return ON(vanishing)(x, ON(lane_normal_cdf)(x));
}

LANES_INLINE ON(vec) ON(lane_silu)(ON(vec) x)
{
    return ON(vanishing)(x, ON(lane_sigmoid)(x));
}

LANES_INLINE ON(vec) ON(lane_sigmoid_moment)(ON(vec) x)
{
    return ON(vanishing)(x, ON(lane_sigmoid)(x) * ON(lane_sigmoid)(-x));
}

/* (1 + tanh u) / 2 is the logistic function of 2 u, and this is 2 u. */
LANES_INLINE ON(vec) ON(twice_u)(ON(vec) x)
{
    const ON(vec) scale = ON(splat)((REAL)1.59576912160573071176);
    const ON(vec) cubic = ON(splat)(1) + ON(splat)((REAL)0.044715) * (x * x);
    return scale * (x * cubic);
}

LANES_INLINE ON(vec) ON(lane_tanh_cdf)(ON(vec) x)
{
    return ON(lane_sigmoid)(ON(twice_u)(x));
}

LANES_INLINE ON(vec) ON(lane_tanh_pdf)(ON(vec) x)
{
    const ON(vec) u = ON(twice_u)(x), scale = ON(splat)((REAL)1.59576912160573071176);
    const ON(vec) slope = scale * (ON(splat)(1) + ON(splat)((REAL)0.134145) * (x * x));
    return ON(vanishing)(slope, ON(lane_sigmoid)(u) * ON(lane_sigmoid)(-u));
}

LANES_INLINE ON(vec) ON(lane_tanh_moment)(ON(vec) x)
{
    return ON(vanishing)(x, ON(lane_tanh_pdf)(x));
}

LANES_INLINE ON(vec) ON(lane_gelu_tanh)(ON(vec) x)
{
    return ON(vanishing)(x, ON(lane_tanh_cdf)(x));
}

LANES_INLINE ON(vec) ON(lane_xlogy)(ON(vec) a, ON(vec) b)
{
    return ON(vanishing)(ON(lane_log)(b), a);
}

/* NaN if either operand is. */
LANES_INLINE ON(vec) ON(lane_maximum)(ON(vec) a, ON(vec) b)
{
    return ON_SELECT(a > b, a, ON_SELECT(a <= b, b, a + b));
}

LANES_INLINE ON(vec) ON(lane_minimum)(ON(vec) a, ON(vec) b)
{
    return ON_SELECT(a < b, a, ON_SELECT(a >= b, b, a + b));
}

LANES_INLINE ON(vec) ON(lane_clamp)(REAL low, REAL high, ON(vec) x)
{
    const ON(vec) least = ON(splat)(low), most = ON(splat)(high);
    const ON(vec) raised = ON_SELECT(x < least, least, x);
    return ON_SELECT(raised > most, most, raised);
}

LANES_INLINE ON(vec) ON(lane_inside)(REAL low, REAL high, ON(vec) x)
{
    const ON(vec) zero = ON(splat)(0), one = ON(splat)(1);
    return ON_SELECT(x >= ON(splat)(low), ON_SELECT(x <= ON(splat)(high), one, zero), zero);
}

#undef LANES_COMPARE
#define LANES_COMPARE(name, relation)                                                              \
    LANES_INLINE ON(vec) ON(lane_##name)(ON(vec) a, ON(vec) b)                                     \
    {                                                                                              \
        return ON_SELECT(a relation b, ON(splat)(1), ON(splat)(0));                                \
    }
LANES_COMPARE(less, <)
LANES_COMPARE(less_equal, <=)
LANES_COMPARE(greater, >)
LANES_COMPARE(greater_equal, >=)
LANES_COMPARE(equal, ==)
LANES_COMPARE(not_equal, !=)

/* Selections, not products: what is not selected does not count, whatever it is. */
LANES_INLINE ON(vec) ON(lane_block)(ON(vec) a, ON(vec) b)
{
    const ON(vec) zero = ON(splat)(0);
    return ON_SELECT(a > zero, zero, b);
}

LANES_INLINE ON(vec) ON(lane_pick)(ON(vec) a, ON(vec) b)
{
    const ON(vec) zero = ON(splat)(0);
    return ON_SELECT(a == zero, zero, b);
}

LANES_INLINE ON(vec) ON(lane_omit)(ON(vec) a, ON(vec) b)
{
    const ON(vec) zero = ON(splat)(0);
    return ON_SELECT(a == zero, b, zero);
}

LANES_INLINE ON(vec) ON(lane_where)(ON(vec) condition, ON(vec) a, ON(vec) b)
{
    return ON_SELECT(condition == ON(splat)(0), b, a);
}
