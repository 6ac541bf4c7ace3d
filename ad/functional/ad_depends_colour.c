/* ad_depends_colour.c: rows that have no column in common get one colour, and share a sweep.
 *
 * First fit in the order of the rows: the partial distance-2 colouring of A. H. Gebremedhin, F.
 * Manne, A. Pothen, What color is your Jacobian?, SIAM Review 47, 2005, algorithm 3.2, doi
 * 10.1137/S0036144504444711. Rows without columns need no sweep, and get none.
 */
#include "ad_depends.h"

#include <string.h>

struct colouring {
    struct tape_sparse *of;
    int64_t *column_start, *row; /* the pattern by columns, of the rows that have a colour */
    int64_t *filled;             /* rows of each column so far */
    uint32_t *colour;            /* of each row, from 0 within its result */
    int64_t *seen;               /* the newest row that may not have a colour, plus 1 */
};

static bool columns_make(struct ad_scratch *scratch, struct colouring *c)
{
    const struct tape_sparse *s = c->of;
    c->column_start = ad_scratch_get(scratch, s->n + 1, sizeof *c->column_start);
    c->filled = ad_scratch_get(scratch, s->n + 1, sizeof *c->filled);
    c->row = ad_scratch_get(scratch, s->n_values + 1, sizeof *c->row);
    c->colour = ad_scratch_get(scratch, s->m + 1, sizeof *c->colour);
    c->seen = ad_scratch_get(scratch, s->m + 1, sizeof *c->seen);
    if (!c->column_start || !c->filled || !c->row || !c->colour || !c->seen)
        return false;
    for (int64_t k = 0; k < s->n_values; k++)
        c->column_start[s->column[k] + 1]++;
    for (int64_t j = 0; j < s->n; j++)
        c->column_start[j + 1] += c->column_start[j];
    return true;
}

/* All rows that have a column share one: each is alone. */
static bool rows_are_apart(const struct colouring *c, int64_t first, int64_t end)
{
    const struct tape_sparse *s = c->of;
    int64_t rows = 0, most = 0;
    for (int64_t i = first; i < end; i++)
        rows += s->row_start[i + 1] > s->row_start[i];
    memset(c->filled, 0, (size_t)s->n * sizeof *c->filled);
    for (int64_t k = s->row_start[first]; k < s->row_start[end]; k++) {
        const int64_t n = ++c->filled[s->column[k]];
        most = n > most ? n : most;
    }
    return most == rows;
}

/* The colours of rows [first, end), and how many there are. */
static uint32_t result_colour(const struct colouring *c, int64_t first, int64_t end)
{
    const struct tape_sparse *s = c->of;
    const bool apart = rows_are_apart(c, first, end);
    uint32_t n = 0;
    memset(c->filled, 0, (size_t)s->n * sizeof *c->filled);
    for (int64_t i = first; i < end; i++) {
        const int64_t from = s->row_start[i], to = s->row_start[i + 1];
        uint32_t colour = apart ? n : 0;
        if (from == to)
            continue;
        for (int64_t k = from; k < to && !apart; k++)
            for (int64_t r = 0; r < c->filled[s->column[k]]; r++)
                c->seen[c->colour[c->row[c->column_start[s->column[k]] + r]]] = i + 1;
        while (!apart && c->seen[colour] == i + 1)
            colour++;
        c->colour[i] = colour;
        n = colour + 1 > n ? colour + 1 : n;
        for (int64_t k = from; k < to; k++)
            c->row[c->column_start[s->column[k]] + c->filled[s->column[k]]++] = i;
    }
    return n;
}

/* Rows [first, end) as n groups behind those that there are; to->order has `ordered` rows. */
static uint32_t groups_add(const struct colouring *c, int64_t first, int64_t end, uint32_t n,
                           uint32_t ordered)
{
    struct tape_sparse *s = c->of;
    struct tape_sparse_group *group = s->group + s->n_groups;
    for (uint32_t k = 0; k < n; k++)
        group[k] = (struct tape_sparse_group){.first = 0};
    for (int64_t i = first; i < end; i++)
        if (s->row_start[i + 1] > s->row_start[i])
            group[c->colour[i]].first++; /* how many, for now */
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t rows = group[k].first;
        group[k].first = ordered;
        ordered += rows;
    }
    for (int64_t i = first; i < end; i++)
        if (s->row_start[i + 1] > s->row_start[i]) {
            struct tape_sparse_group *of = &group[c->colour[i]];
            s->order[of->first + of->n++] = (uint32_t)i;
        }
    s->n_groups += n;
    return ordered;
}

bool ad_depends_colour(struct ad_scratch *scratch, const struct ad_depends_results *of,
                       struct tape_sparse *to)
{
    struct colouring c = {.of = to};
    int64_t first = 0;
    uint32_t ordered = 0;
    if (!columns_make(scratch, &c))
        return false;
    to->n_groups = 0;
    for (int k = 0; k < of->n; k++) {
        memset(c.seen, 0, (size_t)to->m * sizeof *c.seen);
        const uint32_t n = result_colour(&c, first, first + of->size[k]);
        ordered = groups_add(&c, first, first + of->size[k], n, ordered);
        first += of->size[k];
    }
    return true;
}
