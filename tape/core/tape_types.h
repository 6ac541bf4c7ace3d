/* tape_types.h: the tape's own data: values, records, marks, errors, the tape.
 *
 * Invariant: entries[0] is no value (the result of an op that failed); entries [1, n_values) are. A
 * record names its operands and outputs by index; every output's index is greater than every
 * operand's.
 */
#ifndef TAPE_TYPES_H
#define TAPE_TYPES_H

#include "kernel.h"
#include "tape_arena.h"
#include "tape_hook.h"

enum {
    TAPE_MAX_IN = 64, /* operands of one op */
    TAPE_MESSAGE_BYTES = 512,
    TAPE_ROW_PADDING = 0, /* rows of the tape's own */
    TAPE_ROW_OTHER = 1,   /* what could not be given a row of its own: the table was full */
    TAPE_ROW_ROOM = 2     /* room of a block that statements have not filled yet */
};

#define TAPE_ROW_NONE UINT32_MAX

enum tape_flag {
    TAPE_NEEDS_GRADIENT = 1 << 0,
    TAPE_LEAF = 1 << 1, /* its adjoint is the gradient and outlives the sweep */
    TAPE_OWNS_DATA = 1 << 2,
    TAPE_OWNS_SHAPE = 1 << 3, /* shape [rank] was allocated for this value */
    TAPE_OWNS_STRIDES = 1 << 4,
    TAPE_USER_GRADIENT =
        1 << 5,           /* leaf: one of tape.user_gradients, its adjoint holds one sweep's part */
    TAPE_RETAIN = 1 << 6, /* retained holds the gradient after the sweep */
    TAPE_KEPT = 1 << 7,   /* counted in kept_bytes */
    TAPE_STARTS = 1 << 8, /* scratch of tape_graph: depends on what is differentiated */
    TAPE_REACHED = 1 << 9,     /* scratch of tape_reach: the sweep comes to it */
    TAPE_TAKEN_BACK = 1 << 10, /* leaf: one of tape.user_gradients whose buffer was taken back */
    TAPE_RELEASED = 1 << 11,   /* no handle names it any more; its record may still need it */
    TAPE_FREED = 1 << 12,      /* owned its buffer, which was given back: array.data is NULL */
    TAPE_SPENT = 1 << 13,      /* a sweep that releases has passed the record that made it */
    TAPE_STAYS = 1 << 14,      /* scratch of tape_release.c: keeps its handle */
    TAPE_HELD = 1 << 15,       /* scratch of tape_release.c: its buffer is needed */
    TAPE_DETACHED = 1 << 16,   /* scratch of tape_bridge.c: was TAPE_NEEDS_GRADIENT */
    TAPE_UNRETAINED = 1 << 17, /* scratch of tape_bridge.c: was TAPE_RETAIN */
    TAPE_READ = 1 << 18,       /* scratch of tape_call.c: one of what the innermost call has read */
    TAPE_LISTENED = 1 << 19,   /* one of tape.listeners is called with its adjoint */
    TAPE_GIVEN = 1 << 20,      /* owns its buffer, and no op computed what is in it */
    TAPE_ON_DISK = 1 << 21,    /* its buffer lies in the tape's file, see tape_disk.h */
};

/* One entry of the value table. The array comes first: a kernel_ref of the tape is a value. */
struct tape_value {
    struct kernel_array array;
    void *adjoint;           /* row-major, of the value's shape */
    uint32_t generation;     /* of the tape when the value was made; TAPE_RELEASED: none */
    uint32_t row;            /* line that made it, in the account */
    uint32_t gradient_epoch; /* leaf: tape-owned gradient is set if this is the tape's;
                              * TAPE_RELEASED: row of the call that released it */
    uint32_t root;           /* value that owns the data: itself, or what it is a view of */
    uint32_t flags;
    uint32_t retained; /* offset among the records, in 8 bytes: TAPE_RETAIN: of the tape_retained;
                        * borrowed arrays: of the newest tape_guard, or TAPE_NO_GUARD;
                        * TAPE_RELEASED: what the generation was */
};

#define TAPE_NO_GENERATION UINT32_MAX /* of a value that was released: no handle has it */

#define TAPE_NO_GUARD UINT32_MAX

enum tape_guard_found { TAPE_GUARD_CHANGED = 1, TAPE_GUARD_FREED };

/* What a borrowed array held when a record saved it; lies among the records. See tape_guard.h. */
struct tape_guard {
    uint64_t hash;
    uint32_t value, row;      /* whose array; the op that saved it */
    uint32_t previous, older; /* of all guards; of the same value */
    uint32_t phase;           /* when it was made, or last found to hold still */
    uint32_t changed;         /* scratch of tape_guard_verify: 0, or one of these */
};

