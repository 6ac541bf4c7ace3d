/* report_top.c: the table of the costliest lines.
 *
 * Invariant: a column is one row of the table below: title, cell, and when it is shown.
 */
#include "analyze_ranks.h"
#include "base_memory.h"
#include "report_json.h"
#include "report_rank.h"
#include "report_spread.h"
#include "report_text.h"
#include "report_units.h"

#include <stddef.h>
#include <stdlib.h>

/* What the cells of a row are made of. */
struct top {
    const struct analyze_result *analysis;
    const struct report_style *style;
    const struct report_ranking *ranking;
    enum analyze_by by;
    enum report_sort sort;
    struct analyze_roof roof;
    struct report_spread
        spread; /* by the rows of the ranking; behind them what is left out, and all;
                                  * without ranks: they are not apart */
};

/* A row under way; line is NULL in the row of the totals. */
struct top_row {
    const struct analyze_line *line;
    const struct analyze_cost *cost;
};

static void top_put_share(struct report_table *table, const struct top *top,
                          const struct top_row *row)
{
    char buf[REPORT_UNITS_ROOM];
    report_table_cell(
        table, report_ranking_share(buf, row->cost, &top->ranking->total, top->sort, top->style));
}

static void put_total(struct report_table *table, const struct top *top, const struct top_row *row)
{
    report_cell_total(table, row->cost, top->style);
}

static void put_forward(struct report_table *table, const struct top *top,
                        const struct top_row *row)
{
    report_cell_phase(table, row->cost, REPORT_FORWARD, top->style);
}

static void put_backward(struct report_table *table, const struct top *top,
                         const struct top_row *row)
{
    report_cell_phase(table, row->cost, REPORT_BACKWARD, top->style);
}

/* Without recomputation, which is neither. */
static void top_put_ratio(struct report_table *table, const struct top *top,
                          const struct top_row *row)
{
    bool slow = row->line && analyze_line_is_slow_backward(row->line, top->analysis, &top->roof);
    report_cell_ratio(table, row->cost, slow ? "!" : "");
}

static void put_expected(struct report_table *table, const struct top *top,
                         const struct top_row *row)
{
    char buf[REPORT_UNITS_ROOM] = "-";
    double expected = analyze_cost_expected_ratio(row->cost, &top->roof);
    if (expected > 0)
        snprintf(buf, sizeof buf, "%.*f", expected < 9.95 ? 1 : 0, expected);
    report_table_cell(table, buf);
}

static void top_put_tape(struct report_table *table, const struct top *top,
                         const struct top_row *row)
{
    report_cell_bytes(table, analyze_cost_tape_bytes(row->cost), top->style);
}

static void top_put_lifetime(struct report_table *table, const struct top *top,
                             const struct top_row *row)
{
    report_cell_byte_time(table, row->cost->byte_ns, top->style);
}

/* The standard error of the share: it is from so many samples. */
static void put_error(struct report_table *table, const struct top *top, const struct top_row *row)
{
    char buf[REPORT_UNITS_ROOM];
    const uint64_t key = report_ranking_key(row->cost, top->sort, top->style);
    if (row->cost->cpu_samples == 0)
        report_table_cell(table, "-");
    else
        report_table_cell(
            table,
            report_units_share(buf, read_whole(analyze_cost_error(row->cost, key)),
                               report_ranking_key(&top->ranking->total, top->sort, top->style)));
}

static bool is_sampled(const struct top *top)
{
    return top->analysis->profile->is_sampled;
}

static bool by_sampled_time(const struct top *top)
{
    return is_sampled(top) && report_ranking_is_time(top->sort);
}

static bool top_has_other(const struct top *top)
{
    return is_sampled(top) && top->style->phases == 0;
}

/* Samples are taken without an account of the tape, unless both were asked for. */
static bool has_rows(const struct top *top)
{
    return read_profile_has_bytes(top->analysis->profile);
}

