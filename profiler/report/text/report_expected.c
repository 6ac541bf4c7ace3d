/* report_expected.c: what the source expects beside what was measured. */
#include "report_json.h"
#include "report_text.h"
#include "report_units.h"

#include <stdlib.h>

enum { NOTED = 5 };

/* A ratio, or bytes in the style. */
static const char *put_number(char buf[REPORT_UNITS_ROOM], const struct analyze_expected_cost *e,
                              double x, const struct report_style *style)
{
    if (e->stated->kind == READ_EXPECT_TAPE_BYTES && !style->exact && x >= 0 && x < 0x1p63)
        return report_units_bytes(buf, read_whole(x));
    if (!style->exact)
        return report_units_against(buf, x, e->stated->bound);
    snprintf(buf, REPORT_UNITS_ROOM, "%.12g", x);
    return buf;
}

static const char *expected_what(const struct analyze_expected_cost *e)
{
    return e->stated->kind == READ_EXPECT_TAPE_BYTES ? "tape" : "b/f";
}

/* "mlp.c:41", or what is known. */
static void put_where(char *buf, size_t n, const struct analyze_result *analysis,
                      const struct analyze_expected_cost *e)
{
    if (e->file)
        snprintf(buf, n, "%s:%u", report_short_path(analysis, e->file), (unsigned)e->line);
    else
        snprintf(buf, n, "0x%llx", (unsigned long long)e->stated->pc);
}

/* "scope layer", "dense", or "". */
static void put_subject(char *buf, size_t n, const struct analyze_expected_costs *costs,
                        const struct analyze_expected_cost *e)
{
    char scope[REPORT_TEXT_SCOPE_ROOM];
    if (e->scope)
        report_text_scope_name(scope, &costs->scopes, &costs->scopes.scope[e->scope - 1]);
    snprintf(buf, n, "%s%s", e->scope ? "scope " : "",
             e->scope      ? scope
             : e->function ? e->function
                           : "");
}

static void expected_add_row(struct report_table *table, const struct analyze_result *analysis,
                             const struct analyze_expected_costs *costs,
                             const struct analyze_expected_cost *e,
                             const struct report_style *style)
{
    char number[REPORT_UNITS_ROOM], where[512], subject[REPORT_TEXT_SCOPE_ROOM + 8];
    report_table_row(table);
    report_table_cell(table, !e->known ? "-" : e->holds ? "ok" : "FAIL");
    if (style->color && !e->holds)
        report_table_color(table, "1;31");
    report_table_cell(table, expected_what(e));
    report_table_cell(table, put_number(number, e, e->stated->bound, style));
    report_table_cell(table, e->known ? put_number(number, e, e->measured, style) : "-");
    report_cell_count(table, e->times, style);
    put_where(where, sizeof where, analysis, e);
    put_subject(subject, sizeof subject, costs, e);
    report_table_cellf(table, "%s %s", where, subject);
}

static void expected_print_table(const struct analyze_result *analysis,
                                 const struct analyze_expected_costs *costs,
                                 const struct report_style *style)
{
    if (costs->n == 0) {
        fputs("The program states no expectations (AD_EXPECT_RATIO).\n", style->out);
        return;
    }
    struct report_table *table = report_table_new();
    report_table_column(table, REPORT_TABLE_LEFT, "held");
    report_table_column(table, REPORT_TABLE_LEFT, "what");
    report_table_optional(table, 1);
    report_table_column(table, REPORT_TABLE_RIGHT, "at most");
    report_table_column(table, REPORT_TABLE_RIGHT, "measured");
    report_table_column(table, REPORT_TABLE_RIGHT, "times");
    report_table_optional(table, 2);
    report_table_column(table, REPORT_TABLE_LEFT, "line, of");
    for (int failed = 1; failed >= 0; failed--)
        for (size_t i = 0; i < costs->n; i++)
            if (costs->expected[i].holds == !failed)
                expected_add_row(table, analysis, costs, &costs->expected[i], style);
    report_table_phases(table, style->color);
    report_table_print(table, style->out, style->exact ? 0 : style->width, style->utf8);
    report_table_free(table);
}

static void expected_print_json(const struct analyze_result *analysis,
                                const struct analyze_expected_costs *costs,
                                const struct report_style *style)
{
    struct base_json json;
    report_json_begin(&json, style->out, "expectations");
    report_json_profile(&json, "profile", analysis->profile);
    base_json_array(&json, "rows");
    for (size_t i = 0; i < costs->n; i++) {
        const struct analyze_expected_cost *e = &costs->expected[i];
        base_json_object(&json, NULL);
        base_json_text(&json, "kind",
                       e->stated->kind == READ_EXPECT_TAPE_BYTES ? "tape_bytes" : "ratio");
        base_json_text(&json, "file", e->file);
        base_json_u64(&json, "line", e->line);
        base_json_text(&json, "function", e->function);
        char scope[REPORT_TEXT_SCOPE_ROOM];
        if (e->scope)
            report_text_scope_path(scope, &costs->scopes, &costs->scopes.scope[e->scope - 1]);
        base_json_text(&json, "scope", e->scope ? scope : NULL);
        base_json_double(&json, "bound", e->stated->bound);
        if (e->known)
            base_json_double(&json, "measured", e->measured);
        else
            base_json_null(&json, "measured");
        base_json_u64(&json, "times", e->times);
        base_json_bool(&json, "holds", e->holds);
        base_json_end(&json);
    }
    base_json_end(&json);
    base_json_u64(&json, "failed", costs->n_failed);
    base_json_finish(&json);
}

void report_expectations(const struct analyze_result *analysis, const struct report_style *style,
                         size_t *n_failed)
{
    struct analyze_expected_costs costs;
    analyze_expected_costs_make(&costs, analysis);
    if (style->json)
        expected_print_json(analysis, &costs, style);
    else
        expected_print_table(analysis, &costs, style);
    *n_failed = costs.n_failed;
    analyze_expected_costs_free(&costs);
}

void report_text_expectations_note(const struct analyze_result *analysis,
                                   const struct report_style *style)
{
    if (analysis->profile->n_expectations == 0)
        return;
    struct analyze_expected_costs costs;
    analyze_expected_costs_make(&costs, analysis);
    size_t noted = 0;
    for (size_t i = 0; i < costs.n; i++) {
        const struct analyze_expected_cost *e = &costs.expected[i];
        char bound[REPORT_UNITS_ROOM], measured[REPORT_UNITS_ROOM], where[512],
            subject[REPORT_TEXT_SCOPE_ROOM + 8];
        if (e->holds || ++noted > NOTED)
            continue;
        put_where(where, sizeof where, analysis, e);
        put_subject(subject, sizeof subject, &costs, e);
        put_number(bound, e, e->stated->bound, style);
        put_number(measured, e, e->measured, style);
        char line[REPORT_TEXT_SCOPE_ROOM + 1200];
        snprintf(line, sizeof line, "%s expects %s <= %s, measured %s: %s", where, expected_what(e),
                 bound, measured, subject);
        report_table_put_text(style->out, line, style->exact ? 0 : style->width, style->utf8);
        putc('\n', style->out);
    }
    if (noted > NOTED)
        fprintf(style->out, "%zu more expectations do not hold.\n", noted - NOTED);
    analyze_expected_costs_free(&costs);
}
