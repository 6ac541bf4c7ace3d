/* report_csv.c: see report_csv.h. */
#include "report_csv.h"

#include "base_json.h"
#include "base_memory.h"
#include "report_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static void csv_begin_cell(struct report_csv *csv)
{
    if (csv->has_cell)
        putc(',', csv->out);
    csv->has_cell = true;
}

void report_csv_put(FILE *out, const char *text)
{
    char *shown = base_json_shown(base_strdup(text));
    for (const char *at = shown; *at; at++) {
        if (*at == '"')
            putc('"', out);
        putc(*at, out);
    }
    free(shown);
}

void report_csv_text(struct report_csv *csv, const char *text)
{
    csv_begin_cell(csv);
    putc('"', csv->out);
    report_csv_put(csv->out, text);
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
