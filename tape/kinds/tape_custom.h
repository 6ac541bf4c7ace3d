/* tape_custom.h: an op of the user's over tensors as one record: functions of his compute it, pull
 * its adjoints back, and record its derivative.
 *
 * The record's operands are row-major. Behind its results it has one more output, of the bytes that
 * the op saves for itself, if it does: no handle names it, and it goes as results do.
 *
 * Invariant: the user's functions for buffers cannot use the tape; the one that records may do what
 * a checkpoint's function may.
 */
#ifndef TAPE_CUSTOM_H
#define TAPE_CUSTOM_H

#include "tape_kind.h"

enum { TAPE_CUSTOM_MAX_OUT = 32 };
/* TAPE_SWEPT_ALWAYS: something outside the tape depends on the op, or it on that: it is recorded
 * whether an operand needs a gradient or not, its results need one, and each sweep that passes the
 * record runs its pullback. TAPE_SWEPT_COMPLETE, of such over leaves alone: when their adjoints are
 * complete (tape_due.h); its results need no gradient. */
enum {
    TAPE_SAVES_OPERANDS = 1,
    TAPE_SAVES_RESULTS = 2,
    TAPE_SWEPT_ALWAYS = 4,
    TAPE_WRITES_FRESH = 8,
    TAPE_SWEPT_COMPLETE = 16
};

/* Buffers of one call. data is NULL where a buffer is not there: an operand that wants no adjoint,
 * a result that has none, what is not saved. */
struct tape_custom_call {
    int n_in, n_out; /* of the user's: without its own bytes */
    struct kernel_array *in, *out, *out_adjoint, *in_adjoint;
    bool *in_fresh; /* [n_in], of a pullback: nobody has added to the adjoint */
    void *own;
    uint64_t held; /* bytes outside the tape until the sweep ends, of TAPE_SWEPT_COMPLETE alone */
};

/* A derivative that is recorded: indices of values, 0: none. */
struct tape_custom_graph {
    int n_in, n_out;
    const uint32_t *operand;
    const uint32_t *in, *out; /* what is saved of them, else 0 */
    const uint32_t *out_adjoint;
    uint32_t *in_adjoint; /* to be set */
    const void *own;
};

struct tape_custom;

/* How ad/ calls the user's functions. False: the tape's error says why. */
struct tape_custom_face {
    bool (*forward)(struct tape *t, const struct tape_custom *c, struct tape_custom_call *call,
                    struct tape_site site);
    bool (*pullback)(struct tape *t, const struct tape_custom *c, struct tape_custom_call *call,
                     struct tape_site site);
    bool (*graph)(struct tape *t, const struct tape_custom *c, struct tape_custom_graph *g,
                  struct tape_site site);
    bool replays; /* forward may be called after the call, by replays */
};

/* What the record has for attributes. */
struct __attribute__((may_alias)) tape_custom {
    const struct tape_custom_face *face;
    const char *name; /* static storage */
    void (*forward)(void), (*pullback)(void), (*graph)(void);
    void *payload;
    uint64_t own_bytes;
    uint32_t slot, generation; /* of the tape's handle */
    uint32_t n_results;        /* at most TAPE_CUSTOM_MAX_OUT */
    uint32_t saves; /* TAPE_SAVES_*, TAPE_SWEPT_*; no padding: it is compared by its words */
};

extern const struct record_kind tape_custom_kind;

/* What the bytes of a call's own begin as; the rest is not set. */
struct tape_custom_own {
    const void *bytes;
    size_t n; /* at most own_bytes */
};

/* Runs c on in[n_in], row-major values, and records it if one needs a gradient. shape: of the
 * results [n_results]; out receives them. */
enum tape_status tape_custom(struct tape *t, const struct tape_custom *c, int n_in,
                             const uint32_t *in, const struct kernel_shape *shape,
                             struct tape_custom_own own, struct tape_site site, uint32_t *out);

#endif
