/* report_growth.c: how each row's bytes and time grow with the problem. */
#include "report_json.h"

#include "base_memory.h"
#include "report_csv.h"
#include "report_findings.h"
#include "report_many.h"
#include "report_rank.h"
#include "report_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t growth_bytes_of(const struct analyze_cost *cost, enum report_bytes bytes)
{
    return bytes == REPORT_BYTES_PEAK ? cost->peak_bytes : analyze_cost_tape_bytes(cost);
}

/* Points of one row: y[i] belongs to size i; 0 where the row is not there. */
struct points {
    double bytes[ANALYZE_JOIN_MOST], ns[ANALYZE_JOIN_MOST];
};

static struct report_growth_row growth_fit(const struct analyze_joined *row,
                                           const struct points *points,
                                           const struct report_sizes *sizes)
{
    size_t largest = 0;
    for (size_t i = 1; i < sizes->n; i++)
        if (sizes->size[i] > sizes->size[largest])
            largest = i;
    return (struct report_growth_row){
        .row = row,
        .bytes = analyze_fit_power(sizes->size, points->bytes, sizes->n),
        .time = analyze_fit_power(sizes->size, points->ns, sizes->n),
        .largest_bytes = points->bytes[largest],
        .largest_ns = points->ns[largest],
    };
}

static void fit_total(struct report_growth *growth, const struct report_sizes *sizes,
                      enum report_bytes bytes)
{
    struct points points = {0};
    for (size_t i = 0; i < sizes->n; i++) {
        const struct analyze_totals *total = &sizes->analysis[i]->total;
        points.bytes[i] =
            (double)(bytes == REPORT_BYTES_PEAK ? total->peak_bytes : total->handed_out_bytes);
        points.ns[i] = (double)(total->forward_ns + total->backward_ns + total->recompute_ns);
    }
    growth->total = growth_fit(NULL, &points, sizes);
}

