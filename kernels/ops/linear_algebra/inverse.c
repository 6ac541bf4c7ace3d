/* ops/linear_algebra/inverse.c: inverses of square matrices. */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "lapack.h"
#include "lu.h"
#include "matrix.h"
#include "matrix_rules.h"
#include "matrix_samples.h"
#include "op_rules.h"

#include <math.h>

static const struct kernel_sample samples[] = {
    MATRIX_SAMPLE(2, (3, 3), 2),    MATRIX_SAMPLE(2, (5, 5), -2), MATRIX_SAMPLE(2, (1, 1), 2),
    MATRIX_SAMPLE(3, (2, 3, 3), 2), MATRIX_SAMPLE(2, (0, 0), 0),  MATRIX_SAMPLE(3, (0, 2, 2), 0)};
KERNEL_SAMPLES(samples)

static size_t workspace(const struct kernel_call *call)
{
    const kernel_ref a = call->in[0];
    const int64_t n = a->shape[a->rank - 1];
    return lu_workspace(n) + matrix_bytes(a->dtype, (int64_t)lapack_inverse_work((int)n));
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref a = call->in[0];
    struct kernel_array *y = call->out[0];
    const int dtype = a->dtype;
    const int64_t n = a->shape[a->rank - 1];
    int *const pivot = call->workspace;
    void *const work = (char *)call->workspace + lu_workspace(n);
    struct matrix_walk walk;
    if (y->size == 0)
        return 0;
    matrix_walk_begin(&walk, y, 2);
    const int from = matrix_walk_add(&walk, a, 2), to = matrix_walk_add(&walk, y, 2);
    do {
        const struct gemm_matrix matrix = matrix_at(a, walk.data[from]);
        void *const result = walk.data[to];
        matrix_pack(dtype, &matrix, result);
        if (!matrix_finite(dtype, n * n, result)) {
            matrix_fill(dtype, n * n, result, (double)NAN);
            continue;
        }
        const int info = lapack_lu(dtype, (int)n, result, pivot);
        if (info > 0)
            return kernel_refuse_operands(call, "",
                                          "%ssingular: pivot %d of its LU decomposition "
                                          "is 0",
                                          matrix_place_of(&walk).text, info);
        (void)lapack_inverse(dtype, (int)n, result, pivot, work);
    } while (matrix_walk_next(&walk));
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref y = rule->out[0], g = rule->adjoint[0];
    if (g == NULL || !kernel_needs(rule, 0))
        return;
    const kernel_ref product = matrix_emit_nt(rule, matrix_emit_tn(rule, y, g), y);
    kernel_accumulate(rule, 0, &kernel_op_neg, 1, &product, 0, NULL);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const uint64_t n = (uint64_t)call->in[0]->shape[call->in[0]->rank - 1];
    return (struct kernel_cost){.flops = 2 * n * (uint64_t)call->in[0]->size,
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(inverse) = {
    .name = "inverse",
    KERNEL_IN("a"),
    .n_out = 1,
    .saves_out = 1,
    .depends = kernel_depends_matrices,
    .shape = matrix_shape_square,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "Inverse of square matrices; to multiply by one, solve is faster and more accurate.",
    .shapes = "a [...,n,n] -> [...,n,n]",
    .formula = "y = a^-1",
    .derivative = "a' -= y^T y' y^T",
    .edges = "a singular matrix, one of whose pivots is exactly 0, is refused; one with NaN or "
             "infinity gives NaN",
    .source = "Giles (2008), Collected matrix derivative results for forward and reverse mode "
              "algorithmic differentiation, doi:10.1007/978-3-540-68942-3_4",
};
