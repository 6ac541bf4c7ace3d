/* elementwise_loops.h: the loops of all rows for one instruction set and one dtype.
 *
 * A template: included by elementwise_isa.c after lanes.h, for each dtype. Row ID gives
 * ID_assign_64 and ID_accumulate_64, and the same for its derivatives.
 *
 * Invariant: the last elements run through the same vector code as the others.
 */
#include "elementwise_reads.h"

#define WORD1(op, x) ON(lane_##op)(x)
#define WORD2(op, a, b) ON(lane_##op)(a, b)
#define WORD3(op, a, b, c) ON(lane_##op)(a, b, c)
#define WORDP(op, c, x) ON(lane_##op)((REAL)(c), x)
#define WORDQ(op, c, d, x) ON(lane_##op)((REAL)(c), (REAL)(d), x)
#define LETTER_X e.x
#define LETTER_B e.b
#define LETTER_C e.c
#define LETTER_Y e.y
#define LETTER_G e.g
#define LETTER_P e.p
#define LETTER_Q e.q
#define LETTER_NONE e.none

struct ON(operands) {
    ON(vec) g, x, b, c, y, none;
    REAL p, q;
};

typedef ON(vec) ON(expression)(struct ON(operands) e);

LANES_INLINE void ON(loop)(ON(expression) * f, int n_parameters, unsigned reads, bool accumulate,
                           int64_t n, void *out, const void *const *in, const double *parameters)
{
    struct ON(operands) e = {.p = n_parameters > 0 ? (REAL)parameters[0] : 0,
                             .q = n_parameters > 1 ? (REAL)parameters[1] : 0};
    const REAL *g = reads & READS_G ? *in++ : NULL;
    const REAL *x = reads & READS_X ? *in++ : NULL;
    const REAL *b = reads & READS_B ? *in++ : NULL;
    const REAL *c = reads & READS_C ? *in++ : NULL;
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
        if (reads & READS_C)
            e.c = ON(load)(c + i);
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
    if (reads & READS_C)
        e.c = ON(load_part)(c + i, rest);
    if (reads & READS_Y)
        e.y = ON(load_part)(y + i, rest);
    const ON(vec) r = f(e);
    ON(store_part)(o + i, accumulate ? ON(load_part)(o + i, rest) + r : r, rest);
}

#define LOOP_PAIR(id, n_parameters, reads, text)                                                   \
    LANES_INLINE ON(vec) ON(id##_expression)(struct ON(operands) e)                                \
    {                                                                                              \
        return text;                                                                               \
    }                                                                                              \
    static void ON(id##_assign)(int64_t n, void *out, const void *const *in,                       \
                                const double *parameters)                                          \
    {                                                                                              \
        ON(loop)(ON(id##_expression), n_parameters, reads, false, n, out, in, parameters);         \
    }                                                                                              \
    static void ON(id##_accumulate)(int64_t n, void *out, const void *const *in,                   \
                                    const double *parameters)                                      \
    {                                                                                              \
        ON(loop)(ON(id##_expression), n_parameters, reads, true, n, out, in, parameters);          \
    }

#define ROW1(id, parameters, forward, dx, ...)                                                     \
    LOOP_PAIR(id, PARAMETERS_##parameters, READS_X, forward)                                       \
    LOOP_PAIR(id##_dx, PARAMETERS_##parameters, READS_OF(COUNT_OF_##id##_dx), dx)
#define ROW2(id, forward, da, db, ...)                                                             \
    LOOP_PAIR(id, 0, READS_A | READS_B, forward)                                                   \
    LOOP_PAIR(id##_da, 0, READS_OF(COUNT_OF_##id##_da), da)                                        \
    LOOP_PAIR(id##_db, 0, READS_OF(COUNT_OF_##id##_db), db)
#define ROW3(id, forward, da, db, dc, ...)                                                         \
    LOOP_PAIR(id, 0, READS_A | READS_B | READS_C, forward)                                         \
    LOOP_PAIR(id##_da, 0, READS_OF(COUNT_OF_##id##_da), da)                                        \
    LOOP_PAIR(id##_db, 0, READS_OF(COUNT_OF_##id##_db), db)                                        \
    LOOP_PAIR(id##_dc, 0, READS_OF(COUNT_OF_##id##_dc), dc)
#include "elementwise.def"
#undef LOOP_PAIR
