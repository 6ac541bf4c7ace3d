/* ops/linear_algebra/eigh.c: eigenvalues and eigenvectors of symmetric matrices.
 *
 * The symmetric part of the operand is decomposed, as in cholesky. The sign of each vector is
 * fixed, so the result does not depend on the LAPACK in use.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "lapack.h"
#include "matrix.h"
#include "matrix_rules.h"
#include "matrix_samples.h"
#include "op_rules.h"

#include <math.h>

static const char *const results[] = {"vectors"};

static const struct kernel_sample samples[] = {
    MATRIX_SAMPLE(2, (3, 3), 3),    MATRIX_SAMPLE(2, (4, 4), -3), MATRIX_SAMPLE(2, (1, 1), 2),
    MATRIX_SAMPLE(3, (2, 2, 2), 3), MATRIX_SAMPLE(2, (0, 0), 0),  MATRIX_SAMPLE(3, (0, 2, 2), 0)};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref a = call->in[0];
    if (matrix_require(call, 0, true) != 0)
        return -1;
    kernel_shape_begin(&out[0], a->dtype, a->rank - 1);
    for (int axis = 0; axis < a->rank - 1; axis++)
        out[0].extent[axis] = a->shape[axis];
    kernel_shape_begin(&out[1], a->dtype, a->rank);
    out[1].same_as = 0;
    return 0;
}

static size_t workspace(const struct kernel_call *call)
{
    const kernel_ref a = call->in[0];
    const int n = (int)a->shape[a->rank - 1];
    return matrix_bytes(a->dtype, (int64_t)lapack_eigh_work(n)) +
           lapack_eigh_integers(n) * sizeof(int);
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref a = call->in[0];
    struct kernel_array *w = call->out[0], *v = call->out[1];
    const int dtype = a->dtype;
    const int64_t n = a->shape[a->rank - 1];
    void *const work = call->workspace;
    int *const integers =
        (void *)((char *)call->workspace + matrix_bytes(dtype, (int64_t)lapack_eigh_work((int)n)));
    struct matrix_walk walk;
    if (v->size == 0)
        return 0;
    matrix_walk_begin(&walk, v, 2);
    const int from = matrix_walk_add(&walk, a, 2), at_w = matrix_walk_add(&walk, w, 1);
    const int at_v = matrix_walk_add(&walk, v, 2);
    do {
        const struct gemm_matrix matrix = matrix_at(a, walk.data[from]);
        void *const vectors = walk.data[at_v];
        matrix_symmetrise(dtype, &matrix, vectors, false);
        if (!matrix_finite(dtype, n * n, vectors)) {
            matrix_fill(dtype, n * n, vectors, (double)NAN);
            matrix_fill(dtype, n, walk.data[at_w], (double)NAN);
            continue;
        }
        const int info = lapack_eigh(dtype, (int)n, vectors, walk.data[at_w], work, integers);
        if (info != 0)
            return kernel_refuse_operands(call, "", "%sLAPACK's iteration did not converge",
                                          matrix_place_of(&walk).text);
        for (int64_t k = 0; k < n; k++) {
            void *const row = matrix_element(dtype, vectors, k * n);
            matrix_scale(dtype, n, row, 1, matrix_sign_of(dtype, n, row));
        }
        matrix_turn(dtype, n, vectors);
    } while (matrix_walk_next(&walk));
    return 0;
}

/* With m = v^T v': a' = symmetric part of v (diag w' + q) v^T, q_ij = (m_ij - m_ji) / 2 over
 * (w_j - w_i). */
static void pullback(struct kernel_rule *rule)
{
    const kernel_ref w = rule->out[0], v = rule->out[1], gw = rule->adjoint[0];
    const kernel_ref gv = rule->adjoint[1];
    kernel_ref left = NULL;
    if ((gw == NULL && gv == NULL) || !kernel_needs(rule, 0))
        return;
    if (gw != NULL)
        left = kernel_emit2(rule, &kernel_op_mul, v, matrix_emit_row(rule, gw));
    if (gv != NULL) {
        const kernel_ref in[] = {matrix_emit_tn(rule, v, gv), w};
        const int64_t differences[] = {0, 0};
        const kernel_ref q = kernel_emit(rule, &kernel_op_gap_quotient, 2, in, 2, differences);
        const kernel_ref turned = matrix_emit_nn(rule, v, q);
        left = gw == NULL ? turned : kernel_emit2(rule, &kernel_op_add, left, turned);
    }
    const kernel_ref product = matrix_emit_nt(rule, left, v);
    kernel_accumulate(rule, 0, &kernel_op_symmetric_part, 1, &product, 0, NULL);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const uint64_t n = (uint64_t)call->in[0]->shape[call->in[0]->rank - 1];
    return (struct kernel_cost){.flops = 9 * n * (uint64_t)call->in[0]->size,
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(eigh) = {
    .name = "eigh",
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
    .brief = "Eigenvalues, ascending, and eigenvectors of symmetric matrices.",
    .shapes = "a [...,n,n] -> values w [...,n], vectors v [...,n,n], one a column",
    .formula = "(a + a^T) / 2 = v diag(w) v^T, the element of each vector of greatest magnitude "
               "positive",
    .derivative = "a' += symmetric part of v (diag(w') + q) v^T, q_ij = (m_ij - m_ji) / "
                  "(2 (w_j - w_i)) off the diagonal, m = v^T v'",
    .edges = "of a matrix that is not symmetric it is that of its symmetric part; where two "
             "eigenvalues are equal up to rounding, |w_i - w_j| <= n epsilon max |w|, the gradient "
             "through w is right and that through their vectors NaN (as is a second derivative), "
             "unless v' is 0 for both; NaN where the matrix has NaN or infinity",
    .source = "Giles (2008), Collected matrix derivative results for forward and reverse mode "
              "algorithmic differentiation, doi:10.1007/978-3-540-68942-3_4",
};
