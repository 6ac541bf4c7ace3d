/* tape_account.h: the account: a row per {path, site, op, scope, shape}, byte for byte what is
 * handed out.
 *
 * Counters are written only while t->hook is set; by relaxed stores, because the thread that ends
 * an observation reads them.
 *
 * Invariant: the sum over all rows of record_bytes + value_bytes + adjoint_bytes is
 * ledger.handed_out_bytes, and the sum of live_bytes is ledger.live_bytes.
 */
#ifndef TAPE_ACCOUNT_H
#define TAPE_ACCOUNT_H

#include "tape.h"
#include "tape_residuals.h"

/* When a value's buffer was handed out: ticks, and how often the tape's peak had risen. */
struct tape_age {
    uint64_t born;
    uint32_t peaks;
};

#define TAPE_ADD(counter, n)                                                                       \
    __atomic_store_n(&(counter), (counter) + (uint64_t)(n), __ATOMIC_RELAXED)

/* Creates the rows of the tape's own. 0, or -1: out of memory. */
int tape_account_open(struct tape *t);
void tape_account_close(struct tape *t);

/* The row of {site, op} in the scope that the thread is in while it is observed, on the call path
 * that leads to the site now, or on t->path if that is set; op is static storage, compared by
 * address. Never fails: TAPE_ROW_OTHER. */
uint32_t tape_account_row(struct tape *t, struct tape_site site, const char *op);
/* The same in the scope and on the path of `row`, for what is charged some time after it was
 * recorded. */
uint32_t tape_account_row_beside(struct tape *t, uint32_t row, struct tape_site site,
                                 const char *op);
/* The row of the same site and op without callers, or TAPE_ROW_OTHER. */
uint32_t tape_account_row_of_line(struct tape *t, uint32_t row);
/* The row that is on this tape what `other` is on another one. */
uint32_t tape_account_row_like(struct tape *t, const struct tape_row *other);

/* The hook, after the account has been opened for it; NULL: it wants none, or observes no more. */
struct tape_hook *tape_account_attach(struct tape *t, struct tape_hook *hook);
extern struct tape_hook *tape_hook_now; /* atomic; see tape_observe.c */
extern uint32_t tape_session_now;

/* The session that a hook observes, which was loaded from tape_hook_now before. False: it observes
 * no more, and what is observed now has another hook. Who reads a later session also sees that the
 * hook was taken away before it began, so the session is never one that began after the hook's. */
static inline bool tape_session_of(const struct tape_hook *hook, uint32_t *session)
{
    *session = __atomic_load_n(&tape_session_now, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&tape_hook_now, __ATOMIC_RELAXED) == hook;
}

/* What is observed in a sweep is so from its begin to its end. */
static inline struct tape_hook *tape_observed(struct tape *t)
{
#ifdef TAPE_UNPROFILED /* for the benchmark of what the hooks cost */
    (void)t;
    return NULL;
#endif
    if (__builtin_expect(t->activity != TAPE_PHASE_NONE, 0))
        return t->hook;
    struct tape_hook *hook = __atomic_load_n(&tape_hook_now, __ATOMIC_ACQUIRE);
    if (__builtin_expect(hook == NULL && t->hook == NULL && t->now == NULL, 1))
        return NULL;
    /* As it was at the last call: t->session began with this hook. */
    if (__builtin_expect(hook == t->hook && t->now == NULL && hook->thread == NULL &&
                             t->session == __atomic_load_n(&tape_session_now, __ATOMIC_ACQUIRE),
                         1))
        return hook;
    t->now = NULL;
    if (hook != NULL)
        hook = tape_account_attach(t, hook);
    t->hook = hook;
    return hook;
}

/* The hook that knows the call paths of what is recorded now, samples of which want them without
 * any account; NULL: they are not wanted. */
static inline struct tape_hook *tape_path_hook(const struct tape *t)
{
    struct tape_hook *hook = t->hook;
    if (__builtin_expect(hook == NULL && t->now != NULL, 0))
        hook = __atomic_load_n(&tape_hook_now, __ATOMIC_ACQUIRE);
    return hook != NULL && hook->path != NULL ? hook : NULL;
}

/* A reading of the clock of the hook that observes t; 0: there is none. */
static inline uint64_t tape_clock(struct tape *t)
{
    return t->hook ? (t->ticks = t->hook->clock()) : 0;
}

static inline struct tape_row *tape_row(const struct tape *t, uint32_t i)
{
    return tape_ledger_row(&t->ledger, i);
}

static inline struct tape_site tape_row_site(const struct tape *t, uint32_t i)
{
    return (struct tape_site){tape_row(t, i)->pc, tape_row(t, i)->line};
}

/* What is recorded until the end belongs to the call path of a row: derivatives of an op, whose
 * pullback is not called from where the op was. */
static inline void tape_path_begin(struct tape *t, uint32_t row)
{
    t->path = tape_row(t, row)->path + 1;
}

static inline void tape_path_end(struct tape *t)
{
    t->path = 0;
}

/* Notes the time of a call that takes none of its own, but for within sweeps, where stamps are
 * chained. */
