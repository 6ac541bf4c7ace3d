/* report_gates_print.c: gates as lines, JSON and JUnit's XML. See report_gates.h. */
#include "report_gates.h"

#include "report_json.h"
#include "report_text.h"

static void gates_print_add_row(struct report_table *table, const struct report_gate *gate,
                                const struct report_style *style)
{
    report_table_row(table);
    report_table_cell(table, gate->failed ? "FAILED" : "ok");
    report_table_cell(table, gate->name);
    report_table_cellf(table, "%s: %s", gate->subject, gate->text);
    if (style->color)
        report_table_color(table, gate->failed ? "1;31" : "32");
}

static void gates_print_print_json(const struct report_gates *gates, FILE *out)
{
    struct base_json json;
    report_json_begin(&json, out, "check");
    base_json_u64(&json, "failed", report_gates_failed(gates));
    base_json_array(&json, "gates");
    for (size_t i = 0; i < gates->n; i++) {
        base_json_object(&json, NULL);
        base_json_text(&json, "name", gates->gate[i].name);
        base_json_text(&json, "subject", gates->gate[i].subject);
        base_json_bool(&json, "ok", !gates->gate[i].failed);
        base_json_text(&json, "text", gates->gate[i].text);
        base_json_end(&json);
    }
    base_json_end(&json);
    base_json_finish(&json);
}

void report_gates_print(const struct report_gates *gates, const struct report_style *style)
{
    if (style->json) {
        gates_print_print_json(gates, style->out);
        return;
    }
    struct report_table *table = report_table_new();
    for (int i = 0; i < 3; i++)
        report_table_column(table, REPORT_TABLE_LEFT, NULL);
    for (int failed = 1; failed >= 0; failed--)
        for (size_t i = 0; i < gates->n; i++)
            if (gates->gate[i].failed == failed)
                gates_print_add_row(table, &gates->gate[i], style);
    report_table_print(table, style->out, 0, style->utf8);
    report_table_free(table);
}

/* Text within an attribute: XML 1.0 has no control characters, and bytes that are no UTF-8 are
 * none of its characters either. */
static void put_xml(FILE *out, const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        unsigned n = base_json_character(at);
        if (n == 0 || base_json_control(at, n) != 0)
            putc('?', out);
        else if (*at == '<')
            fputs("&lt;", out);
        else if (*at == '&')
            fputs("&amp;", out);
        else if (*at == '"')
            fputs("&quot;", out);
        else
            fwrite(at, 1, n, out);
        at += n ? n : 1;
    }
}

void report_gates_put_junit(const struct report_gates *gates, FILE *out)
{
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuites tests=\"%zu\" failures=\"%zu\">\n"
            "<testsuite name=\"tapescope check\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" "
            "skipped=\"0\">\n",
            gates->n, report_gates_failed(gates), gates->n, report_gates_failed(gates));
    for (size_t i = 0; i < gates->n; i++) {
        const struct report_gate *gate = &gates->gate[i];
        fputs("<testcase classname=\"", out);
        put_xml(out, gate->name);
        fputs("\" name=\"", out);
        put_xml(out, gate->subject);
        if (gate->failed) {
            fputs("\"><failure message=\"", out);
            put_xml(out, gate->text);
            fputs("\"/></testcase>\n", out);
        } else {
            fputs("\"/>\n", out);
        }
    }
    fputs("</testsuite>\n</testsuites>\n", out);
}
