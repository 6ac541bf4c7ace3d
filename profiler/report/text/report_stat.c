/* report_stat.c: see report_stat.h. */
#include "report_stat.h"

#include "report_json.h"
#include "report_text.h"
#include "report_units.h"

#include <math.h>

enum stat_kind { TIME, BYTES, RATIO };

static const struct {
    const char *name, *json;
    enum stat_kind kind;
    bool from_profile; /* a time, or made of times, that may be sampled */
} metrics[REPORT_STAT_METRICS] = {
    [REPORT_STAT_WALL] = {"wall", "wall_ns", TIME, false},
    [REPORT_STAT_FORWARD] = {"forward", "forward_ns", TIME, true},
    [REPORT_STAT_BACKWARD] = {"backward", "backward_ns", TIME, true},
    [REPORT_STAT_RECOMPUTE] = {"recompute", "recompute_ns", TIME, true},
    [REPORT_STAT_TAPE] = {"tape", "tape_bytes", BYTES, false},
    [REPORT_STAT_PEAK] = {"peak of one tape", "peak_bytes", BYTES, false},
    [REPORT_STAT_RATIO] = {"gradient / forward", "gradient_over_forward", RATIO, true},
    [REPORT_STAT_PRIMAL] = {"primal wall", "primal_wall_ns", TIME, false},
    [REPORT_STAT_PRIMAL_RATIO] = {"wall / primal wall", "wall_over_primal", RATIO, false},
};

void report_stat_add(struct report_stat_series *series, double value)
{
    double off = value - series->mean;
    series->n++;
    series->mean += off / (double)series->n;
    series->squares += off * (value - series->mean);
    if (series->n == 1 || value < series->least)
        series->least = value;
    if (series->n == 1 || value > series->most)
        series->most = value;
}

/* Of the sample: over n - 1; 0 for fewer than two values. */
static double series_deviation(const struct report_stat_series *series)
{
    return series->n > 1 ? sqrt(series->squares / (double)(series->n - 1)) : 0;
}

static void cell_value(struct report_table *table, enum stat_kind kind, double value,
                       const struct report_style *style)
{
    if (kind == TIME)
        report_cell_time(table, read_whole(value), style);
    else if (kind == BYTES)
        report_cell_bytes(table, read_whole(value), style);
    else
        report_table_cellf(table, "%.3g", value);
}

static void stat_add_row(struct report_table *table, const struct report_stat *stat,
                         enum report_stat_metric metric, const struct report_style *style)
{
    const struct report_stat_series *series = &stat->series[metric];
    double deviation = series_deviation(series);
    report_table_row(table);
    report_table_cellf(table, "%s%s", stat->sampled && metrics[metric].from_profile ? "~" : "",
                       metrics[metric].name);
    cell_value(table, metrics[metric].kind, series->mean, style);
    report_table_cell(table, style->utf8 ? "\u00b1" : "+-");
    cell_value(table, metrics[metric].kind, deviation, style);
    if (series->mean > 0)
        report_table_cellf(table, "%.1f%%", 100 * deviation / series->mean);
    else
        report_table_cell(table, "-");
    cell_value(table, metrics[metric].kind, series->most, style);
    cell_value(table, metrics[metric].kind, series->least, style);
}

/* Nothing to say: not measured, or no run computed anything again. */
static bool is_empty(const struct report_stat *stat, enum report_stat_metric metric)
{
    const struct report_stat_series *series = &stat->series[metric];
    return series->n == 0 || (metric == REPORT_STAT_RECOMPUTE && !(series->most > 0));
}

static void stat_print_json(const struct report_stat *stat, FILE *out)
{
    struct base_json json;
    report_json_begin(&json, out, "stat");
    base_json_array(&json, "command");
    for (size_t i = 0; stat->command[i]; i++)
        base_json_text(&json, NULL, stat->command[i]);
    base_json_end(&json);
    base_json_text(&json, "primal", stat->primal);
    base_json_u64(&json, "runs", stat->series[REPORT_STAT_WALL].n);
    base_json_u64(&json, "warmup", stat->warmup);
    base_json_bool(&json, "sampled", stat->sampled);
    base_json_object(&json, "metrics");
    for (int i = 0; i < REPORT_STAT_METRICS; i++) {
        const struct report_stat_series *series = &stat->series[i];
        if (is_empty(stat, (enum report_stat_metric)i))
            continue;
        base_json_object(&json, metrics[i].json);
        base_json_u64(&json, "n", series->n);
        base_json_double(&json, "mean", series->mean);
        base_json_double(&json, "sd", series_deviation(series));
        base_json_double(&json, "min", series->least);
        base_json_double(&json, "max", series->most);
        base_json_end(&json);
    }
    base_json_end(&json);
    base_json_finish(&json);
}

void report_stat_print(const struct report_stat *stat, const struct report_style *style)
{
    static const struct {
        const char *title;
        enum report_table_align align;
        unsigned rank;
    } columns[] = {{"", REPORT_TABLE_LEFT, 0},    {"mean", REPORT_TABLE_RIGHT, 0},
                   {NULL, REPORT_TABLE_LEFT, 2},  {"sd", REPORT_TABLE_RIGHT, 2},
                   {"", REPORT_TABLE_RIGHT, 3},   {"max", REPORT_TABLE_RIGHT, 4},
                   {"min", REPORT_TABLE_RIGHT, 0}};
    if (style->json) {
        stat_print_json(stat, style->out);
        return;
    }
    struct report_table *table = report_table_new();
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        report_table_column(table, columns[i].align, columns[i].title);
        report_table_optional(table, columns[i].rank);
    }
    for (int i = 0; i < REPORT_STAT_METRICS; i++)
        if (!is_empty(stat, (enum report_stat_metric)i))
            stat_add_row(table, stat, (enum report_stat_metric)i, style);
    size_t runs = stat->series[REPORT_STAT_WALL].n;
    report_table_phases(table, style->color);
    report_table_print(table, style->out, style->exact ? 0 : style->width, style->utf8);
    report_table_free(table);
    fprintf(style->out, "%zu run%s after %zu that %s not counted.\n%s", runs, runs == 1 ? "" : "s",
            stat->warmup, stat->warmup == 1 ? "is" : "are",
            stat->sampled ? "~ sampled: processor time, of all threads.\n" : "");
}
