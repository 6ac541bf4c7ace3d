/* lanes_exp.h: the exponential function on vectors.
 *
 * A template: included by elementwise_isa.c after lanes.h, for each dtype. Its own, since it is
 * faster than libmvec's (decision 100), with an error of at most 1.1 ulp.
 *
 * With x = n log 2 + r, |r| <= log(2) / 2, exp(x) is 2^n (1 + p), p = exp(r) - 1 = r + r^2 q(r). q
 * is the polynomial of least relative error of p: 2^-55.6 (f64), 2^-26.2 (f32); its coefficients
 * are those that tests/references/exp_polynomial.py prints.
 */
#if LANES_ISA == 1

LANES_INLINE ON(vec) ON(lane_exp)(ON(vec) x)
{
    return LANES_FUNCTION(exp)(x);
}

#else

#undef EXP_MOST
#undef EXP_SHIFT
#undef EXP_LOG2_E
#undef EXP_LOG2_HIGH
#undef EXP_LOG2_LOW
#undef EXP_MANTISSA
#if LANES_DTYPE == 64
#define EXP_MOST 1000      /* the result is 0 or infinity from here on */
#define EXP_SHIFT 0x1.8p52 /* a number added to it is rounded to an integer */
#define EXP_LOG2_E 0x1.71547652b82fep0
#define EXP_LOG2_HIGH 0x1.62e42fefa39efp-1
#define EXP_LOG2_LOW 0x1.abc9e3b39803fp-56
#define EXP_MANTISSA 52
#else
#define EXP_MOST 150
#define EXP_SHIFT 0x1.8p23F
#define EXP_LOG2_E 0x1.715476p0F
#define EXP_LOG2_HIGH 0x1.62e43p-1F
#define EXP_LOG2_LOW -0x1.05c61p-29F
#define EXP_MANTISSA 23
#endif

/* q(r); in f64 by its even and odd coefficients, two chains that run side by side. */
LANES_INLINE ON(vec) ON(exp_q)(ON(vec) r, ON(vec) r2)
{
#if LANES_DTYPE == 64
    static const double c[] = {0x1.0000000000005p-1,  0x1.5555555555539p-3,  0x1.55555555522b8p-5,
                               0x1.1111111118fa8p-7,  0x1.6c16c17edba85p-10, 0x1.a01a017515ccfp-13,
                               0x1.a019a76f4a708p-16, 0x1.71de8804b31b7p-19, 0x1.28a1dff795364p-22,
                               0x1.ae6bab1e06381p-26};
    ON(vec) even = ON(splat)(c[8]), odd = ON(splat)(c[9]);
    for (int k = 6; k >= 0; k -= 2) {
        even = ON(lane_fma)(even, r2, ON(splat)(c[k]));
        odd = ON(lane_fma)(odd, r2, ON(splat)(c[k + 1]));
    }
    return ON(lane_fma)(odd, r, even);
#else
    static const float c[] = {0x1.fffffep-2F, 0x1.5554bp-3F, 0x1.555674p-5F, 0x1.122776p-7F,
                              0x1.6bec08p-10F};
    (void)r2;
    ON(vec) q = ON(splat)(c[4]);
    for (int k = 3; k >= 0; k--)
        q = ON(lane_fma)(q, r, ON(splat)(c[k]));
    return q;
#endif
}

/* exp(x) = 2^n (1 + p). n: an integer's lowest bits, with others above them. */
struct ON(exp_parts) {
    ON(vec) p;
    ON(word) n;
};

/* |x| is small enough for n to be an integer of the dtype's exponents, or x is NaN, as is p. */
LANES_INLINE struct ON(exp_parts) ON(exp_reduce)(ON(vec) x)
{
    const ON(vec) shift = ON(splat)(EXP_SHIFT);
    const ON(vec) shifted = ON(lane_fma)(x, ON(splat)(EXP_LOG2_E), shift), n = shifted - shift;
    const ON(vec) high = ON(lane_fma)(n, ON(splat)(-EXP_LOG2_HIGH), x); /* exact */
    const ON(vec) r = ON(lane_fma)(n, ON(splat)(-EXP_LOG2_LOW), high), r2 = r * r;
    return (struct ON(exp_parts)){ON(lane_fma)(ON(exp_q)(r, r2), r2, r), (ON(word))shifted};
}

/* 2^n is two factors, since neither 2^1024 nor 2^-1075 is a number. The second product alone leaves
 * the normal numbers, so that it rounds as it should there. */
LANES_INLINE ON(vec) ON(lane_exp)(ON(vec) x)
{
    const ON(vec) most = ON(splat)(EXP_MOST);
    const ON(vec) near = ON(lane_upper)(-most, ON(lane_lower)(most, x)); /* NaN stays */
    const struct ON(exp_parts) of = ON(exp_reduce)(near);
    const ON(word) one = (ON(word))ON(splat)(1);
    const ON(word) all = of.n << EXP_MANTISSA, half = (of.n >> 1) << EXP_MANTISSA;
    const ON(vec) first = (ON(vec))(half + one), second = (ON(vec))(all - half + one);
    return ON(lane_fma)(first, of.p, first) * second;
}

#endif
