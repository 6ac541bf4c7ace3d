/* report_annotate.c: a source file with the cost of each line in its gutter.
 *
 * May include: report.h and what it stands on.
 * Invariant: the rows below the source partition all cost: the file (or function), the other
 * files, sites without a file, the tape's own, and what no row accounts for. Their sums are the
 * totals.
 */
#include "report_json.h"
#include "report_text.h"
#include "source_text.h"
#include "units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_ROOM = 256, MAX_KEPT_BY = 12 };

/* What to show: the lines of one file, in order, and the parts of the whole. */
struct view {
    struct prof_line *line; /* merged by source line; n of them */
    size_t n;
    uint32_t first, last; /* lines of the source to print */
    struct prof_cost shown, rest_of_file, other_files, unlined, own;
};

static bool in_function(const struct prof_line *line, const char *function)
{
    return !function || (line->function && strcmp(line->function, function) == 0);
}

/* Adds a line's cost to its source line: the lines come in the order of the source. */
static void add_to_view(struct view *view, const struct prof_line *line)
{
    struct prof_line *last = view->n > 0 ? &view->line[view->n - 1] : NULL;
    prof_cost_add(&view->shown, &line->cost);
    if (!last || last->line != line->line) {
        view->line[view->n++] = *line;
        return;
    }
    prof_cost_add(&last->cost, &line->cost);
    prof_names_add(&last->kept_by, &line->kept_by);
}

static int make_view(struct view *view, const struct prof_analysis *analysis, const char *file,
                     const char *function)
{
    *view = (struct view){.line = calloc(analysis->n_lines + 1, sizeof *view->line)};
    if (!view->line)
        return -1;
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const struct prof_line *line = &analysis->line[i];
        if (line->own)
            prof_cost_add(&view->own, &line->cost);
        else if (!line->file)
            prof_cost_add(&view->unlined, &line->cost);
        else if (strcmp(line->file, file) != 0)
            prof_cost_add(&view->other_files, &line->cost);
        else if (!in_function(line, function))
            prof_cost_add(&view->rest_of_file, &line->cost);
        else
            add_to_view(view, line);
    }
    return 0;
}

/* All of the file; of a function, from its declaration to the brace that ends it at the margin. */
static void set_range(struct view *view, const struct source_text *source, const char *function)
{
    uint32_t n = source->n_lines < UINT32_MAX ? (uint32_t)source->n_lines : UINT32_MAX;
    uint32_t costliest = view->n > 0 ? view->line[view->n - 1].line : 0;
    view->first = 1;
    view->last = n;
    if (!function || view->n == 0)
        return;
    uint32_t declared = view->line[0].function_line;
    view->first = declared && declared <= view->line[0].line ? declared : view->line[0].line;
    view->last = costliest;
    for (uint32_t i = costliest; i <= n; i++) {
        if (source_text_line(source, i)[0] == '}') {
            view->last = i;
            return;
        }
    }
}

/* Long lists would push the source to the right: they are cut, and a "+" stands for the rest. */
static void cell_kept_by(struct table *table, const struct prof_names *names)
{
    char buf[NAMES_ROOM];
    text_names(buf, sizeof buf, names, ",");
    if (strlen(buf) > MAX_KEPT_BY)
        memcpy(buf + MAX_KEPT_BY - 1, "+", sizeof "+");
    table_cell(table, buf);
}

/* The columns before the source, in order. `rank`: where there is no room, the highest goes
 * first. */
static const struct {
    const char *title;
    unsigned rank;
    enum table_align align;
    const char *sampled; /* title in a sampled profile, which has other code instead of calls */
    unsigned sampled_rank;
} columns[] = {
    {"share", 4, TABLE_RIGHT, "~share", 1},       {"calls", 3, TABLE_RIGHT, "samples", 5},
    {"forward", 0, TABLE_RIGHT, "~forward", 0},   {"per call", 6, TABLE_RIGHT, "~other", 0},
    {"backward", 0, TABLE_RIGHT, "~backward", 0}, {"recompute", 1, TABLE_RIGHT, "~recompute", 2},
    {"b/f", 1, TABLE_RIGHT, "~b/f", 4},           {"tape", 0, TABLE_RIGHT, "tape", 6},
    {"at peak", 2, TABLE_RIGHT, "at peak", 7},    {"kept by", 5, TABLE_LEFT, "kept by", 8},
    {"line", 0, TABLE_RIGHT, "line", 0},
};
enum {
    COLUMNS = sizeof columns / sizeof *columns,
    COST_COLUMNS = 8,
    RECOMPUTE = 5,
    ENOUGH_SOURCE = 24
};

/* Whether there is a column of it. */
static bool has_recompute(const struct prof_analysis *analysis)
{
    return prof_cost_recomputes(&analysis->sum);
}

static uint64_t all_time(const struct prof_analysis *analysis)
{
    const struct prof_totals *total = &analysis->total;
    return total->forward_ns + total->backward_ns + total->recompute_ns + analysis->sum.other_ns;
}

