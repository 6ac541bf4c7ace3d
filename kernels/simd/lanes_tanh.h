/* lanes_tanh.h: the hyperbolic tangent on vectors.
 *
 * A template: included by elementwise_isa.c after lanes_exp.h, for each dtype. Its own, since
 * libmvec's looks tables up: this takes half the time (f64, 8 lanes: 0.44 against 0.84 ns an
 * element) with an error of at most 2.6 ulp.
 *
 * tanh |x| = e / (e + 2) with e = exp(2 |x|) - 1. With 2 |x| = n log 2 + r, |r| <= log(2) / 2, e is
 * 2^n p + (2^n - 1), p = exp(r) - 1 as lanes_exp.h has it: nothing cancels, also where n is 0.
 */
#if LANES_ISA == 1

LANES_INLINE ON(vec) ON(lane_tanh)(ON(vec) x)
{
    return LANES_FUNCTION(tanh)(x);
}

#else

#undef TANH_ONE
#define TANH_ONE (LANES_DTYPE == 64 ? 20 : 10) /* tanh is 1 from here on */

LANES_INLINE ON(vec) ON(lane_tanh)(ON(vec) x)
{
    const ON(vec) one = ON(splat)(1), most = ON(splat)(TANH_ONE);
    const ON(bits) sign = (ON(bits))x & (ON(bits))ON(splat)((REAL)-0.0);
    const ON(vec) size = (ON(vec))((ON(bits))x ^ sign);
    const ON(vec) a = ON(lane_lower)(most, size); /* NaN stays */
    const struct ON(exp_parts) of = ON(exp_reduce)(a + a);
    const ON(vec) p = of.p, power = (ON(vec))((of.n << EXP_MANTISSA) + (ON(word))one);
    const ON(vec) e = ON(lane_fma)(power, p, power - one);
    return (ON(vec))((ON(bits))(e / (e + ON(splat)(2))) | sign);
}

#endif
