/* pooling.h: windows that slide over the last one or two axes.
 *
 * Internal to kernels/. All other axes are planes, one after another; one axis is a plane of
 * height 1. Every window has an element inside the plane, since the padding is at most half of the
 * window. Attributes are kernel, stride and padding, each one word an axis, and for means
 * count_padding.
 */
#ifndef POOLING_H
#define POOLING_H

#include "kernel_depends.h"

struct pooling {
    int dtype;
    bool count_padding; /* means are over the whole window, padding counts as 0 */
    int64_t planes;
    int64_t image[2], kernel[2], result[2], stride[2], padding[2]; /* height and width */
};

/* What the ops differ in. */
struct pooling_family {
    int axes;           /* that are pooled, the last ones */
    int most_axes;      /* of x */
    bool mean;          /* else maxima, with their numbers as output 1 */
    const char *wanted; /* what x is, for people */
    int (*make)(const struct kernel_call *call, struct pooling *all);
};

/* `make` of a family whose input is x. Returns 0, or -1 with call->error. */
int pooling_make(const struct kernel_call *call, struct pooling *all);

/* Functions of its ops; the pullback is that of maxima. */
int pooling_shape(const struct kernel_call *call, struct kernel_shape *out);
int pooling_forward(const struct kernel_call *call);
void pooling_max_pullback(struct kernel_rule *rule);
struct kernel_cost pooling_cost(const struct kernel_call *call);

/* By windows. */
void pooling_depends(const struct kernel_call *call, int o, int i, struct kernel_depends *d);

/* x (+)= adjoint of the means y, and its workspace. */
size_t pooling_spread_space(const struct pooling *all);
void pooling_spread(const struct pooling *all, const void *y, void *x, bool accumulate,
                    void *space);

#endif
