/* tape_statement.h: runs of scalar statements on the tape: their records, blocks and indices.
 *
 * Statements are written by the user's own code through a cursor of the recording thread
 * (ad_real_expression.h has the layout, ad_real.c asserts that it is the one below); the tape
 * gives it room and takes the cursor back before anything else is recorded.
 *
 * Invariant: a run is one record of the tape (tape_statement_kind) whose statements have
 * consecutive indices and lie in one block. While a run is open the cursor alone knows its end. A
 * cursor without room is the sign that no run is open.
 */
#ifndef TAPE_STATEMENT_H
#define TAPE_STATEMENT_H

#include "tape_account.h"
#include "tape_part.h"
#include "tape_record.h"
#include "tape_statement_layout.h"

struct tape_real; /* tape_bridge.h */

/* Values with indices from `first` on have this tag, up to those of the next tag. */
struct tape_tag {
    uint32_t first, tag;
};

/* n leaves of the scalar kind, which are elements of a value. */
struct tape_leaf_range {
    uint32_t first, n, value;
};

/* Values of an array that some fused loop keeps. See tape_fused_loop.c. */
struct tape_seen {
    const void *address; /* of constants */
    const double *values;
    uint32_t first, n; /* indices, of what is no constant */
    uint32_t life;     /* of the tape's when it was noted */
};

/* What the tape has of fused loops besides their records. */
struct tape_fused_loops {
    struct tape_seen *seen; /* [TAPE_SEEN], or NULL */
    uint32_t life;          /* grows where values may be dropped */
    uint64_t room[2]; /* doubles that sweeps of one seed and of several need beside adjoints */
};

/* A line of a run that has been charged: what a sweep's time is divided by. */
struct tape_run_line {
    const char *name; /* of the op: a custom record's may differ from call to call */
    uint32_t site, row;
    uint32_t mark;  /* a fused loop's; statements: 0 */
    uint32_t calls; /* fits: a run has fewer statements than there are indices */
    uint64_t bytes;
};

/* What the tape has of scalar statements. */
struct tape_statements {
    struct tape_cursor *cursor; /* the thread's that records on this tape now, or NULL */
    struct tape_cursor rest;    /* what it will be when a run is opened */
    struct tape *below;         /* what the thread recorded on before */
    uint32_t depth;             /* of ad_tape_record_begin; 0: no thread records on this tape */
    uint32_t slot;              /* upper half of every tag; 0: never recorded on */
    uint32_t epoch;             /* lower half of the newest */
    uint32_t n_epochs;          /* so many were taken since the tape began anew */
    uint32_t *told_tags;        /* where other threads see both, or NULL */
    uint32_t section_tag;       /* the newest when a section ended, whose indices come again */
    struct tape_block *block;
    uint64_t n, bytes;           /* of the runs that are closed */
    uint64_t gaps;               /* bytes between runs of one statement each, which nobody fills */
    uint32_t uncharged;          /* runs at the end of the records, which the open one follows */
    uint32_t uncharged_last;     /* while they wait for a sweep (t->charges_wait): the newest, */
    uint64_t uncharged_ticks;    /* when the sweep began, */
    struct charge *charge;       /* and what is counted of them; or NULL */
    double *adjoint;             /* while a sweep runs: [next index][width] */
    uint32_t width;              /* of the sweep: seeds at once */
    uint64_t adjoint_bytes;      /* what they lie in */
    uint32_t adjoint_row;        /* that it is charged to */
    uint64_t adjoint_lent;       /* of these bytes, so many the budget did not have */
    char *adjoint_passed;        /* from here on they are given back; NULL: none may be */
    struct tape_run_line *lines; /* of the runs that are charged, in the order of their charging */
    uint32_t n_lines, lines_size;
    uint32_t fixed_lines; /* charged when an observation began: no mark knows where they are */
    uint64_t swept_from;  /* of the run that was swept last: when its sweep began, and the */
    uint64_t swept_ticks; /* time of its statements that lie behind a fused loop */
    bool calling;         /* a callback of the user's runs: nothing may be recorded */
    struct tape_fused_loops fused_loops;
    struct tape_tag *tags;
    uint32_t n_tags, tags_size;
    struct tape_leaf_range *leaves;
    uint32_t n_leaves, leaves_size;
    uint32_t n_elements, n_gathers; /* records of the two kinds of tape_bridge.h */
    uint8_t *reached;               /* scratch of tape_reach: [next index], or NULL */
};

/* Of a run that was recorded on another tape, whose rows have its calls and time. */
#define TAPE_RUN_MOVED UINT64_MAX

