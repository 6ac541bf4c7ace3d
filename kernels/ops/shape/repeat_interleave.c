/* ops/shape/repeat_interleave.c: each element along an axis several times in a row. */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "moves.h"
#include "op_rules.h"
#include "part.h"
#include "reduction_samples.h"

static const struct kernel_sample samples[] = {
    AXES_SAMPLE(2, (2, 3), -1, 1, 2, 1, 2),     AXES_SAMPLE(2, (2, 3), -1, 1, 2, 0, 3),
    AXES_SAMPLE(3, (2, 3, 2), -1, 1, 2, -2, 2), AXES_SAMPLE(1, (4), -1, 1, 2, 0, 1),
    AXES_SAMPLE(1, (3), -1, 1, 2, 0, 0),        AXES_SAMPLE(2, (0, 3), -1, 1, 2, 1, 2)};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    const int axis = kernel_part_axis(call, call->attr[0], x->rank);
    if (axis < 0)
        return -1;
    if (call->attr[1] < 0) {
        (void)kernel_refuse_operands(call, "", "%lld times is negative", (long long)call->attr[1]);
        return KERNEL_REFUSED_ATTRIBUTE;
    }
    kernel_shape_begin(out, x->dtype, x->rank);
    for (int i = 0; i < x->rank; i++)
        out->extent[i] = x->shape[i];
    if (__builtin_mul_overflow(x->shape[axis], call->attr[1], &out->extent[axis]))
        return kernel_refuse_operands(call, "", "the result's size overflows");
    return 0;
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    struct kernel_array *const y = call->out[0];
    const int axis = kernel_part_axis(call, call->attr[0], x->rank);
    struct kernel_move move = {0};
    for (int i = 0; i < x->rank; i++) {
        const int64_t times = i == axis ? call->attr[1] : 1;
        kernel_move_axis(&move, x->shape[i], times * y->strides[i], x->strides[i]);
        kernel_move_axis(&move, times, y->strides[i], 0);
    }
    kernel_move_run(&move, y->dtype, y->data, x->data);
    return 0;
}

/* y' as [outer,n,times,inner] is summed over its third axis. */
static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0];
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const int axis = kernel_axis(rule->attr[0], x->rank);
    const struct kernel_around around = kernel_around_axis(x, axis);
    const int64_t apart[] = {around.outer, around.extent, rule->attr[1], around.inner};
    const int64_t third[] = {0, 2};
    const kernel_ref g = kernel_emit_shape(rule, &kernel_op_reshape, rule->adjoint[0], 4, apart);
    kernel_accumulate_value(rule, 0,
                            kernel_emit_shape(rule, &kernel_op_reshape,
                                              kernel_emit(rule, &kernel_op_sum, 1, &g, 2, third),
                                              x->rank, x->shape));
}

KERNEL_OP(repeat_interleave) = {
    .name = "repeat_interleave",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"axis", KERNEL_ATTR_INT}, {"times", KERNEL_ATTR_INT}),
    .n_out = 1,
    .any_dtype = true,
    .depends = kernel_depends_moves,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .sample = sample,
    .brief = "Each element along an axis several times in a row.",
    .shapes = "x [...,n,...] -> [...,n times,...]",
    .formula = "y[...,i,...] = x[...,floor(i / times),...]",
    .derivative = "x'[...,i,...] += sum of y'[...,i times + k,...] over k < times",
    .edges = "0 times gives an extent of 0; a negative axis counts from the end",
};
