/* ad_program_nest.h: a program as text has it: loops of loops and steps, and where values lie.
 *
 * What repeats is a loop, by the rules of the roll (tape_roll.h); what repeats in its round is an
 * inner loop where all that it reads goes on evenly. An *item* is a loop or a step. A step's
 * *rounds* are those of the loops it is in, the outermost (its root) first.
 *
 * A value that is read in its own rounds alone is a variable of its loop. Others are *stored*: they
 * have a position for each round, or, where no other round of the root reads them, for each inner
 * one. Inputs have the first positions, in their order.
 *
 * Invariant: an operand that is not direct reads position base + sum of rounds * stride. In round 0
 * of an inner loop it may be read from elsewhere (what a sum begins with); in the root's rounds it
 * may be a column, which has a base for each stretch of them.
 */
#ifndef AD_PROGRAM_NEST_H
#define AD_PROGRAM_NEST_H

#include "tape_roll.h"

enum { NEST_DEPTH = 4 };

/* A step that an operand reads, in some round; item 0: a leaf. */
struct nest_edge {
    uint32_t item, next;
    bool across; /* from another round of the root, or another root */
    bool input;
};

/* Position base + sum of rounds * stride. */
struct nest_address {
    int64_t base, stride[NEST_DEPTH];
};

struct nest_operand {
    uint32_t edge;   /* 0: it is a constant, or there is none */
    uint32_t direct; /* the item whose variable it is; 0: it is read from a position */
    struct nest_address address;
    uint32_t
        turn; /* the depth of the inner loop in whose round 0 it is read from `first`; 0: none */
    struct nest_address first;
    uint32_t
        column; /* of the root, from 1 on, in place of the base that round 0 of inner loops has;
                        0: none */
};

struct nest_constant {
    uint32_t table; /* from 1 on; 0: it is `value` in all rounds */
    double value;
    uint32_t stride[NEST_DEPTH];
};

struct nest_item {
    uint32_t path[NEST_DEPTH], depth; /* the loops that it is in */
    uint32_t first, last;             /* of a loop: what is in it, */
    uint32_t next, before;            /* in order */
    uint32_t rounds, length;          /* of a loop, in steps; 0: a step */
    uint32_t off;                     /* in a round of the loop that it is in */
    uint32_t index;                   /* of its first round */
    struct tape_site site;
    /* A root's: */
    uint32_t column, n_columns;    /* among all */
    uint32_t stretch, n_stretches; /* rows of {first round, end, a base for each column} */
    /* A step's: */
    struct nest_operand operand[TAPE_STEP_OPERANDS];
    struct nest_constant constant[TAPE_STEP_CONSTANTS];
    uint32_t position, hold[NEST_DEPTH]; /* base and strides, where it is stored or spilled */
    uint16_t op;
    bool kept, stored; /* kept: for each round of the root */
    bool spilled;      /* a variable that the way back reads in another loop than its own */
    bool live;         /* results or questions depend on it */
    bool active;       /* it has an adjoint */
    bool forward;      /* computed before the way back begins */
    bool wanted;       /* there on the way back, in its own rounds */
    bool deep;         /* its adjoint is added to in inner loops */
    bool begun;        /* for who writes: its adjoint has been declared */
};

struct nest_array {
    void *at;
    uint32_t n, size;
};

struct nest_table {
    double *value;
    uint32_t n;
    uint64_t hash;
};

struct program_nest {
    struct tape *t;
    const struct tape_program *p;
    struct roll_loop *loops; /* those that are outermost */
    uint32_t n_loops, n_steps;
    struct nest_array items, edges, rejected, tables, rows, columns, roots;
    uint32_t *item_of; /* [n_steps] of their bodies */
    uint32_t *leaf;    /* [n_leaf] positions; UINT32_MAX: it is no leaf of the program */
    uint32_t n_leaf;
    uint32_t n_inputs, n_positions, n_spilled;
    uint32_t tries; /* trees that were made */
    int64_t twice;  /* an input that was named before; -1: none */
    bool failed;    /* there was no memory */
};

/* What is asked of a program: results y[m], of inputs x[n]; questions, but those that were
 * read only, if `reads` is false. */
struct nest_wish {
    int64_t m, n;
    const uint32_t *y, *x; /* indices; 0: a constant */
    bool reads;
};

/* False: there is no memory, or (then `failed` is false) an input is named twice, or there are too
 * many positions. Either way nest_drop comes last. */
bool nest_make(struct program_nest *n, struct tape *t, const struct nest_wish *wish);
void nest_drop(struct program_nest *n);

static inline struct nest_item *nest_item(const struct program_nest *n, uint32_t k)
{
    return (struct nest_item *)n->items.at + k;
}

/* Where the value of an index is stored. */
uint32_t nest_position(const struct program_nest *n, uint32_t index);

static inline const struct nest_edge *nest_edge(const struct program_nest *n, uint32_t k)
{
    return (const struct nest_edge *)n->edges.at + k;
}

/* Whether an active step adds to the adjoint of what its operand k reads. */
bool nest_gives(const struct program_nest *n, const struct nest_item *s, uint32_t k);

/* Whether the step of the item is computed again on the way back. */
static inline bool nest_again(const struct nest_item *s)
{
    return s->wanted && !(s->forward && s->kept);
}

#endif
