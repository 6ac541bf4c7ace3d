/* ops/shape/pad.c: an array with more elements of one value around it.
 *
 * The adjoint is a slice of every axis, which are views.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "moves.h"
#include "op_rules.h"
#include "reduction_samples.h"

/* The value 1.5 as a word. */
#define VALUE 0x3ff8000000000000
static const struct kernel_sample samples[] = {
    AXES_SAMPLE(2, (3, 4), -1, 1, 5, VALUE, 1, 2, 0, 3),
    AXES_SAMPLE(1, (5), -1, 1, 3, 0, 0, 0),
    AXES_SAMPLE(3, (2, 1, 3), -1, 1, 7, VALUE, 0, 1, 2, 0, 0, 0),
    AXES_SAMPLE(1, (0), -1, 1, 3, VALUE, 2, 1),
    AXES_SAMPLE(2, (0, 3), -1, 1, 5, VALUE, 0, 0, 1, 1),
    AXES_SAMPLE(0, (0), -1, 1, 1, VALUE)};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    const int64_t *const width = call->attr + 1;
    if (call->n_attr - 1 != 2 * x->rank)
        return kernel_refuse_operands(call, "",
                                      "%d widths, but %d are wanted: before and after "
                                      "each axis",
                                      call->n_attr - 1, 2 * x->rank);
    kernel_shape_begin(out, x->dtype, x->rank);
    for (int axis = 0; axis < x->rank; axis++) {
        for (int side = 0; side < 2; side++)
            if (width[2 * axis + side] < 0) {
                (void)kernel_refuse_operands(call, "", "width %lld %s axis %d is negative",
                                             (long long)width[2 * axis + side],
                                             side ? "after" : "before", axis);
                return KERNEL_REFUSED_ATTRIBUTE;
            }
        if (__builtin_add_overflow(x->shape[axis], width[2 * axis], &out->extent[axis]) ||
            __builtin_add_overflow(out->extent[axis], width[2 * axis + 1], &out->extent[axis]))
            return kernel_refuse_operands(call, "", "the result's size overflows");
    }
    return 0;
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    struct kernel_array *const y = call->out[0];
    struct kernel_move move = {0};
    int64_t begin = 0;
    for (int axis = 0; axis < x->rank; axis++) {
        kernel_move_axis(&move, x->shape[axis], y->strides[axis], x->strides[axis]);
        begin += call->attr[1 + 2 * axis] * y->strides[axis];
    }
    if (x->size < y->size)
        kernel_move_fill(y->dtype, y->data, y->size, kernel_attr_real(call->attr[0]));
    if (x->size > 0)
        kernel_move_run(&move, y->dtype, kernel_move_at(y->data, y->dtype, begin), x->data);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0];
    kernel_ref g = rule->adjoint[0];
    if (g == NULL || !kernel_needs(rule, 0))
        return;
    for (int axis = 0; axis < x->rank; axis++) {
        const int64_t *const width = rule->attr + 1 + 2 * axis;
        const int64_t attr[] = {axis, width[0], width[0] + x->shape[axis], 1};
        if (width[0] > 0 || width[1] > 0)
            g = kernel_emit(rule, &kernel_op_slice, 1, &g, 4, attr);
    }
    kernel_accumulate_value(rule, 0, g);
}

KERNEL_OP(pad) = {
    .name = "pad",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"value", KERNEL_ATTR_REAL}, {"widths", KERNEL_ATTR_LIST}),
    .n_out = 1,
    .any_dtype = true,
    .depends = kernel_depends_moves,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .sample = sample,
    .brief = "More elements, all of one value, before and after each axis.",
    .shapes = "x [...], widths [2 rank] = {before and after axis 0, axis 1, ...} -> each extent "
              "with its widths added",
    .formula = "y = x in the middle, value elsewhere",
    .derivative = "x' += the middle of y'",
    .edges = "widths are not negative (slice takes elements away); of i64 the value is rounded "
             "towards 0",
};
