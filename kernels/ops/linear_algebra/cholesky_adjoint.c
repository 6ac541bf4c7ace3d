/* ops/linear_algebra/cholesky_adjoint.c: the adjoint of a Cholesky decomposition.
 *
 * In place, by blocks of columns from the last to the first, almost all of it products: the
 * blocked algorithm of Murray (2016), arXiv:1602.07527, with about twice the operations of the
 * decomposition. A small block on the diagonal is done by the closed form.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "lapack.h"
#include "matrix.h"
#include "matrix_rules.h"
#include "matrix_samples.h"
#include "op_rules.h"

#include <string.h>

enum { BLOCK = 48 };

static const struct kernel_sample samples[] = {
    MATRIX_PAIR(2, (3, 3), 2, 2, (3, 3)),       MATRIX_PAIR(2, (5, 5), 2, 2, (5, 5)),
    MATRIX_PAIR(2, (1, 1), 2, 2, (1, 1)),       MATRIX_PAIR(3, (2, 3, 3), 2, 3, (2, 3, 3)),
    MATRIX_PAIR(3, (0, 2, 2), 0, 3, (0, 2, 2)),
};
KERNEL_SAMPLES(samples)

static size_t workspace(const struct kernel_call *call)
{
    const kernel_ref l = call->in[0];
    const int64_t n = l->shape[l->rank - 1];
    return matrix_bytes(l->dtype, n * n) + matrix_bytes(l->dtype, BLOCK * BLOCK);
}

/* A block [n,n] on the diagonal, rows `leading` apart: of the adjoint g of the factor l, whose
 * lower triangle counts, the gradient with respect to the lower triangle of what was factored. What
 * lies above the diagonal of g becomes anything. space: [n,n]. */
static void block_adjoint(int dtype, int n, const void *l, void *g, int leading, void *space)
{
    const struct lapack_triangle t = {l, n, leading, false, false, false};
    const struct lapack_triangle t_transposed = {l, n, leading, false, true, false};
    struct gemm_matrix block = {g, n, n, leading, 1};
    const struct matrix_weights lower = {1, 1, 0};
    matrix_weigh(dtype, &block, &lower, space, false);
    lapack_multiply_triangular(dtype, &t_transposed, n, space, n);
    /* phi of it; then, as the result is symmetric, both its halves at once. */
    block = (struct gemm_matrix){space, n, n, n, 1};
    const struct matrix_weights half_diagonal = {1, 0.5, 0};
    matrix_weigh(dtype, &block, &half_diagonal, space, false);
    lapack_solve_triangular(dtype, &t_transposed, false, n, space, n);
    lapack_solve_triangular(dtype, &t, true, n, space, n);
    matrix_symmetrise(dtype, &block, space, false);
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            const double x = kernel_load(dtype, space, (int64_t)i * n + j);
            kernel_store(dtype, g, (int64_t)i * leading + j, j < i ? 2 * x : x);
        }
}

/* g = symmetrised lower triangle g + g^T of a block, rows `leading` apart, into space [n,n]. */
static void both_triangles(int dtype, int n, const void *g, int leading, void *space)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            const double x = kernel_load(dtype, g, (int64_t)i * leading + j);
            kernel_store(dtype, space, (int64_t)i * n + j, i == j ? 2 * x : x);
            kernel_store(dtype, space, (int64_t)j * n + i, i == j ? 2 * x : x);
        }
}

/* g: in the lower triangle the adjoint of l [n,n]; becomes the gradient with respect to the lower
 * triangle of what was factored. Above the diagonal it becomes anything. */
static void adjoint(int dtype, int n, const void *l, void *g, void *space)
{
    for (int end = n, begin; end > 0; end = begin) {
        begin = end > BLOCK ? end - BLOCK : 0;
        const int size = end - begin, below = n - end;
        const int64_t row = (int64_t)begin * n, next = (int64_t)end * n;
        const struct lapack_matrix left = {matrix_element(dtype, l, row), n, false};
        const struct lapack_matrix under_left = {matrix_element(dtype, l, next), n, false};
        const struct lapack_matrix under = {matrix_element(dtype, l, next + begin), n, false};
        const void *diagonal = matrix_element(dtype, l, row + begin);
        void *g_left = matrix_element(dtype, g, row);
        void *g_diagonal = matrix_element(dtype, g, row + begin);
        void *g_under_left = matrix_element(dtype, g, next);
        void *g_under = matrix_element(dtype, g, next + begin);
        if (below > 0) {
            const struct lapack_triangle t = {diagonal, size, n, false, false, false};
            const struct lapack_matrix plain = {g_under, n, false}, turned = {g_under, n, true};
            lapack_solve_triangular(dtype, &t, true, below, g_under, n);
            lapack_product(dtype, LAPACK_SUBTRACT, (struct lapack_extents){below, begin, size},
                           plain, left, g_under_left, n);
            lapack_product(dtype, LAPACK_SUBTRACT, (struct lapack_extents){size, size, below},
                           turned, under, g_diagonal, n);
            lapack_product(dtype, LAPACK_SUBTRACT, (struct lapack_extents){size, begin, below},
                           turned, under_left, g_left, n);
        }
        block_adjoint(dtype, size, diagonal, g_diagonal, n, space);
        if (begin > 0) {
            both_triangles(dtype, size, g_diagonal, n, space);
            const struct lapack_matrix both = {space, size, false};
            lapack_product(dtype, LAPACK_SUBTRACT, (struct lapack_extents){size, begin, size}, both,
                           left, g_left, n);
        }
    }
}

