/* along_axis.c: elements taken and added by an array of indices along an axis. */
#include "along_axis.h"
#include "moves.h"
#include "op_rules.h"
#include "part.h"
#include "product_axes.h"

int kernel_along_shape(const struct kernel_call *call, bool any_axis)
{
    const kernel_ref x = call->in[0], indices = call->in[1];
    if (kernel_require_i64(call, 1, "indices") != 0)
        return KERNEL_REFUSED_DTYPE;
    const int axis = kernel_part_axis(call, call->attr[0], x->rank);
    if (axis < 0)
        return KERNEL_REFUSED;
    bool fits = indices->rank == x->rank;
    for (int i = 0; i < x->rank && fits; i++)
        fits = indices->shape[i] == x->shape[i] || (any_axis && i == axis);
    if (!fits)
        return kernel_refuse_operands(
            call, ", ",
            any_axis ? "the extents differ beside axis %d" : "the extents differ (axis %d)", axis);
    return axis;
}

int kernel_along_check(const struct kernel_call *call, int64_t n)
{
    const kernel_ref indices = call->in[1];
    struct product_walk walk;
    if (indices->size == 0)
        return 0;
    if (indices->contiguous) {
        const int64_t *const index = indices->data;
        bool outside = false;
        for (int64_t i = 0; i < indices->size; i++)
            outside |= (uint64_t)index[i] >= (uint64_t)n;
        if (!outside)
            return 0;
    }
    product_walk_begin(&walk, indices->rank, indices->shape, indices->strides, ~0U);
    for (int64_t i = 0; i < indices->size; i++) {
        const int64_t index = ((const int64_t *)indices->data)[walk.offset];
        if (index < 0 || index >= n)
            return kernel_refuse_operands(call, ", ",
                                          "index %lld at position %lld is not in 0..%lld",
                                          (long long)index, (long long)i, (long long)n - 1);
        (void)product_walk_next(&walk);
    }
    return 0;
}

/* One row along the last axis: its place in each of the three arrays and the strides along it. */
struct indexed_row {
    int64_t n, indexed, dense, index; /* elements, and places */
    int64_t along, indexed_step, index_step,
        dense_step; /* strides: of the indexed axis, of a step */
};

#define ROW_TAKE(TYPE)                                                                             \
    static void take_##TYPE(const struct indexed_row *r, void *out, const void *in,                \
                            const int64_t *index)                                                  \
    {                                                                                              \
        TYPE *const y = (TYPE *)out + r->dense;                                                    \
        const TYPE *const x = (const TYPE *)in + r->indexed;                                       \
        index += r->index;                                                                         \
        for (int64_t j = 0; j < r->n; j++)                                                         \
            y[j * r->dense_step] = x[j * r->indexed_step + index[j * r->index_step] * r->along];   \
    }
#define ROW_ADD(TYPE)                                                                              \
    static void add_##TYPE(const struct indexed_row *r, void *out, const void *in,                 \
                           const int64_t *index)                                                   \
    {                                                                                              \
        TYPE *const y = (TYPE *)out + r->indexed;                                                  \
        const TYPE *const x = (const TYPE *)in + r->dense;                                         \
        index += r->index;                                                                         \
        for (int64_t j = 0; j < r->n; j++)                                                         \
            y[j * r->indexed_step + index[j * r->index_step] * r->along] += x[j * r->dense_step];  \
    }
ROW_TAKE(float)
ROW_TAKE(double)
ROW_TAKE(int64_t)
ROW_ADD(float)
ROW_ADD(double)

typedef void row_fn(const struct indexed_row *r, void *out, const void *in, const int64_t *index);

/* Walks the rows of `indices`; `plain` has its extents, `indexed` those but for the axis. */
static void walk_rows(row_fn *run, void *out, const void *in, kernel_ref indexed, kernel_ref plain,
                      kernel_ref indices, int axis)
{
    const int last = indices->rank - 1;
    int64_t at[KERNEL_MAX_RANK] = {0};
    struct indexed_row r = {.n = indices->shape[last],
                            .along = indexed->strides[axis],
                            .indexed_step = axis == last ? 0 : indexed->strides[last],
                            .index_step = indices->strides[last],
                            .dense_step = plain->strides[last]};
    if (indices->size == 0)
        return;
    for (;;) {
        run(&r, out, in, indices->data);
        int i = last - 1;
        for (; i >= 0; i--) {
            const int64_t back = ++at[i] < indices->shape[i] ? 0 : indices->shape[i];
            r.indexed += i == axis ? 0 : (1 - back) * indexed->strides[i];
            r.dense += (1 - back) * plain->strides[i];
            r.index += (1 - back) * indices->strides[i];
            if (back == 0)
                break;
            at[i] = 0;
        }
        if (i < 0)
            return;
    }
}

void kernel_along_take(struct kernel_array *out, kernel_ref x, kernel_ref indices, int axis)
{
    static row_fn *const take[KERNEL_DTYPES] = {take_float, take_double, take_int64_t};
    walk_rows(take[x->dtype], out->data, x->data, x, out, indices, axis);
}

void kernel_along_add(struct kernel_array *out, kernel_ref x, kernel_ref indices, int axis)
{
    walk_rows(x->dtype == KERNEL_F32 ? add_float : add_double, out->data, x->data, out, x, indices,
              axis);
}

void kernel_along_pullback(struct kernel_rule *rule, const struct kernel_op *op, kernel_ref indices)
{
    const kernel_ref x = rule->in[0];
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const int64_t axis = kernel_axis(rule->attr[0], x->rank);
    const int64_t attr[] = {axis, x->shape[axis]};
    const kernel_ref in[] = {rule->adjoint[0], indices};
    kernel_accumulate(rule, 0, op, 2, in, 2, attr);
}
