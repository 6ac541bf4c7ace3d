/* report_table.c: see report_table.h. */
#include "report_table.h"
#include "base_json.h"

#include "base_array.h"
#include "base_memory.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct table_row {
    char *cell[REPORT_TABLE_MAX_COLUMNS];
    unsigned n;
    size_t list_from, list_n; /* of the last cell: see report_table_list() */
    const char *color;
};

struct report_table {
    struct {
        enum report_table_align align;
        const char *title;
        unsigned rank; /* 0: always printed */
        bool hidden;
    } column[REPORT_TABLE_MAX_COLUMNS];
    unsigned n_columns;
    unsigned enough; /* columns for the last one; 0: the usual, and it is cut */
    bool colored;    /* by phases */
    bool changes;    /* and by signs */
    struct table_row *row;
    size_t n_rows, room;
};

struct report_table *report_table_new(void)
{
    return base_calloc(1, sizeof(struct report_table));
}

void report_table_column(struct report_table *table, enum report_table_align align,
                         const char *title)
{
    if (table->n_columns == REPORT_TABLE_MAX_COLUMNS)
        return;
    table->column[table->n_columns].align = align;
    table->column[table->n_columns++].title = title;
}

void report_table_optional(struct report_table *table, unsigned rank)
{
    if (table->n_columns > 0)
        table->column[table->n_columns - 1].rank = rank;
}

void report_table_hide(struct report_table *table)
{
    if (table->n_columns > 0)
        table->column[table->n_columns - 1].hidden = true;
}

void report_table_keep_last(struct report_table *table, unsigned enough)
{
    table->enough = enough;
}

void report_table_row(struct report_table *table)
{
    BASE_ARRAY_GROW(table->row, table->n_rows, &table->room);
    table->row[table->n_rows++] = (struct table_row){0};
}

/* Takes ownership of the text. */
static void add_cell(struct report_table *table, char *text)
{
    struct table_row *row = table->n_rows > 0 ? &table->row[table->n_rows - 1] : NULL;
    if (row && row->n < table->n_columns)
        row->cell[row->n++] = text;
    else
        free(text);
}

void report_table_cell(struct report_table *table, const char *text)
{
    add_cell(table, base_strdup(text));
}

void report_table_cellf(struct report_table *table, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_cell(table, base_vasprintf(format, arguments));
    va_end(arguments);
}

void report_table_list(struct report_table *table, size_t from, size_t n)
{
    if (table->n_rows > 0) {
        table->row[table->n_rows - 1].list_from = from;
        table->row[table->n_rows - 1].list_n = n;
    }
}

void report_table_phases(struct report_table *table, bool colored)
{
    table->colored = colored;
}

void report_table_changes(struct report_table *table)
{
    table->changes = true;
}

/* "+1.2ms", "~-3.0%", "x12"; NULL: it is no change. */
static const char *table_change_color(const char *text)
{
    text += *text == '~';
    const bool more = *text == '+' || *text == 'x', less = *text == '-';
    if ((!more && !less) || text[1] < '0' || text[1] > '9')
        return NULL;
    return more ? REPORT_COLOR_MORE : REPORT_COLOR_LESS;
}

const char *report_table_phase_color(const char *name)
{
    static const struct {
        const char *name, *color;
    } phases[] = {
        {"forward", REPORT_COLOR_FORWARD},   {"op", REPORT_COLOR_FORWARD},
        {"backward", REPORT_COLOR_BACKWARD}, {"pullback", REPORT_COLOR_BACKWARD},
        {"sweep", REPORT_COLOR_BACKWARD},    {"recompute", REPORT_COLOR_RECOMPUTE},
    };
    if (!name)
        return NULL;
    name += *name == '~';
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++)
        if (strcmp(name, phases[i].name) == 0)
            return phases[i].color;
    return NULL;
}

void report_table_color(struct report_table *table, const char *code)
{
    if (table->n_rows > 0)
        table->row[table->n_rows - 1].color = code;
}

/* The bytes of the character at text, well formed or not. */
static size_t table_character(const unsigned char *text)
{
    size_t n = text[0] < 0xc0 ? 1 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
    for (size_t i = 1; i < n; i++)
        if ((text[i] & 0xc0) != 0x80)
            return i;
    return n;
}

static bool is_control(const unsigned char *text, size_t n)
{
    return (n == 1 && text[0] >= 0x80) || base_json_control(text, (unsigned)n) != 0;
}

enum { TAB = 8 };

static unsigned text_width(const char *text)
{
    unsigned width = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at; at += table_character(at))
        width += *at == '\t' ? TAB - width % TAB : 1;
    return width;
}

