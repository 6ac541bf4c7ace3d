/* report_diff.c: what is different between two profiles, or two sets of runs.
 *
 * Invariant: the changes of all rows, shown or not, add up to the change of the whole (of several
 * runs, whose means are rounded, but for rounding). What chance makes is not shown as a change.
 */
#include "report_json.h"

#include "base_memory.h"
#include "base_strings.h"
#include "report_csv.h"
#include "report_many.h"
#include "report_rank.h"
#include "report_text.h"
#include "report_units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A row with its change. error: its standard error, negative where that is not known. */
struct changed {
    const struct analyze_joined *row;
    uint64_t base, now;
    double error;
};

struct diff {
    const struct analyze_result *analysis[2]; /* the means */
    const struct analyze_runs *runs[2];
    const struct report_style *style;
    enum analyze_by by;
    enum report_sort sort;
    struct changed *row;
    size_t n, unchanged, chance; /* chance: rows that differ by no more than chance makes */
    bool sampled, counted;       /* what is compared has errors; both have bytes */
    struct analyze_noise noise;
};

static const struct analyze_cost *diff_cost_of(const struct analyze_joined *row, int side)
{
    static const struct analyze_cost nothing;
    return row->line[side] ? &row->line[side]->cost : &nothing;
}

static uint64_t diff_value(void *payload, const struct analyze_cost *cost)
{
    const struct diff *diff = payload;
    return report_ranking_key(cost, diff->sort, diff->style);
}

/* Whether two values differ by more than chance makes. */
static bool diff_exceeds(const struct diff *diff, uint64_t base, uint64_t now, double error)
{
    return base != now &&
           !(error > 0 && fabs((double)now - (double)base) < diff->noise.errors * error);
}

/* Whether anything is certain to have changed: what is compared, the bytes, or that it is there. Of
 * samples a line that only one side has may be chance. */
static bool diff_differ(const struct changed *row, const struct diff *diff)
{
    const struct analyze_joined *of = row->row;
    const struct analyze_cost *a = diff_cost_of(of, 0), *b = diff_cost_of(of, 1);
    return diff_exceeds(diff, row->base, row->now, row->error) ||
           analyze_cost_tape_bytes(a) != analyze_cost_tape_bytes(b) ||
           (!diff->sampled && (!of->line[0] || !of->line[1]));
}

static double diff_relation(const struct changed *row)
{
    if (row->base == 0)
        return row->now > 0 ? INFINITY : 0;
    return fabs((double)row->now - (double)row->base) / (double)row->base;
}

static double diff_distance(const struct changed *row)
{
    return fabs((double)row->now - (double)row->base);
}

