/* ops/shape/permute.c: puts the axes into another order.
 *
 * Always a view; no element moves.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "part.h"
#include "reduction_samples.h"

/* One axis for each axis of the result. */

static const struct kernel_sample samples[] = {
    AXES_SAMPLE(3, (2, 3, 4), -1, 1, 3, 2, 0, 1),
    AXES_SAMPLE(3, (2, 3, 4), -1, 1, 3, -2, -1, -3),
    AXES_SAMPLE(2, (3, 5), -1, 1, 2, 1, 0),
    AXES_SAMPLE(4, (2, 1, 3, 2), -1, 1, 4, 3, 1, 0, 2),
    AXES_SAMPLE(3, (1, 7, 1), -1, 1, 3, 1, 0, 2),
    AXES_SAMPLE(2, (0, 4), -1, 1, 2, 1, 0),
    AXES_SAMPLE(1, (5), -1, 1, 1, 0),
    {.n_in = 1, .dtype = {KERNEL_F64}, .rank = {0}, .low = {-1}, .high = {1}},
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    unsigned seen = 0;
    if (call->n_attr != x->rank)
        return kernel_refuse_operands(call, "", "%d axes are named, there are %d", call->n_attr,
                                      x->rank);
    kernel_shape_begin(out, x->dtype, x->rank);
    out->view_of = 0;
    for (int to = 0; to < x->rank; to++) {
        const int axis = kernel_part_axis(call, call->attr[to], x->rank);
        if (axis < 0)
            return -1;
        if (seen >> axis & 1)
            return kernel_refuse_operands(call, "", "axis %lld is named twice",
                                          (long long)call->attr[to]);
        seen |= 1U << axis;
        out->extent[to] = x->shape[axis];
        out->stride[to] = x->strides[axis];
    }
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const int rank = rule->in[0]->rank;
    int64_t back[KERNEL_MAX_RANK];
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    for (int to = 0; to < rank; to++)
        back[rule->attr[to] < 0 ? rule->attr[to] + rank : rule->attr[to]] = to;
    kernel_accumulate_value(
        rule, 0, kernel_emit_shape(rule, &kernel_op_permute, rule->adjoint[0], rank, back));
}

KERNEL_OP(permute) = {
    .name = "permute",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"axes", KERNEL_ATTR_SHAPE}),
    .n_out = 1,
    .any_dtype = true,
    .depends = kernel_depends_moves,
    .shape = shape,
    .forward = kernel_forward_view,
    .pullback = pullback,
    .cost = kernel_cost_view,
    .sample = sample,
    .brief = "The axes in another order, as a view.",
    .shapes = "x [...] -> x's extents in the order of axes",
    .formula = "axis i of y is axis axes[i] of x",
    .derivative = "x' += y' with the axes put back",
    .edges = "every axis is named once, negative ones count from the end",
};