unsigned report_table_put_text(FILE *out, const char *text, unsigned limit, bool utf8)
{
    bool cut = limit > 0 && text_width(text) > limit;
    unsigned end = limit == 0 ? UINT_MAX : cut ? limit - 1 : limit;
    unsigned width = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at && width < end;) {
        size_t n = table_character(at);
        if (*at == '\t') {
            do
                putc(' ', out);
            while (++width % TAB != 0 && width < end);
        } else {
            if (is_control(at, n))
                putc('?', out);
            else
                fwrite(at, 1, n, out);
            width++;
        }
        at += n;
    }
    if (cut) {
        fputs(utf8 ? "\u2026" : "~", out);
        width++;
    }
    return width;
}

static void put_spaces(FILE *out, unsigned n)
{
    while (n-- > 0)
        putc(' ', out);
}

struct table_layout {
    unsigned width[REPORT_TABLE_MAX_COLUMNS];
    unsigned last_limit; /* 0: none */
    bool left_out[REPORT_TABLE_MAX_COLUMNS];
    bool utf8;
};

static unsigned table_greater(unsigned a, unsigned b)
{
    return a > b ? a : b;
}

/* The widest cell of a column. */
static unsigned column_width(const struct report_table *table, unsigned i)
{
    const char *title = table->column[i].title;
    unsigned width = title ? text_width(title) : 0;
    for (size_t j = 0; j < table->n_rows; j++)
        if (i < table->row[j].n)
            width = table_greater(width, text_width(table->row[j].cell[i]));
    return width;
}

/* "0", "~0", "0.0%", "-" or nothing. */
static bool table_is_zero(const char *text)
{
    text += *text == '~';
    return strspn(text, "0.%-") == strlen(text);
}

/* Whether a column says nothing: it has no other cells than zeros. "-" is not measured, which is
 * something, and so is an exponent of "0.00". */
static bool column_is_zero(const struct report_table *table, unsigned i)
{
    for (size_t j = 0; j < table->n_rows; j++) {
        const char *cell = i < table->row[j].n ? table->row[j].cell[i] : "";
        if (!table_is_zero(cell) || strchr(cell, '-') || strcmp(cell, "0.00") == 0)
            return false;
    }
    return true;
}

/* Whether a column that may be left out has no figure, but zeros and what was not measured. */
static bool column_has_no_figure(const struct report_table *table, unsigned i)
{
    if (table->column[i].rank == 0)
        return false;
    for (size_t j = 0; j < table->n_rows; j++) {
        const char *cell = i < table->row[j].n ? table->row[j].cell[i] : "";
        if (!table_is_zero(cell) || strcmp(cell, "0.00") == 0)
            return false;
    }
    return true;
}

/* Leaves out columns that say nothing, from the last on, while a name would be cut. */
static void leave_out_silent(const struct report_table *table, struct table_layout *layout,
                             unsigned *before, unsigned width,
                             bool (*is_silent)(const struct report_table *table, unsigned i))
{
    const unsigned last = layout->width[table->n_columns - 1];
    for (unsigned i = table->n_columns - 1; i-- > 1 && *before + last > width;) {
        if (layout->left_out[i] || !is_silent(table, i))
            continue;
        layout->left_out[i] = true;
        *before -= layout->width[i] + 1;
    }
}

/* The column to leave out next: the last of the highest rank; or n_columns: none is left. */
static unsigned next_optional(const struct report_table *table, const struct table_layout *layout)
{
    unsigned best = table->n_columns, rank = 0;
    for (unsigned i = 0; i < table->n_columns; i++) {
        if (layout->left_out[i] || table->column[i].rank == 0 || table->column[i].rank < rank)
            continue;
        best = i;
        rank = table->column[i].rank;
    }
    return best;
}

static bool is_of_little_use(unsigned rank)
{
    enum { LEAST = 7 };
    return rank >= LEAST && rank < REPORT_TABLE_ASKED_FOR;
}

static struct table_layout lay_out(const struct report_table *table, unsigned width, bool utf8)
{
    enum { LEAST = 8, ENOUGH = 20, LONG_NAME = 28, WHOLE_NAME = 60, OF_SOME_USE = 5 };
    struct table_layout layout = {.utf8 = utf8};
    unsigned before = 0;
    for (unsigned i = 0; i < table->n_columns; i++) {
        layout.width[i] = column_width(table, i);
        layout.left_out[i] = table->column[i].hidden;
        if (i + 1 < table->n_columns && !layout.left_out[i])
            before += layout.width[i] + 1;
    }
    if (width == 0 || table->n_columns == 0)
        return layout;
    unsigned last = layout.width[table->n_columns - 1];
    leave_out_silent(table, &layout, &before, width, column_is_zero);
    leave_out_silent(table, &layout, &before, width, column_has_no_figure);
    for (unsigned i; (i = next_optional(table, &layout)) < table->n_columns;) {
        const unsigned enough = table->enough > 0                         ? table->enough
                                : is_of_little_use(table->column[i].rank) ? WHOLE_NAME
                                : table->column[i].rank >= OF_SOME_USE    ? LONG_NAME
                                                                          : ENOUGH;
        if (before + (last < enough ? last : enough) <= width)
            break;
        layout.left_out[i] = true;
        before -= i + 1 < table->n_columns ? layout.width[i] + 1 : 0;
    }
    if (table->enough == 0)
        layout.last_limit = width > before + LEAST ? width - before : LEAST;
    return layout;
}

