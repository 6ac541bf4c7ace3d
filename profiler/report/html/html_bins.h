/* html_bins.h: times of single events by what they are of and by when they were: the time of the
 * profile in bins of equal width.
 *
 * Private to profiler/report/html. Invariant: what a series has in a stretch of whole bins is
 * exactly what its events had there, whatever the width; memory is bounded by the number of series
 * and the bound on cells.
 */
#ifndef PROFILER_REPORT_HTML_HTML_BINS_H
#define PROFILER_REPORT_HTML_HTML_BINS_H

#include "base_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What one series has in one bin; cells that have nothing are not there. */
struct html_cell {
    uint64_t key;   /* series << 32 | bin */
    uint64_t ns;    /* that its events were under way */
    uint64_t count; /* of those that began here */
};

struct html_bins {
    uint64_t width_ns;
    uint32_t n; /* bins; the last one has all that is later as well */
    struct html_cell *cell;
    size_t n_cells, room_cells, most_cells;
    struct base_table cells;      /* by key */
    uint64_t steps;               /* from bin to bin, since bins were joined last */
    uint32_t least;               /* bins, below which `fewer` is asked before any are joined */
    bool (*fewer)(void *payload); /* makes series others by html_bins_map(); false: it cannot */
    void *payload;
};

/* Of a profile of that length. Where there would be more than most_cells (a power of two), bins are
 * joined two by two until there are fewer or one bin is left. */
void html_bins_open(struct html_bins *bins, uint64_t duration_ns, size_t most_cells);
void html_bins_free(struct html_bins *bins);

/* An event of a series, from the one time to the other (ns), counts as `count`. */
void html_bins_add(struct html_bins *bins, uint32_t series, uint64_t from_ns, uint64_t to_ns,
                   uint64_t count);

/* The same of an event within which others were under way: what the series `inner` has in its time
 * is not its own, and is taken from that series. */
void html_bins_add_outer(struct html_bins *bins, uint32_t series, uint32_t inner, uint64_t from_ns,
                         uint64_t to_ns, uint64_t count);

/* What is of series s becomes of series to[s]. */
void html_bins_map(struct html_bins *bins, const uint32_t *to);

/* Drops cells without anything, and those of `but`, and orders the others by their keys at the
 * beginning of bins->cell; nothing can be added any more. */
void html_bins_sort(struct html_bins *bins, bool (*but)(const void *payload, uint32_t series),
                    const void *payload);

#endif
