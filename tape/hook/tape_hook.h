/* tape_hook.h: the contract between the tape and whoever observes it (the profiler's collector).
 *
 * The tape keeps the account itself: one row per {call path, site, op} and tape, owned by the
 * tape's thread, written only while a hook is set. The observer supplies the clock and is called to
 * persist the rows.
 *
 * Contract:
 * - hook->clock() may be called from any thread from tape_observe_begin(hook) on; it never goes
 *   backwards within a thread. A thread may have taken up the hook just before tape_observe_end():
 *   the hook outlives it for good, and its functions then do nothing that matters.
 * - hook->flush() is called by the thread that owns the ledger's tape when hook->due has passed, or
 *   when that tape is destroyed (`final`); and by the thread that ends the observation for every
 *   tape that lives, its owner perhaps running: counters are then read with relaxed loads and each
 *   is valid, but they may differ by the op that is under way.
 * - hook->path is NULL where no call paths are wanted. Otherwise the tape calls it, in the thread
 *   that records and never in a signal handler, whenever it looks for the row of an op, a leaf, a
 *   sweep, a join, or of a run of statements as it opens, with the return address of the call in
 *   the user's code. The numbers it returns mean the same stack for the life of the process.
 *   Where a tape has no room for more paths, it also calls hook->path_cut, which may be NULL.
 * - Counters only grow, but for live_bytes, peak_bytes, what is held at the peak, and
 *   steady_backward_ticks.
 * - A row, once made, keeps its place, pc, line, op, path and shape until its tape is destroyed.
 * - A failure of the observer never reaches the tape: flush returns nothing.
 * - hook->watch() is called once in an observation, by the first thread that records a statement.
 *   From then until hook->end the observer calls `look` now and then, from a thread of its own.
 * - hook->thread() is called by each thread before it first publishes what it does; the memory that
 *   it is given is the thread's until the thread ends, then another's, and is never unmapped: it
 *   may be read at any time, from any thread and from a signal handler (tape_doing_read).
 * - hook->pattern() is called by the thread that has found a pattern, which is valid within the
 *   call alone. hook->message() and hook->meeting() likewise, by the thread of the message.
 */
#ifndef TAPE_HOOK_H
#define TAPE_HOOK_H

#include "counters.def"
#include "events.def"
#include "phases.def"

#include <stdbool.h>
#include <stdint.h>

enum { TAPE_HOOK_ABI = 17, TAPE_ROW_CHUNK = 128, TAPE_ROW_CHUNKS = 1024 };

struct tape_residuals;

/* counters.def says what each counter is. Times are in ticks of hook->clock. Bytes
 * of records, values and adjoints are those handed out: their sum over all rows (padding has a row
 * of its own) is exactly tape_ledger.handed_out_bytes. peak_bytes are live_bytes as of the tape's
 * peak, while live_bytes has changed since: tape_row_at_peak() says what the row held then. */
struct tape_row {
    uintptr_t pc;         /* return address in the user's code; 0 for rows of the tape's own */
    const char *op;       /* "matmul", "leaf", "backward", "padding": static storage */
    uint32_t line;        /* __LINE__ of the call where the compiler gave it, else 0 */
    uint32_t path;        /* call path, 0: none is known */
    uint32_t kept_by;     /* row, plus 1, of the first op that saved a value of this row; 0: none */
    uint32_t kept_others; /* 1 if ops of other rows saved values of this row as well */
    uint32_t scope;       /* node of tape_scopes that the call stood in, 0: none */
    const char *shape;    /* of result and operands, where hook->shapes asks; static; else NULL */
    uint64_t peak_stamp;  /* ledger->peak_count when live_bytes last changed */
    uint64_t shortest;    /* ticks, of its pullbacks */
#define X(name) uint64_t name;
    ROW_COUNTERS(X)
#undef X
};

struct tape_ledger {
    uint64_t tape;   /* number of the tape in this process, from 1, never reused */
    uint64_t thread; /* number of the owning thread in this process, from 1 */
    uint64_t tid;    /* and the system's, which another thread may have once it has ended */
    uint32_t n_rows; /* read with acquire */
    struct tape_row *chunk[TAPE_ROW_CHUNKS];
    struct tape_residuals *residuals; /* see tape_residuals.h; read with acquire; may be NULL */
#define X(name) uint64_t name;
    TAPE_COUNTERS(X)
#undef X
};

