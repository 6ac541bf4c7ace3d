/* elementwise_loops.h: the loops of all rows for one instruction set and one dtype.
 *
 * May include: elementwise_reads.h, elementwise.def. A template: included by elementwise_isa.c
 * after lanes.h, for each dtype. Row ID gives ID_assign_64 and ID_accumulate_64, and the same for
 * its derivatives.
 *
 * Invariant: the last elements run through the same vector code as the others.
 */
#include "elementwise_reads.h"

#undef WORD1
#undef WORD2
#undef WORDP
#undef LETTER_X
#undef LETTER_B
#undef LETTER_Y
#undef LETTER_G
#undef LETTER_P
#undef LETTER_NONE
#define WORD1(op, x) ON(lane_##op)(x)
#define WORD2(op, a, b) ON(lane_##op)(a, b)
#define WORDP(op, c, x) ON(lane_##op)((REAL)(c), x)
#define LETTER_X e.x
#define LETTER_B e.b
#define LETTER_Y e.y
#define LETTER_G e.g
#define LETTER_P e.p
#define LETTER_NONE e.none

struct ON(operands) {
    ON(vec) g, x, b, y, none;
    REAL p;
};

typedef ON(vec) ON(expression)(struct ON(operands) e);

LANES_INLINE void ON(loop)(ON(expression) * f, unsigned reads, bool accumulate, int64_t n,
                           void *out, const void *const *in, double parameter)
{
    struct ON(operands) e = {.p = (REAL)parameter};
    const REAL *g = reads & READS_G ? *in++ : NULL;
    const REAL *x = reads & READS_X ? *in++ : NULL;
    const REAL *b = reads & READS_B ? *in++ : NULL;
    const REAL *y = reads & READS_Y ? *in : NULL;
    REAL *o = out;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        if (reads & READS_G)
            e.g = ON(load)(g + i);
        if (reads & READS_X)
            e.x = ON(load)(x + i);
        if (reads & READS_B)
            e.b = ON(load)(b + i);
        if (reads & READS_Y)
            e.y = ON(load)(y + i);
        const ON(vec) r = f(e);
        ON(store)(o + i, accumulate ? ON(load)(o + i) + r : r);
    }
    if (LANES == 1 || i == n)
        return;
    const int64_t rest = n - i;
    if (reads & READS_G)
        e.g = ON(load_part)(g + i, rest);
    if (reads & READS_X)
        e.x = ON(load_part)(x + i, rest);
    if (reads & READS_B)
        e.b = ON(load_part)(b + i, rest);
    if (reads & READS_Y)
        e.y = ON(load_part)(y + i, rest);
    const ON(vec) r = f(e);
    ON(store_part)(o + i, accumulate ? ON(load_part)(o + i, rest) + r : r, rest);
}

#define LOOP_PAIR(id, reads, text)                                                                 \
    LANES_INLINE ON(vec) ON(id##_expression)(struct ON(operands) e)                                \
    {                                                                                              \
        return text;                                                                               \
    }                                                                                              \
    static void ON(id##_assign)(int64_t n, void *out, const void *const *in, double parameter)     \
    {                                                                                              \
        ON(loop)(ON(id##_expression), reads, false, n, out, in, parameter);                        \
    }                                                                                              \
    static void ON(id##_accumulate)(int64_t n, void *out, const void *const *in, double parameter) \
    {                                                                                              \
        ON(loop)(ON(id##_expression), reads, true, n, out, in, parameter);                         \
    }

#define ROW1(id, visibility, parameters, forward, dx, ...)                                         \
    LOOP_PAIR(id, READS_X, forward)                                                                \
    LOOP_PAIR(id##_dx, READS_OF_##id##_dx, dx)
#define ROW2(id, visibility, forward, da, db, ...)                                                 \
    LOOP_PAIR(id, READS_A | READS_B, forward)                                                      \
    LOOP_PAIR(id##_da, READS_OF_##id##_da, da)                                                     \
    LOOP_PAIR(id##_db, READS_OF_##id##_db, db)
#include "elementwise.def"
#undef ROW1
#undef ROW2
#undef LOOP_PAIR
