/* ops/complex/complex_matmul.c: products of matrices of complex numbers, and of batches of them.
 *
 * Pairs are what BLAS takes for complex numbers, so that operands are read in place, transposed
 * views as well.
 */
#include "complex_pairs.h"
#include "dense.h"
#include "gemm.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"

#include <string.h>

/* clang-format off */
#define MATMUL_SAMPLE(ra, ea, rb, eb)                                                              \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_F64}, .rank = {ra, rb},                               \
     .shape = {{KERNEL_EXTENTS ea}, {KERNEL_EXTENTS eb}}, .low = {-1, -1}, .high = {1, 1}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    MATMUL_SAMPLE(3, (3, 4, 2), 3, (4, 5, 2)),
    MATMUL_SAMPLE(3, (1, 1, 2), 3, (1, 1, 2)),
    MATMUL_SAMPLE(3, (1, 3, 2), 3, (3, 1, 2)),
    MATMUL_SAMPLE(4, (2, 2, 3, 2), 3, (3, 2, 2)),
    MATMUL_SAMPLE(3, (2, 3, 2), 4, (2, 3, 1, 2)),
    MATMUL_SAMPLE(5, (2, 1, 2, 1, 2), 5, (1, 2, 1, 2, 2)),
    MATMUL_SAMPLE(3, (2, 0, 2), 3, (0, 3, 2)),
    MATMUL_SAMPLE(3, (0, 2, 2), 3, (2, 3, 2)),
    MATMUL_SAMPLE(4, (0, 2, 2, 2), 3, (2, 3, 2)),
};
KERNEL_SAMPLES(samples)

enum { LEAST_RANK = 3 };

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref a = call->in[0], b = call->in[1];
    if (complex_require(call, 0) != 0 || complex_require(call, 1) != 0)
        return -1;
    if (a->rank < LEAST_RANK || b->rank < LEAST_RANK)
        return kernel_refuse_operands(call, " x ", "a [...,m,k,2] and b [...,k,n,2] are wanted");
    const int64_t m = a->shape[a->rank - 3], k = a->shape[a->rank - 2];
    const int64_t n = b->shape[b->rank - 2];
    if (k != b->shape[b->rank - 3])
        return kernel_refuse_operands(call, " x ", "inner extents %lld and %lld differ",
                                      (long long)k, (long long)b->shape[b->rank - 3]);
    if (!gemm_fits(m, k, n))
        return kernel_refuse_operands(call, " x ", "an extent is beyond the range of BLAS");
    const struct kernel_array leading[] = {
        {.shape = a->shape, .rank = (uint8_t)(a->rank - LEAST_RANK)},
        {.shape = b->shape, .rank = (uint8_t)(b->rank - LEAST_RANK)}};
    const kernel_ref refs[] = {&leading[0], &leading[1]};
    int64_t differ[2];
    if (!kernel_broadcast(2, refs, out, differ))
        return kernel_refuse_operands(call, " x ", "extents %lld and %lld do not broadcast",
                                      (long long)differ[0], (long long)differ[1]);
    const int rank = out->rank;
    if (out->same_as >= 0)
        memcpy(out->extent, leading[out->same_as].shape, sizeof *out->extent * (size_t)rank);
    memcpy(out->extent + rank, (int64_t[]){m, n, 2}, LEAST_RANK * sizeof *out->extent);
    kernel_shape_begin(out, a->dtype, rank + LEAST_RANK);
    return 0;
}

/* The last matrix axes of an array of pairs whose strides are `strides`. */
static struct gemm_matrix matrix_of(kernel_ref x, void *data, const int64_t *strides)
{
    const int row = x->rank - LEAST_RANK;
    return (struct gemm_matrix){data, x->shape[row], x->shape[row + 1], strides[row] / 2,
                                strides[row + 1] / 2};
}

/* True if BLAS can read every matrix of the array where it lies. */
static bool in_place(kernel_ref x)
{
    const int row = x->rank - LEAST_RANK;
    const struct gemm_matrix m = matrix_of(x, x->data, x->strides);
    return x->strides[x->rank - 1] == 1 && x->strides[row] % 2 == 0 &&
           x->strides[row + 1] % 2 == 0 && gemm_complex_fits(&m);
}

static size_t workspace(const struct kernel_call *call)
{
    size_t bytes = 0;
    for (int i = 0; i < 2; i++)
        bytes += in_place(call->in[i]) ? 0 : dense_copy_bytes(call->in[i]);
    return bytes;
}

