/* report_ranks.c: the ranks of one run side by side, and the lines that divide the work unevenly. */
#include "report_json.h"

#include "base_memory.h"
#include "base_number.h"
#include "report_many.h"
#include "report_rank.h"
#include "report_text.h"

#include <stdlib.h>
#include <string.h>

/* A line over the ranks: what its slowest rank takes more than the mean of all is lost where they
 * wait for each other. */
struct uneven {
    const struct analyze_joined *row;
    uint64_t mean_ns, most_ns;
    size_t slowest; /* of the profiles */
};

/* Time of a rank in messages, of which it cannot be told here what was waiting, and in the rest. */
struct rank_time {
    uint64_t messages_ns, rest_ns;
};

static uint64_t line_time(const struct analyze_cost *cost)
{
    return read_add(read_add(cost->forward_ns, cost->backward_ns), cost->recompute_ns);
}

static bool is_message(const struct analyze_line *line)
{
    return line->ops.n == 1 && strncmp(line->ops.name[0], "mpi_", 4) == 0;
}

static struct rank_time rank_time_of(const struct analyze_result *analysis)
{
    struct rank_time time = {0, 0};
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const struct analyze_line *line = &analysis->line[i];
        uint64_t *to = is_message(line) ? &time.messages_ns : &time.rest_ns;
        *to = read_add(*to, line_time(&line->cost));
    }
    return time;
}

static struct uneven uneven_of(const struct analyze_joined *row, size_t n)
{
    struct uneven made = {.row = row};
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t ns = row->line[i] ? line_time(&row->line[i]->cost) : 0;
        sum = read_add(sum, ns);
        if (ns > made.most_ns) {
            made.most_ns = ns;
            made.slowest = i;
        }
    }
    made.mean_ns = n > 0 ? sum / n : 0;
    return made;
}

