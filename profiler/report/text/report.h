/* report.h: what an analysis looks like as text.
 *
 * Invariant: reports read the analysis and write to `out`, nothing else; the same analysis and
 * options give the same bytes.
 */
#ifndef PROFILER_REPORT_REPORT_H
#define PROFILER_REPORT_REPORT_H

#include "analyze_space.h"

#include <stdbool.h>
#include <stdio.h>

struct report_style {
    FILE *out;
    unsigned width;  /* columns to which tables are cut; 0: not at all */
    unsigned around; /* annotate: 1 + the lines shown on each side of a cost; 0: all */
    unsigned phases; /* of enum report_phase: whose times are shown; 0: all */
    bool exact;      /* plain integers: ns and bytes */
    bool inclusive;  /* top: the analysis' lines hold what they called as well */
    bool json;       /* one JSON document instead of text */
    bool csv;        /* a table for spreadsheets instead: report_csv.h */
    bool color;
    bool utf8;
};

/* What the recording had no room to tell apart, in one line, which the caller frees; NULL: it had
 * room. It is part of the "warning" of every document. */
char *report_left_out(const struct read_profile *profile);

/* The bits of the phases; the time of recomputation is shown where there is any. */
#define REPORT_PHASE_ROW(X, NAME, name, number, ...) REPORT_##NAME = 1 << ((number)-1),
enum report_phase { PHASE_LIST(REPORT_PHASE_ROW, ) };
#undef REPORT_PHASE_ROW

/* What a cost may be said to be: X(NAME, its word in options, the column's title). */
#define REPORT_METRICS(X)                                                                          \
    X(TOTAL, "total", "total")                                                                     \
    X(FORWARD, "forward", "forward")                                                               \
    X(BACKWARD, "backward", "backward")                                                            \
    X(TAPE, "tape", "tape")                                                                        \
    X(PEAK, "peak", "at peak")                                                                     \
    X(CALLS, "calls", "calls")                                                                     \
    /* bytes on the tape times the time that each was there */                                     \
    X(LIFETIME, "lifetime", "B*ms")

enum report_sort {
#define X(NAME, ...) REPORT_SORT_##NAME,
    REPORT_METRICS(X)
#undef X
        REPORT_SORT_RATIO, /* backward over forward time */
};

/* The costliest lines, functions, ops, files or modules, at most `limit` (0: all), and the totals.
 * A ratio of backward to forward time that is far over the expected one has a "!". */
void report_top(const struct analyze_result *analysis, enum analyze_by by, enum report_sort sort,
                size_t limit, const struct report_style *style);

/* Flops and bytes a second of each row in each direction, and which of the two limits it. */
void report_roofline(const struct analyze_result *analysis, enum analyze_by by,
                     enum report_sort sort, size_t limit, const struct report_style *style);

/* The costliest scopes, at most `limit` (0: all), each with those within it; forward is here the
 * time between begin and end without sweeps. */
void report_scopes(const struct analyze_result *analysis, enum report_sort sort, size_t limit,
                   const struct report_style *style);
/* All of them by thread, as CSV with the columns of Stan's profiles; times in seconds. chain_stack:
 * ops and statements recorded; no_chain_stack: calls of the library that recorded nothing. */
void report_scopes_csv(const struct analyze_result *analysis, const struct report_style *style);

/* What the source expects (AD_EXPECT_RATIO, AD_EXPECT_TAPE_BYTES) beside what was measured, a row
 * for each; *n_failed: how many do not hold. */
void report_expectations(const struct analyze_result *analysis, const struct report_style *style,
                         size_t *n_failed);

/* The patterns of sparse Jacobians and Hessians that the program has found, a row for each. */
void report_patterns(const struct analyze_result *analysis, const struct report_style *style);

/* The source of `file` (one of the analysis' files) with what each line cost; function: only its
 * lines, or NULL. The columns, with the rows below the file, add up to the totals of report_info
 * exactly. Where the source cannot be read, lines have no text, and the error number is
 * returned. */
int report_annotate(const struct analyze_result *analysis, const char *file, const char *function,
                    const struct report_style *style);

/* The shortest end of `file` that no other file of the analysis has. */
const char *report_short_path(const struct analyze_result *analysis, const char *file);
/* What `tape` shows: who holds a tape at a moment, how long bytes live, what was saved in vain,
 * what was left. */
enum report_space { REPORT_HOLDERS, REPORT_LIFETIME, REPORT_DEAD, REPORT_LEAKS };
struct report_space_options {
    enum report_space what;
    enum analyze_space_by by;
    enum analyze_space_at at;
    uint64_t at_ns; /* of ANALYZE_AT_TIME */
    size_t limit;   /* rows; 0: all */
};

/* The space of the tape with the greatest peak (holders) or of all tapes. The space was made for
 * the same `by` and `at`. */
void report_space(const struct analyze_result *analysis, const struct analyze_space *space,
                  const struct report_space_options *options, const struct report_style *style);

/* Live bytes of a tape over time, as a plot of the style's width. */
void report_timeline(const struct analyze_result *analysis, const struct read_tape *tape,
                     const struct report_style *style);

/* Lines whose saved values might be computed again; `limit` rows (of those that would lower the
 * peak, but in JSON), 0: all. */
void report_whatif(const struct analyze_result *analysis, const struct analyze_whatif *whatif,
                   size_t limit, const struct report_style *style);

/* The options that were chosen, together. budget: what was asked for, or 0; is_optimal: no choice
 * that fits costs less. */
void report_whatif_choice(const struct analyze_result *analysis,
                          const struct analyze_whatif *whatif, uint64_t budget, bool is_optimal,
                          const struct report_style *style);

/* What was measured and when, and the totals. */
void report_info(const struct analyze_result *analysis, const struct report_style *style);

/* As JSON: what `merge` or `pack` has written: how many of everything are in the profile `written`,
 * a file of so many bytes, and the n profiles that it was made from. */
void report_written(const struct read_profile *written, uint64_t bytes, const char *command,
                    const struct read_profile *const *from, size_t n,
                    const struct report_style *style);

/* One line for people after `tapescope record`: "12 lines, 3 tapes, forward 1.23s, backward
 * 2.34s". */
void report_summary(const struct analyze_result *analysis, const struct report_style *style);

#endif
