/* analyze_shape.c: see analyze_shape.h. The text is a profile's, so nothing of it is trusted. */
#include "analyze_shape.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_DIMENSIONS = 16,
    MOST_OPERANDS = 4,
    OUTGROWS = 8, /* as the tape's: such a shape is told by every profile */
};

/* One array: its text from '[' to ']', and its extents. */
struct shape_array {
    const char *text;
    size_t bytes;
    unsigned rank;
    double size;
    uint64_t extent[MOST_DIMENSIONS];
};

/* The next array at or behind *at, which moves behind it. */
static bool shape_next(struct shape_array *array, const char **at)
{
    const char *from = strchr(*at, '['), *p = from;
    *array = (struct shape_array){.text = from, .size = 1};
    while (p && *p != ']') {
        char *end;
        if (p[1] < '0' || p[1] > '9')
            return p == from && p[1] == ']' ? (array->bytes = 2, *at = p + 2, true) : false;
        if (array->rank == MOST_DIMENSIONS)
            return false;
        array->extent[array->rank] = strtoull(p + 1, &end, 10);
        array->size *= (double)array->extent[array->rank++];
        if (*end != ',' && *end != ']')
            return false;
        p = end;
    }
    if (!p)
        return false;
    *at = p + 1;
    array->bytes = (size_t)(*at - from);
    return array->bytes < ANALYZE_SHAPE_ROOM;
}

/* Whether `of` fills `to` when it is repeated along its extents of 1, and before its first. */
static bool shape_broadcasts(const struct shape_array *of, const struct shape_array *to)
{
    for (unsigned d = 1; d <= of->rank; d++)
        if (d > to->rank ||
            (of->extent[of->rank - d] != 1 && of->extent[of->rank - d] != to->extent[to->rank - d]))
            return false;
    return true;
}

static void shape_copy(char buf[ANALYZE_SHAPE_ROOM], const struct shape_array *array)
{
    memcpy(buf, array->text, array->bytes);
    buf[array->bytes] = '\0';
}

bool analyze_shape_grid(struct analyze_grid *grid, const char *shape)
{
    struct shape_array result, operand[MOST_OPERANDS];
    const struct shape_array *fewer = NULL, *more = NULL;
    unsigned n = 0;
    double most = 1;
    if (!shape || !shape_next(&result, &shape) || strncmp(shape, " of ", 4) != 0)
        return false;
    while (n < MOST_OPERANDS && strchr(shape, '[')) {
        if (!shape_next(&operand[n], &shape) || !shape_broadcasts(&operand[n], &result))
            return false;
        most = operand[n].size > most ? operand[n].size : most;
        n++;
    }
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < n; k++)
            if (operand[i].size == operand[k].size && operand[i].rank < operand[k].rank) {
                fewer = &operand[i];
                more = &operand[k];
            }
    if (!fewer || !(result.size >= OUTGROWS * most))
        return false;
    grid->times = result.size / most;
    grid->dimensions = more->rank;
    shape_copy(grid->result, &result);
    shape_copy(grid->fewer, fewer);
    shape_copy(grid->more, more);
    return true;
}
