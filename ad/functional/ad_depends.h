/* ad_depends.h: which elements of results of a function of tensors depend on which of its leaves':
 * the pattern of its Jacobian, and which of its rows can be swept at once.
 *
 * Each element of each value has the set of the leaves' elements that it depends on, found forwards
 * over the records by what the ops say of themselves (kernel_depends.h). Sets are shared: what an
 * elementwise op of one operand makes has its operand's.
 */
#ifndef AD_DEPENDS_H
#define AD_DEPENDS_H

#include "ad_isolation.h"

#include "tape_sparse.h"

/* Results y[n], one behind the other: their values, 0 for what depends on no leaf, and elements. */
struct ad_depends_results {
    int n;
    const uint32_t *y;
    const int64_t *size;
};

/* The pattern of the results by the isolation's leaves. Its groups are rows of one result that have
 * no column in common. After an error, which is the tape's, nothing is to be freed. Errors:
 * AD_ERROR_STATE: a tensor is of numbers (ad_real); AD_ERROR_MEMORY. */
ad_status ad_depends_find(struct ad_isolation *s, const struct ad_depends_results *of,
                          struct tape_sparse *to);
/* What the pattern was found of: equal for recordings that have the same one. */
uint64_t ad_depends_hash(struct ad_isolation *s, const struct ad_depends_results *of);

/* Colours the rows of each result: see ad_depends_colour.c. False: no memory. */
bool ad_depends_colour(struct ad_scratch *scratch, const struct ad_depends_results *of,
                       struct tape_sparse *to);

#endif
