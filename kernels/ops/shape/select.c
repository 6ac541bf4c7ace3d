/* ops/shape/select.c: one index of one axis, which goes away.
 *
 * Always a view; no element moves.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "part.h"
#include "reduction_samples.h"

static const struct kernel_sample samples[] = {
    AXES_SAMPLE(2, (4, 5), -1, 1, 2, 0, 2),     AXES_SAMPLE(2, (4, 5), -1, 1, 2, 1, -1),
    AXES_SAMPLE(3, (3, 4, 2), -1, 1, 2, -2, 1), AXES_SAMPLE(1, (6), -1, 1, 2, 0, 0),
    AXES_SAMPLE(2, (0, 4), -1, 1, 2, 1, 3),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    const int axis = kernel_part_axis(call, call->attr[0], x->rank);
    if (axis < 0)
        return -1;
    const int64_t n = x->shape[axis], index = call->attr[1];
    if (index < -n || index >= n)
        return kernel_refuse_operands(call, "", "index %lld is not in -%lld..%lld of axis %d",
                                      (long long)index, (long long)n, (long long)n - 1, axis);
    kernel_shape_begin(out, x->dtype, x->rank - 1);
    out->view_of = 0;
    bool empty = false;
    for (int from = 0, to = 0; from < x->rank; from++) {
        if (from == axis)
            continue;
        out->extent[to] = x->shape[from];
        empty = empty || x->shape[from] == 0;
        out->stride[to++] = x->strides[from];
    }
    out->offset = empty ? 0 : (index < 0 ? index + n : index) * x->strides[axis];
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0];
    int64_t kept[KERNEL_MAX_RANK];
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const int axis = kernel_axis(rule->attr[0], x->rank);
    const int64_t n = x->shape[axis];
    for (int i = 0; i < x->rank; i++)
        kept[i] = i == axis ? 1 : x->shape[i];
    const int64_t attr[] = {axis, rule->attr[1] < 0 ? rule->attr[1] + n : rule->attr[1], 1, n};
    const kernel_ref row =
        kernel_emit_shape(rule, &kernel_op_reshape, rule->adjoint[0], x->rank, kept);
    kernel_accumulate(rule, 0, &kernel_op_slice_add, 1, &row, 4, attr);
}

KERNEL_OP(select) = {
    .name = "select",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"axis", KERNEL_ATTR_INT}, {"index", KERNEL_ATTR_INT}),
    .n_out = 1,
    .any_dtype = true,
    .depends = kernel_depends_moves,
    .shape = shape,
    .forward = kernel_forward_view,
    .pullback = pullback,
    .cost = kernel_cost_view,
    .sample = sample,
    .brief = "One index of one axis, as a view without that axis.",
    .shapes = "x [...,n,...] -> [...,...]",
    .formula = "y[...,...] = x[...,index,...]",
    .derivative = "x'[...,index,...] += y'",
    .edges = "negative axis and index count from the end; an index that is not there is an error",
};
