/* gates_print.c: gates as lines, JSON and JUnit's XML. See gates.h. */
#include "gates.h"

#include "report_json.h"
#include "report_text.h"

static void add_row(struct table *table, const struct gate *gate, const struct report_style *style)
{
    table_row(table);
    table_cell(table, gate->failed ? "FAILED" : "ok");
    table_cell(table, gate->name);
    table_cellf(table, "%s: %s", gate->subject, gate->text);
    if (style->color)
        table_color(table, gate->failed ? "1;31" : "32");
}

static void print_json(const struct gates *gates, FILE *out)
{
    struct base_json json;
    report_json_begin(&json, out, "check");
    base_json_u64(&json, "failed", gates_failed(gates));
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

void gates_print(const struct gates *gates, const struct report_style *style)
{
    if (style->json) {
        print_json(gates, style->out);
        return;
    }
    struct table *table = table_new();
    for (int i = 0; i < 3; i++)
        table_column(table, TABLE_LEFT, NULL);
    for (int failed = 1; failed >= 0; failed--)
        for (size_t i = 0; i < gates->n; i++)
            if (gates->gate[i].failed == failed)
                add_row(table, &gates->gate[i], style);
    table_print(table, style->out, 0, style->utf8);
    table_free(table);
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

void gates_put_junit(const struct gates *gates, FILE *out)
{
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuites tests=\"%zu\" failures=\"%zu\">\n"
            "<testsuite name=\"tapescope check\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" "
            "skipped=\"0\">\n",
            gates->n, gates_failed(gates), gates->n, gates_failed(gates));
    for (size_t i = 0; i < gates->n; i++) {
        const struct gate *gate = &gates->gate[i];
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
