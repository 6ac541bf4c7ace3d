/* tape_call.h: a call of a function of the user's that sweeps make again: what it read, whether it
 * did the same, and everything that it left dropped.
 *
 * A call lies on the stack of whoever makes it; calls nest.
 *
 * Invariant: what a call makes lies behind its `from`, and goes at its end; values, marks and
 * frames from before it stay as they are, which tape.fixed and tape_call_refuse see to. The flag
 * TAPE_READ is that of the values that the innermost call has read.
 */
#ifndef TAPE_CALL_H
#define TAPE_CALL_H

#include "tape_value.h"

struct tape_call {
    struct tape_call *up;
    struct tape_mark from;
    struct tape_fixed fixed; /* as they were, to be put back */
    uint32_t n_marks, gradient_epoch;
    bool dry, has_released;
    const char *runs;   /* whose call it is, for messages; NULL: a checkpoint's function's */
    bool of_scalars;    /* its function's inputs are scalars: it may record statements */
    uint32_t first;     /* of tape.calls.read: this call's own */
    uint32_t n_inputs;  /* of them: what it was given, each once */
    uint32_t n_ops;     /* that it ran, in further calls within it as well */
    uint64_t signature; /* of them, their attributes, operands, and of constants that it made */
};

/* Begins a call that is given in[n]. dry: nothing is recorded, but values that would need a
 * gradient say so. False: out of memory, and no call has begun. */
bool tape_call_begin(struct tape *t, struct tape_call *c, int n, const uint32_t *in, bool dry);

/* The call is over: further ones may drop what it left, and what it has read is its caller's. */
void tape_call_drop(struct tape *t, struct tape_call *c);
/* Instead of dropping it: what it left stays on the tape. */
void tape_call_keep(struct tape *t, struct tape_call *c);
void tape_call_end(struct tape *t, struct tape_call *c);

/* Values that the call has read and was not given; *n of them, valid until its end. */
const uint32_t *tape_call_read(const struct tape *t, const struct tape_call *c, uint32_t *n);

/* Its results belong to its signature. */
void tape_call_results(struct tape *t, int n, const uint32_t *out);

/* The functions below are for what may run within a call; without one they do nothing. */

/* An op is about to run. False: out of memory. */
bool tape_call_op(struct tape *t, const struct kernel_op *op, int n_in, const uint32_t *in,
                  int n_attr, const int64_t *attr);
/* A value is read without an op. */
bool tape_call_reads(struct tape *t, uint32_t x);
/* A constant has come whose content is the user's. */
void tape_call_constant(struct tape *t, const struct tape_value *v);

/* Whether statements may be recorded now: outside of calls, and in one of scalars that records. */
static inline bool tape_call_takes_scalars(const struct tape *t)
{
    return !t->calls.innermost || (t->calls.innermost->of_scalars && !t->calls.dry);
}

/* "WHAT: not while a checkpoint's function runs", or whoever it is. */
enum tape_status tape_call_refuse(struct tape *t, const char *what, struct tape_site site);
/* The same of what depends on scalars that the function was not given. */
enum tape_status tape_call_refuse_scalars(struct tape *t, const char *what, struct tape_site site);

#endif
