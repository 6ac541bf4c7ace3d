/* ops/shape/flip.c: reverses the order of the elements along axes.
 *
 * Strides of arrays are never negative, so the result is a copy. It is its own adjoint.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "moves.h"
#include "op_rules.h"
#include "reduction_samples.h"

static const struct kernel_sample samples[] = {
    AXES_SAMPLE(2, (3, 4), -1, 1, 1, 1),       AXES_SAMPLE(2, (3, 4), -1, 1, 1, -2),
    AXES_SAMPLE(3, (2, 3, 2), -1, 1, 2, 0, 2), AXES_SAMPLE(3, (2, 3, 2), -1, 1, 0, 0),
    AXES_SAMPLE(1, (7), -1, 1, 0, 0),          AXES_SAMPLE(0, (0), -1, 1, 0, 0),
    AXES_SAMPLE(2, (3, 0), -1, 1, 1, 0)};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    unsigned axes;
    if (kernel_axes(call, 0, &axes) != 0)
        return -1;
    return kernel_shape_same(call, out);
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    struct kernel_array *const y = call->out[0];
    struct kernel_move move = {0};
    int64_t begin = 0;
    unsigned axes;
    if (kernel_axes(call, 0, &axes) != 0)
        return -1;
    for (int axis = 0; axis < x->rank; axis++) {
        const bool turned = (axes >> axis & 1) != 0;
        const int64_t stride = x->strides[axis];
        kernel_move_axis(&move, x->shape[axis], y->strides[axis], turned ? -stride : stride);
        begin += turned ? (x->shape[axis] - 1) * stride : 0;
    }
    if (x->size > 0)
        kernel_move_run(&move, y->dtype, y->data, kernel_move_at(x->data, x->dtype, begin));
    return 0;
}

KERNEL_OP(flip) = {
    .name = "flip",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"axes", KERNEL_ATTR_AXES}),
    .n_out = 1,
    .any_dtype = true,
    .depends = kernel_depends_moves,
    .shape = shape,
    .forward = forward,
    .pullback = kernel_pullback_self,
    .sample = sample,
    .brief = "The elements in reverse order along axes.",
    .shapes = "x [...,n,...] -> [...,n,...]",
    .formula = "y[...,i,...] = x[...,n - 1 - i,...]",
    .derivative = "x' += y', reversed along the axes",
    .edges = "negative axes count from the end, none is named twice",
};
