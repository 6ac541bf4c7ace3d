/* ops/product/matmul.c: products of matrices, vectors, and batches of matrices.
 *
 * Transposed views are read in place; so are batches that are repeated by broadcasting. A vector
 * is a row on the left and a column on the right.
 */
#include "gemm.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"

#include <string.h>

/* clang-format off */
#define MATMUL_SAMPLE(rank_a, extents_a, rank_b, extents_b)                                        \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_F64}, .rank = {rank_a, rank_b},                       \
     .shape = {{KERNEL_EXTENTS extents_a}, {KERNEL_EXTENTS extents_b}},                            \
     .low = {-1, -1}, .high = {1, 1}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    MATMUL_SAMPLE(2, (3, 4), 2, (4, 5)),
    MATMUL_SAMPLE(2, (1, 1), 2, (1, 1)),
    MATMUL_SAMPLE(2, (1, 7), 2, (7, 1)),
    MATMUL_SAMPLE(2, (5, 1), 2, (1, 3)),
    MATMUL_SAMPLE(2, (9, 17), 2, (17, 8)),
    MATMUL_SAMPLE(2, (3, 0), 2, (0, 2)),
    MATMUL_SAMPLE(2, (0, 3), 2, (3, 2)),
    MATMUL_SAMPLE(1, (4), 2, (4, 5)),
    MATMUL_SAMPLE(2, (3, 4), 3, (5, 4, 1)),
    MATMUL_SAMPLE(2, (3, 4), 1, (4)),
    MATMUL_SAMPLE(1, (4), 1, (4)),
    MATMUL_SAMPLE(1, (0), 1, (0)),
    MATMUL_SAMPLE(3, (2, 3, 4), 3, (2, 4, 5)),
    MATMUL_SAMPLE(3, (2, 3, 4), 2, (4, 5)),
    MATMUL_SAMPLE(2, (3, 4), 3, (2, 4, 5)),
    MATMUL_SAMPLE(4, (2, 1, 3, 4), 4, (1, 3, 4, 2)),
    MATMUL_SAMPLE(3, (2, 3, 4), 1, (4)),
    MATMUL_SAMPLE(1, (3), 3, (2, 3, 4)),
    MATMUL_SAMPLE(3, (0, 3, 4), 3, (1, 4, 2)),
};
KERNEL_SAMPLES(samples)

/* An operand as a batch of matrices. */
struct matmul_batch {
    struct gemm_matrix matrix;      /* the first one */
    int rank;                       /* leading axes */
    const int64_t *shape, *strides; /* of the leading axes */
};

static struct matmul_batch batch_of(kernel_ref array, bool column, bool row)
{
    struct matmul_batch b = {.shape = array->shape, .strides = array->strides};
    b.matrix = (struct gemm_matrix){array->data, 1, 1, 1, 1};
    int rank = array->rank;
    if (!column) {
        b.matrix.columns = array->shape[--rank];
        b.matrix.column_stride = array->strides[rank];
    }
    if (!row) {
        b.matrix.rows = array->shape[--rank];
        b.matrix.row_stride = array->strides[rank];
    }
    b.rank = rank;
    return b;
}

struct matmul_operands {
    struct matmul_batch a, b, c;
};

/* Operands alone where the output is not yet known. */
static struct matmul_operands operands_of(const struct kernel_call *call, bool output)
{
    const bool row = call->in[0]->rank == 1, column = call->in[1]->rank == 1;
    struct matmul_operands p = {.a = batch_of(call->in[0], false, row),
                                .b = batch_of(call->in[1], column, false)};
    if (output)
        p.c = batch_of(call->out[0], column, row);
    return p;
}

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref a = call->in[0], b = call->in[1];
    if (kernel_require_float(call, 0) != 0 || kernel_require_float(call, 1) != 0)
        return -1;
    if (a->rank < 1 || b->rank < 1)
        return kernel_refuse_operands(call, " x ", "both operands must have an axis at least");
    const struct matmul_operands p = operands_of(call, false);
    if (p.a.matrix.columns != p.b.matrix.rows)
        return kernel_refuse_operands(call, " x ", "inner extents %lld and %lld differ",
                                      (long long)p.a.matrix.columns, (long long)p.b.matrix.rows);
    if (!gemm_fits(p.a.matrix.rows, p.a.matrix.columns, p.b.matrix.columns))
        return kernel_refuse_operands(call, " x ", "an extent is beyond the range of BLAS");
    const struct kernel_array leading[] = {{.shape = p.a.shape, .rank = (uint8_t)p.a.rank},
                                           {.shape = p.b.shape, .rank = (uint8_t)p.b.rank}};
    const kernel_ref refs[] = {&leading[0], &leading[1]};
    int64_t differ[2];
    if (!kernel_broadcast(2, refs, out, differ))
        return kernel_refuse_operands(call, " x ", "extents %lld and %lld do not broadcast",
                                      (long long)differ[0], (long long)differ[1]);
    int rank = out->rank;
    if (out->same_as >= 0)
        memcpy(out->extent, leading[out->same_as].shape, sizeof *out->extent * (size_t)rank);
    if (a->rank > 1)
        out->extent[rank++] = p.a.matrix.rows;
    if (b->rank > 1)
        out->extent[rank++] = p.b.matrix.columns;
    kernel_shape_begin(out, a->dtype, rank);
    return 0;
}