static int compare_absolute(const void *x, const void *y)
{
    const struct changed *a = x, *b = y;
    if (diff_distance(a) != diff_distance(b))
        return diff_distance(a) > diff_distance(b) ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static int compare_relative(const void *x, const void *y)
{
    const struct changed *a = x, *b = y;
    if (diff_relation(a) != diff_relation(b))
        return diff_relation(a) > diff_relation(b) ? -1 : 1;
    return compare_absolute(x, y);
}

static bool diff_is_bytes(enum report_sort sort)
{
    return sort == REPORT_SORT_TAPE || sort == REPORT_SORT_PEAK;
}

static char *diff_amount(char buf[REPORT_UNITS_ROOM], uint64_t n, const struct diff *diff)
{
    if (diff->style->exact || diff->sort == REPORT_SORT_CALLS)
        return report_units_exact(buf, n);
    if (diff->sort == REPORT_SORT_LIFETIME) /* of bytes times us */
        return report_units_bytes(buf, n / 1000);
    return diff_is_bytes(diff->sort) ? report_units_bytes(buf, n)
                                     : report_units_time(buf, n, diff->style->utf8);
}

static char *bytes_amount(char buf[REPORT_UNITS_ROOM], uint64_t n, const struct diff *diff)
{
    return diff->style->exact ? report_units_exact(buf, n) : report_units_bytes(buf, n);
}

/* "+1.2ms", "-3", "0"; "~" before one of estimates. */
static void cell_change(struct report_table *table, uint64_t base, uint64_t now, bool estimated,
                        const struct diff *diff,
                        char *(*put)(char[REPORT_UNITS_ROOM], uint64_t, const struct diff *))
{
    char buf[REPORT_UNITS_ROOM];
    if (base == now)
        report_table_cell(table, "0");
    else
        report_table_cellf(table, "%s%c%s", estimated ? "~" : "", now > base ? '+' : '-',
                           put(buf, now > base ? now - base : base - now, diff));
}

static void cell_percent(struct report_table *table, uint64_t base, uint64_t now)
{
    double percent = base ? 100 * ((double)now - (double)base) / (double)base : 0;
    if (base == 0)
        report_table_cell(table, now > 0 ? "new" : "-");
    else if (now == 0)
        report_table_cell(table, "gone");
    else if (fabs(percent) < 999.5)
        report_table_cellf(table, "%+.1f%%", percent);
    else
        report_table_cellf(table, "x%.3g", (double)now / (double)base);
}

/* Whether the change has a standard error to show. */
static bool diff_has_errors(const struct diff *diff)
{
    return (diff->sampled || diff->runs[0]->n + diff->runs[1]->n > 2) &&
           report_ranking_is_time(diff->sort);
}

/* What a side has; "-": it is not known. */
static void cell_side(struct report_table *table, const struct diff *diff,
                      const struct analyze_cost *cost)
{
    char buf[REPORT_UNITS_ROOM];
    if (!report_ranking_is_known(cost, diff->sort))
        report_table_cell(table, "-");
    else
        report_table_cellf(
            table, "%s%s", report_ranking_is_estimate(cost, diff->sort, diff->style) ? "~" : "",
            diff_amount(buf, report_ranking_key(cost, diff->sort, diff->style), diff));
}

/* error: of the change. A change that chance may have made is "~", as benchstat writes it. */
static void diff_add_row(struct report_table *table, const struct diff *diff,
                         const struct analyze_cost *base_cost, const struct analyze_cost *now_cost,
                         double error)
{
    const uint64_t base = report_ranking_key(base_cost, diff->sort, diff->style);
    const uint64_t now = report_ranking_key(now_cost, diff->sort, diff->style);
    const bool known = report_ranking_is_known(base_cost, diff->sort) &&
                       report_ranking_is_known(now_cost, diff->sort),
               estimated = report_ranking_is_estimate(base_cost, diff->sort, diff->style) ||
                           report_ranking_is_estimate(now_cost, diff->sort, diff->style),
               chance = base != now && !diff_exceeds(diff, base, now, error);
    report_table_row(table);
    if (!known || chance)
        report_table_cell(table, known ? "~" : "-");
    else
        cell_change(table, base, now, estimated, diff, diff_amount);
    if (diff_has_errors(diff))
        report_cell_time(table, error > 0 ? read_whole(error) : 0, diff->style);
    if (!known || chance)
        report_table_cell(table, known ? "~" : "-");
    else
        cell_percent(table, base, now);
    cell_side(table, diff, base_cost);
    cell_side(table, diff, now_cost);
    if (diff->sort != REPORT_SORT_TAPE)
        cell_change(table, analyze_cost_tape_bytes(base_cost), analyze_cost_tape_bytes(now_cost),
                    false, diff, bytes_amount);
    if (chance && diff->style->color)
        report_table_color(table, "2");
}

static bool diff_has_other_file(const struct analyze_joined *row)
{
    const struct analyze_line *const *line = row->line;
    return row->moved && line[0]->file && line[1]->file &&
           strcmp(base_file_name(line[0]->file), base_file_name(line[1]->file)) != 0;
}

/* Where the row is now, and what became of it. */
static void cell_fate(struct report_table *table, const struct diff *diff,
                      const struct analyze_joined *row)
{
    char where[1024];
    const struct analyze_line *now = row->line[1] ? row->line[1] : row->line[0];
    report_text_where(where, sizeof where, diff->analysis[row->line[1] ? 1 : 0], now, diff->by);
    if (!row->line[0])
        report_table_cellf(table, "new: %s", where);
    else if (!row->line[1])
        report_table_cellf(table, "gone: %s", where);
    else if (diff_has_other_file(row)) {
        char was[1024];
        report_text_place(was, sizeof was, diff->analysis[0], row->line[0]);
        report_table_cellf(table, "%s (was %s)", where, was);
    } else if (row->moved && row->line[0]->line != row->line[1]->line)
        report_table_cellf(table, "%s (was line %u)", where, (unsigned)row->line[0]->line);
    else
        report_table_cell(table, where);
}

/* Of a row, NULL: of all. */
static double diff_error(const struct diff *diff, const struct analyze_joined *row)
{
    static const struct analyze_line *const none[2];
    struct diff payload = *diff;
    if (!report_ranking_is_time(diff->sort) && diff->runs[0]->n + diff->runs[1]->n <= 2)
        return -1;
    return analyze_noise_error(&diff->noise, row ? row->line : none, diff_value, &payload);
}

/* What was compared, and what chance makes of that. */
static void diff_put_runs(const struct diff *diff)
{
    const struct report_style *style = diff->style;
    const size_t n[2] = {diff->runs[0]->n, diff->runs[1]->n};
    if (n[0] + n[1] > 2)
        report_text_paragraph(style->out, style->width,
                              "Means of %zu run%s against %zu. ~: less than %.1f standard errors, "
                              "which chance makes.",
                              n[1], n[1] == 1 ? "" : "s", n[0], diff->noise.errors);
    else if (!diff->sampled && report_ranking_is_time(diff->sort))
        report_text_paragraph(style->out, style->width,
                              "One run a side: what of a change of times is chance is not known. "
                              "Several tell (tapescope stat -o FOLDER).");
}

static void diff_print(const struct diff *diff, size_t shown)
{
#define X(NAME, word, title) title,
    static const char *const titles[] = {REPORT_METRICS(X)};
#undef X
    const struct report_style *style = diff->style;
    struct report_table *table = report_table_new();
    char heading[32];
    const bool exact_lifetime = style->exact && diff->sort == REPORT_SORT_LIFETIME;
    snprintf(heading, sizeof heading, "%s%s", diff->sampled ? "~" : "",
             exact_lifetime ? "B*us" : titles[diff->sort]);
    report_table_column(table, REPORT_TABLE_RIGHT, heading);
    if (diff_has_errors(diff)) {
        report_table_column(table, REPORT_TABLE_RIGHT, "~error");
        report_table_optional(table, 2);
    }
    report_table_column(table, REPORT_TABLE_RIGHT, "change");
    report_table_optional(table, 1);
    report_table_column(table, REPORT_TABLE_RIGHT, "base");
    report_table_optional(table, 4);
    report_table_column(table, REPORT_TABLE_RIGHT, "new");
    report_table_optional(table, 3);
    if (diff->sort != REPORT_SORT_TAPE) {
        report_table_column(table, REPORT_TABLE_RIGHT, "tape");
        report_table_optional(table, 2);
        if (!diff->counted)
            report_table_hide(table);
    }
    report_table_column(table, REPORT_TABLE_LEFT, report_text_where_title(diff->by));
    for (size_t i = 0; i < shown; i++) {
        const struct changed *row = &diff->row[i];
        diff_add_row(table, diff, diff_cost_of(row->row, 0), diff_cost_of(row->row, 1), row->error);
        cell_fate(table, diff, row->row);
    }
    const struct analyze_cost base = analyze_total(diff->analysis[0]);
    const struct analyze_cost now = analyze_total(diff->analysis[1]);
    diff_add_row(table, diff, &base, &now, diff_error(diff, NULL));
    report_table_cell(table, "(all)");
    report_table_phases(table, style->color);
    report_table_changes(table);
    report_table_print(table, style->out, style->exact ? 0 : style->width, style->utf8);
    report_table_free(table);
    if (shown < diff->n)
        fprintf(style->out, "%zu more with changes; -n 0 shows them.\n", diff->n - shown);
    if (diff->chance > 0)
        fprintf(style->out, "%zu %s%s within chance.\n", diff->chance,
                report_ranking_noun(diff->by), diff->chance == 1 ? "" : "s");
    if (diff->unchanged > 0)
        fprintf(style->out, "%zu %s%s without change.\n", diff->unchanged,
                report_ranking_noun(diff->by), diff->unchanged == 1 ? "" : "s");
    if (diff->sampled)
        report_text_paragraph(style->out, style->width,
                              "~ sampled: an error is one standard deviation of the change.");
    diff_put_runs(diff);
}

static void json_side(struct base_json *json, const char *name, const struct diff *diff,
                      const struct analyze_joined *row, int side)
{
    if (!row->line[side]) {
        base_json_null(json, name);
        return;
    }
    base_json_object(json, name);
    base_json_u64(json, "line", row->line[side]->line);
    report_json_cost(json, &row->line[side]->cost, diff->analysis[side]->profile);
    base_json_end(json);
}

/* The standard error of what is compared, and whether the change is more than chance makes. */
static void json_chance(struct base_json *json, const struct diff *diff, const struct changed *row)
{
    if (row->error >= 0)
        base_json_double(json, "error", row->error);
    else
        base_json_null(json, "error");
    base_json_bool(json, "significant", diff_exceeds(diff, row->base, row->now, row->error));
}

static void diff_print_json(const struct diff *diff, size_t shown)
{
    struct base_json json;
    report_json_begin(&json, diff->style->out, "diff");
    base_json_text(&json, "by", report_ranking_noun(diff->by));
    report_json_profile(&json, "base_profile", diff->analysis[0]->profile);
    report_json_profile(&json, "new_profile", diff->analysis[1]->profile);
    base_json_u64(&json, "base_runs", diff->runs[0]->n);
    base_json_u64(&json, "new_runs", diff->runs[1]->n);
    base_json_double(&json, "errors", diff->noise.errors);
    base_json_array(&json, "rows");
    for (size_t i = 0; i < shown; i++) {
        const struct analyze_joined *row = diff->row[i].row;
        base_json_object(&json, NULL);
        report_json_place(&json, row->line[1] ? row->line[1] : row->line[0]);
        base_json_bool(&json, "moved", row->moved);
        json_chance(&json, diff, &diff->row[i]);
        json_side(&json, "base", diff, row, 0);
        json_side(&json, "new", diff, row, 1);
        base_json_end(&json);
    }
    base_json_end(&json);
    base_json_u64(&json, "rows_not_shown", diff->n - shown);
    base_json_u64(&json, "rows_without_change", diff->unchanged);
    base_json_u64(&json, "rows_within_chance", diff->chance);
    report_json_totals(&json, "base_total", diff->analysis[0]);
    report_json_totals(&json, "new_total", diff->analysis[1]);
    base_json_finish(&json);
}

/* Six figures of each side, empty where it has no such row, or does not know them. */
static void diff_csv_side(struct report_csv *csv, const struct diff *diff,
                          const struct analyze_joined *row, int side)
{
    const struct analyze_cost *cost = diff_cost_of(row, side);
    const struct read_profile *profile = diff->analysis[side]->profile;
    const uint64_t figure[] = {cost->forward_ns,
                               cost->backward_ns,
                               cost->recompute_ns,
                               cost->calls,
                               analyze_cost_tape_bytes(cost),
                               cost->peak_bytes};
    enum { TIMES = 3 };
    for (size_t i = 0; i < sizeof figure / sizeof *figure; i++) {
        const bool known = i < TIMES ? !profile->without_times : read_profile_has_bytes(profile);
        if (row->line[side] && known)
            report_csv_u64(csv, figure[i]);
        else
            report_csv_empty(csv);
    }
}

static void diff_print_csv(const struct diff *diff, size_t shown)
{
    static const char *const titles[] = {
        REPORT_CSV_WHERE,   "fate",
        "base_line",        "base_forward_ns",
        "base_backward_ns", "base_recompute_ns",
        "base_calls",       "base_tape_bytes",
        "base_peak_bytes",  "new_forward_ns",
        "new_backward_ns",  "new_recompute_ns",
        "new_calls",        "new_tape_bytes",
        "new_peak_bytes",
    };
    struct report_csv csv = {.out = diff->style->out};
    report_csv_titles(&csv, titles, sizeof titles / sizeof *titles);
    report_csv_end(&csv);
    for (size_t i = 0; i < shown; i++) {
        const struct analyze_joined *row = diff->row[i].row;
        report_csv_where(&csv, row->line[1] ? row->line[1] : row->line[0]);
        report_csv_text(&csv, !row->line[0]   ? "new"
                              : !row->line[1] ? "gone"
                              : row->moved    ? "moved"
                                              : "");
        if (row->line[0])
            report_csv_u64(&csv, row->line[0]->line);
        else
            report_csv_empty(&csv);
        diff_csv_side(&csv, diff, row, 0);
        diff_csv_side(&csv, diff, row, 1);
        report_csv_end(&csv);
    }
}

static void diff_take_rows(struct diff *diff, const struct analyze_join *join)
{
    for (size_t i = 0; i < join->n_rows; i++) {
        const struct analyze_joined *row = &join->row[i];
        const struct changed changed = {
            .row = row,
            .base = report_ranking_key(diff_cost_of(row, 0), diff->sort, diff->style),
            .now = report_ranking_key(diff_cost_of(row, 1), diff->sort, diff->style),
            .error = diff_error(diff, row),
        };
        if (diff_differ(&changed, diff))
            diff->row[diff->n++] = changed;
        else if (changed.base != changed.now)
            diff->chance++;
        else
            diff->unchanged++;
    }
}

void report_diff(const struct analyze_runs *base, const struct analyze_runs *now,
                 enum analyze_by by, enum report_sort sort, bool relative, size_t limit,
                 const struct report_style *style)
{
    const struct read_profile *profile[] = {base->mean.profile, now->mean.profile};
    struct diff diff = {
        .analysis = {&base->mean, &now->mean},
        .runs = {base, now},
        .style = style,
        .by = by,
        .sort = sort,
        .sampled =
            (profile[0]->is_sampled || profile[1]->is_sampled) && report_ranking_is_time(sort),
        .counted = read_profile_has_bytes(profile[0]) && read_profile_has_bytes(profile[1]),
    };
    struct analyze_join join;
    analyze_noise_make(&diff.noise, base, now, by);
    analyze_join_make(&join, diff.analysis, 2, by, true);
    diff.row = base_calloc(join.n_rows + 1, sizeof *diff.row);
    diff_take_rows(&diff, &join);
    qsort(diff.row, diff.n, sizeof *diff.row, relative ? compare_relative : compare_absolute);
    size_t shown = limit > 0 && limit < diff.n ? limit : diff.n;
    if (style->json)
        diff_print_json(&diff, shown);
    else if (style->csv)
        diff_print_csv(&diff, shown);
    else
        diff_print(&diff, shown);
    free(diff.row);
    analyze_join_free(&join);
    analyze_noise_free(&diff.noise);
}
