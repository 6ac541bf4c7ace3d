/* report_many.h: reports of several profiles: growth, differences, gates.
 *
 * Invariant: as in report.h.
 */
#ifndef PROFILER_REPORT_REPORT_MANY_H
#define PROFILER_REPORT_REPORT_MANY_H

#include "analyze_fit.h"
#include "analyze_join.h"
#include "analyze_ranks.h"
#include "analyze_runs.h"
#include "report.h"

enum report_bytes { REPORT_BYTES_PEAK, REPORT_BYTES_TAPE };

/* Profiles of one program at several sizes. */
struct report_sizes {
    const struct analyze_result *const *analysis;
    const double *size;
    size_t n;
    const char *name; /* what the size is, as "argument 1" */
};

/* How a row's bytes and time grow with the size. */
struct report_growth_row {
    const struct analyze_joined *row; /* NULL: the totals */
    struct analyze_fit bytes, time;
    double largest_bytes, largest_ns; /* at the greatest size */
};

struct report_growth {
    enum report_bytes bytes; /* that were fitted */
    struct analyze_join join;
    struct report_growth_row *row; /* the fastest growing in bytes at the greatest size first */
    size_t n;
    struct report_growth_row total;
};

/* Fits every row. The caller frees it. */
void report_growth_make(struct report_growth *growth, const struct report_sizes *sizes,
                        enum analyze_by by, enum report_bytes bytes);
void report_growth_free(struct report_growth *growth);

/* The table: at most `limit` rows (0: all); exponents significantly above `most` have a "!". */
void report_growth_print(const struct report_growth *growth, const struct report_sizes *sizes,
                         enum analyze_by by, double most, size_t limit,
                         const struct report_style *style);

/* A row for each rank, for each line with messages, and for at most `limit` lines (0: all), those
 * first whose slowest rank takes most beyond the mean. */
void report_ranks(const struct analyze_ranks *ranks, enum analyze_by by, size_t limit,
                  const struct report_style *style);

/* What is different between runs of one program and others, by the change of what `sort` names (not
 * REPORT_SORT_RATIO), or by its relation to the first if `relative`. Rows without any change, and
 * those whose change chance may have made, are counted, not shown. */
void report_diff(const struct analyze_runs *base, const struct analyze_runs *now,
                 enum analyze_by by, enum report_sort sort, bool relative, size_t limit,
                 const struct report_style *style);

#endif
