/* analyze_space.h: what holds a tape's memory: lines, what for, how long; and what would if some
 * lines' saved values were computed again.
 *
 * Invariant: the holders of a moment add up to what the classes say was live then; whether that is
 * the tape's own count is for the report to compare (analyze_space.total).
 */
#ifndef PROFILER_ANALYZE_SPACE_H
#define PROFILER_ANALYZE_SPACE_H

#include "analyze.h"

/* Bytes of one line (or op) for one purpose, of all tapes together; `held` at one moment of one
 * tape. */
struct analyze_holder {
    struct analyze_line line, consumer; /* a consumer without ops: there is none */
    struct analyze_line released_by;    /* likewise */
    bool more_consumers, more_releasers, shared;
    unsigned kinds; /* bits of enum read_residual_kind */
    uint64_t held;
    uint64_t dead_bytes;   /* saved, given back, and never read */
    uint64_t unread_bytes; /* saved, live, and not read yet */
    double byte_ns;        /* bytes times ns that they were live */
    READ_RESIDUAL_MEMBERS;
};

enum analyze_space_by { ANALYZE_SPACE_BY_CLASS, ANALYZE_SPACE_BY_LINE, ANALYZE_SPACE_BY_OP };
enum analyze_space_at { ANALYZE_AT_PEAK, ANALYZE_AT_END, ANALYZE_AT_TIME };

struct analyze_space {
    const struct read_tape *tape; /* with the greatest peak */
    struct analyze_holder *holder;
    size_t n;
    uint32_t *of; /* [the tape's residuals]: the holder that has it, plus 1; 0: none */
    struct analyze_holder left_out; /* of producers that analyze_select() has removed */
    size_t n_left_out;
    uint64_t total;          /* live at the moment by the tape's own count */
    uint64_t held;           /* the same by the holders and left_out */
    uint64_t at_ns;          /* the moment, since the start of the profile */
    bool at_is_known;        /* of the peak, an older profile does not know when it was */
    bool is_backward;        /* during a sweep */
    uint64_t from_ns, to_ns; /* the stretch that is known change by change; equal: none is */
};

/* Classes of the lines that the analysis keeps, merged as `by` says; at: what `held` is about; ns:
 * of ANALYZE_AT_TIME, since the start. Returns 0, or 1: that moment
 * is not within the stretch. The caller frees the space in any case. */
int analyze_space_make(struct analyze_space *space, const struct analyze_result *analysis,
                       enum analyze_space_by by, enum analyze_space_at at, uint64_t ns);
void analyze_space_free(struct analyze_space *space);

/* The order of two holders of spaces that were made by `by`, which is that of a space; 0: they are
 * one. */
int analyze_space_compare(const struct analyze_holder *a, const struct analyze_holder *b,
                          enum analyze_space_by by);

/* A line (or function) whose saved values might be computed again. */
struct analyze_option {
    struct analyze_line line; /* its ops are those that save something */
    uint64_t saved_peak;      /* bytes of its saved values at the peak */
    uint64_t count;           /* values that would be computed again */
    uint64_t cost_ns;         /* their share of the line's forward time */
    uint64_t peak_bytes;      /* the tape's peak without them */
    bool is_best;             /* no other has a lower peak at no more cost */
    bool chosen;
};

/* The options of the tape with the greatest peak, replayed change by change. */
struct analyze_whatif {
    const struct read_tape *tape;
    struct analyze_option *option; /* in the order of the source */
    size_t n, n_left_out; /* n_left_out: rows that save values, and that the analysis leaves out */
    uint32_t *of;         /* [tape's residuals]: option plus 1; 0: stays as it is */
    uint32_t *first, *next; /* [options], [residuals]: an option's residuals, plus 1 each */
    uint64_t peak_bytes;    /* of the replay, with everything saved */
    uint64_t run_ns;        /* forward and backward time of the tape */
    uint32_t merged;        /* changes between two moments of the replay, at most */
    bool is_truncated;
};

/* Returns 0, or 1: the profile has no changes to replay. The caller
 * frees it in any case. */
int analyze_whatif_make(struct analyze_whatif *whatif, const struct analyze_result *analysis,
                        bool by_function);
void analyze_whatif_free(struct analyze_whatif *whatif);

/* The peak if the values of the chosen options were not saved but computed again, one at a time,
 * each just before the pullback that reads it. */
uint64_t analyze_whatif_peak(const struct analyze_whatif *whatif);
/* What that would cost. */
uint64_t analyze_whatif_cost(const struct analyze_whatif *whatif);

/* What of the peak of the tape with the greatest may lie in a file (ad_tape_options.spill). */
struct analyze_spill {
    uint64_t tensor_bytes, statement_bytes;
};
struct analyze_spill analyze_spill_of(const struct read_tape *tape);

/* The replay without what makes no difference to any choice, for who chooses elsewhere: what is
 * live of all that is no option's at each moment, and how the options' classes change. The peak of
 * a choice is the greatest, over the moments, of what is live without the chosen options' classes,
 * and while a sweep runs with the most of min(again, live) of any of those classes. */
struct analyze_replay_class {
    uint32_t option;
    uint64_t again; /* largest value that is made again; 0: none is */
};
struct analyze_replay_moment {
    int64_t rest;
    uint32_t n_changes; /* of classes, since the moment before */
    bool backward;      /* a sweep runs */
};
struct analyze_replay_change {
    uint32_t class_;
    int64_t delta;
};
struct analyze_replay {
    struct analyze_replay_class *class_;
    struct analyze_replay_moment *moment;
    struct analyze_replay_change *change;
    size_t n_classes, n_moments, n_changes;
};

/* The caller frees it in any case. */
void analyze_replay_make(struct analyze_replay *replay, const struct analyze_whatif *whatif);
void analyze_replay_free(struct analyze_replay *replay);

/* Whether analyze_whatif_fit() tries all choices where the peak is over the budget. */
bool analyze_whatif_tries_all(const struct analyze_whatif *whatif);

/* Chooses options so that the peak is at most `budget`, at little cost. Returns 0: it is, 1: no
 * choice reaches it (the one with the least peak is chosen). *is_optimal:
 * all choices were tried. */
int analyze_whatif_fit(struct analyze_whatif *whatif, uint64_t budget, bool *is_optimal);

#endif
