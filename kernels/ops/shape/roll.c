/* ops/shape/roll.c: moves the elements along an axis; those that leave its end come back at its
 * beginning.
 *
 * Rolling back is the adjoint.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "moves.h"
#include "op_rules.h"
#include "part.h"
#include "reduction_samples.h"

static const struct kernel_sample samples[] = {
    AXES_SAMPLE(2, (3, 5), -1, 1, 2, 1, 2),     AXES_SAMPLE(2, (3, 5), -1, 1, 2, 0, -1),
    AXES_SAMPLE(3, (2, 3, 2), -1, 1, 2, -2, 7), AXES_SAMPLE(1, (6), -1, 1, 2, 0, -14),
    AXES_SAMPLE(1, (4), -1, 1, 2, 0, 8),        AXES_SAMPLE(1, (1), -1, 1, 2, 0, INT64_MIN),
    AXES_SAMPLE(2, (3, 0), -1, 1, 2, 1, 1)};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    if (kernel_part_axis(call, call->attr[0], x->rank) < 0)
        return -1;
    return kernel_shape_same(call, out);
}

/* The place of element 0: the shift as a number from 0 to n - 1. */
static int64_t place(int64_t shift, int64_t n)
{
    const int64_t rest = n > 0 ? shift % n : 0;
    return rest < 0 ? rest + n : rest;
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    struct kernel_array *const y = call->out[0];
    const int axis = kernel_part_axis(call, call->attr[0], x->rank);
    const int64_t n = x->shape[axis], shift = place(call->attr[1], n);
    for (int part = 0; part < 2 && x->size > 0; part++) {
        /* The first n - shift elements go behind the last ones. */
        const int64_t count = part == 0 ? n - shift : shift;
        const int64_t to = part == 0 ? shift : 0, from = part == 0 ? 0 : n - shift;
        struct kernel_move move = {0};
        for (int i = 0; i < x->rank; i++)
            kernel_move_axis(&move, i == axis ? count : x->shape[i], y->strides[i], x->strides[i]);
        kernel_move_run(&move, y->dtype, kernel_move_at(y->data, y->dtype, to * y->strides[axis]),
                        kernel_move_at(x->data, x->dtype, from * x->strides[axis]));
    }
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0];
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const int64_t axis = kernel_axis(rule->attr[0], x->rank);
    const int64_t attr[] = {axis, -place(rule->attr[1], x->shape[axis])};
    kernel_accumulate(rule, 0, &kernel_op_roll, 1, &rule->adjoint[0], 2, attr);
}

KERNEL_OP(roll) = {
    .name = "roll",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"axis", KERNEL_ATTR_INT}, {"shift", KERNEL_ATTR_INT}),
    .n_out = 1,
    .any_dtype = true,
    .depends = kernel_depends_moves,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .sample = sample,
    .brief = "The elements moved on by `shift` along an axis, and round its end.",
    .shapes = "x [...,n,...] -> [...,n,...]",
    .formula = "y[...,(i + shift) mod n,...] = x[...,i,...]",
    .derivative = "x'[...,i,...] += y'[...,(i + shift) mod n,...]",
    .edges = "the shift may be negative or beyond n; a negative axis counts from the end",
};