/* What the record of a run has for attributes. */
struct __attribute__((may_alias)) tape_run {
    const double *partial_begin, *partial_end; /* upwards in time */
    const uint32_t *word_begin, *word_end;     /* downwards: end <= begin */
    const uint32_t *fused_loop;                /* the last fused loop's first word, or NULL */
    uintptr_t near;                            /* a program counter of the run's first statement */
    uint32_t first, n;                         /* index of the first result; statements */
    union {
        uint64_t peaks; /* until it is charged: the ledger's number of peaks when it began, or
                         * TAPE_RUN_MOVED */
        struct {
            uint32_t first_line, n_lines : 31; /* then: among the tape's lines of runs; and */
            bool on_disk : 1; /* whether they are charged with bytes in the tape's file */
        };
    };
};

/* And the record that stands for n leaves, or for the elements of a tensor (tape_bridge.h): they
 * are elements of the value that is its operand. */
struct __attribute__((may_alias)) tape_leaves {
    uint32_t first, n;
};

extern const struct record_kind tape_statement_kind, tape_leaves_kind;

static inline struct tape_run *tape_run_of(struct tape_record *r)
{
    return (struct tape_run *)(void *)tape_record_attr(r);
}

/* The run is all that its record has for attributes. */
static inline const struct tape_record *tape_run_record(const struct tape_run *run)
{
    return (const struct tape_record *)(const void *)run - 1;
}

static inline struct tape_leaves *tape_leaves_of(struct tape_record *r)
{
    return (struct tape_leaves *)(void *)tape_record_attr(r);
}

/* The cursor has no room, so that the next statement asks for it. */
static inline void tape_statement_shut(struct tape_statements *s)
{
    if (s->cursor)
        *s->cursor = (struct tape_cursor){.result = s->rest.result};
}

/* What is recorded from now on is told from what was recorded before under the same indices. */
void tape_statement_retag(struct tape *t);

/* The calling thread's statements go to this tape through `cursor` from now on, or no more. */
void tape_statement_attach(struct tape *t, struct tape_cursor *cursor);
void tape_statement_detach(struct tape *t);

/* Ends the open run; tape_settle calls it if there is one. */
void tape_statement_close(struct tape *t);

/* Room for a statement of so many bytes at the cursor; caller: the return address of the call that
 * asks for it, by which its call path is found. False: it is not to be recorded; the tape's error
 * says why, unless it is under no_grad. */
bool tape_statement_room(struct tape *t, uint64_t bytes, struct tape_site site, uintptr_t caller);

/* The same for anything of so many bytes, of an op of that name, with a block of its own if need
 * be; row: that the run's record is charged to. The caller has seen that enough indices are left.
 */
bool tape_statement_open(struct tape *t, uint64_t bytes, const char *what, struct tape_site site);
bool tape_statement_open_row(struct tape *t, uint64_t bytes, const char *what,
                             struct tape_site site, uint32_t row);

/* How many indices are left, while no run is open. */
static inline uint32_t tape_statement_left(const struct tape *t)
{
    const uint32_t next = tape_cursor_next(&t->statements->rest);
    return next < TAPE_INDEX_LIMIT ? TAPE_INDEX_LIMIT - next : 0;
}

/* A run that the tape itself writes at its statements' `rest`, where there is room: its record, and
 * its end once all is written. NULL: out of memory. */
struct tape_run *tape_run_begin(struct tape *t, struct tape_site site, uint32_t row);
void tape_run_end(struct tape *t, struct tape_run *run);

/* n variables; *first: the index of the first. */
enum tape_status tape_statement_leaves(struct tape *t, int64_t n, const double *values,
                                       struct tape_site site, uint32_t *first);
/* The value and element behind a leaf's index. False: it is none. */
bool tape_statement_leaf(const struct tape *t, uint32_t index, uint32_t *value, uint32_t *element);

/* The index that the next result has. */
static inline uint32_t tape_statement_next(const struct tape *t)
{
    const struct tape_statements *s = t->statements;
    return tape_cursor_next(t->open == UINT32_MAX ? &s->rest : s->cursor);
}

/* Whether a value with this index and tag is on the tape. */
bool tape_statement_holds(const struct tape *t, uint32_t index, uint32_t tag);
/* Whether it was there when that tag was the newest, and still is. No: a section has ended
 * since. */
bool tape_statement_kept(const struct tape *t, uint32_t index, uint32_t tag);
/* The tag by which a value with this index is held; 0: there is none. */
uint32_t tape_statement_tag_of(const struct tape *t, uint32_t index);
/* The values with this tag are those from *first up to *end. False: there are none. */
bool tape_statement_tagged(const struct tape *t, uint32_t tag, uint32_t *first, uint32_t *end);
/* Whether each of x[n] is a constant or a value on the tape, and *active if one is no constant.
 * Else the tape's error says which; the call `what` knows them as `name`. */
