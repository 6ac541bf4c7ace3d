/* screen.c: see screen.h. */
#include "screen.h"
#include "check_quietly.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void clear(struct screen *screen, unsigned row, unsigned from)
{
    memset(screen->cell[row] + from, ' ', SCREEN_COLUMNS - from);
    screen->cell[row][SCREEN_COLUMNS] = '\0';
}

void screen_open(struct screen *screen, unsigned rows, unsigned columns)
{
    ck_assert(rows <= SCREEN_ROWS && columns <= SCREEN_COLUMNS);
    *screen = (struct screen){.rows = rows, .columns = columns, .bottom = rows - 1};
    for (unsigned i = 0; i < SCREEN_ROWS; i++)
        clear(screen, i, 0);
}

void screen_close(struct screen *screen)
{
    free(screen->gone);
}

void screen_resize(struct screen *screen, unsigned rows, unsigned columns)
{
    while (screen->row >= rows) { /* as terminals do: what is above goes away */
        memmove(screen->cell[0], screen->cell[1], sizeof screen->cell - sizeof screen->cell[0]);
        clear(screen, SCREEN_ROWS - 1, 0);
        screen->row--;
        screen->saved_row -= screen->saved_row > 0;
    }
    for (unsigned i = 0; i < SCREEN_ROWS; i++)
        clear(screen, i, i < rows ? columns : 0);
    screen->rows_before = screen->rows;
    screen->rows = rows;
    screen->columns = columns;
    screen->top = 0;
    screen->bottom = rows - 1;
    screen->column = screen->column < columns ? screen->column : columns - 1;
}

const char *screen_row(const struct screen *screen, unsigned row)
{
    static char text[4][SCREEN_COLUMNS + 1];
    static unsigned turn;
    char *to = text[turn++ % 4];
    size_t n = screen->columns;
    memcpy(to, screen->cell[row], n);
    while (n > 0 && to[n - 1] == ' ')
        n--;
    to[n] = '\0';
    return to;
}

static void keep_gone(struct screen *screen)
{
    const char *row = screen_row(screen, 0);
    const size_t n = strlen(row);
    screen->gone = realloc(screen->gone, screen->n_gone + n + 2);
    ck_assert_ptr_nonnull(screen->gone);
    memcpy(screen->gone + screen->n_gone, row, n);
    screen->n_gone += n;
    memcpy(screen->gone + screen->n_gone++, "\n", 2);
}

static void go_down(struct screen *screen)
{
    screen->wraps = false;
    if (screen->row != screen->bottom) {
        screen->row += screen->row + 1 < screen->rows;
        return;
    }
    if (screen->top == 0)
        keep_gone(screen);
    for (unsigned i = screen->top; i < screen->bottom; i++)
        memcpy(screen->cell[i], screen->cell[i + 1], sizeof screen->cell[i]);
    clear(screen, screen->bottom, 0);
}

static void put(struct screen *screen, char c)
{
    if (screen->wraps) {
        screen->n_wrapped_below += screen->row > screen->bottom;
        screen->column = 0;
        go_down(screen);
    }
    screen->cell[screen->row][screen->column] = c;
    screen->wraps = screen->column + 1 == screen->columns;
    screen->column += !screen->wraps;
}

static unsigned number(const char **at, unsigned otherwise)
{
    char *end;
    const unsigned long n = strtoul(*at, &end, 10);
    const bool given = end != *at;
    *at = *end == ';' ? end + 1 : end;
    return given ? (unsigned)n : otherwise;
}

static void control(struct screen *screen, const char *at, char last)
{
    const unsigned first = last == 'm' ? 0 : number(&at, last == 'r' || last == 'H' ? 1 : 0);
    const unsigned second =
        last == 'r' || last == 'H' ? number(&at, last == 'r' ? screen->rows : 1) : 0;
    switch (last) {
    case 'm':
        screen->n_colors += *at != 'm' && *at != '0';
        return;
    case 'r':
        ck_assert(first >= 1 && second > first &&
                  (second <= screen->rows || second <= screen->rows_before));
        if (second <= screen->rows)
            screen->rows_before = 0;
        screen->top = first - 1;
        screen->bottom = (second <= screen->rows ? second : screen->rows) - 1;
        screen->row = screen->column = 0;
        break;
    case 'H':
        ck_assert(first >= 1 && second == 1 &&
                  (first <= screen->rows || first <= screen->rows_before));
        screen->row = (first <= screen->rows ? first : screen->rows) - 1;
        screen->column = 0;
        break;
    case 'A':
        screen->row -= first < screen->row ? first : screen->row;
        break;
    case 'K':
        ck_assert_uint_eq(first, 2);
        clear(screen, screen->row, 0);
        return;
    case 'J':
        ck_assert_uint_eq(first, 0);
        clear(screen, screen->row, screen->column);
        for (unsigned i = screen->row + 1; i < screen->rows; i++)
            clear(screen, i, 0);
        return;
    default:
        ck_abort_msg("sequence that ends in '%c'", last);
    }
    screen->wraps = false;
}

/* One more character of a sequence; returns whether it is at its end. */
static bool sequence(struct screen *screen, char c)
{
    ck_assert_uint_lt(screen->n_sequence + 1, SCREEN_SEQUENCE);
    screen->sequence[screen->n_sequence++] = c;
    screen->sequence[screen->n_sequence] = '\0';
    if (screen->n_sequence == 2 && c == '[')
        return false;
    if (screen->sequence[1] == '[') {
        if (c < 0x40)
            return false;
        control(screen, screen->sequence + 2, c);
    } else if (c == '7') {
        screen->saved_row = screen->row;
        screen->saved_column = screen->column;
        screen->saved_wraps = screen->wraps;
    } else if (c == '8') {
        screen->row = screen->saved_row;
        screen->column = screen->saved_column;
        screen->wraps = screen->saved_wraps;
    } else {
        ck_assert_msg(c == 'D', "sequence of '%c'", c);
        go_down(screen);
    }
    return true;
}

void screen_write(struct screen *screen, const char *data, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char c = data[i];
        if (screen->n_sequence > 0) {
            if (sequence(screen, c))
                screen->n_sequence = 0;
        } else if (c == '\033') {
            screen->sequence[screen->n_sequence++] = c;
        } else if (c == '\r') {
            screen->column = 0;
            screen->wraps = false;
        } else if (c == '\n') {
            go_down(screen);
        } else if ((unsigned char)c >= 0xc0) {
            put(screen, '?');
        } else if ((unsigned char)c < 0x80) {
            ck_assert_msg(c >= ' ', "control character %d", c);
            put(screen, c);
        }
    }
}

int screen_find(const struct screen *screen, const char *text)
{
    for (unsigned i = 0; i < screen->rows; i++)
        if (strstr(screen_row(screen, i), text))
            return (int)i;
    return -1;
}

char *screen_text(const struct screen *screen)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    ck_assert_ptr_nonnull(out);
    for (unsigned i = 0; i < screen->rows; i++)
        fprintf(out, "|%s\n", screen_row(screen, i));
    fclose(out);
    return text;
}
