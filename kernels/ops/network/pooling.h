/* pooling.h: windows that slide over the last one or two axes.
 *
 * May include: kernel.h. Internal to kernels/. All other axes are planes, one after another; one
 * axis is a plane of height 1. Every window has an element inside the plane, since the padding is
 * at most half of the window.
 */
#ifndef POOLING_H
#define POOLING_H

#include "kernel.h"

struct pooling {
    int dtype;
    bool count_padding; /* means are over the whole window, padding counts as 0 */
    int64_t planes;
    int64_t image[2], kernel[2], result[2], stride[2], padding[2]; /* height and width */
};

/* From x, whose last `axes` axes are pooled, and attributes: kernel, stride and padding, each one
 * word an axis. Returns 0, or -1 with call->error. */
int pooling_make(const struct kernel_call *call, int axes, struct pooling *all);

/* The shape of the result: x's with the last axes replaced. */
void pooling_shape(const struct pooling *all, kernel_ref x, int axes, struct kernel_shape *out);

/* y: maxima, and at: their numbers in the plane. Row-major arrays. */
void pooling_max(const struct pooling *all, const void *x, void *y, int64_t *at);

/* y = means; x (+)= their adjoint, which takes workspace for a row of y. */
void pooling_mean(const struct pooling *all, const void *x, void *y);
void pooling_spread(const struct pooling *all, const void *y, void *x, bool accumulate,
                    void *space);

/* Elements of all windows. */
uint64_t pooling_terms(const struct pooling *all);

#endif
