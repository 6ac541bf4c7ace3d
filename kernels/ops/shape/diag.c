/* ops/shape/diag.c: square matrices with vectors on a diagonal.
 *
 * The adjoint is a view, the diagonal.
 */
#include "diagonals.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "reduction_samples.h"

static const struct kernel_sample samples[] = {
    AXES_SAMPLE(1, (4), -1, 1, 1, 0),     AXES_SAMPLE(1, (3), -1, 1, 1, 2),
    AXES_SAMPLE(2, (2, 3), -1, 1, 1, -1), AXES_SAMPLE(3, (2, 1, 2), -1, 1, 1, 0),
    AXES_SAMPLE(1, (0), -1, 1, 1, 2),     AXES_SAMPLE(1, (0), -1, 1, 1, 0),
    AXES_SAMPLE(1, (1), -1, 1, 1, 0)};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    const int64_t diagonal = call->attr[0];
    int64_t n;
    if (x->rank < 1 || x->rank >= KERNEL_MAX_RANK)
        return kernel_refuse_operands(call, "", "1 to %d axes are wanted", KERNEL_MAX_RANK - 1);
    if (diagonal == INT64_MIN ||
        __builtin_add_overflow(x->shape[x->rank - 1], diagonal < 0 ? -diagonal : diagonal, &n))
        return kernel_refuse_operands(call, "", "diagonal %lld: the result's size overflows",
                                      (long long)diagonal);
    kernel_shape_begin(out, x->dtype, x->rank + 1);
    for (int axis = 0; axis < x->rank - 1; axis++)
        out->extent[axis] = x->shape[axis];
    out->extent[x->rank - 1] = out->extent[x->rank] = n;
    return 0;
}

static int forward(const struct kernel_call *call)
{
    kernel_diagonal_put(call, call->attr[0]);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] != NULL && kernel_needs(rule, 0))
        kernel_accumulate_value(
            rule, 0, kernel_emit(rule, &kernel_op_diagonal, 1, &rule->adjoint[0], 1, rule->attr));
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const uint64_t bytes = (uint64_t)call->in[0]->size * kernel_dtype_bytes(call->in[0]->dtype);
    return (struct kernel_cost){.bytes = 2 * bytes + kernel_touched_bytes(call->out[0])};
}

KERNEL_OP(diag) = {
    .name = "diag",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"diagonal", KERNEL_ATTR_INT}),
    .n_out = 1,
    .any_dtype = true,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .sample = sample,
    .brief = "Square matrices with vectors on a diagonal and 0 elsewhere; ad_diagonal goes back.",
    .shapes = "x [...,n] -> [...,n + |diagonal|,n + |diagonal|]",
    .formula = "y_i,i+diagonal = x_i; below the main one y_i-diagonal,i = x_i",
    .derivative = "x' += the diagonal of y'",
    .edges = "diagonal 0 is the main one, positive ones lie above it",
};