static int growth_compare_rows(const void *x, const void *y)
{
    const struct report_growth_row *a = x, *b = y;
    if (a->largest_bytes != b->largest_bytes)
        return a->largest_bytes > b->largest_bytes ? -1 : 1;
    if (a->largest_ns != b->largest_ns)
        return a->largest_ns > b->largest_ns ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

void report_growth_make(struct report_growth *growth, const struct report_sizes *sizes,
                        enum analyze_by by, enum report_bytes bytes)
{
    *growth = (struct report_growth){.bytes = bytes};
    analyze_join_make(&growth->join, sizes->analysis, sizes->n, by, false);
    growth->row = base_calloc(growth->join.n_rows + 1, sizeof *growth->row);
    for (size_t i = 0; i < growth->join.n_rows; i++) {
        const struct analyze_joined *row = &growth->join.row[i];
        struct points points = {0};
        bool any = false;
        for (size_t j = 0; j < sizes->n; j++) {
            if (!row->line[j])
                continue;
            const struct analyze_cost *cost = &row->line[j]->cost;
            points.bytes[j] = (double)growth_bytes_of(cost, bytes);
            points.ns[j] = (double)(cost->forward_ns + cost->backward_ns + cost->recompute_ns);
            any |= points.bytes[j] > 0 || points.ns[j] > 0 || analyze_cost_tape_bytes(cost) > 0;
        }
        if (any) /* samples have many lines whose time is not AD's */
            growth->row[growth->n++] = growth_fit(row, &points, sizes);
    }
    qsort(growth->row, growth->n, sizeof *growth->row, growth_compare_rows);
    fit_total(growth, sizes, bytes);
}

void report_growth_free(struct report_growth *growth)
{
    analyze_join_free(&growth->join);
    free(growth->row);
    *growth = (struct report_growth){.n = 0};
}

/* What would be printed as "-0.00" has no sign. */
static double unsigned_zero(double x)
{
    return x > -0.005 && x < 0.005 ? 0 : x;
}

/* Two cells: the exponent, and its interval. */
static void cell_fit(struct report_table *table, const struct analyze_fit *fit, double most,
                     bool utf8)
{
    if (!fit->fits) {
        report_table_cell(table, "-");
        report_table_cell(table, "-");
        return;
    }
    report_table_cellf(table, "%.2f%s", unsigned_zero(fit->exponent),
                       analyze_fit_is_above(fit, most) ? "!" : "");
    if (fit->has_interval)
        report_table_cellf(table, "%.2f%s%.2f", unsigned_zero(fit->low), utf8 ? "\u2026" : "..",
                           unsigned_zero(fit->high));
    else
        report_table_cell(table, "-");
}

static void growth_add_row(struct report_table *table, const struct report_growth_row *row,
                           double most, const struct report_style *style)
{
    report_table_row(table);
    report_cell_bytes(table, read_whole(row->largest_bytes), style);
    cell_fit(table, &row->bytes, most, style->utf8);
    report_cell_time(table, read_whole(row->largest_ns), style);
    cell_fit(table, &row->time, most, style->utf8);
}

/* Whether all profiles have bytes, or times. */
static bool all_know(const struct report_sizes *sizes, enum report_sort what)
{
    for (size_t i = 0; i < sizes->n; i++)
        if (!report_ranking_knows(sizes->analysis[i]->profile, what))
            return false;
    return true;
}

static bool any_sampled(const struct report_sizes *sizes)
{
    for (size_t i = 0; i < sizes->n; i++)
        if (sizes->analysis[i]->profile->is_sampled)
            return true;
    return false;
}

static void growth_add_columns(struct report_table *table, const struct report_growth *growth,
                               const struct report_sizes *sizes, enum analyze_by by)
{
    enum { TIME = 3 }; /* and those behind it; bytes before */
    const struct {
        const char *title;
        unsigned rank;
    } columns[] = {{growth->bytes == REPORT_BYTES_PEAK ? "at peak" : "tape", 0},
                   {"~n^", 0},
                   {"95 %", 1},
                   {"time", 2},
                   {"~n^", 3},
                   {"95 %", 4}};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        report_table_column(table, REPORT_TABLE_RIGHT,
                            i == TIME && any_sampled(sizes) ? "~time" : columns[i].title);
        report_table_optional(table, columns[i].rank);
        if (!all_know(sizes, i < TIME ? REPORT_SORT_TAPE : REPORT_SORT_TOTAL))
            report_table_hide(table);
    }
    report_table_column(table, REPORT_TABLE_LEFT, report_text_where_title(by));
}

/* Of the greatest size: whether each step leaves something, in words; the caller frees them. */
static const struct report_finding *growth_rewind(struct report_findings *findings,
                                                  const struct report_sizes *sizes,
                                                  const struct report_style *style)
{
    size_t largest = 0;
    for (size_t i = 1; i < sizes->n; i++)
        if (sizes->size[i] > sizes->size[largest])
            largest = i;
    report_findings_make(findings, sizes->analysis[largest], &(struct report_known){.growth = NULL},
                         style);
    for (size_t i = 0; i < findings->n; i++)
        if (strcmp(findings->finding[i].kind, "rewind") == 0)
            return &findings->finding[i];
    return NULL;
}

static size_t growth_tapes_of(const struct read_profile *profile)
{
    size_t n = 0;
    for (size_t i = 0; i < profile->n_tapes; i++)
        n += profile->tape[i].tape != 0 && !profile->tape[i].final;
    return n;
}

/* Where more tapes are live at the end the greater the size is, in words, which the caller frees;
 * else NULL. That a program keeps some tapes is no mistake. */
static char *growth_tapes(const struct report_sizes *sizes)
{
    enum { LEAST = 8 };
    size_t first = 0, last = 0;
    for (size_t i = 0; i < sizes->n; i++) {
        const size_t own = growth_tapes_of(sizes->analysis[i]->profile);
        if (!sizes->analysis[i]->profile->complete)
            return NULL;
        for (size_t j = 0; j < sizes->n; j++)
            if (sizes->size[j] < sizes->size[i] &&
                growth_tapes_of(sizes->analysis[j]->profile) >= own)
                return NULL;
        first = sizes->size[i] < sizes->size[first] ? i : first;
        last = sizes->size[i] > sizes->size[last] ? i : last;
    }
    const size_t least = growth_tapes_of(sizes->analysis[first]->profile),
                 most = growth_tapes_of(sizes->analysis[last]->profile);
    if (most < least + LEAST)
        return NULL;
    return base_asprintf("The number of tapes that are live at the end grows, from %zu to %zu. End "
                         "each tape where its step ends:",
                         least, most);
}

