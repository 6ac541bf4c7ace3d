/* ops/max.c: maximum over axes.
 *
 * May include: elementwise.h, op_rules.h, kernel_ops.h. NaN wins, and
 * the gradient is divided among equal maxima.
 */
#include "elementwise.h"
#include "kernel_ops.h"
#include "op_rules.h"

#include <math.h>

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
     .shape = {{65}},
     .low = {-1},
     .high = {1},
     .n_attr = 1,
     .attr = {0}},
    {.n_in = 1,
     .dtype = {KERNEL_F64},
     .rank = {2},
     .shape = {{0, 3}},
     .low = {-1},
     .high = {1},
     .n_attr = 2,
     .attr = {0, 1}},
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
