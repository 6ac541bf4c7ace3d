/* html_columns.c: lines as columns. See html_data.h. */
#include "html_data.h"

#include <stdlib.h>
#include <string.h>

enum { NAME_ROOM = 64, NAMES_ROOM = 512 };

static const struct prof_line *line_at(struct html_lines lines, size_t i)
{
    return (const struct prof_line *)((const char *)lines.first + i * lines.stride);
}

static void begin_column(struct html_data *data, const char *prefix, const char *name)
{
    char full[NAME_ROOM];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    json_array(&data->json, full);
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
        json_u64(&data->json, NULL, *(const uint64_t *)((const char *)first + i * stride));
    json_end(&data->json);
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
        json_double(&data->json, NULL, *(const double *)((const char *)first + i * stride));
    json_end(&data->json);
}

/* Remembers a file that a line is in; equal files have equal pointers. */
static void note_file(struct html_data *data, const char *file)
{
    if (!file || (data->n_files > 0 && data->file[data->n_files - 1] == file))
        return;
    for (size_t i = 0; i < data->n_files; i++)
        if (data->file[i] == file || strcmp(data->file[i], file) == 0)
            return;
    if (data->n_files == data->room_files) {
        const size_t room = data->room_files ? 2 * data->room_files : 64;
        const char **grown = realloc(data->file, room * sizeof *grown);
        if (!grown) {
            data->strings.failed = true;
            return;
        }
        data->file = grown;
        data->room_files = room;
    }
    data->file[data->n_files++] = file;
}

/* The names as one text, in which they are separated by ", ". */
static uint32_t names_string(struct html_data *data, const struct prof_names *names)
{
    char text[NAMES_ROOM] = "";
    size_t n = 0;
    for (unsigned i = 0; i < names->n && n < sizeof text - 1; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? ", " : "", names->name[i]);
    if (names->more && n < sizeof text - 4)
        memcpy(text + n, " +", sizeof " +");
    return html_string(&data->strings, text);
}

enum place { FILE_NAME, LINE, FUNCTION, FUNCTION_LINE, MODULE, OFFSET, OWN, OPS, KEPT_BY, PLACES };

static uint64_t place_of(struct html_data *data, const struct prof_line *line, enum place what)
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
            any |= place_of(data, line_at(lines, i), (enum place)what);
        if (any == 0)
            continue;
        begin_column(data, prefix, name[what]);
        for (size_t i = 0; i < lines.n; i++)
            json_u64(&data->json, NULL, place_of(data, line_at(lines, i), (enum place)what));
        json_end(&data->json);
    }
}

void html_put_costs(struct html_data *data, const char *prefix, struct html_lines lines)
{
    static const struct {
        const char *name;
        size_t at;
    } column[] = {
        {"calls", offsetof(struct prof_cost, calls)},
        {"forward_ns", offsetof(struct prof_cost, forward_ns)},
        {"backward_calls", offsetof(struct prof_cost, backward_calls)},
        {"backward_ns", offsetof(struct prof_cost, backward_ns)},
        {"recompute_calls", offsetof(struct prof_cost, recompute_calls)},
        {"recompute_ns", offsetof(struct prof_cost, recompute_ns)},
        {"forward_flops", offsetof(struct prof_cost, forward_flops)},
        {"backward_flops", offsetof(struct prof_cost, backward_flops)},
        {"forward_moved_bytes", offsetof(struct prof_cost, forward_moved)},
        {"backward_moved_bytes", offsetof(struct prof_cost, backward_moved)},
        {"record_bytes", offsetof(struct prof_cost, record_bytes)},
        {"value_bytes", offsetof(struct prof_cost, value_bytes)},
        {"adjoint_bytes", offsetof(struct prof_cost, adjoint_bytes)},
        {"kept_bytes", offsetof(struct prof_cost, kept_bytes)},
        {"live_bytes", offsetof(struct prof_cost, live_bytes)},
        {"peak_bytes", offsetof(struct prof_cost, peak_bytes)},
        {"other_ns", offsetof(struct prof_cost, other_ns)},
        {"waiting_ns", offsetof(struct prof_cost, waiting_ns)},
        {"samples", offsetof(struct prof_cost, samples)},
    };
    if (lines.n == 0)
        return;
    for (size_t i = 0; i < sizeof column / sizeof *column; i++)
        html_put_numbers(data, prefix, column[i].name,
                         (const uint64_t *)((const char *)&lines.first->cost + column[i].at),
                         lines.stride, lines.n);
    put_doubles(data, prefix, "byte_ns", &lines.first->cost.byte_ns, lines.stride, lines.n);
}
