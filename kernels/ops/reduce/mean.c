/* ops/reduce/mean.c: mean over axes.
 *
 * The sum is taken as in sum.c and divided once.
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
    struct kernel_array *out = call->out[0];
    if (kernel_axes(call, 1, &axes) != 0)
        return -1;
    kernel_fill(out, 0);
    kernel_keep_axes(&kept, out, call->in[0], axes);
    kernel_reduce(KERNEL_REDUCE_SUM, &kept.array, call->in[0]);
    const double count = (double)kernel_axes_count(call->in[0], axes);
    const float narrow = (float)count;
    struct kernel_array divisor = {.size = 1, .dtype = out->dtype, .contiguous = true};
    if (out->dtype == KERNEL_F32)
        divisor.data = (void *)&narrow;
    else
        divisor.data = (void *)&count;
    const kernel_ref in[] = {out, &divisor};
    kernel_elementwise(LOOP_div, out, 2, in, NULL, false);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0];
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const int64_t shares = x->size == 0 ? 1 : x->size / rule->out[0]->size;
    const kernel_ref share =
        kernel_emit_real(rule, &kernel_op_scale, 1 / (double)shares, rule->adjoint[0]);
    const kernel_ref kept = kernel_emit_kept(rule, share);
    kernel_accumulate_value(
        rule, 0, kernel_emit_shape(rule, &kernel_op_broadcast_to, kept, x->rank, x->shape));
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    return (struct kernel_cost){.flops = (uint64_t)(call->in[0]->size + 4 * call->out[0]->size),
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(mean) = {
    .name = "mean",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"keepdim", KERNEL_ATTR_FLAG}, {"axes", KERNEL_ATTR_AXES}),
    .n_out = 1,
    .depends = kernel_depends_axes,
    .shape = kernel_reduction_shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .sample = sample,
    .brief = "Mean over axes.",
    .shapes = "x [...] -> x without the axes, or with extents of 1 there",
    .formula = "y = sum over the axes of x / number of terms",
    .derivative = "x' += y' / number of terms, broadcast over the axes",
    .edges = "the mean of nothing is NaN",
};
