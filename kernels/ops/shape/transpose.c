/* ops/shape/transpose.c: exchanges the last two axes.
 *
 * Always a view; no element moves.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"

static const struct kernel_sample samples[] = {
    {.n_in = 1, .dtype = {KERNEL_F64}, .rank = {2}, .shape = {{3, 5}}, .low = {-1}, .high = {1}},
    {.n_in = 1, .dtype = {KERNEL_F64}, .rank = {2}, .shape = {{1, 1}}, .low = {-1}, .high = {1}},
    {.n_in = 1, .dtype = {KERNEL_F64}, .rank = {2}, .shape = {{0, 4}}, .low = {-1}, .high = {1}},
    {.n_in = 1, .dtype = {KERNEL_F64}, .rank = {3}, .shape = {{2, 9, 7}}, .low = {-1}, .high = {1}},
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    if (x->rank < 2)
        return kernel_refuse_operands(call, "", "at least two axes are wanted");
    kernel_shape_begin(out, x->dtype, x->rank);
    out->view_of = 0;
    for (int axis = 0; axis < x->rank; axis++) {
        const int from = axis == x->rank - 1 ? axis - 1 : axis == x->rank - 2 ? axis + 1 : axis;
        out->extent[axis] = x->shape[from];
        out->stride[axis] = x->strides[from];
    }
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] != NULL && kernel_needs(rule, 0))
        kernel_accumulate_value(rule, 0,
                                kernel_emit1(rule, &kernel_op_transpose, rule->adjoint[0]));
}

KERNEL_OP(transpose) = {
    .name = "transpose",
    KERNEL_IN("x"),
    .n_out = 1,
    .any_dtype = true,
    .depends = kernel_depends_moves,
    .shape = shape,
    .forward = kernel_forward_view,
    .pullback = pullback,
    .cost = kernel_cost_view,
    .sample = sample,
    .brief = "Exchange of the last two axes, as a view.",
    .shapes = "x [...,m,n] -> [...,n,m]",
    .formula = "y_ji = x_ij",
    .derivative = "x' += y'^T",
};
