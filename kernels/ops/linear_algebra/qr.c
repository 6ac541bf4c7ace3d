/* ops/linear_algebra/qr.c: QR decomposition of matrices, reduced.
 *
 * The diagonal of r is not negative, so that the decomposition is the only one where the columns
 * of a are independent.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "matrix.h"
#include "matrix_samples.h"
#include "op_rules.h"
#include "orthogonal.h"

static const char *const results[] = {"r"};

static const struct kernel_sample samples[] = {
    MATRIX_SAMPLE(2, (3, 3), 2), MATRIX_SAMPLE(2, (4, 2), 2),    MATRIX_SAMPLE(2, (2, 4), 2),
    MATRIX_SAMPLE(2, (1, 1), 2), MATRIX_SAMPLE(3, (2, 3, 2), 2), MATRIX_SAMPLE(3, (2, 2, 3), 2),
    MATRIX_SAMPLE(2, (0, 3), 0), MATRIX_SAMPLE(2, (3, 0), 0),    MATRIX_SAMPLE(3, (0, 2, 2), 0)};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    if (matrix_require(call, 0, false) != 0)
        return -1;
    orthogonal_shapes(call, 0, out);
    return 0;
}

static size_t workspace(const struct kernel_call *call)
{
    return orthogonal_workspace(call->in[0]);
}

static int forward(const struct kernel_call *call)
{
    orthogonal_factor_all(call, 0);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    orthogonal_pullback(rule, rule->out[0], rule->out[1], rule->adjoint[0], rule->adjoint[1]);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    return (struct kernel_cost){.flops = orthogonal_flops(call->in[0]),
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(qr) = {
    .name = "qr",
    KERNEL_IN("a"),
    .n_out = 2,
    .n_results = 2,
    .result_names = results,
    .saves_out = 3,
    .depends = kernel_depends_matrices,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "QR decomposition of matrices, reduced.",
    .shapes = "a [...,m,n], k = min(m,n) -> q [...,m,k], r [...,k,n]",
    .formula = "a = q r, q^T q = 1, r upper triangular with no negative diagonal",
    .derivative =
        "a' += (q' + q s) r^-T, s the symmetric matrix with the lower triangle of "
        "r r'^T - q'^T q; if m < n that is for the first m columns, of r as well, with q' "
        "increased by y z'^T, and y' += q z' for the others, y of a and z of r",
    .edges = "the gradient is not finite where the first k columns of a are dependent; what comes "
             "to r below the diagonal does not count; NaN where the matrix has NaN or infinity",
    .source = "Walter & Lehmann (2010), arXiv:1001.1654; Roberts & Roberts (2020), "
              "arXiv:2009.10071",
};
