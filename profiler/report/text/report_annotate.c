/* report_annotate.c: a source file with the cost of each line in its gutter.
 *
 * Invariant: the rows below the source partition all cost: the file (or function), the other
 * files, sites without a file, the tape's own, and what no row accounts for. Their sums are the
 * totals. What was called through a line has columns of its own, which are in no sum.
 */
#include "report_json.h"

#include "analyze_ranks.h"
#include "base_memory.h"
#include "report_rank.h"
#include "report_source_text.h"
#include "report_spread.h"
#include "report_text.h"
#include "report_units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_ROOM = 256, MAX_KEPT_BY = 12 };

/* A line of the source: what it recorded, and what was called through it. */
struct noted {
    struct analyze_line line;
    struct analyze_cost through;
    bool records, calls;
};

/* The parts of the whole. */
enum annotate_part { SHOWN, REST, OTHER_FILES, UNLINED, OWN, LEFT_OUT, TOTAL, PARTS, NO_PART };

/* What to show: the lines of one file, in order, and the parts. */
struct annotate_view {
    struct report_spread spread; /* by lines, then by parts; without ranks: they are not apart */
    struct noted *at;            /* merged by source line; n of them */
    size_t n;
    bool has_through, through_runs; /* of statements too */
    uint32_t first, last;           /* lines of the source to print */
    struct analyze_cost shown, rest_of_file, other_files, unlined, own;
};

static bool in_function(const struct analyze_line *line, const char *function)
{
    return !function || (line->function && strcmp(line->function, function) == 0);
}

static int compare_noted(const void *x, const void *y)
{
    const struct noted *a = x, *b = y;
    return a->line.line < b->line.line ? -1 : a->line.line > b->line.line;
}

/* Those of one source line become one. */
static void merge_lines(struct annotate_view *view)
{
    size_t kept = 0;
    if (view->n > 0)
        qsort(view->at, view->n, sizeof *view->at, compare_noted);
    for (size_t i = 1; i < view->n; i++) {
        struct noted *last = &view->at[kept];
        const struct noted *next = &view->at[i];
        if (last->line.line != next->line.line) {
            view->at[++kept] = *next;
            continue;
        }
        analyze_cost_add(&last->line.cost, &next->line.cost);
        analyze_cost_add(&last->through, &next->through);
        analyze_names_add(&last->line.kept_by, &next->line.kept_by);
        if (last->line.function_line == 0)
            last->line.function_line = next->line.function_line;
        last->records |= next->records;
        last->calls |= next->calls;
    }
    view->n = view->n > 0 ? kept + 1 : 0;
}

/* Lines of the file through which something was called. */
static void add_through(struct annotate_view *view, const struct analyze_result *analysis,
                        const char *file, const char *function)
{
    for (size_t i = 0; i < analysis->n_through; i++) {
        struct noted noted = {.line = analysis->through[i], .calls = true};
        if (!noted.line.file || strcmp(noted.line.file, file) != 0 ||
            !in_function(&noted.line, function))
            continue;
        noted.through = noted.line.cost;
        noted.line.cost = (struct analyze_cost){0};
        view->at[view->n++] = noted;
        view->has_through = true;
        view->through_runs |= analyze_cost_is_estimate(&noted.through);
    }
}

static void make_view(struct annotate_view *view, const struct analyze_result *analysis,
                      const char *file, const char *function)
{
    *view = (struct annotate_view){
        .at = base_calloc(analysis->n_lines + analysis->n_through + 1, sizeof *view->at)};
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const struct analyze_line *line = &analysis->line[i];
        if (line->own) {
            analyze_cost_add(&view->own, &line->cost);
        } else if (!line->file) {
            analyze_cost_add(&view->unlined, &line->cost);
        } else if (strcmp(line->file, file) != 0) {
            analyze_cost_add(&view->other_files, &line->cost);
        } else if (!in_function(line, function)) {
            analyze_cost_add(&view->rest_of_file, &line->cost);
        } else {
            analyze_cost_add(&view->shown, &line->cost);
            view->at[view->n++] = (struct noted){.line = *line, .records = true};
        }
    }
    add_through(view, analysis, file, function);
    merge_lines(view);
}

