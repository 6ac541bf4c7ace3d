/* ops/shape/slice.c: a range of one axis.
 *
 * Always a view; no element moves.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "part.h"
#include "reduction_samples.h"

static const struct kernel_sample samples[] = {
    AXES_SAMPLE(2, (4, 5), -1, 1, 4, 0, 1, 3, 1),
    AXES_SAMPLE(2, (4, 5), -1, 1, 4, 1, 1, 5, 2),
    AXES_SAMPLE(3, (3, 4, 2), -1, 1, 4, 1, -3, -1, 1),
    AXES_SAMPLE(3, (3, 7, 2), -1, 1, 4, -2, 0, INT64_MAX, 3),
    AXES_SAMPLE(1, (6), -1, 1, 4, 0, 0, 6, 1),
    AXES_SAMPLE(1, (6), -1, 1, 4, 0, 5, 6, 9),
    AXES_SAMPLE(2, (3, 4), -1, 1, 4, 1, 4, 4, 1),
    AXES_SAMPLE(2, (0, 4), -1, 1, 4, 1, 1, 3, 1),
    AXES_SAMPLE(1, (0), -1, 1, 4, 0, 0, 0, 1),
    AXES_SAMPLE(1, (35), -1, 1, 4, 0, 1, 34, 2),
};
KERNEL_SAMPLES(samples)

/* Start and number of the elements that attributes {axis, start, stop, step} take of n, or -1. */
static int range(const int64_t *attr, int64_t n, int64_t *start, int64_t *count)
{
    *start = attr[1] < 0 ? attr[1] + n : attr[1];
    const int64_t stop = attr[2] == INT64_MAX ? n : attr[2] < 0 ? attr[2] + n : attr[2];
    if (*start < 0 || *start > stop || stop > n || attr[3] < 1)
        return -1;
    const int64_t span = stop - *start;
    *count = span / attr[3] + (span % attr[3] != 0 ? 1 : 0);
    return 0;
}

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    const int64_t *const attr = call->attr;
    const int axis = kernel_part_axis(call, attr[0], x->rank);
    int64_t start, count;
    bool empty = false;
    if (axis < 0)
        return -1;
    if (attr[3] < 1) {
        (void)kernel_refuse_operands(call, "", "step %lld is not positive", (long long)attr[3]);
        return KERNEL_REFUSED_ATTRIBUTE;
    }
    if (range(attr, x->shape[axis], &start, &count) != 0)
        return kernel_refuse_operands(call, "", "%lld..%lld is no range of axis %d, which has %lld",
                                      (long long)attr[1], (long long)attr[2], axis,
                                      (long long)x->shape[axis]);
    kernel_shape_begin(out, x->dtype, x->rank);
    out->view_of = 0;
    for (int i = 0; i < x->rank; i++) {
        out->extent[i] = i == axis ? count : x->shape[i];
        /* A step over a single element may be of any size, and is never taken. */
        out->stride[i] = x->strides[i] * (i == axis && count > 1 ? attr[3] : 1);
        empty = empty || out->extent[i] == 0;
    }
    out->offset = empty ? 0 : start * x->strides[axis];
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0];
    int64_t start, count;
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const int axis = kernel_axis(rule->attr[0], x->rank);
    if (range(rule->attr, x->shape[axis], &start, &count) != 0)
        return;
    const int64_t attr[] = {axis, start, count > 1 ? rule->attr[3] : 1, x->shape[axis]};
    kernel_accumulate(rule, 0, &kernel_op_slice_add, 1, &rule->adjoint[0], 4, attr);
}

KERNEL_OP(slice) = {
    .name = "slice",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"axis", KERNEL_ATTR_INT}, {"start", KERNEL_ATTR_INT}, {"stop", KERNEL_ATTR_INT},
                 {"step", KERNEL_ATTR_INT}),
    .n_out = 1,
    .any_dtype = true,
    .depends = kernel_depends_moves,
    .shape = shape,
    .forward = kernel_forward_view,
    .pullback = pullback,
    .cost = kernel_cost_view,
    .sample = sample,
    .brief = "The elements start, start + step, ... before stop of one axis, as a view.",
    .shapes = "x [...,n,...] -> [...,ceil((stop - start) / step),...]",
    .formula = "y[...,i,...] = x[...,start + i step,...]",
    .derivative = "x'[...,start + i step,...] += y'[...,i,...]",
    .edges = "negative axis, start and stop count from the end, stop INT64_MAX is the end; "
             "start = stop gives an extent of 0; a range that leaves the axis is an error",
};
