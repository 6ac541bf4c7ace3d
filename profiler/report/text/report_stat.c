/* report_stat.c: see report_stat.h. */
#include "report_stat.h"

#include "report_json.h"
#include "report_text.h"
#include "units.h"

#include <math.h>

enum kind { TIME, BYTES, RATIO };

static const struct {
    const char *name, *json;
    enum kind kind;
    bool from_profile; /* a time, or made of times, that may be sampled */
} metrics[STAT_METRICS] = {
    [STAT_WALL] = {"wall", "wall_ns", TIME, false},
    [STAT_FORWARD] = {"forward", "forward_ns", TIME, true},
    [STAT_BACKWARD] = {"backward", "backward_ns", TIME, true},
    [STAT_RECOMPUTE] = {"recompute", "recompute_ns", TIME, true},
    [STAT_TAPE] = {"tape", "tape_bytes", BYTES, false},
    [STAT_PEAK] = {"peak of one tape", "peak_bytes", BYTES, false},
    [STAT_RATIO] = {"gradient / forward", "gradient_over_forward", RATIO, true},
    [STAT_PRIMAL] = {"primal wall", "primal_wall_ns", TIME, false},
    [STAT_PRIMAL_RATIO] = {"wall / primal wall", "wall_over_primal", RATIO, false},
};

void stat_add(struct stat_series *series, double value)
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

double stat_deviation(const struct stat_series *series)
{
    return series->n > 1 ? sqrt(series->squares / (double)(series->n - 1)) : 0;
}

static void cell_value(struct table *table, enum kind kind, double value,
                       const struct report_style *style)
{
    if (kind == TIME)
        cell_time(table, read_whole(value), style);
    else if (kind == BYTES)
        cell_bytes(table, read_whole(value), style);
    else
        table_cellf(table, "%.3g", value);
}

static void add_row(struct table *table, const struct report_stat *stat, enum stat_metric metric,
                    const struct report_style *style)
{
    const struct stat_series *series = &stat->series[metric];
    double deviation = stat_deviation(series);
    table_row(table);
    table_cellf(table, "%s%s", stat->sampled && metrics[metric].from_profile ? "~" : "",
                metrics[metric].name);
    cell_value(table, metrics[metric].kind, series->mean, style);
    table_cell(table, style->utf8 ? "\u00b1" : "+-");
    cell_value(table, metrics[metric].kind, deviation, style);
    if (series->mean > 0)
        table_cellf(table, "%.1f%%", 100 * deviation / series->mean);
    else
        table_cell(table, "-");
    cell_value(table, metrics[metric].kind, series->most, style);
    cell_value(table, metrics[metric].kind, series->least, style);
}

/* Nothing to say: not measured, or no run computed anything again. */
static bool is_empty(const struct report_stat *stat, enum stat_metric metric)
{
    const struct stat_series *series = &stat->series[metric];
    return series->n == 0 || (metric == STAT_RECOMPUTE && !(series->most > 0));
}

static void print_json(const struct report_stat *stat, FILE *out)
{
    struct base_json json;
    report_json_begin(&json, out, "stat");
    base_json_array(&json, "command");
    for (size_t i = 0; stat->command[i]; i++)
        base_json_text(&json, NULL, stat->command[i]);
    base_json_end(&json);
    base_json_text(&json, "primal", stat->primal);
    base_json_u64(&json, "runs", stat->series[STAT_WALL].n);
    base_json_u64(&json, "warmup", stat->warmup);
    base_json_bool(&json, "sampled", stat->sampled);
    base_json_object(&json, "metrics");
    for (int i = 0; i < STAT_METRICS; i++) {
        const struct stat_series *series = &stat->series[i];
        if (is_empty(stat, (enum stat_metric)i))
            continue;
        base_json_object(&json, metrics[i].json);
        base_json_u64(&json, "n", series->n);
        base_json_double(&json, "mean", series->mean);
        base_json_double(&json, "sd", stat_deviation(series));
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
        enum table_align align;
        unsigned rank;
    } columns[] = {{"", TABLE_LEFT, 0},    {"mean", TABLE_RIGHT, 0}, {NULL, TABLE_LEFT, 2},
                   {"sd", TABLE_RIGHT, 2}, {"", TABLE_RIGHT, 3},     {"max", TABLE_RIGHT, 4},
                   {"min", TABLE_RIGHT, 0}};
    if (style->json) {
        print_json(stat, style->out);
        return;
    }
    struct table *table = table_new();
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        table_column(table, columns[i].align, columns[i].title);
        table_optional(table, columns[i].rank);
    }
    for (int i = 0; i < STAT_METRICS; i++)
        if (!is_empty(stat, (enum stat_metric)i))
            add_row(table, stat, (enum stat_metric)i, style);
    size_t runs = stat->series[STAT_WALL].n;
    table_print(table, style->out, style->exact ? 0 : style->width, style->utf8);
    table_free(table);
    fprintf(style->out, "%zu run%s after %zu that %s not counted.\n%s", runs, runs == 1 ? "" : "s",
            stat->warmup, stat->warmup == 1 ? "is" : "are",
            stat->sampled ? "~ sampled: processor time, of all threads.\n" : "");
}