static int compare_uneven(const void *x, const void *y)
{
    const struct uneven *a = x, *b = y;
    const uint64_t of_a = a->most_ns - a->mean_ns, of_b = b->most_ns - b->mean_ns;
    if (of_a != of_b)
        return of_a > of_b ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static void print_ranks(const struct report_ranks *ranks, const struct rank_time *time,
                        const struct report_style *style)
{
    static const char *const titles[] = {"rank", "total",     "forward", "backward", "messages",
                                         "rest", "rest/mean", "tape",    "at peak"};
    struct report_table *table = report_table_new();
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        report_table_column(table, REPORT_TABLE_RIGHT, titles[i]);
    uint64_t sum = 0;
    size_t most = 0;
    for (size_t i = 0; i < ranks->n; i++) {
        sum = read_add(sum, time[i].rest_ns);
        most = time[i].rest_ns > time[most].rest_ns ? i : most;
    }
    for (size_t i = 0; i < ranks->n; i++) {
        const struct analyze_totals *total = &ranks->analysis[i]->total;
        report_table_row(table);
        report_table_cellf(table, "%u", ranks->analysis[i]->profile->rank);
        report_cell_time(table, read_add(time[i].messages_ns, time[i].rest_ns), style);
        report_cell_time(table, total->forward_ns, style);
        report_cell_time(table, total->backward_ns, style);
        report_cell_time(table, time[i].messages_ns, style);
        report_cell_time(table, time[i].rest_ns, style);
        if (sum > 0)
            report_table_cellf(table, "%.2f",
                               (double)time[i].rest_ns * (double)ranks->n / (double)sum);
        else
            report_table_cell(table, "-");
        report_cell_bytes(table, total->handed_out_bytes, style);
        report_cell_bytes(table, total->peak_bytes, style);
    }
    report_table_print(table, style->out, style->exact ? 0 : style->width, style->utf8);
    report_table_free(table);
    if (sum > 0)
        fprintf(style->out, "Rank %u has the most to do outside messages.\n",
                ranks->analysis[most]->profile->rank);
    putc('\n', style->out);
}

static void print_uneven(const struct report_ranks *ranks, const struct uneven *uneven, size_t n,
                         enum analyze_by by, const struct report_style *style)
{
    struct report_table *table = report_table_new();
    report_table_column(table, REPORT_TABLE_RIGHT, "lost");
    report_table_column(table, REPORT_TABLE_RIGHT, "max/mean");
    report_table_column(table, REPORT_TABLE_RIGHT, "rank");
    report_table_column(table, REPORT_TABLE_RIGHT, "max");
    report_table_optional(table, 1);
    report_table_column(table, REPORT_TABLE_RIGHT, "mean");
    report_table_optional(table, 2);
    report_table_column(table, REPORT_TABLE_LEFT, report_text_where_title(by));
    for (size_t i = 0; i < n; i++) {
        const struct uneven *row = &uneven[i];
        report_table_row(table);
        report_cell_time(table, row->most_ns - row->mean_ns, style);
        if (row->mean_ns > 0)
            report_table_cellf(table, "%.2f", (double)row->most_ns / (double)row->mean_ns);
        else
            report_table_cell(table, "-");
        report_table_cellf(table, "%u", ranks->analysis[row->slowest]->profile->rank);
        report_cell_time(table, row->most_ns, style);
        report_cell_time(table, row->mean_ns, style);
        report_cell_where(table, ranks->analysis[row->slowest], row->row->any, by);
    }
    report_table_print(table, style->out, style->exact ? 0 : style->width, style->utf8);
    report_table_free(table);
}

static void print_json(const struct report_ranks *ranks, const struct rank_time *time,
                       const struct uneven *uneven, size_t shown, size_t n, enum analyze_by by,
                       FILE *out)
{
    struct base_json json;
    report_json_begin(&json, out, "ranks");
    base_json_text(&json, "by", report_ranking_noun(by));
    base_json_array(&json, "ranks");
    for (size_t i = 0; i < ranks->n; i++) {
        const struct analyze_result *analysis = ranks->analysis[i];
        const bool timed = report_ranking_knows(analysis->profile, REPORT_SORT_TOTAL);
        base_json_object(&json, NULL);
        base_json_u64(&json, "rank", analysis->profile->rank);
        base_json_text(&json, "path", analysis->profile->path);
        report_json_known(&json, "forward_ns", analysis->total.forward_ns, timed);
        report_json_known(&json, "backward_ns", analysis->total.backward_ns, timed);
        report_json_known(&json, "messages_ns", time[i].messages_ns, timed);
        report_json_known(&json, "rest_ns", time[i].rest_ns, timed);
        report_json_known(&json, "tape_bytes", analysis->total.handed_out_bytes,
                          read_profile_has_bytes(analysis->profile));
        report_json_known(&json, "peak_bytes", analysis->total.peak_bytes,
                          read_profile_has_bytes(analysis->profile));
        base_json_end(&json);
    }
    base_json_end(&json);
    base_json_array(&json, "rows");
    for (size_t i = 0; i < shown; i++) {
        base_json_object(&json, NULL);
        report_json_place(&json, uneven[i].row->any);
        base_json_u64(&json, "mean_ns", uneven[i].mean_ns);
        base_json_u64(&json, "max_ns", uneven[i].most_ns);
        base_json_u64(&json, "slowest", ranks->analysis[uneven[i].slowest]->profile->rank);
        base_json_end(&json);
    }
    base_json_end(&json);
    base_json_u64(&json, "rows_not_shown", n - shown);
    base_json_finish(&json);
}

void report_ranks(const struct report_ranks *ranks, enum analyze_by by, size_t limit,
                  const struct report_style *style)
{
    struct analyze_join join;
    analyze_join_make(&join, ranks->analysis, ranks->n, by, false);
    struct uneven *uneven = base_calloc(join.n_rows + 1, sizeof *uneven);
    struct rank_time *time = base_calloc(ranks->n + 1, sizeof *time);
    size_t n = 0;
    for (size_t i = 0; i < join.n_rows; i++) {
        uneven[n] = uneven_of(&join.row[i], ranks->n);
        n += uneven[n].most_ns > 0;
    }
    for (size_t i = 0; i < ranks->n; i++)
        time[i] = rank_time_of(ranks->analysis[i]);
    qsort(uneven, n, sizeof *uneven, compare_uneven);
    const size_t shown = limit > 0 && limit < n ? limit : n;
    if (style->json) {
        print_json(ranks, time, uneven, shown, n, by, style->out);
    } else {
        print_ranks(ranks, time, style);
        print_uneven(ranks, uneven, shown, by, style);
        if (shown < n)
            report_text_paragraph(style->out, style->width, "%zu more %s%s; -n 0 shows everything.",
                                  n - shown, report_ranking_noun(by), n - shown == 1 ? "" : "s");
        if (ranks->analysis[0]->profile->is_sampled)
            fputs("~ sampled: times are estimates.\n", style->out);
    }
    free(uneven);
    free(time);
    analyze_join_free(&join);
}