/* An operand, and how far its matrices lie apart along the leading axes of the output. */
struct complex_batch {
    struct gemm_matrix matrix;
    int64_t stride[KERNEL_MAX_RANK]; /* elements */
};

static struct complex_batch batch_of(kernel_ref x, int leading, char **space)
{
    struct complex_batch batch = {.stride = {0}};
    int64_t dense[KERNEL_MAX_RANK];
    const int64_t *strides = x->strides;
    void *data = x->data;
    if (!in_place(x)) {
        (void)kernel_strides(x->rank, x->shape, 1, dense);
        data = (void *)(uintptr_t)dense_data(x, space);
        strides = dense;
    }
    batch.matrix = matrix_of(x, data, strides);
    const int own = x->rank - LEAST_RANK;
    for (int axis = 0; axis < own; axis++)
        batch.stride[leading - own + axis] = x->shape[axis] == 1 ? 0 : strides[axis];
    return batch;
}

static int forward(const struct kernel_call *call)
{
    struct kernel_array *out = call->out[0];
    const int leading = out->rank - LEAST_RANK;
    const int64_t elem = (int64_t)kernel_dtype_bytes(out->dtype);
    int64_t index[KERNEL_MAX_RANK] = {0};
    char *space = call->workspace;
    if (out->size == 0)
        return 0;
    struct complex_batch a = batch_of(call->in[0], leading, &space);
    struct complex_batch b = batch_of(call->in[1], leading, &space);
    struct gemm_matrix c = matrix_of(out, out->data, out->strides);
    for (;;) {
        gemm_complex_run(out->dtype, &a.matrix, &b.matrix, &c);
        c.data = (char *)c.data + 2 * c.rows * c.columns * elem;
        int axis = leading - 1;
        for (; axis >= 0; axis--) {
            const bool wraps = ++index[axis] == out->shape[axis];
            const int64_t steps = wraps ? 1 - out->shape[axis] : 1;
            a.matrix.data = (char *)a.matrix.data + steps * a.stride[axis] * elem;
            b.matrix.data = (char *)b.matrix.data + steps * b.stride[axis] * elem;
            if (!wraps)
                break;
            index[axis] = 0;
        }
        if (axis < 0)
            return 0;
    }
}

/* The conjugate with rows and columns exchanged. */
static kernel_ref adjoint_of(struct kernel_rule *rule, kernel_ref x)
{
    const kernel_ref conj = kernel_emit1(rule, &kernel_op_complex_conj, x);
    int64_t axes[KERNEL_MAX_RANK];
    for (int axis = 0; axis < x->rank; axis++)
        axes[axis] = axis;
    axes[x->rank - 3] = x->rank - 2;
    axes[x->rank - 2] = x->rank - 3;
    return kernel_emit_shape(rule, &kernel_op_permute, conj, x->rank, axes);
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref g = rule->adjoint[0];
    if (g == NULL)
        return;
    if (kernel_needs(rule, 0)) {
        const kernel_ref in[] = {g, adjoint_of(rule, rule->in[1])};
        kernel_accumulate(rule, 0, &kernel_op_complex_matmul, 2, in, 0, NULL);
    }
    if (kernel_needs(rule, 1)) {
        const kernel_ref in[] = {adjoint_of(rule, rule->in[0]), g};
        kernel_accumulate(rule, 1, &kernel_op_complex_matmul, 2, in, 0, NULL);
    }
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const uint64_t k = (uint64_t)call->in[0]->shape[call->in[0]->rank - 2];
    return (struct kernel_cost){.flops = 4 * k * (uint64_t)call->out[0]->size,
                                .bytes = kernel_moved_bytes(call)};
}

static void depends(const struct kernel_call *call, int o, int i, struct kernel_depends *d)
{
    kernel_depends_product(call, o, i, 1, d);
}

KERNEL_OP(complex_matmul) = {
    .name = "complex_matmul",
    KERNEL_IN("a", "b"),
    .n_out = 1,
    .saves_in = 3,
    .reads_for = {2, 1},
    .depends = depends,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "Product of matrices of complex numbers, pairs along the last axis.",
    .shapes = "a [...,m,k,2], b [...,k,n,2] -> [...,m,n,2], leading axes broadcast",
    .formula = "c_ij = sum_k a_ik b_kj",
    .derivative = "a' += c' b^H, b' += a^H c'",
    .edges = "0 where k = 0",
};
