/* analyze_trace.h: the trace of a tape's stretch with the peak as a graph of what was made, and
 * what would be live if parts of it were checkpoints, or sections that are preaccumulated.
 *
 * Private to profiler/analyze. Invariant: an operand comes before what reads it.
 */
#ifndef PROFILER_ANALYZE_TRACE_H
#define PROFILER_ANALYZE_TRACE_H

#include "analyze.h"

/* A value of a tensor, or the results of a statement or a fused loop. */
struct analyze_made {
    uint32_t item;    /* that made it; UINT32_MAX: it is older than the trace */
    uint32_t root;    /* the value with its buffer: itself, or what it is a view of */
    uint32_t scalars; /* results of statements; 0: a tensor */
    uint64_t entry;   /* bytes of its entry */
    uint64_t buffer;  /* of its buffer, as handed out; 0: it has none of the tape's */
    uint64_t adjoint; /* of its adjoint within a sweep; 0: it needs none */
    bool given;       /* its numbers are the user's own */
    bool leaf;
};

/* An entry of the trace; refs[first .. first + n_out) are results, then come n_in operands, of
 * which those with ANALYZE_READS are read by the pullback. */
#define ANALYZE_READS 0x80000000u
struct analyze_item {
    uint32_t kind; /* enum trace_kind */
    uint32_t row;  /* place plus 1 in the tape's rows; 0: none */
    uint64_t bytes;
    double weight; /* how many of its like there were for each in the trace; 1 unless it is cut */
    uint32_t first, n_out, n_in;
    bool saves_out; /* the pullback reads results */
    uint32_t made;  /* TRACE_VALUE: the value; TRACE_RELEASE: likewise, UINT32_MAX: an older one */
};

struct analyze_trace {
    const struct read_tape *tape;
    struct analyze_item *item;
    size_t n_items;
    struct analyze_made *made;
    size_t n_made;
    uint32_t *ref;
    size_t n_refs;
    bool is_cut, is_hidden; /* there is more, and the rest is as what is here; unknown */
    bool has_uses;          /* whatever was used is known to have been */
    double seeds;           /* of the sweep: scalars have so many adjoints each */
    double slack;           /* at the peak: bytes of blocks that no statement had filled */
    size_t
        sweep; /* the item before which the sweep with the most begins; SIZE_MAX: there is none */
    bool all_sweeps; /* there are few: each is gone through where it is */
};

/* How a part of the recording would be done. */
enum analyze_deed {
    ANALYZE_CHECKPOINT,      /* ad_checkpoint */
    ANALYZE_REAL_CHECKPOINT, /* ad_real_checkpoint */
    ANALYZE_PREACCUMULATE,   /* ad_preaccumulate_begin and _end */
    ANALYZE_FRAME            /* ad_frame_begin and _end: of what it makes, some values stay */
};

/* Parts of a trace, one behind the other: of[item] is a part's number plus 1, 0: it stays. */
struct analyze_parts {
    enum analyze_deed deed;
    uint32_t *of;
    uint32_t n;
    const bool *stays; /* [made], of frames: what their ends keep */
};

/* What is known of a part: what crosses its border. */
struct analyze_border {
    uint32_t inputs, outputs;
};

void analyze_trace_make(struct analyze_trace *trace, const struct read_tape *tape);
void analyze_trace_free(struct analyze_trace *trace);

/* The lines that the tape's rows are of, whatever path led to them: [rows], the caller's. Lines are
 * numbered from 0; *n: how many there are. */
uint32_t *analyze_trace_lines(const struct read_tape *tape, uint32_t *n);

/* The tape's peak with these parts, NULL: as it is, by the model alone. border[parts->n] or NULL:
 * what each part's border has. */
uint64_t analyze_trace_peak(const struct analyze_trace *trace, const struct analyze_parts *parts,
                            struct analyze_border *border);

#endif
