/* ops/linear_algebra/solve.c: linear systems with square matrices, by LU.
 *
 * The decomposition stays on the tape as two hidden outputs: the adjoint needs no other one.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "lu.h"
#include "matrix_rules.h"
#include "matrix_samples.h"
#include "op_rules.h"

static const struct kernel_sample samples[] = {
    MATRIX_PAIR(2, (3, 3), 2, 2, (3, 2)),
    MATRIX_PAIR(2, (5, 5), 2, 1, (5)),
    MATRIX_PAIR(2, (3, 3), 2, 2, (3, 3)),
    MATRIX_PAIR(2, (4, 4), -2, 2, (4, 1)),
    MATRIX_PAIR(3, (2, 3, 3), 2, 2, (3, 2)),
    MATRIX_PAIR(2, (3, 3), 2, 3, (2, 3, 2)),
    MATRIX_PAIR(4, (2, 1, 2, 2), 2, 3, (3, 2, 1)),
    MATRIX_PAIR(3, (2, 3, 3), 2, 1, (3)),
    MATRIX_PAIR(2, (1, 1), 2, 1, (1)),
    MATRIX_PAIR(2, (0, 0), 0, 2, (0, 2)),
    MATRIX_PAIR(2, (2, 2), 2, 2, (2, 0)),
    MATRIX_PAIR(3, (0, 2, 2), 0, 2, (2, 1)),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    if (matrix_require(call, 0, true) != 0)
        return -1;
    const int64_t n = call->in[0]->shape[call->in[0]->rank - 1];
    lu_shapes(call, 1, out);
    return matrix_solution_shape(call, n, n, out);
}

static size_t workspace(const struct kernel_call *call)
{
    return lu_workspace(call->in[0]->shape[call->in[0]->rank - 1]);
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref b = call->in[1], lu = call->out[1], exchanges = call->out[2];
    struct kernel_array *x = call->out[0];
    const int trailing = b->rank == 1 ? 1 : 2;
    const int64_t n = lu->shape[lu->rank - 1];
    struct matrix_walk walk;
    if (lu_factor_all(call, 1, true) != 0)
        return -1;
    if (x->size == 0)
        return 0;
    matrix_walk_begin(&walk, x, trailing);
    const int at_b = matrix_walk_add(&walk, b, trailing),
              at_x = matrix_walk_add(&walk, x, trailing);
    const int at_lu = matrix_walk_add(&walk, lu, 2), list = matrix_walk_add(&walk, exchanges, 1);
    do {
        const struct gemm_matrix right =
            trailing == 2 ? matrix_at(b, walk.data[at_b])
                          : (struct gemm_matrix){walk.data[at_b], n, 1, b->strides[0], 1};
        matrix_pack(b->dtype, &right, walk.data[at_x]);
        lu_solve(b->dtype, n, walk.data[at_lu], walk.data[list], right.columns, walk.data[at_x]);
    } while (matrix_walk_next(&walk));
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const bool vector = rule->in[1]->rank == 1;
    const kernel_ref lu = rule->out[1], exchanges = rule->out[2];
    if (rule->adjoint[0] != NULL) {
        const kernel_ref g = matrix_emit_columns(rule, rule->adjoint[0], vector);
        const kernel_ref to_b = lu_emit_solve_transposed(rule, lu, exchanges, g);
        matrix_accumulate_columns(rule, 1, to_b, vector);
        if (kernel_needs(rule, 0)) {
            const kernel_ref x = matrix_emit_columns(rule, rule->out[0], vector);
            const kernel_ref product = matrix_emit_nt(rule, to_b, x);
            kernel_accumulate(rule, 0, &kernel_op_neg, 1, &product, 0, NULL);
        }
    }
    lu_pullback(rule, lu, exchanges, rule->adjoint[1]);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const uint64_t n = (uint64_t)call->in[0]->shape[call->in[0]->rank - 1];
    return (struct kernel_cost){.flops = (uint64_t)matrix_count(call->in[0]) * (2 * n * n * n / 3) +
                                         2 * n * (uint64_t)call->out[0]->size,
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(solve) = {
    .name = "solve",
    KERNEL_IN("a", "b"),
    .n_out = 3,
    .saves_out = 7,
    .depends = kernel_depends_systems,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "Solution of linear systems; the LU decomposition stays on the tape.",
    .shapes = "a [...,n,n], b [n] or [...,n,k] -> [...,n] or [...,n,k], leading axes broadcast",
    .formula = "a x = b",
    .derivative = "b' += a^-T x', a' -= a^-T x' x^T",
    .edges = "a singular a, one of whose pivots is exactly 0, is refused; one with NaN or infinity "
             "gives NaN",
    .source = "Giles (2008), Collected matrix derivative results for forward and reverse mode "
              "algorithmic differentiation, doi:10.1007/978-3-540-68942-3_4",
};
