/* ops/linear_algebra/expm.c: exponentials of square matrices. */
#include "exponential.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "matrix.h"
#include "matrix_samples.h"
#include "op_rules.h"

/* Of every degree, and with squarings. */
static const struct kernel_sample samples[] = {
    MATRIX_SAMPLE(2, (3, 3), 0),    MATRIX_SAMPLE(2, (4, 4), -2), MATRIX_SAMPLE(2, (1, 1), 0),
    MATRIX_SAMPLE(3, (2, 2, 2), 0), MATRIX_SAMPLE(2, (0, 0), 0),  MATRIX_SAMPLE(3, (0, 2, 2), 0),
};
KERNEL_SAMPLES(samples)

static size_t workspace(const struct kernel_call *call)
{
    const kernel_ref a = call->in[0];
    const int64_t n = a->shape[a->rank - 1];
    return matrix_bytes(a->dtype, n * n) + exponential_workspace(a->dtype, n, false);
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref a = call->in[0];
    struct kernel_array *y = call->out[0];
    const int64_t n = a->shape[a->rank - 1];
    char *const copy = call->workspace;
    struct matrix_walk walk;
    if (y->size == 0)
        return 0;
    matrix_walk_begin(&walk, y, 2);
    const int from = matrix_walk_add(&walk, a, 2), to = matrix_walk_add(&walk, y, 2);
    do {
        const struct gemm_matrix matrix = matrix_at(a, walk.data[from]);
        matrix_pack(a->dtype, &matrix, copy);
        exponential_run(a->dtype, n, copy, NULL, walk.data[to], NULL,
                        copy + matrix_bytes(a->dtype, n * n));
    } while (matrix_walk_next(&walk));
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const kernel_ref in[] = {kernel_emit1(rule, &kernel_op_transpose, rule->in[0]),
                             rule->adjoint[0]};
    kernel_accumulate(rule, 0, &kernel_op_expm_derivative, 2, in, 0, NULL);
}

/* Six products, a decomposition and two triangular solves; squarings depend on the values. */
static struct kernel_cost cost(const struct kernel_call *call)
{
    const uint64_t n = (uint64_t)call->in[0]->shape[call->in[0]->rank - 1];
    return (struct kernel_cost){.flops = (uint64_t)matrix_count(call->in[0]) * (44 * n * n * n / 3),
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(expm) = {
    .name = "expm",
    KERNEL_IN("a"),
    .n_out = 1,
    .saves_in = 1,
    .depends = kernel_depends_matrices,
    .shape = matrix_shape_square,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "Exponential of square matrices.",
    .shapes = "a [...,n,n] -> [...,n,n]",
    .formula = "y = sum_k a^k / k!",
    .derivative = "a' += the derivative of expm at a^T in the direction y'",
    .edges = "NaN where the matrix has NaN or infinity; what overflows is infinite or NaN",
    .source =
        "Higham (2005), doi:10.1137/04061101X; Al-Mohy & Higham (2009), Computing the Frechet "
        "derivative of the matrix exponential, doi:10.1137/080716426",
};