static bool by_lifetime(const struct top *top)
{
    return top->sort == REPORT_SORT_LIFETIME;
}

static bool has_forward(const struct top *top)
{
    return report_ranking_has_phase(top->style, REPORT_FORWARD) &&
           !top->analysis->profile->without_times;
}

static bool has_backward(const struct top *top)
{
    return report_ranking_has_phase(top->style, REPORT_BACKWARD) &&
           !top->analysis->profile->without_times;
}

static bool has_both(const struct top *top)
{
    return has_forward(top) && has_backward(top);
}

static bool top_has_recompute(const struct top *top)
{
    return report_ranking_has_phase(top->style, REPORT_RECOMPUTE) &&
           !top->analysis->profile->without_times && analyze_cost_recomputes(&top->ranking->total);
}

static bool has_spilled(const struct top *top)
{
    return has_rows(top) && top->ranking->total.spilled_bytes > 0;
}

/* The expected ratio is from the rows' counts. */
static bool has_expected(const struct top *top)
{
    return has_both(top) && has_rows(top);
}

#define MEMBER(unit, name) REPORT_UNIT_##unit, NULL, offsetof(struct analyze_cost, name)
#define BY(put) REPORT_UNIT_TIME, put, 0

/* In the order of the table. `rank`: where there is no room, the highest goes first. */
static const struct top_column {
    const char *title; /* NULL: of bytes times the time that they lived */
    unsigned rank;
    enum report_unit unit; /* where put is NULL: of the cost's member at this place */
    void (*put)(struct report_table *table, const struct top *top, const struct top_row *row);
    size_t member;
    bool (*shown)(const struct top *top); /* NULL: always */
    const char *sampled; /* title where the cells are from samples; NULL: they never are */
} columns[] = {
    {"share", 0, BY(top_put_share), NULL, NULL},
    {"error", 3, BY(put_error), by_sampled_time, "~error"},
    {"total", 6, BY(put_total), has_both, "~total"},
    {"forward", 3, BY(put_forward), has_forward, "~forward"},
    {"backward", 1, BY(put_backward), has_backward, "~backward"},
    {"other", 4, MEMBER(TIME, other_ns), top_has_other, "~other"},
    {"waiting", 8, MEMBER(TIME, waiting_ns), top_has_other, "~waiting"},
    {"io", 9, MEMBER(TIME, waiting_io_ns), top_has_other, "~for io"},
    {"locks", 9, MEMBER(TIME, waiting_lock_ns), top_has_other, "~locks"},
    {"recompute", 3, MEMBER(TIME, recompute_ns), top_has_recompute, "~recompute"},
    {"b/f", 2, BY(top_put_ratio), has_both, "~b/f"},
    {"expect", 8, BY(put_expected), has_expected, NULL},
    {"tape", 4, BY(top_put_tape), has_rows, NULL},
    {"at peak", 5, MEMBER(BYTES, peak_bytes), has_rows, NULL},
    {"to disk", 6, MEMBER(BYTES, spilled_bytes), has_spilled, NULL},
    {NULL, 0, BY(top_put_lifetime), by_lifetime, NULL},
    {"calls", 7, MEMBER(COUNT, calls), has_rows, NULL},
    {"samples", 7, MEMBER(COUNT, samples), is_sampled, NULL},
};
enum { COLUMNS = sizeof columns / sizeof *columns };
#undef MEMBER
#undef BY

static void top_add_columns(struct report_table *table, const struct top *top)
{
    for (size_t i = 0; i < COLUMNS; i++) {
        const struct top_column *column = &columns[i];
        if (column->shown && !column->shown(top))
            continue;
        report_table_column(table, REPORT_TABLE_RIGHT,
                            column->sampled && is_sampled(top) ? column->sampled
                            : column->title                    ? column->title
                                            : report_text_byte_time_title(top->style));
        report_table_optional(table, column->rank);
    }
    if (top->spread.ranks)
        report_spread_columns(&top->spread, table);
    report_table_column(table, REPORT_TABLE_LEFT, report_text_where_title(top->by));
}