static void add_cost(struct table *table, const struct prof_analysis *analysis,
                     const struct prof_cost *cost, const struct report_style *style)
{
    char buf[UNITS_ROOM];
    table_row(table);
    const bool sampled = analysis->profile->is_sampled;
    table_cell(table, units_share(buf, prof_cost_time(cost), all_time(analysis)));
    cell_count(table, sampled ? cost->samples : cost->calls, style);
    cell_time(table, cost->forward_ns, style);
    if (sampled)
        cell_time(table, cost->other_ns, style);
    else if (cost->calls > 0)
        cell_time(table, (cost->forward_ns + cost->calls / 2) / cost->calls, style);
    else
        table_cell(table, "-");
    cell_time(table, cost->backward_ns, style);
    if (has_recompute(analysis))
        cell_time(table, cost->recompute_ns, style);
    table_cell(table, units_ratio(buf, cost->backward_ns, cost->forward_ns));
    cell_bytes(table, prof_cost_tape_bytes(cost), style);
    cell_bytes(table, cost->peak_bytes, style);
}

/* Lines that hold a tenth of the time, or a hundredth, stand out. */
static const char *color_of(const struct prof_cost *cost, const struct prof_analysis *analysis)
{
    uint64_t time = prof_cost_time(cost);
    uint64_t all = all_time(analysis);
    return time == 0 ? NULL : time >= all / 10 ? "1;31" : time >= all / 100 ? "33" : NULL;
}

static void add_source_line(struct table *table, const struct prof_analysis *analysis,
                            const struct prof_line *line, uint32_t number, const char *text,
                            const struct report_style *style)
{
    if (line) {
        add_cost(table, analysis, &line->cost, style);
        cell_kept_by(table, &line->kept_by);
        if (style->color)
            table_color(table, color_of(&line->cost, analysis));
    } else {
        table_row(table);
        for (int i = has_recompute(analysis) ? -1 : 0; i <= COST_COLUMNS; i++)
            table_cell(table, "");
    }
    table_cellf(table, "%u", (unsigned)number);
    table_cell(table, text ? text : "");
}

static void add_part(struct table *table, const struct prof_analysis *analysis,
                     const struct prof_cost *cost, const char *name,
                     const struct report_style *style)
{
    static const struct prof_cost nothing;
    if (memcmp(cost, &nothing, sizeof nothing) == 0)
        return;
    add_cost(table, analysis, cost, style);
    table_cell(table, "");
    table_cell(table, "");
    table_cell(table, name);
}

/* A difference that may be negative, where a living tape was read while an op was under way. */
static void cell_difference(struct table *table, uint64_t all, uint64_t part,
                            void (*cell)(struct table *, uint64_t, const struct report_style *),
                            const struct report_style *style)
{
    char buf[UNITS_ROOM];
    if (all >= part)
        cell(table, all - part, style);
    else
        table_cell(table, units_exact(buf, (int64_t)(all - part)));
}

static void add_unattributed(struct table *table, const struct prof_analysis *analysis,
                             const struct report_style *style)
{
    const struct prof_totals *total = &analysis->total;
    const struct prof_cost *sum = &analysis->sum;
    uint64_t bytes = prof_cost_tape_bytes(sum);
    if (total->forward_ns == sum->forward_ns && total->backward_ns == sum->backward_ns &&
        total->recompute_ns == sum->recompute_ns && total->handed_out_bytes == bytes)
        return;
    table_row(table);
    table_cell(table, "-");
    cell_count(table, 0, style);
    cell_difference(table, total->forward_ns, sum->forward_ns, cell_time, style);
    table_cell(table, "-");
    cell_difference(table, total->backward_ns, sum->backward_ns, cell_time, style);
    if (has_recompute(analysis))
        cell_difference(table, total->recompute_ns, sum->recompute_ns, cell_time, style);
    table_cell(table, "-");
    cell_difference(table, total->handed_out_bytes, bytes, cell_bytes, style);
    cell_bytes(table, 0, style);
    table_cell(table, "");
    table_cell(table, "");
    table_cell(table, "elsewhere: unattributed");
}

static void add_parts(struct table *table, const struct prof_analysis *analysis,
                      const struct view *view, const char *file, const char *function,
                      const struct report_style *style)
{
    const struct prof_totals *total = &analysis->total;
    add_cost(table, analysis, &view->shown, style);
    table_cell(table, "");
    table_cell(table, "");
    table_cellf(table, "%s%s%s", report_short_path(analysis, file), function ? ":" : "",
                function ? function : "");
    add_part(table, analysis, &view->rest_of_file, "elsewhere: the rest of the file", style);
    add_part(table, analysis, &view->other_files, "elsewhere: other files", style);
    add_part(table, analysis, &view->unlined, "elsewhere: sites without line information", style);
    add_part(table, analysis, &view->own, "elsewhere: the tape's own (padding, seeds)", style);
    add_part(table, analysis, &analysis->left_out, "elsewhere: left out", style);
    add_unattributed(table, analysis, style);
    struct prof_cost all = {
        .calls = analysis->sum.calls,
        .forward_ns = total->forward_ns,
        .backward_ns = total->backward_ns,
        .recompute_ns = total->recompute_ns,
        .record_bytes = total->handed_out_bytes,
        .peak_bytes = total->peak_bytes,
        .other_ns = analysis->sum.other_ns,
        .samples = analysis->sum.samples,
    };
    add_cost(table, analysis, &all, style);
    table_cell(table, "");
    table_cell(table, "");
    table_cell(table, "total");
}

