/* kernel_wide.h: one call of an op on the arrays of several seeds (kernel_array.seed_stride). */
#ifndef KERNEL_WIDE_H
#define KERNEL_WIDE_H

#include "kernel.h"

/* Points into itself: it is not copied. */
struct kernel_wide {
    struct kernel_call call;
    kernel_ref in[KERNEL_MAX_IN];
    struct kernel_array *out[1], array[KERNEL_MAX_IN + 1];
    int64_t shape[KERNEL_MAX_IN + 1][KERNEL_MAX_RANK], strides[KERNEL_MAX_IN + 1][KERNEL_MAX_RANK];
};

/* The call on all n seeds at once, which are one more axis in front. False: the op has no room for
 * it, and is to be called once for each seed. */
bool kernel_wide_make(struct kernel_wide *wide, const struct kernel_call *call, uint32_t n);

#endif