static inline struct tape_row *tape_ledger_row(const struct tape_ledger *ledger, uint32_t i)
{
    return &ledger->chunk[i / TAPE_ROW_CHUNK][i % TAPE_ROW_CHUNK];
}

/* Bytes that a row holds at the tape's peak: see peak_stamp. */
static inline uint64_t tape_row_at_peak(const struct tape_ledger *ledger,
                                        const struct tape_row *row)
{
    return row->peak_stamp == ledger->peak_count ? row->peak_bytes : row->live_bytes;
}

/* ---- scopes: named parts of the program, in a tree that all threads share ---- */

enum {
    TAPE_SCOPE_CHUNK = 256,
    TAPE_SCOPE_CHUNKS = 256,
    TAPE_SCOPE_KEYS = 3,
    TAPE_SCOPE_EXPECTATIONS = 1024
};

/* A node, once made, keeps its place and all but its counters for good. Only threads of its lane
 * write it, which is one thread at a time. */
struct tape_scope {
    uint32_t parent; /* a lower number; 0: none */
    uint32_t n_keys;
    uint64_t lane; /* from 1: a thread's, which another may have once it has ended */
    const char *name;
    const char *key[TAPE_SCOPE_KEYS];
    int64_t value[TAPE_SCOPE_KEYS];
#define X(name) uint64_t name;
    SCOPE_COUNTERS(X)
#undef X
};

/* What a place in the source expects of the scope that it stands in, or of its function (scope
 * 0). */
enum tape_expected { TAPE_EXPECT_RATIO, TAPE_EXPECT_BYTES };
struct tape_expectation {
    uintptr_t pc;
    uint32_t line, scope, kind;
    double bound;   /* backward over forward time; bytes handed out each time */
    uint64_t times; /* that the place was passed */
};

/* Which steps of the program are measured, from 0, where not all of it is. */
struct tape_steps {
    uint64_t asked; /* 0: all of the program is measured */
    uint64_t first, last;
    uint64_t seen;    /* steps that have ended */
    uint64_t by_call; /* 1: by ad_profile_step; 0: by sweeps */
};

/* Whether what is observed from now on is measured: it is not where the steps ended too early. */
static inline bool tape_steps_wanted(const struct tape_steps *steps)
{
    const uint64_t seen = __atomic_load_n(&steps->seen, __ATOMIC_RELAXED);
    return steps->asked == 0 || (seen >= steps->first && seen <= steps->last);
}

struct tape_scopes {
    uint32_t n; /* nodes, with 0, which is none; read with acquire */
    struct tape_scope *chunk[TAPE_SCOPE_CHUNKS];
    uint32_t n_expectations; /* read with acquire */
    struct tape_expectation *expectation;
    uint64_t lost; /* begun where there was no room for a node: counted as what they are in */
    struct tape_steps steps;
};

static inline struct tape_scope *tape_scopes_at(const struct tape_scopes *scopes, uint32_t i)
{
    return &scopes->chunk[i / TAPE_SCOPE_CHUNK][i % TAPE_SCOPE_CHUNK];
}

/* What a thread does with its tape at this moment, for samples of its time. A number is told from
 * its forward computation by the thread's program counter alone, since that is all the user's code:
 * there is no phase then. */
#define TAPE_PHASE_ROW(X, NAME, name, number, ...) TAPE_PHASE_##NAME = number,
enum tape_phase { TAPE_PHASE_NONE, PHASE_LIST(TAPE_PHASE_ROW, ) };
#undef TAPE_PHASE_ROW

enum {
    TAPE_SHAPE_BITS = 6, /* of a statement's first word; the others are the lowest of its pc */
    TAPE_SITE_BITS = 32 - TAPE_SHAPE_BITS
};

struct tape_doing {
    uint32_t phase;
    uint32_t line; /* pc, line, op and path: of the row that the time belongs to */
    uintptr_t pc;
    const char *op; /* static storage; NULL: none */
    uint32_t path;
    uintptr_t near; /* of the statements that are swept: tape_collector.locate wants it */
};

/* The same as it is published. Its own thread writes; `version` is odd meanwhile. */
struct tape_now {
    uint32_t version;
    struct tape_doing doing;
    /* The statement that is swept: the lowest bits of its pc lie in its first word above
     * TAPE_SHAPE_BITS. To be read by a signal handler of this thread alone; NULL: none. */
    const uint32_t *statement;
    /* Whose it is: its thread changes this before another may have it, so that a signal handler of
     * that thread, which runs within it, is never wrong about it. */
    uint32_t owner;
};