/* The row of the spread that has a line, what is left out, or all. */
static const uint64_t *top_spread_row(const struct top *top, const struct analyze_line *line,
                                      const struct analyze_cost *cost)
{
    const struct report_ranking *ranking = top->ranking;
    const size_t row = line                      ? (size_t)(line - ranking->line)
                       : cost == &ranking->total ? ranking->n + 1
                                                 : ranking->n;
    return report_spread_row(&top->spread, row);
}

static void top_add_cells(struct report_table *table, const struct top *top,
                          const struct analyze_line *line, const struct analyze_cost *cost)
{
    const struct top_row row = {line, cost};
    report_table_row(table);
    for (size_t i = 0; i < COLUMNS; i++) {
        const struct top_column *column = &columns[i];
        if (column->shown && !column->shown(top))
            continue;
        if (column->put)
            column->put(table, top, &row);
        else
            report_cell_member(table, column->unit, cost, column->member, top->style);
    }
    if (top->spread.ranks)
        report_spread_cells(&top->spread, table, top_spread_row(top, line, cost));
}

static void top_put_hidden(const struct top *top)
{
    const struct report_ranking *ranking = top->ranking;
    const struct report_style *style = top->style;
    char buf[REPORT_UNITS_ROOM];
    struct analyze_cost sum = {0};
    size_t n = ranking->n - ranking->shown;
    for (size_t i = ranking->shown; i < ranking->n; i++)
        analyze_cost_add(&sum, &ranking->row[i].line->cost);
    /* Rows with what they called overlap: their sum says nothing. */
    const char *share = report_ranking_share(buf, &sum, &ranking->total, top->sort, style);
    report_text_paragraph(style->out, style->width,
                          "%s %zu more %s%s%s%s%s; -n 0 shows everything.",
                          style->utf8 ? "\u2026" : "...", n, report_ranking_noun(top->by),
                          n == 1 ? "" : "s", style->inclusive ? "" : " with ",
                          style->inclusive ? "" : share, style->inclusive ? "" : " in all");
}

static bool any_slow(const struct top *top)
{
    if (!has_both(top))
        return false;
    for (size_t i = 0; i < top->ranking->shown; i++)
        if (analyze_line_is_slow_backward(top->ranking->row[i].line, top->analysis, &top->roof))
            return true;
    return false;
}

static void top_print(const struct top *top)
{
    const struct report_style *style = top->style;
    const struct report_ranking *ranking = top->ranking;
    struct report_table *table = report_table_new();
    top_add_columns(table, top);
    for (size_t i = 0; i < ranking->shown; i++) {
        const struct analyze_line *line = ranking->row[i].line;
        top_add_cells(table, top, line, &line->cost);
        report_cell_where(table, top->analysis, line, top->by);
    }
    if (top->analysis->n_left_out > 0) {
        top_add_cells(table, top, NULL, &top->analysis->left_out);
        report_table_cell(table, "(left out)");
    }
    top_add_cells(table, top, NULL, &ranking->total);
    report_table_cell(table, "(all)");
    report_table_phases(table, style->color);
    report_table_print(table, style->out, style->exact ? 0 : style->width, style->utf8);
    report_table_free(table);
    if (ranking->n == 0 && top->analysis->n_left_out == 0)
        fputs("Nothing was measured.\n", style->out);
    if (ranking->shown < ranking->n)
        top_put_hidden(top);
    report_text_part_note(top->analysis, style);
    if (any_slow(top))
        report_text_paragraph(style->out, style->width,
                              "! backward takes over twice what flops and bytes explain%s.",
                              is_sampled(top) ? ", by more than two standard errors" : "");
    if (is_sampled(top))
        report_text_sampled_note(top->analysis, style);
    if (style->inclusive)
        fputs("Each row has all that it called as well.\n", style->out);
    report_text_untimed_note(top->analysis, style->out);
    report_text_unlined_note(top->analysis, style->out);
    report_text_expectations_note(top->analysis, style);
}

