/* report_spread.h: what a row of a sum is of each rank: columns for tables, members for JSON.
 *
 * Private to profiler/report.
 */
#ifndef PROFILER_REPORT_REPORT_SPREAD_H
#define PROFILER_REPORT_REPORT_SPREAD_H

#include "report_json.h"
#include "report_text.h"

enum { REPORT_SPREAD_TITLE = 24 };

/* value: of the rows, one after the other, what each rank has of the metric. */
struct report_spread {
    const struct analyze_ranks *ranks;
    enum report_sort metric;
    const char *name; /* of the metric in JSON; NULL: its own */
    const struct report_style *style;
    uint64_t *value;
    char (*title)[REPORT_SPREAD_TITLE]; /* of the columns, as long as the table is there */
};

/* What tells how a figure is spread over many ranks. */
enum { REPORT_PARTS = 5 };
extern const struct report_part {
    const char *name;
    double part;
} report_part[REPORT_PARTS];
void report_spread_sort(uint64_t *value, size_t n);
/* Of n values in order the one with this part of them below it; 0 of none. */
uint64_t report_quantile(const uint64_t *value, size_t n, double part);

/* Room for so many rows, each 0. */
void report_spread_make(struct report_spread *spread, size_t n_rows);
void report_spread_free(struct report_spread *spread);
uint64_t *report_spread_row(const struct report_spread *spread, size_t row);
/* What this cost counts for. */
uint64_t report_spread_value(const struct report_spread *spread, const struct analyze_cost *cost);

/* The most over the mean, the rank that has it, and each rank; of many their least, quartiles and
 * most instead. Where there is no room the last columns go first. */
void report_spread_columns(const struct report_spread *spread, struct report_table *table);
void report_spread_cells(const struct report_spread *spread, struct report_table *table,
                         const uint64_t *value);

/* "by_rank": {"metric", "ranks": [their numbers]} of the document, and "by_rank": [values],
 * "max_over_mean", "most" of a row. */
void report_spread_json(const struct report_spread *spread, struct base_json *json);
void report_spread_json_row(const struct report_spread *spread, struct base_json *json,
                            const uint64_t *value);

#endif
