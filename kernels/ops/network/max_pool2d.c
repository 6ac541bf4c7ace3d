/* ops/network/max_pool2d.c: the greatest element of each window, in two axes.
 *
 * May include: pooling.h, reduction_samples.h, dense.h, kernel_ops.h. Output 1, the maxima's
 * numbers, is all that the pullback reads.
 */
#include "dense.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "pooling.h"
#include "reduction_samples.h"

static const char *const names[] = {"x"};
static const struct kernel_attr_info attrs[] = {
    {"kernel_h", KERNEL_ATTR_INT}, {"kernel_w", KERNEL_ATTR_INT},  {"stride_h", KERNEL_ATTR_INT},
    {"stride_w", KERNEL_ATTR_INT}, {"padding_h", KERNEL_ATTR_INT}, {"padding_w", KERNEL_ATTR_INT}};

static const struct kernel_sample samples[] = {
    AXES_SAMPLE(3, (2, 4, 5), -2, 2, 6, 2, 2, 2, 2, 0, 0),
    AXES_SAMPLE(2, (1, 1), -2, 2, 6, 1, 1, 1, 1, 0, 0),
    AXES_SAMPLE(3, (2, 5, 4), -2, 2, 6, 3, 2, 1, 2, 1, 1),
    AXES_SAMPLE(4, (1, 2, 3, 3), -2, 2, 6, 2, 3, 1, 1, 1, 0),
    AXES_SAMPLE(3, (0, 3, 3), -2, 2, 6, 2, 2, 1, 1, 0, 0),
};
KERNEL_SAMPLES(samples)

static const struct pooling_family family = {
    .axes = 2, .most_axes = KERNEL_MAX_RANK, .wanted = "x [...,h,w]", .make = pooling_make};

KERNEL_OP(max_pool2d) = {
    .name = "max_pool2d",
    .in_names = names,
    .attrs = attrs,
    .n_in = 1,
    .n_out = 2,
    .n_attrs = 6,
    .saves_out = 2,
    .family = &family,
    .shape = pooling_shape,
    .forward = pooling_forward,
    .pullback = pooling_max_pullback,
    .cost = pooling_cost,
    .workspace = dense_workspace,
    .sample = sample,
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
