/* ops/linear_algebra/lstsq.c: linear least squares with matrices of full column rank, by QR.
 *
 * The decomposition stays on the tape as two hidden outputs.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "lapack.h"
#include "matrix.h"
#include "matrix_rules.h"
#include "matrix_samples.h"
#include "op_rules.h"
#include "orthogonal.h"

#include <float.h>

static const struct kernel_sample samples[] = {
    MATRIX_PAIR(2, (4, 2), 2, 2, (4, 2)),    MATRIX_PAIR(2, (3, 2), 2, 1, (3)),
    MATRIX_PAIR(2, (3, 3), 2, 2, (3, 1)),    MATRIX_PAIR(2, (1, 1), 2, 1, (1)),
    MATRIX_PAIR(3, (2, 3, 2), 2, 2, (3, 1)), MATRIX_PAIR(2, (3, 2), 2, 3, (2, 3, 1)),
    MATRIX_PAIR(3, (2, 3, 2), 2, 1, (3)),    MATRIX_PAIR(2, (3, 0), 0, 2, (3, 1)),
    MATRIX_PAIR(2, (0, 0), 0, 2, (0, 2)),    MATRIX_PAIR(2, (2, 2), 2, 2, (2, 0)),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    if (matrix_require(call, 0, false) != 0)
        return -1;
    const kernel_ref a = call->in[0];
    const int64_t m = a->shape[a->rank - 2], n = a->shape[a->rank - 1];
    if (m < n)
        return kernel_refuse_operands(call, ", ", "a has more columns than rows");
    orthogonal_shapes(call, 1, out);
    return matrix_solution_shape(call, m, n, out);
}

/* The decomposition's, then one right-hand side. */
static size_t workspace(const struct kernel_call *call)
{
    const kernel_ref b = call->in[1];
    const int64_t columns = b->rank == 1 ? 1 : b->shape[b->rank - 1];
    const int64_t rows = b->shape[b->rank == 1 ? 0 : b->rank - 2];
    const size_t first = orthogonal_workspace(call->in[0]);
    const size_t then = matrix_bytes(b->dtype, rows * columns);
    return first > then ? first : then;
}

/* Refuses a matrix one of whose columns is, up to rounding, a combination of others. */
static int require_rank(const struct kernel_call *call)
{
    const kernel_ref r = call->out[2], a = call->in[0];
    const int64_t n = r->shape[r->rank - 1], m = a->shape[a->rank - 2];
    const double epsilon = r->dtype == KERNEL_F32 ? (double)FLT_EPSILON : DBL_EPSILON;
    struct matrix_walk walk;
    if (r->size == 0)
        return 0;
    matrix_walk_begin(&walk, r, 2);
    const int at = matrix_walk_add(&walk, r, 2);
    do {
        double most = 0;
        for (int64_t i = 0; i < n; i++)
            most = matrix_greater(most, kernel_load(r->dtype, walk.data[at], i * n + i));
        for (int64_t i = 0; i < n; i++)
            if (kernel_load(r->dtype, walk.data[at], i * n + i) <= (double)m * epsilon * most)
                return kernel_refuse_operands(
                    call, ", ", "%sa has not full column rank: column %lld depends on those before",
                    matrix_place_of(&walk).text, (long long)i);
    } while (matrix_walk_next(&walk));
    return 0;
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref b = call->in[1], q = call->out[1], r = call->out[2];
    struct kernel_array *x = call->out[0];
    const int dtype = b->dtype, trailing = b->rank == 1 ? 1 : 2;
    const int m = (int)q->shape[q->rank - 2], n = (int)r->shape[r->rank - 1];
    struct matrix_walk walk;
    orthogonal_factor_all(call, 1);
    if (require_rank(call) != 0)
        return -1;
    if (x->size == 0)
        return 0;
    matrix_walk_begin(&walk, x, trailing);
    const int at_b = matrix_walk_add(&walk, b, trailing),
              at_x = matrix_walk_add(&walk, x, trailing);
    const int at_q = matrix_walk_add(&walk, q, 2), at_r = matrix_walk_add(&walk, r, 2);
    do {
        const struct gemm_matrix right =
            trailing == 2 ? matrix_at(b, walk.data[at_b])
                          : (struct gemm_matrix){walk.data[at_b], m, 1, b->strides[0], 1};
        const int columns = (int)right.columns;
        const struct lapack_triangle t = {walk.data[at_r], n, n, true, false, false};
        matrix_pack(dtype, &right, call->workspace);
        lapack_product(dtype, LAPACK_SET, (struct lapack_extents){n, columns, m},
                       (struct lapack_matrix){walk.data[at_q], n, true},
                       (struct lapack_matrix){call->workspace, columns, false}, walk.data[at_x],
                       columns);
        lapack_solve_triangular(dtype, &t, false, columns, walk.data[at_x], columns);
    } while (matrix_walk_next(&walk));
    return 0;
}

