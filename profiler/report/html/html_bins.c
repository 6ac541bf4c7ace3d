/* html_bins.c: see html_bins.h.
 *
 * May include: html_bins.h.
 */
#include "html_bins.h"

#include <stdlib.h>

/* STEPS: from one bin to the next within an event, before bins are joined: events that do not
 * overlap, or a few deep, take far fewer; those of a forged profile would take any number. */
enum { FIRST_BINS = 1 << 14, FIRST_SLOTS = 1 << 12, STEPS = 1 << 22 };
#define FREE UINT64_MAX
#define LONGEST (UINT64_C(1) << 62) /* ns: so that no width overflows */

static struct html_cell *make_slots(size_t n)
{
    struct html_cell *cell = malloc(n * sizeof *cell);
    for (size_t i = 0; cell && i < n; i++)
        cell[i] = (struct html_cell){.key = FREE};
    return cell;
}

bool html_bins_open(struct html_bins *bins, uint64_t duration_ns, size_t most_cells)
{
    duration_ns = duration_ns < LONGEST ? duration_ns : LONGEST;
    *bins = (struct html_bins){.n = FIRST_BINS,
                               .width_ns = duration_ns / FIRST_BINS + 1,
                               .n_slots = FIRST_SLOTS,
                               .most_cells = most_cells,
                               .cell = make_slots(FIRST_SLOTS)};
    return bins->cell != NULL;
}

void html_bins_free(struct html_bins *bins)
{
    free(bins->cell);
    *bins = (struct html_bins){0};
}

/* The cell of this key, or the free one where it belongs. */
static struct html_cell *find(const struct html_bins *bins, uint64_t key)
{
    uint64_t h = key * UINT64_C(0x9E3779B97F4A7C15);
    for (h ^= h >> 32;; h++) {
        struct html_cell *cell = &bins->cell[h & (bins->n_slots - 1)];
        if (cell->key == key || cell->key == FREE)
            return cell;
    }
}

static struct html_cell *cell_of(struct html_bins *bins, uint64_t key)
{
    struct html_cell *cell = find(bins, key);
    if (cell->key == FREE) {
        cell->key = key;
        bins->n_cells++;
    }
    return cell;
}

/* Moves all cells to a table of n_slots; where `join`, those of two bins become one. */
static bool rehash(struct html_bins *bins, size_t n_slots, bool join)
{
    struct html_bins old = *bins;
    struct html_cell *cell = make_slots(n_slots);
    if (!cell)
        return false;
    bins->cell = cell;
    bins->n_slots = n_slots;
    bins->n_cells = 0;
    for (size_t i = 0; i < old.n_slots; i++) {
        const struct html_cell *from = &old.cell[i];
        if (from->key == FREE)
            continue;
        const uint64_t bin = (from->key & UINT32_MAX) >> join;
        struct html_cell *to = cell_of(bins, (from->key & ~(uint64_t)UINT32_MAX) | bin);
        to->ns += from->ns;
        to->count += from->count;
    }
    free(old.cell);
    return true;
}

static bool join_pairs(struct html_bins *bins)
{
    if (!rehash(bins, bins->n_slots, true))
        return false;
    bins->n /= 2;
    bins->width_ns *= 2;
    bins->steps = 0;
    return true;
}

static uint64_t bin_of(const struct html_bins *bins, uint64_t ns)
{
    const uint64_t bin = ns / bins->width_ns;
    return bin < bins->n ? bin : bins->n - 1;
}

/* Room for one event more, which is in so many bins that they are joined, or few. */
static bool make_room(struct html_bins *bins, uint64_t from_ns, uint64_t to_ns)
{
    for (;;) {
        const uint64_t steps = bin_of(bins, to_ns) - bin_of(bins, from_ns), more = steps + 2;
        const bool full = bins->n_cells + more > bins->most_cells;
        if (bins->n > 1 && (full || bins->steps + steps > STEPS)) {
            if (!join_pairs(bins))
                return false;
            continue;
        }
        bins->steps += steps;
        while (2 * (bins->n_cells + more) > bins->n_slots)
            if (!rehash(bins, 2 * bins->n_slots, false))
                return false;
        return true;
    }
}

bool html_bins_add(struct html_bins *bins, uint32_t series, uint64_t from_ns, uint64_t to_ns,
                   uint64_t count)
{
    return html_bins_add_outer(bins, series, UINT32_MAX, from_ns, to_ns, count);
}

bool html_bins_add_outer(struct html_bins *bins, uint32_t series, uint32_t inner, uint64_t from_ns,
                         uint64_t to_ns, uint64_t count)
{
    if (to_ns < from_ns) /* a forged profile's */
        to_ns = from_ns;
    if (!make_room(bins, from_ns, to_ns))
        return false;
    const uint64_t first = bin_of(bins, from_ns), last = bin_of(bins, to_ns);
    for (uint64_t bin = first; bin <= last; bin++) {
        const uint64_t begin = bin == first ? from_ns : bin * bins->width_ns;
        uint64_t ns = (bin == last ? to_ns : (bin + 1) * bins->width_ns) - begin;
        struct html_cell *within =
            inner == UINT32_MAX ? NULL : find(bins, (uint64_t)inner << 32 | bin);
        if (within && within->key != FREE) {
            ns -= within->ns < ns ? within->ns : ns;
            within->ns = 0;
        }
        if (ns == 0 && (bin != first || count == 0))
            continue;
        struct html_cell *cell = cell_of(bins, (uint64_t)series << 32 | bin);
        cell->ns += ns;
        cell->count += bin == first ? count : 0;
    }
    return true;
}

static int compare(const void *x, const void *y)
{
    const uint64_t a = ((const struct html_cell *)x)->key, b = ((const struct html_cell *)y)->key;
    return a < b ? -1 : a > b;
}

void html_bins_sort(struct html_bins *bins, bool (*but)(const void *payload, uint32_t series),
                    const void *payload)
{
    size_t n = 0;
    for (size_t i = 0; i < bins->n_slots; i++) {
        const struct html_cell cell = bins->cell[i];
        if (cell.key != FREE && (cell.ns > 0 || cell.count > 0) &&
            !but(payload, (uint32_t)(cell.key >> 32)))
            bins->cell[n++] = cell;
    }
    bins->n_cells = n;
    qsort(bins->cell, n, sizeof *bins->cell, compare);
}
