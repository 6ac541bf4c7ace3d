/* lanes.h: vectors of one instruction set and one dtype, and the words of the row language on them.
 *
 * A template: included by elementwise_isa.c with LANES_DTYPE 32 and then 64, and KERNEL_ISA set by
 * the build. Names end in the dtype: ON(vec) is vec_64.
 *
 * Vectors are spelled out, so that the code does not depend on what a compiler chooses to
 * vectorise; `portable` has vectors of one lane. Elementary functions are glibc's libmvec (at most
 * 4 ulp; right at NaN, infinities, zeros and subnormals), called by their ABI names, but for exp
 * and tanh (lanes_exp.h, lanes_tanh.h).
 */
#ifndef LANES_H
#define LANES_H

#define LANES_JOIN_(a, b) a##b
#define LANES_JOIN(a, b) LANES_JOIN_(a, b)
#define LANES_TEXT_(a) #a
#define LANES_TEXT(a) LANES_TEXT_(a)
#define LANES_NUMBER_portable 1
#define LANES_NUMBER_avx2 2
#define LANES_NUMBER_avx512 3
#define LANES_ISA LANES_JOIN(LANES_NUMBER_, KERNEL_ISA)

#define ON(name) LANES_JOIN(LANES_JOIN(name, _), LANES_DTYPE)
#define LANES_INLINE static inline __attribute__((always_inline, unused))