static size_t annotate_at(const struct annotate_view *view, uint32_t line)
{
    size_t at = 0;
    while (at < view->n && view->at[at].line.line < line)
        at++;
    return at < view->n && view->at[at].line.line == line ? at : SIZE_MAX;
}

static void spread_rank(struct annotate_view *view, const struct analyze_result *of, size_t rank,
                        const char *file, const char *function)
{
    struct annotate_view own;
    const struct report_spread *spread = &view->spread;
    make_view(&own, of, file, function);
    for (size_t i = 0; i < own.n; i++) {
        const size_t at = annotate_at(view, own.at[i].line.line);
        if (at != SIZE_MAX)
            report_spread_row(spread, at)[rank] = report_spread_value(spread, &own.at[i].line.cost);
    }
    const struct analyze_cost total = analyze_total(of);
    const struct analyze_cost *const parts[PARTS] = {
        [SHOWN] = &own.shown,     [REST] = &own.rest_of_file, [OTHER_FILES] = &own.other_files,
        [UNLINED] = &own.unlined, [OWN] = &own.own,           [LEFT_OUT] = &of->left_out,
        [TOTAL] = &total};
    for (size_t i = 0; i < PARTS; i++)
        report_spread_row(spread, view->n + i)[rank] = report_spread_value(spread, parts[i]);
    free(own.at);
}

/* What each rank has of the time, or of the tape's bytes where times are not known. */
static void annotate_spread(struct annotate_view *view, const struct analyze_result *analysis,
                            const char *file, const char *function,
                            const struct report_style *style)
{
    view->spread =
        (struct report_spread){.ranks = analysis->ranks,
                               .metric = report_ranking_known(analysis->profile, REPORT_SORT_TOTAL),
                               .style = style};
    report_spread_make(&view->spread, view->n + PARTS);
    for (size_t i = 0; i < analysis->ranks->n; i++)
        spread_rank(view, analysis->ranks->analysis[i], i, file, function);
}

/* All of the file; of a function, from its declaration to the brace that ends it at the margin. */
static void set_range(struct annotate_view *view, const struct report_source_text *source,
                      const char *function)
{
    uint32_t n = source->n_lines < UINT32_MAX ? (uint32_t)source->n_lines : UINT32_MAX;
    uint32_t costliest = view->n > 0 ? view->at[view->n - 1].line.line : 0;
    view->first = 1;
    view->last = n;
    if (!function || view->n == 0)
        return;
    const struct analyze_line *top = &view->at[0].line;
    view->first =
        top->function_line && top->function_line <= top->line ? top->function_line : top->line;
    view->last = costliest;
    for (uint32_t i = costliest; i <= n; i++) {
        if (report_source_text_line(source, i)[0] == '}') {
            view->last = i;
            return;
        }
    }
}

/* Long lists would push the source to the right: they are cut, and a "+" stands for the rest. */
static void cell_kept_by(struct report_table *table, const struct analyze_names *names)
{
    char buf[NAMES_ROOM];
    report_text_names(buf, sizeof buf, names, ",");
    if (strlen(buf) > MAX_KEPT_BY)
        memcpy(buf + MAX_KEPT_BY - 1, "+", sizeof "+");
    report_table_cell(table, buf);
}

/* The columns before the source, in order. `rank`: where there is no room, the highest goes
 * first. */
