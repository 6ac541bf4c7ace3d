/* collect_patterns.c: patterns of sparse derivatives, the newest of each site, as packets.
 *
 * Called with the collector's mutex held.
 */
#include "collect.h"

#include "profile_frame.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = COLLECT_PATTERN_CELLS };

struct collect_pattern {
    uint64_t pc;
    uint32_t line;
    enum tape_pattern_kind kind;
    uint64_t rows, columns, values, colours, calls;
    bool coloured, changed;
    uint64_t cell[MOST * MOST];
};

static uint64_t pattern_side(int64_t n)
{
    return n < MOST ? (uint64_t)n : MOST;
}

static void pattern_draw(uint64_t *cell, const struct tape_pattern *from)
{
    const uint64_t h = pattern_side(from->m), w = pattern_side(from->n);
    memset(cell, 0, h * w * sizeof *cell);
    for (int64_t i = 0; i < from->m; i++) {
        uint64_t *row = cell + (uint64_t)i * h / (uint64_t)from->m * w;
        for (int64_t k = from->row_start[i]; k < from->row_start[i + 1]; k++)
            row[(uint64_t)from->column[k] * w / (uint64_t)from->n]++;
    }
}

/* The entry of a site, made if it is new; NULL: there is no room. */
static struct collect_pattern *pattern_of(struct collect_patterns *patterns,
                                          const struct tape_pattern *from)
{
    for (uint32_t i = 0; i < patterns->n; i++) {
        struct collect_pattern *p = patterns->pattern[i];
        if (p->pc == from->pc && p->line == from->line && p->kind == from->kind)
            return p;
    }
    struct collect_pattern *made = patterns->n < COLLECT_PATTERNS ? calloc(1, sizeof *made) : NULL;
    if (made != NULL)
        patterns->pattern[patterns->n++] = made;
    return made;
}

void collect_patterns_take(struct collect_patterns *patterns, const struct tape_pattern *from)
{
    struct collect_pattern *to = pattern_of(patterns, from);
    patterns->changed = true;
    if (to == NULL) {
        patterns->left_out++;
        return;
    }
    to->pc = from->pc;
    to->line = from->line;
    to->kind = from->kind;
    to->rows = (uint64_t)from->m;
    to->columns = (uint64_t)from->n;
    to->values = from->m > 0 ? (uint64_t)from->row_start[from->m] : 0;
    to->coloured = from->coloured;
    to->colours = from->colours;
    to->calls++;
    to->changed = true;
    pattern_draw(to->cell, from);
}

static void fill_pattern(Tapescope__Pattern *to, struct collect_pattern *from, uint32_t id)
{
    to->id = id;
    to->kind = from->kind;
    to->pc = from->pc;
    to->line = from->line;
    to->rows = from->rows;
    to->columns = from->columns;
    to->values = from->values;
    to->coloured = from->coloured;
    to->colours = from->colours;
    to->calls = from->calls;
    to->cell = from->cell;
    to->n_cell = pattern_side((int64_t)from->rows) * pattern_side((int64_t)from->columns);
}

bool collect_put_patterns(struct collect_buffer *out, struct collect_patterns *patterns, bool all)
{
    if (all ? patterns->n == 0 && patterns->left_out == 0 : !patterns->changed)
        return true;
    Tapescope__Pattern **list = profile_list(&tapescope__pattern__descriptor, patterns->n);
    Tapescope__Patterns message = TAPESCOPE__PATTERNS__INIT;
    message.pattern = list;
    message.left_out = patterns->left_out;
    message.again = patterns->again && !all;
    for (uint32_t i = 0; list != NULL && i < patterns->n; i++)
        if (all || patterns->pattern[i]->changed)
            fill_pattern(list[message.n_pattern++], patterns->pattern[i], i + 1);
    const bool ok =
        list != NULL && collect_put_packet(out, TAPESCOPE__PACKET__KIND_PATTERNS, &message);
    free(list);
    if (!ok || all)
        return ok;
    for (uint32_t i = 0; i < patterns->n; i++)
        patterns->pattern[i]->changed = false;
    patterns->changed = patterns->again = false;
    patterns->written = true;
    return true;
}

void collect_patterns_free(struct collect_patterns *patterns)
{
    for (uint32_t i = 0; i < patterns->n; i++)
        free(patterns->pattern[i]);
    *patterns = (struct collect_patterns){0};
}

void collect_patterns_clear(struct collect_patterns *patterns)
{
    const bool written = patterns->written;
    collect_patterns_free(patterns);
    patterns->written = patterns->again = patterns->changed = written;
}
