/* tape_kind.h: what a kind of record answers when the tape asks: the tape knows these verbs, and
 * not what they are of.
 *
 * The records of all kernels' ops are of one kind, tape_op_kind. Any other kind begins with an op
 * of its own, which has no pullback: so a record needs no more than its op to be told apart.
 */
#ifndef TAPE_KIND_H
#define TAPE_KIND_H

#include "tape_types.h"

struct record_kind {
    struct kernel_op op; /* first: the records' op. Its name is the kind's; it has no pullback */

    /* The record's part of a sweep that has adjoints for its results. stamp: see tape_sweep.h.
     * False: the tape's error says why, or there was no memory. */
    bool (*sweep)(struct tape *t, struct tape_record *r, uint64_t *stamp);

    /* Of a record without outputs, whose results are scalars: whether the sweep has adjoints for
     * them. NULL: never. */
    bool (*seeded)(const struct tape *t);

    /* Sweeps run it also where no adjoint has come to its results; NULL: never. */
    bool (*always)(struct tape_record *r);
    /* Of such: sweeps run it when the adjoints of its operands are complete (tape_due.h), not in
     * its turn; NULL: never. */
    bool (*waits)(struct tape_record *r);

    /* For tape_reach: see there. */
    bool (*reach)(struct tape *t, struct tape_record *r, enum tape_flag wants, uint32_t *reads);
    /* Which operands its pullback touches; NULL: none. */
    uint32_t (*touches)(const struct tape *t, struct tape_record *r);
    /* Which results its pullback reads, and what its op is called, where that is the record's own;
     * NULL: as the op says. */
    uint64_t (*saves_out)(struct tape_record *r);
    const char *(*name)(struct tape_record *r);

    /* Charges what belongs to the record beside its own bytes, or takes it off the account; NULL:
     * nothing does. Called while the tape is observed. */
    void (*account)(struct tape *t, struct tape_record *r);
    void (*account_drop)(struct tape *t, struct tape_record *r);
    /* Puts what was recorded with it into the trace, where that was put off (tape_trace.h). */
    void (*trace)(struct tape *t, struct tape_record *r);

    /* The record is a call of a function of the user's: makes it again, recording for good;
     * result[n_out]: what it returned. False: the tape's error says why, and nothing is left.
     * NULL: it is no such call. */
    bool (*again)(struct tape *t, struct tape_record *r, uint32_t *result);

    /* Records the derivative: term[n_in] receives values, 0 where there is nothing to be added, for
     * the operands of `needs`, from the results' adjoints (0: none). False: the tape's error says
     * why. NULL: its op has a pullback, or `again`. */
    bool (*graph)(struct tape *t, struct tape_record *r, const uint32_t *adjoint, uint64_t needs,
                  uint32_t *term);

    /* Computes once more what the record did, on operands of the same shapes, and records it like
     * any op; out[n_out]. NULL: nothing can. */
    enum tape_status (*apply)(struct tape *t, struct tape_record *r, const uint32_t *in,
                              uint32_t *out);

    /* Computes once more what the record did, into its results, with times that are chained
     * (tape.stamp). NULL: nothing can. And why a record cannot be replayed; NULL: it can. */
    enum tape_status (*replay)(struct tape *t, struct tape_record *r);
    const char *(*fixed)(struct tape_record *r);

    /* Charges the time that a sweep took for the record, beside what its `sweep` has charged, to
     * other lines than its own; NULL: all of it is its row's. The reading of the clock with which
     * its sweep began. Called while the tape is observed. */
    uint64_t (*charge_sweep)(struct tape *t, struct tape_record *r, uint64_t ticks);

    bool is_run;        /* it is a run of statements (tape_run_of), and nothing else */
    bool gives_scalars; /* its results are scalars, of an operand that is any tensor */
};

extern const struct record_kind tape_op_kind;

static inline const struct record_kind *tape_record_kind(const struct tape_record *r)
{
    return r->op->pullback ? &tape_op_kind : (const struct record_kind *)(const void *)r->op;
}

/* Bit o: the pullback reads result o. */
static inline uint64_t tape_record_saves_out(struct tape_record *r)
{
    const struct record_kind *kind = tape_record_kind(r);
    return kind->saves_out ? kind->saves_out(r) : r->op->saves_out;
}

/* Something outside the tape depends on the record: each sweep that passes it runs it. */
static inline bool tape_record_always(struct tape_record *r)
{
    const struct record_kind *kind = tape_record_kind(r);
    return kind->always && kind->always(r);
}

static inline bool tape_record_waits(struct tape_record *r)
{
    const struct record_kind *kind = tape_record_kind(r);
    return kind->waits && kind->waits(r);
}

/* What messages call the record. */
static inline const char *tape_record_name(struct tape_record *r)
{
    const struct record_kind *kind = tape_record_kind(r);
    return kind->name ? kind->name(r) : r->op->name;
}

/* Sweeps may come to the record. To some that are there for a replay alone, none does. */
static inline bool tape_record_is_swept(const struct tape *t, struct tape_record *r)
{
    bool swept = t->replays == TAPE_REPLAYS_NOTHING || r->n_out == 0;
    for (int o = 0; o < r->n_out && !swept; o++)
        swept = (t->entries[tape_record_out(r)[o]].flags & TAPE_NEEDS_GRADIENT) != 0;
    return swept;
}

/* Which operands the pullback touches in a sweep of all that needs a gradient. */
static inline uint32_t tape_record_touches(const struct tape *t, struct tape_record *r)
{
    const struct record_kind *kind = tape_record_kind(r);
    return kind->touches ? kind->touches(t, r) : 0;
}

/* The first operand from i on that is one of `reads`, or else n_in. Bit i of reads is that of
 * operand i; a record of more operands than bits reads all or none. */
static inline int tape_record_next(const struct tape_record *r, uint32_t reads, int i)
{
    if (reads == UINT32_MAX)
        return i;
    while (i < r->n_in && !(i < 32 && reads >> i & 1))
        i++;
    return i;
}

#endif
