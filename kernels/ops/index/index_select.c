/* ops/index/index_select.c: the parts of an array along an axis, by their indices; and sums of the
 * parts that have one index, the adjoint.
 *
 * gather_rows does the same along the first axis only. Parts are added in the order of the indices,
 * so results are reproducible.
 */
#include "along_axis.h"
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "moves.h"
#include "op_rules.h"
#include "part.h"

#include <string.h>

/* clang-format off */
#define SELECT_SAMPLE(r, n, m, most, axis)                                                         \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_I64}, .rank = {r, 1},                                 \
     .shape = {{KERNEL_EXTENTS n}, {m}},                                                           \
     .low = {-1, 0}, .high = {1, most}, .n_attr = 1, .attr = {axis}}
/* clang-format on */
static const struct kernel_sample index_select_samples[] = {
    SELECT_SAMPLE(2, (3, 4), 5, 4, 1),     SELECT_SAMPLE(2, (4, 3), 2, 4, 0),
    SELECT_SAMPLE(3, (2, 3, 2), 4, 3, -2), SELECT_SAMPLE(1, (5), 7, 5, 0),
    SELECT_SAMPLE(2, (3, 4), 0, 4, 1),     SELECT_SAMPLE(2, (0, 4), 2, 4, 1),
};
KERNEL_SAMPLES_OF(index_select)

static int index_select_shape(const struct kernel_call *call, struct kernel_shape *out)
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

static size_t index_select_workspace(const struct kernel_call *call)
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

static int index_select_forward(const struct kernel_call *call)
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

static void index_select_pullback(struct kernel_rule *rule)
{
    kernel_along_pullback(rule, &kernel_op_index_add, rule->in[1]);
}

KERNEL_OP(index_select) = {
    .name = "index_select",
    KERNEL_IN("x", "indices"),
    KERNEL_ATTRS({"axis", KERNEL_ATTR_INT}),
    .n_out = 1,
    .saves_in = 2,
    .any_dtype = true,
    .depends = kernel_depends_moves,
    .depends_reads = 2,
    .shape = index_select_shape,
    .forward = index_select_forward,
    .pullback = index_select_pullback,
    .cost = kernel_cost_take,
    .workspace = index_select_workspace,
    .sample = index_select_sample,
    .brief = "Parts of a tensor along an axis by their indices, which are i64.",
    .shapes = "x [...,n,...], indices [m] -> [...,m,...]",
    .formula = "y[...,i,...] = x[...,indices[i],...]",
    .derivative = "x'[...,indices[i],...] += y'[...,i,...]",
    .edges = "an index outside 0..n-1 is an error that names it; a negative axis counts from the "
             "end",
};

/* clang-format off */
#define ADD_SAMPLE(r, n, m, axis, extent)                                                          \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_I64}, .rank = {r, 1},                                 \
     .shape = {{KERNEL_EXTENTS n}, {m}},                                                           \
     .low = {-1, 0}, .high = {1, extent}, .n_attr = 2, .attr = {axis, extent}}
/* clang-format on */
static const struct kernel_sample index_add_samples[] = {
    ADD_SAMPLE(2, (3, 4), 4, 1, 3),     ADD_SAMPLE(2, (4, 3), 4, 0, 5),
    ADD_SAMPLE(3, (2, 3, 2), 3, -2, 2), ADD_SAMPLE(1, (9), 9, 0, 4),
    ADD_SAMPLE(2, (3, 0), 0, 1, 2),     ADD_SAMPLE(2, (0, 2), 2, 1, 3),
};
KERNEL_SAMPLES_OF(index_add)

static int index_add_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0], indices = call->in[1];
    if (kernel_require_float(call, 0) != 0)
        return -1;
    if (kernel_require_i64(call, 1, "indices") != 0)
        return KERNEL_REFUSED_DTYPE;
    const int axis = kernel_part_axis(call, call->attr[0], x->rank);
    if (axis < 0)
        return -1;
    if (indices->rank != 1 || indices->shape[0] != x->shape[axis] || call->attr[1] < 0)
        return kernel_refuse_operands(call, ", ", "indices [m] of axis %d and an extent are wanted",
                                      axis);
    kernel_shape_begin(out, x->dtype, x->rank);
    for (int i = 0; i < x->rank; i++)
        out->extent[i] = i == axis ? call->attr[1] : x->shape[i];
    return 0;
}

static size_t index_add_workspace(const struct kernel_call *call)
{
    return kernel_move_space(call->in[0]);
}

/* m parts of `inner` elements each. */
#define ADD_PARTS(TYPE)                                                                            \
    static void add_##TYPE(int64_t m, int64_t inner, void *out, const void *in,                    \
                           const int64_t *index, int64_t step)                                     \
    {                                                                                              \
        const TYPE *x = in;                                                                        \
        for (int64_t i = 0; i < m; i++, x += inner) {                                              \
            TYPE *const y = (TYPE *)out + index[i * step] * inner;                                 \
            for (int64_t k = 0; k < inner; k++)                                                    \
                y[k] += x[k];                                                                      \
        }                                                                                          \
    }
ADD_PARTS(float)
ADD_PARTS(double)

static int index_add_forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0], indices = call->in[1];
    const int dtype = x->dtype, axis = kernel_part_axis(call, call->attr[0], x->rank);
    const struct kernel_around around = kernel_around_axis(x, axis);
    if (kernel_part_indices(call, call->attr[1]) != 0)
        return -1;
    if (!call->accumulate)
        kernel_fill(call->out[0], 0);
    if (x->size == 0)
        return 0;
    const void *const data = kernel_move_dense(x, call->workspace);
    for (int64_t o = 0; o < around.outer; o++)
        (dtype == KERNEL_F32 ? add_float : add_double)(
            around.extent, around.inner,
            kernel_move_at(call->out[0]->data, dtype, o * call->attr[1] * around.inner),
            kernel_move_at(data, dtype, o * around.extent * around.inner), indices->data,
            indices->strides[0]);
    return 0;
}

static void index_add_pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const kernel_ref in[] = {rule->adjoint[0], rule->in[1]};
    kernel_accumulate(rule, 0, &kernel_op_index_select, 2, in, 1, rule->attr);
}

static void index_add_depends(const struct kernel_call *call, int o, int i,
                              struct kernel_depends *d)
{
    (void)o;
    kernel_depends_sums(call, i, &kernel_op_index_select, 1, call->attr, d);
}

KERNEL_OP(index_add) = {
    .name = "index_add",
    KERNEL_IN("x", "indices"),
    KERNEL_ATTRS({"axis", KERNEL_ATTR_INT}, {"extent", KERNEL_ATTR_INT}),
    .n_out = 1,
    .hidden = true,
    .accumulates = true,
    .saves_in = 2,
    .depends = index_add_depends,
    .depends_reads = 2,
    .shape = index_add_shape,
    .forward = index_add_forward,
    .pullback = index_add_pullback,
    .cost = kernel_cost_add,
    .workspace = index_add_workspace,
    .sample = index_add_sample,
    .brief = "Sums of the parts of x along an axis that have one index.",
    .shapes = "x [...,m,...], indices [m] -> [...,extent,...]",
    .formula = "y[...,j,...] = sum of x[...,i,...] over the i with indices[i] = j",
    .derivative = "x'[...,i,...] += y'[...,indices[i],...]",
    .edges = "the sum of no part is 0; an index outside 0..extent-1 is an error that names it",
};