/* The lower triangle, and zeros in the rest of the blocks on the diagonal; what lies above those is
 * never read. */
static void lower_triangle(int dtype, const struct gemm_matrix *from, void *to)
{
    const int64_t n = from->rows, size = (int64_t)kernel_dtype_bytes(dtype);
    const struct matrix_weights lower = {1, 1, 0};
    if (from->column_stride != 1) {
        matrix_weigh(dtype, from, &lower, to, false);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t above = n - i - 1 < BLOCK ? n - i - 1 : BLOCK;
        char *row = matrix_element(dtype, to, i * n);
        memcpy(row, matrix_element(dtype, from->data, i * from->row_stride),
               (size_t)((i + 1) * size));
        memset(row + (i + 1) * size, 0, (size_t)(above * size));
    }
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref l = call->in[0], g = call->in[1];
    struct kernel_array *y = call->out[0];
    const int dtype = l->dtype;
    const int64_t n = l->shape[l->rank - 1];
    void *copy = call->workspace;
    void *space = (char *)call->workspace + matrix_bytes(dtype, n * n);
    struct matrix_walk walk;
    if (y->size == 0)
        return 0;
    matrix_walk_begin(&walk, y, 2);
    const int at_l = matrix_walk_add(&walk, l, 2), at_g = matrix_walk_add(&walk, g, 2);
    const int at_y = matrix_walk_add(&walk, y, 2);
    do {
        const struct gemm_matrix factor = matrix_at(l, walk.data[at_l]);
        const struct gemm_matrix given = matrix_at(g, walk.data[at_g]);
        const struct gemm_matrix result = matrix_at(y, walk.data[at_y]);
        const void *root = factor.data;
        if (factor.column_stride != 1 || factor.row_stride != n) {
            matrix_pack(dtype, &factor, copy);
            root = copy;
        }
        lower_triangle(dtype, &given, result.data);
        adjoint(dtype, (int)n, root, result.data, space);
        /* From the elements of the lower triangle to both, half each. */
        matrix_halve_below(dtype, n, result.data);
    } while (matrix_walk_next(&walk));
    return 0;
}

/* With h the symmetric part of y', m = l^-1 h l^-T and p = phi(m):
 * g' += l p, l' += lower triangle of g p^T - 2 y l m. */
static void pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] == NULL)
        return;
    const kernel_ref l = matrix_emit_weighed(rule, rule->in[0], 1, 1, 0);
    const kernel_ref h = kernel_emit1(rule, &kernel_op_symmetric_part, rule->adjoint[0]);
    const kernel_ref half = matrix_emit_solve_triangular(rule, l, h, false, false, false);
    const kernel_ref m = matrix_emit_solve_triangular(
        rule, l, kernel_emit1(rule, &kernel_op_transpose, half), false, false, false);
    const kernel_ref p = matrix_emit_weighed(rule, m, 1, 0.5, 0), to_g[] = {l, p};
    kernel_accumulate(rule, 1, &kernel_op_matmul, 2, to_g, 0, NULL);
    if (!kernel_needs(rule, 0))
        return;
    const kernel_ref through_g =
        matrix_emit_nt(rule, matrix_emit_weighed(rule, rule->in[1], 1, 1, 0), p);
    const kernel_ref through_y = matrix_emit_nn(rule, rule->out[0], matrix_emit_nn(rule, l, m));
    kernel_accumulate_value(rule, 0, matrix_emit_weighed(rule, through_g, 1, 1, 0));
    kernel_accumulate_value(rule, 0, matrix_emit_weighed(rule, through_y, -2, -2, 0));
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const uint64_t n = (uint64_t)call->in[0]->shape[call->in[0]->rank - 1];
    return (struct kernel_cost){.flops = (uint64_t)matrix_count(call->in[0]) * (2 * n * n * n / 3),
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(cholesky_adjoint) = {
    .name = "cholesky_adjoint",
    KERNEL_IN("l", "g"),
    .n_out = 1,
    .hidden = true,
    .saves_in = 3,
    .saves_out = 1,
    .reads_for = {3, 1},
    .depends = kernel_depends_matrices,
    .shape = matrix_shape_pair,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "Adjoint of the Cholesky decomposition: of the lower triangle l and its adjoint g.",
    .shapes = "l [...,n,n], g [...,n,n] -> [...,n,n], symmetric",
    .formula = "y = (k + k^T) / 2, k = l^-T phi(l^T g) l^-1, phi: the lower triangle with half the "
               "diagonal",
    .derivative = "g' += l p, l' += lower triangle of g p^T - 2 y l m; h = (y' + y'^T) / 2, "
                  "m = l^-1 h l^-T, p = phi(m)",
    .edges = "what lies above the diagonals of l and g is not read",
    .source = "Murray (2016), Differentiation of the Cholesky decomposition, arXiv:1602.07527",
};