/* With t = r^-T x' and z = r^-1 t: b' = q t, a' = (b - q q^T b) z^T - b' x^T. */
static void pullback(struct kernel_rule *rule)
{
    const kernel_ref q = rule->out[1], r = rule->out[2];
    const bool vector = rule->in[1]->rank == 1;
    if (rule->adjoint[0] != NULL) {
        const kernel_ref g = matrix_emit_columns(rule, rule->adjoint[0], vector);
        const kernel_ref t = matrix_emit_solve_triangular(rule, r, g, true, true, false);
        const kernel_ref to_b = matrix_emit_nn(rule, q, t);
        matrix_accumulate_columns(rule, 1, to_b, vector);
        if (kernel_needs(rule, 0)) {
            const kernel_ref x = matrix_emit_columns(rule, rule->out[0], vector);
            const kernel_ref b = matrix_emit_columns(rule, rule->in[1], vector);
            const kernel_ref z = matrix_emit_solve_triangular(rule, r, t, true, false, false);
            const kernel_ref inside = matrix_emit_nn(rule, q, matrix_emit_tn(rule, q, b));
            const kernel_ref outside = kernel_emit2(rule, &kernel_op_sub, b, inside);
            const kernel_ref both[] = {matrix_emit_nt(rule, outside, z),
                                       matrix_emit_nt(rule, to_b, x)};
            kernel_accumulate(rule, 0, &kernel_op_sub, 2, both, 0, NULL);
        }
    }
    orthogonal_pullback(rule, q, r, rule->adjoint[1], rule->adjoint[2]);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const uint64_t m = (uint64_t)call->in[0]->shape[call->in[0]->rank - 2];
    const uint64_t n = (uint64_t)call->in[0]->shape[call->in[0]->rank - 1];
    return (struct kernel_cost){.flops = orthogonal_flops(call->in[0]) +
                                         (2 * m + n) * (uint64_t)call->out[0]->size,
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(lstsq) = {
    .name = "lstsq",
    KERNEL_IN("a", "b"),
    .n_out = 3,
    .saves_in = 2,
    .saves_out = 7,
    .reads_for = {2, 0},
    .depends = kernel_depends_systems,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "Linear least squares, by QR; the decomposition stays on the tape.",
    .shapes = "a [...,m,n], m >= n, b [m] or [...,m,k] -> [...,n] or [...,n,k], leading axes "
              "broadcast",
    .formula = "x minimises |a x - b|",
    .derivative = "b' += a z, a' += (b - a x) z^T - a z x^T, z = (a^T a)^-1 x'",
    .edges = "a whose columns are dependent up to rounding is refused; one with NaN or infinity "
             "gives NaN; 0 extents: x [0] for n = 0",
    .source = "Golub & Pereyra (1973), The differentiation of pseudo-inverses and nonlinear least "
              "squares problems whose variables separate, doi:10.1137/0710036",
};
