/* fused_loop_vectors.h: vectors of eight doubles, whatever the machine's are, for one instruction
 * set.
 *
 * Included by fused_loop_isa.c.
 *
 * A vector is one of the machine's, a pair or four of them: gcc 12 moves a vector that is wider
 * than the machine's through the stack.
 *
 * Invariant: total() adds the lanes in the same order everywhere.
 */
#ifndef FUSED_LOOP_VECTORS_H
#define FUSED_LOOP_VECTORS_H

enum { WIDTH = 8 };

#if defined(__AVX512F__)
enum { LANES = 8 };
#define PARTS(X) X(0)
#elif defined(__AVX2__)
enum { LANES = 4 };
#define PARTS(X) X(0) X(1)
#else
enum { LANES = 2 };
#define PARTS(X) X(0) X(1) X(2) X(3)
#endif

typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));
typedef double lanes_at
    __attribute__((vector_size(LANES * sizeof(double)), aligned(sizeof(double)), may_alias));

/* Named parts: those of an array would be in memory. */
typedef struct {
#define PART(i) lanes p##i;
    PARTS(PART)
#undef PART
} vec;

INLINE vec vec_load(const double *p)
{
    vec v;
#define PART(i) v.p##i = *(const lanes_at *)(p + i * LANES);
    PARTS(PART)
#undef PART
    return v;
}

INLINE void vec_store(double *p, vec v)
{
#define PART(i) *(lanes_at *)(p + i * LANES) = v.p##i;
    PARTS(PART)
#undef PART
}

/* Every second double. It reads the one behind the last as well, which is the key of a number. */
INLINE lanes lanes_of_reals(const double *p)
{
    const lanes low = *(const lanes_at *)p, high = *(const lanes_at *)(p + LANES);
#if defined(__AVX512F__)
    return __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14);
#elif defined(__AVX2__)
    return __builtin_shufflevector(low, high, 0, 2, 4, 6);
#else
    return __builtin_shufflevector(low, high, 0, 2);
#endif
}

/* Elements `stride` apart, which is 1 or 2. */
INLINE vec vec_load_strided(const double *p, int64_t stride)
{
    if (stride == 1)
        return vec_load(p);
    vec v;
#define PART(i) v.p##i = lanes_of_reals(p + 2 * i * LANES);
    PARTS(PART)
#undef PART
    return v;
}

INLINE vec vec_splat(double a)
{
    vec v;
#define PART(i) v.p##i = a - (lanes){0};
    PARTS(PART)
#undef PART
    return v;
}

INLINE vec vec_multiply(vec a, vec b)
{
#define PART(i) a.p##i *= b.p##i;
    PARTS(PART)
#undef PART
    return a;
}

/* a + b c, rounded twice. */
INLINE vec vec_add_product(vec a, vec b, vec c)
{
#define PART(i) a.p##i += b.p##i * c.p##i;
    PARTS(PART)
#undef PART
    return a;
}

INLINE vec vec_add(vec a, vec b)
{
#define PART(i) a.p##i += b.p##i;
    PARTS(PART)
#undef PART
    return a;
}

/* ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)) */
INLINE double vec_total(vec v)
{
#if defined(__AVX512F__)
    const lanes a = v.p0;
    return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
#elif defined(__AVX2__)
    const lanes a = v.p0 + v.p1;
    return (a[0] + a[2]) + (a[1] + a[3]);
#else
    const lanes a = (v.p0 + v.p2) + (v.p1 + v.p3);
    return a[0] + a[1];
#endif
}

#endif
