/* tape_adjoints.h: the adjoints of scalars, which live within one sweep.
 *
 * They are tape_statements.adjoint, [index][width], and behind them lies the room that fused loops
 * need.
 */
#ifndef TAPE_ADJOINTS_H
#define TAPE_ADJOINTS_H

#include "tape_statement.h"

/* Adjoints of all scalars, zero, for `width` seeds at once; charged to row `own`. NULL: no
 * memory. */
double *tape_adjoints_begin(struct tape *t, uint32_t width, uint32_t own);
/* The same for one seed, in a sweep that reads no adjoint again that it has passed. On a tape on
 * disk they may go beyond the budget: they then take memory where they are not zero, and give it
 * back once they are passed. */
double *tape_adjoints_begin_passing(struct tape *t, uint32_t own);
/* The sweep has come to scalar `first`. */
void tape_adjoints_passed(struct tape *t, uint32_t first);
void tape_adjoints_end(struct tape *t);

/* Whether they are there: as record_kind.seeded. They lie in one array, so that a record has some
 * if the sweep has any. */
static inline bool tape_adjoints_seeded(const struct tape *t)
{
    return t->statements->adjoint != NULL;
}

/* While they are there: room for all scalars that have come since, whose adjoints, from that of
 * index `first` on, are zero then. The others may move. False: no memory. */
bool tape_adjoints_grow(struct tape *t, uint32_t first);

#endif
