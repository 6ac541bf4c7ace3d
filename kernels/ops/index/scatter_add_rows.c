/* ops/index/scatter_add_rows.c: sums of rows by index.
 *
 * The adjoint of gather_rows. Rows are added in the order of the indices, so results are
 * reproducible.
 */
#include "elementwise.h"
#include "kernel_ops.h"
#include "part.h"

static const char *const names[] = {"x", "indices"};

/* clang-format off */
#define SCATTER_SAMPLE(r, n, m, rows)                                                              \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_I64}, .rank = {r, 1},                                 \
     .shape = {{KERNEL_EXTENTS n}, {m}},                                                           \
     .low = {-1, 0}, .high = {1, rows}, .n_attr = 1, .attr = {rows}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    SCATTER_SAMPLE(2, (6, 3), 6, 4),    SCATTER_SAMPLE(1, (9), 9, 5),
    SCATTER_SAMPLE(3, (2, 2, 2), 2, 3), SCATTER_SAMPLE(2, (1, 9), 1, 1),
    SCATTER_SAMPLE(2, (0, 4), 0, 3),    SCATTER_SAMPLE(2, (2, 0), 2, 3),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
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

static int forward(const struct kernel_call *call)
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

static void pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const kernel_ref in[] = {rule->adjoint[0], rule->in[1]};
    kernel_accumulate_value(rule, 0, kernel_emit(rule, &kernel_op_gather_rows, 2, in, 0, NULL));
}

KERNEL_OP(scatter_add_rows) = {
    .name = "scatter_add_rows",
    .in_names = names,
    KERNEL_ATTRS({"rows", KERNEL_ATTR_INT}),
    .n_in = 2,
    .n_out = 1,
    .hidden = true,
    .accumulates = true,
    .saves_in = 2,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = kernel_cost_add,
    .sample = sample,
    .brief = "Sums of the rows of x that have one index.",
    .shapes = "x [m,...], indices [m] -> [rows,...]",
    .formula = "y[j,...] = sum of x[i,...] over the i with indices[i] = j",
    .derivative = "x'[i,...] += y'[indices[i],...]",
    .edges = "the sum of no row is 0; an index outside 0..rows-1 is an error that names it",
};
