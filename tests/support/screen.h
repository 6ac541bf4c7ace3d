/* screen.h: a terminal of known size, as far as `tapescope live` uses one: what a program writes to
 * it, as a picture.
 *
 * A sequence that it does not know is a failed assertion.
 */
#ifndef SCREEN_H
#define SCREEN_H

#include <stdbool.h>
#include <stddef.h>

enum { SCREEN_ROWS = 60, SCREEN_COLUMNS = 240, SCREEN_SEQUENCE = 64 };

struct screen {
    unsigned rows, columns, row, column; /* the cursor, from 0 */
    unsigned rows_before;                /* till what is written is for the new size; 0: it is */
    unsigned top, bottom;                /* of the scrolling region, the last row included */
    unsigned saved_row, saved_column;
    bool wraps, saved_wraps;                    /* the next character goes to the next row */
    char cell[SCREEN_ROWS][SCREEN_COLUMNS + 1]; /* what is not ASCII is a "?" */
    char sequence[SCREEN_SEQUENCE];
    size_t n_sequence; /* of a control sequence under way, the escape included */
    char *gone;        /* rows that were scrolled away at the top, with line ends */
    size_t n_gone;
    unsigned n_wrapped_below; /* characters that went beyond the end of a row below the region */
    unsigned n_colors;        /* sequences that set a colour */
};

void screen_open(struct screen *screen, unsigned rows, unsigned columns);
void screen_close(struct screen *screen);
/* Cells beyond the new size are gone. */
void screen_resize(struct screen *screen, unsigned rows, unsigned columns);
void screen_write(struct screen *screen, const char *data, size_t n);
/* The row without spaces at its end. */
const char *screen_row(const struct screen *screen, unsigned row);
/* The first row that holds the text, or -1. */
int screen_find(const struct screen *screen, const char *text);
/* All of it, with line ends, to look at; the caller frees it. */
char *screen_text(const struct screen *screen);

#endif
