/* tape_trap.h: finding where the first value, partial derivative or adjoint that is not finite
 * arose.
 *
 * May include: tape_segment.h. A tape looks only while tape.trap is not 0. What is found becomes
 * the sticky error TAPE_ERROR_NONFINITE, at the line where it arose.
 *
 * Invariant: while a tape looks, a run has one statement, since the cursor never has room for two
 * (tape_statement.c): so every statement asks for room, and its value is looked at then, its
 * partial derivatives when the run is closed.
 */
#ifndef TAPE_TRAP_H
#define TAPE_TRAP_H

#include "tape_segment.h"

/* What is trapped: the public ad_trap. */
enum { TAPE_TRAP_NAN = 1, TAPE_TRAP_INF = 2 };

void tape_trap_set(struct tape *t, int trap);

/* Closes the open run, so that its partial derivatives have been looked at. */
static inline void tape_trap_settle(struct tape *t)
{
    if (t->trap)
        tape_statement_settle(t);
}

/* All below are called only while t->trap is not 0. False, or a status: the error is set. */

/* The arrays of the user's among an op's operands, before it runs; and its results afterwards. */
enum tape_status tape_trap_operands(struct tape *t, const char *op, int n_in, const uint32_t *in,
                                    struct tape_site site);
enum tape_status tape_trap_results(struct tape *t, const struct kernel_op *op, int n_in,
                                   const uint32_t *in, uint32_t first_out, struct tape_site site);

/* n numbers that are copied to the tape. */
enum tape_status tape_trap_numbers(struct tape *t, const char *what, const char *name, int64_t n,
                                   const double *values, struct tape_site site);

/* The value of a segment's result i. */
bool tape_trap_result(struct tape *t, const char *what, int64_t i, double value,
                      struct tape_site site);

/* The value of a statement that asks for room; the partial derivatives of a closed run. */
void tape_trap_statement(struct tape *t, double value, struct tape_site site);
void tape_trap_run(struct tape *t, const struct tape_run *run);

/* Before a sweep: gradients that the tape holds, the seed (a value; 0: none), and whether the run
 * just closed was in order. */
enum tape_status tape_trap_begin(struct tape *t, uint32_t seed, const char *what,
                                 struct tape_site site);
/* The adjoints of a record's operands, after its pullback. */
bool tape_trap_adjoints(struct tape *t, struct tape_record *r);
/* The adjoints of a segment's operands, after its pullback. */
bool tape_trap_segment(struct tape *t, const struct tape_run *run, const struct tape_segment *s,
                       const double *adjoint, uint32_t width);
/* As tape_run_pullback, looking at each statement's adjoints. */
bool tape_trap_pullback(struct tape *t, const struct tape_run *run, double *adjoint,
                        uint32_t width);

#endif
