/* tape_residual.h: what each byte of the account is for, who gave it back, and what was live when.
 *
 * For the tape's own thread, and only while t->hook is set.
 *
 * Invariant: every byte that is charged to a row is charged to one class of that row as well; where
 * there was no room for a class, to one of its line (the row without callers), and where there was
 * no memory, to class 0. Without memory for any of it, t->residual is NULL, and the account is all
 * there is.
 */
#ifndef TAPE_RESIDUAL_H
#define TAPE_RESIDUAL_H

#include "tape_account.h"
#include "tape_residuals.h"

/* What is known of a value that owns a buffer. */
struct tape_residual_value {
    uint64_t born; /* ticks */
    uint32_t class_;
    uint32_t peaks; /* the ledger's peak_count when it was made, its lower half */
    uint32_t read;  /* 1: a pullback has read it */
    uint64_t disk;  /* bytes of it that lie in the tape's file */
};

/* An op or a run of statements that is not in the trace yet, and how many words lie before it. */
struct tape_put_off {
    struct tape_record *record;
    uint32_t at;
    uint32_t reads; /* of an op: operands that its pullback touches */
};

enum { TAPE_USES = 8 };

struct tape_residual_state {
    struct tape_residuals shared;
    enum tape_release_cause cause; /* of what is given back now */
    uint32_t *slot;                /* open addressing: class plus 1 */
    uint32_t n_slots;
    bool full;         /* a row's class was refused: only lines get classes from then on */
    bool refused;      /* and a line's: none is made any more */
    uint32_t *line_of; /* of each row the one of its line, plus 1, if known; NULL: not full */
    /* Class plus 1 of {row, no consumer, kind}, if known. TAPE_SAVED: the consumer is the row. */
    uint32_t (*of_row)[TAPE_RESIDUAL_KINDS];
    uint32_t n_of_row; /* room */
    struct tape_residual_value *value;
    uint32_t n_values;            /* room */
    uint64_t base, most;          /* live when the log was begun, and the most since */
    uint64_t begun, span;         /* of the open moment: its begin, and how long it may become */
    struct tape_put_off *put_off; /* runs that the trace is to have, if the peak comes to it */
    uint32_t n_put_off, put_off_size;
    const struct tape_record *newest_put_off;
    uint32_t put_off_words; /* that they will take at most */
    uint32_t first_record;  /* how many records there were when the log was begun */
    uint32_t first_value;   /* and the first value that was made since */
    /* The values that were used since the newest value was made, as far as they are known. */
    uint32_t used[TAPE_USES], n_used, used_newest;
    uint32_t merged; /* how many moments became one, the last time that a log was full */
    /* Where the log's next changes go, how many have room there, and the log's count. */
    struct tape_change *next;
    uint32_t room;
    uint32_t *n_changes;
};

/* Creates or empties the state of the tape, for a new observation. Never fails: see above. */
void tape_residual_open(struct tape *t);
void tape_residual_close(struct tape *t);

/* The class, or where there is no room its line's; class 0 if there was no memory for it. consumer:
 * row plus 1, or 0. */
uint32_t tape_residual_class(struct tape *t, uint32_t producer, uint32_t consumer,
                             enum tape_residual_kind kind);

/* The same without a consumer, which is asked for at every change; of TAPE_SAVED: what the row's
 * own pullbacks read. */
static inline uint32_t tape_residual_of_row(struct tape *t, uint32_t row,
                                            enum tape_residual_kind kind)
{
    const struct tape_residual_state *s = t->residual;
    if (__builtin_expect(s && row < s->n_of_row && s->of_row[row][kind], 1))
        return s->of_row[row][kind] - 1;
    return tape_residual_class(t, row, kind == TAPE_SAVED ? row + 1 : 0, kind);
}

/* What a class is charged with, and gives back: tape_class.h. As tape_residual_shift there; the
 * peak that came since is as if they had been so then already. */
void tape_residual_shift_at_peak(struct tape *t, uint32_t class_, uint64_t delta);
/* What was charged by tape_residual_charge is another tape's. */
void tape_residual_uncharge(struct tape *t, uint32_t class_, uint64_t n);

/* Room to know so many values. False: there is none. */
bool tape_residual_reserve(struct tape *t, uint32_t n);
/* Value x, which owns a buffer, is made, for nobody to read yet; its bytes are charged beside.
 * t->residual is set. */
static inline void tape_residual_value_noted(struct tape *t, uint32_t x, uint32_t class_)
{
    struct tape_residual_state *s = t->residual;
    if (__builtin_expect(x < s->n_values, 1) || tape_residual_reserve(t, x + 1))
        s->value[x] = (struct tape_residual_value){
            .born = t->ticks, .class_ = class_, .peaks = (uint32_t)t->ledger.peak_count};
}

/* A value that owns a buffer is made, and its buffer is given back; row: of the call that gives it
 * back, TAPE_ROW_NONE if it has none. */
