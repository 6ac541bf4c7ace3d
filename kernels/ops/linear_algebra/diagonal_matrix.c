/* ops/linear_algebra/diagonal_matrix.c: diagonal matrices from vectors; and diagonals of square
 * matrices, the adjoint.
 *
 * Serve pullbacks of functions of matrices.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "matrix.h"
#include "matrix_samples.h"
#include "op_rules.h"

#include <string.h>

static const struct kernel_sample diagonal_matrix_samples[] = {
    MATRIX_SAMPLE(1, (4), 0), MATRIX_SAMPLE(2, (2, 3), 0), MATRIX_SAMPLE(1, (1), 0),
    MATRIX_SAMPLE(2, (2, 0), 0)};
KERNEL_SAMPLES_OF(diagonal_matrix)

static int diagonal_matrix_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    if (kernel_require_float(call, 0) != 0)
        return -1;
    if (x->rank < 1 || x->rank == KERNEL_MAX_RANK)
        return kernel_refuse_operands(call, "", "1 to %d axes", KERNEL_MAX_RANK - 1);
    kernel_shape_begin(out, x->dtype, x->rank + 1);
    memcpy(out->extent, x->shape, sizeof *x->shape * x->rank);
    out->extent[x->rank] = x->shape[x->rank - 1];
    return 0;
}

static int diagonal_matrix_forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    struct kernel_array *y = call->out[0];
    struct matrix_walk walk;
    if (y->size == 0)
        return 0;
    const int64_t n = x->shape[x->rank - 1], stride = x->strides[x->rank - 1];
    memset(y->data, 0, (size_t)y->size * kernel_dtype_bytes(y->dtype));
    matrix_walk_begin(&walk, y, 2);
    const int from = matrix_walk_add(&walk, x, 1), to = matrix_walk_add(&walk, y, 2);
    do {
        for (int64_t i = 0; i < n; i++)
            kernel_store(y->dtype, walk.data[to], i * n + i,
                         kernel_load(x->dtype, walk.data[from], i * stride));
    } while (matrix_walk_next(&walk));
    return 0;
}

static void diagonal_matrix_pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] != NULL)
        kernel_accumulate(rule, 0, &kernel_op_matrix_diagonal, 1, &rule->adjoint[0], 0, NULL);
}

KERNEL_OP(diagonal_matrix) = {
    .name = "diagonal_matrix",
    KERNEL_IN("x"),
    .n_out = 1,
    .hidden = true,
    .depends = kernel_depends_moves,
    .shape = diagonal_matrix_shape,
    .forward = diagonal_matrix_forward,
    .pullback = diagonal_matrix_pullback,
    .sample = diagonal_matrix_sample,
    .brief = "Diagonal matrices.",
    .shapes = "x [...,n] -> [...,n,n]",
    .formula = "y_ij = x_i where i = j, else 0",
    .derivative = "x_i' += y_ii'",
};

static const struct kernel_sample matrix_diagonal_samples[] = {
    MATRIX_SAMPLE(2, (4, 4), 0), MATRIX_SAMPLE(3, (2, 3, 3), 0), MATRIX_SAMPLE(2, (1, 1), 0),
    MATRIX_SAMPLE(2, (0, 0), 0)};
KERNEL_SAMPLES_OF(matrix_diagonal)

static int matrix_diagonal_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    if (matrix_require(call, 0, true) != 0)
        return -1;
    kernel_shape_begin(out, x->dtype, x->rank - 1);
    memcpy(out->extent, x->shape, sizeof *x->shape * (size_t)(x->rank - 1));
    return 0;
}

static int matrix_diagonal_forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    struct kernel_array *y = call->out[0];
    struct matrix_walk walk;
    if (y->size == 0)
        return 0;
    const int64_t n = x->shape[x->rank - 1];
    const int64_t stride = x->strides[x->rank - 1] + x->strides[x->rank - 2];
    matrix_walk_begin(&walk, y, 1);
    const int from = matrix_walk_add(&walk, x, 2), to = matrix_walk_add(&walk, y, 1);
    do {
        for (int64_t i = 0; i < n; i++)
            kernel_store(y->dtype, walk.data[to], i,
                         kernel_load(x->dtype, walk.data[from], i * stride));
    } while (matrix_walk_next(&walk));
    return 0;
}

static void matrix_diagonal_pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] != NULL)
        kernel_accumulate(rule, 0, &kernel_op_diagonal_matrix, 1, &rule->adjoint[0], 0, NULL);
}

static struct kernel_cost matrix_diagonal_cost(const struct kernel_call *call)
{
    return (struct kernel_cost){.bytes = 2 * (uint64_t)call->out[0]->size *
                                         kernel_dtype_bytes(call->out[0]->dtype)};
}

KERNEL_OP(matrix_diagonal) = {
    .name = "matrix_diagonal",
    KERNEL_IN("x"),
    .n_out = 1,
    .hidden = true,
    .depends = kernel_depends_moves,
    .shape = matrix_diagonal_shape,
    .forward = matrix_diagonal_forward,
    .pullback = matrix_diagonal_pullback,
    .cost = matrix_diagonal_cost,
    .sample = matrix_diagonal_sample,
    .brief = "Diagonals of square matrices.",
    .shapes = "x [...,n,n] -> [...,n]",
    .formula = "y_i = x_ii",
    .derivative = "x_ii' += y_i'",
};
