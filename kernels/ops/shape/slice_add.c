/* ops/shape/slice_add.c: zeros with an array in the range of one axis that slice takes.
 *
 * The adjoint of slice. When it accumulates, it touches only the range.
 */
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "part.h"
#include "reduction_samples.h"

static const struct kernel_sample samples[] = {
    AXES_SAMPLE(2, (2, 5), -1, 1, 4, 0, 1, 1, 4),     AXES_SAMPLE(2, (4, 2), -1, 1, 4, 1, 1, 2, 5),
    AXES_SAMPLE(3, (3, 3, 2), -1, 1, 4, -2, 0, 3, 7), AXES_SAMPLE(1, (6), -1, 1, 4, 0, 0, 1, 6),
    AXES_SAMPLE(1, (1), -1, 1, 4, 0, 5, 1, 6),        AXES_SAMPLE(1, (0), -1, 1, 4, 0, 3, 1, 4),
    AXES_SAMPLE(1, (0), -1, 1, 4, 0, 0, 1, 0),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    if (kernel_require_float(call, 0) != 0)
        return -1;
    const int axis = kernel_part_axis(call, call->attr[0], x->rank);
    if (axis < 0)
        return -1;
    const int64_t n = x->shape[axis], start = call->attr[1], step = call->attr[2];
    const int64_t extent = call->attr[3];
    if (start < 0 || step < 1 || start > extent || (n > 0 && start == extent) ||
        (n > 1 && (extent - 1 - start) / step < n - 1))
        return kernel_refuse_operands(call, "", "extent %lld does not hold the range",
                                      (long long)extent);
    kernel_shape_begin(out, x->dtype, x->rank);
    for (int i = 0; i < x->rank; i++)
        out->extent[i] = i == axis ? extent : x->shape[i];
    return 0;
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    const int axis = kernel_part_axis(call, call->attr[0], x->rank);
    struct kernel_view part;
    if (!call->accumulate)
        kernel_fill(call->out[0], 0);
    kernel_part_view(&part, call->out[0], axis, call->attr[1], call->attr[2], x->shape[axis]);
    kernel_part_copy(&part.array, x, call->accumulate);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0];
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const int axis = kernel_axis(rule->attr[0], x->rank);
    const int64_t start = rule->attr[1], step = rule->attr[2], n = x->shape[axis];
    const int64_t attr[] = {axis, start, n > 0 ? start + (n - 1) * step + 1 : start, step};
    kernel_accumulate_value(rule, 0,
                            kernel_emit(rule, &kernel_op_slice, 1, &rule->adjoint[0], 4, attr));
}

KERNEL_OP(slice_add) = {
    .name = "slice_add",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"axis", KERNEL_ATTR_INT}, {"start", KERNEL_ATTR_INT}, {"step", KERNEL_ATTR_INT},
                 {"extent", KERNEL_ATTR_INT}),
    .n_out = 1,
    .hidden = true,
    .accumulates = true,
    .depends = kernel_depends_moves,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = kernel_cost_put,
    .sample = sample,
    .brief = "Zeros with x at start, start + step, ... of one axis.",
    .shapes = "x [...,n,...] -> [...,extent,...]",
    .formula = "y[...,start + i step,...] = x[...,i,...], 0 elsewhere",
    .derivative = "x'[...,i,...] += y'[...,start + i step,...]",
};
