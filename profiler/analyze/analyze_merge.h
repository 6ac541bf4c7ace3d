/* analyze_merge.h: sorting lines and merging those that are one under some view.
 *
 * Private to profiler/analyze. Invariant: merging neither loses nor invents cost.
 */
#ifndef PROFILER_ANALYZE_MERGE_H
#define PROFILER_ANALYZE_MERGE_H

#include "analyze.h"

/* The order of two lines in a view; 0: they are one. */
int analyze_compare(const struct analyze_line *a, const struct analyze_line *b, enum analyze_by by);

/* Sorts the lines in the order of the source and merges equal ones in place. Returns how many
 * remain. */
size_t analyze_merge(struct analyze_line *line, size_t n, enum analyze_by by);

/* Whether a line is an op's site without line information. */
bool analyze_is_unlined(const struct analyze_line *line);

/* Running sums of the ticks of forward, backward and recomputation and of the estimated parts of
 * the first two, and what they are in ns. */
enum { ANALYZE_TIMES = 6 };
struct analyze_times {
    uint64_t ticks[ANALYZE_TIMES], ns[ANALYZE_TIMES];
};

/* Adds the ns of a cost's ticks to its times. Sums are rounded rather than terms, so that nothing
 * is lost between the costs. */
void analyze_round_times(struct analyze_times *times, const struct read_profile *profile,
                         struct analyze_cost *cost);

#endif
