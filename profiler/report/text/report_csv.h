/* report_csv.h: tables for spreadsheets.
 *
 * The form: RFC 4180, with texts always in quotes and numbers without units. Invariant: names and
 * order of a table's columns stay, new ones come behind; docs/reference/json.md lists them.
 */
#ifndef PROFILER_REPORT_CSV_H
#define PROFILER_REPORT_CSV_H

#include "report.h"

/* Cells of a row, from the left; the row ends by report_csv_end. Controls in texts become question
 * marks, what is no finite number is an empty cell. */
struct report_csv {
    FILE *out;
    bool has_cell;
};
void report_csv_text(struct report_csv *csv, const char *text);
void report_csv_u64(struct report_csv *csv, uint64_t n);
void report_csv_double(struct report_csv *csv, double x);
void report_csv_empty(struct report_csv *csv);
void report_csv_end(struct report_csv *csv);

/* Where a row is: ops with commas between, function, file or else module, line or 0. */
void report_csv_where(struct report_csv *csv, const struct analyze_line *line);
#define REPORT_CSV_WHERE "ops", "function", "file", "line"
void report_csv_titles(struct report_csv *csv, const char *const *title, size_t n);

/* What stands between the quotes of such a text (RFC 4180). */
void report_csv_put(FILE *out, const char *text);

#endif
