/* ops/index/gather_rows.c: rows of an array by their indices; and sums of rows by index, the
 * adjoint.
 *
 * Indices may repeat; all are looked at before any row moves. Rows are added in the order of the
 * indices, so results are reproducible.
 */
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "part.h"

#include <string.h>

/* clang-format off */
#define GATHER_SAMPLE(r, n, rows, m)                                                               \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_I64}, .rank = {r, 1},                                 \
     .shape = {{KERNEL_EXTENTS n}, {m}},                                                           \
     .low = {-1, 0}, .high = {1, rows}}
/* clang-format on */
static const struct kernel_sample gather_rows_samples[] = {
    GATHER_SAMPLE(2, (4, 3), 4, 6),    GATHER_SAMPLE(1, (5), 5, 9),
    GATHER_SAMPLE(3, (3, 2, 2), 3, 2), GATHER_SAMPLE(2, (1, 9), 1, 1),
    GATHER_SAMPLE(2, (3, 4), 3, 0),    GATHER_SAMPLE(2, (3, 0), 3, 2),
};
KERNEL_SAMPLES_OF(gather_rows)

static int gather_rows_shape(const struct kernel_call *call, struct kernel_shape *out)
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

static int gather_rows_forward(const struct kernel_call *call)
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

static void gather_rows_pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const kernel_ref in[] = {rule->adjoint[0], rule->in[1]};
    kernel_accumulate(rule, 0, &kernel_op_scatter_add_rows, 2, in, 1, rule->in[0]->shape);
}

KERNEL_OP(gather_rows) = {
    .name = "gather_rows",
    KERNEL_IN("x", "indices"),
    .n_out = 1,
    .saves_in = 2,
    .any_dtype = true,
    .depends = kernel_depends_moves,
    .depends_reads = 2,
    .shape = gather_rows_shape,
    .forward = gather_rows_forward,
    .pullback = gather_rows_pullback,
    .cost = kernel_cost_take,
    .sample = gather_rows_sample,
    .brief = "Rows of x by their indices, which are i64.",
    .shapes = "x [n,...], indices [m] -> [m,...]",
    .formula = "y[i,...] = x[indices[i],...]",
    .derivative = "x'[indices[i],...] += y'[i,...]",
    .edges = "an index outside 0..n-1 is an error that names it",
};

/* clang-format off */
#define SCATTER_SAMPLE(r, n, m, rows)                                                              \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_I64}, .rank = {r, 1},                                 \
     .shape = {{KERNEL_EXTENTS n}, {m}},                                                           \
     .low = {-1, 0}, .high = {1, rows}, .n_attr = 1, .attr = {rows}}
/* clang-format on */
static const struct kernel_sample scatter_add_rows_samples[] = {
    SCATTER_SAMPLE(2, (6, 3), 6, 4),    SCATTER_SAMPLE(1, (9), 9, 5),
    SCATTER_SAMPLE(3, (2, 2, 2), 2, 3), SCATTER_SAMPLE(2, (1, 9), 1, 1),
    SCATTER_SAMPLE(2, (0, 4), 0, 3),    SCATTER_SAMPLE(2, (2, 0), 2, 3),
};
KERNEL_SAMPLES_OF(scatter_add_rows)

static int scatter_add_rows_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0], indices = call->in[1];
    if (kernel_require_float(call, 0) != 0)
        return -1;
    if (kernel_require_i64(call, 1, "indices") != 0)
        return KERNEL_REFUSED_DTYPE;
    if (x->rank < 1 || indices->rank != 1 || x->shape[0] != indices->shape[0])
        return kernel_refuse_operands(call, ", ", "x [m,...] and indices [m] are wanted");
    if (call->attr[0] < 0)
        return kernel_refuse_operands(call, ", ", "%lld rows are negative",
                                      (long long)call->attr[0]);
    kernel_shape_begin(out, x->dtype, x->rank);
    out->extent[0] = call->attr[0];
    for (int i = 1; i < x->rank; i++)
        out->extent[i] = x->shape[i];
    return 0;
}

static int scatter_add_rows_forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0], indices = call->in[1];
    struct kernel_view to, from;
    if (kernel_part_indices(call, call->attr[0]) != 0)
        return -1;
    if (!call->accumulate)
        kernel_fill(call->out[0], 0);
    for (int64_t i = 0; i < indices->size && x->size > 0; i++) {
        const int64_t row = ((const int64_t *)indices->data)[i * indices->strides[0]];
        kernel_part_row(&to, call->out[0], row);
        kernel_part_row(&from, x, i);
        kernel_part_copy(&to.array, &from.array, true);
    }
    return 0;
}

static void scatter_add_rows_pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const kernel_ref in[] = {rule->adjoint[0], rule->in[1]};
    kernel_accumulate_value(rule, 0, kernel_emit(rule, &kernel_op_gather_rows, 2, in, 0, NULL));
}

static void scatter_add_rows_depends(const struct kernel_call *call, int o, int i,
                                     struct kernel_depends *d)
{
    (void)o;
    kernel_depends_sums(call, i, &kernel_op_gather_rows, 0, NULL, d);
}

KERNEL_OP(scatter_add_rows) = {
    .name = "scatter_add_rows",
    KERNEL_IN("x", "indices"),
    KERNEL_ATTRS({"rows", KERNEL_ATTR_INT}),
    .n_out = 1,
    .hidden = true,
    .accumulates = true,
    .saves_in = 2,
    .depends = scatter_add_rows_depends,
    .depends_reads = 2,
    .shape = scatter_add_rows_shape,
    .forward = scatter_add_rows_forward,
    .pullback = scatter_add_rows_pullback,
    .cost = kernel_cost_add,
    .sample = scatter_add_rows_sample,
    .brief = "Sums of the rows of x that have one index.",
    .shapes = "x [m,...], indices [m] -> [rows,...]",
    .formula = "y[j,...] = sum of x[i,...] over the i with indices[i] = j",
    .derivative = "x'[i,...] += y'[indices[i],...]",
    .edges = "the sum of no row is 0; an index outside 0..rows-1 is an error that names it",
};