/* Gradient of an intermediate value, kept on request; lies among the records. */
struct tape_retained {
    void *buffer;
    uint32_t epoch;
    uint32_t sweeps; /* of the tape when it was retained */
};

/* An op that ran, followed by its attributes, then the indices of its operands and outputs. */
struct tape_record {
    const struct kernel_op *op;
    uint32_t previous; /* offset of the record before, in 8 bytes; UINT32_MAX: none */
    uint32_t row;
    uint16_t n_in;
    uint8_t n_out, n_attr;
    uint32_t bytes; /* of the record whole */
};

/* The public header's ad_status, in its order (asserted in ad/). */
enum tape_status {
    TAPE_OK,
    TAPE_ERROR_ARGUMENT,
    TAPE_ERROR_SHAPE,
    TAPE_ERROR_DTYPE,
    TAPE_ERROR_HANDLE,
    TAPE_ERROR_TAPE,
    TAPE_ERROR_THREAD,
    TAPE_ERROR_VALUE,
    TAPE_ERROR_MEMORY,
    TAPE_ERROR_LIMIT,
    TAPE_ERROR_STATE,
    TAPE_ERROR_PROFILE,
    TAPE_ERROR_GRADIENT,
    TAPE_ERROR_NONFINITE,
    TAPE_ERROR_FILE
};

struct tape_error {
    enum tape_status code;
    uint32_t number; /* by which poisoned numbers know it (tape_poison.h); 0: none does */
    bool heard;      /* the user has asked for it, or was told */
    char message[TAPE_MESSAGE_BYTES];
};

/* Where a call stands in the user's program. */
struct tape_site {
    uintptr_t pc;
    uint32_t line;
};

struct tape;
struct tape_teller;

/* Who is told when the sticky error is set; tell is NULL if nobody is. It may not touch the tape.
 * The rest is the owner's. */
struct tape_error_watch {
    void (*tell)(const struct tape *t);
    void (*callback)(void);
    void *payload;
    uint32_t slot, generation;
};

/* Where the next statement's record goes: the layout of the public ad_statement_cursor. */
struct __attribute__((may_alias)) tape_cursor {
    double *partial; /* upwards */
    uint64_t apart;
    uint32_t *word; /* downwards */
    uint64_t apart_too;
    uint64_t result; /* index of the next result, below the tag */
    /* The values of an older tag that the statements to come may name, by their first word: index
     * below tag. A statement that has named one puts them here; the end of the run, which comes
     * before any of them can go, takes them out. */
    uint64_t kept, n_kept;
};

static inline uint32_t tape_cursor_next(const struct tape_cursor *c)
{
    return (uint32_t)c->result;
}

/* Where the limit is looked at, the smallest block follows, whose statements of at least 8 bytes
 * all have indices yet. */
enum { TAPE_BLOCK_LEAST = 4 << 10, TAPE_BLOCK_MOST = 4 << 20 };
#define TAPE_INDEX_LIMIT (UINT32_MAX - TAPE_BLOCK_LEAST / 8)

/* Head of a block of statements. */
struct tape_block {
    struct tape_block *previous;
    uint64_t bytes;
    uint64_t padding; /* what was left when the next block was begun */
};

struct tape_statement_mark {
    struct tape_cursor rest;
    struct tape_block *block;
    uint64_t n, bytes, gaps;
    uint32_t n_leaves, n_elements, n_gathers, n_lines;
    uint32_t section; /* number of the newest section begun until then, open or not */
};

struct tape_mark {
    struct tape_arena_mark arena;
    struct tape_statement_mark statements;
    uint32_t generation;
    uint32_t n_values;
    uint32_t last_record;
    uint32_t last_guard;
    uint32_t n_records;
    uint32_t frame; /* the newest frame begun until then, open or not */
    int no_grad;
    uint64_t no_grad_begun; /* levels, ever */
};

/* Values and records made since a frame's begin lie behind these. */
struct tape_frame {
    uint32_t number; /* from 1, in order of their begin, over resets as well */
    uint32_t n_values;
    uint32_t last_record;
};

/* What must stay as it is meanwhile: values, marks and frames below these numbers, and records up
 * to last_record; and who sees to it, for messages: static storage. */
struct tape_fixed {
    uint32_t n_values, n_marks, n_frames, last_record;
    const char *by;
};

/* The calls of functions of the user's that run now; see tape_call.h. */
struct tape_call;
struct tape_calls {
    struct tape_call *innermost; /* NULL: none runs */
    bool made;                   /* some, ever */
    bool dry;                    /* ops are computed, and what needs a gradient is known, but
                                  * nothing is recorded */
    uint32_t *read;              /* older values that the calls have read, those of the innermost
                                  * last */
    uint32_t n_read, size;
};

