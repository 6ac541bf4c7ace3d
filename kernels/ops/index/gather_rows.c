/* ops/index/gather_rows.c: rows of an array by their indices.
 *
 * Indices may repeat; all are looked at before any row moves.
 */
#include "kernel_ops.h"
#include "part.h"

#include <string.h>

static const char *const names[] = {"x", "indices"};

/* clang-format off */
#define GATHER_SAMPLE(r, n, rows, m)                                                               \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_I64}, .rank = {r, 1},                                 \
     .shape = {{KERNEL_EXTENTS n}, {m}},                                                           \
     .low = {-1, 0}, .high = {1, rows}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    GATHER_SAMPLE(2, (4, 3), 4, 6),    GATHER_SAMPLE(1, (5), 5, 9),
    GATHER_SAMPLE(3, (3, 2, 2), 3, 2), GATHER_SAMPLE(2, (1, 9), 1, 1),
    GATHER_SAMPLE(2, (3, 4), 3, 0),    GATHER_SAMPLE(2, (3, 0), 3, 2),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0], indices = call->in[1];
    if (kernel_require_i64(call, 1, "indices") != 0)
        return KERNEL_REFUSED_DTYPE;
    if (x->rank < 1 || indices->rank != 1)
        return kernel_refuse_operands(call, ", ", "x [n,...] and indices [m] are wanted");
    kernel_shape_begin(out, x->dtype, x->rank);
    out->extent[0] = indices->shape[0];
    for (int i = 1; i < x->rank; i++)
        out->extent[i] = x->shape[i];
    return 0;
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0], indices = call->in[1];
    struct kernel_view to, from;
    if (kernel_part_indices(call, x->shape[0]) != 0)
        return -1;
    const size_t bytes = x->contiguous && x->size > 0
                             ? (size_t)(x->size / x->shape[0]) * kernel_dtype_bytes(x->dtype)
                             : 0;
    for (int64_t i = 0; i < indices->size && call->out[0]->size > 0; i++) {
        const int64_t row = ((const int64_t *)indices->data)[i * indices->strides[0]];
        if (bytes > 0) {
            memcpy((char *)call->out[0]->data + (size_t)i * bytes,
                   (const char *)x->data + (size_t)row * bytes, bytes);
            continue;
        }
        kernel_part_row(&to, call->out[0], i);
        kernel_part_row(&from, x, row);
        kernel_part_copy(&to.array, &from.array, false);
    }
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const kernel_ref in[] = {rule->adjoint[0], rule->in[1]};
    kernel_accumulate(rule, 0, &kernel_op_scatter_add_rows, 2, in, 1, rule->in[0]->shape);
}

KERNEL_OP(gather_rows) = {
    .name = "gather_rows",
    .in_names = names,
    .n_in = 2,
    .n_out = 1,
    .saves_in = 2,
    .any_dtype = true,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = kernel_cost_take,
    .sample = sample,
    .brief = "Rows of x by their indices, which are i64.",
    .shapes = "x [n,...], indices [m] -> [m,...]",
    .formula = "y[i,...] = x[indices[i],...]",
    .derivative = "x'[indices[i],...] += y'[i,...]",
    .edges = "an index outside 0..n-1 is an error that names it",
};
