/* ops/product/linear.c: a layer's affine map, rows of x times w, plus a bias.
 *
 * The product's sums begin with the bias, one row for all or one for each.
 */
#include "dense.h"
#include "elementwise.h"
#include "gemm.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"

#include <string.h>

/* clang-format off */
#define LINEAR_OF(rank_x, rank_b, ...)                                                             \
    {.n_in = 3, .dtype = {KERNEL_F64, KERNEL_F64, KERNEL_F64}, .rank = {rank_x, 2, rank_b},        \
     .shape = {__VA_ARGS__}, .low = {-1, -1, -1}, .high = {1, 1, 1}}
#define LINEAR_SAMPLE(rank_x, k, n, ...) LINEAR_OF(rank_x, 1, __VA_ARGS__, {k, n}, {n})
/* clang-format on */
static const struct kernel_sample samples[] = {
    LINEAR_SAMPLE(2, 4, 5, {3, 4}),
    LINEAR_SAMPLE(2, 1, 1, {1, 1}),
    LINEAR_SAMPLE(1, 4, 3, {4}),
    LINEAR_SAMPLE(3, 4, 5, {2, 3, 4}),
    LINEAR_SAMPLE(2, 17, 9, {15, 17}),
    LINEAR_SAMPLE(2, 0, 2, {3, 0}),
    LINEAR_SAMPLE(2, 3, 2, {0, 3}),
    LINEAR_SAMPLE(2, 3, 0, {2, 3}),
    LINEAR_OF(2, 2, {3, 4}, {4, 5}, {3, 5}),
    LINEAR_OF(3, 3, {2, 2, 3}, {3, 4}, {2, 2, 4}),
    LINEAR_OF(2, 2, {2, 0}, {0, 3}, {2, 3}),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0], w = call->in[1], b = call->in[2];
    for (int i = 0; i < 3; i++)
        if (kernel_require_float(call, i) != 0)
            return -1;
    if (x->rank < 1 || w->rank != 2 || (b->rank != 1 && b->rank != x->rank))
        return kernel_refuse_operands(call, ", ",
                                      "x [...,k], w [k,n] and b [n] or [...,n] are wanted");
    const int last = x->rank - 1;
    if (x->shape[last] != w->shape[0])
        return kernel_refuse_operands(call, ", ", "inner extents %lld and %lld differ",
                                      (long long)x->shape[last], (long long)w->shape[0]);
    if (w->shape[1] != b->shape[b->rank - 1])
        return kernel_refuse_operands(call, ", ", "w gives %lld columns, b has %lld",
                                      (long long)w->shape[1], (long long)b->shape[b->rank - 1]);
    if (b->rank > 1 && memcmp(b->shape, x->shape, (size_t)last * sizeof *b->shape) != 0)
        return kernel_refuse_operands(call, ", ", "the rows of x and of b differ");
    kernel_shape_begin(out, x->dtype, x->rank);
    int64_t rows = 1;
    for (int axis = 0; axis < last; axis++) {
        out->extent[axis] = x->shape[axis];
        rows *= x->shape[axis];
    }
    out->extent[last] = w->shape[1];
    if (!gemm_fits(rows, w->shape[0], w->shape[1]))
        return kernel_refuse_operands(call, ", ", "an extent is beyond the range of BLAS");
    return 0;
}

/* The operands as matrices; x and the output are dense copies where their axes do not fold. */
struct matrices {
    struct gemm_matrix x, w, y;
    bool x_folds, y_folds;
    size_t x_bytes, y_bytes;
};

static size_t dense(struct gemm_matrix *matrix, size_t elem)
{
    matrix->row_stride = matrix->columns;
    matrix->column_stride = 1;
    return dense_rounded((size_t)matrix->rows * (size_t)matrix->columns * elem);
}

static struct matrices matrices_of(const struct kernel_call *call)
{
    struct matrices all = {.w = gemm_matrix_of(call->in[1])};
    const size_t elem = kernel_dtype_bytes(call->in[0]->dtype);
    all.x_folds = gemm_matrix_fold(call->in[0], &all.x);
    all.y_folds = gemm_matrix_fold(call->out[0], &all.y);
    if (!all.x_folds)
        all.x_bytes = dense(&all.x, elem);
    if (!all.y_folds)
        all.y_bytes = dense(&all.y, elem);
    return all;
}

static size_t workspace(const struct kernel_call *call)
{
    const struct matrices all = matrices_of(call);
    return all.x_bytes + all.y_bytes + gemm_workspace(call->in[0]->dtype, &all.x, &all.w, &all.y);
}

