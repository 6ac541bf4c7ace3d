/* ops/matmul.c: product of two matrices.
 *
 * May include: gemm.h, op_rules.h, kernel_ops.h. Transposed views are read in place.
 */
#include "gemm.h"
#include "kernel_ops.h"
#include "op_rules.h"

static const char *const names[] = {"a", "b"};

static const struct kernel_sample samples[] = {
    {.n_in = 2,
     .dtype = {KERNEL_F64, KERNEL_F64},
     .rank = {2, 2},
     .shape = {{3, 4}, {4, 5}},
     .low = {-1, -1},
     .high = {1, 1}},
    {.n_in = 2,
     .dtype = {KERNEL_F64, KERNEL_F64},
     .rank = {2, 2},
     .shape = {{1, 1}, {1, 1}},
     .low = {-1, -1},
     .high = {1, 1}},
    {.n_in = 2,
     .dtype = {KERNEL_F64, KERNEL_F64},
     .rank = {2, 2},
     .shape = {{1, 7}, {7, 1}},
     .low = {-1, -1},
     .high = {1, 1}},
    {.n_in = 2,
     .dtype = {KERNEL_F64, KERNEL_F64},
     .rank = {2, 2},
     .shape = {{5, 1}, {1, 3}},
     .low = {-1, -1},
     .high = {1, 1}},
    {.n_in = 2,
     .dtype = {KERNEL_F64, KERNEL_F64},
     .rank = {2, 2},
     .shape = {{9, 17}, {17, 8}},
     .low = {-1, -1},
     .high = {1, 1}},
    {.n_in = 2,
     .dtype = {KERNEL_F64, KERNEL_F64},
     .rank = {2, 2},
     .shape = {{3, 0}, {0, 2}},
     .low = {-1, -1},
     .high = {1, 1}},
    {.n_in = 2,
     .dtype = {KERNEL_F64, KERNEL_F64},
     .rank = {2, 2},
     .shape = {{0, 3}, {3, 2}},
     .low = {-1, -1},
     .high = {1, 1}},
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref a = call->in[0], b = call->in[1];
    if (kernel_require_float(call, 0) != 0 || kernel_require_float(call, 1) != 0)
        return -1;
    if (a->rank != 2 || b->rank != 2)
        return kernel_refuse_operands(call, " x ", "both operands have two axes");
    if (a->shape[1] != b->shape[0])
        return kernel_refuse_operands(call, " x ", "inner extents %lld and %lld differ",
                                      (long long)a->shape[1], (long long)b->shape[0]);
    if (!gemm_fits(a->shape[0], a->shape[1], b->shape[1]))
        return kernel_refuse_operands(call, " x ", "an extent is beyond the range of BLAS");
    kernel_shape_begin(out, a->dtype, 2);
    out->extent[0] = a->shape[0];
    out->extent[1] = b->shape[1];
    return 0;
}

static size_t workspace(const struct kernel_call *call)
{
    const struct gemm_matrix a = gemm_matrix_of(call->in[0]), b = gemm_matrix_of(call->in[1]);
    const struct gemm_matrix c = gemm_matrix_of(call->out[0]);
    return gemm_workspace(call->in[0]->dtype, &a, &b, &c);
}

static int forward(const struct kernel_call *call)
{
    const struct gemm_matrix a = gemm_matrix_of(call->in[0]), b = gemm_matrix_of(call->in[1]);
    const struct gemm_matrix c = gemm_matrix_of(call->out[0]);
    gemm_run(call->in[0]->dtype, &a, &b, &c, call->accumulate, call->workspace);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref g = rule->adjoint[0];
    if (g == NULL)
        return;
    if (kernel_needs(rule, 0)) {
        const kernel_ref in[] = {g, kernel_emit1(rule, &kernel_op_transpose, rule->in[1])};
        kernel_accumulate(rule, 0, &kernel_op_matmul, 2, in, 0, NULL);
    }
    if (kernel_needs(rule, 1)) {
        const kernel_ref in[] = {kernel_emit1(rule, &kernel_op_transpose, rule->in[0]), g};
        kernel_accumulate(rule, 1, &kernel_op_matmul, 2, in, 0, NULL);
    }
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const uint64_t m = (uint64_t)call->in[0]->shape[0], k = (uint64_t)call->in[0]->shape[1];
    const uint64_t n = (uint64_t)call->in[1]->shape[1];
    return (struct kernel_cost){.flops = 2 * m * k * n, .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(matmul) = {
    .name = "matmul",
    .in_names = names,
    .n_in = 2,
    .n_out = 1,
    .accumulates = true,
    .saves_in = 3,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "Matrix product.",
    .shapes = "a [m,k], b [k,n] -> [m,n]",
    .formula = "c_ij = sum_k a_ik b_kj",
    .derivative = "a' += c' b^T, b' += a^T c'",
    .edges = "0 where k = 0",
};
