/* ad_sparse_pattern.h: patterns behind the user's handle, and how they are filled and checked. */
#ifndef AD_SPARSE_PATTERN_H
#define AD_SPARSE_PATTERN_H

#include <tapescope/ad_real.h>

#include "tape_sparse.h"

/* What a pattern is of. */
enum sparse_kind { SPARSE_JACOBIAN, SPARSE_HESSIAN, SPARSE_TENSOR_JACOBIAN, SPARSE_TENSOR_HESSIAN };

struct sparse_own {
    struct tape_sparse sparse; /* of a Hessian: without groups */
    enum sparse_kind kind;
};

/* A tape's error: AD_ERROR_ARGUMENT. */
ad_status ad_sparse_refuse(struct tape *t, const char *what, struct tape_site site,
                           const char *why);
/* The indices of y[m] and then x[n], 0 for a constant; to be released. NULL: *status says why. */
uint32_t *ad_sparse_numbers(struct tape *t, const char *what, int64_t m, const ad_real *y,
                            int64_t n, const ad_real *x, struct tape_site site, ad_status *status);
/* Whether the pattern is one of that kind and shape, and there are values to fill. */
ad_status ad_sparse_check(struct tape *t, const char *what, int64_t m, int64_t n,
                          const ad_sparse_pattern *pattern, enum sparse_kind kind,
                          const double *values, struct tape_site site);
/* The user's pattern has what was found by the call at `site`, and who observes is told of it. */
void ad_sparse_give(struct tape *t, struct tape_site site, ad_sparse_pattern *pattern,
                    struct sparse_own *own);
/* A call has failed: its values are NaN. */
void ad_sparse_spoil(const ad_sparse_pattern *pattern, double *values);

#endif
