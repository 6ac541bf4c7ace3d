/* ops/shape/diagonal.c: a diagonal of matrices.
 *
 * Always a view, whose last stride steps a row and a column at once.
 */
#include "diagonals.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "reduction_samples.h"

static const struct kernel_sample samples[] = {
    AXES_SAMPLE(2, (4, 4), -1, 1, 1, 0),        AXES_SAMPLE(2, (3, 5), -1, 1, 1, 1),
    AXES_SAMPLE(2, (5, 3), -1, 1, 1, -1),       AXES_SAMPLE(3, (2, 3, 4), -1, 1, 1, 2),
    AXES_SAMPLE(4, (2, 1, 3, 2), -1, 1, 1, -2), AXES_SAMPLE(2, (2, 3), -1, 1, 1, 3),
    AXES_SAMPLE(2, (2, 3), -1, 1, 1, -2),       AXES_SAMPLE(2, (3, 0), -1, 1, 1, 0),
    AXES_SAMPLE(2, (1, 1), -1, 1, 1, 0)};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    struct kernel_diagonal diagonal;
    if (kernel_diagonal_find(call, call->attr[0], &diagonal) != 0)
        return -1;
    const int last = x->rank - 2;
    const int64_t row = x->strides[last], column = x->strides[last + 1];
    bool empty = diagonal.length == 0;
    kernel_shape_begin(out, x->dtype, x->rank - 1);
    out->view_of = 0;
    for (int axis = 0; axis < last; axis++) {
        out->extent[axis] = x->shape[axis];
        out->stride[axis] = x->strides[axis];
        empty = empty || x->shape[axis] == 0;
    }
    out->extent[last] = diagonal.length;
    out->stride[last] = row + column;
    out->offset = empty ? 0 : diagonal.row * row + diagonal.column * column;
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0];
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const int64_t attr[] = {rule->attr[0], x->shape[x->rank - 2], x->shape[x->rank - 1]};
    kernel_accumulate(rule, 0, &kernel_op_diagonal_add, 1, &rule->adjoint[0], 3, attr);
}

KERNEL_OP(diagonal) = {
    .name = "diagonal",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"diagonal", KERNEL_ATTR_INT}),
    .n_out = 1,
    .any_dtype = true,
    .depends = kernel_depends_moves,
    .shape = shape,
    .forward = kernel_forward_view,
    .pullback = pullback,
    .cost = kernel_cost_view,
    .sample = sample,
    .brief = "A diagonal of matrices, as a view.",
    .shapes = "x [...,m,n] -> [...,l], l = min(m, n - diagonal), or min(m + diagonal, n) below the "
              "main one",
    .formula = "y_i = x_i,i+diagonal; below the main one x_i-diagonal,i",
    .derivative = "the diagonal of x' += y'",
    .edges =
        "diagonal 0 is the main one, positive ones lie above it; -m and n have no element, and "
        "what lies beyond them is an error",
};
