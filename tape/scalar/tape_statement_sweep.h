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

#endif
