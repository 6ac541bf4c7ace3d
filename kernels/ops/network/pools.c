/* ops/network/pools.c: maxima and means of windows, in one axis and in two.
 *
 * Of maxima, output 1 has their numbers, which are all that the pullback reads. Means are linear:
 * nothing is saved.
 */
#include "dense.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "pooling.h"
#include "reduction_samples.h"

#include <string.h>

static const struct kernel_sample max_pool1d_samples[] = {
    AXES_SAMPLE(2, (3, 7), -2, 2, 3, 2, 2, 0),
    AXES_SAMPLE(1, (1), -2, 2, 3, 1, 1, 0),
    AXES_SAMPLE(3, (2, 2, 5), -2, 2, 3, 3, 2, 1),
    AXES_SAMPLE(2, (0, 3), -2, 2, 3, 2, 1, 0),
};
KERNEL_SAMPLES_OF(max_pool1d)

static const struct pooling_family max_pool1d_family = {
    .axes = 1, .most_axes = KERNEL_MAX_RANK, .wanted = "x [...,l]", .make = pooling_make};

KERNEL_OP(max_pool1d) = {
    .name = "max_pool1d",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"kernel", KERNEL_ATTR_INT}, {"stride", KERNEL_ATTR_OPTION_KERNEL},
                 {"padding", KERNEL_ATTR_OPTION}),
    .n_out = 2,
    .saves_out = 2,
    .family = &max_pool1d_family,
    .depends = pooling_depends,
    .shape = pooling_shape,
    .forward = pooling_forward,
    .pullback = pooling_max_pullback,
    .cost = pooling_cost,
    .workspace = dense_workspace,
    .sample = max_pool1d_sample,
    .brief = "Maxima of windows that slide over the last axis.",
    .shapes = "x [...,l] -> [...,m], m = (l + 2 padding - kernel) / stride + 1 rounded down",
    .formula = "y[...,q] = max over j of x[...,q stride + j - padding], where that is inside of x",
    .derivative = "x' += y' at the maximum of each window",
    .edges =
        "of equal elements the first gets the gradient; a NaN wins, the first one of a window; "
        "padding is never chosen, and at most half of the window; a window that does not fit "
        "is refused",
};

static const struct kernel_sample max_pool2d_samples[] = {
    AXES_SAMPLE(3, (2, 4, 5), -2, 2, 6, 2, 2, 2, 2, 0, 0),
    AXES_SAMPLE(2, (1, 1), -2, 2, 6, 1, 1, 1, 1, 0, 0),
    AXES_SAMPLE(3, (2, 5, 4), -2, 2, 6, 3, 2, 1, 2, 1, 1),
    AXES_SAMPLE(4, (1, 2, 3, 3), -2, 2, 6, 2, 3, 1, 1, 1, 0),
    AXES_SAMPLE(3, (0, 3, 3), -2, 2, 6, 2, 2, 1, 1, 0, 0),
};
KERNEL_SAMPLES_OF(max_pool2d)

static const struct pooling_family max_pool2d_family = {
    .axes = 2, .most_axes = KERNEL_MAX_RANK, .wanted = "x [...,h,w]", .make = pooling_make};

KERNEL_OP(max_pool2d) = {
    .name = "max_pool2d",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"kernel_h", KERNEL_ATTR_INT}, {"kernel_w", KERNEL_ATTR_INT},
                 {"stride_h", KERNEL_ATTR_OPTION_KERNEL}, {"stride_w", KERNEL_ATTR_OPTION_KERNEL},
                 {"padding_h", KERNEL_ATTR_OPTION}, {"padding_w", KERNEL_ATTR_OPTION}),
    .n_out = 2,
    .saves_out = 2,
    .family = &max_pool2d_family,
    .depends = pooling_depends,
    .shape = pooling_shape,
    .forward = pooling_forward,
    .pullback = pooling_max_pullback,
    .cost = pooling_cost,
    .workspace = dense_workspace,
    .sample = max_pool2d_sample,
    .brief = "Maxima of windows that slide over the last two axes.",
    .shapes =
        "x [...,h,w] -> [...,oh,ow], oh = (h + 2 padding_h - kernel_h) / stride_h + 1 rounded "
        "down, ow likewise",
    .formula = "y[...,p,q] = max over i,j of x[...,p stride_h + i - padding_h,q stride_w + j - "
               "padding_w], where that is inside of x",
    .derivative = "x' += y' at the maximum of each window",
    .edges =
        "of equal elements the first gets the gradient; a NaN wins, the first one of a window; "
        "padding is never chosen, and at most half of the window; a window that does not fit "
        "is refused",
};

static const struct kernel_sample avg_pool1d_samples[] = {
    AXES_SAMPLE(2, (3, 7), -2, 2, 4, 2, 2, 0, 1),
    AXES_SAMPLE(1, (1), -2, 2, 4, 1, 1, 0, 0),
    AXES_SAMPLE(3, (2, 2, 5), -2, 2, 4, 3, 2, 1, 1),
    AXES_SAMPLE(3, (2, 2, 5), -2, 2, 4, 3, 2, 1, 0),
    AXES_SAMPLE(2, (0, 3), -2, 2, 4, 2, 1, 0, 0),
    AXES_SAMPLE(2, (0, 3), -2, 2, 4, 2, 1, 0, 1),
};
KERNEL_SAMPLES_OF(avg_pool1d)