enum tape_status tape_statement_check(struct tape *t, const char *what, const char *name, int64_t n,
                                      const struct tape_real *x, struct tape_site site,
                                      bool *active);
/* That error, of name[i] with this index and tag. */
enum tape_status tape_statement_refuse(struct tape *t, const char *what, const char *name,
                                       int64_t i, uint32_t index, uint32_t tag,
                                       struct tape_site site);

/* The newest tag and where it begins; of a tape that was never recorded on, one that no value
 * has. */
static inline const struct tape_tag *tape_statement_newest(const struct tape *t)
{
    static const struct tape_tag none = {UINT32_MAX, 0};
    return t->statements->n_tags ? &t->statements->tags[t->statements->n_tags - 1] : &none;
}

/* n results of a record just made: the index of the first. No run is open. */
uint32_t tape_statement_results(struct tape *t, uint32_t n);

/* Statements on the tape, and their bytes. */
void tape_statement_count(const struct tape *t, uint64_t *n, uint64_t *bytes);
/* Of the newest block: the room that no statement has taken yet. */
uint64_t tape_statement_unused(const struct tape *t);

/* The upper half of tags from now on, not 0. In *told other threads see what tags values on the
 * tape can have: see tape_statement_may_hold. Its upper half is the last tag of the tape before
 * that had the slot, behind which this one's tags begin. */
void tape_statement_name(struct tape *t, uint32_t slot, uint32_t *told);
/* Whether a value with this tag can be on the tape that tells so; no thread need own the tape. It
 * cannot if the tape began anew since the tag was taken; a value that was rewound still can. */
bool tape_statement_may_hold(const uint32_t *told, uint32_t tag);
/* Memory for so many tags beside those of the parent, so that a rewind need not ask. */
bool tape_statement_reserve_tags(struct tape *t, uint32_t n);

/* What is recorded between these two has a tag of its own, which no value has afterwards: the tags
 * are then the first n_tags again, and `tag` goes on. There is memory for one more. */
void tape_statement_tag_begin(struct tape *t);
void tape_statement_tag_end(struct tape *t, uint32_t n_tags, uint32_t tag);

/* For the life of a tape: see tape.c. What is recorded after a begin or rewind has a new tag. */
void tape_statement_begin(struct tape *t);
void tape_statement_end(struct tape *t);
struct tape_statement_mark tape_statement_mark_here(const struct tape *t);
/* Blocks before `end` (NULL: all) are given back one by one, the others with the arena's end. */
void tape_statement_rewind(struct tape *t, const struct tape_statement_mark *mark, const char *end);
void tape_block_drop(struct tape *t, struct tape_block *b, const char *end);

uint64_t tape_run_bytes(const struct tape_run *run);

/* Charges the statements of a closed run, given its record, to their lines, which an observation
 * found that began later; or takes them back. Nothing is done unless t->hook is set. */
void tape_run_account(struct tape *t, struct tape_record *run);
void tape_run_account_drop(struct tape *t, struct tape_record *run);
/* The block of a run that has been charged is written to the tape's file, or is memory again. */
void tape_run_account_disk(struct tape *t, struct tape_run *run, enum tape_disk_how how);
/* Its statements are another tape's from now on, which has been charged their bytes. */
void tape_run_account_moved(struct tape *t, struct tape_record *run);
/* The statements of a charged run come to the trace. */
void tape_run_trace(struct tape *t, struct tape_record *run);

/* The closed runs that are not charged yet are, now; or when the sweep that begins comes to
 * them. */
void tape_statement_charge(struct tape *t);
void tape_statement_charge_later(struct tape *t);
/* Whether this run waits for such a sweep, which comes to it; then this is tape_run_pullback, and
 * charges it meanwhile. */
bool tape_run_waits(const struct tape *t, const struct tape_run *run, uint32_t width);
void tape_run_pullback_charged(struct tape *t, const struct tape_run *run, double *adjoint,
                               struct tape_now *now, uint64_t *stamp);

/* The time that a sweep took for a run's statements is divided among their lines: it is `ticks` and
 * what the tape has noted of those behind fused loops. When the sweep of the run began. */
uint64_t tape_run_charge_sweep(struct tape *t, struct tape_record *run, uint64_t ticks);
/* The row of its statements, or fused loops, of this site and name; TAPE_ROW_NONE: not known. */
uint32_t tape_run_row(const struct tape *t, const struct tape_run *run, uint32_t site,
                      const char *name);

#endif
