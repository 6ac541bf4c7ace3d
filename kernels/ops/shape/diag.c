/* ops/shape/diag.c: square matrices with vectors on a diagonal; and those of any extents, the
 * adjoint of diagonal, which touches only the diagonal when it accumulates.
 *
 * The adjoint of both is a view, the diagonal.
 */
#include "diagonals.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "reduction_samples.h"

static const struct kernel_sample diag_samples[] = {
    AXES_SAMPLE(1, (4), -1, 1, 1, 0),     AXES_SAMPLE(1, (3), -1, 1, 1, 2),
    AXES_SAMPLE(2, (2, 3), -1, 1, 1, -1), AXES_SAMPLE(3, (2, 1, 2), -1, 1, 1, 0),
    AXES_SAMPLE(1, (0), -1, 1, 1, 2),     AXES_SAMPLE(1, (0), -1, 1, 1, 0),
    AXES_SAMPLE(1, (1), -1, 1, 1, 0)};
KERNEL_SAMPLES_OF(diag)

static int diag_shape(const struct kernel_call *call, struct kernel_shape *out)
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

static int diag_forward(const struct kernel_call *call)
{
    kernel_diagonal_put(call, call->attr[0]);
    return 0;
}

static void diag_pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] != NULL && kernel_needs(rule, 0))
        kernel_accumulate_value(
            rule, 0, kernel_emit(rule, &kernel_op_diagonal, 1, &rule->adjoint[0], 1, rule->attr));
}

KERNEL_OP(diag) = {
    .name = "diag",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"diagonal", KERNEL_ATTR_INT}),
    .n_out = 1,
    .any_dtype = true,
    .depends = kernel_depends_moves,
    .shape = diag_shape,
    .forward = diag_forward,
    .pullback = diag_pullback,
    .cost = kernel_cost_put,
    .sample = diag_sample,
    .brief = "Square matrices with vectors on a diagonal and 0 elsewhere; ad_diagonal goes back.",
    .shapes = "x [...,n] -> [...,n + |diagonal|,n + |diagonal|]",
    .formula = "y_i,i+diagonal = x_i; below the main one y_i-diagonal,i = x_i",
    .derivative = "x' += the diagonal of y'",
    .edges = "diagonal 0 is the main one, positive ones lie above it",
};

static const struct kernel_sample diagonal_add_samples[] = {
    AXES_SAMPLE(1, (4), -1, 1, 3, 0, 4, 4),       AXES_SAMPLE(1, (3), -1, 1, 3, 1, 3, 5),
    AXES_SAMPLE(2, (2, 3), -1, 1, 3, -1, 5, 3),   AXES_SAMPLE(1, (0), -1, 1, 3, 3, 2, 3),
    AXES_SAMPLE(3, (2, 1, 2), -1, 1, 3, 0, 2, 3), AXES_SAMPLE(1, (1), -1, 1, 3, 0, 1, 1)};
KERNEL_SAMPLES_OF(diagonal_add)

static int diagonal_add_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    const int64_t m = call->attr[1], n = call->attr[2];
    struct kernel_diagonal diagonal;
    if (kernel_require_float(call, 0) != 0)
        return -1;
    if (x->rank < 1 || x->rank >= KERNEL_MAX_RANK)
        return kernel_refuse_operands(call, "", "1 to %d axes are wanted", KERNEL_MAX_RANK - 1);
    if (m < 0 || n < 0 || !kernel_diagonal_of(m, n, call->attr[0], &diagonal) ||
        diagonal.length != x->shape[x->rank - 1])
        return kernel_refuse_operands(call, "", "this is not diagonal %lld of [%lld,%lld]",
                                      (long long)call->attr[0], (long long)m, (long long)n);
    kernel_shape_begin(out, x->dtype, x->rank + 1);
    for (int axis = 0; axis < x->rank - 1; axis++)
        out->extent[axis] = x->shape[axis];
    out->extent[x->rank - 1] = m;
    out->extent[x->rank] = n;
    return 0;
}

KERNEL_OP(diagonal_add) = {
    .name = "diagonal_add",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"diagonal", KERNEL_ATTR_INT}, {"rows", KERNEL_ATTR_INT},
                 {"columns", KERNEL_ATTR_INT}),
    .n_out = 1,
    .hidden = true,
    .accumulates = true,
    .depends = kernel_depends_moves,
    .shape = diagonal_add_shape,
    .forward = diag_forward,
    .pullback = diag_pullback,
    .cost = kernel_cost_put,
    .sample = diagonal_add_sample,
    .brief = "Matrices of zeros with vectors on a diagonal.",
    .shapes = "x [...,l] -> [...,rows,columns]",
    .formula = "diagonal of y = x, 0 elsewhere",
    .derivative = "x' += the diagonal of y'",
};
