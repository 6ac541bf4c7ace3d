/* ops/linear_algebra/solve_triangular.c: linear systems with a triangular matrix.
 *
 * The other triangle is not read. A transposed view of a matrix is read in place, as the other
 * triangle transposed.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "lapack.h"
#include "matrix.h"
#include "matrix_rules.h"
#include "matrix_samples.h"
#include "op_rules.h"

static const struct kernel_sample samples[] = {
    MATRIX_PAIR_WITH(2, (3, 3), 2, 2, (3, 2), 3, 0, 0, 0),
    MATRIX_PAIR_WITH(2, (4, 4), 2, 2, (4, 3), 3, 1, 0, 0),
    MATRIX_PAIR_WITH(2, (3, 3), 2, 1, (3), 3, 0, 1, 0),
    MATRIX_PAIR_WITH(2, (3, 3), 2, 2, (3, 3), 3, 1, 1, 0),
    MATRIX_PAIR_WITH(2, (3, 3), 0, 2, (3, 1), 3, 0, 0, 1),
    MATRIX_PAIR_WITH(2, (3, 3), 0, 2, (3, 2), 3, 1, 1, 1),
    MATRIX_PAIR_WITH(3, (2, 3, 3), 2, 2, (3, 2), 3, 0, 1, 0),
    MATRIX_PAIR_WITH(2, (3, 3), 2, 3, (2, 3, 2), 3, 1, 0, 0),
    MATRIX_PAIR_WITH(4, (2, 1, 2, 2), 2, 3, (3, 2, 1), 3, 0, 0, 0),
    MATRIX_PAIR_WITH(3, (2, 3, 3), 2, 1, (3), 3, 0, 0, 0),
    MATRIX_PAIR_WITH(2, (1, 1), 2, 1, (1), 3, 0, 0, 0),
    MATRIX_PAIR_WITH(2, (0, 0), 0, 2, (0, 2), 3, 0, 0, 0),
    MATRIX_PAIR_WITH(2, (2, 2), 2, 2, (2, 0), 3, 0, 0, 0),
    MATRIX_PAIR_WITH(3, (0, 2, 2), 0, 2, (2, 1), 3, 0, 0, 0),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    if (matrix_require(call, 0, true) != 0)
        return -1;
    const int64_t n = call->in[0]->shape[call->in[0]->rank - 1];
    return matrix_solution_shape(call, n, n, out);
}

/* True if BLAS reads the matrix as it lies, plain or transposed. */
static bool in_place(const struct gemm_matrix *a, bool *turned, int64_t *leading)
{
    const int64_t n = a->rows;
    *turned = a->column_stride != 1;
    *leading = *turned ? a->column_stride : a->row_stride;
    return n <= 1 || ((*turned ? a->row_stride : a->column_stride) == 1 && *leading >= n &&
                      gemm_fits(*leading, 1, 1));
}

static size_t workspace(const struct kernel_call *call)
{
    const kernel_ref a = call->in[0];
    const struct gemm_matrix matrix = matrix_at(a, NULL);
    bool turned;
    int64_t leading;
    return in_place(&matrix, &turned, &leading) ? 0
                                                : matrix_bytes(a->dtype, matrix.rows * matrix.rows);
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref a = call->in[0], b = call->in[1];
    struct kernel_array *x = call->out[0];
    const int trailing = b->rank == 1 ? 1 : 2;
    struct matrix_walk walk;
    if (x->size == 0)
        return 0;
    matrix_walk_begin(&walk, x, trailing);
    const int at_a = matrix_walk_add(&walk, a, 2), at_b = matrix_walk_add(&walk, b, trailing);
    const int at_x = matrix_walk_add(&walk, x, trailing);
    do {
        const struct gemm_matrix given = matrix_at(a, walk.data[at_a]);
        const struct gemm_matrix right =
            trailing == 2 ? matrix_at(b, walk.data[at_b])
                          : (struct gemm_matrix){walk.data[at_b], b->shape[0], 1, b->strides[0], 1};
        struct lapack_triangle t = {given.data,         (int)given.rows,    (int)given.rows,
                                    call->attr[0] != 0, call->attr[1] != 0, call->attr[2] != 0};
        bool turned;
        int64_t leading;
        if (in_place(&given, &turned, &leading)) {
            t.leading = given.rows <= 1 ? 1 : (int)leading;
            t.upper = t.upper != turned;
            t.transposed = t.transposed != turned;
        } else {
            matrix_pack(a->dtype, &given, call->workspace);
            t.data = call->workspace;
        }
        matrix_pack(a->dtype, &right, walk.data[at_x]);
        lapack_solve_triangular(a->dtype, &t, false, (int)right.columns, walk.data[at_x],
                                (int)right.columns);
    } while (matrix_walk_next(&walk));
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const bool upper = rule->attr[0] != 0, transposed = rule->attr[1] != 0;
    const bool unit = rule->attr[2] != 0, vector = rule->in[1]->rank == 1;
    if (rule->adjoint[0] == NULL)
        return;
    const kernel_ref g = matrix_emit_columns(rule, rule->adjoint[0], vector);
    const kernel_ref to_b =
        matrix_emit_solve_triangular(rule, rule->in[0], g, upper, !transposed, unit);
    matrix_accumulate_columns(rule, 1, to_b, vector);
    if (!kernel_needs(rule, 0))
        return;
    const kernel_ref x = matrix_emit_columns(rule, rule->out[0], vector);
    const kernel_ref left = transposed ? x : to_b, right = transposed ? to_b : x;
    matrix_accumulate_weighed(rule, 0, matrix_emit_nt(rule, left, right), upper ? 0 : -1,
                              unit ? 0 : -1, upper ? -1 : 0);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const uint64_t n = (uint64_t)call->in[0]->shape[call->in[0]->rank - 1];
    return (struct kernel_cost){.flops = n * (uint64_t)call->out[0]->size,
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(solve_triangular) = {
    .name = "solve_triangular",
    KERNEL_IN("a", "b"),
    KERNEL_ATTRS({"upper", KERNEL_ATTR_FLAG}, {"transposed", KERNEL_ATTR_FLAG},
                 {"unit_diagonal", KERNEL_ATTR_FLAG}),
    .n_out = 1,
    .saves_in = 1,
    .saves_out = 1,
    .depends = kernel_depends_systems,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "Solution of linear systems with a triangular matrix.",
    .shapes = "a [...,n,n], b [n] or [...,n,k] -> [...,n] or [...,n,k], leading axes broadcast",
    .formula = "t x = b, or t^T x = b if transposed; t: the lower or upper triangle of a, its "
               "diagonal taken for 1 if unit_diagonal",
    .derivative = "b' += t^-T x', a' -= the triangle of t^-T x' x^T; if transposed, b' += t^-1 x', "
                  "a' -= the triangle of x (t^-1 x')^T; nothing to the diagonal if unit_diagonal",
    .edges = "the other triangle of a, and its diagonal if unit_diagonal, is not read and has "
             "gradient 0; a "
             "zero on the diagonal gives infinities or NaN, as does NaN in a or b",
    .source = "Giles (2008), Collected matrix derivative results for forward and reverse mode "
              "algorithmic differentiation, doi:10.1007/978-3-540-68942-3_4",
};