/* Where a level of ad_tape_no_grad_begin was begun, and its number among all, from 1. */
enum { TAPE_NO_GRAD_LEVELS = 8 };
struct tape_no_grad_level {
    struct tape_site site;
    uint64_t number;
};

enum { TAPE_KNOWN = 16 };
/* A path without a row, by the hash of its key, and how much more often it came than others with
 * the same place here. */
enum { TAPE_LATE = 1024 };
struct tape_late {
    uint64_t key;
    uint64_t n;
};

struct tape_table { /* open addressing: row index plus 1 by tape_row_key */
    uint32_t *slot;
    uint32_t size, used;
    uint32_t searched;          /* how often an observed row was none of `known`, ever */
    uint32_t known[TAPE_KNOWN]; /* rows that were found last, by the site's program counter, and by
                                 * the call path where that is observed */
    struct tape_late *late;     /* [TAPE_LATE] paths that came when there was no room; NULL: none */
    uint32_t n_late;            /* of them: that have got rows of their own */
};

/* What a sweep has done that is not counted yet: it took a buffer of a row's, or gave it back, or a
 * pullback has read what its record saved. Between two pullbacks so many wait at most, so that one
 * has room for some more. */
enum { TAPE_BOOKINGS = 64, TAPE_BOOKINGS_WAIT = 40 };
enum tape_booked { TAPE_BOOKED_GIVEN, TAPE_BOOKED_TAKEN, TAPE_BOOKED_READ };
struct tape_booking {
    uint64_t ticks; /* when, where it is counted later than the next record is; else 0 */
    uint64_t bytes; /* TAPE_BOOKED_READ: offset of the record, in 8 bytes */
    uint32_t row;
    enum tape_booked what;
};

/* Whether what is on the tape will be computed again, see tape_replay.h. */
enum tape_replays {
    TAPE_REPLAYS_NOTHING,
    TAPE_REPLAYS_WHOLE,   /* what records read and write keeps its buffer */
    TAPE_REPLAYS_RECORDED /* and ops leave records also where no gradient is needed */
};

struct tape {
    const struct tape_memory *memory; /* own_memory */
    struct tape_memory own_memory;    /* a copy: the caller's need not outlive the call */
    struct tape_arena arena;
    struct tape_value *entries;
    uint32_t n_values;
    uint32_t last_record; /* offset in 8 bytes; UINT32_MAX: none */
    uint32_t last_guard;  /* likewise */
    uint32_t n_records;
    uint32_t open;           /* record that is still being written; UINT32_MAX: none */
    uint32_t generation;     /* grows with every reset and rewind */
    uint32_t gradient_epoch; /* grows when the gradients are cleared */
    uint32_t sweeps;         /* that ended well, ever */
    uint32_t swept_epoch;    /* gradient_epoch that the last of them belongs to */
    uint32_t phase;          /* of guards: grows with every sweep that ended well and rewind */
    int no_grad;             /* depth of ad_tape_no_grad_begin; see tape_no_grad.h */
    uint64_t no_grad_begun;  /* levels, ever */
    struct tape_no_grad_level no_grad_levels[TAPE_NO_GRAD_LEVELS];
    uint64_t whole_bytes; /* guards look at all of an array of so many bytes, else at samples */
    const struct tape_scalar_watch
        *scalar_watch; /* who is told of scalars then; tape_nonfinite_scalars.h */
    struct tape_error error;
    struct tape_error_watch watch;

    struct tape_mark *marks;
    uint32_t n_marks, marks_size;
    struct tape_site dropped; /* the newest reset or rewind of the user's; zeros: there was none */

    struct tape_frame *frames; /* that are open */
    uint32_t n_frames, frames_size;
    uint32_t frame;          /* number of the newest, ever */
    int nonfinite;           /* what tape_nonfinite.h looks for; 0: nothing */
    struct tape_fixed fixed; /* what was there before the call that runs; zeros: none does */
    bool unlisted;           /* no observation sees it */
    enum tape_replays replays;
    bool hold;                  /* what is released keeps its buffer: it will be looked at */
    bool has_released;          /* since the tape was made or reset; else sweeps need not look */
    bool reading;               /* the sweep's adjoints are read, and go to no gradient */
    struct tape_teller *teller; /* is told of kernels' calls, which are not run; else NULL */
    const void *lent; /* the adjoint that the sweep began with, where it is the seed's own array */
    uint32_t n_seeds; /* of the sweep under way: adjoints are so many arrays, one behind the
                        * other; else 1 */

    /* The parts' own (tape_part.h); each is known where its part is. */
    struct tape_statements *statements;
    struct tape_sections *sections;
    struct tape_fork *fork;
    struct tape_program *program;
    struct tape_user_gradients *user_gradients;
    struct tape_listeners *listeners;
    struct tape_dues *dues;
    struct tape_record_watch *record_watch;
    struct tape_replay *replay;
    struct tape_spills *spills;
    struct tape_disk *disk;
    /* Tells why there was no room, if that is more than the budget; NULL, or false: it is not. */
    bool (*refused)(struct tape *t, const char *what, struct tape_site site);