/* Source line i is near enough to a line with cost; at: the first such line not before i. */
static bool is_near(const struct view *view, size_t at, uint32_t i,
                    const struct report_style *style)
{
    if (style->around == 0)
        return true;
    return (at < view->n && view->line[at].line - i < style->around) ||
           (at > 0 && i - view->line[at - 1].line < style->around);
}

/* One row for the lines left out. */
static void add_gap(struct table *table, const struct prof_analysis *analysis,
                    const struct report_style *style)
{
    table_row(table);
    for (int i = has_recompute(analysis) ? -1 : 0; i <= COST_COLUMNS; i++)
        table_cell(table, "");
    table_cell(table, style->utf8 ? "\u22ee" : ":");
    table_cell(table, "");
}

static void add_source(struct table *table, const struct prof_analysis *analysis,
                       const struct view *view, const struct source_text *source,
                       const struct report_style *style)
{
    size_t at = 0;
    bool gap = false;
    for (uint32_t i = view->first; i <= view->last && i > 0; i++) {
        for (; at < view->n && view->line[at].line < i; at++) /* line 0, or before the range */
            add_source_line(table, analysis, &view->line[at], view->line[at].line, NULL, style);
        if (!is_near(view, at, i, style)) {
            if (!gap)
                add_gap(table, analysis, style);
            gap = true;
            continue;
        }
        gap = false;
        const struct prof_line *line =
            at < view->n && view->line[at].line == i ? &view->line[at++] : NULL;
        if (line || source->n_lines > 0)
            add_source_line(table, analysis, line, i, source_text_line(source, i), style);
    }
    for (; at < view->n; at++) /* beyond the end of the file as it is now */
        add_source_line(table, analysis, &view->line[at], view->line[at].line, NULL, style);
}

static int print(const struct prof_analysis *analysis, const struct view *view,
                 const struct source_text *source, const char *file, const char *function,
                 const struct report_style *style)
{
    struct table *table = table_new();
    if (!table)
        return -1;
    for (size_t i = 0; i < COLUMNS; i++) {
        if (i == RECOMPUTE && !has_recompute(analysis))
            continue;
        const bool sampled = analysis->profile->is_sampled;
        table_column(table, columns[i].align, sampled ? columns[i].sampled : columns[i].title);
        table_optional(table, sampled ? columns[i].sampled_rank : columns[i].rank);
    }
    table_column(table, TABLE_LEFT, file);
    table_keep_last(table, ENOUGH_SOURCE);
    add_source(table, analysis, view, source, style);
    add_parts(table, analysis, view, file, function, style);
    int status = table_print(table, style->out, style->exact ? 0 : style->width, style->utf8);
    table_free(table);
    if (status == 0 && analysis->profile->is_sampled)
        text_sampled_note(analysis, style->out);
    return status;
}

static void put_part(struct json *json, const char *name, const struct prof_cost *cost)
{
    json_object(json, name);
    report_json_cost(json, cost);
    json_end(json);
}

static void print_json(const struct prof_analysis *analysis, const struct view *view,
                       const struct source_text *source, const char *file, const char *function,
                       FILE *out)
{
    struct json json;
    report_json_begin(&json, out, "annotate");
    report_json_profile(&json, "profile", analysis->profile);
    json_text(&json, "file", file);
    json_text(&json, "function", function);
    json_array(&json, "lines");
    for (size_t i = 0; i < view->n; i++) {
        const struct prof_line *line = &view->line[i];
        json_object(&json, NULL);
        report_json_place(&json, line);
        json_text(&json, "text", source_text_line(source, line->line));
        report_json_cost(&json, &line->cost);
        report_json_ratio(&json, "ratio", line->cost.backward_ns, line->cost.forward_ns);
        json_end(&json);
    }
    json_end(&json);
    json_object(&json, "parts");
    put_part(&json, "shown", &view->shown);
    put_part(&json, "rest_of_file", &view->rest_of_file);
    put_part(&json, "other_files", &view->other_files);
    put_part(&json, "without_line", &view->unlined);
    put_part(&json, "own", &view->own);
    put_part(&json, "left_out", &analysis->left_out);
    json_end(&json);
    report_json_totals(&json, "total", analysis);
    json_finish(&json);
}

int report_annotate(const struct prof_analysis *analysis, const char *file, const char *function,
                    const struct report_style *style)
{
    struct view view;
    struct source_text source;
    int status = -1, unread = source_text_read(&source, file);
    if (make_view(&view, analysis, file, function) == 0 && unread != ENOMEM) {
        set_range(&view, &source, function);
        status = unread;
        if (style->json)
            print_json(analysis, &view, &source, file, function, style->out);
        else if (print(analysis, &view, &source, file, function, style) != 0)
            status = -1;
    }
    free(view.line);
    source_text_free(&source);
    return status;
}
