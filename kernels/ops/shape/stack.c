/* ops/shape/stack.c: arrays of one shape one behind the other along a new axis.
 *
 * Any number of operands.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "part.h"

#define THREE(x)                                                                                   \
    {                                                                                              \
        x, x, x                                                                                    \
    }
/* clang-format off */
#define STACK_SAMPLE(k, r, n, a)                                                                   \
    {.n_in = k, .dtype = THREE(KERNEL_F64), .rank = THREE(r),                                      \
     .shape = {{KERNEL_EXTENTS n}, {KERNEL_EXTENTS n}, {KERNEL_EXTENTS n}},                        \
     .low = THREE(-1), .high = THREE(1), .n_attr = 1, .attr = {a}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    STACK_SAMPLE(3, 1, (4), 0),     STACK_SAMPLE(3, 1, (4), 1), STACK_SAMPLE(2, 2, (2, 3), 1),
    STACK_SAMPLE(2, 2, (2, 3), -1), STACK_SAMPLE(3, 0, (0), 0), STACK_SAMPLE(1, 2, (3, 2), -3),
    STACK_SAMPLE(2, 1, (0), 0),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref first = call->in[0];
    char text[2][96];
    if (first->rank == KERNEL_MAX_RANK)
        return kernel_refuse(call, "at most %d axes", KERNEL_MAX_RANK);
    const int axis = kernel_part_axis(call, call->attr[0], first->rank + 1);
    if (axis < 0)
        return -1;
    for (int k = 1; k < call->n_in; k++) {
        const kernel_ref x = call->in[k];
        bool fits = x->rank == first->rank && x->dtype == first->dtype;
        for (int i = 0; i < first->rank && fits; i++)
            fits = x->shape[i] == first->shape[i];
        if (!fits) {
            (void)kernel_refuse(call, "operand %d is %s, operand 1 %s", k + 1,
                                kernel_describe(x, text[0], sizeof text[0]),
                                kernel_describe(first, text[1], sizeof text[1]));
            return x->dtype == first->dtype ? KERNEL_REFUSED : KERNEL_REFUSED_DTYPE;
        }
    }
    kernel_shape_begin(out, first->dtype, first->rank + 1);
    for (int i = 0; i <= first->rank; i++)
        out->extent[i] = i < axis ? first->shape[i] : i > axis ? first->shape[i - 1] : call->n_in;
    return 0;
}

/* The output's part number k, without the new axis. */
static void part_of(struct kernel_view *part, const struct kernel_array *out, int axis, int64_t k)
{
    kernel_part_view(part, out, axis, k, 1, 1);
    for (int i = axis; i + 1 < out->rank; i++) {
        part->shape[i] = part->shape[i + 1];
        part->strides[i] = part->strides[i + 1];
    }
    part->array.rank--;
}

static int forward(const struct kernel_call *call)
{
    const int axis = kernel_part_axis(call, call->attr[0], call->out[0]->rank);
    struct kernel_view part;
    for (int k = 0; k < call->n_in; k++) {
        part_of(&part, call->out[0], axis, k);
        kernel_part_copy(&part.array, call->in[k], false);
    }
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] == NULL)
        return;
    int64_t attr[] = {rule->attr[0], 0};
    for (; attr[1] < rule->n_in; attr[1]++)
        kernel_accumulate(rule, (int)attr[1], &kernel_op_select, 1, &rule->adjoint[0], 2, attr);
}

KERNEL_OP(stack) = {
    .name = "stack",
    KERNEL_IN("tensors"),
    KERNEL_ATTRS({"axis", KERNEL_ATTR_INT}),
    .variadic = true,
    .n_out = 1,
    .any_dtype = true,
    .depends = kernel_depends_moves,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .sample = sample,
    .brief = "Tensors of one shape along a new axis.",
    .shapes = "n times x [...] -> x's extents with n at axis",
    .formula = "y[...,k,...] = x_k[...]",
    .derivative = "each x_k' += y'[...,k,...]",
    .edges = "a negative axis counts from the result's end",
};
