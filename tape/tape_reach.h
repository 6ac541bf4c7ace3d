/* tape_reach.h: which records a sweep comes to, and what their pullbacks read.
 *
 * May include: tape.h. Walks are from the last record backwards, so that a record is met after all
 * that use its outputs.
 */
#ifndef TAPE_REACH_H
#define TAPE_REACH_H

#include "tape.h"

/* Before a walk: the sweep comes to y (0: none) or the roots among statements and, so far, to no
 * other value. False: no memory, and there is no walk. */
bool tape_reach_begin(struct tape *t, uint32_t y);
void tape_reach_end(struct tape *t);

/* Whether the sweep comes to this record; then its operands that have the flag `wants` are reached
 * as well, and *reads says which operands its pullback reads for them. */
bool tape_reach(struct tape *t, struct tape_record *r, enum tape_flag wants, uint32_t *reads);

/* Which operands the pullback touches in a sweep of all that needs a gradient. */
uint32_t tape_reach_touches(const struct tape *t, struct tape_record *r);

/* The first operand from i on that is one of `reads`, or else n_in. Bit i of reads is that of
 * operand i; a record of more operands than bits reads all or none. */
static inline int tape_reach_next(const struct tape_record *r, uint32_t reads, int i)
{
    if (reads == UINT32_MAX)
        return i;
    while (i < r->n_in && !(i < 32 && reads >> i & 1))
        i++;
    return i;
}

#endif
