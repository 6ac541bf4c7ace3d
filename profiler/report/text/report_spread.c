/* report_spread.c: see report_spread.h. */
#include "report_spread.h"

#include "analyze_ranks.h"
#include "base_memory.h"
#include "report_rank.h"

#include <stdlib.h>
#include <string.h>

/* More ranks have no columns of their own. */
enum { SPREAD_APART = 8 };

const struct report_part report_part[REPORT_PARTS] = {
    {"min", 0}, {"25 %", 0.25}, {"median", 0.5}, {"75 %", 0.75}, {"max", 1}};

/* Where there is no room the quartiles go first, the most last. */
static const unsigned part_goes[REPORT_PARTS] = {1, 4, 2, 3, 0};

static int compare_values(const void *x, const void *y)
{
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

void report_spread_sort(uint64_t *value, size_t n)
{
    qsort(value, n, sizeof *value, compare_values);
}

uint64_t report_quantile(const uint64_t *value, size_t n, double part)
{
    return n > 0 ? value[(size_t)(part * (double)(n - 1) + 0.5)] : 0;
}

void report_spread_make(struct report_spread *spread, size_t n_rows)
{
    spread->value = base_calloc(n_rows * spread->ranks->n + 1, sizeof *spread->value);
    spread->title = base_calloc(spread->ranks->n + 1, sizeof *spread->title);
}

void report_spread_free(struct report_spread *spread)
{
    free(spread->value);
    free(spread->title);
}

uint64_t *report_spread_row(const struct report_spread *spread, size_t row)
{
    return spread->value + row * spread->ranks->n;
}

uint64_t report_spread_value(const struct report_spread *spread, const struct analyze_cost *cost)
{
    return report_ranking_key(cost, spread->metric, spread->style);
}

static void spread_cell(const struct report_spread *spread, struct report_table *table,
                        uint64_t value)
{
    if (spread->metric == REPORT_SORT_TAPE || spread->metric == REPORT_SORT_PEAK)
        report_cell_bytes(table, value, spread->style);
    else if (spread->metric == REPORT_SORT_CALLS)
        report_cell_count(table, value, spread->style);
    else if (spread->metric == REPORT_SORT_LIFETIME)
        report_cell_byte_time(table, (double)value * 1e3, spread->style);
    else
        report_cell_time(table, value, spread->style);
}

void report_spread_columns(const struct report_spread *spread, struct report_table *table)
{
    report_table_column(table, REPORT_TABLE_RIGHT, "max/mean");
    report_table_column(table, REPORT_TABLE_RIGHT, "most");
    const bool apart = spread->ranks->n <= SPREAD_APART;
    for (size_t i = 0; i < (apart ? spread->ranks->n : REPORT_PARTS); i++) {
        if (apart)
            snprintf(spread->title[i], sizeof spread->title[i], "rank %d",
                     spread->ranks->rank[i].rank);
        else
            snprintf(spread->title[i], sizeof spread->title[i], "%s", report_part[i].name);
        report_table_column(table, REPORT_TABLE_RIGHT, spread->title[i]);
        report_table_optional(table, REPORT_TABLE_ASKED_FOR + (apart ? (unsigned)i : part_goes[i]));
    }
}

/* The place of the rank that has most; the ratio is 0 where none has anything. */
static size_t spread_most(const struct report_spread *spread, const uint64_t *value, double *ratio)
{
    size_t most = 0;
    double sum = 0;
    for (size_t i = 0; i < spread->ranks->n; i++) {
        sum += (double)value[i];
        most = value[i] > value[most] ? i : most;
    }
    *ratio = sum > 0 ? (double)value[most] * (double)spread->ranks->n / sum : 0;
    return most;
}

void report_spread_cells(const struct report_spread *spread, struct report_table *table,
                         const uint64_t *value)
{
    double ratio;
    const size_t most = spread_most(spread, value, &ratio);
    if (ratio > 0) {
        report_table_cellf(table, "%.2f", ratio);
        report_table_cellf(table, "%d", spread->ranks->rank[most].rank);
    } else {
        report_table_cell(table, "-");
        report_table_cell(table, "-");
    }
    if (spread->ranks->n <= SPREAD_APART) {
        for (size_t i = 0; i < spread->ranks->n; i++)
            spread_cell(spread, table, value[i]);
        return;
    }
    uint64_t *sorted = base_calloc(spread->ranks->n, sizeof *sorted);
    memcpy(sorted, value, spread->ranks->n * sizeof *sorted);
    report_spread_sort(sorted, spread->ranks->n);
    for (size_t i = 0; i < REPORT_PARTS; i++)
        spread_cell(spread, table, report_quantile(sorted, spread->ranks->n, report_part[i].part));
    free(sorted);
}

void report_spread_json(const struct report_spread *spread, struct base_json *json)
{
#define X(NAME, word, ...) [REPORT_SORT_##NAME] = (word),
    static const char *const metrics[] = {REPORT_METRICS(X)};
#undef X
    base_json_object(json, "by_rank");
    base_json_text(json, "metric", spread->name ? spread->name : metrics[spread->metric]);
    base_json_array(json, "ranks");
    for (size_t i = 0; i < spread->ranks->n; i++)
        base_json_i64(json, NULL, spread->ranks->rank[i].rank);
    base_json_end(json);
    base_json_end(json);
}

void report_spread_json_row(const struct report_spread *spread, struct base_json *json,
                            const uint64_t *value)
{
    double ratio;
    const size_t most = spread_most(spread, value, &ratio);
    base_json_array(json, "by_rank");
    for (size_t i = 0; i < spread->ranks->n; i++)
        base_json_u64(json, NULL, value[i]);
    base_json_end(json);
    if (ratio > 0) {
        base_json_double(json, "max_over_mean", ratio);
        base_json_i64(json, "most", spread->ranks->rank[most].rank);
    } else {
        base_json_null(json, "max_over_mean");
        base_json_null(json, "most");
    }
}
