/* ops/network/max_pool1d.c: the greatest element of each window, in one axis.
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
    {"kernel", KERNEL_ATTR_INT}, {"stride", KERNEL_ATTR_INT}, {"padding", KERNEL_ATTR_INT}};

static const struct kernel_sample samples[] = {
    AXES_SAMPLE(2, (3, 7), -2, 2, 3, 2, 2, 0),
    AXES_SAMPLE(1, (1), -2, 2, 3, 1, 1, 0),
    AXES_SAMPLE(3, (2, 2, 5), -2, 2, 3, 3, 2, 1),
    AXES_SAMPLE(2, (0, 3), -2, 2, 3, 2, 1, 0),
};
KERNEL_SAMPLES(samples)

static const struct pooling_family family = {
    .axes = 1, .most_axes = KERNEL_MAX_RANK, .wanted = "x [...,l]", .make = pooling_make};

KERNEL_OP(max_pool1d) = {
    .name = "max_pool1d",
    .in_names = names,
    .attrs = attrs,
    .n_in = 1,
    .n_out = 2,
    .n_attrs = 3,
    .saves_out = 2,
    .family = &family,
    .shape = pooling_shape,
    .forward = pooling_forward,
    .pullback = pooling_max_pullback,
    .cost = pooling_cost,
    .workspace = dense_workspace,
    .sample = sample,
    .brief = "Maxima of windows that slide over the last axis.",
    .shapes = "x [...,l] -> [...,m], m = (l + 2 padding - kernel) / stride + 1 rounded down",
    .formula = "y[...,q] = max over j of x[...,q stride + j - padding], where that is inside of x",
    .derivative = "x' += y' at the maximum of each window",
    .edges =
        "of equal elements the first gets the gradient; a NaN wins, the first one of a window; "
        "padding is never chosen, and at most half of the window; a window that does not fit "
        "is refused",
};