/* One matrix times several columns: those are the rows of a matrix, times that one transposed. */
static bool fold_columns(const struct kernel_call *call, struct matmul_operands *p)
{
    struct kernel_array columns = *call->in[1], results = *call->out[0];
    struct gemm_matrix b, c;
    if (call->in[0]->rank != 2 || columns.rank < 3 || columns.shape[columns.rank - 1] != 1)
        return false;
    columns.rank--;
    results.rank--;
    if (!gemm_matrix_fold(&columns, &b) || !gemm_matrix_fold(&results, &c) ||
        !gemm_fits(b.rows, b.columns, c.columns))
        return false;
    const struct gemm_matrix a = p->a.matrix;
    p->b.matrix = (struct gemm_matrix){a.data, a.columns, a.rows, a.column_stride, a.row_stride};
    p->a.matrix = b;
    p->c.matrix = c;
    p->b.rank = p->c.rank = 0;
    return true;
}

/* Several matrices times one are one product where they lie row behind row. */
static bool fold(const struct kernel_call *call, struct matmul_operands *p)
{
    struct gemm_matrix a, c;
    if (fold_columns(call, p))
        return true;
    if (call->in[0]->rank < 3 || call->in[1]->rank != 2 || !gemm_matrix_fold(call->in[0], &a) ||
        !gemm_matrix_fold(call->out[0], &c) || !gemm_fits(a.rows, a.columns, c.columns))
        return false;
    p->a.matrix = a;
    p->c.matrix = c;
    p->a.rank = p->c.rank = 0;
    return true;
}

static size_t workspace(const struct kernel_call *call)
{
    struct matmul_operands p = operands_of(call, true);
    (void)fold(call, &p);
    return gemm_workspace(call->in[0]->dtype, &p.a.matrix, &p.b.matrix, &p.c.matrix);
}

/* Stride of an operand along leading axis `axis` of the output. */
static int64_t batch_stride(const struct matmul_batch *x, int rank, int axis)
{
    const int own = axis - (rank - x->rank);
    return own < 0 || x->shape[own] == 1 ? 0 : x->strides[own];
}

static void *moved(void *data, int64_t elements, size_t elem)
{
    return (char *)data + elements * (int64_t)elem;
}

static int forward(const struct kernel_call *call)
{
    const int dtype = call->in[0]->dtype;
    const size_t elem = kernel_dtype_bytes(dtype);
    struct matmul_operands p = operands_of(call, true);
    (void)fold(call, &p);
    const int rank = p.c.rank;
    int64_t index[KERNEL_MAX_RANK] = {0};
    if (call->out[0]->size == 0)
        return 0;
    for (;;) {
        gemm_run(dtype, &p.a.matrix, &p.b.matrix, &p.c.matrix, call->accumulate, call->workspace);
        int axis = rank - 1;
        for (; axis >= 0; axis--) {
            const bool wraps = ++index[axis] == p.c.shape[axis];
            const int64_t steps = wraps ? 1 - p.c.shape[axis] : 1;
            struct matmul_batch *const parts[] = {&p.a, &p.b, &p.c};
            for (int k = 0; k < 3; k++)
                parts[k]->matrix.data =
                    moved(parts[k]->matrix.data, steps * batch_stride(parts[k], rank, axis), elem);
            if (!wraps)
                break;
            index[axis] = 0;
        }
        if (axis < 0)
            return 0;
    }
}

