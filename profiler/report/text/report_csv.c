/* report_csv.c: see report_csv.h. */
#include "report_csv.h"

#include "base_json.h"
#include "report_text.h"

#include <inttypes.h>
#include <math.h>

static void csv_begin_cell(struct report_csv *csv)
{
    if (csv->has_cell)
        putc(',', csv->out);
    csv->has_cell = true;
}

void report_csv_text(struct report_csv *csv, const char *text)
{
    csv_begin_cell(csv);
    putc('"', csv->out);
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        const unsigned n = base_json_character(at);
        if (*at == '"')
            fputs("\"\"", csv->out);
        else if (n == 0 || base_json_control(at, n) != 0)
            putc('?', csv->out);
        else
            fwrite(at, 1, n, csv->out);
        at += n ? n : 1;
    }
    putc('"', csv->out);
}

void report_csv_u64(struct report_csv *csv, uint64_t n)
{
    csv_begin_cell(csv);
    fprintf(csv->out, "%" PRIu64, n);
}

void report_csv_double(struct report_csv *csv, double x)
{
    csv_begin_cell(csv);
    if (isfinite(x))
        fprintf(csv->out, "%.9g", x);
}

void report_csv_empty(struct report_csv *csv)
{
    csv_begin_cell(csv);
}

void report_csv_end(struct report_csv *csv)
{
    fputs("\r\n", csv->out);
    csv->has_cell = false;
}

void report_csv_where(struct report_csv *csv, const struct analyze_line *line)
{
    char ops[256];
    report_text_names(ops, sizeof ops, &line->ops, ",");
    report_csv_text(csv, ops);
    report_csv_text(csv, line->function ? line->function : line->own ? "(tape)" : "");
    report_csv_text(csv, line->file ? line->file : line->module ? line->module : "");
    report_csv_u64(csv, line->line);
}

void report_csv_titles(struct report_csv *csv, const char *const *title, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        csv_begin_cell(csv);
        fputs(title[i], csv->out);
    }
}