static inline void tape_account_moment(struct tape *t)
{
    if (t->activity == TAPE_PHASE_NONE)
        tape_clock(t);
}

/* All below do nothing unless t->hook is set. */

/* Counts the buffers that a sweep has taken and given back so far: within pullbacks that are timed
 * apart from it (hook->apart) they are only noted, in their order. All else that counts bytes does
 * it before. What waits to be charged was there before the sweep, and comes first. */
void tape_account_settle_bookings(struct tape *t);
static inline void tape_account_settle(struct tape *t)
{
    if (__builtin_expect(t->n_bookings > 0 || t->charges_wait, 0))
        tape_account_settle_bookings(t);
}

/* The pullback of an op's record has ended. True: what it took, gave back and read is counted
 * later, with that of the records that follow; what it did has the time of the last reading. */
bool tape_account_wait(struct tape *t, const struct tape_record *r);

/* The time from *stamp until now was counting. */
void tape_account_own(struct tape *t, uint64_t *stamp);

/* What an op has made: values from `first` on, the guards since `last_guard`, and its record,
 * unless that is NULL. */
void tape_account_op(struct tape *t, uint32_t first, int n_out, uint32_t last_guard,
                     struct tape_record *r);
/* The program uses a handle, other than as an operand of an op. */
void tape_account_used(struct tape *t, uint32_t value);
/* Values from `first` on, and records behind `end`, newest first, are dropped: one by one, but what
 * neighbours of one class hold is given back at once. */
void tape_account_drop_values(struct tape *t, uint32_t first);
void tape_account_drop_records(struct tape *t, uint32_t end);
/* A new value: its entry, shape, and buffers; dropped: the same taken back from what is live. */
void tape_account_value(struct tape *t, const struct tape_value *v);
void tape_account_drop_value(struct tape *t, const struct tape_value *v);
void tape_account_record(struct tape *t, struct tape_record *r);
void tape_account_drop_record(struct tape *t, struct tape_record *r);
/* The guards made since t->last_guard was `last`, each charged to the op that it is for. */
void tape_account_guards(struct tape *t, uint32_t last);
void tape_account_drop_guards(struct tape *t, uint32_t last);
/* n bytes among the records. */
void tape_account_bytes(struct tape *t, uint32_t row, uint64_t n);
/* A block for statements: its room is live, in a row of its own, until statements fill it. When the
 * next block is begun, the n bytes that are left are padding; they are room again when that block
 * is dropped. A block that is dropped has no statements any more. */
void tape_account_block(struct tape *t, const struct tape_block *b);
void tape_account_tail(struct tape *t, uint64_t n);
void tape_account_tail_back(struct tape *t, uint64_t n);
void tape_account_drop_block(struct tape *t, const struct tape_block *b);
/* n bytes of a block's room are a line's; or its no more, given back, or moved to another tape,
 * which has handed them out in place of this one. They are charged some time after they were
 * written: if there was a peak since (peaks: how many there had been), it held them already. */
enum tape_filled { TAPE_FILLED, TAPE_FILLED_NO_MORE, TAPE_FILLED_ELSEWHERE };
void tape_account_filled(struct tape *t, uint32_t row, uint64_t n, uint64_t peaks,
                         enum tape_filled how);
/* A buffer of n bytes for adjoints or intermediates, charged to `row`; freed again. */
void tape_account_buffer(struct tape *t, uint32_t row, uint64_t n);
void tape_account_free(struct tape *t, uint32_t row, uint64_t n);
/* That buffer is given back, as the value did not come; or it is the value's from now on. */
void tape_account_drop_copy(struct tape *t, uint32_t row, uint64_t n);
void tape_account_adopt(struct tape *t, const struct tape_value *v, struct tape_age age);
/* A value's buffer is taken over by one that is to come, with its age. */
struct tape_age tape_account_hand_over(struct tape *t, const struct tape_value *v);
/* No handle names the value any more. */
void tape_account_released(struct tape *t, const struct tape_value *v);
/* A value's buffer, given back by a call of `row`. */
void tape_account_free_value(struct tape *t, const struct tape_value *v, uint32_t row);
/* A buffer of n bytes for a value that is to come, whose entry is accounted for without it. */
void tape_account_copy(struct tape *t, uint32_t row, uint64_t n);
/* A record's saved values are kept by its row. */
void tape_account_kept(struct tape *t, struct tape_record *r);
void tape_account_drop_all(struct tape *t);
/* n bytes of a row's records have been written to the tape's file, in which they lie from now on;
 * lie there already as the observation begins; or are memory again. They stay live bytes of the
 * row. What is about to be dropped is said to be memory first. */
enum tape_disk_how { TAPE_DISK_BACK, TAPE_DISK_OUT, TAPE_DISK_FOUND };
void tape_account_disk(struct tape *t, uint32_t row, enum tape_residual_kind kind, uint64_t n,
                       enum tape_disk_how how);
