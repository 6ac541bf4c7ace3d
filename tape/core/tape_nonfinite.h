/* tape_nonfinite.h: finding where the first value, partial derivative or adjoint that is not finite
 * arose.
 *
 * A tape looks only while tape.nonfinite is not 0. What is found becomes the sticky error
 * TAPE_ERROR_NONFINITE, at the line where it arose.
 */
#ifndef TAPE_NONFINITE_H
#define TAPE_NONFINITE_H

#include "tape_account.h"
#include "tape_part.h"

#include <math.h>

/* What is looked for: the public ad_trap. TAPE_TRAP_BREAK: NaN, and the tape's record_watch is told
 * of whatever is found. Nothing is looked for by TAPE_TRAP_WATCH: tape.scalar_watch is told; nor by
 * TAPE_TRAP_RECORDS: the record_watch is told of records. */
enum {
    TAPE_TRAP_NAN = 1,
    TAPE_TRAP_INF = 2,
    TAPE_TRAP_WATCH = 4,
    TAPE_TRAP_RECORDS = 8,
    TAPE_TRAP_BREAK = 16
};

/* Of the bits `of` those of `trap` are set from now on. */
void tape_nonfinite_set(struct tape *t, int of, int trap);

/* Whether x is what `what` looks for. */
static inline bool tape_nonfinite_is(int what, double x)
{
    return __builtin_expect(!isfinite(x), 0) &&
           (what & (isnan(x) ? TAPE_TRAP_NAN | TAPE_TRAP_BREAK : TAPE_TRAP_INF)) != 0;
}

/* As messages have it: a NaN's sign says nothing. */
static inline double tape_nonfinite_shown(double x)
{
    return isnan(x) ? fabs(x) : x;
}

/* What is being written becomes part of the tape, and has been looked at then. */
static inline void tape_nonfinite_settle(struct tape *t)
{
    if (t->nonfinite)
        tape_settle(t);
}

/* All below are called only while t->nonfinite is not 0. False, or a status: the error is set. */

/* The arrays of the user's among an op's operands, before it runs; and its results afterwards. */
enum tape_status tape_nonfinite_operands(struct tape *t, const char *op, int n_in,
                                         const uint32_t *in, struct tape_site site);
enum tape_status tape_nonfinite_results(struct tape *t, const struct kernel_op *op, int n_in,
                                        const uint32_t *in, uint32_t first_out,
                                        struct tape_site site);

/* n numbers that are copied to the tape. */
enum tape_status tape_nonfinite_numbers(struct tape *t, const char *what, const char *name,
                                        int64_t n, const double *values, struct tape_site site);

/* Before a sweep: gradients that the tape holds, the seed (a value; 0: none), and whether the run
 * just closed was in order. */
enum tape_status tape_nonfinite_begin(struct tape *t, uint32_t seed, const char *what,
                                      struct tape_site site);
/* The adjoints of a record's operands, after its pullback. */
bool tape_nonfinite_adjoints(struct tape *t, struct tape_record *r);
/* The same of one value's adjoint, which something at `site` has changed. */
bool tape_nonfinite_adjoint(struct tape *t, const struct tape_value *v, const char *what,
                            struct tape_site site);
#endif
