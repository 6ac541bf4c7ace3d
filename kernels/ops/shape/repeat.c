/* ops/shape/repeat.c: an array side by side with itself along its axes. */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "moves.h"
#include "op_rules.h"
#include "reduction_samples.h"

static const struct kernel_sample samples[] = {
    AXES_SAMPLE(2, (2, 3), -1, 1, 2, 2, 3),    AXES_SAMPLE(1, (3), -1, 1, 2, 2, 2),
    AXES_SAMPLE(2, (2, 2), -1, 1, 3, 3, 1, 2), AXES_SAMPLE(1, (5), -1, 1, 1, 1),
    AXES_SAMPLE(0, (0), -1, 1, 1, 4),          AXES_SAMPLE(0, (0), -1, 1, 0, 0),
    AXES_SAMPLE(1, (3), -1, 1, 1, 0),          AXES_SAMPLE(2, (0, 3), -1, 1, 2, 2, 2)};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    const int rank = call->n_attr, more = rank - x->rank;
    if (more < 0 || rank > KERNEL_MAX_RANK)
        return kernel_refuse_operands(call, "", "%d times are named, %d to %d are wanted", rank,
                                      x->rank, KERNEL_MAX_RANK);
    kernel_shape_begin(out, x->dtype, rank);
    for (int axis = 0; axis < rank; axis++) {
        const int64_t extent = axis < more ? 1 : x->shape[axis - more];
        if (call->attr[axis] < 0) {
            (void)kernel_refuse_operands(call, "", "%lld times is negative",
                                         (long long)call->attr[axis]);
            return KERNEL_REFUSED_ATTRIBUTE;
        }
        if (__builtin_mul_overflow(extent, call->attr[axis], &out->extent[axis]))
            return kernel_refuse_operands(call, "", "the result's size overflows");
    }
    return 0;
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    struct kernel_array *const y = call->out[0];
    const int more = y->rank - x->rank;
    struct kernel_move move = {0};
    for (int axis = 0; axis < y->rank; axis++) {
        const int64_t extent = axis < more ? 1 : x->shape[axis - more];
        kernel_move_axis(&move, call->attr[axis], extent * y->strides[axis], 0);
        kernel_move_axis(&move, extent, y->strides[axis],
                         axis < more ? 0 : x->strides[axis - more]);
    }
    kernel_move_run(&move, y->dtype, y->data, x->data);
    return 0;
}

/* The sum over the repetitions; axes that only the result has are left out of it. */
static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0];
    const int rank = rule->n_attr, more = rank - x->rank;
    int64_t extent[KERNEL_MAX_RANK];
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    for (int axis = 0; axis < rank; axis++)
        extent[axis] = axis < more ? 1 : x->shape[axis - more];
    if (more == 0)
        kernel_accumulate(rule, 0, &kernel_op_repeat_sum, 1, &rule->adjoint[0], rank, extent);
    else
        kernel_accumulate_value(rule, 0,
                                kernel_emit_shape(rule, &kernel_op_reshape,
                                                  kernel_emit_shape(rule, &kernel_op_repeat_sum,
                                                                    rule->adjoint[0], rank, extent),
                                                  x->rank, x->shape));
}

KERNEL_OP(repeat) = {
    .name = "repeat",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"times", KERNEL_ATTR_SHAPE}),
    .n_out = 1,
    .any_dtype = true,
    .depends = kernel_depends_moves,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .sample = sample,
    .brief = "Copies of a tensor side by side along its axes.",
    .shapes =
        "x [...] -> each extent times its number of times; more times than axes stand for new "
        "axes before x's own",
    .formula = "y[...,i,...] = x[...,i mod n,...]",
    .derivative = "x'[...,i,...] += sum of y'[...,i + k n,...] over k",
    .edges = "0 times gives an extent of 0",
};
