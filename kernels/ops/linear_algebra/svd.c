/* ops/linear_algebra/svd.c: singular values and vectors of matrices, reduced.
 *
 * The sign of each pair of vectors is fixed, so that the result does not depend on how LAPACK came
 * to it.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "lapack.h"
#include "matrix.h"
#include "matrix_rules.h"
#include "matrix_samples.h"
#include "op_rules.h"

#include <math.h>
#include <string.h>

static const char *const results[] = {"s", "vh"};

static const struct kernel_sample samples[] = {
    MATRIX_SAMPLE(2, (3, 3), 3), MATRIX_SAMPLE(2, (4, 2), 3),    MATRIX_SAMPLE(2, (2, 4), 3),
    MATRIX_SAMPLE(2, (1, 1), 2), MATRIX_SAMPLE(3, (2, 3, 2), 3), MATRIX_SAMPLE(2, (0, 3), 0),
    MATRIX_SAMPLE(2, (3, 0), 0), MATRIX_SAMPLE(3, (0, 2, 2), 0)};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref a = call->in[0];
    if (matrix_require(call, 0, false) != 0)
        return -1;
    const int last = a->rank - 1;
    const int64_t m = a->shape[last - 1], n = a->shape[last], k = m < n ? m : n;
    for (int o = 0; o < 3; o++) {
        kernel_shape_begin(&out[o], a->dtype, o == 1 ? a->rank - 1 : a->rank);
        memcpy(out[o].extent, a->shape, sizeof *a->shape * a->rank);
    }
    out[0].extent[last] = k;
    out[1].extent[last - 1] = k;
    out[2].extent[last - 1] = k;
    return 0;
}

struct svd_parts {
    int m, n, k;
    size_t copy, work, all; /* bytes of the workspace */
};

static struct svd_parts parts_of(kernel_ref a)
{
    struct svd_parts p = {(int)a->shape[a->rank - 2], (int)a->shape[a->rank - 1], 0, 0, 0, 0};
    p.k = p.m < p.n ? p.m : p.n;
    p.copy = matrix_bytes(a->dtype, (int64_t)p.m * p.n);
    p.work = matrix_bytes(a->dtype, (int64_t)lapack_svd_work(p.m, p.n));
    p.all = p.copy + p.work + 8 * (size_t)p.k * sizeof(int);
    return p;
}

static size_t workspace(const struct kernel_call *call)
{
    return parts_of(call->in[0]).all;
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref a = call->in[0];
    const int dtype = a->dtype;
    const struct svd_parts p = parts_of(a);
    char *const copy = call->workspace, *const work = copy + p.copy;
    int *const integers = (void *)(work + p.work);
    const int64_t k = p.k;
    struct matrix_walk walk;
    if (a->size == 0)
        return 0;
    matrix_walk_begin(&walk, a, 2);
    const int from = matrix_walk_add(&walk, a, 2), at_u = matrix_walk_add(&walk, call->out[0], 2);
    const int at_s = matrix_walk_add(&walk, call->out[1], 1);
    const int at_vh = matrix_walk_add(&walk, call->out[2], 2);
    do {
        const struct gemm_matrix matrix = matrix_at(a, walk.data[from]);
        void *const u = walk.data[at_u], *const s = walk.data[at_s], *const vh = walk.data[at_vh];
        matrix_pack(dtype, &matrix, copy);
        if (!matrix_finite(dtype, (int64_t)p.m * p.n, copy)) {
            matrix_fill(dtype, p.m * k, u, (double)NAN);
            matrix_fill(dtype, k, s, (double)NAN);
            matrix_fill(dtype, k * p.n, vh, (double)NAN);
            continue;
        }
        if (lapack_svd(dtype, p.m, p.n, copy, u, s, vh, work, integers) != 0)
            return kernel_refuse_operands(call, "", "%sLAPACK's iteration did not converge",
                                          matrix_place_of(&walk).text);
        for (int64_t i = 0; i < k; i++) {
            void *const row = matrix_element(dtype, vh, i * p.n);
            const double sign = matrix_sign_of(dtype, p.n, row);
            matrix_scale(dtype, p.n, row, 1, sign);
            matrix_scale(dtype, p.m, matrix_element(dtype, u, i), k, sign);
        }
    } while (matrix_walk_next(&walk));
    return 0;
}

/* With mu = u^T u' and mv = vh vh'^T: inner = diag(s') + antisymmetric part of (mu + mv) over
 * differences + that of (mu - mv) over sums of s; what u' and vh' have outside the span of u and vh
 * is divided by s. */