/* The bias as a matrix of y's extents; false if its axes do not fold. */
static bool bias_of(kernel_ref b, const struct gemm_matrix *y, struct gemm_matrix *bias)
{
    *bias = (struct gemm_matrix){b->data, y->rows, y->columns, 0, b->strides[0]};
    return b->rank == 1 || gemm_matrix_fold(b, bias);
}

static int forward(const struct kernel_call *call)
{
    struct matrices all = matrices_of(call);
    struct gemm_matrix bias;
    struct kernel_array *y = call->out[0];
    struct kernel_view view;
    char *space = call->workspace;
    const int dtype = y->dtype;
    const kernel_ref x = call->in[0];
    const bool begins = bias_of(call->in[2], &all.y, &bias) && all.y_folds && !call->accumulate;
    if (!begins)
        kernel_elementwise(LOOP_copy, y, 1, &call->in[2], NULL, call->accumulate);
    if (!all.x_folds) {
        kernel_view_dense(&view, space, dtype, x->rank, x->shape);
        kernel_elementwise(LOOP_copy, &view.array, 1, &x, NULL, false);
        all.x.data = space;
        space += all.x_bytes;
    }
    if (all.y_folds) {
        gemm_run_from(dtype, &all.x, &all.w, &all.y, begins ? &bias : &all.y, space);
        return 0;
    }
    all.y.data = space;
    gemm_run(dtype, &all.x, &all.w, &all.y, false, space + all.y_bytes);
    kernel_view_dense(&view, all.y.data, dtype, y->rank, y->shape);
    const kernel_ref product = &view.array;
    kernel_elementwise(LOOP_copy, y, 1, &product, NULL, true);
    return 0;
}

/* A value of x's rank with its leading axes folded into one. */
static kernel_ref fold(struct kernel_rule *rule, kernel_ref value)
{
    if (value->rank == 2)
        return value;
    int64_t folded[2] = {1, value->shape[value->rank - 1]};
    for (int axis = 0; axis < value->rank - 1; axis++)
        folded[0] *= value->shape[axis];
    return kernel_emit_shape(rule, &kernel_op_reshape, value, 2, folded);
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0];
    if (rule->adjoint[0] == NULL)
        return;
    const kernel_ref g = fold(rule, rule->adjoint[0]);
    if (kernel_needs(rule, 0)) {
        const kernel_ref in[] = {g, kernel_emit1(rule, &kernel_op_transpose, rule->in[1])};
        if (x->rank == 2)
            kernel_accumulate(rule, 0, &kernel_op_matmul, 2, in, 0, NULL);
        else
            kernel_accumulate_value(
                rule, 0,
                kernel_emit_shape(rule, &kernel_op_reshape,
                                  kernel_emit(rule, &kernel_op_matmul, 2, in, 0, NULL), x->rank,
                                  x->shape));
    }
    if (kernel_needs(rule, 1)) {
        const kernel_ref in[] = {kernel_emit1(rule, &kernel_op_transpose, fold(rule, x)), g};
        kernel_accumulate(rule, 1, &kernel_op_matmul, 2, in, 0, NULL);
    }
    if (kernel_needs(rule, 2))
        kernel_accumulate_value(rule, 2, rule->in[2]->rank == 1 ? g : rule->adjoint[0]);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const uint64_t k = (uint64_t)call->in[1]->shape[0];
    return (struct kernel_cost){.flops = (2 * k + 1) * (uint64_t)call->out[0]->size,
                                .bytes = kernel_moved_bytes(call)};
}

static void depends(const struct kernel_call *call, int o, int i, struct kernel_depends *d)
{
    const int columns[2] = {-1, call->out[o]->rank - 1};
    if (i == 0)
        kernel_depends_rows(call, o, i, d);
    else if (i == 1)
        kernel_depends_along(call->in[i], call->out[o], columns, d);
    else
        kernel_depends_elements(call, o, i, d);
}

KERNEL_OP(linear) = {
    .name = "linear",
    KERNEL_IN("x", "w", "b"),
    .n_out = 1,
    .accumulates = true,
    .saves_in = 3,
    .reads_for = {2, 1},
    .depends = depends,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "Affine map of rows.",
    .shapes = "x [...,k], w [k,n], b [n] or [...,n] -> [...,n]",
    .formula = "y = x w + b",
    .derivative = "x' += y' w^T, w' += x^T y', b' += y', summed over rows where b is one for all",
    .edges = "b where k = 0",
};
