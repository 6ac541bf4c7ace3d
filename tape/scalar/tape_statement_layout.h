/* tape_statement_layout.h: the words of a statement, as ad_real_expression.h writes them.
 *
 * The first word is the head: the statement's shape in its lowest bits, above them the lowest bits
 * of its program counter. Then come the indices of its operands. Many operands are 1 or -1 times
 * what they contribute to: x + y, or sum + x * y. Those partial derivatives are not stored: the
 * shape says how many operands have one that is (`general`), and they come first; then come those
 * of +1, then those of -1.
 */
#ifndef TAPE_STATEMENT_LAYOUT_H
#define TAPE_STATEMENT_LAYOUT_H

#include "tape_hook.h"

#include <stdbool.h>

enum {
    TAPE_SHAPES = 1 << TAPE_SHAPE_BITS,
    TAPE_STATEMENT_LEAST = 8, /* bytes: a head and an index */
    TAPE_SHAPE_UNITS = 12, /* shape = units * TAPE_SHAPE_UNITS + general, for fewer general ones */
    TAPE_SHAPE_FULL = 60,  /* TAPE_SHAPE_UNITS general ones, no other */
    TAPE_SHAPE_MANY = 61   /* general ones alone: their number is the second word */
};

struct tape_shape {
    uint8_t general, plus, minus, operands;
};

#define SHAPES_OF(n)                                                                               \
    [n] = {n, 0, 0, n}, [12 + (n)] = {n, 1, 0, n + 1}, [24 + (n)] = {n, 2, 0, n + 2},              \
    [36 + (n)] = {n, 0, 1, n + 1}, [48 + (n)] = {n, 1, 1, n + 2}
static const struct tape_shape tape_shapes[TAPE_SHAPES] = {SHAPES_OF(0),
                                                           SHAPES_OF(1),
                                                           SHAPES_OF(2),
                                                           SHAPES_OF(3),
                                                           SHAPES_OF(4),
                                                           SHAPES_OF(5),
                                                           SHAPES_OF(6),
                                                           SHAPES_OF(7),
                                                           SHAPES_OF(8),
                                                           SHAPES_OF(9),
                                                           SHAPES_OF(10),
                                                           SHAPES_OF(11),
                                                           [TAPE_SHAPE_FULL] = {12, 0, 0, 12}};
#undef SHAPES_OF

/* A statement's operands, in the order of their indices. */
struct tape_operands {
    uint32_t general, plus, n;
    const uint32_t *index; /* [n]; behind them lies the statement before */
};

static inline struct tape_operands tape_statement_operands(const uint32_t *w)
{
    const uint32_t shape = w[0] % TAPE_SHAPES;
    if (__builtin_expect(shape == TAPE_SHAPE_MANY, 0))
        return (struct tape_operands){w[1], 0, w[1], w + 2};
    const struct tape_shape *s = &tape_shapes[shape];
    return (struct tape_operands){s->general, s->plus, s->operands, w + 1};
}

/* The partial derivative by operand k; p: the statement's. */
static inline double tape_operand_partial(const struct tape_operands *o, const double *p,
                                          uint32_t k)
{
    return k < o->general ? p[k] : k < o->general + o->plus ? 1 : -1;
}

static inline const uint32_t *tape_statement_behind(const uint32_t *w)
{
    const struct tape_operands o = tape_statement_operands(w);
    return o.index + o.n;
}

/* Of its program counter: what tape_hook.locate takes. */
static inline uint32_t tape_statement_site(const uint32_t *w)
{
    return w[0] >> TAPE_SHAPE_BITS;
}

/* The bytes of a statement of n operands, `general` of which have a partial derivative that is
 * stored. More than TAPE_SHAPE_UNITS operands are all of that kind. */
static inline uint64_t tape_statement_bytes(uint64_t general, uint64_t n)
{
    return general * sizeof(double) + (n + 1 + (general > TAPE_SHAPE_UNITS)) * sizeof(uint32_t);
}

/* Writes the head of a statement of n general operands below *word, which is then its beginning;
 * where the indices go. */
static inline uint32_t *tape_statement_head(uint32_t **word, uint32_t n, uintptr_t pc)
{
    const uint32_t site = (uint32_t)pc << TAPE_SHAPE_BITS;
    uint32_t *const index = *word - n;
    if (n > TAPE_SHAPE_UNITS) {
        *word = index - 2;
        index[-2] = site | TAPE_SHAPE_MANY;
        index[-1] = n;
    } else {
        *word = index - 1;
        index[-1] = site | (n == TAPE_SHAPE_UNITS ? (uint32_t)TAPE_SHAPE_FULL : n);
    }
    return index;
}

#endif