/* The order is in each access, not in a fence, which ThreadSanitizer does not know. */
static inline void tape_doing_write(struct tape_now *now, const struct tape_doing *doing)
{
    const uint32_t version = __atomic_load_n(&now->version, __ATOMIC_RELAXED);
    __atomic_store_n(&now->version, version + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&now->doing.phase, doing->phase, __ATOMIC_RELEASE);
    __atomic_store_n(&now->doing.line, doing->line, __ATOMIC_RELEASE);
    __atomic_store_n(&now->doing.pc, doing->pc, __ATOMIC_RELEASE);
    __atomic_store_n(&now->doing.op, doing->op, __ATOMIC_RELEASE);
    __atomic_store_n(&now->doing.path, doing->path, __ATOMIC_RELEASE);
    __atomic_store_n(&now->doing.near, doing->near, __ATOMIC_RELEASE);
    __atomic_store_n(&now->version, version + 2, __ATOMIC_RELEASE);
}

/* False: it is being written at this moment. */
static inline bool tape_doing_read(struct tape_doing *doing, const struct tape_now *now)
{
    const uint32_t version = __atomic_load_n(&now->version, __ATOMIC_ACQUIRE);
    doing->phase = __atomic_load_n(&now->doing.phase, __ATOMIC_ACQUIRE);
    doing->line = __atomic_load_n(&now->doing.line, __ATOMIC_ACQUIRE);
    doing->pc = __atomic_load_n(&now->doing.pc, __ATOMIC_ACQUIRE);
    doing->op = __atomic_load_n(&now->doing.op, __ATOMIC_ACQUIRE);
    doing->path = __atomic_load_n(&now->doing.path, __ATOMIC_ACQUIRE);
    doing->near = __atomic_load_n(&now->doing.near, __ATOMIC_ACQUIRE);
    return version % 2 == 0 && __atomic_load_n(&now->version, __ATOMIC_RELAXED) == version;
}

/* ---- single events, for a timeline ---- */

/* events.def says what each is. */
#define TAPE_EVENT_ROW(X, NAME, number, ...) TAPE_EVENT_##NAME = number,
enum tape_event_kind { EVENT_LIST(TAPE_EVENT_ROW, ) };
#undef TAPE_EVENT_ROW

/* Something that has ended, in the thread that tells of it. */
struct tape_event {
    uint32_t kind;
    uint32_t scope;  /* that it is, or that it stood in */
    bool again;      /* an op that a sweep runs again: its time is recomputation */
    bool part;       /* a stretch of a call that has another event, which counts it */
    uint32_t record; /* place of the op's record among those of the tape, plus 1; 0: none. What is
                      * recorded after a rewind or a reset may have it again. */
    const struct tape_row *row; /* of the op or sweep; NULL: a scope */
    uint64_t tape;
    uint64_t start, end; /* ticks */
};

/* ---- patterns of sparse derivatives ---- */

enum tape_pattern_kind { TAPE_PATTERN_JACOBIAN, TAPE_PATTERN_HESSIAN };

/* A pattern that a call has found, in compressed rows. */
struct tape_pattern {
    uintptr_t pc;
    uint32_t line;
    enum tape_pattern_kind kind;
    int64_t m, n;
    const int64_t *row_start, *column; /* [m + 1], [row_start[m]] */
    bool coloured;                     /* its rows were coloured: */
    uint32_t colours;                  /* sweeps that its values take */
};

/* ---- messages between processes ---- */

/* What a call waits for, or is half of; numbers as in profile.proto. */
enum tape_message_kind {
    TAPE_MESSAGE_ALL,
    TAPE_MESSAGE_FROM_ROOT,
    TAPE_MESSAGE_TO_ROOT,
    TAPE_MESSAGE_SEND, /* a send, a receive, or both */
    TAPE_MESSAGE_BEGIN,
    TAPE_MESSAGE_END,
    TAPE_MESSAGE_KINDS
};

/* A call that has ended. Ranks are those of the whole program. */
struct tape_message {
    uint32_t kind;
    bool backward; /* in a sweep */
    uint32_t line;
    uintptr_t pc;
    const char *op;  /* static storage */
    uint64_t comm;   /* communicator: the same number on all of its ranks, and no other's */
    uint32_t ranks;  /* of it */
    uint64_t number; /* collective: among those of comm; BEGIN and END: what they have alike */
    int32_t root;    /* -1: none, of this and the next two */
    int32_t to, from;
    int32_t to_tag, from_tag;
    uint64_t bytes;      /* that this rank gives */
    uint64_t start, end; /* ticks */
};

