/* report_patterns.c: the patterns of sparse derivatives that the program has found. */
#include "report_json.h"
#include "report_text.h"
#include "report_units.h"

#include <stdlib.h>

static const char *pattern_kind(const struct read_pattern *pattern)
{
    return pattern->kind == READ_PATTERN_HESSIAN ? "hessian" : "jacobian";
}

static void patterns_add_row(struct report_table *table, const struct analyze_result *analysis,
                             const struct analyze_pattern *p, const struct report_style *style)
{
    const struct read_pattern *found = p->found;
    report_table_row(table);
    report_table_cell(table, pattern_kind(found));
    report_table_cellf(table, "%llu x %llu", (unsigned long long)found->rows,
                       (unsigned long long)found->columns);
    report_cell_count(table, found->values, style);
    if (found->rows > 0 && found->columns > 0)
        report_table_cellf(table, style->exact ? "%.12g" : "%.3g",
                           100 * analyze_pattern_share(found));
    else
        report_table_cell(table, "-");
    if (found->coloured)
        report_cell_count(table, found->colours, style);
    else
        report_table_cell(table, "-");
    report_cell_count(table, p->calls, style);
    if (p->line.file)
        report_table_cellf(table, "%s:%u %s", report_short_path(analysis, p->line.file),
                           (unsigned)p->line.line, p->line.function ? p->line.function : "");
    else
        report_table_cellf(table, "0x%llx %s", (unsigned long long)found->pc,
                           p->line.function ? p->line.function : "");
}

static void patterns_print(const struct analyze_result *analysis,
                           const struct analyze_pattern *list, size_t n,
                           const struct report_style *style)
{
    const uint64_t left_out = analysis->profile->patterns_left_out;
    struct report_table *table = report_table_new();
    report_table_column(table, REPORT_TABLE_LEFT, "of");
    report_table_column(table, REPORT_TABLE_RIGHT, "rows x columns");
    report_table_column(table, REPORT_TABLE_RIGHT, "nonzeros");
    report_table_column(table, REPORT_TABLE_RIGHT, "%");
    report_table_optional(table, 1);
    report_table_column(table, REPORT_TABLE_RIGHT, "colours");
    report_table_optional(table, 1);
    report_table_column(table, REPORT_TABLE_RIGHT, "calls");
    report_table_optional(table, 2);
    report_table_column(table, REPORT_TABLE_LEFT, "line, in");
    for (size_t i = 0; i < n; i++)
        patterns_add_row(table, analysis, &list[i], style);
    if (n > 0)
        report_table_print(table, style->out, style->exact ? 0 : style->width, style->utf8);
    else if (left_out == 0)
        fputs("The program found no pattern (ad_jacobian_pattern).\n", style->out);
    report_table_free(table);
    if (left_out > 0)
        report_text_paragraph(style->out, style->width,
                              "%llu calls found a pattern for which there was no room.",
                              (unsigned long long)left_out);
}

static void pattern_put_json(struct base_json *json, const struct analyze_pattern *p)
{
    const struct read_pattern *found = p->found;
    base_json_object(json, NULL);
    base_json_text(json, "kind", pattern_kind(found));
    base_json_text(json, "file", p->line.file);
    base_json_u64(json, "line", p->line.line);
    base_json_text(json, "function", p->line.function);
    base_json_u64(json, "rows", found->rows);
    base_json_u64(json, "columns", found->columns);
    base_json_u64(json, "nonzeros", found->values);
    report_json_known(json, "colours", found->colours, found->coloured);
    base_json_u64(json, "calls", p->calls);
    base_json_u64(json, "picture_rows", found->height);
    base_json_u64(json, "picture_columns", found->width);
    base_json_array(json, "picture");
    for (size_t i = 0; i < (size_t)found->height * found->width; i++)
        base_json_u64(json, NULL, found->cell[i]);
    base_json_end(json);
    base_json_end(json);
}

void report_patterns(const struct analyze_result *analysis, const struct report_style *style)
{
    size_t n;
    struct analyze_pattern *list = analyze_patterns(analysis, &n);
    if (style->json) {
        struct base_json json;
        report_json_begin(&json, style->out, "patterns");
        report_json_profile(&json, "profile", analysis->profile);
        base_json_array(&json, "rows");
        for (size_t i = 0; i < n; i++)
            pattern_put_json(&json, &list[i]);
        base_json_end(&json);
        base_json_u64(&json, "left_out", analysis->profile->patterns_left_out);
        base_json_finish(&json);
    } else {
        patterns_print(analysis, list, n, style);
    }
    free(list);
}
