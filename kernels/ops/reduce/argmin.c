/* ops/reduce/argmin.c: the place of the minimum along an axis.
 *
 * May include: extreme_place.h, op_rules.h, kernel_ops.h.
 */
#include "extreme_place.h"
#include "kernel_ops.h"
#include "op_rules.h"

static const char *const names[] = {"x"};
static const struct kernel_attr_info attrs[] = {{"axis", KERNEL_ATTR_INT},
                                                {"keepdim", KERNEL_ATTR_FLAG}};

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    return kernel_extreme_shape(call, "minimum", out);
}

static int forward(const struct kernel_call *call)
{
    return kernel_extreme_place(call, true);
}

KERNEL_OP(argmin) = {
    .name = "argmin",
    .in_names = names,
    .attrs = attrs,
    .n_in = 1,
    .n_out = 1,
    .n_attrs = 2,
    .constant = true,
    .shape = shape,
    .forward = forward,
    .pullback = kernel_pullback_none,
    .cost = kernel_extreme_cost,
    .workspace = kernel_extreme_workspace,
    .sample = kernel_extreme_sample,
    .brief = "Place of the minimum along an axis, as i64.",
    .shapes = "x [...,n,...] -> i64, x without the axis, or with an extent of 1 there",
    .formula = "y = the first i with x_i the least",
    .derivative = "0: constant, no gradient flows",
    .edges = "the first of equal minima; NaN counts as the minimum, so it is the first NaN where "
             "there is one; an empty axis is refused",
};
