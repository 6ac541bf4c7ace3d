/* ops/network/avg_pool1d.c: the mean of each window, in one axis.
 *
 * May include: pooling.h, reduction_samples.h, dense.h, kernel_ops.h. Linear: nothing is saved.
 */
#include "dense.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "pooling.h"
#include "reduction_samples.h"

#include <string.h>

static const char *const names[] = {"x"};
static const struct kernel_attr_info attrs[] = {{"kernel", KERNEL_ATTR_INT},
                                                {"stride", KERNEL_ATTR_INT},
                                                {"padding", KERNEL_ATTR_INT},
                                                {"count_padding", KERNEL_ATTR_FLAG}};

static const struct kernel_sample samples[] = {
    AXES_SAMPLE(2, (3, 7), -2, 2, 4, 2, 2, 0, 0),
    AXES_SAMPLE(1, (1), -2, 2, 4, 1, 1, 0, 1),
    AXES_SAMPLE(3, (2, 2, 5), -2, 2, 4, 3, 2, 1, 0),
    AXES_SAMPLE(3, (2, 2, 5), -2, 2, 4, 3, 2, 1, 1),
    AXES_SAMPLE(2, (0, 3), -2, 2, 4, 2, 1, 0, 1),
    AXES_SAMPLE(2, (0, 3), -2, 2, 4, 2, 1, 0, 0),
};
KERNEL_SAMPLES(samples)

static const struct pooling_family family = {.axes = 1,
                                             .most_axes = KERNEL_MAX_RANK - 1,
                                             .mean = true,
                                             .wanted = "x [...,l] of at most 7 axes",
                                             .make = pooling_make};

/* Through planes of height 1. */
static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0], g = rule->adjoint[0];
    const int last = x->rank - 1;
    const int64_t *const own = rule->attr;
    int64_t shape_of[KERNEL_MAX_RANK];
    if (g == NULL || !kernel_needs(rule, 0))
        return;
    const int64_t attr[] = {1, own[0], 1, own[1], 0, own[2], own[3], 1, x->shape[last]};
    memcpy(shape_of, g->shape, (size_t)last * sizeof *shape_of);
    shape_of[last] = 1;
    shape_of[last + 1] = g->shape[last];
    const kernel_ref wide = kernel_emit_shape(rule, &kernel_op_reshape, g, x->rank + 1, shape_of);
    const kernel_ref to_x = kernel_emit(rule, &kernel_op_avg_pool2d_gradient, 1, &wide, 9, attr);
    kernel_accumulate_value(rule, 0,
                            kernel_emit_shape(rule, &kernel_op_reshape, to_x, x->rank, x->shape));
}

KERNEL_OP(avg_pool1d) = {
    .name = "avg_pool1d",
    .in_names = names,
    .attrs = attrs,
    .n_in = 1,
    .n_out = 1,
    .n_attrs = 4,
    .family = &family,
    .shape = pooling_shape,
    .forward = pooling_forward,
    .pullback = pullback,
    .cost = pooling_cost,
    .workspace = dense_workspace,
    .sample = sample,
    .brief = "Means of windows that slide over the last axis.",
    .shapes = "x [...,l] -> [...,m], m = (l + 2 padding - kernel) / stride + 1 rounded down",
    .formula =
        "y[...,q] = sum over j of x[...,q stride + j - padding], 0 outside of x, / number of "
        "terms",
    .derivative = "x' += y' / number of terms, at each element of the window",
    .edges =
        "with count_padding the number of terms is the window's size, which is usual, else the "
        "number of its elements inside of x; padding is at most half of the window; a window "
        "that does not fit is refused",
};
