/* tape_reach.h: which records a sweep comes to, and what their pullbacks read.
 *
 * Walks are from the last record backwards, so that a record is met after all that use its
 * outputs.
 */
#ifndef TAPE_REACH_H
#define TAPE_REACH_H

#include "tape_kind.h"

/* Before a walk: the sweep comes to y (0: none) or the roots among statements and, so far, to no
 * other value. False: no memory, and there is no walk. */
bool tape_reach_begin(struct tape *t, uint32_t y);
void tape_reach_end(struct tape *t);

/* Whether the sweep comes to this record; then its operands that have the flag `wants` are reached
 * as well, and *reads says which operands its pullback reads for them. */
bool tape_reach(struct tape *t, struct tape_record *r, enum tape_flag wants, uint32_t *reads);

/* For kinds: whether one of the record's outputs is reached; then its operands that have the flag
 * are as well, and *needs has a bit for each of these. */
bool tape_reach_operands(struct tape *t, struct tape_record *r, enum tape_flag wants,
                         uint64_t *needs);
/* Whether one of the record's outputs is reached. */
bool tape_reach_output(const struct tape *t, struct tape_record *r);

#endif
