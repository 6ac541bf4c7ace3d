/* part.c: parts of arrays along one axis, and rows by their indices. */
#include "part.h"
#include "elementwise.h"
#include "moves.h"

#include <string.h>

int kernel_part_axis(const struct kernel_call *call, int64_t axis, int rank)
{
    if (axis < -rank || axis >= rank) {
        char x[96];
        return kernel_refuse(call, "%s: there is no axis %lld of %d",
                             kernel_describe(call->in[0], x, sizeof x), (long long)axis, rank);
    }
    return (int)(axis < 0 ? axis + rank : axis);
}

int kernel_part_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    if (kernel_require_float(call, 0) != 0 || kernel_part_axis(call, call->attr[0], x->rank) < 0)
        return -1;
    return kernel_shape_same(call, out);
}

static bool row_major(kernel_ref a)
{
    int64_t next = 1;
    for (int axis = a->rank - 1; axis >= 0; axis--) {
        if (a->shape[axis] != 1 && a->strides[axis] != next)
            return false;
        next *= a->shape[axis];
    }
    return true;
}

void kernel_part_view(struct kernel_view *view, const struct kernel_array *of, int axis,
                      int64_t start, int64_t step, int64_t n)
{
    view->array = *of;
    kernel_view_bind(view);
    view->array.size = 1;
    for (int i = 0; i < of->rank; i++) {
        view->shape[i] = i == axis ? n : of->shape[i];
        view->strides[i] = of->strides[i] * (i == axis && n > 1 ? step : 1);
        view->array.size *= view->shape[i];
    }
    if (view->array.size > 0)
        view->array.data =
            (char *)of->data + (size_t)(start * of->strides[axis]) * kernel_dtype_bytes(of->dtype);
    view->array.contiguous = row_major(&view->array);
}

void kernel_part_copy(struct kernel_array *to, kernel_ref from, bool accumulate)
{
    if (to->size == 0)
        return;
    if (to->contiguous && from->contiguous && !accumulate)
        memcpy(to->data, from->data, (size_t)to->size * kernel_dtype_bytes(to->dtype));
    else if (to->contiguous && from->contiguous)
        kernel_loop_run(LOOP_copy, to->dtype, to->size, to->data, from->data, NULL, NULL, true);
    else if (to->dtype == KERNEL_I64)
        kernel_move_all(to, from);
    else
        kernel_elementwise(LOOP_copy, to, 1, &from, 0, accumulate);
}

int kernel_part_indices(const struct kernel_call *call, int64_t rows)
{
    const kernel_ref indices = call->in[1];
    for (int64_t i = 0; i < indices->size; i++) {
        const int64_t row = ((const int64_t *)indices->data)[i * indices->strides[0]];
        if (row < 0 || row >= rows)
            return kernel_refuse_operands(call, ", ",
                                          "index %lld at position %lld is not in 0..%lld",
                                          (long long)row, (long long)i, (long long)rows - 1);
    }
    return 0;
}

void kernel_part_row(struct kernel_view *row, const struct kernel_array *array, int64_t i)
{
    const int64_t *const shape = array->shape, *const strides = array->strides;
    row->array = *array;
    row->array.rank = (uint8_t)(array->rank - 1);
    kernel_view_bind(row);
    row->array.size = 1;
    for (int axis = 1; axis < array->rank; axis++) {
        row->shape[axis - 1] = shape[axis];
        row->strides[axis - 1] = strides[axis];
        row->array.size *= shape[axis];
    }
    if (row->array.size > 0)
        row->array.data =
            (char *)array->data + (size_t)(i * strides[0]) * kernel_dtype_bytes(array->dtype);
    row->array.contiguous = row_major(&row->array);
}