static const struct {
    const char *title;
    unsigned rank;
    enum report_table_align align;
    const char *sampled; /* title in a sampled profile, which has other code instead of calls */
    unsigned sampled_rank;
} columns[] = {
    {"share", 4, REPORT_TABLE_RIGHT, "~share", 1},
    {"calls", 3, REPORT_TABLE_RIGHT, "samples", 5},
    {"forward", 0, REPORT_TABLE_RIGHT, "~forward", 0},
    {"per call", 6, REPORT_TABLE_RIGHT, "~other", 0},
    {"backward", 0, REPORT_TABLE_RIGHT, "~backward", 0},
    {"recompute", 1, REPORT_TABLE_RIGHT, "~recompute", 2},
    {"b/f", 1, REPORT_TABLE_RIGHT, "~b/f", 4},
    {"tape", 0, REPORT_TABLE_RIGHT, "tape", 6},
    {"at peak", 5, REPORT_TABLE_RIGHT, "at peak", 7},
    {"kept by", 5, REPORT_TABLE_LEFT, "kept by", 8},
    {"through", 2, REPORT_TABLE_RIGHT, "~through", 3},
    {"thr.tape", 6, REPORT_TABLE_RIGHT, "thr.tape", 8},
    {"line", 0, REPORT_TABLE_RIGHT, "line", 0},
};
enum {
    COLUMNS = sizeof columns / sizeof *columns,
    CALLS = 1,
    RECOMPUTE = 5,
    TAPE = 7,
    KEPT_BY = 9,
    COST_COLUMNS = KEPT_BY,
    THROUGH = 10,
    THROUGH_TAPE,
    ENOUGH_SOURCE = 24
};

/* Whether there is a column of it. */
static bool annotate_has_recompute(const struct analyze_result *analysis)
{
    return analyze_cost_recomputes(&analysis->sum);
}

/* Whether the profile has the times, or the bytes, that are in a column. */
static bool annotate_is_known(const struct read_profile *profile, size_t column)
{
    const bool bytes = (column >= TAPE && column <= KEPT_BY) || column == THROUGH_TAPE;
    return column == CALLS || column > THROUGH_TAPE ||
           (bytes ? read_profile_has_bytes(profile) : !profile->without_times);
}

static uint64_t all_time(const struct analyze_result *analysis)
{
    const struct analyze_totals *total = &analysis->total;
    return total->forward_ns + total->backward_ns + total->recompute_ns + analysis->sum.other_ns;
}

static void add_cost(struct report_table *table, const struct analyze_result *analysis,
                     const struct analyze_cost *cost, const struct report_style *style)
{
    char buf[REPORT_UNITS_ROOM];
    report_table_row(table);
    const bool sampled = analysis->profile->is_sampled;
    report_table_cell(table, report_units_share(buf, analyze_cost_time(cost), all_time(analysis)));
    report_cell_count(table, sampled ? cost->samples : cost->calls, style);
    report_cell_phase(table, cost, REPORT_FORWARD, style);
    if (sampled)
        report_cell_time(table, cost->other_ns, style);
    else if (cost->calls > 0 && !analyze_cost_is_untimed(cost))
        report_cell_time(table, (cost->forward_ns + cost->calls / 2) / cost->calls, style);
    else
        report_table_cell(table, "-");
    report_cell_phase(table, cost, REPORT_BACKWARD, style);
    if (annotate_has_recompute(analysis))
        report_cell_time(table, cost->recompute_ns, style);
    report_cell_ratio(table, cost, "");
    report_cell_bytes(table, analyze_cost_tape_bytes(cost), style);
    report_cell_bytes(table, cost->peak_bytes, style);
}

/* Lines that hold a tenth of the time, or a hundredth, stand out. */
static const char *color_of(const struct analyze_cost *cost, const struct analyze_result *analysis)
{
    uint64_t time = analyze_cost_time(cost);
    uint64_t all = all_time(analysis);
    return time > 0 && time >= all / 10 ? "1" : NULL;
}

/* Cells of the columns before "kept by" in which there is nothing. */
static void no_cost(struct report_table *table, const struct analyze_result *analysis)
{
    for (int i = 0; i < COST_COLUMNS; i++)
        if (i != RECOMPUTE || annotate_has_recompute(analysis))
            report_table_cell(table, "");
}