static const struct pooling_family avg_pool1d_family = {.axes = 1,
                                                        .most_axes = KERNEL_MAX_RANK - 1,
                                                        .mean = true,
                                                        .wanted = "x [...,l] of at most 7 axes",
                                                        .make = pooling_make};

/* Through planes of height 1. */
static void avg_pool1d_pullback(struct kernel_rule *rule)
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
    KERNEL_IN("x"),
    KERNEL_ATTRS({"kernel", KERNEL_ATTR_INT}, {"stride", KERNEL_ATTR_OPTION_KERNEL},
                 {"padding", KERNEL_ATTR_OPTION}, {"skip_padding", KERNEL_ATTR_FLAG}),
    .n_out = 1,
    .family = &avg_pool1d_family,
    .depends = pooling_depends,
    .shape = pooling_shape,
    .forward = pooling_forward,
    .pullback = avg_pool1d_pullback,
    .cost = pooling_cost,
    .workspace = dense_workspace,
    .sample = avg_pool1d_sample,
    .brief = "Means of windows that slide over the last axis.",
    .shapes = "x [...,l] -> [...,m], m = (l + 2 padding - kernel) / stride + 1 rounded down",
    .formula =
        "y[...,q] = sum over j of x[...,q stride + j - padding], 0 outside of x, / number of "
        "terms",
    .derivative = "x' += y' / number of terms, at each element of the window",
    .edges =
        "the number of terms is the window's size, with skip_padding the number of its elements "
        "inside of x; padding is at most half of the window; a window "
        "that does not fit is refused",
};

static const struct kernel_sample avg_pool2d_samples[] = {
    AXES_SAMPLE(3, (2, 4, 5), -2, 2, 7, 2, 2, 2, 2, 0, 0, 1),
    AXES_SAMPLE(2, (1, 1), -2, 2, 7, 1, 1, 1, 1, 0, 0, 0),
    AXES_SAMPLE(2, (1, 1), -2, 2, 7, 1, 1, 1, 1, 0, 0, 1),
    AXES_SAMPLE(3, (2, 5, 4), -2, 2, 7, 3, 2, 1, 2, 1, 1, 1),
    AXES_SAMPLE(3, (2, 5, 4), -2, 2, 7, 3, 2, 1, 2, 1, 1, 0),
    AXES_SAMPLE(4, (1, 2, 3, 3), -2, 2, 7, 2, 3, 1, 1, 1, 0, 0),
    AXES_SAMPLE(4, (1, 2, 3, 3), -2, 2, 7, 2, 3, 1, 1, 1, 0, 1),
    AXES_SAMPLE(3, (0, 3, 3), -2, 2, 7, 2, 2, 1, 1, 0, 0, 1),
};
KERNEL_SAMPLES_OF(avg_pool2d)

static const struct pooling_family avg_pool2d_family = {.axes = 2,
                                                        .most_axes = KERNEL_MAX_RANK,
                                                        .mean = true,
                                                        .wanted = "x [...,h,w]",
                                                        .make = pooling_make};

static void avg_pool2d_pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0];
    int64_t attr[9];
    if (rule->adjoint[0] == NULL)
        return;
    memcpy(attr, rule->attr, 7 * sizeof *attr);
    attr[7] = x->shape[x->rank - 2];
    attr[8] = x->shape[x->rank - 1];
    kernel_accumulate(rule, 0, &kernel_op_avg_pool2d_gradient, 1, rule->adjoint, 9, attr);
}

KERNEL_OP(avg_pool2d) = {
    .name = "avg_pool2d",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"kernel_h", KERNEL_ATTR_INT}, {"kernel_w", KERNEL_ATTR_INT},
                 {"stride_h", KERNEL_ATTR_OPTION_KERNEL}, {"stride_w", KERNEL_ATTR_OPTION_KERNEL},
                 {"padding_h", KERNEL_ATTR_OPTION}, {"padding_w", KERNEL_ATTR_OPTION},
                 {"skip_padding", KERNEL_ATTR_FLAG}),
    .n_out = 1,
    .family = &avg_pool2d_family,
    .depends = pooling_depends,
    .shape = pooling_shape,
    .forward = pooling_forward,
    .pullback = avg_pool2d_pullback,
    .cost = pooling_cost,
    .workspace = dense_workspace,
    .sample = avg_pool2d_sample,
    .brief = "Means of windows that slide over the last two axes.",
    .shapes =
        "x [...,h,w] -> [...,oh,ow], oh = (h + 2 padding_h - kernel_h) / stride_h + 1 rounded "
        "down, ow likewise",
    .formula = "y[...,p,q] = sum over i,j of x[...,p stride_h + i - padding_h,q stride_w + j - "
               "padding_w], 0 outside of x, / number of terms",
    .derivative = "x' += y' / number of terms, at each element of the window",
    .edges =
        "the number of terms is the window's size, with skip_padding the number of its elements "
        "inside of x; padding is at most half of the window; a window "
        "that does not fit is refused",
};
