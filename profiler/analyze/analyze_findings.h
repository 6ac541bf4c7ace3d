/* analyze_findings.h: what stands out in a profile, and what part of the run AD was.
 *
 * Invariant: a finding is about at least 5 % of its whole, and about so much time or so many calls
 * that chance does not make it; never about the tape's own rows or a line that only calls the
 * sweep. Where nothing stands out, the only findings are of the functions that have most time,
 * however little each has.
 */
#ifndef PROFILER_ANALYZE_FINDINGS_H
#define PROFILER_ANALYZE_FINDINGS_H

#include "analyze_checkpoint.h"

/* What part of the run AD was: with exact times of the time that passed, threads added up; with
 * samples of the process' processor time, without the profiler, whose thread is not sampled. */
enum analyze_part_kind {
    ANALYZE_PART_EXACT,
    ANALYZE_PART_ESTIMATE,
    ANALYZE_PART_LEAST, /* formulas of statements have no time */
};
struct analyze_part {
    uint64_t ad_ns, run_ns;
    uint64_t forward_ns, backward_ns, recompute_ns, profiler_ns; /* AD's sum is of these */
    uint64_t observed_ns;  /* that a profile may add before the times of calls begin */
    bool is_much_observed; /* it may be most of what is not AD, and that most of the run */
    enum analyze_part_kind kind;
};
/* False: run_ns is not known, or what was measured is no part of it. */
bool analyze_part_make(struct analyze_part *part, const struct analyze_result *analysis);

/* X(NAME, its word in JSON, what `part` is of what). PULLBACK: its ns beyond what its counts let
 * expect. FUNCTION: where nothing stands out. */
#define ANALYZE_FINDINGS(X)                                                                        \
    X(REST, "rest", "ns that are not AD's, of the run's")                                          \
    X(GRID, "grid", "ns, of AD's, or bytes, of all handed out, of a result beside small operands") \
    X(LINE, "line", "ns of a line, of AD's")                                                       \
    X(PULLBACK, "pullback", "ns of a slow pullback, of AD's")                                      \
    X(REWIND, "rewind", "bytes that steps leave on the tape, of the peak")                         \
    X(UNREAD, "unread", "bytes that no pullback reads, of the peak")                               \
    X(DEAD, "dead", "bytes that were saved and never read, of all handed out")                     \
    X(CHECKPOINT, "checkpoint", "bytes that the peak would be lower by, of the peak")              \
    X(FUNCTION, "function", "ns of a function, of AD's")

enum analyze_finding_kind {
#define X(NAME, ...) ANALYZE_FINDING_##NAME,
    ANALYZE_FINDINGS(X)
#undef X
        ANALYZE_FINDING_KINDS
};

struct analyze_finding {
    enum analyze_finding_kind kind;
    struct analyze_line line; /* that it is about; without ops: none */
    uint64_t part, whole;
    bool of_bytes;                           /* GRID: part and whole are bytes */
    uint64_t each;                           /* REWIND: bytes that a sweep leaves */
    uint64_t held;                           /* REWIND: the line's of the peak; DEAD: of `part` */
    double expected;                         /* backward over forward time; 0: not known */
    const struct analyze_proposal *proposal; /* CHECKPOINT; UNREAD: its frame, or NULL */
};

struct analyze_findings {
    struct analyze_finding *finding; /* times first, then bytes */
    size_t n;
    struct analyze_proposals proposals;
};

/* proposals: of the same analysis, which must outlive the findings; NULL: they are made where they
 * are asked for. The caller frees the findings in any case. */
void analyze_findings_make(struct analyze_findings *findings, const struct analyze_result *analysis,
                           const struct analyze_proposals *proposals);
void analyze_findings_free(struct analyze_findings *findings);

#endif