#if LANES_ISA > 1
#include <immintrin.h>
#endif
#if LANES_ISA == 2
#define LANES_BYTES 32
/* Mask of the first n lanes: LANES words beginning at LANES - n. */
static const int32_t lanes_masks_32[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
static const int64_t lanes_masks_64[8] = {-1, -1, -1, -1};
#elif LANES_ISA == 3
#define LANES_BYTES 64
#endif

/* Doubles, whatever the dtype. */
#if LANES_ISA > 1
typedef double lanes_wide __attribute__((vector_size(LANES_BYTES)));
#endif

#endif

#undef REAL
#undef LANES
#undef LANES_MOST_SUMS
#undef LANES_FUNCTION
#undef LANES_SQUARE
#if LANES_DTYPE == 32
#define REAL float
#else
#define REAL double
#endif

#if LANES_ISA == 1

#define LANES 1
#define LANES_MOST_SUMS (256 / (int)sizeof(REAL))
typedef REAL ON(vec);
#if LANES_DTYPE == 32
#define LANES_FUNCTION(name) name##f
#else
#define LANES_FUNCTION(name) name
#endif

LANES_INLINE ON(vec) ON(load)(const REAL *p)
{
    return *p;
}

LANES_INLINE void ON(store)(REAL *p, ON(vec) v)
{
    *p = v;
}

LANES_INLINE ON(vec) ON(load_part)(const REAL *p, int64_t n)
{
    return n > 0 ? *p : (REAL)1;
}

LANES_INLINE void ON(store_part)(REAL *p, ON(vec) v, int64_t n)
{
    if (n > 0)
        *p = v;
}

/* v, and 0 in the lanes from n on. */
LANES_INLINE ON(vec) ON(keep_part)(ON(vec) v, int64_t n)
{
    return n > 0 ? v : 0;
}

/* The sum of partial sums, which are added in pairs, in double: the first one and that in the
 * middle, and so on. `count` is a power of two. */
LANES_INLINE double ON(lane_total)(const ON(vec) * part, int count)
{
    double sum[LANES_MOST_SUMS / 2];
    for (int k = 0; k < count / 2; k++)
        sum[k] = (double)part[k] + (double)part[k + count / 2];
    for (int width = count / 4; width > 0; width /= 2)
        for (int k = 0; k < width; k++)
            sum[k] += sum[k + width];
    return sum[0];
}

#define ON_SELECT(condition, a, b) ((condition) ? (a) : (b))

LANES_INLINE ON(vec) ON(lane_sqrt)(ON(vec) x)
{
    return LANES_FUNCTION(sqrt)(x);
}

#else

typedef REAL ON(vec) __attribute__((vector_size(LANES_BYTES)));
typedef REAL ON(loose) __attribute__((vector_size(LANES_BYTES), aligned(sizeof(REAL)), may_alias));
#if LANES_DTYPE == 32
typedef int32_t ON(bits) __attribute__((vector_size(LANES_BYTES)));
typedef uint32_t ON(word) __attribute__((vector_size(LANES_BYTES)));
#else
typedef int64_t ON(bits) __attribute__((vector_size(LANES_BYTES)));
typedef uint64_t ON(word) __attribute__((vector_size(LANES_BYTES)));
#endif

#if LANES_ISA == 2 && LANES_DTYPE == 32
#define LANES 8
#define LANES_FUNCTION(name) _ZGVdN8v_##name##f
#elif LANES_ISA == 2
#define LANES 4
#define LANES_FUNCTION(name) _ZGVdN4v_##name
#elif LANES_DTYPE == 32
#define LANES 16
#define LANES_FUNCTION(name) _ZGVeN16v_##name##f
#else
#define LANES 8
#define LANES_FUNCTION(name) _ZGVeN8v_##name
#endif

ON(vec) LANES_FUNCTION(log)(ON(vec));
#define LANES_MOST_SUMS (256 / LANES_BYTES)

LANES_INLINE ON(vec) ON(load)(const REAL *p)
{
    return *(const ON(loose) *)p;
}

LANES_INLINE void ON(store)(REAL *p, ON(vec) v)
{
    *(ON(loose) *)p = v;
}

/* The first n elements, 0 <= n < LANES; the other lanes are 1, which no operation objects to. */
LANES_INLINE ON(vec) ON(load_part)(const REAL *p, int64_t n)
{
    const ON(vec) ones = (REAL)1 - (ON(vec)){0};
#if LANES_ISA == 2 && LANES_DTYPE == 32
    const __m256i mask = _mm256_loadu_si256((const __m256i *)(lanes_masks_32 + 8 - n));
    return _mm256_blendv_ps(ones, _mm256_maskload_ps(p, mask), (__m256)mask);
#elif LANES_ISA == 2
    const __m256i mask = _mm256_loadu_si256((const __m256i *)(lanes_masks_64 + 4 - n));
    return _mm256_blendv_pd(ones, _mm256_maskload_pd(p, mask), (__m256d)mask);
#elif LANES_DTYPE == 32
    return _mm512_mask_loadu_ps(ones, (__mmask16)((1U << n) - 1), p);
#else
    return _mm512_mask_loadu_pd(ones, (__mmask8)((1U << n) - 1), p);
#endif
}

LANES_INLINE void ON(store_part)(REAL *p, ON(vec) v, int64_t n)
{
#if LANES_ISA == 2 && LANES_DTYPE == 32
    _mm256_maskstore_ps(p, _mm256_loadu_si256((const __m256i *)(lanes_masks_32 + 8 - n)), v);
#elif LANES_ISA == 2
    _mm256_maskstore_pd(p, _mm256_loadu_si256((const __m256i *)(lanes_masks_64 + 4 - n)), v);
#elif LANES_DTYPE == 32
    _mm512_mask_storeu_ps(p, (__mmask16)((1U << n) - 1), v);
#else
    _mm512_mask_storeu_pd(p, (__mmask8)((1U << n) - 1), v);
#endif
}

/* v, and 0 in the lanes from n on. */
LANES_INLINE ON(vec) ON(keep_part)(ON(vec) v, int64_t n)
{
#if LANES_ISA == 2 && LANES_DTYPE == 32
    return _mm256_and_ps(v, _mm256_loadu_ps((const float *)(lanes_masks_32 + 8 - n)));
#elif LANES_ISA == 2
    return _mm256_and_pd(v, _mm256_loadu_pd((const double *)(lanes_masks_64 + 4 - n)));
#elif LANES_DTYPE == 32
    return _mm512_maskz_mov_ps((__mmask16)((1U << n) - 1), v);
#else
    return _mm512_maskz_mov_pd((__mmask8)((1U << n) - 1), v);
#endif
}

/* The sum of vectors of partial sums, which are added in pairs, in double: the first one and that
 * in the middle, and so on. `count` is a power of two. */
LANES_INLINE double ON(lane_total)(const ON(vec) * part, int count)
{
    lanes_wide sum[2 * LANES_MOST_SUMS];
#if LANES_DTYPE == 32
    const int each = 2;
    for (int k = 0; k < count; k++) {
#if LANES_ISA == 2
        sum[2 * k] = _mm256_cvtps_pd(_mm256_castps256_ps128(part[k]));
        sum[2 * k + 1] = _mm256_cvtps_pd(_mm256_extractf128_ps(part[k], 1));
#else
        sum[2 * k] = _mm512_cvtps_pd(_mm512_castps512_ps256(part[k]));
        sum[2 * k + 1] = _mm512_cvtps_pd(_mm512_extractf32x8_ps(part[k], 1));
#endif
    }
#else
    const int each = 1;
    for (int k = 0; k < count; k++)
        sum[k] = part[k];
#endif
    for (int half = each * count / 2; half > 0; half /= 2)
        for (int k = 0; k < half; k++)
            sum[k] += sum[k + half];
#if LANES_ISA == 2
    const __m256d all = sum[0];
#else
    const __m256d all = _mm512_castpd512_pd256(sum[0]) + _mm512_extractf64x4_pd(sum[0], 1);
#endif
    const __m128d two = _mm256_castpd256_pd128(all) + _mm256_extractf128_pd(all, 1);
    return two[0] + two[1];
}

#undef ON_SELECT
#define ON_SELECT(condition, a, b) ON(select)((ON(bits))(condition), a, b)
LANES_INLINE ON(vec) ON(select)(ON(bits) mask, ON(vec) a, ON(vec) b)
{
    return (ON(vec))((mask & (ON(bits))a) | (~mask & (ON(bits))b));
}

LANES_INLINE ON(vec) ON(lane_sqrt)(ON(vec) x)
{
#if LANES_ISA == 2 && LANES_DTYPE == 32
    return _mm256_sqrt_ps(x);
#elif LANES_ISA == 2
    return _mm256_sqrt_pd(x);
#elif LANES_DTYPE == 32
    return _mm512_sqrt_ps(x);
#else
    return _mm512_sqrt_pd(x);
#endif
}

/* The less and the greater of the two; b if one is NaN. */
LANES_INLINE ON(vec) ON(lane_lower)(ON(vec) a, ON(vec) b)
{
#if LANES_ISA == 2 && LANES_DTYPE == 32
    return _mm256_min_ps(a, b);
#elif LANES_ISA == 2
    return _mm256_min_pd(a, b);
#elif LANES_DTYPE == 32
    return _mm512_min_ps(a, b);
#else
    return _mm512_min_pd(a, b);
#endif
}

LANES_INLINE ON(vec) ON(lane_upper)(ON(vec) a, ON(vec) b)
{
#if LANES_ISA == 2 && LANES_DTYPE == 32
    return _mm256_max_ps(a, b);
#elif LANES_ISA == 2
    return _mm256_max_pd(a, b);
#elif LANES_DTYPE == 32
    return _mm512_max_ps(a, b);
#else
    return _mm512_max_pd(a, b);
#endif
}

/* A square of elements, as wide as 256 bits: the columns of `from` become rows of `to`. */
#define LANES_SQUARE (32 / (int)sizeof(REAL))
LANES_INLINE void ON(square_turn)(const REAL *from, int64_t from_step, REAL *to, int64_t to_step)
{
#if LANES_DTYPE == 32
    __m256 a[8], b[8];
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++)
        a[k] = _mm256_loadu_ps(from + k * from_step);
#pragma GCC unroll 4
    for (int k = 0; k < 8; k += 2) {
        b[k] = _mm256_unpacklo_ps(a[k], a[k + 1]);
        b[k + 1] = _mm256_unpackhi_ps(a[k], a[k + 1]);
    }
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        const int i = k / 2 * 4 + k % 2; /* b[i], b[i + 2] are the same half of four rows */
        a[i] = _mm256_shuffle_ps(b[i], b[i + 2], 0x44);
        a[i + 2] = _mm256_shuffle_ps(b[i], b[i + 2], 0xee);
    }
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) { /* rows 0 1 2 3 of the square lie in a[0], a[2], a[1], a[3] */
        const int i = k / 2 + k % 2 * 2;
        _mm256_storeu_ps(to + k * to_step, _mm256_permute2f128_ps(a[i], a[i + 4], 0x20));
        _mm256_storeu_ps(to + (k + 4) * to_step, _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
    }
#else
    __m256d a[4], b[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++)
        a[k] = _mm256_loadu_pd(from + k * from_step);
#pragma GCC unroll 2
    for (int k = 0; k < 4; k += 2) {
        b[k] = _mm256_unpacklo_pd(a[k], a[k + 1]);
        b[k + 1] = _mm256_unpackhi_pd(a[k], a[k + 1]);
    }
#pragma GCC unroll 2
    for (int k = 0; k < 2; k++) {
        _mm256_storeu_pd(to + k * to_step, _mm256_permute2f128_pd(b[k], b[k + 2], 0x20));
        _mm256_storeu_pd(to + (k + 2) * to_step, _mm256_permute2f128_pd(b[k], b[k + 2], 0x31));
    }
#endif
}

