/* ops/index/index_add.c: sums of the parts of an array along an axis that have one index.
 *
 * The adjoint of index_select. Parts are added in the order of the indices, so results are
 * reproducible.
 */
#include "elementwise.h"
#include "kernel_ops.h"
#include "moves.h"
#include "op_rules.h"
#include "part.h"

static const char *const names[] = {"x", "indices"};

/* clang-format off */
#define ADD_SAMPLE(r, n, m, axis, extent)                                                          \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_I64}, .rank = {r, 1},                                 \
     .shape = {{KERNEL_EXTENTS n}, {m}},                                                           \
     .low = {-1, 0}, .high = {1, extent}, .n_attr = 2, .attr = {axis, extent}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    ADD_SAMPLE(2, (3, 4), 4, 1, 3),     ADD_SAMPLE(2, (4, 3), 4, 0, 5),
    ADD_SAMPLE(3, (2, 3, 2), 3, -2, 2), ADD_SAMPLE(1, (9), 9, 0, 4),
    ADD_SAMPLE(2, (3, 0), 0, 1, 2),     ADD_SAMPLE(2, (0, 2), 2, 1, 3),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
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

static size_t workspace(const struct kernel_call *call)
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

static int forward(const struct kernel_call *call)
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

static void pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const kernel_ref in[] = {rule->adjoint[0], rule->in[1]};
    kernel_accumulate(rule, 0, &kernel_op_index_select, 2, in, 1, rule->attr);
}

KERNEL_OP(index_add) = {
    .name = "index_add",
    .in_names = names,
    KERNEL_ATTRS({"axis", KERNEL_ATTR_INT}, {"extent", KERNEL_ATTR_INT}),
    .n_in = 2,
    .n_out = 1,
    .hidden = true,
    .accumulates = true,
    .saves_in = 2,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = kernel_cost_add,
    .workspace = workspace,
    .sample = sample,
    .brief = "Sums of the parts of x along an axis that have one index.",
    .shapes = "x [...,m,...], indices [m] -> [...,extent,...]",
    .formula = "y[...,j,...] = sum of x[...,i,...] over the i with indices[i] = j",
    .derivative = "x'[...,i,...] += y'[...,indices[i],...]",
    .edges = "the sum of no part is 0; an index outside 0..extent-1 is an error that names it",
};
