/* ops/network/embedding.c: rows of a table by indices of any shape.
 *
 * With the indices in one axis it is gather_rows, whose kernel and adjoint serve it.
 */
#include "dense.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"

static const char *const names[] = {"w", "indices"};

/* clang-format off */
#define EMBEDDING_SAMPLE(rank_w, rows, rank_i, w_extents, i_extents)                               \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_I64}, .rank = {rank_w, rank_i},                       \
     .shape = {{KERNEL_EXTENTS w_extents}, {KERNEL_EXTENTS i_extents}},                            \
     .low = {-1, 0}, .high = {1, rows}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    EMBEDDING_SAMPLE(2, 4, 2, (4, 3), (2, 3)),    EMBEDDING_SAMPLE(2, 4, 1, (4, 3), (6)),
    EMBEDDING_SAMPLE(3, 3, 2, (3, 2, 2), (2, 2)), EMBEDDING_SAMPLE(1, 5, 3, (5), (2, 1, 3)),
    EMBEDDING_SAMPLE(2, 4, 0, (4, 3), (0)),       EMBEDDING_SAMPLE(2, 4, 2, (4, 3), (2, 0)),
    EMBEDDING_SAMPLE(2, 4, 2, (4, 0), (2, 3)),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref w = call->in[0], indices = call->in[1];
    if (kernel_require_float(call, 0) != 0)
        return -1;
    if (kernel_require_i64(call, 1, "indices") != 0)
        return KERNEL_REFUSED_DTYPE;
    if (w->rank < 1)
        return kernel_refuse_operands(call, ", ", "w [n,...] and indices [...] are wanted");
    const int rank = indices->rank + w->rank - 1;
    if (rank > KERNEL_MAX_RANK)
        return kernel_refuse_operands(call, ", ", "the result has %d axes, at most %d are possible",
                                      rank, KERNEL_MAX_RANK);
    kernel_shape_begin(out, w->dtype, rank);
    for (int axis = 0; axis < indices->rank; axis++)
        out->extent[axis] = indices->shape[axis];
    for (int axis = 1; axis < w->rank; axis++)
        out->extent[indices->rank + axis - 1] = w->shape[axis];
    return 0;
}

static size_t workspace(const struct kernel_call *call)
{
    return dense_bytes(call->in[1]);
}

/* The shape of rows of w, m of them. */
static void rows_shape(kernel_ref w, int64_t m, int64_t *shape_of)
{
    shape_of[0] = m;
    for (int axis = 1; axis < w->rank; axis++)
        shape_of[axis] = w->shape[axis];
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref w = call->in[0], indices = call->in[1];
    struct kernel_view list, rows;
    int64_t shape_of[KERNEL_MAX_RANK];
    char *space = call->workspace;
    const void *data = dense_data(indices, &space);
    rows_shape(w, indices->size, shape_of);
    kernel_view_dense(&list, (void *)data, KERNEL_I64, 1, &indices->size);
    kernel_view_dense(&rows, call->out[0]->data, w->dtype, w->rank, shape_of);
    struct kernel_array *const out[] = {&rows.array};
    const kernel_ref in[] = {w, &list.array};
    struct kernel_call gather = *call;
    gather.in = in;
    gather.out = out;
    return kernel_op_gather_rows.forward(&gather);
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref w = rule->in[0], indices = rule->in[1];
    int64_t shape_of[KERNEL_MAX_RANK];
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    rows_shape(w, indices->size, shape_of);
    const kernel_ref in[] = {
        kernel_emit_shape(rule, &kernel_op_reshape, rule->adjoint[0], w->rank, shape_of),
        kernel_emit_shape(rule, &kernel_op_reshape, indices, 1, &indices->size)};
    kernel_accumulate(rule, 0, &kernel_op_scatter_add_rows, 2, in, 1, w->shape);
}

KERNEL_OP(embedding) = {
    .name = "embedding",
    .in_names = names,
    .n_in = 2,
    .n_out = 1,
    .saves_in = 2,
    .depends = kernel_depends_moves,
    .depends_reads = 2,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = kernel_cost_take,
    .workspace = workspace,
    .sample = sample,
    .brief = "Rows of a table w by indices of any shape, which are i64.",
    .shapes = "w [n,d...], indices [...] -> [...,d...]",
    .formula = "y[...] = w[indices[...]]",
    .derivative = "w'[indices[...]] += y'[...]",
    .edges = "an index outside 0..n-1 is an error that names it and its row-major position",
};
