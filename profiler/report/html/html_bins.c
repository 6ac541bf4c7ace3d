/* html_bins.c: see html_bins.h. */
#include "html_bins.h"

#include "base_array.h"

#include <stdlib.h>

/* STEPS: from one bin to the next within an event, before bins are joined: events that do not
 * overlap, or a few deep, take far fewer; those of a forged profile would take any number. */
enum { FIRST_BINS = 1 << 14, STEPS = 1 << 22 };
#define LONGEST (UINT64_C(1) << 62) /* ns: so that no width overflows */

void html_bins_open(struct html_bins *bins, uint64_t duration_ns, size_t most_cells)
{
    duration_ns = duration_ns < LONGEST ? duration_ns : LONGEST;
    *bins = (struct html_bins){
        .n = FIRST_BINS, .width_ns = duration_ns / FIRST_BINS + 1, .most_cells = most_cells};
}

void html_bins_free(struct html_bins *bins)
{
    base_table_free(&bins->cells);
    free(bins->cell);
    *bins = (struct html_bins){0};
}

/* The cell of this key, or NULL. */
static struct html_cell *bins_find(const struct html_bins *bins, uint64_t key)
{
    const int64_t at = base_table_find(&bins->cells, key);
    return at >= 0 ? &bins->cell[at] : NULL;
}

static struct html_cell *cell_of(struct html_bins *bins, uint64_t key)
{
    struct html_cell *known = bins_find(bins, key);
    if (known)
        return known;
    BASE_ARRAY_GROW(bins->cell, bins->n_cells, &bins->room_cells);
    base_table_add(&bins->cells, key, bins->n_cells);
    bins->cell[bins->n_cells] = (struct html_cell){.key = key};
    return &bins->cell[bins->n_cells++];
}

/* Cells of a bin become those of bin >> shift, and of a series those of to_series[series]; NULL:
 * they stay. */
static void bins_move(struct html_bins *bins, const uint32_t *to_series, unsigned shift)
{
    const size_t n = bins->n_cells;
    base_table_clear(&bins->cells);
    bins->n_cells = 0;
    for (size_t i = 0; i < n; i++) { /* a cell moves to its own place, or to one before */
        const struct html_cell from = bins->cell[i];
        const uint64_t bin = (from.key & UINT32_MAX) >> shift, series = from.key >> 32;
        struct html_cell *to = cell_of(bins, (to_series ? to_series[series] : series) << 32 | bin);
        to->ns += from.ns;
        to->count += from.count;
    }
}

void html_bins_map(struct html_bins *bins, const uint32_t *to)
{
    bins_move(bins, to, 0);
}

/* Those of two bins become one. */
static void join_pairs(struct html_bins *bins)
{
    bins_move(bins, NULL, 1);
    bins->n /= 2;
    bins->width_ns *= 2;
    bins->steps = 0;
}

static uint64_t bin_of(const struct html_bins *bins, uint64_t ns)
{
    const uint64_t bin = ns / bins->width_ns;
    return bin < bins->n ? bin : bins->n - 1;
}

/* Joins bins until one event more is in few enough of them. */
static void bins_make_room(struct html_bins *bins, uint64_t from_ns, uint64_t to_ns)
{
    for (;;) {
        const uint64_t steps = bin_of(bins, to_ns) - bin_of(bins, from_ns), more = steps + 2;
        const bool full = bins->n_cells + more > bins->most_cells;
        if (bins->n == 1 || (!full && bins->steps + steps <= STEPS)) {
            bins->steps += steps;
            return;
        }
        if (full && bins->n <= bins->least && bins->fewer && bins->fewer(bins->payload))
            continue;
        join_pairs(bins);
    }
}

void html_bins_add(struct html_bins *bins, uint32_t series, uint64_t from_ns, uint64_t to_ns,
                   uint64_t count)
{
    html_bins_add_outer(bins, series, UINT32_MAX, from_ns, to_ns, count);
}

void html_bins_add_outer(struct html_bins *bins, uint32_t series, uint32_t inner, uint64_t from_ns,
                         uint64_t to_ns, uint64_t count)
{
    if (to_ns < from_ns) /* a forged profile's */
        to_ns = from_ns;
    bins_make_room(bins, from_ns, to_ns);
    const uint64_t first = bin_of(bins, from_ns), last = bin_of(bins, to_ns);
    for (uint64_t bin = first; bin <= last; bin++) {
        const uint64_t begin = bin == first ? from_ns : bin * bins->width_ns;
        uint64_t ns = (bin == last ? to_ns : (bin + 1) * bins->width_ns) - begin;
        struct html_cell *within =
            inner == UINT32_MAX ? NULL : bins_find(bins, (uint64_t)inner << 32 | bin);
        if (within) {
            ns -= within->ns < ns ? within->ns : ns;
            within->ns = 0;
        }
        if (ns == 0 && (bin != first || count == 0))
            continue;
        struct html_cell *cell = cell_of(bins, (uint64_t)series << 32 | bin);
        cell->ns += ns;
        cell->count += bin == first ? count : 0;
    }
}

static int bins_compare(const void *x, const void *y)
{
    const uint64_t a = ((const struct html_cell *)x)->key, b = ((const struct html_cell *)y)->key;
    return a < b ? -1 : a > b;
}

void html_bins_sort(struct html_bins *bins, bool (*but)(const void *payload, uint32_t series),
                    const void *payload)
{
    size_t n = 0;
    for (size_t i = 0; i < bins->n_cells; i++) {
        const struct html_cell cell = bins->cell[i];
        if ((cell.ns > 0 || cell.count > 0) && !but(payload, (uint32_t)(cell.key >> 32)))
            bins->cell[n++] = cell;
    }
    bins->n_cells = n;
    base_table_clear(&bins->cells);
    if (n > 0)
        qsort(bins->cell, n, sizeof *bins->cell, bins_compare);
}
