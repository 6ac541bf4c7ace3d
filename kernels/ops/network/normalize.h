/* normalize.h: what layer_norm, rms_norm and batch_norm have in common.
 *
 * Internal to kernels/. x is seen as [outer, kept, inner], row-major. One mean and one reciprocal
 * standard deviation belong to each index of the kept axis; weights lie along the kept axis
 * (batch_norm) or along the inner one (the others, whose outer extent is 1). The gradient is a
 * function of the statistics as well, so that it can be differentiated: with z = (x - mean) rstd
 * and q = g w it is rstd (q - mean of q - z mean of (q z)).
 */
#ifndef NORMALIZE_H
#define NORMALIZE_H

#include "kernel_depends.h"
#include "op_rules.h"

struct normalization {
    int dtype;
    bool centered;   /* else the mean counts as 0 */
    bool by_channel; /* weights lie along the kept axis */
    int lead;        /* else: x's axes before those of w */
    int64_t outer, kept, inner;
};

/* x normalized over the axes of w, which are its last ones. */
struct normalization normalize_rows(kernel_ref x, kernel_ref w, bool centered);
/* x [n, c, ...] normalized over all axes but the second. */
struct normalization normalize_channels(kernel_ref x);

/* Refuses a w that has not x's last extents, and an eps that is negative or NaN. */
int normalize_rows_check(const struct kernel_call *call, kernel_ref x, kernel_ref w);
int normalize_eps_check(const struct kernel_call *call, double eps);
/* The shape of a row's statistics. */
void normalize_rows_statistics(kernel_ref x, kernel_ref w, struct kernel_shape *out);

/* Row-major data of x, w, b (NULL: none); what is found: y, mean (NULL if not centered), var
 * (NULL: not wanted), rstd. */
struct normalize_forward {
    const void *x, *w, *b;
    void *y, *mean, *var, *rstd;
    double eps;
};
void normalize_forward(const struct normalization *n, const struct normalize_forward *data);

/* gx as above, gw = sum of g z, gb = sum of g (NULL: not wanted). */
struct normalize_gradient {
    const void *g, *x, *w, *mean, *rstd;
    void *gx, *gw, *gb;
};
size_t normalize_gradient_space(const struct normalization *n);
void normalize_gradient(const struct normalization *n, const struct normalize_gradient *data,
                        void *space);

/* Whether the statistics of a kept index may have left the range on the way: they are not finite,
 * or squares may have vanished. */
bool normalize_is_far(const struct normalization *n, double mean, double var, double eps);
/* The same statistics by numbers scaled by a power of two. Returns false, and leaves them, if an
 * element is not finite. */
struct normalize_statistics {
    double mean, var, rstd;
};
bool normalize_rescale(const struct normalization *n, const void *x, int64_t kept, double eps,
                       struct normalize_statistics *found);

/* The same, stored with what else was found of the index. */
void normalize_rescale_into(const struct normalization *n, const struct normalize_forward *data,
                            int64_t kept, double *mean, double *rstd);

/* Returns what was stored, rounded as it is there. */
double normalize_value_put(int dtype, void *data, int64_t i, double value);

/* The same where rows or channels lie together in long runs (normalize_runs.c). */
bool normalize_has_runs(const struct normalization *n);
void normalize_runs_forward(const struct normalization *n, const struct normalize_forward *data);
size_t normalize_runs_space(const struct normalization *n);
void normalize_runs_gradient(const struct normalization *n, const struct normalize_gradient *data,
                             void *space);

struct kernel_cost normalize_forward_cost(const struct kernel_call *call,
                                          const struct normalization *n);
struct kernel_cost normalize_gradient_cost(const struct kernel_call *call,
                                           const struct normalization *n);

/* A statistic or weight of channels with axes of extent 1, so that it broadcasts against x. */
kernel_ref normalize_emit_kept(struct kernel_rule *rule, const struct normalization *n,
                               kernel_ref value, kernel_ref x);
/* Adds to input `input`, which has the shape of a statistic, the sum of a value over the axes. */
void normalize_accumulate_sum(struct kernel_rule *rule, const struct normalization *n, int input,
                              kernel_ref value);
/* Adds to x's adjoint, input 0, what the adjoint g of the rows' rstd gives; mean as centered. */
void normalize_accumulate_rstd(struct kernel_rule *rule, const struct normalization *n,
                               kernel_ref mean, kernel_ref rstd, kernel_ref g);

/* The pullback of the gradient, an op with inputs g, x, w, mean (if centered), rstd and outputs gx,
 * gw, gb (if centered). */
void normalize_gradient_pullback(struct kernel_rule *rule, const struct normalization *n);

/* Rows of x, their statistics, and weights of its last axes, which are operand `w` and those behind
 * it that have its axes. */
void normalize_rows_depends(const struct kernel_call *call, int o, int i, int w,
                            struct kernel_depends *d);

#endif
