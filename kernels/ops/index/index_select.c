/* ops/index/index_select.c: the parts of an array along an axis, by their indices.
 *
 * gather_rows does the same along the first axis only.
 */
#include "along_axis.h"
#include "kernel_ops.h"
#include "moves.h"
#include "op_rules.h"
#include "part.h"

#include <string.h>

static const char *const names[] = {"x", "indices"};

/* clang-format off */
#define SELECT_SAMPLE(r, n, m, most, axis)                                                         \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_I64}, .rank = {r, 1},                                 \
     .shape = {{KERNEL_EXTENTS n}, {m}},                                                           \
     .low = {-1, 0}, .high = {1, most}, .n_attr = 1, .attr = {axis}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    SELECT_SAMPLE(2, (3, 4), 5, 4, 1),     SELECT_SAMPLE(2, (4, 3), 2, 4, 0),
    SELECT_SAMPLE(3, (2, 3, 2), 4, 3, -2), SELECT_SAMPLE(1, (5), 7, 5, 0),
    SELECT_SAMPLE(2, (3, 4), 0, 4, 1),     SELECT_SAMPLE(2, (0, 4), 2, 4, 1),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0], indices = call->in[1];
    if (kernel_require_i64(call, 1, "indices") != 0)
        return KERNEL_REFUSED_DTYPE;
    if (indices->rank != 1)
        return kernel_refuse_operands(call, ", ", "indices [m] are wanted");
    const int axis = kernel_part_axis(call, call->attr[0], x->rank);
    if (axis < 0)
        return -1;
    kernel_shape_begin(out, x->dtype, x->rank);
    for (int i = 0; i < x->rank; i++)
        out->extent[i] = i == axis ? indices->shape[0] : x->shape[i];
    return 0;
}

static size_t workspace(const struct kernel_call *call)
{
    return kernel_move_space(call->in[0]);
}

#define SELECT_ROW(TYPE)                                                                           \
    static void row_##TYPE(int64_t m, void *out, const void *in, const int64_t *index, int64_t s)  \
    {                                                                                              \
        TYPE *const y = out;                                                                       \
        const TYPE *const x = in;                                                                  \
        for (int64_t i = 0; i < m; i++)                                                            \
            y[i] = x[index[i * s]];                                                                \
    }
SELECT_ROW(float)
SELECT_ROW(double)
SELECT_ROW(int64_t)

typedef void row_fn(int64_t m, void *out, const void *in, const int64_t *index, int64_t s);

static int forward(const struct kernel_call *call)
{
    static row_fn *const rows[KERNEL_DTYPES] = {row_float, row_double, row_int64_t};
    const kernel_ref x = call->in[0], indices = call->in[1];
    const int dtype = x->dtype, axis = kernel_part_axis(call, call->attr[0], x->rank);
    const struct kernel_around around = kernel_around_axis(x, axis);
    const int64_t m = indices->size, inner = around.inner, *const index = indices->data;
    const size_t bytes = (size_t)inner * kernel_dtype_bytes(dtype);
    if (kernel_part_indices(call, around.extent) != 0)
        return -1;
    if (call->out[0]->size == 0)
        return 0;
    const void *const data = kernel_move_dense(x, call->workspace);
    for (int64_t o = 0; o < around.outer; o++) {
        char *const to = kernel_move_at(call->out[0]->data, dtype, o * m * inner);
        const char *const from = kernel_move_at(data, dtype, o * around.extent * inner);
        if (inner == 1)
            rows[dtype](m, to, from, index, indices->strides[0]);
        for (int64_t i = 0; i < m && inner > 1; i++)
            memcpy(to + (size_t)i * bytes, from + (size_t)index[i * indices->strides[0]] * bytes,
                   bytes);
    }
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    kernel_along_pullback(rule, &kernel_op_index_add, rule->in[1]);
}

KERNEL_OP(index_select) = {
    .name = "index_select",
    .in_names = names,
    KERNEL_ATTRS({"axis", KERNEL_ATTR_INT}),
    .n_in = 2,
    .n_out = 1,
    .saves_in = 2,
    .any_dtype = true,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = kernel_cost_take,
    .workspace = workspace,
    .sample = sample,
    .brief = "Parts of a tensor along an axis by their indices, which are i64.",
    .shapes = "x [...,n,...], indices [m] -> [...,m,...]",
    .formula = "y[...,i,...] = x[...,indices[i],...]",
    .derivative = "x'[...,indices[i],...] += y'[...,i,...]",
    .edges = "an index outside 0..n-1 is an error that names it; a negative axis counts from the "
             "end",
};
