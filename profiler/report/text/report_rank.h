/* report_rank.h: the rows of a view in the order of a key.
 *
 * Private to profiler/report.
 */
#ifndef PROFILER_REPORT_REPORT_RANK_H
#define PROFILER_REPORT_REPORT_RANK_H

#include "report.h"
#include "report_units.h"

/* A row with what it is sorted by; ties keep the order of the source. */
struct report_ranked {
    const struct analyze_line *line;
    uint64_t key;
    double order;
};

/* The rows of an analysis in a view, the greatest key first. */
struct report_ranking {
    struct analyze_line *line;
    struct report_ranked *row;
    size_t n, shown; /* shown: how many of them are to be printed */
    struct analyze_cost total;
};

/* The caller frees the ranking. */
void report_ranking_make(struct report_ranking *ranking, const struct analyze_result *analysis,
                         enum analyze_by by, enum report_sort sort, size_t limit,
                         const struct report_style *style);
void report_ranking_free(struct report_ranking *ranking);

/* What a cost counts for under a key; times only of the phases in the style, and bytes times
 * microseconds of lifetimes. */
uint64_t report_ranking_key(const struct analyze_cost *cost, enum report_sort sort,
                            const struct report_style *style);

/* Whether it is an estimate, in the mode that measures the rest exactly; and whether it is known:
 * the forward time of statements that nobody looked at is not. */
bool report_ranking_is_estimate(const struct analyze_cost *cost, enum report_sort sort,
                                const struct report_style *style);
bool report_ranking_is_known(const struct analyze_cost *cost, enum report_sort sort);

/* The part of the whole that a cost is under a key, as text. */
char *report_ranking_share(char buf[REPORT_UNITS_ROOM], const struct analyze_cost *part,
                           const struct analyze_cost *whole, enum report_sort sort,
                           const struct report_style *style);

/* Time in all phases, as far as the style shows them. */
uint64_t report_ranking_time(const struct analyze_cost *cost, const struct report_style *style);
bool report_ranking_has_phase(const struct report_style *style, enum report_phase phase);

/* Whether the profile has what a key names: times, bytes and calls, or lifetimes, for which bytes
 * and exact times are needed. */
bool report_ranking_knows(const struct read_profile *profile, enum report_sort sort);
/* The key, or the one that stands for it where the profile does not have it. */
enum report_sort report_ranking_known(const struct read_profile *profile, enum report_sort sort);
bool report_ranking_is_time(enum report_sort sort);

/* The name of a view's rows: "line", "op". */
const char *report_ranking_noun(enum analyze_by by);

#endif
