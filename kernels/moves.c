/* moves.c: elements of any dtype moved between arrays by strides. */
#include "moves.h"
#include "dense.h"

#include <string.h>

void kernel_move_axis(struct kernel_move *move, int64_t extent, int64_t to, int64_t from)
{
    const int last = move->rank - 1;
    move->empty = move->empty || extent == 0;
    if (extent == 1)
        return;
    if (move->rank > 0 && move->to[last] == to * extent && move->from[last] == from * extent) {
        move->extent[last] *= extent;
        move->to[last] = to;
        move->from[last] = from;
        return;
    }
    move->extent[move->rank] = extent;
    move->to[move->rank] = to;
    move->from[move->rank++] = from;
}

/* One row of elements of a type. Offsets are counted in it. */
#define MOVE_ROW(TYPE)                                                                             \
    static void row_##TYPE(int64_t n, void *to, int64_t to_stride, const void *from,               \
                           int64_t from_stride)                                                    \
    {                                                                                              \
        TYPE *const y = to;                                                                        \
        const TYPE *const x = from;                                                                \
        if (to_stride == 1 && from_stride == -1)                                                   \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = x[-i];                                                                      \
        else if (to_stride == 1 && from_stride == 0)                                               \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = x[0];                                                                       \
        else if (to_stride == 1)                                                                   \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = x[i * from_stride];                                                         \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i * to_stride] = x[i * from_stride];                                             \
    }
MOVE_ROW(float)
MOVE_ROW(double)
MOVE_ROW(int64_t)

static void row(int dtype, int64_t n, void *to, int64_t to_stride, const void *from,
                int64_t from_stride)
{
    if (to_stride == 1 && from_stride == 1)
        memcpy(to, from, (size_t)n * kernel_dtype_bytes(dtype));
    else if (dtype == KERNEL_F32)
        row_float(n, to, to_stride, from, from_stride);
    else if (dtype == KERNEL_F64)
        row_double(n, to, to_stride, from, from_stride);
    else
        row_int64_t(n, to, to_stride, from, from_stride);
}

void kernel_move_run(const struct kernel_move *move, int dtype, void *to, const void *from)
{
    const int64_t bytes = (int64_t)kernel_dtype_bytes(dtype);
    const int last = move->rank - 1;
    int64_t index[KERNEL_MOVE_RANK] = {0};
    char *y = to;
    const char *x = from;
    if (move->empty)
        return;
    if (move->rank == 0) {
        memcpy(to, from, (size_t)bytes);
        return;
    }
    for (;;) {
        row(dtype, move->extent[last], y, move->to[last], x, move->from[last]);
        int axis = last - 1;
        for (; axis >= 0; axis--) {
            y += move->to[axis] * bytes;
            x += move->from[axis] * bytes;
            if (++index[axis] < move->extent[axis])
                break;
            y -= index[axis] * move->to[axis] * bytes;
            x -= index[axis] * move->from[axis] * bytes;
            index[axis] = 0;
        }
        if (axis < 0)
            return;
    }
}

void kernel_move_all(const struct kernel_array *to, kernel_ref from)
{
    struct kernel_move move = {0};
    for (int axis = 0; axis < to->rank; axis++)
        kernel_move_axis(&move, to->shape[axis], to->strides[axis], from->strides[axis]);
    kernel_move_run(&move, to->dtype, to->data, from->data);
}

const void *kernel_move_dense(kernel_ref x, void *space)
{
    struct kernel_view dense;
    if (x->contiguous)
        return x->data;
    kernel_view_dense(&dense, space, x->dtype, x->rank, x->shape);
    kernel_move_all(&dense.array, x);
    return space;
}

size_t kernel_move_space(kernel_ref x)
{
    return dense_bytes(x);
}

void kernel_move_fill(int dtype, void *to, int64_t n, double value)
{
    if (dtype == KERNEL_F32)
        for (int64_t i = 0; i < n; i++)
            ((float *)to)[i] = (float)value;
    else if (dtype == KERNEL_F64)
        for (int64_t i = 0; i < n; i++)
            ((double *)to)[i] = value;
    else
        for (int64_t i = 0; i < n; i++)
            ((int64_t *)to)[i] = (int64_t)value;
}

struct kernel_around kernel_around_axis(kernel_ref x, int axis)
{
    struct kernel_around around = {1, x->shape[axis], 1};
    for (int i = 0; i < x->rank; i++) {
        if (i < axis)
            around.outer *= x->shape[i];
        else if (i > axis)
            around.inner *= x->shape[i];
    }
    return around;
}
