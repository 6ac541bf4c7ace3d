/* tape_residuals.h: the part of the contract of tape_hook.h that says what a tape's bytes are for,
 * how long they live, and what was live when.
 *
 * - Classes partition the account: the bytes, live bytes and bytes at the peak of the classes whose
 *   producer is a row are exactly that row's. Where rows have used up their part of the classes,
 *   bytes of others are of the class of their line: of a row without callers. A class keeps its
 *   place and what it is about until the tape is destroyed; its counters change as those of rows
 *   do.
 * - A value's bytes belong to its line's class of kind TAPE_VALUE until an op is recorded whose
 *   pullback reads it; from then on to the class {line, that op's line, TAPE_SAVED}, as if they had
 *   been its own since they were made. So counters of the first kind may shrink.
 * - While bytes lie in the tape's file, they are live bytes of the class {line, reader, TAPE_DISK}
 *   in place of their own. Nothing is handed out for such a class, and nothing given back: its
 *   other counters are 0.
 * - The log and the points change in place: `sequence` is odd while they do. Who reads them from
 *   another thread compares it before and after; chunks stay where they are as long as the tape.
 *   So does `now_version` for the moment under way, which changes much more often.
 */
#ifndef TAPE_RESIDUALS_H
#define TAPE_RESIDUALS_H

#include "trace.h"

#include <stdbool.h>
#include <stdint.h>

enum tape_residual_kind {
    TAPE_SAVED,   /* values that a pullback reads */
    TAPE_VALUE,   /* values that none reads: a handle holds them, or no frame was ended */
    TAPE_RECORD,  /* records, entries, shapes, statements */
    TAPE_ADJOINT, /* adjoints, gradients, intermediates of pullbacks, workspace */
    TAPE_DISK,    /* bytes of any of the others that lie in the tape's file for now */
    TAPE_RESIDUAL_KINDS
};

enum tape_release_cause {
    TAPE_BY_CALL,  /* the call that took it: workspace, sections */
    TAPE_BY_SWEEP, /* adjoints; values, where the sweep gives up what it has passed */
    TAPE_BY_FRAME, /* the end of a frame, or the release of a handle */
    TAPE_BY_REWIND,
    TAPE_BY_RESET,
    TAPE_BY_DESTROY,
    TAPE_RELEASE_CAUSES
};

struct tape_class {
    uint32_t producer; /* row */
    uint32_t consumer; /* row, plus 1; 0: none */
    uint32_t kind;
    uint32_t shared;      /* 1 if ops of other rows read some of it as well */
    uint32_t released_by; /* row, plus 1, of the first call that gave some of it back; 0: none */
    uint32_t released_others; /* 1 if others did, too */
    uint64_t peak_stamp;      /* as a row's */
    uint64_t changed_ticks;   /* when live_bytes last changed */
    double byte_ticks;        /* bytes times ticks that they were live, up to changed_ticks */
#define X(name) uint64_t name;
    CLASS_COUNTERS(X)
#undef X
};

/* Live bytes change. In what was merged, a moment is what several changes came to. */
struct tape_change {
    uint64_t ticks;
    int64_t delta;
    uint32_t class_;
    uint32_t flags; /* enum tape_change_flag */
};

enum tape_change_flag {
    TAPE_CHANGE_ENDS = 1,     /* the last of its moment */
    TAPE_CHANGE_BACKWARD = 2, /* a sweep was under way */
};

enum {
    TAPE_CLASS_CHUNK = 64,
    TAPE_CLASS_CHUNKS = 1024,
    TAPE_CHANGE_CHUNK = 256,
    TAPE_CHANGE_CHUNKS = 128,
    TAPE_MOMENT_CHUNK = 64,
    TAPE_MOMENT_CHUNKS = 64,
    TAPE_TRACE_CHUNK = 4096,
    TAPE_TRACE_CHUNKS = TRACE_MOST / TAPE_TRACE_CHUNK,
};

/* Changes since the tape was last nearly empty, from nothing on. */
struct tape_log {
    struct tape_change *chunk[TAPE_CHANGE_CHUNKS];
    uint32_t n;
    uint32_t merged;                    /* most changes that a moment stands for */
    bool truncated;                     /* there was no room for the rest */
    uint32_t *trace[TAPE_TRACE_CHUNKS]; /* trace.h says what its words are; NULL behind the last */
    uint32_t n_trace;                   /* words; grows by whole entries */
    uint32_t trace_flags;               /* enum tape_trace_flag */
};

enum tape_trace_flag {
    TAPE_TRACE_CUT = 1,    /* there was no room for the rest */
    TAPE_TRACE_HIDDEN = 2, /* something is not in it: what functions of checkpoints and
                               sections do, or inputs that a fused loop reads one by one */
};

/* A stretch of time: the most and the least that was live. */
struct tape_moment {
    uint64_t ticks; /* when it was most */
    uint64_t most_bytes, least_bytes;
    uint64_t backward; /* 1: it was most while a sweep was under way */
};

struct tape_residuals {
    uint32_t n_classes; /* read with acquire */
    uint32_t sequence;
    struct tape_class *chunk[TAPE_CLASS_CHUNKS];
    struct tape_log log[2];
    uint32_t current;     /* of the two: what is written */
    uint32_t peak_inside; /* 1: the peak lies in it, else in the other */
    uint32_t n_moments;   /* that are over */
    uint32_t open;        /* 1: `now` has begun */
    struct tape_moment *moment[TAPE_MOMENT_CHUNKS];
    struct tape_moment now;
    uint32_t now_version; /* odd while `now` changes, or is about to be one more that is over */
    uint64_t peak_ticks;  /* when the tape's peak came */
};

static inline struct tape_class *tape_class_at(const struct tape_residuals *r, uint32_t i)
{
    return &r->chunk[i / TAPE_CLASS_CHUNK][i % TAPE_CLASS_CHUNK];
}

static inline struct tape_change *tape_change_at(const struct tape_log *log, uint32_t i)
{
    return &log->chunk[i / TAPE_CHANGE_CHUNK][i % TAPE_CHANGE_CHUNK];
}

static inline uint32_t *tape_trace_at(const struct tape_log *log, uint32_t i)
{
    return &log->trace[i / TAPE_TRACE_CHUNK][i % TAPE_TRACE_CHUNK];
}

static inline struct tape_moment *tape_moment_at(const struct tape_residuals *r, uint32_t i)
{
    return &r->moment[i / TAPE_MOMENT_CHUNK][i % TAPE_MOMENT_CHUNK];
}

/* Bytes that a class holds at the tape's peak; peaks: the ledger's peak_count. */
static inline uint64_t tape_class_at_peak(const struct tape_class *c, uint64_t peaks)
{
    return c->peak_stamp == peaks ? c->peak_bytes : c->live_bytes;
}

#endif
