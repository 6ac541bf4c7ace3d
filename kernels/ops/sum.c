/* ops/sum.c: sum over axes.
 *
 * May include: elementwise.h, op_rules.h, kernel_ops.h. Sums are taken in vector lanes and blocks,
 * so that the error does not grow in proportion to the number of terms.
 */
#include "elementwise.h"
#include "kernel_ops.h"
#include "op_rules.h"

static const char *const names[] = {"x"};
static const struct kernel_attr_info attrs[] = {{"keepdim", KERNEL_ATTR_FLAG},
                                                {"axes", KERNEL_ATTR_AXES}};

static const struct kernel_sample samples[] = {
    {.n_in = 1,
     .dtype = {KERNEL_F64},
     .rank = {2},
     .shape = {{3, 5}},
     .low = {-1},
     .high = {1},
     .n_attr = 1,
     .attr = {0}},
    {.n_in = 1,
     .dtype = {KERNEL_F64},
     .rank = {0},
     .low = {-1},
     .high = {1},
     .n_attr = 1,
     .attr = {0}},
    {.n_in = 1,
     .dtype = {KERNEL_F64},
     .rank = {2},
     .shape = {{3, 5}},
     .low = {-1},
     .high = {1},
     .n_attr = 2,
     .attr = {0, 0}},
    {.n_in = 1,
     .dtype = {KERNEL_F64},
     .rank = {2},
     .shape = {{3, 5}},
     .low = {-1},
     .high = {1},
     .n_attr = 2,
     .attr = {1, -1}},
    {.n_in = 1,
     .dtype = {KERNEL_F64},
     .rank = {3},
     .shape = {{2, 3, 4}},
     .low = {-1},
     .high = {1},
     .n_attr = 3,
     .attr = {0, 0, 2}},
    {.n_in = 1,
     .dtype = {KERNEL_F64},
     .rank = {3},
     .shape = {{2, 3, 4}},
     .low = {-1},
     .high = {1},
     .n_attr = 2,
     .attr = {0, 1}},
    {.n_in = 1,
     .dtype = {KERNEL_F64},
     .rank = {1},
     .shape = {{0}},
     .low = {-1},
     .high = {1},
     .n_attr = 1,
     .attr = {0}},
    {.n_in = 1,
     .dtype = {KERNEL_F64},
     .rank = {1},
     .shape = {{65}},
     .low = {-1},
     .high = {1},
     .n_attr = 1,
     .attr = {0}},
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

static struct kernel_cost cost(const struct kernel_call *call)
{
    return (struct kernel_cost){.flops = (uint64_t)call->in[0]->size,
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(sum) = {
    .name = "sum",
    .in_names = names,
    .attrs = attrs,
    .n_in = 1,
    .n_out = 1,
    .n_attrs = 2,
    .accumulates = true,
    .shape = kernel_reduction_shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .sample = sample,
    .brief = "Sum over axes.",
    .shapes = "x [...] -> x without the axes, or with extents of 1 there",
    .formula = "y = sum over the axes of x",
    .derivative = "x' += y', broadcast over the axes",
    .edges = "the sum of nothing is 0",
};
