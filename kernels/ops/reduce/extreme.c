/* ops/reduce/extreme.c: max and min over axes.
 *
 * The minimum is the negated maximum of the negated elements. NaN wins, and the gradient is divided
 * among equal extremes.
 */
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "reduction_samples.h"

#include <math.h>

static const struct kernel_sample samples[] = {
    REDUCTION_SAMPLES(-1, 1),
    AXES_SAMPLE(1, (65), -1, 1, 1, 0),
};
KERNEL_SAMPLES(samples)

static int extreme_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    if (kernel_reduction_shape(call, out) != 0)
        return -1;
    return kernel_require_filled(call, 1, call->op->family);
}

static int max_forward(const struct kernel_call *call)
{
    unsigned axes;
    struct kernel_view kept;
    if (kernel_axes(call, 1, &axes) != 0)
        return -1;
    kernel_fill(call->out[0], -INFINITY);
    kernel_keep_axes(&kept, call->out[0], call->in[0], axes);
    kernel_reduce(KERNEL_REDUCE_MAX, &kept.array, call->in[0]);
    return 0;
}

static size_t min_workspace(const struct kernel_call *call)
{
    return (size_t)call->in[0]->size * kernel_dtype_bytes(call->in[0]->dtype);
}

static int min_forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    unsigned axes;
    struct kernel_view kept, negated;
    if (kernel_axes(call, 1, &axes) != 0)
        return -1;
    kernel_view_dense(&negated, call->workspace, x->dtype, x->rank, x->shape);
    kernel_elementwise(LOOP_neg, &negated.array, 1, &x, 0, false);
    kernel_fill(call->out[0], -INFINITY);
    kernel_keep_axes(&kept, call->out[0], x, axes);
    kernel_reduce(KERNEL_REDUCE_MAX, &kept.array, &negated.array);
    const kernel_ref most = call->out[0];
    kernel_elementwise(LOOP_neg, call->out[0], 1, &most, 0, false);
    return 0;
}

/* The ties' shares are constant, so the gradient of what is recorded here stops at them. */
static void extreme_pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const kernel_ref most = kernel_emit_kept(rule, rule->out[0]);
    const kernel_ref share = kernel_emit_kept(rule, rule->adjoint[0]);
    kernel_accumulate_value(rule, 0, kernel_emit_tied(rule, rule->in[0], most, share, 1));
}

KERNEL_OP(max) = {
    .name = "max",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"keepdim", KERNEL_ATTR_FLAG}, {"axes", KERNEL_ATTR_AXES}),
    .n_out = 1,
    .saves_in = 1,
    .saves_out = 1,
    .family = "maximum",
    .depends = kernel_depends_axes,
    .shape = extreme_shape,
    .forward = max_forward,
    .pullback = extreme_pullback,
    .flops_per_element = 1,
    .sample = sample,
    .brief = "Maximum over axes.",
    .shapes = "x [...] -> x without the axes, or with extents of 1 there",
    .formula = "y = max over the axes of x",
    .derivative = "x' += y' / number of maxima, where x = y",
    .edges = "NaN if any element is NaN, which then gets the gradient; the maximum of nothing is "
             "refused",
};

KERNEL_OP(min) = {
    .name = "min",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"keepdim", KERNEL_ATTR_FLAG}, {"axes", KERNEL_ATTR_AXES}),
    .n_out = 1,
    .saves_in = 1,
    .saves_out = 1,
    .family = "minimum",
    .depends = kernel_depends_axes,
    .shape = extreme_shape,
    .forward = min_forward,
    .pullback = extreme_pullback,
    .flops_per_element = 2,
    .workspace = min_workspace,
    .sample = sample,
    .brief = "Minimum over axes.",
    .shapes = "x [...] -> x without the axes, or with extents of 1 there",
    .formula = "y = min over the axes of x",
    .derivative = "x' += y' / number of minima, where x = y",
    .edges = "NaN if any element is NaN, which then gets the gradient; the minimum of nothing is "
             "refused",
};
