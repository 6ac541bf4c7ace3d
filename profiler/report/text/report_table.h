/* report_table.h: text in columns.
 *
 * Invariant: what is printed holds no control characters but line ends and, if asked for, colours;
 */
#ifndef PROFILER_REPORT_TABLE_H
#define PROFILER_REPORT_TABLE_H

#include <stdbool.h>
#include <stdio.h>

enum report_table_align { REPORT_TABLE_LEFT, REPORT_TABLE_RIGHT };
enum {
    REPORT_TABLE_MAX_COLUMNS = 24,
    REPORT_TABLE_ASKED_FOR = 20, /* ranks from here on are of columns that the user has asked for */
};

struct report_table;

/* An empty table. */
struct report_table *report_table_new(void);
/* Adds a column; all columns come before the first row. NULL title: no heading. */
void report_table_column(struct report_table *table, enum report_table_align align,
                         const char *title);
/* The column just added may be left out where there is not enough width for the last one: columns
 * of a higher rank go first, then those of a lower one. Rank 0, as all have at first: never. */
void report_table_optional(struct report_table *table, unsigned rank);
/* The column just added is shown at no width: of this table's rows nobody knows what is in it. */
void report_table_hide(struct report_table *table);
/* The last column is never cut; optional columns go while it has less than `enough`. */
void report_table_keep_last(struct report_table *table, unsigned enough);
/* Begins a row. */
void report_table_row(struct report_table *table);
/* Appends a cell to the row. */
void report_table_cell(struct report_table *table, const char *text);
void report_table_cellf(struct report_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The n bytes from `from` on of the cell just added are a list with commas: where the last column
 * is cut, its ends go first, in favour of what follows it. */
void report_table_list(struct report_table *table, size_t from, size_t n);
/* Columns of times, and cells that name a phase, are printed in the phase's colour. */
void report_table_phases(struct report_table *table, bool colored);

/* In a table with those colours, cells that begin with a sign have that of more or less. */
void report_table_changes(struct report_table *table);

/* The colours of the page in 256 colours, which can be read on dark and on light: forward,
 * backward, computed again, more, less; the text of a phase's name ("~forward" is one), or NULL. */
#define REPORT_COLOR_FORWARD "38;5;32"
#define REPORT_COLOR_BACKWARD "38;5;172"
#define REPORT_COLOR_RECOMPUTE "38;5;36"
#define REPORT_COLOR_MORE "38;5;167"
#define REPORT_COLOR_LESS "38;5;71"
const char *report_table_phase_color(const char *name);

/* The row is printed in this colour (an SGR code such as "1;31"; static storage). */
void report_table_color(struct report_table *table, const char *code);

/* Prints heading and rows. width: to which the last column is cut, 0: not at all. Before it is cut,
 * columns of zeros are left out, then optional ones in which nothing was measured, then those that
 * report_table_optional() names until the last one has room: 20 columns, 28 where a rank of 5 or 6
 * is left, 60 where one of 7 or more is, unless the user has asked for that column. utf8: the cut
 * may be shown by an ellipsis. */
void report_table_print(const struct report_table *table, FILE *out, unsigned width, bool utf8);
/* Whether the column with this heading is printed at this width. */
bool report_table_shows(const struct report_table *table, const char *title, unsigned width);
void report_table_free(struct report_table *table);

/* Writes text with control characters replaced by "?" and tabs by spaces, cut to `limit` columns
 * (0: not). Returns how many columns it took. */
unsigned report_table_put_text(FILE *out, const char *text, unsigned limit, bool utf8);

#endif
