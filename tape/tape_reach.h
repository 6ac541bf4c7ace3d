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
 * as well, and bit i of *reads says that its pullback reads operand i for them. */
bool tape_reach(struct tape *t, struct tape_record *r, enum tape_flag wants, unsigned *reads);

/* Bit i: the pullback touches operand i in a sweep of all that needs a gradient. */
unsigned tape_reach_touches(const struct tape *t, struct tape_record *r);

#endif
