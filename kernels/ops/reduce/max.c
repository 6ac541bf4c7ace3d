/* ops/reduce/max.c: maximum over axes.
 *
 * May include: elementwise.h, op_rules.h, reduction_samples.h, kernel_ops.h. NaN wins, and
 * the gradient is divided among equal maxima.
 */
#include "elementwise.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "reduction_samples.h"

#include <math.h>

static const char *const names[] = {"x"};
static const struct kernel_attr_info attrs[] = {{"keepdim", KERNEL_ATTR_FLAG},
                                                {"axes", KERNEL_ATTR_AXES}};

static const struct kernel_sample samples[] = {
    REDUCTION_SAMPLES(-1, 1),
    AXES_SAMPLE(1, (65), -1, 1, 1, 0),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    if (kernel_reduction_shape(call, out) != 0)
        return -1;
    return kernel_require_filled(call, 1, "maximum");
}

static int forward(const struct kernel_call *call)
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

/* The ties' shares are constant, so the gradient of what is recorded here stops at them. */
static void pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const kernel_ref most = kernel_emit_kept(rule, rule->out[0]);
    const kernel_ref share = kernel_emit_kept(rule, rule->adjoint[0]);
    kernel_accumulate_value(rule, 0, kernel_emit_tied(rule, rule->in[0], most, share, 1));
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    return (struct kernel_cost){.flops = (uint64_t)call->in[0]->size,
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(max) = {
    .name = "max",
    .in_names = names,
    .attrs = attrs,
    .n_in = 1,
    .n_out = 1,
    .n_attrs = 2,
    .saves_in = 1,
    .saves_out = 1,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .sample = sample,
    .brief = "Maximum over axes.",
    .shapes = "x [...] -> x without the axes, or with extents of 1 there",
    .formula = "y = max over the axes of x",
    .derivative = "x' += y' / number of maxima, where x = y",
    .edges = "NaN if any element is NaN, which then gets the gradient; the maximum of nothing is "
             "refused",
};
