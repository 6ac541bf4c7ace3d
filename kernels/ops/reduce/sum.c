/* ops/reduce/sum.c: sum over axes.
 *
 * Sums are taken in vector lanes and blocks, so that the error does not grow in proportion to the
 * number of terms.
 */
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "reduction_samples.h"

static const struct kernel_sample samples[] = {
    REDUCTION_SAMPLES(-1, 1),
    AXES_SAMPLE(1, (0), -1, 1, 1, 0),
    AXES_SAMPLE(1, (65), -1, 1, 1, 0),
};
KERNEL_SAMPLES(samples)

static int forward(const struct kernel_call *call)
{
    unsigned axes;
    struct kernel_view kept;
    if (kernel_axes(call, 1, &axes) != 0)
        return -1;
    if (!call->accumulate)
        kernel_fill(call->out[0], 0);
    kernel_keep_axes(&kept, call->out[0], call->in[0], axes);
    kernel_reduce(KERNEL_REDUCE_SUM, &kept.array, call->in[0]);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0];
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const kernel_ref kept = kernel_emit_kept(rule, rule->adjoint[0]);
    kernel_accumulate_value(
        rule, 0, kernel_emit_shape(rule, &kernel_op_broadcast_to, kept, x->rank, x->shape));
}

KERNEL_OP(sum) = {
    .name = "sum",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"keepdim", KERNEL_ATTR_FLAG}, {"axes", KERNEL_ATTR_AXES}),
    .n_out = 1,
    .accumulates = true,
    .depends = kernel_depends_axes,
    .shape = kernel_reduction_shape,
    .forward = forward,
    .pullback = pullback,
    .flops_per_element = 1,
    .sample = sample,
    .brief = "Sum over axes.",
    .shapes = "x [...] -> x without the axes, or with extents of 1 there",
    .formula = "y = sum over the axes of x",
    .derivative = "x' += y', broadcast over the axes",
    .edges = "the sum of nothing is 0",
};