static void top_print_json(const struct top *top)
{
    const struct report_ranking *ranking = top->ranking;
    struct base_json json;
    report_json_begin(&json, top->style->out, "top");
    report_json_profile(&json, "profile", top->analysis->profile);
    base_json_text(&json, "by", report_ranking_noun(top->by));
    base_json_bool(&json, "inclusive", top->style->inclusive);
    if (top->spread.ranks)
        report_spread_json(&top->spread, &json);
    base_json_array(&json, "rows");
    for (size_t i = 0; i < ranking->shown; i++) {
        const struct analyze_line *line = ranking->row[i].line;
        double expected = analyze_cost_expected_ratio(&line->cost, &top->roof);
        base_json_object(&json, NULL);
        report_json_place(&json, line);
        if (top->by == ANALYZE_BY_SHAPE)
            base_json_text(&json, "shape", line->shape);
        report_json_cost(&json, &line->cost, top->analysis->profile);
        report_json_ratio(&json, "ratio", line->cost.backward_ns, line->cost.forward_ns);
        if (expected > 0)
            base_json_double(&json, "expected_ratio", expected);
        else
            base_json_null(&json, "expected_ratio");
        base_json_bool(&json, "slow_backward",
                       analyze_line_is_slow_backward(line, top->analysis, &top->roof));
        if (top->spread.ranks)
            report_spread_json_row(&top->spread, &json, top_spread_row(top, line, NULL));
        base_json_end(&json);
    }
    base_json_end(&json);
    base_json_u64(&json, "rows_not_shown", ranking->n - ranking->shown);
    base_json_object(&json, "left_out");
    base_json_u64(&json, "lines", top->analysis->n_left_out);
    report_json_cost(&json, &top->analysis->left_out, top->analysis->profile);
    base_json_end(&json);
    report_json_totals(&json, "total", top->analysis);
    base_json_finish(&json);
}

static void top_spread(struct top *top)
{
    const struct report_ranking *ranking = top->ranking;
    struct report_spread *spread = &top->spread;
    *spread = (struct report_spread){
        .ranks = top->analysis->ranks, .metric = top->sort, .style = top->style};
    if (spread->metric == REPORT_SORT_RATIO)
        spread->metric = REPORT_SORT_TOTAL;
    report_spread_make(spread, ranking->n + 2);
    for (size_t r = 0; r < spread->ranks->n; r++) {
        struct analyze_line *rows;
        const struct analyze_result *of = spread->ranks->analysis[r];
        const struct analyze_cost total = analyze_total(of);
        const struct analyze_line **beside =
            analyze_ranks_beside(spread->ranks, r, ranking->line, ranking->n, top->by, &rows);
        for (size_t i = 0; i < ranking->n; i++)
            if (beside[i])
                report_spread_row(spread, i)[r] = report_spread_value(spread, &beside[i]->cost);
        report_spread_row(spread, ranking->n)[r] = report_spread_value(spread, &of->left_out);
        report_spread_row(spread, ranking->n + 1)[r] = report_spread_value(spread, &total);
        free(beside);
        free(rows);
    }
}

void report_top(const struct analyze_result *analysis, enum analyze_by by, enum report_sort sort,
                size_t limit, const struct report_style *style)
{
    struct report_ranking ranking;
    struct top top = {
        .analysis = analysis,
        .style = style,
        .ranking = &ranking,
        .by = by,
        .sort = report_ranking_known(analysis->profile, sort),
        .roof = analyze_roof(analysis),
    };
    report_ranking_make(&ranking, analysis, by, top.sort, limit, style);
    if (analysis->ranks)
        top_spread(&top);
    if (style->json)
        top_print_json(&top);
    else
        top_print(&top);
    report_spread_free(&top.spread);
    report_ranking_free(&ranking);
}
