/* ops/linear_algebra/cholesky.c: the lower triangular root of positive definite matrices.
 *
 * The symmetric part of the operand is factored. So the gradient is symmetric, and exact in every
 * direction, also in ones that are not symmetric.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "lapack.h"
#include "matrix.h"
#include "matrix_samples.h"
#include "op_rules.h"

#include <math.h>

static const struct kernel_sample samples[] = {
    MATRIX_SAMPLE(2, (3, 3), 3),    MATRIX_SAMPLE(2, (5, 5), 3), MATRIX_SAMPLE(2, (1, 1), 2),
    MATRIX_SAMPLE(3, (2, 3, 3), 3), MATRIX_SAMPLE(2, (0, 0), 0), MATRIX_SAMPLE(3, (0, 2, 2), 0)};
KERNEL_SAMPLES(samples)

/* If the matrix has a NaN or an infinity, a diagonal element of the factor is not finite or a minor
 * is not positive. */
static bool diagonal_finite(int dtype, int64_t n, const void *l)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(kernel_load(dtype, l, i * n + i)))
            return false;
    return true;
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref a = call->in[0];
    struct kernel_array *l = call->out[0];
    const int dtype = a->dtype;
    const int64_t n = a->shape[a->rank - 1];
    struct matrix_walk walk;
    if (l->size == 0)
        return 0;
    matrix_walk_begin(&walk, l, 2);
    const int from = matrix_walk_add(&walk, a, 2), to = matrix_walk_add(&walk, l, 2);
    do {
        const struct gemm_matrix matrix = matrix_at(a, walk.data[from]);
        void *root = walk.data[to];
        matrix_symmetrise(dtype, &matrix, root, true);
        const int info = lapack_cholesky(dtype, (int)n, root);
        if (info == 0 && diagonal_finite(dtype, n, root))
            continue;
        /* It was overwritten in part. */
        matrix_symmetrise(dtype, &matrix, root, true);
        if (info > 0 && matrix_finite(dtype, n * n, root))
            return kernel_refuse_operands(
                call, "", "%snot positive definite: the leading minor of order %d is not positive",
                matrix_place_of(&walk).text, info);
        const struct matrix_weights zero_above = {1, 1, 0};
        const struct gemm_matrix whole = {root, n, n, n, 1};
        matrix_fill(dtype, n * n, root, (double)NAN);
        matrix_weigh(dtype, &whole, &zero_above, root, false);
    } while (matrix_walk_next(&walk));
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref in[] = {rule->out[0], rule->adjoint[0]};
    if (rule->adjoint[0] != NULL)
        kernel_accumulate(rule, 0, &kernel_op_cholesky_adjoint, 2, in, 0, NULL);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const uint64_t n = (uint64_t)call->in[0]->shape[call->in[0]->rank - 1];
    return (struct kernel_cost){.flops = (uint64_t)matrix_count(call->in[0]) * (n * n * n / 3),
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(cholesky) = {
    .name = "cholesky",
    KERNEL_IN("a"),
    .n_out = 1,
    .saves_out = 1,
    .depends = kernel_depends_matrices,
    .shape = matrix_shape_square,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .sample = sample,
    .brief = "Cholesky factor of symmetric positive definite matrices.",
    .shapes = "a [...,n,n] -> l [...,n,n], lower triangular with a positive diagonal",
    .formula = "l l^T = (a + a^T) / 2",
    .derivative =
        "a' += (k + k^T) / 2, k = l^-T phi(l^T l') l^-1, phi: the lower triangle with half "
        "the diagonal; symmetric",
    .edges = "of a matrix that is not symmetric it is that of its symmetric part; one that is not "
             "positive definite is refused, by the order of its first leading minor that is not "
             "positive; one with NaN or infinity gives NaN",
    .source = "Murray (2016), Differentiation of the Cholesky decomposition, arXiv:1602.07527",
};
