/* ops/shape/trace.c: sums of the main diagonals of matrices. */
#include "diagonals.h"
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "reduction_samples.h"

static const struct kernel_sample samples[] = {
    AXES_SAMPLE(2, (4, 4), -1, 1, 0, 0),    AXES_SAMPLE(2, (3, 5), -1, 1, 0, 0),
    AXES_SAMPLE(3, (2, 4, 3), -1, 1, 0, 0), AXES_SAMPLE(4, (2, 1, 2, 2), -1, 1, 0, 0),
    AXES_SAMPLE(2, (1, 1), -1, 1, 0, 0),    AXES_SAMPLE(2, (0, 3), -1, 1, 0, 0),
    AXES_SAMPLE(3, (0, 2, 2), -1, 1, 0, 0)};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    struct kernel_diagonal diagonal;
    if (kernel_require_float(call, 0) != 0 || kernel_diagonal_find(call, 0, &diagonal) != 0)
        return -1;
    kernel_shape_begin(out, x->dtype, x->rank - 2);
    for (int axis = 0; axis < x->rank - 2; axis++)
        out->extent[axis] = x->shape[axis];
    return 0;
}

static int forward(const struct kernel_call *call)
{
    struct kernel_diagonal diagonal;
    struct kernel_view view, kept;
    if (kernel_diagonal_find(call, 0, &diagonal) != 0)
        return -1;
    kernel_diagonal_view(&view, call->in[0], &diagonal);
    kernel_keep_axes(&kept, call->out[0], &view.array, 1U << (view.array.rank - 1));
    kernel_fill(call->out[0], 0);
    kernel_reduce(KERNEL_REDUCE_SUM, &kept.array, &view.array);
    return 0;
}

/* y' becomes a column, which is repeated along the diagonal. */
static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0];
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const int rank = x->rank;
    const int64_t m = x->shape[rank - 2], n = x->shape[rank - 1], attr[] = {0, m, n};
    int64_t extent[KERNEL_MAX_RANK];
    for (int axis = 0; axis < rank - 2; axis++)
        extent[axis] = x->shape[axis];
    extent[rank - 2] = 1;
    const kernel_ref column =
        kernel_emit_shape(rule, &kernel_op_reshape, rule->adjoint[0], rank - 1, extent);
    extent[rank - 2] = m < n ? m : n;
    const kernel_ref repeated =
        kernel_emit_shape(rule, &kernel_op_broadcast_to, column, rank - 1, extent);
    kernel_accumulate(rule, 0, &kernel_op_diagonal_add, 1, &repeated, 3, attr);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    const int64_t m = x->shape[x->rank - 2], n = x->shape[x->rank - 1];
    const uint64_t terms = (uint64_t)call->out[0]->size * (uint64_t)(m < n ? m : n);
    return (struct kernel_cost){.flops = terms,
                                .bytes = terms * kernel_dtype_bytes(x->dtype) +
                                         kernel_touched_bytes(call->out[0])};
}

KERNEL_OP(trace) = {
    .name = "trace",
    KERNEL_IN("x"),
    .n_out = 1,
    .depends = kernel_depends_matrices,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .sample = sample,
    .brief = "Sums of the main diagonals of matrices.",
    .shapes = "x [...,m,n] -> [...]",
    .formula = "y = sum_i x_ii",
    .derivative = "x'_ii += y'",
    .edges = "a matrix without elements has trace 0; what lies beside the diagonal does not matter",
};
