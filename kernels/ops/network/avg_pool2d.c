/* ops/network/avg_pool2d.c: the mean of each window, in two axes.
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
static const struct kernel_attr_info attrs[] = {
    {"kernel_h", KERNEL_ATTR_INT},      {"kernel_w", KERNEL_ATTR_INT},
    {"stride_h", KERNEL_ATTR_INT},      {"stride_w", KERNEL_ATTR_INT},
    {"padding_h", KERNEL_ATTR_INT},     {"padding_w", KERNEL_ATTR_INT},
    {"count_padding", KERNEL_ATTR_FLAG}};

static const struct kernel_sample samples[] = {
    AXES_SAMPLE(3, (2, 4, 5), -2, 2, 7, 2, 2, 2, 2, 0, 0, 0),
    AXES_SAMPLE(2, (1, 1), -2, 2, 7, 1, 1, 1, 1, 0, 0, 1),
    AXES_SAMPLE(2, (1, 1), -2, 2, 7, 1, 1, 1, 1, 0, 0, 0),
    AXES_SAMPLE(3, (2, 5, 4), -2, 2, 7, 3, 2, 1, 2, 1, 1, 0),
    AXES_SAMPLE(3, (2, 5, 4), -2, 2, 7, 3, 2, 1, 2, 1, 1, 1),
    AXES_SAMPLE(4, (1, 2, 3, 3), -2, 2, 7, 2, 3, 1, 1, 1, 0, 1),
    AXES_SAMPLE(4, (1, 2, 3, 3), -2, 2, 7, 2, 3, 1, 1, 1, 0, 0),
    AXES_SAMPLE(3, (0, 3, 3), -2, 2, 7, 2, 2, 1, 1, 0, 0, 0),
};
KERNEL_SAMPLES(samples)

static const struct pooling_family family = {.axes = 2,
                                             .most_axes = KERNEL_MAX_RANK,
                                             .mean = true,
                                             .wanted = "x [...,h,w]",
                                             .make = pooling_make};

static void pullback(struct kernel_rule *rule)
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
    .in_names = names,
    .attrs = attrs,
    .n_in = 1,
    .n_out = 1,
    .n_attrs = 7,
    .family = &family,
    .shape = pooling_shape,
    .forward = pooling_forward,
    .pullback = pullback,
    .cost = pooling_cost,
    .workspace = dense_workspace,
    .sample = sample,
    .brief = "Means of windows that slide over the last two axes.",
    .shapes =
        "x [...,h,w] -> [...,oh,ow], oh = (h + 2 padding_h - kernel_h) / stride_h + 1 rounded "
        "down, ow likewise",
    .formula = "y[...,p,q] = sum over i,j of x[...,p stride_h + i - padding_h,q stride_w + j - "
               "padding_w], 0 outside of x, / number of terms",
    .derivative = "x' += y' / number of terms, at each element of the window",
    .edges =
        "with count_padding the number of terms is the window's size, which is usual, else the "
        "number of its elements inside of x; padding is at most half of the window; a window "
        "that does not fit is refused",
};
