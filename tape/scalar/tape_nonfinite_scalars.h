/* tape_nonfinite_scalars.h: the same as tape_nonfinite.h, of statements and fused loops.
 *
 * Invariant: while a tape looks, a run has one statement, since the cursor never has room for two
 * (tape_statement.c): so every statement asks for room, and its value is looked at then, its
 * partial derivatives when the run is closed.
 */
#ifndef TAPE_NONFINITE_SCALARS_H
#define TAPE_NONFINITE_SCALARS_H

#include "tape_fused_loop.h"
#include "tape_nonfinite.h"
#include "tape_statement_layout.h"

/* Told of each result as it is recorded, in the order of their indices, and of each statement once
 * the next follows: those of a fused loop are results alone. */
struct tape_scalar_watch {
    void (*result)(void *payload, uint32_t index, double value, struct tape_site site);
    void (*statement)(void *payload, uint32_t index, const struct tape_operands *operands,
                      const double *partial);
    void *payload;
};

/* All below are called only while t->nonfinite is not 0. False: the error is set. */

/* The value of a fused loop's result i. */
bool tape_nonfinite_result(struct tape *t, const char *what, int64_t i, double value,
                           struct tape_site site);

/* The value of a statement that asks for room; the partial derivatives of a closed run. */
void tape_nonfinite_statement(struct tape *t, double value, struct tape_site site);
void tape_nonfinite_run(struct tape *t, const struct tape_run *run);

/* The adjoints of a fused loop's operands, after its pullback. */
bool tape_nonfinite_fused_loop(struct tape *t, const struct tape_run *run,
                               const struct tape_fused_loop *s, const double *adjoint,
                               uint32_t width);
/* As tape_run_pullback, looking at each statement's adjoints. */
bool tape_nonfinite_pullback(struct tape *t, const struct tape_run *run, double *adjoint,
                             uint32_t width);

#endif
