/* tape_sparse.h: Jacobians of scalars by scalars that are mostly zeros: which are not, and what.
 *
 * Rows are found by walks from their results (tape_cone.h), those that share statements together.
 * Rows that no column has in common share no statement that depends on a column. So all walks
 * together pass fewer statements than sweeps of the tape whose rows were compressed by a colouring.
 */
#ifndef TAPE_SPARSE_H
#define TAPE_SPARSE_H

#include "tape.h"

/* Rows that are found together: order[first] up to order[first + n - 1]. */
struct tape_sparse_group {
    uint32_t first, n;
    /* Where their statements are next to each other, the part of a run that has them, in words and
     * doubles from the run's begin: it is swept as a whole. */
    uint32_t run; /* from the newest; TAPE_SPARSE_WALK: they are not, and are walked */
    uint32_t low, high, word, word_end, partial_end;
};
#define TAPE_SPARSE_WALK UINT32_MAX

/* The pattern in compressed rows, and in which order and groups they are found. */
struct tape_sparse {
    struct tape_memory memory; /* whose the arrays are; a copy: they outlive the tape */
    int64_t m, n, n_values;
    int64_t *row_start, *column; /* [m + 1], [n_values]: rising within a row */
    uint32_t *order;             /* [m] rows */
    struct tape_sparse_group *group;
    uint32_t n_groups, groups_size;
    uint64_t hash; /* of the statements that the groups are of */
};

/* Of y[m] by x[n], indices or 0. The tape's error: y depends on x through what is no statement, x
 * names a number twice, there is no memory; then nothing is to be freed. */
enum tape_status tape_sparse_find(struct tape *t, int64_t m, const uint32_t *y, int64_t n,
                                  const uint32_t *x, struct tape_sparse *s, struct tape_site site);
/* values[n_values]. The tape's error also where there is a derivative that the pattern does not
 * have. */
enum tape_status tape_sparse_values(struct tape *t, const uint32_t *y, const uint32_t *x,
                                    const struct tape_sparse *s, double *values,
                                    struct tape_site site);
/* Gives back what a pattern has. */
void tape_sparse_free(struct tape_sparse *s);

#endif