static void cells_through(struct report_table *table, const struct annotate_view *view,
                          const struct noted *noted, const struct report_style *style)
{
    if (!view->has_through)
        return;
    if (noted && noted->calls) {
        report_cell_all_time(table, &noted->through, style);
        report_cell_bytes(table, analyze_cost_tape_bytes(&noted->through), style);
    } else {
        report_table_cell(table, "");
        report_table_cell(table, "");
    }
}

/* row: of the spread; SIZE_MAX: none. */
static void cells_ranks(struct report_table *table, const struct annotate_view *view, size_t row)
{
    const struct report_spread *spread = &view->spread;
    if (spread->ranks && row != SIZE_MAX)
        report_spread_cells(spread, table, report_spread_row(spread, row));
    for (size_t i = 0; spread->ranks && row == SIZE_MAX && i < spread->ranks->n + 2; i++)
        report_table_cell(table, "");
}

static void add_source_line(struct report_table *table, const struct analyze_result *analysis,
                            const struct annotate_view *view, const struct noted *noted,
                            uint32_t number, const char *text, const struct report_style *style)
{
    if (noted && noted->records) {
        add_cost(table, analysis, &noted->line.cost, style);
        cell_kept_by(table, &noted->line.kept_by);
        if (style->color)
            report_table_color(table, color_of(&noted->line.cost, analysis));
    } else {
        report_table_row(table);
        no_cost(table, analysis);
        report_table_cell(table, "");
    }
    cells_through(table, view, noted, style);
    cells_ranks(table, view, noted && noted->records ? (size_t)(noted - view->at) : SIZE_MAX);
    report_table_cellf(table, "%u", (unsigned)number);
    report_table_cell(table, text ? text : "");
}

/* The cells behind a cost that is no line's. */
static void no_line(struct report_table *table, const struct annotate_view *view,
                    enum annotate_part part, const struct report_style *style)
{
    report_table_cell(table, "");
    cells_through(table, view, NULL, style);
    cells_ranks(table, view, part == NO_PART ? SIZE_MAX : view->n + part);
    report_table_cell(table, "");
}

static void add_part(struct report_table *table, const struct analyze_result *analysis,
                     const struct annotate_view *view, const struct analyze_cost *cost,
                     enum annotate_part part, const char *name, const struct report_style *style)
{
    if (analyze_cost_is_nothing(cost))
        return;
    add_cost(table, analysis, cost, style);
    no_line(table, view, part, style);
    report_table_cell(table, name);
}

/* A difference that may be negative, where a living tape was read while an op was under way. */
static void cell_difference(struct report_table *table, uint64_t all, uint64_t part,
                            void (*cell)(struct report_table *, uint64_t,
                                         const struct report_style *),
                            const struct report_style *style)
{
    char buf[REPORT_UNITS_ROOM];
    if (all >= part)
        cell(table, all - part, style);
    else
        report_table_cellf(table, "-%s", report_units_exact(buf, part - all));
}

static void add_unattributed(struct report_table *table, const struct analyze_result *analysis,
                             const struct annotate_view *view, const struct report_style *style)
{
    const struct analyze_totals *total = &analysis->total;
    const struct analyze_cost *sum = &analysis->sum;
    uint64_t bytes = analyze_cost_tape_bytes(sum);
    if (total->forward_ns == sum->forward_ns && total->backward_ns == sum->backward_ns &&
        total->recompute_ns == sum->recompute_ns && total->handed_out_bytes == bytes)
        return;
    report_table_row(table);
    report_table_cell(table, "-");
    report_cell_count(table, 0, style);
    cell_difference(table, total->forward_ns, sum->forward_ns, report_cell_time, style);
    report_table_cell(table, "-");
    cell_difference(table, total->backward_ns, sum->backward_ns, report_cell_time, style);
    if (annotate_has_recompute(analysis))
        cell_difference(table, total->recompute_ns, sum->recompute_ns, report_cell_time, style);
    report_table_cell(table, "-");
    cell_difference(table, total->handed_out_bytes, bytes, report_cell_bytes, style);
    report_cell_bytes(table, 0, style);
    no_line(table, view, NO_PART, style);
    report_table_cell(table, "elsewhere: unattributed");
}

