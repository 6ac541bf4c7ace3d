/* orthogonal.c: the QR decomposition that several ops keep for their pullbacks, and its adjoint.
 *
 * The adjoint is that of Walter & Lehmann (2010), arXiv:1001.1654, and for wide matrices that of
 * Roberts & Roberts (2020), arXiv:2009.10071.
 */
#include "orthogonal.h"
#include "kernel_ops.h"
#include "lapack.h"
#include "matrix_rules.h"
#include "op_rules.h"

#include <math.h>
#include <string.h>

struct orthogonal_parts {
    int m, n, k;
    size_t copy, tau, all; /* bytes of the workspace */
};

static struct orthogonal_parts parts_of(kernel_ref a)
{
    struct orthogonal_parts p = {
        (int)a->shape[a->rank - 2], (int)a->shape[a->rank - 1], 0, 0, 0, 0};
    p.k = p.m < p.n ? p.m : p.n;
    p.copy = matrix_bytes(a->dtype, (int64_t)p.m * p.n);
    p.tau = matrix_bytes(a->dtype, p.k);
    p.all = p.copy + p.tau + matrix_bytes(a->dtype, (int64_t)lapack_qr_work(p.m, p.n));
    return p;
}

size_t orthogonal_workspace(kernel_ref a)
{
    return parts_of(a).all;
}

uint64_t orthogonal_flops(kernel_ref a)
{
    const struct orthogonal_parts p = parts_of(a);
    return 4 * (uint64_t)p.k * (uint64_t)a->size;
}

void orthogonal_shapes(const struct kernel_call *call, int at, struct kernel_shape *out)
{
    const kernel_ref a = call->in[0];
    const struct orthogonal_parts p = parts_of(a);
    for (int o = at; o < at + 2; o++) {
        kernel_shape_begin(&out[o], a->dtype, a->rank);
        memcpy(out[o].extent, a->shape, sizeof *a->shape * a->rank);
    }
    out[at].extent[a->rank - 1] = p.k;
    out[at + 1].extent[a->rank - 2] = p.k;
}

/* The first `columns` of each row of `from` into `to`. */
static void take_columns(int dtype, int rows, int from_columns, int columns, const void *from,
                         void *to)
{
    const struct gemm_matrix part = {(void *)(uintptr_t)from, rows, columns, from_columns, 1};
    matrix_pack(dtype, &part, to);
}

void orthogonal_factor_all(const struct kernel_call *call, int at)
{
    const kernel_ref a = call->in[0];
    const int dtype = a->dtype;
    const struct orthogonal_parts p = parts_of(a);
    char *const copy = call->workspace, *const tau = copy + p.copy, *const work = tau + p.tau;
    const struct matrix_weights upper = {0, 1, 1};
    struct matrix_walk walk;
    if (a->size == 0)
        return;
    matrix_walk_begin(&walk, a, 2);
    const int from = matrix_walk_add(&walk, a, 2), at_q = matrix_walk_add(&walk, call->out[at], 2);
    const int at_r = matrix_walk_add(&walk, call->out[at + 1], 2);
    do {
        const struct gemm_matrix matrix = matrix_at(a, walk.data[from]);
        const struct gemm_matrix top = {copy, p.k, p.n, p.n, 1};
        void *const q = walk.data[at_q], *const r = walk.data[at_r];
        matrix_pack(dtype, &matrix, copy);
        if (!matrix_finite(dtype, (int64_t)p.m * p.n, copy)) {
            matrix_fill(dtype, (int64_t)p.m * p.k, q, (double)NAN);
            matrix_fill(dtype, (int64_t)p.k * p.n, copy, (double)NAN);
            matrix_weigh(dtype, &top, &upper, r, false);
            continue;
        }
        (void)lapack_qr(dtype, p.m, p.n, copy, tau, work);
        matrix_weigh(dtype, &top, &upper, r, false);
        take_columns(dtype, p.m, p.n, p.k, copy, q);
        (void)lapack_unpack_q(dtype, p.m, p.k, q, tau, work);
        for (int64_t i = 0; i < p.k; i++)
            if (kernel_load(dtype, r, i * p.n + i) < 0) {
                matrix_scale(dtype, p.n - i, matrix_element(dtype, r, i * p.n + i), 1, -1);
                matrix_scale(dtype, p.m, matrix_element(dtype, q, i), p.k, -1);
            }
    } while (matrix_walk_next(&walk));
}

/* Columns `from` to `to` of x. */
static kernel_ref columns_of(struct kernel_rule *rule, kernel_ref x, int64_t from, int64_t to)
{
    if (x == NULL)
        return NULL;
    const int64_t attr[] = {x->rank - 1, from, to, 1};
    return kernel_emit(rule, &kernel_op_slice, 1, &x, 4, attr);
}

void orthogonal_pullback(struct kernel_rule *rule, kernel_ref q, kernel_ref r, kernel_ref gq,
                         kernel_ref gr)
{
    const int64_t m = q->shape[q->rank - 2], n = r->shape[r->rank - 1];
    kernel_ref others = NULL; /* of a wide matrix: the adjoint of the columns behind the first m */
    if (!kernel_needs(rule, 0) || (gq == NULL && gr == NULL))
        return;
    if (m < n && gr != NULL) {
        const kernel_ref z = columns_of(rule, r, m, n), gz = columns_of(rule, gr, m, n);
        others = matrix_emit_nn(rule, q, gz);
        gq = kernel_emit_sum(rule, gq, matrix_emit_nn(rule, q, matrix_emit_nt(rule, z, gz)));
        gr = columns_of(rule, gr, 0, m);
    }
    if (m < n)
        r = columns_of(rule, r, 0, m);
    kernel_ref lower = NULL;
    if (gr != NULL)
        lower = matrix_emit_nt(rule, r, gr);
    if (gq != NULL) {
        const kernel_ref overlap = matrix_emit_tn(rule, gq, q);
        lower = kernel_emit_sum(rule, lower, kernel_emit1(rule, &kernel_op_neg, overlap));
    }
    /* Its lower triangle and the mirror image of that. */
    const kernel_ref mirrored =
        kernel_emit1(rule, &kernel_op_symmetric_part, matrix_emit_weighed(rule, lower, 2, 1, 0));
    const kernel_ref inner = kernel_emit_sum(rule, gq, matrix_emit_nn(rule, q, mirrored));
    const kernel_ref turned = matrix_emit_solve_triangular(
        rule, r, kernel_emit1(rule, &kernel_op_transpose, inner), true, false, false);
    const kernel_ref first = kernel_emit1(rule, &kernel_op_transpose, turned);
    if (m >= n) {
        kernel_accumulate_value(rule, 0, first);
        return;
    }
    const int64_t axis[] = {q->rank - 1};
    if (others == NULL) { /* nothing came to r: nothing goes to the other columns */
        const int64_t all[] = {q->rank - 1, 0, 1, n};
        kernel_accumulate(rule, 0, &kernel_op_slice_add, 1, &first, 4, all);
        return;
    }
    const kernel_ref both[] = {first, others};
    kernel_accumulate_value(rule, 0, kernel_emit(rule, &kernel_op_concat, 2, both, 1, axis));
}