/* A value's buffer likewise; one that is dropped while it lies in the file needs no call. */
void tape_account_disk_value(struct tape *t, const struct tape_value *v, enum tape_disk_how how);
/* Says what the tape does from now on, and returns what it did. stamp: through which the times of
 * ops are chained, in TAPE_PHASE_RECOMPUTE and TAPE_PHASE_FORWARD, else NULL. The one place that
 * changes tape.activity. */
static inline enum tape_phase tape_activity_begin(struct tape *t, enum tape_phase activity,
                                                  uint64_t *stamp)
{
    const enum tape_phase before = t->activity;
    tape_account_settle(t);
    t->activity = activity;
    t->stamp = stamp;
    return before;
}

/* Whose the time and cost of an op of `row` are: its own, or the call's of ad_create_graph. */
static inline uint32_t tape_timed_row(const struct tape *t, uint32_t row)
{
    return t->activity == TAPE_PHASE_FORWARD ? t->graph_row : row;
}

/* What an op that runs now is part of. */
static inline enum tape_phase tape_phase_forward(const struct tape *t)
{
    return t->activity == TAPE_PHASE_RECOMPUTE ? TAPE_PHASE_RECOMPUTE : TAPE_PHASE_FORWARD;
}

/* The time when a call begins, or 0 where nothing is observed, or its time is chained. */
static inline uint64_t tape_account_start(struct tape *t)
{
    return t->activity != TAPE_PHASE_RECOMPUTE ? tape_clock(t) : 0;
}
/* The call of an op begins: its path and its row are found first, which is no time of the op's. */
void tape_account_enter_observed(struct tape *t, struct tape_site site, const char *op);
static inline void tape_account_enter(struct tape *t, struct tape_site site, const char *op)
{
    if (__builtin_expect(__atomic_load_n(&tape_hook_now, __ATOMIC_RELAXED) != NULL, 0) &&
        tape_observed(t) != NULL)
        tape_account_enter_observed(t, site, op);
}
/* When it began, where t->hook is set: now, unless its caller has said before. */
static inline uint64_t tape_account_entered(struct tape *t, struct tape_site site, const char *op)
{
    if (!t->entered.is)
        tape_account_enter_observed(t, site, op);
    t->entered.is = false;
    return t->entered.start;
}

/* A call ends that began at `start`, of `calls` calls of the row's op: its time is forward, or
 * recomputation, where stamps are chained. An observer of single events is told; record: that the
 * call made, or NULL. */
void tape_account_ran(struct tape *t, uint32_t row, uint64_t start,
                      const struct tape_record *record, unsigned calls);
/* A call that takes no time of its own. */
void tape_account_called(struct tape *t, uint32_t row);
/* Whether the rows should be written at this time; writes them if it is time to, which is no time
 * of what is under way (hook->apart). */
static inline bool tape_account_due(const struct tape_hook *hook, uint64_t now)
{
    return __builtin_expect(now >= __atomic_load_n(&hook->due, __ATOMIC_RELAXED), 0);
}

void tape_account_flush(struct tape *t, struct tape_hook *hook, uint64_t now);

/* The time alone, at the time `now`, where t->hook is set. Returns from when it was counted. */
static inline uint64_t tape_account_until(struct tape *t, struct tape_row *r, uint64_t start,
                                          uint64_t now, unsigned calls)
{
    const bool again = t->activity == TAPE_PHASE_RECOMPUTE;
    t->ticks = now;
    if (t->stamp) {
        start = *t->stamp;
        *t->stamp = now;
    }
    if (again) {
        TAPE_ADD(r->recompute_calls, calls);
        TAPE_ADD(r->recompute_ticks, now - start);
        TAPE_ADD(t->ledger.recompute_ticks, now - start);
    } else {
        TAPE_ADD(r->calls, calls);
        TAPE_ADD(r->forward_ticks, now - start);
        TAPE_ADD(t->ledger.forward_ticks, now - start);
    }
    if (tape_account_due(t->hook, now))
        tape_account_flush(t, t->hook, now);
    return start;
}

/* What is counted now is part of what is observed now: a hook may have begun another observation
 * since this call or sweep did. */
static inline bool tape_account_counts(const struct tape *t)
{
    return t->session == __atomic_load_n(&tape_session_now, __ATOMIC_RELAXED);
}

/* Tells the observer, if it asks for single events, of what belongs to a row; record: NULL: none
 * was made; part: it is a stretch of a call that has another event. */
static inline void tape_account_event(struct tape *t, enum tape_event_kind kind, uint32_t row,
                                      const struct tape_record *record, uint64_t start,
                                      uint64_t end, bool part)
{
    if (__builtin_expect(t->hook->event == NULL, 1) || !tape_account_counts(t))
        return;
    const size_t place = record ? (size_t)((const char *)record - t->arena.record_base) / 8 + 1 : 0;
    const struct tape_event event = {.kind = kind,
                                     .scope = tape_row(t, row)->scope,
                                     .again = t->activity == TAPE_PHASE_RECOMPUTE,
                                     .part = part,
                                     .record = (uint32_t)place,
                                     .row = tape_row(t, row),
                                     .tape = t->ledger.tape,
                                     .start = start,
                                     .end = end};
    t->hook->event(t->hook, &event);
}

#endif
