/* report_top.c: the table of the costliest lines.
 *
 * May include: report.h and what it stands on.
 */
#include "report_text.h"
#include "units.h"

#include <stdlib.h>
#include <string.h>

enum { NAMES_ROOM = 256, WHERE_ROOM = 1024 };

/* A line with the key it is sorted by; ties keep the order of the source. */
struct ranked {
    const struct prof_line *line;
    uint64_t key;
};

static uint64_t key_of(const struct prof_cost *cost, enum report_sort sort)
{
    switch (sort) {
    case REPORT_SORT_FORWARD:
        return cost->forward_ns;
    case REPORT_SORT_BACKWARD:
        return cost->backward_ns;
    case REPORT_SORT_TAPE:
        return prof_cost_tape_bytes(cost);
    case REPORT_SORT_PEAK:
        return cost->peak_bytes;
    case REPORT_SORT_CALLS:
        return cost->calls;
    case REPORT_SORT_TOTAL:
        break;
    }
    return cost->forward_ns + cost->backward_ns;
}

static int compare_ranked(const void *x, const void *y)
{
    const struct ranked *a = x, *b = y;
    if (a->key != b->key)
        return a->key > b->key ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

/* The totals as a cost: times and bytes from the tapes' own counters. */
static struct prof_cost total_cost(const struct prof_analysis *analysis)
{
    struct prof_cost cost = analysis->sum;
    cost.forward_ns = analysis->total.forward_ns;
    cost.backward_ns = analysis->total.backward_ns;
    cost.record_bytes = analysis->total.handed_out_bytes;
    cost.value_bytes = cost.adjoint_bytes = 0;
    cost.peak_bytes = analysis->total.peak_bytes;
    return cost;
}

static void put_place(char *buf, size_t n, const struct prof_analysis *analysis,
                      const struct prof_line *line)
{
    const char *module = line->module ? text_base_name(line->module) : "?";
    if (line->file)
        snprintf(buf, n, "%s:%u", text_short_path(analysis, line->file), (unsigned)line->line);
    else if (line->line)
        snprintf(buf, n, "%s line %u", module, (unsigned)line->line);
    else if (line->function)
        snprintf(buf, n, "%s +0x%llx", module, (unsigned long long)line->offset);
    else
        snprintf(buf, n, "%s+0x%llx", module, (unsigned long long)line->offset);
}

static void put_function(char *buf, size_t n, const struct prof_analysis *analysis,
                         const struct prof_line *line)
{
    const char *where = line->file     ? text_short_path(analysis, line->file)
                        : line->module ? text_base_name(line->module)
                                       : "?";
    if (line->function)
        snprintf(buf, n, "%s %s", line->function, where);
    else
        snprintf(buf, n, "%s+0x%llx", where, (unsigned long long)line->offset);
}

static void cell_where(struct table *table, const struct prof_analysis *analysis,
                       const struct prof_line *line, enum prof_by by)
{
    char names[NAMES_ROOM], where[WHERE_ROOM];
    text_names(names, sizeof names, &line->ops, ",");
    if (by == PROF_BY_OP) {
        table_cell(table, names);
        return;
    }
    if (line->own) {
        table_cellf(table, "(tape) %s", names);
        return;
    }
    if (by == PROF_BY_FUNCTION) {
        put_function(where, sizeof where, analysis, line);
        table_cellf(table, "%s %s", where, names);
        return;
    }
    /* What is cut at the end of a narrow terminal is what the line tells anyway. */
    put_place(where, sizeof where, analysis, line);
    table_cellf(table, "%s %s %s", where, names, line->function ? line->function : "");
}

static void add_cells(struct table *table, const struct prof_cost *cost,
                      const struct prof_cost *total, enum report_sort sort,
                      const struct report_style *style)
{
    char buf[UNITS_ROOM];
    table_row(table);
    table_cell(table, units_share(buf, key_of(cost, sort), key_of(total, sort)));
    cell_time(table, cost->forward_ns + cost->backward_ns, style);
    cell_time(table, cost->forward_ns, style);
    cell_time(table, cost->backward_ns, style);
    table_cell(table, units_ratio(buf, cost->backward_ns, cost->forward_ns));
    cell_bytes(table, prof_cost_tape_bytes(cost), style);
    cell_bytes(table, cost->peak_bytes, style);
    cell_count(table, cost->calls, style);
}

static void add_columns(struct table *table, enum prof_by by)
{
    static const char *const title[] = {"share", "total", "forward", "backward",
                                        "b/f",   "tape",  "at peak", "calls"};
    static const char *const where[] = {
        [PROF_BY_LINE] = "line, op, function",
        [PROF_BY_FUNCTION] = "function, file, op",
        [PROF_BY_OP] = "op",
    };
    for (size_t i = 0; i < sizeof title / sizeof *title; i++)
        table_column(table, TABLE_RIGHT, title[i]);
    table_column(table, TABLE_LEFT, where[by]);
}

static void put_hidden(const struct ranked *hidden, size_t n, enum prof_by by,
                       const struct prof_cost *total, enum report_sort sort,
                       const struct report_style *style)
{
    static const char *const noun[] = {
        [PROF_BY_LINE] = "line", [PROF_BY_FUNCTION] = "function", [PROF_BY_OP] = "op"};
    char buf[UNITS_ROOM];
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += hidden[i].key;
    fprintf(style->out, "%s %zu more %s%s with %s in all; -n 0 shows everything.\n",
            style->utf8 ? "\u2026" : "...", n, noun[by], n == 1 ? "" : "s",
            units_share(buf, sum, key_of(total, sort)));
}

static int print(const struct prof_analysis *analysis, const struct ranked *ranked, size_t n,
                 enum prof_by by, enum report_sort sort, size_t limit,
                 const struct report_style *style)
{
    struct table *table = table_new();
    if (!table)
        return -1;
    struct prof_cost total = total_cost(analysis);
    size_t shown = limit > 0 && limit < n ? limit : n;
    add_columns(table, by);
    for (size_t i = 0; i < shown; i++) {
        add_cells(table, &ranked[i].line->cost, &total, sort, style);
        cell_where(table, analysis, ranked[i].line, by);
    }
    add_cells(table, &total, &total, sort, style);
    table_cell(table, "(all)");
    int status = table_print(table, style->out, style->exact ? 0 : style->width, style->utf8);
    table_free(table);
    if (status != 0)
        return status;
    if (n == 0)
        fputs("Nothing was measured.\n", style->out);
    if (shown < n)
        put_hidden(ranked + shown, n - shown, by, &total, sort, style);
    text_unlined_note(analysis, style->out);
    return 0;
}

int report_top(const struct prof_analysis *analysis, enum prof_by by, enum report_sort sort,
               size_t limit, const struct report_style *style)
{
    size_t n;
    struct prof_line *line = prof_analysis_group(analysis, by, &n);
    struct ranked *ranked = line ? calloc(n + 1, sizeof *ranked) : NULL;
    int status = -1;
    if (ranked) {
        for (size_t i = 0; i < n; i++)
            ranked[i] = (struct ranked){&line[i], key_of(&line[i].cost, sort)};
        qsort(ranked, n, sizeof *ranked, compare_ranked);
        status = print(analysis, ranked, n, by, sort, limit, style);
    }
    free(ranked);
    free(line);
    return status;
}