/* a b + c, rounded once. */
LANES_INLINE ON(vec) ON(lane_fma)(ON(vec) a, ON(vec) b, ON(vec) c)
{
#if LANES_ISA == 2 && LANES_DTYPE == 32
    return _mm256_fmadd_ps(a, b, c);
#elif LANES_ISA == 2
    return _mm256_fmadd_pd(a, b, c);
#elif LANES_DTYPE == 32
    return _mm512_fmadd_ps(a, b, c);
#else
    return _mm512_fmadd_pd(a, b, c);
#endif
}

#endif

LANES_INLINE ON(vec) ON(splat)(REAL c)
{
    return c - (ON(vec)){0};
}

LANES_INLINE ON(vec) ON(lane_copy)(ON(vec) x)
{
    return x;
}

LANES_INLINE ON(vec) ON(lane_neg)(ON(vec) x)
{
    return -x;
}

LANES_INLINE ON(vec) ON(lane_log)(ON(vec) x)
{
    return LANES_FUNCTION(log)(x);
}

/* A comparison that is false for NaN keeps it. */
LANES_INLINE ON(vec) ON(lane_relu)(ON(vec) x)
{
    const ON(vec) zero = ON(splat)(0);
    return ON_SELECT(x <= zero, zero, x);
}

LANES_INLINE ON(vec) ON(lane_square)(ON(vec) x)
{
    return x * x;
}