static void pullback(struct kernel_rule *rule)
{
    const kernel_ref u = rule->out[0], s = rule->out[1], vh = rule->out[2];
    const kernel_ref gu = rule->adjoint[0], gs = rule->adjoint[1], gvh = rule->adjoint[2];
    const kernel_ref a = rule->in[0];
    const int64_t m = a->shape[a->rank - 2], n = a->shape[a->rank - 1];
    if (!kernel_needs(rule, 0) || (gu == NULL && gs == NULL && gvh == NULL))
        return;
    kernel_ref mu = NULL, mv = NULL, inner = NULL;
    if (gs != NULL)
        inner = kernel_emit1(rule, &kernel_op_diagonal_matrix, gs);
    if (gu != NULL)
        mu = matrix_emit_tn(rule, u, gu);
    if (gvh != NULL)
        mv = matrix_emit_nt(rule, vh, gvh);
    if (mu != NULL || mv != NULL) {
        const kernel_ref minus_mv = mv == NULL ? NULL : kernel_emit1(rule, &kernel_op_neg, mv);
        const kernel_ref by_gaps[] = {kernel_emit_sum(rule, mu, mv), s};
        const kernel_ref by_sums[] = {kernel_emit_sum(rule, mu, minus_mv), s};
        const int64_t gaps[] = {0, 0}, sums[] = {1, 0};
        inner = kernel_emit_sum(rule, inner,
                                kernel_emit(rule, &kernel_op_gap_quotient, 2, by_gaps, 2, gaps));
        inner = kernel_emit_sum(rule, inner,
                                kernel_emit(rule, &kernel_op_gap_quotient, 2, by_sums, 2, sums));
    }
    kernel_ref left = matrix_emit_nn(rule, u, inner);
    if (gu != NULL && m > n) {
        const kernel_ref outside =
            kernel_emit2(rule, &kernel_op_sub, gu, matrix_emit_nn(rule, u, mu));
        left = kernel_emit2(rule, &kernel_op_add, left,
                            kernel_emit2(rule, &kernel_op_div, outside, matrix_emit_row(rule, s)));
    }
    kernel_accumulate_value(rule, 0, matrix_emit_nn(rule, left, vh));
    if (gvh != NULL && n > m) {
        const kernel_ref outside =
            kernel_emit2(rule, &kernel_op_sub, gvh, matrix_emit_tn(rule, mv, vh));
        const kernel_ref right =
            kernel_emit2(rule, &kernel_op_div, outside, matrix_emit_columns(rule, s, true));
        kernel_accumulate_value(rule, 0, matrix_emit_nn(rule, u, right));
    }
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const struct svd_parts p = parts_of(call->in[0]);
    return (struct kernel_cost){.flops = 22 * (uint64_t)p.k * (uint64_t)call->in[0]->size,
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(svd) = {
    .name = "svd",
    KERNEL_IN("a"),
    .n_out = 3,
    .n_results = 3,
    .result_names = results,
    .saves_out = 7,
    .depends = kernel_depends_matrices,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "Singular values, descending, and singular vectors of matrices, reduced.",
    .shapes = "a [...,m,n], k = min(m,n) -> u [...,m,k], s [...,k], vh [...,k,n]",
    .formula = "a = u diag(s) vh, the element of each row of vh of greatest magnitude positive",
    .derivative =
        "a' += u (diag(s') + d) vh, d_ij = ((p_ij - p_ji) / (s_j - s_i) + (r_ij - r_ji) / "
        "(s_j + s_i)) / 2 off the diagonal, p = u^T u' + vh vh'^T, r = u^T u' - vh vh'^T; "
        "also (u' - u u^T u') diag(1/s) vh if m > n, u diag(1/s) (vh' - vh' vh^T vh) if "
        "n > m",
    .edges = "where two singular values are equal up to rounding, |s_i - s_j| <= k epsilon max s, "
             "the gradient through s is right and that through their vectors NaN (as is a second "
             "derivative), unless u' and vh' are 0 for both; it is not finite where s is 0 and m "
             "and n differ, if it comes through the vectors; NaN where the matrix has NaN or "
             "infinity",
    .source = "Townsend (2016), Differentiating the singular value decomposition; Giles (2008), "
              "Collected matrix derivative results for forward and reverse mode algorithmic "
              "differentiation, doi:10.1007/978-3-540-68942-3_4",
};
