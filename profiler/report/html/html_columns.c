/* html_columns.c: lines as columns. See html_data.h. */
#include "html_data.h"

#include "base_array.h"

#include <stdlib.h>
#include <string.h>

enum { NAME_ROOM = 64, NAMES_ROOM = 512 };

static const struct analyze_line *line_at(struct html_lines lines, size_t i)
{
    return (const struct analyze_line *)((const char *)lines.first + i * lines.stride);
}

static void begin_column(struct html_data *data, const char *prefix, const char *name)
{
    char full[NAME_ROOM];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    base_json_array(&data->json, full);
}

void html_put_numbers(struct html_data *data, const char *prefix, const char *name,
                      const uint64_t *first, size_t stride, size_t n)
{
    uint64_t any = 0;
    for (size_t i = 0; i < n; i++)
        any |= *(const uint64_t *)((const char *)first + i * stride);
    if (any == 0)
        return;
    begin_column(data, prefix, name);
    for (size_t i = 0; i < n; i++)
        base_json_u64(&data->json, NULL, *(const uint64_t *)((const char *)first + i * stride));
    base_json_end(&data->json);
}

static void put_doubles(struct html_data *data, const char *prefix, const char *name,
                        const double *first, size_t stride, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any |= *(const double *)((const char *)first + i * stride) != 0;
    if (!any)
        return;
    begin_column(data, prefix, name);
    for (size_t i = 0; i < n; i++)
        base_json_double(&data->json, NULL, *(const double *)((const char *)first + i * stride));
    base_json_end(&data->json);
}

/* Remembers a file that a line is in; equal files have equal pointers. */
static void note_file(struct html_data *data, const char *file)
{
    if (!file || (data->n_files > 0 && data->file[data->n_files - 1] == file))
        return;
    for (size_t i = 0; i < data->n_files; i++)
        if (data->file[i] == file || strcmp(data->file[i], file) == 0)
            return;
    BASE_ARRAY_GROW(data->file, data->n_files, &data->room_files);
    data->file[data->n_files++] = file;
}

/* The names as one text, in which they are separated by ", ". */
static uint32_t names_string(struct html_data *data, const struct analyze_names *names)
{
    char text[NAMES_ROOM] = "";
    size_t n = 0;
    for (unsigned i = 0; i < names->n && n < sizeof text - 1; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? ", " : "", names->name[i]);
    if (names->more && n < sizeof text - 4)
        memcpy(text + n, " +", sizeof " +");
    return html_string(&data->strings, text);
}

enum column_place {
    FILE_NAME,
    LINE,
    FUNCTION,
    FUNCTION_LINE,
    MODULE,
    OFFSET,
    OWN,
    OPS,
    KEPT_BY,
    PLACES
};

static uint64_t columns_place_of(struct html_data *data, const struct analyze_line *line,
                                 enum column_place what)
{
    switch (what) {
    case FILE_NAME:
        note_file(data, line->file);
        return html_string(&data->strings, line->file);
    case LINE:
        return line->line;
    case FUNCTION:
        return html_string(&data->strings, line->function);
    case FUNCTION_LINE:
        return line->function_line;
    case MODULE: /* where there is a file, nothing more is shown of it */
        return line->file ? 0 : html_string(&data->strings, line->module);
    case OFFSET:
        return line->file ? 0 : line->offset;
    case OWN:
        return line->own;
    case OPS:
        return names_string(data, &line->ops);
    default:
        return names_string(data, &line->kept_by);
    }
}

void html_put_places(struct html_data *data, const char *prefix, struct html_lines lines)
{
    static const char *const name[PLACES] = {
        "file", "line", "function", "function_line", "module", "offset", "own", "ops", "kept_by"};
    for (int what = 0; what < PLACES; what++) {
        uint64_t any = 0;
        for (size_t i = 0; i < lines.n; i++)
            any |= columns_place_of(data, line_at(lines, i), (enum column_place)what);
        if (any == 0)
            continue;
        begin_column(data, prefix, name[what]);
        for (size_t i = 0; i < lines.n; i++)
            base_json_u64(&data->json, NULL,
                          columns_place_of(data, line_at(lines, i), (enum column_place)what));
        base_json_end(&data->json);
    }
}

/* The whole numbers of a cost that the page has, by their names there. */
static const struct {
    const char *name, *unit, *label;
    size_t at;
} cost_column[] = {
#define ROW(X, name, field, unit, phase, out, label, ...)                                          \
    {#out, UNIT_##unit, label, offsetof(struct analyze_cost, ANALYZE_COST_SHOWN(unit, name, out))},
#define UNIT_COUNT "n"
#define UNIT_FLOPS "n"
#define UNIT_TICKS "ns"
#define UNIT_NS "ns"
#define UNIT_BYTES "B"
    COUNTERS(ROW, COUNTER_NONE, )
#undef ROW
#define ROW(X, name, unit, shown, label, ...) ROW_##shown(name, unit, label)
#define ROW_SHOWN(name, unit, label)                                                               \
    {#name, UNIT_##unit, label, offsetof(struct analyze_cost, name)},
#define ROW_HIDDEN(name, unit, label)
        SAMPLE_COSTS(ROW, COUNTER_NONE, )
#undef ROW
};
enum { COST_COLUMNS = sizeof cost_column / sizeof *cost_column };

void html_put_costs(struct html_data *data, const char *prefix, struct html_lines lines)
{
    if (lines.n == 0)
        return;
    for (size_t i = 0; i < COST_COLUMNS; i++)
        html_put_numbers(data, prefix, cost_column[i].name,
                         (const uint64_t *)((const char *)&lines.first->cost + cost_column[i].at),
                         lines.stride, lines.n);
    html_put_numbers(data, prefix, "untimed_calls", &lines.first->cost.untimed_calls, lines.stride,
                     lines.n);
    put_doubles(data, prefix, "byte_ns", &lines.first->cost.byte_ns, lines.stride, lines.n);
}

void html_put_facts(struct html_data *data)
{
    struct base_json *json = &data->json;
    base_json_array(json, "costs");
    for (size_t i = 0; i < COST_COLUMNS; i++) {
        base_json_object(json, NULL);
        base_json_text(json, "name", cost_column[i].name);
        base_json_text(json, "unit", cost_column[i].unit);
        base_json_text(json, "label", cost_column[i].label);
        base_json_end(json);
    }
    base_json_end(json);
    base_json_array(json, "phases");
#define ROW(X, NAME, name, number, brief)                                                          \
    base_json_object(json, NULL);                                                                  \
    base_json_text(json, "name", #name);                                                           \
    base_json_text(json, "class", brief);                                                          \
    base_json_end(json);
    PHASE_LIST(ROW, )
#undef ROW
    base_json_end(json);
}
