/* ops/linear_algebra/symmetric_part.c: the symmetric part of matrices, (x + x^T) / 2.
 *
 * The result is symmetric bit for bit. Serves pullbacks of functions of symmetric matrices.
 */
#include "kernel_ops.h"
#include "matrix.h"
#include "matrix_samples.h"
#include "op_rules.h"

static const struct kernel_sample samples[] = {
    MATRIX_SAMPLE(2, (3, 3), 0), MATRIX_SAMPLE(3, (2, 5, 5), 0), MATRIX_SAMPLE(2, (1, 1), 0),
    MATRIX_SAMPLE(2, (0, 0), 0)};
KERNEL_SAMPLES(samples)

static int forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    struct kernel_array *y = call->out[0];
    struct matrix_walk walk;
    if (y->size == 0)
        return 0;
    matrix_walk_begin(&walk, y, 2);
    const int from = matrix_walk_add(&walk, x, 2), to = matrix_walk_add(&walk, y, 2);
    do {
        const struct gemm_matrix matrix = matrix_at(x, walk.data[from]);
        matrix_symmetrise(x->dtype, &matrix, walk.data[to], false);
    } while (matrix_walk_next(&walk));
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] != NULL)
        kernel_accumulate(rule, 0, &kernel_op_symmetric_part, 1, &rule->adjoint[0], 0, NULL);
}

KERNEL_OP(symmetric_part) = {
    .name = "symmetric_part",
    KERNEL_IN("x"),
    .n_out = 1,
    .hidden = true,
    .shape = matrix_shape_square,
    .forward = forward,
    .pullback = pullback,
    .flops_per_element = 2,
    .sample = sample,
    .brief = "Symmetric part of matrices.",
    .shapes = "x [...,n,n] -> [...,n,n]",
    .formula = "y_ij = (x_ij + x_ji) / 2",
    .derivative = "x_ij' += (y_ij' + y_ji') / 2",
};