/* That of the column's phase, or of the one that a cell names. Zeros have none. */
static const char *table_color_of(const struct report_table *table, unsigned i, const char *text)
{
    const bool is_last = i + 1 == table->n_columns;
    const char *change = table->changes && !is_last ? table_change_color(text) : NULL;
    if (change)
        return change;
    const char *color =
        table_is_zero(text) || is_last ? NULL : report_table_phase_color(table->column[i].title);
    return color ? color : report_table_phase_color(text);
}

/* The row's last cell with as much of its list as leaves it within `limit`; to be freed. NULL: it
 * fits anyway, or has no list of several. */
static char *table_shorten(const struct table_row *row, unsigned limit, bool utf8)
{
    const char *text = row->cell[row->n - 1], *list = text + row->list_from;
    const char *behind = list + row->list_n;
    if (limit == 0 || row->list_n == 0 || text_width(text) <= limit)
        return NULL;
    for (size_t n = row->list_n; n-- > 1;) {
        if (list[n] != ',')
            continue;
        char *made = base_asprintf("%.*s%s%s", (int)(row->list_from + n + 1), text,
                                   utf8 ? "\u2026" : "~", behind);
        if (text_width(made) <= limit || !memchr(list, ',', n))
            return made;
        free(made);
    }
    return NULL;
}

static void put_cells(const struct report_table *table, const struct table_layout *layout,
                      FILE *out, const char *const *cell, unsigned n, const char *row_color)
{
    unsigned last = n;
    while (last > 0 && (layout->left_out[last - 1] || !cell[last - 1] || !*cell[last - 1]))
        last--; /* no spaces at the end of a line */
    for (unsigned i = 0; i < last; i++) {
        if (layout->left_out[i])
            continue;
        const char *text = cell[i] ? cell[i] : "";
        bool is_last = i + 1 == table->n_columns;
        unsigned limit = is_last ? layout->last_limit : 0;
        unsigned width = text_width(text);
        unsigned pad = layout->width[i] > width ? layout->width[i] - width : 0;
        if (table->column[i].align == REPORT_TABLE_RIGHT)
            put_spaces(out, pad);
        const char *color = table->colored ? table_color_of(table, i, text) : NULL;
        if (color)
            fprintf(out, "\033[%sm", color);
        report_table_put_text(out, text, limit, layout->utf8);
        if (color)
            fprintf(out, row_color ? "\033[0;%sm" : "\033[0m", row_color);
        if (i + 1 == last)
            break;
        put_spaces(out, (table->column[i].align == REPORT_TABLE_LEFT ? pad : 0) + 1);
    }
}

void report_table_print(const struct report_table *table, FILE *out, unsigned width, bool utf8)
{
    struct table_layout layout = lay_out(table, width, utf8);
    const char *title[REPORT_TABLE_MAX_COLUMNS];
    bool titled = false;
    for (unsigned i = 0; i < table->n_columns; i++) {
        title[i] = table->column[i].title;
        titled |= title[i] != NULL;
    }
    if (titled) {
        put_cells(table, &layout, out, title, table->n_columns, NULL);
        putc('\n', out);
    }
    for (size_t i = 0; i < table->n_rows; i++) {
        const struct table_row *row = &table->row[i];
        if (row->color)
            fprintf(out, "\033[%sm", row->color);
        char *const whole = row->n > 0 ? row->cell[row->n - 1] : NULL;
        char *const shorter = whole && row->n == table->n_columns
                                  ? table_shorten(row, layout.last_limit, utf8)
                                  : NULL;
        const char *cell[REPORT_TABLE_MAX_COLUMNS];
        memcpy(cell, row->cell, sizeof cell);
        if (shorter)
            cell[row->n - 1] = shorter;
        put_cells(table, &layout, out, cell, row->n, row->color);
        free(shorter);
        fputs(row->color ? "\033[0m\n" : "\n", out);
    }
}

bool report_table_shows(const struct report_table *table, const char *title, unsigned width)
{
    const struct table_layout layout = lay_out(table, width, false);
    for (unsigned i = 0; i < table->n_columns; i++)
        if (!layout.left_out[i] && table->column[i].title &&
            strcmp(table->column[i].title, title) == 0)
            return true;
    return false;
}

void report_table_free(struct report_table *table)
{
    if (!table)
        return;
    for (size_t i = 0; i < table->n_rows; i++)
        for (unsigned j = 0; j < table->row[i].n; j++)
            free(table->row[i].cell[j]);
    free(table->row);
    free(table);
}