/* x with an axis of extent 1 in the place of the axis that a vector lacks. */
static kernel_ref with_axis(struct kernel_rule *rule, kernel_ref x, int at)
{
    int64_t shape[KERNEL_MAX_RANK + 1];
    if (x == NULL)
        return NULL;
    for (int axis = 0, from = 0; axis <= x->rank; axis++)
        shape[axis] = axis == at ? 1 : x->shape[from++];
    return kernel_emit_shape(rule, &kernel_op_reshape, x, x->rank + 1, shape);
}

/* All leading axes of x folded into the rows. */
static kernel_ref flat(struct kernel_rule *rule, kernel_ref x)
{
    int64_t shape[2] = {1, x->shape[x->rank - 1]};
    for (int axis = 0; axis < x->rank - 1; axis++)
        shape[0] *= x->shape[axis];
    return x->rank == 2 ? x : kernel_emit_shape(rule, &kernel_op_reshape, x, 2, shape);
}

/* Adds a product of matrices to the adjoint of an input that may be a vector, or broadcast. */
static void add_product(struct kernel_rule *rule, int i, kernel_ref x, kernel_ref y)
{
    const kernel_ref in = rule->in[i], pair[] = {x, y};
    if (in->rank == 2 && x != NULL && y != NULL && x->rank == 2 && y->rank == 2) {
        kernel_accumulate(rule, i, &kernel_op_matmul, 2, pair, 0, NULL);
        return;
    }
    kernel_ref product = kernel_emit2(rule, &kernel_op_matmul, x, y);
    if (product != NULL && in->rank == 1) {
        /* What the vector was broadcast along is summed, and its own axis of extent 1 dropped. */
        const int64_t matrix[2] = {i == 0 ? 1 : in->shape[0], i == 0 ? in->shape[0] : 1};
        product = kernel_emit_shape(rule, &kernel_op_sum_to, product, 2, matrix);
        product = product == NULL
                      ? NULL
                      : kernel_emit_shape(rule, &kernel_op_reshape, product, 1, in->shape);
    }
    kernel_accumulate_value(rule, i, product);
}

static void pullback(struct kernel_rule *rule)
{
    kernel_ref a = rule->in[0], b = rule->in[1], g = rule->adjoint[0];
    if (g == NULL)
        return;
    const bool row = a->rank == 1, column = b->rank == 1;
    if (column) {
        b = with_axis(rule, b, 1);
        g = with_axis(rule, g, g->rank);
    }
    if (row) {
        a = with_axis(rule, a, 0);
        g = g == NULL ? NULL : with_axis(rule, g, g->rank - 1);
    }
    if (a == NULL || b == NULL || g == NULL)
        return;
    if (kernel_needs(rule, 0))
        add_product(rule, 0, g, kernel_emit1(rule, &kernel_op_transpose, b));
    if (!kernel_needs(rule, 1))
        return;
    if (b->rank == 2 && a->rank > 2) {
        a = flat(rule, a);
        g = flat(rule, g);
        if (a == NULL)
            return;
    }
    add_product(rule, 1, kernel_emit1(rule, &kernel_op_transpose, a), g);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const uint64_t k = (uint64_t)call->in[0]->shape[call->in[0]->rank - 1];
    return (struct kernel_cost){.flops = 2 * k * (uint64_t)call->out[0]->size,
                                .bytes = kernel_moved_bytes(call)};
}

static void depends(const struct kernel_call *call, int o, int i, struct kernel_depends *d)
{
    kernel_depends_product(call, o, i, 0, d);
}

KERNEL_OP(matmul) = {
    .name = "matmul",
    KERNEL_IN("a", "b"),
    .n_out = 1,
    .accumulates = true,
    .batches = 2,
    .saves_in = 3,
    .reads_for = {2, 1},
    .depends = depends,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "Matrix product, also of vectors and of batches of matrices.",
    .shapes = "a [...,m,k], b [...,k,n] -> [...,m,n], leading axes broadcast; a [k] is a row and "
              "b [k] a column, whose axis of extent 1 the result lacks",
    .formula = "c_ij = sum_k a_ik b_kj",
    .derivative = "a' += c' b^T, b' += a^T c'",
    .edges = "0 where k = 0",
};