static void add_parts(struct report_table *table, const struct analyze_result *analysis,
                      const struct annotate_view *view, const char *file, const char *function,
                      const struct report_style *style)
{
    add_cost(table, analysis, &view->shown, style);
    no_line(table, view, SHOWN, style);
    report_table_cellf(table, "%s%s%s", report_short_path(analysis, file), function ? ":" : "",
                       function ? function : "");
    add_part(table, analysis, view, &view->rest_of_file, REST, "elsewhere: the rest of the file",
             style);
    add_part(table, analysis, view, &view->other_files, OTHER_FILES, "elsewhere: other files",
             style);
    add_part(table, analysis, view, &view->unlined, UNLINED,
             "elsewhere: sites without line information", style);
    add_part(table, analysis, view, &view->own, OWN,
             "elsewhere: the tape's own (padding, room in blocks)", style);
    add_part(table, analysis, view, &analysis->left_out, LEFT_OUT, "elsewhere: left out", style);
    add_unattributed(table, analysis, view, style);
    const struct analyze_cost all = analyze_total(analysis);
    add_cost(table, analysis, &all, style);
    no_line(table, view, TOTAL, style);
    report_table_cell(table, "total");
}

/* Source line i is near enough to a line with cost; at: the first such line not before i. */
static bool is_near(const struct annotate_view *view, size_t at, uint32_t i,
                    const struct report_style *style)
{
    if (style->around == 0)
        return true;
    return (at < view->n && view->at[at].line.line - i < style->around) ||
           (at > 0 && i - view->at[at - 1].line.line < style->around);
}

/* One row for the lines left out. */
static void add_gap(struct report_table *table, const struct analyze_result *analysis,
                    const struct annotate_view *view, const struct report_style *style)
{
    report_table_row(table);
    no_cost(table, analysis);
    report_table_cell(table, "");
    cells_through(table, view, NULL, style);
    cells_ranks(table, view, SIZE_MAX);
    report_table_cell(table, style->utf8 ? "\u22ee" : ":");
    report_table_cell(table, "");
}

static void add_source(struct report_table *table, const struct analyze_result *analysis,
                       const struct annotate_view *view, const struct report_source_text *source,
                       const struct report_style *style)
{
    size_t at = 0;
    bool gap = false;
    for (uint32_t i = view->first; i <= view->last && i > 0; i++) {
        for (; at < view->n && view->at[at].line.line < i; at++) /* line 0, or before the range */
            add_source_line(table, analysis, view, &view->at[at], view->at[at].line.line, NULL,
                            style);
        if (!is_near(view, at, i, style)) {
            if (!gap)
                add_gap(table, analysis, view, style);
            gap = true;
            continue;
        }
        gap = false;
        const struct noted *noted =
            at < view->n && view->at[at].line.line == i ? &view->at[at++] : NULL;
        if (noted || source->n_lines > 0)
            add_source_line(table, analysis, view, noted, i, report_source_text_line(source, i),
                            style);
    }
    for (; at < view->n; at++) /* beyond the end of the file as it is now */
        add_source_line(table, analysis, view, &view->at[at], view->at[at].line.line, NULL, style);
}