LANES_INLINE ON(vec) ON(lane_add)(ON(vec) a, ON(vec) b)
{
    return a + b;
}

LANES_INLINE ON(vec) ON(lane_sub)(ON(vec) a, ON(vec) b)
{
    return a - b;
}

LANES_INLINE ON(vec) ON(lane_mul)(ON(vec) a, ON(vec) b)
{
    return a * b;
}

LANES_INLINE ON(vec) ON(lane_div)(ON(vec) a, ON(vec) b)
{
    return a / b;
}

LANES_INLINE ON(vec) ON(lane_gate)(ON(vec) a, ON(vec) b)
{
    const ON(vec) zero = ON(splat)(0);
    return ON_SELECT(a > zero, b, zero);
}

LANES_INLINE ON(vec) ON(lane_tie)(ON(vec) a, ON(vec) b)
{
    const ON(vec) zero = ON(splat)(0), one = ON(splat)(1);
    return ON_SELECT(a == b, one, ON_SELECT(a == a, zero, ON_SELECT(b == b, zero, one)));
}

LANES_INLINE ON(vec) ON(lane_scale)(REAL c, ON(vec) x)
{
    return ON(splat)(c) * x;
}

LANES_INLINE ON(vec) ON(lane_offset)(REAL c, ON(vec) x)
{
    return x + ON(splat)(c);
}

/* The greater; NaN if either is. */
LANES_INLINE ON(vec) ON(lane_max)(ON(vec) a, ON(vec) b)
{
    return ON_SELECT(a >= b, a, ON_SELECT(a == a, b, a));
}