/* Rank 0's clock was at `theirs` when this process' was at `own`, to within `width`: each in ticks
 * of its own. */
struct tape_meeting {
    uint64_t own, theirs, width;
};

/* What runs again within a sweep belongs where it ran first: the innermost frame that returns to
 * `pc`, and all outwards of it, count as the call path `path`, and frames of the library's own
 * right within it do not count. */
struct tape_path_root {
    uintptr_t pc;
    uint32_t path;
};

/* A look: where each thread is among statements; at those that are recorded alone, and threads that
 * sweep are left out; or whether those that record went on since the first look. */
enum tape_look_kind { TAPE_LOOK_FIRST, TAPE_LOOK_RECORDING, TAPE_LOOK_AGAIN };
/* What a look has found: no thread at statements; some; or it cannot be told yet of some, and
 * TAPE_LOOK_AGAIN is wanted, TAPE_LOOK_NS later. Code that runs for longer than
 * TAPE_LOOK_OWN_NS between two statements is not theirs; an interrupt takes less. */
enum tape_looked { TAPE_LOOKED_NOTHING, TAPE_LOOKED_FOUND, TAPE_LOOKED_PENDING };
enum { TAPE_LOOK_NS = 10000, TAPE_LOOK_OWN_NS = 30000 };

enum { TAPE_PATH_KEPT = 8 };

struct tape_hook {
    uint32_t abi;            /* TAPE_HOOK_ABI */
    uint64_t (*clock)(void); /* ticks */
    uint64_t due; /* clock value from which a flush is wanted; written by flush, relaxed */
    void (*flush)(struct tape_hook *hook, const struct tape_ledger *ledger, bool final);
    /* An observation begins: what was said before is void. The scopes stay where they are for good.
     * May be NULL. */
    void (*begin)(struct tape_hook *hook, const struct tape_scopes *scopes);
    /* It ends, and may begin again. May be NULL. */
    void (*end)(struct tape_hook *hook);
    /* Is told of every event. NULL: nobody wants them. */
    void (*event)(struct tape_hook *hook, const struct tape_event *event);
    /* Is told of every pattern that is found, any thread. NULL: nobody wants them. */
    void (*pattern)(struct tape_hook *hook, const struct tape_pattern *pattern);
    /* Is told of every message, and of every meeting of clocks, any thread. NULL: nobody wants
     * them. */
    void (*message)(struct tape_hook *hook, const struct tape_message *message);
    void (*meeting)(struct tape_hook *hook, const struct tape_meeting *meeting);
    /* Ticks as nanoseconds, any thread. May be NULL: they are. */
    double (*ns)(const struct tape_hook *hook, uint64_t ticks);
    /* root: NULL: the stack as it is. NULL instead of the function: call paths are off. */
    uint32_t (*path)(struct tape_hook *hook, uintptr_t site, const struct tape_path_root *root);
    /* The outermost `keep` frames of a path that ends at the site, one frame that stands for those
     * between, and the site. For a call without a row TAPE_PATH_KEPT are asked for first. */
    uint32_t (*path_cut)(struct tape_hook *hook, uint32_t path, uintptr_t site, unsigned keep);
    /* The calling thread publishes what it does at `now` from here on. NULL: nobody takes samples,
     * and no thread publishes anything. */
    void (*thread)(struct tape_hook *hook, const struct tape_now *now);
    /* Statements take too little time to be timed one by one. They are looked at from time to
     * time, and what is found there is an estimate. NULL: none is wanted. */
    void (*watch)(struct tape_hook *hook,
                  enum tape_looked (*look)(enum tape_look_kind kind, uint64_t now));
    /* What counting takes is no line's time: bytes that a sweep takes and gives back are counted
     * between two pullbacks, and the clock is read once more behind that. False: the clock is read
     * as seldom as can be, and what a pullback takes has its counting in it. */
    bool apart;
    bool shapes;      /* rows are told apart by the shapes of their ops as well */
    bool unaccounted; /* no row is wanted: there are samples alone */
};

/* What a recording is asked for: the one place for all of it, filled by the tape's side from text
 * (ad_profile_options.c). Every member is a number, so that a table can fill it. */