static void annotate_print(const struct analyze_result *analysis, const struct annotate_view *view,
                           const struct report_source_text *source, const char *file,
                           const char *function, const struct report_style *style)
{
    const bool sampled = analysis->profile->is_sampled;
    struct report_table *table = report_table_new();
    for (size_t i = 0; i < COLUMNS; i++) {
        if (i == COLUMNS - 1 && view->spread.ranks)
            report_spread_columns(&view->spread, table);
        if ((i == RECOMPUTE && !annotate_has_recompute(analysis)) ||
            ((i == THROUGH || i == THROUGH_TAPE) && !view->has_through))
            continue;
        report_table_column(table, columns[i].align,
                            sampled ? columns[i].sampled : columns[i].title);
        report_table_optional(table, sampled ? columns[i].sampled_rank : columns[i].rank);
        if (!annotate_is_known(analysis->profile, i))
            report_table_hide(table);
    }
    report_table_column(table, REPORT_TABLE_LEFT, file);
    report_table_keep_last(table, ENOUGH_SOURCE);
    add_source(table, analysis, view, source, style);
    add_parts(table, analysis, view, file, function, style);
    const unsigned width = style->exact ? 0 : style->width;
    report_table_phases(table, style->color);
    report_table_print(table, style->out, width, style->utf8);
    const bool through = report_table_shows(table, sampled ? "~through" : "through", width);
    report_table_free(table);
    if (through)
        report_text_paragraph(
            style->out, style->width,
            "through: of what the line called, which has it on its own lines as well.");
    if (through && view->through_runs)
        report_text_runs_note(style);
    if (sampled)
        report_text_sampled_note(analysis, style);
    report_text_untimed_note(analysis, style->out);
}

static void put_part(struct base_json *json, const char *name, const struct analyze_cost *cost,
                     const struct read_profile *profile)
{
    base_json_object(json, name);
    report_json_cost(json, cost, profile);
    base_json_end(json);
}

static void annotate_print_json(const struct analyze_result *analysis,
                                const struct annotate_view *view,
                                const struct report_source_text *source, const char *file,
                                const char *function, FILE *out)
{
    struct base_json json;
    report_json_begin(&json, out, "annotate");
    report_json_profile(&json, "profile", analysis->profile);
    base_json_text(&json, "file", file);
    base_json_text(&json, "function", function);
    if (view->spread.ranks)
        report_spread_json(&view->spread, &json);
    base_json_array(&json, "lines");
    for (size_t i = 0; i < view->n; i++) {
        const struct noted *noted = &view->at[i];
        const struct analyze_line *line = &noted->line;
        base_json_object(&json, NULL);
        report_json_place(&json, line);
        base_json_text(&json, "text", report_source_text_line(source, line->line));
        report_json_cost(&json, &line->cost, analysis->profile);
        report_json_ratio(&json, "ratio", line->cost.backward_ns, line->cost.forward_ns);
        if (noted->calls)
            put_part(&json, "through", &noted->through, analysis->profile);
        else
            base_json_null(&json, "through");
        if (view->spread.ranks)
            report_spread_json_row(&view->spread, &json, report_spread_row(&view->spread, i));
        base_json_end(&json);
    }
    base_json_end(&json);
    base_json_object(&json, "parts");
    put_part(&json, "shown", &view->shown, analysis->profile);
    put_part(&json, "rest_of_file", &view->rest_of_file, analysis->profile);
    put_part(&json, "other_files", &view->other_files, analysis->profile);
    put_part(&json, "without_line", &view->unlined, analysis->profile);
    put_part(&json, "own", &view->own, analysis->profile);
    put_part(&json, "left_out", &analysis->left_out, analysis->profile);
    base_json_end(&json);
    report_json_totals(&json, "total", analysis);
    base_json_finish(&json);
}

int report_annotate(const struct analyze_result *analysis, const char *file, const char *function,
                    const struct report_style *style)
{
    struct annotate_view view;
    struct report_source_text source;
    const int unread = report_source_text_read(&source, file);
    make_view(&view, analysis, file, function);
    set_range(&view, &source, function);
    if (analysis->ranks)
        annotate_spread(&view, analysis, file, function, style);
    if (style->json)
        annotate_print_json(analysis, &view, &source, file, function, style->out);
    else
        annotate_print(analysis, &view, &source, file, function, style);
    free(view.at);
    report_spread_free(&view.spread);
    report_source_text_free(&source);
    return unread;
}