static void put_rewind(const struct report_sizes *sizes, const struct report_style *style)
{
    struct report_findings findings;
    const struct report_finding *rewind = growth_rewind(&findings, sizes, style);
    if (rewind) {
        report_text_paragraph(style->out, style->width, "The peak grows with each step: %s %s",
                              rewind->text, rewind->advice);
        fprintf(style->out, "    %s\n", rewind->call);
    }
    report_findings_free(&findings);
    char *tapes = growth_tapes(sizes);
    if (tapes) {
        report_text_paragraph(style->out, style->width, "%s", tapes);
        fputs("    ad_tape_destroy(tape);\n", style->out);
    }
    free(tapes);
}

static void json_fit(struct base_json *json, const char *name, const struct analyze_fit *fit,
                     double most)
{
    base_json_object(json, name);
    base_json_u64(json, "points", fit->points);
    if (fit->fits) {
        base_json_double(json, "factor", fit->factor);
        base_json_double(json, "exponent", fit->exponent);
    }
    if (fit->has_interval) {
        base_json_double(json, "low", fit->low);
        base_json_double(json, "high", fit->high);
    }
    base_json_bool(json, "above", analyze_fit_is_above(fit, most));
    base_json_end(json);
}

static void json_row(struct base_json *json, const struct report_sizes *sizes,
                     const struct report_growth_row *row, double most)
{
    report_json_known(json, "largest_bytes", read_whole(row->largest_bytes),
                      all_know(sizes, REPORT_SORT_TAPE));
    report_json_known(json, "largest_ns", read_whole(row->largest_ns),
                      all_know(sizes, REPORT_SORT_TOTAL));
    json_fit(json, "bytes", &row->bytes, most);
    json_fit(json, "time", &row->time, most);
}

static void growth_print_json(const struct report_growth *growth, const struct report_sizes *sizes,
                              enum analyze_by by, double most, size_t shown, FILE *out)
{
    struct base_json json;
    report_json_begin(&json, out, "growth");
    base_json_text(&json, "by", report_ranking_noun(by));
    base_json_text(&json, "size", sizes->name);
    base_json_text(&json, "metric", growth->bytes == REPORT_BYTES_PEAK ? "peak" : "tape");
    base_json_double(&json, "max", most);
    base_json_array(&json, "profiles");
    for (size_t i = 0; i < sizes->n; i++) {
        base_json_object(&json, NULL);
        base_json_text(&json, "path", sizes->analysis[i]->profile->path);
        base_json_double(&json, "size", sizes->size[i]);
        base_json_bool(&json, "sampled", sizes->analysis[i]->profile->is_sampled);
        base_json_end(&json);
    }
    base_json_end(&json);
    base_json_array(&json, "rows");
    for (size_t i = 0; i < shown; i++) {
        base_json_object(&json, NULL);
        report_json_place(&json, growth->row[i].row->any);
        json_row(&json, sizes, &growth->row[i], most);
        base_json_end(&json);
    }
    base_json_end(&json);
    base_json_u64(&json, "rows_not_shown", growth->n - shown);
    base_json_object(&json, "total");
    json_row(&json, sizes, &growth->total, most);
    base_json_end(&json);
    struct report_findings findings;
    const struct report_style words = {.utf8 = true};
    const struct report_finding *rewind = growth_rewind(&findings, sizes, &words);
    char *tapes = growth_tapes(sizes);
    base_json_text(&json, "each_step_leaves", rewind ? rewind->text : tapes);
    free(tapes);
    report_findings_free(&findings);
    base_json_finish(&json);
}

static void growth_csv_fit(struct report_csv *csv, const struct analyze_fit *fit)
{
    report_csv_double(csv, fit->fits ? fit->exponent : NAN);
    report_csv_double(csv, fit->has_interval ? fit->low : NAN);
    report_csv_double(csv, fit->has_interval ? fit->high : NAN);
}

