/* ops/linear_algebra/expm_derivative.c: the Frechet derivative of the exponential of matrices.
 *
 * Its own derivative is a part of the same function of matrices of twice the extent.
 */
#include "exponential.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "matrix.h"
#include "matrix_samples.h"
#include "op_rules.h"

static const struct kernel_sample samples[] = {
    MATRIX_PAIR(2, (3, 3), 0, 2, (3, 3)),       MATRIX_PAIR(2, (2, 2), -4, 2, (2, 2)),
    MATRIX_PAIR(2, (1, 1), 0, 2, (1, 1)),       MATRIX_PAIR(3, (2, 2, 2), 0, 3, (2, 2, 2)),
    MATRIX_PAIR(3, (0, 2, 2), 0, 3, (0, 2, 2)), MATRIX_PAIR(2, (0, 0), 0, 2, (0, 0)),
};
KERNEL_SAMPLES(samples)

static size_t workspace(const struct kernel_call *call)
{
    const kernel_ref a = call->in[0];
    const int64_t n = a->shape[a->rank - 1];
    return 3 * matrix_bytes(a->dtype, n * n) + exponential_workspace(a->dtype, n, true);
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref a = call->in[0], e = call->in[1];
    struct kernel_array *z = call->out[0];
    const int64_t n = a->shape[a->rank - 1];
    const size_t one = matrix_bytes(a->dtype, n * n);
    struct matrix_walk walk;
    if (z->size == 0)
        return 0;
    char *const copy = call->workspace, *const direction = copy + one, *const y = direction + one;
    matrix_walk_begin(&walk, z, 2);
    const int at_a = matrix_walk_add(&walk, a, 2), at_e = matrix_walk_add(&walk, e, 2);
    const int at_z = matrix_walk_add(&walk, z, 2);
    do {
        const struct gemm_matrix matrix = matrix_at(a, walk.data[at_a]);
        const struct gemm_matrix along = matrix_at(e, walk.data[at_e]);
        matrix_pack(a->dtype, &matrix, copy);
        matrix_pack(a->dtype, &along, direction);
        exponential_run(a->dtype, n, copy, direction, y, walk.data[at_z], y + one);
    } while (matrix_walk_next(&walk));
    return 0;
}

/* The matrix of four blocks. */
static kernel_ref blocks(struct kernel_rule *rule, kernel_ref a, kernel_ref b, kernel_ref c,
                         kernel_ref d)
{
    const int64_t across[] = {-1}, down[] = {-2};
    const kernel_ref upper[] = {a, b}, lower[] = {c, d};
    const kernel_ref rows[] = {kernel_emit(rule, &kernel_op_concat, 2, upper, 1, across),
                               kernel_emit(rule, &kernel_op_concat, 2, lower, 1, across)};
    return kernel_emit(rule, &kernel_op_concat, 2, rows, 1, down);
}

/* With l(a, e) this function: e' += l(a^T, y'), and a' += the upper right block of l at
 * [a^T e^T; 0 a^T] in the direction [y' 0; 0 y']. */
static void pullback(struct kernel_rule *rule)
{
    const kernel_ref g = rule->adjoint[0];
    if (g == NULL)
        return;
    const int64_t n = g->shape[g->rank - 1];
    const kernel_ref a = kernel_emit1(rule, &kernel_op_transpose, rule->in[0]);
    const kernel_ref to_e[] = {a, g};
    kernel_accumulate(rule, 1, &kernel_op_expm_derivative, 2, to_e, 0, NULL);
    if (!kernel_needs(rule, 0))
        return;
    const kernel_ref e = kernel_emit1(rule, &kernel_op_transpose, rule->in[1]);
    const kernel_ref zero = kernel_emit2(rule, &kernel_op_sub, g, g);
    const kernel_ref both[] = {blocks(rule, a, e, zero, a), blocks(rule, g, zero, zero, g)};
    kernel_ref part = kernel_emit(rule, &kernel_op_expm_derivative, 2, both, 0, NULL);
    const int64_t upper[] = {-2, 0, n, 1}, right[] = {-1, n, 2 * n, 1};
    part = kernel_emit(rule, &kernel_op_slice, 1, &part, 4, upper);
    part = kernel_emit(rule, &kernel_op_slice, 1, &part, 4, right);
    kernel_accumulate_value(rule, 0, part);
}

/* About three times that of the exponential. */
static struct kernel_cost cost(const struct kernel_call *call)
{
    const uint64_t n = (uint64_t)call->in[0]->shape[call->in[0]->rank - 1];
    return (struct kernel_cost){.flops = (uint64_t)matrix_count(call->in[0]) * (44 * n * n * n),
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(expm_derivative) = {
    .name = "expm_derivative",
    KERNEL_IN("a", "e"),
    .n_out = 1,
    .hidden = true,
    .saves_in = 3,
    .reads_for = {3, 1},
    .depends = kernel_depends_matrices,
    .shape = matrix_shape_pair,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "Frechet derivative of the exponential of matrices, at a in the direction e.",
    .shapes = "a [...,n,n], e [...,n,n] -> [...,n,n]",
    .formula = "y = limit of (expm(a + t e) - expm(a)) / t",
    .derivative = "e' += the derivative at a^T in the direction y', a' += the upper right block of "
                  "that at [a^T e^T; 0 a^T] in the direction [y' 0; 0 y']",
    .edges = "NaN where a matrix has NaN or infinity",
    .source =
        "Al-Mohy & Higham (2009), Computing the Frechet derivative of the matrix exponential, "
        "doi:10.1137/080716426",
};