void tape_residual_value_made(struct tape *t, const struct tape_value *v);
void tape_residual_value_gone(struct tape *t, const struct tape_value *v,
                              enum tape_release_cause cause, uint32_t row);
/* Such a value is dropped: the class that the caller gives its bytes back for. t->residual is
 * set. */
uint32_t tape_residual_value_drop(struct tape *t, const struct tape_value *v);
/* A value owns a buffer that was charged to its row already, for nobody to read; and the buffer is
 * so from now on, with the value no more its owner. */
void tape_residual_value_adopted(struct tape *t, const struct tape_value *v, struct tape_age age);
struct tape_age tape_residual_value_left(struct tape *t, const struct tape_value *v);
/* The pullback of an op of row `keeper` reads the value; move: and is the first known. */
void tape_residual_kept(struct tape *t, const struct tape_value *v, uint32_t keeper, bool move);
/* The pullback of r has run. */
void tape_residual_read(struct tape *t, struct tape_record *r);

/* n bytes of a row's are written to the tape's file (out), or memory again; of a value's: all that
 * are there. Nothing is handed out or given back by it. Return how many bytes that were. */
uint64_t tape_residual_disk(struct tape *t, uint32_t row, enum tape_residual_kind kind, uint64_t n,
                            bool out);
uint64_t tape_residual_value_disk(struct tape *t, const struct tape_value *v, bool out);

/* All is given back. */
void tape_residual_drop_all(struct tape *t);

/* tape_history.c */

/* Finds where the next changes go, where a chunk begins, or another log. False: it has ended. */
bool tape_history_begin_chunk(struct tape *t);
/* The moment under way changes, or is over. */
void tape_history_moment(struct tape *t);

/* Who reads what a rewriting has stored also sees that it has begun. */
static inline void tape_history_put(struct tape_change *to, uint64_t ticks, int64_t delta,
                                    uint32_t class_, uint32_t flags)
{
    __atomic_store_n(&to->ticks, ticks, __ATOMIC_RELEASE);
    __atomic_store_n(&to->delta, delta, __ATOMIC_RELEASE);
    __atomic_store_n(&to->class_, class_, __ATOMIC_RELEASE);
    __atomic_store_n(&to->flags, flags, __ATOMIC_RELEASE);
}

/* The live bytes of a class have changed. */
static inline void tape_history_class(struct tape *t, uint32_t class_, uint64_t delta)
{
    struct tape_residual_state *s = t->residual;
    if (delta == 0 || (__builtin_expect(s->room == 0, 0) && !tape_history_begin_chunk(t)))
        return;
    tape_history_put(s->next++, t->ticks, (int64_t)delta, class_,
                     TAPE_CHANGE_ENDS |
                         (s->cause == TAPE_BY_SWEEP ? (uint32_t)TAPE_CHANGE_BACKWARD : 0));
    s->room--;
    __atomic_store_n(s->n_changes, *s->n_changes + 1, __ATOMIC_RELEASE);
}

/* Of the moment under way, which is about to change: the most that was live. */
static inline void tape_history_most(struct tape_residuals *r, uint64_t live, uint64_t ticks,
                                     bool backward)
{
    __atomic_store_n(&r->now.most_bytes, live, __ATOMIC_RELEASE);
    __atomic_store_n(&r->now.ticks, ticks, __ATOMIC_RELEASE);
    __atomic_store_n(&r->now.backward, backward, __ATOMIC_RELEASE);
}

/* Then the tape's have. */
static inline void tape_history_tape(struct tape *t)
{
    struct tape_residual_state *s = t->residual;
    struct tape_residuals *r = &s->shared;
    const uint64_t live = t->ledger.live_bytes;
    if (live > s->most)
        s->most = live;
    const bool over = !r->open || t->ticks - s->begun > s->span;
    if (__builtin_expect(!over, 1) && live > r->now.most_bytes) {
        const uint32_t version = r->now_version;
        __atomic_store_n(&r->now_version, version + 1, __ATOMIC_RELEASE);
        tape_history_most(r, live, t->ticks, s->cause == TAPE_BY_SWEEP);
        __atomic_store_n(&r->now_version, version + 2, __ATOMIC_RELEASE);
    } else if (over || live < r->now.least_bytes) {
        tape_history_moment(t);
    }
}

/* The tape's peak rose. */
void tape_history_peak(struct tape *t);
/* After a rewind or reset: if the tape is nearly as empty as when the log was begun, a new one
 * is. */
void tape_history_dropped(struct tape *t);
/* Empties all of it, for a new observation. */
void tape_history_clear(struct tape_residual_state *s);
void tape_history_close(struct tape *t, struct tape_residual_state *s);

/* What is given back from now on is because of `cause`. Returns what it was before. */
static inline enum tape_release_cause tape_residual_cause(struct tape *t,
                                                          enum tape_release_cause cause)
{
    if (!t->hook || !t->residual)
        return TAPE_BY_CALL;
    const enum tape_release_cause before = t->residual->cause;
    t->residual->cause = cause;
    return before;
}

#endif
