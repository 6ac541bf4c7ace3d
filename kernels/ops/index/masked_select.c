/* ops/index/masked_select.c: the elements that a mask names, one behind the other.
 *
 * A shape may not depend on values. So the caller states the number of elements and the kernel
 * checks it. The pullback reads their places, output 1.
 */
#include "dense.h"
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"

static const char *const names[] = {"x", "mask"};

/* A mask of ones or of zeros: their number is known before they are drawn. */
/* clang-format off */
#define MASKED_SAMPLE(r0, n0, r1, n1, one, count)                                                  \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_F64}, .rank = {r0, r1},                               \
     .shape = {{KERNEL_EXTENTS n0}, {KERNEL_EXTENTS n1}},                                          \
     .low = {-1, one}, .high = {1, one + 1}, .switches = 2, .n_attr = 1, .attr = {count}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    MASKED_SAMPLE(2, (3, 5), 2, (3, 5), 1, 15), MASKED_SAMPLE(2, (3, 4), 1, (4), 1, 12),
    MASKED_SAMPLE(2, (3, 4), 2, (3, 4), 0, 0),  MASKED_SAMPLE(0, (0), 0, (0), 1, 1),
    MASKED_SAMPLE(2, (0, 3), 2, (0, 3), 1, 0),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0], mask = call->in[1];
    if (kernel_require_float(call, 0) != 0 || kernel_require_float(call, 1) != 0)
        return -1;
    bool fits = mask->rank <= x->rank;
    for (int axis = 0; axis < mask->rank && fits; axis++)
        fits = mask->shape[axis] == 1 || mask->shape[axis] == x->shape[axis + x->rank - mask->rank];
    if (!fits)
        return kernel_refuse_operands(call, " and ", "the mask does not broadcast to x");
    if (call->attr[0] < 0 || call->attr[0] > x->size)
        return kernel_refuse_operands(call, " and ", "n = %lld is not in 0..%lld",
                                      (long long)call->attr[0], (long long)x->size);
    kernel_shape_begin(&out[0], x->dtype, 1);
    kernel_shape_begin(&out[1], KERNEL_I64, 1);
    out[0].extent[0] = out[1].extent[0] = call->attr[0];
    return 0;
}

/* x and the mask in row-major order, where they are not so by themselves. */
static bool is_plain(const struct kernel_call *call, int i)
{
    return call->in[i]->contiguous && call->in[i]->size == call->in[0]->size;
}

static size_t space(const struct kernel_call *call, int i)
{
    const size_t bytes = (size_t)call->in[0]->size * kernel_dtype_bytes(call->in[0]->dtype);
    return is_plain(call, i) ? 0 : dense_rounded(bytes);
}

static size_t workspace(const struct kernel_call *call)
{
    return space(call, 0) + space(call, 1);
}

static const void *dense(const struct kernel_call *call, int i, void *to)
{
    struct kernel_view view;
    if (is_plain(call, i))
        return call->in[i]->data;
    kernel_view_dense(&view, to, call->in[0]->dtype, call->in[0]->rank, call->in[0]->shape);
    kernel_elementwise(LOOP_copy, &view.array, 1, &call->in[i], NULL, false);
    return to;
}

/* Counts to the end, and writes n at most. */
#define SELECT(TYPE)                                                                               \
    static int64_t select_##TYPE(int64_t size, int64_t n, void *out, int64_t *place,               \
                                 const void *in, const void *mask)                                 \
    {                                                                                              \
        const TYPE *const x = in, *const m = mask;                                                 \
        TYPE *const y = out;                                                                       \
        int64_t count = 0;                                                                         \
        for (int64_t i = 0; i < size; i++) {                                                       \
            if (m[i] == 0)                                                                         \
                continue;                                                                          \
            if (count < n) {                                                                       \
                y[count] = x[i];                                                                   \
                place[count] = i;                                                                  \
            }                                                                                      \
            count++;                                                                               \
        }                                                                                          \
        return count;                                                                              \
    }
SELECT(float)
SELECT(double)

static int forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    const int64_t n = call->attr[0];
    const void *const data = dense(call, 0, call->workspace);
    const void *const mask =
        dense(call, 1, kernel_behind(call->workspace, (int64_t)space(call, 0)));
    const int64_t count = (x->dtype == KERNEL_F32 ? select_float : select_double)(
        x->size, n, call->out[0]->data, call->out[1]->data, data, mask);
    if (count != n)
        return kernel_refuse_operands(call, " and ", "the mask names %lld elements, n is %lld",
                                      (long long)count, (long long)n);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0];
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const int64_t attr[] = {0, x->size};
    const kernel_ref in[] = {rule->adjoint[0], rule->out[1]};
    const kernel_ref line = kernel_emit(rule, &kernel_op_scatter_add, 2, in, 2, attr);
    kernel_accumulate_value(rule, 0,
                            kernel_emit_shape(rule, &kernel_op_reshape, line, x->rank, x->shape));
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    const uint64_t taken = (uint64_t)call->attr[0];
    return (struct kernel_cost){.flops = (uint64_t)x->size,
                                .bytes = kernel_touched_bytes(call->in[1]) +
                                         2 * taken * kernel_dtype_bytes(x->dtype) +
                                         taken * sizeof(int64_t)};
}

KERNEL_OP(masked_select) = {
    .name = "masked_select",
    .in_names = names,
    KERNEL_ATTRS({"n", KERNEL_ATTR_INT}),
    .n_in = 2,
    .n_out = 2,
    .saves_out = 2,
    .depends = kernel_depends_moves,
    .depends_reads = 2,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "The n elements of x where the mask is not 0, in row-major order.",
    .shapes = "x [...], mask [...] that broadcasts to x -> [n]",
    .formula = "y_k = x at the k-th place where mask != 0",
    .derivative = "x' += y'_k at the k-th place; none to the mask",
    .edges = "a mask that names another number of elements than n is an error that says how many; "
             "for a mask of 0 and 1 that is its sum; NaN counts as not 0",
};
