/* ops/linear_algebra/diagonal_matrix.c: diagonal matrices from vectors.
 *
 * Serves pullbacks of functions of matrices.
 */
#include "kernel_ops.h"
#include "matrix.h"
#include "matrix_samples.h"
#include "op_rules.h"

#include <string.h>

static const struct kernel_sample samples[] = {
    MATRIX_SAMPLE(1, (4), 0), MATRIX_SAMPLE(2, (2, 3), 0), MATRIX_SAMPLE(1, (1), 0),
    MATRIX_SAMPLE(2, (2, 0), 0)};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
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

static int forward(const struct kernel_call *call)
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
            matrix_store(y->dtype, walk.data[to], i * n + i,
                         matrix_load(x->dtype, walk.data[from], i * stride));
    } while (matrix_walk_next(&walk));
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] != NULL)
        kernel_accumulate(rule, 0, &kernel_op_matrix_diagonal, 1, &rule->adjoint[0], 0, NULL);
}

KERNEL_OP(diagonal_matrix) = {
    .name = "diagonal_matrix",
    KERNEL_IN("x"),
    .n_out = 1,
    .hidden = true,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .sample = sample,
    .brief = "Diagonal matrices.",
    .shapes = "x [...,n] -> [...,n,n]",
    .formula = "y_ij = x_i where i = j, else 0",
    .derivative = "x_i' += y_ii'",
};
