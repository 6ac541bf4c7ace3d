/* tape_statement_sweep.h: the reverse sweep over a run of statements. */
#ifndef TAPE_STATEMENT_SWEEP_H
#define TAPE_STATEMENT_SWEEP_H

#include "tape_statement.h"

enum { TAPE_MAX_WIDTH = 8 };

/* Adds to the operands' adjoints what the results' are worth; `adjoint` [index][width], width 1, 2,
 * 4 or 8. A result whose adjoint is 0 is passed over, whatever its partials are. now: where the
 * statement under way is published, or NULL. */
void tape_run_pullback(const struct tape_run *run, double *adjoint, uint32_t width,
                       struct tape_now *now);
/* The same of its newest statements, those that begin before the word `end`: the others are left of
 * the run. Between begins and ends, where the thread is looked at. */
void tape_run_pullback_part(struct tape_run *left, const uint32_t *end, double *adjoint,
                            uint32_t width, struct tape_now *now);
/* Whether it publishes each statement: else that it sweeps alone. */
bool tape_run_says_where(const struct tape_now *now);
/* The same with one seed, publishing nothing, of those up to the first whose head is not the next
 * of `head`, which end with TAPE_HEAD_NONE. How many they are. */
#define TAPE_HEAD_NONE UINT32_MAX /* a shape that no statement has */
uint32_t tape_run_pullback_alike(struct tape_run *left, const uint32_t *end, double *adjoint,
                                 const uint32_t *head);
/* The run is swept by the calling thread from here on; and no more. */
void tape_run_sweep_begins(const struct tape_run *run, struct tape_now *now);
void tape_run_sweep_ends(struct tape_now *now);

#endif
