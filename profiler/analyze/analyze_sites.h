/* analyze_sites.h: rows that are one but for their call path, scope and tape.
 *
 * A profile of deep recursion has a hundred thousand rows of a few hundred sites. What only depends
 * on the site is then looked at once for each of them.
 */
#ifndef PROFILER_ANALYZE_SITES_H
#define PROFILER_ANALYZE_SITES_H

#include "read.h"

/* Rows of a site have the same address, line, op, shape, and op that keeps their values. */
struct analyze_sites {
    uint32_t *of;                /* [rows of all tapes, one tape after the other] */
    const struct read_row **row; /* [sites]: the first row of each; in the order of these */
    size_t n;
};

/* The profile is borrowed; the caller frees the sites. */
void analyze_sites_make(struct analyze_sites *sites, const struct read_profile *profile);
void analyze_sites_free(struct analyze_sites *sites);

#endif
