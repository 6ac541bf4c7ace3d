/* report_text.h: cells that several reports share.
 *
 * Private to profiler/report.
 */
#ifndef PROFILER_REPORT_TEXT_H
#define PROFILER_REPORT_TEXT_H

#include "report.h"
#include "report_table.h"
#include "report_units.h"

/* A member of 64 bits, at this place of `of`. */
enum report_unit { REPORT_UNIT_TIME, REPORT_UNIT_BYTES, REPORT_UNIT_COUNT };
void report_cell_member(struct report_table *table, enum report_unit unit, const void *of,
                        size_t at, const struct report_style *style);

/* Cells in the style: short with a unit, or exact. */
void report_cell_time(struct report_table *table, uint64_t ns, const struct report_style *style);
/* A cost's time in a phase, and in all that the style shows: "~" before an estimate, "-" where
 * it is not known. */
enum { REPORT_TEXT_TIME_ROOM = REPORT_UNITS_ROOM + 1 };
const char *report_text_phase(char buf[REPORT_TEXT_TIME_ROOM], const struct analyze_cost *cost,
                              enum report_phase phase, const struct report_style *style);
void report_cell_phase(struct report_table *table, const struct analyze_cost *cost,
                       enum report_phase phase, const struct report_style *style);
void report_cell_total(struct report_table *table, const struct analyze_cost *cost,
                       const struct report_style *style);
/* The time of all phases. */
void report_cell_all_time(struct report_table *table, const struct analyze_cost *cost,
                          const struct report_style *style);
/* Backward over forward time, likewise; then `mark`. */
void report_cell_ratio(struct report_table *table, const struct analyze_cost *cost,
                       const char *mark);
void report_cell_bytes(struct report_table *table, uint64_t bytes,
                       const struct report_style *style);
void report_cell_count(struct report_table *table, uint64_t n, const struct report_style *style);
/* Bytes times ns that they lived, under the title that report_text_byte_time_title() says. */
void report_cell_byte_time(struct report_table *table, double byte_ns,
                           const struct report_style *style);
const char *report_text_byte_time_title(const struct report_style *style);

/* A row's "line, op, function" as the view names it; report_text_where_title() heads the column. */
void report_text_where(char *buf, size_t n, const struct analyze_result *analysis,
                       const struct analyze_line *line, enum analyze_by by);
void report_cell_where(struct report_table *table, const struct analyze_result *analysis,
                       const struct analyze_line *line, enum analyze_by by);
const char *report_text_where_title(enum analyze_by by);

/* "file.c:12", or what is known instead. */
void report_text_place(char *buf, size_t n, const struct analyze_result *analysis,
                       const struct analyze_line *line);

/* What bytes of a tape are, by enum read_residual_kind. */
extern const char *const report_text_kind_name[READ_RESIDUAL_KINDS];

/* The names, separated by `separator`, with a "+" where there were more. Truncates. */
void report_text_names(char *buf, size_t n, const struct analyze_names *names,
                       const char *separator);

enum { REPORT_TEXT_SCOPE_ROOM = 1024 };
/* "train/layer index=3", or its end where it is very long. */
void report_text_scope_path(char buf[REPORT_TEXT_SCOPE_ROOM],
                            const struct analyze_scope_costs *costs,
                            const struct analyze_scope_cost *scope);
/* The same of a scope whose name others have as well, else its name alone. */
void report_text_scope_name(char buf[REPORT_TEXT_SCOPE_ROOM],
                            const struct analyze_scope_costs *costs,
                            const struct analyze_scope_cost *scope);

/* Columns that a text of UTF-8 takes. */
unsigned report_text_columns(const char *text);

/* Writes the text as a paragraph, broken between words so that lines are at most `width` columns
 * where words allow; 0: one line. */
void report_text_paragraph(FILE *out, unsigned width, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What is told of call paths where there are statements. */
void report_text_runs_note(const struct report_style *style);

/* What part of the run AD was (analyze_part_make), in words, such as "62.1% of the run (2.40s of
 * 3.86s): forward 20.1%, backward 40.0%, the profiler 2.0%"; of very many calls also that to look
 * at each took time. False: it is not known. */
enum { REPORT_TEXT_PART_ROOM = 256 };
bool report_text_part(char buf[REPORT_TEXT_PART_ROOM], const struct analyze_result *analysis,
                      bool utf8);
/* The same as a sentence, if it is known. */
void report_text_part_note(const struct analyze_result *analysis, const struct report_style *style);

/* Of a sampled profile: what its times are, and from how many samples. */
void report_text_sampled_note(const struct analyze_result *analysis,
                              const struct report_style *style);
/* Why a profile without times has none, within a sentence. */
const char *report_text_no_times(const struct read_profile *profile);
/* Where no times were taken, that they were not. */
void report_text_untimed_note(const struct analyze_result *analysis, FILE *out);
/* A line for each expectation of the source that does not hold, up to five. */
void report_text_expectations_note(const struct analyze_result *analysis,
                                   const struct report_style *style);

/* Says how to get source lines, if some are missing. */
void report_text_unlined_note(const struct analyze_result *analysis, FILE *out);

#endif