/* The figures of each profile, by its size, behind the fits. */
static void growth_print_csv(const struct report_growth *growth, const struct report_sizes *sizes,
                             size_t shown, FILE *out)
{
    static const char *const titles[] = {
        REPORT_CSV_WHERE, "bytes_exponent", "bytes_low", "bytes_high",
        "time_exponent",  "time_low",       "time_high",
    };
    static const char *const figures[] = {"tape_bytes", "peak_bytes", "time_ns"};
    struct report_csv csv = {.out = out};
    report_csv_titles(&csv, titles, sizeof titles / sizeof *titles);
    for (size_t j = 0; j < sizes->n; j++)
        for (int k = 0; k < 3; k++)
            fprintf(out, ",%s_%g", figures[k], sizes->size[j]);
    report_csv_end(&csv);
    for (size_t i = 0; i < shown; i++) {
        const struct report_growth_row *row = &growth->row[i];
        report_csv_where(&csv, row->row->any);
        growth_csv_fit(&csv, &row->bytes);
        growth_csv_fit(&csv, &row->time);
        for (size_t j = 0; j < sizes->n; j++) {
            static const struct analyze_cost nothing;
            const struct analyze_line *line = row->row->line[j];
            const struct analyze_cost *cost = line ? &line->cost : &nothing;
            report_csv_u64(&csv, analyze_cost_tape_bytes(cost));
            report_csv_u64(&csv, cost->peak_bytes);
            report_csv_u64(&csv, cost->forward_ns + cost->backward_ns + cost->recompute_ns);
        }
        report_csv_end(&csv);
    }
}

static void put_sizes(const struct report_sizes *sizes, FILE *out)
{
    fprintf(out, "n: %s:", sizes->name);
    for (size_t i = 0; i < sizes->n; i++)
        fprintf(out, " %g", sizes->size[i]);
    putc('\n', out);
}

static bool any_interval(const struct report_growth *growth)
{
    return growth->total.bytes.has_interval || growth->total.time.has_interval;
}

void report_growth_print(const struct report_growth *growth, const struct report_sizes *sizes,
                         enum analyze_by by, double most, size_t limit,
                         const struct report_style *style)
{
    size_t shown = limit > 0 && limit < growth->n ? limit : growth->n;
    if (style->json) {
        growth_print_json(growth, sizes, by, most, shown, style->out);
        return;
    }
    if (style->csv) {
        growth_print_csv(growth, sizes, shown, style->out);
        return;
    }
    struct report_table *table = report_table_new();
    bool above = analyze_fit_is_above(&growth->total.bytes, most) ||
                 analyze_fit_is_above(&growth->total.time, most);
    growth_add_columns(table, growth, sizes, by);
    for (size_t i = 0; i < shown; i++) {
        const struct report_growth_row *row = &growth->row[i];
        growth_add_row(table, row, most, style);
        report_cell_where(table, sizes->analysis[sizes->n - 1], row->row->any, by);
        above |= analyze_fit_is_above(&row->bytes, most) || analyze_fit_is_above(&row->time, most);
    }
    growth_add_row(table, &growth->total, most, style);
    report_table_cell(table, "(all)");
    report_table_phases(table, style->color);
    report_table_print(table, style->out, style->exact ? 0 : style->width, style->utf8);
    report_table_free(table);
    put_sizes(sizes, style->out);
    if (shown < growth->n)
        report_text_paragraph(style->out, style->width, "%zu more %s%s; -n 0 shows everything.",
                              growth->n - shown, report_ranking_noun(by),
                              growth->n - shown == 1 ? "" : "s");
    put_rewind(sizes, style);
    if (above)
        fprintf(style->out, "! significantly above n^%g (95 %%).\n", most);
    if (any_sampled(sizes))
        fputs("~ sampled: times are estimates.\n", style->out);
    if (!any_interval(growth))
        report_text_paragraph(style->out, style->width,
                              "Two sizes give no interval: record a third.");
}