    const struct tape_sweep *verified; /* whose beginning is being looked at, else NULL */
    struct tape_calls calls;
    /* Of a sweep, as tape_activity_begin has said; TAPE_PHASE_FORWARD: of ad_create_graph; else
     * none. */
    enum tape_phase activity;
    uint32_t graph_row; /* TAPE_PHASE_FORWARD: of the call */
    uint64_t *stamp;    /* where times are chained: the end of what has been accounted for */

    struct tape_ledger ledger;
    struct tape_table sites;
    uint32_t session;       /* of the observation that the ledger's counters belong to */
    struct tape_hook *hook; /* while an op or a sweep is being observed, else NULL */
    uint64_t ticks;         /* the last reading of its clock */
    uint64_t own_ticks;     /* that counting took by itself, ever: no line's, and no sweep's */
    struct tape_booking booking[TAPE_BOOKINGS]; /* of a sweep, see tape_account_settle() */
    uint32_t n_bookings;
    bool charges_wait; /* for the sweep under way to come to the records, see tape_part.charge */
    struct tape_residual_state *residual; /* see tape_residual.h; NULL: never observed */
    const char *shape;                    /* of the row that is looked for, NULL: any */
    uintptr_t swept_from;                 /* where the newest sweep was called */
    const struct tape_path_root *root;    /* while a function of the user's runs; else NULL */
    uint32_t path; /* what is recorded now belongs to this call path, plus 1; 0: the caller's */
    struct {
        uint64_t start; /* ticks */
        uint32_t path;  /* as above */
        uint32_t row;   /* TAPE_ROW_NONE: it is found with the shapes of the op */
        bool is;
    } entered;            /* the call of an op that has not come to its kernel yet */
    struct tape_now *now; /* where its thread publishes what it does, likewise */

    struct tape *next_tape, **link; /* list of live tapes, under the lock of tape_observe.c */

    /* The program counter whose low half a statement has kept, and which lies in the module of
     * another; set by the owner of the tape. */
    uintptr_t (*locate)(uint32_t low, uintptr_t near);
    /* Writes "mlp.c:41 in dense" for a site; set by the owner of the tape. */
    void (*describe)(struct tape_site site, char *buf, size_t n);
};

static inline struct tape_record *tape_record_at(const struct tape *t, uint32_t offset)
{
    return (struct tape_record *)(void *)(t->arena.record_base + (size_t)offset * 8);
}

static inline struct tape_guard *tape_guard_at(const struct tape *t, uint32_t offset)
{
    return (struct tape_guard *)(void *)(t->arena.record_base + (size_t)offset * 8);
}

static inline int64_t *tape_record_attr(struct tape_record *r)
{
    return (int64_t *)(void *)(r + 1);
}

static inline uint32_t *tape_record_in(struct tape_record *r)
{
    return (uint32_t *)(void *)(tape_record_attr(r) + r->n_attr);
}

static inline uint32_t *tape_record_out(struct tape_record *r)
{
    return tape_record_in(r) + r->n_in;
}

static inline uint64_t tape_value_bytes(const struct tape_value *v)
{
    return (uint64_t)v->array.size * kernel_dtype_bytes(v->array.dtype);
}

/* Of its entry, of its shape and strides where they are its own, and of what it retains, by its
 * flags. */
static inline uint64_t tape_entry_bytes(const struct tape_value *v, uint32_t flags)
{
    const uint64_t lists =
        (flags & TAPE_OWNS_SHAPE ? 1u : 0u) + (flags & TAPE_OWNS_STRIDES ? 1u : 0u);
    return sizeof *v + lists * v->array.rank * sizeof(int64_t) +
           (flags & TAPE_RETAIN ? sizeof(struct tape_retained) : 0);
}

/* Of the adjoint that a sweep makes. */
static inline uint64_t tape_adjoint_bytes(const struct tape *t, const struct tape_value *v)
{
    return t->n_seeds * tape_value_bytes(v);
}

static inline uint32_t tape_value_index(const struct tape *t, const struct tape_value *v)
{
    return (uint32_t)(v - t->entries);
}

/* A leaf's gradient, or a transient adjoint, has content. */
static inline bool tape_has_adjoint(const struct tape *t, const struct tape_value *v)
{
    if (!(v->flags & TAPE_LEAF))
        return v->adjoint != NULL;
    return v->gradient_epoch == t->gradient_epoch;
}

static inline struct tape_retained *tape_retained_of(const struct tape *t,
                                                     const struct tape_value *v)
{
    return (struct tape_retained *)(void *)(t->arena.record_base + (size_t)v->retained * 8);
}

#endif
