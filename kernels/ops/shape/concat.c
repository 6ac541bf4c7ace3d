/* ops/shape/concat.c: arrays one behind the other along an axis that they have.
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
static const struct kernel_sample samples[] = {
    {.n_in = 3,
     .dtype = THREE(KERNEL_F64),
     .rank = THREE(2),
     .shape = {{2, 3}, {1, 3}, {4, 3}},
     .low = THREE(-1),
     .high = THREE(1),
     .n_attr = 1,
     .attr = {0}},
    {.n_in = 3,
     .dtype = THREE(KERNEL_F64),
     .rank = THREE(2),
     .shape = {{3, 2}, {3, 9}, {3, 1}},
     .low = THREE(-1),
     .high = THREE(1),
     .n_attr = 1,
     .attr = {-1}},
    {.n_in = 2,
     .dtype = {KERNEL_F64, KERNEL_F64},
     .rank = {3, 3},
     .shape = {{2, 3, 2}, {2, 3, 2}},
     .low = {-1, -1},
     .high = {1, 1},
     .n_attr = 1,
     .attr = {1}},
    {.n_in = 1,
     .dtype = {KERNEL_F64},
     .rank = {1},
     .shape = {{5}},
     .low = {-1},
     .high = {1},
     .n_attr = 1,
     .attr = {0}},
    {.n_in = 3,
     .dtype = THREE(KERNEL_F64),
     .rank = THREE(1),
     .shape = {{0}, {4}, {0}},
     .low = THREE(-1),
     .high = THREE(1),
     .n_attr = 1,
     .attr = {0}},
    {.n_in = 2,
     .dtype = {KERNEL_F64, KERNEL_F64},
     .rank = {2, 2},
     .shape = {{0, 2}, {0, 3}},
     .low = {-1, -1},
     .high = {1, 1},
     .n_attr = 1,
     .attr = {1}},
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref first = call->in[0];
    char text[2][96];
    const int axis = kernel_part_axis(call, call->attr[0], first->rank);
    if (axis < 0)
        return -1;
    kernel_shape_begin(out, first->dtype, first->rank);
    for (int i = 0; i < first->rank; i++)
        out->extent[i] = first->shape[i];
    for (int k = 1; k < call->n_in; k++) {
        const kernel_ref x = call->in[k];
        bool fits = x->rank == first->rank && x->dtype == first->dtype;
        for (int i = 0; i < first->rank && fits; i++)
            fits = i == axis || x->shape[i] == first->shape[i];
        if (!fits) {
            (void)kernel_refuse(call, "operand %d, %s, does not fit operand 1, %s, along axis %d",
                                k + 1, kernel_describe(x, text[0], sizeof text[0]),
                                kernel_describe(first, text[1], sizeof text[1]), axis);
            return x->dtype == first->dtype ? KERNEL_REFUSED : KERNEL_REFUSED_DTYPE;
        }
        if (__builtin_add_overflow(out->extent[axis], x->shape[axis], &out->extent[axis]))
            return kernel_refuse(call, "the result's size overflows");
    }
    return 0;
}

static int forward(const struct kernel_call *call)
{
    const int axis = kernel_part_axis(call, call->attr[0], call->in[0]->rank);
    struct kernel_view part;
    int64_t start = 0;
    for (int k = 0; k < call->n_in; k++) {
        const int64_t n = call->in[k]->shape[axis];
        kernel_part_view(&part, call->out[0], axis, start, 1, n);
        kernel_part_copy(&part.array, call->in[k], false);
        start += n;
    }
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const int rank = rule->in[0]->rank;
    if (rule->adjoint[0] == NULL)
        return;
    const int axis = kernel_axis(rule->attr[0], rank);
    int64_t attr[] = {axis, 0, 0, 1};
    for (int k = 0; k < rule->n_in; k++) {
        attr[2] = attr[1] + rule->in[k]->shape[axis];
        kernel_accumulate(rule, k, &kernel_op_slice, 1, &rule->adjoint[0], 4, attr);
        attr[1] = attr[2];
    }
}

KERNEL_OP(concat) = {
    .name = "concat",
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
    .brief = "Tensors one behind the other along an axis.",
    .shapes = "x1 [...,n1,...], x2 [...,n2,...], ... -> [...,n1 + n2 + ...,...]",
    .formula = "y = x1, then x2, ... along axis",
    .derivative = "each x' += its part of y'",
    .edges = "a negative axis counts from the end",
};
