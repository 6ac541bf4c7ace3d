/* analyze_checkpoint.h: which calls and loop bodies would lower a tape's peak as checkpoints, as
 * preaccumulated sections or in frames, by how much, and for what time.
 *
 * Invariant: a proposal's peak is the measured one, less what the model of analyze_trace.h says
 * that it saves. Where the model does not know all, it is a lower bound, and is_bound says so.
 */
#ifndef PROFILER_ANALYZE_CHECKPOINT_H
#define PROFILER_ANALYZE_CHECKPOINT_H

#include "analyze.h"
#include "analyze_trace.h"

enum { ANALYZE_KEPT = 3 };

/* What a frame's end keeps. */
struct analyze_kept {
    const char *op, *file; /* file: NULL if it is not known */
    uint32_t line;
};

/* One part of the program, done again in sweeps, replaced by its Jacobian, or in a frame. */
struct analyze_proposal {
    enum analyze_deed deed;
    struct analyze_line line;  /* its first line, and the function that it stands in */
    uint32_t last_line;        /* of a loop's body */
    const char *last_function; /* that it is in, NULL: the same one */
    const char *callee; /* the function whose calls it is; NULL: lines of a loop, or a call's */
    bool is_loop;       /* it is repeated within one call of the function */
    uint64_t times;     /* how often it runs before the peak */
    uint64_t each;      /* of them are one checkpoint or section */
    uint64_t inputs, outputs; /* the most of any, without numbers that do not vary */
    uint64_t peak_bytes;
    uint64_t cost_ns;  /* time of what is computed again */
    uint64_t error_ns; /* standard error of the estimated part of it; 0: there is none */
    bool cost_known, cost_is_estimate;
    bool is_best; /* no other has a lower peak at no more cost */
    struct analyze_kept
        kept[ANALYZE_KEPT]; /* of a frame: results that are used after it, by line */
    uint32_t n_kept;        /* so many are known */
};

struct analyze_proposals {
    /* Frames first, which cost nothing; by peak, then by cost; those alone that lower it. */
    struct analyze_proposal *proposal;
    size_t n;
    uint64_t peak_bytes;  /* the tape's */
    uint64_t model_bytes; /* what the model says of it */
    bool is_traced;       /* something was recorded one by one */
    bool is_cut;          /* more was recorded than is known one by one */
    bool is_hidden;       /* there are checkpoints or sections, whose insides are not known */
    bool is_bound;        /* the peaks may be higher than is said */
    bool knows_uses;      /* else no frame is among them */
    bool has_ops;         /* there are values that a frame might release */
};

struct analyze_tree;

/* Of the tape with the greatest peak. tree: of all rows, as analyze_tree_make() makes it without
 * options, and not folded; NULL: it is made. The caller frees the proposals in any case. */
void analyze_proposals_make(struct analyze_proposals *proposals,
                            const struct analyze_result *analysis, const struct analyze_tree *tree);
void analyze_proposals_free(struct analyze_proposals *proposals);

/* The cheapest of them that fits, or NULL: none does, or it is not sure that it would. */
const struct analyze_proposal *analyze_proposals_fit(const struct analyze_proposals *proposals,
                                                     uint64_t budget);

#endif
