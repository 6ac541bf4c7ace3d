/* lanes_tanh.h: the hyperbolic tangent on vectors.
 *
 * A template: included by elementwise_isa.c after lanes.h, for each dtype. Its own, since
 * libmvec's looks tables up: this takes half the time (f64, 8 lanes: 0.44 against 0.84 ns an
 * element) with an error of at most 2.6 ulp.
 *
 * tanh |x| = e / (e + 2) with e = exp(2 |x|) - 1. With 2 |x| = n log 2 + r, |r| <= log(2) / 2, e is
 * 2^n p + (2^n - 1), p = exp(r) - 1 = r + r^2 q(r): nothing cancels, also where n is 0. q is the
 * polynomial of least relative error of p: 2^-55.6 (f64), 2^-26.2 (f32); its coefficients are those
 * that tests/references/tanh_polynomial.py prints.
 */
#if LANES_ISA == 1

LANES_INLINE ON(vec) ON(lane_tanh)(ON(vec) x)
{
    return LANES_FUNCTION(tanh)(x);
}

#else

#undef TANH_ONE
#undef TANH_SHIFT
#undef TANH_TWO_LOG2_E
#undef TANH_LOG2_HIGH
#undef TANH_LOG2_LOW
#undef TANH_MANTISSA
#if LANES_DTYPE == 64
#define TANH_ONE 20         /* tanh is 1 from here on */
#define TANH_SHIFT 0x1.8p52 /* a number added to it is rounded to an integer */
#define TANH_TWO_LOG2_E 0x1.71547652b82fep1
#define TANH_LOG2_HIGH 0x1.62e42fefa39efp-1
#define TANH_LOG2_LOW 0x1.abc9e3b39803fp-56
#define TANH_MANTISSA 52
#else
#define TANH_ONE 10
#define TANH_SHIFT 0x1.8p23F
#define TANH_TWO_LOG2_E 0x1.715476p1F
#define TANH_LOG2_HIGH 0x1.62e43p-1F
#define TANH_LOG2_LOW -0x1.05c61p-29F
#define TANH_MANTISSA 23
#endif

/* q(r); in f64 by its even and odd coefficients, two chains that run side by side. */
LANES_INLINE ON(vec) ON(tanh_q)(ON(vec) r, ON(vec) r2)
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

LANES_INLINE ON(vec) ON(lane_tanh)(ON(vec) x)
{
    const ON(vec) one = ON(splat)(1), most = ON(splat)(TANH_ONE), shift = ON(splat)(TANH_SHIFT);
    const ON(bits) sign = (ON(bits))x & (ON(bits))ON(splat)((REAL)-0.0);
    const ON(vec) size = (ON(vec))((ON(bits))x ^ sign);
    const ON(vec) a = ON_SELECT(size > most, most, size); /* NaN stays */
    const ON(vec) shifted = ON(lane_fma)(a, ON(splat)(TANH_TWO_LOG2_E), shift);
    const ON(vec) n = shifted - shift;
    const ON(vec) high = ON(lane_fma)(n, ON(splat)(-TANH_LOG2_HIGH), a + a);
    const ON(vec) r = ON(lane_fma)(n, ON(splat)(-TANH_LOG2_LOW), high), r2 = r * r;
    const ON(vec) p = ON(lane_fma)(ON(tanh_q)(r, r2), r2, r);
    /* The integer stands in the lowest bits of `shifted`: moved up, it is added to 1's exponent. */
    const ON(vec) power = (ON(vec))(((ON(word))shifted << TANH_MANTISSA) + (ON(word))one);
    const ON(vec) e = ON(lane_fma)(power, p, power - one);
    return (ON(vec))((ON(bits))(e / (e + ON(splat)(2))) | sign);
}

#endif