enum tape_time { TAPE_TIME_OFF, TAPE_TIME_EXACT, TAPE_TIME_SAMPLED };
enum tape_frames { TAPE_FRAMES_NONE, TAPE_FRAMES_USER, TAPE_FRAMES_ALL };
enum tape_unwind { TAPE_UNWIND_LIBUNWIND, TAPE_UNWIND_FRAME_POINTERS };
/* Sampled time without an account of bytes, any other with one. Exact times need the rows. */
enum { TAPE_BYTES_WITH_TIME = 2 };
struct tape_collect_options {
    uint64_t time;                  /* enum tape_time */
    uint64_t tape;                  /* rows: 1, 0: none are kept, or TAPE_BYTES_WITH_TIME */
    uint64_t freq;                  /* samples a second and thread */
    uint64_t interval;              /* milliseconds between two writings, at most */
    uint64_t depth;                 /* frames of a call path at most; 0: none are captured */
    uint64_t frames;                /* enum tape_frames: whose frames a call path keeps */
    uint64_t unwind;                /* enum tape_unwind */
    uint64_t timeline;              /* bytes for single events; 0: none are kept */
    uint64_t first_step, last_step; /* that are measured, from 0; last_step UINT64_MAX: no end */
    uint64_t warmup;                /* steps left out before the first is counted */
    uint64_t snapshot_signal;       /* a signal's number that asks for a snapshot; 0: none does */
    uint64_t shapes;                /* 1: rows are told apart by shapes */
    uint64_t attach;                /* a signal's number by which a profile is asked for; 0: none */
    uint64_t follow_fork;           /* 1: a child process has a profile of its own */
    const char *text;               /* as they were written; "": all are defaults */
    bool (*log)(int level, const char *message);       /* see tape_collector */
    uintptr_t (*locate)(uint32_t low, uintptr_t near); /* likewise */
    /* Ticks that an op, or a pullback, is measured longer by such a clock than it takes where
     * nobody looks (negative: shorter). NULL: none. */
    void (*calibrate)(uint64_t (*clock)(void), double *forward, double *backward);
};

static inline struct tape_collect_options tape_collect_defaults(void)
{
    return (struct tape_collect_options){.time = TAPE_TIME_EXACT,
                                         .tape = TAPE_BYTES_WITH_TIME,
                                         .freq = 250,
                                         .interval = 1000,
                                         .depth = 64,
                                         .frames = TAPE_FRAMES_USER,
                                         .last_step = UINT64_MAX,
                                         .text = ""};
}

/* Not all of the program is measured. */
static inline bool tape_collect_steps(const struct tape_collect_options *options)
{
    return options->warmup > 0 || options->first_step > 0 || options->last_step != UINT64_MAX;
}

/* What the collector's module exports: tapescope_collect_open(). Opens `path` and writes its head.
 * options: NULL: the defaults; they are read within the call alone. On failure returns NULL with
 * the reason in `error` (n bytes). close() writes the end and returns 0, or -1 with the reason.
 * snapshot() writes all that is known so far as a complete profile to another path. log, if it is
 * not NULL, is offered every message that the collector has of its own accord, in any thread and
 * under its locks; where it returns false, the message goes to standard error. */
enum tape_log_level { TAPE_LOG_INFO, TAPE_LOG_WARNING };
struct tape_collector {
    struct tape_hook hook;
    int (*snapshot)(struct tape_collector *collector, const char *path, char *error, unsigned n);
    int (*close)(struct tape_collector *collector, char *error, unsigned n);
    bool (*log)(int level, const char *message); /* as in the options */
    /* Likewise: the program counter whose lowest TAPE_SITE_BITS a statement has kept (`low` may
     * have more of them); see tape_doing.near. */
    uintptr_t (*locate)(uint32_t low, uintptr_t near);
};
typedef struct tape_collector *tape_collect_open_fn(const char *path, const char *library_version,
                                                    const struct tape_collect_options *options,
                                                    char *error, unsigned n);
#define TAPE_COLLECT_OPEN "tapescope_collect_open"

/* What the symbol module exports, for messages only: the function and source line of a return
 * address in this process, as "mlp.c:41 in dense". line: __LINE__ if known, else 0. Returns 0,
 * or -1. */
typedef int tape_symbol_describe_fn(uintptr_t pc, uint32_t line, char *buf, unsigned n);
#define TAPE_SYMBOL_DESCRIBE "tapescope_symbol_describe"

#endif
