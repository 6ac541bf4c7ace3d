/* tape_cone.h: walks back over what a few numbers were computed from, and over nothing else.
 *
 * A sweep of the whole tape costs the tape, however little a number depends on. A walk goes from
 * its roots to the statements that they name, the newest first, and ends at leaves. Which index is
 * next is kept in a set of bits with a bit above for every 64.
 *
 * Invariant: between walks the set is empty, and no node has the epoch of the next one.
 */
#ifndef TAPE_CONE_H
#define TAPE_CONE_H

#include "tape_statement.h"

enum { TAPE_CONE_LEVELS = 6, TAPE_CONE_ROWS = 64, TAPE_CONE_MAX_WIDTH = 8 };

/* Of an index. */
struct tape_cone_node {
    uint32_t epoch, slot;   /* the walk that came to it, and where its numbers are then */
    uint32_t word, partial; /* of a statement: how far from its run's begin; word 0: it is none */
};

/* Where a walk has come to a column: one of the numbers that derivatives are wanted by. */
struct tape_cone_hit {
    uint32_t column, slot;
};

/* Memory that the tape has handed out for a walk. */
struct tape_cone_room {
    void *p;
    uint64_t bytes;
};

struct tape_cone {
    struct tape *t;
    uint32_t row;       /* that the memory is charged to */
    uint32_t base, end; /* indices that matter */
    uint32_t epoch, n_slots, slots_size, n_hits;
    const struct tape_run **runs; /* newest first */
    uint32_t n_runs, at;          /* runs[at]: of the last statement */
    struct tape_cone_node *node;  /* of base on */
    uint32_t *column;             /* 1 + column of base on; 0: none */
    uint64_t *level[TAPE_CONE_LEVELS];
    int n_levels;
    uint32_t strange; /* an index that no statement and no leaf has, and the walk needs; or 0 */
    uint64_t *mask;   /* [slots]: which rows depend on it */
    double *adjoint;  /* [slots][width] */
    struct tape_cone_hit *hit;
    struct tape_cone_room room[5 + TAPE_CONE_LEVELS + 2];
};

/* For walks from indices below `end` to the numbers x[n], each of which is there once or 0. False:
 * there is no memory. */
bool tape_cone_begin(struct tape_cone *c, struct tape *t, uint32_t row, uint32_t end, int64_t n,
                     const uint32_t *x);
void tape_cone_end(struct tape_cone *c);

/* What a walk tells of each statement that it passes, the newest first: its index, and the rows
 * that depend on it. */
typedef void tape_cone_visit(uint32_t index, uint64_t mask, void *payload);

/* Walks from root[n], whose rows are the bits of masks. width 0: for the masks alone. Else row k
 * is lane k of the adjoints, and begins at 1 where its root is; 1, 2, 4 or 8. A root below `base`
 * is passed over. False: there is no memory, or `strange` is set. */
bool tape_cone_walk(struct tape_cone *c, uint32_t n, const uint32_t *root, uint32_t width,
                    tape_cone_visit *visit, void *payload);

/* The node of an index that the last walk came to, or NULL. */
static inline const struct tape_cone_node *tape_cone_reached(const struct tape_cone *c,
                                                             uint32_t index)
{
    if (index < c->base || index >= c->end || c->node[index - c->base].epoch != c->epoch)
        return NULL;
    return &c->node[index - c->base];
}

#endif
