/* moves.h: elements of any dtype moved between arrays by strides, which may be 0 or negative here.
 *
 * Internal to kernels/. An array is walked in the order of the axes that were named, the last one
 * innermost; nothing is computed on elements.
 */
#ifndef MOVES_H
#define MOVES_H

#include "kernel.h"
#include "op_rules.h"

enum { KERNEL_MOVE_RANK = 2 * KERNEL_MAX_RANK };

/* A copy to[i . to_stride] = from[i . from_stride] over all indices i. */
struct kernel_move {
    int rank;
    bool empty;
    int64_t extent[KERNEL_MOVE_RANK], to[KERNEL_MOVE_RANK], from[KERNEL_MOVE_RANK];
};

/* Appends an axis, as part of the one before it where the strides allow. At most KERNEL_MOVE_RANK
 * axes of extents above 1. */
void kernel_move_axis(struct kernel_move *move, int64_t extent, int64_t to, int64_t from);
void kernel_move_run(const struct kernel_move *move, int dtype, void *to, const void *from);

/* to = from for equal extents and dtypes and any strides. */
void kernel_move_all(const struct kernel_array *to, kernel_ref from);

/* The elements of x in row-major order: its own, or copied into `space`. */
const void *kernel_move_dense(kernel_ref x, void *space);

/* Bytes that kernel_move_dense needs, a multiple of 64. */
size_t kernel_move_space(kernel_ref x);

/* n elements of one value, given as a double and rounded towards zero for i64. */
void kernel_move_fill(int dtype, void *to, int64_t n, double value);

/* An array seen as [outer, extent, inner] around one of its axes. */
struct kernel_around {
    int64_t outer, extent, inner;
};
struct kernel_around kernel_around_axis(kernel_ref x, int axis);

/* Element `at` of data of a dtype. */
static inline char *kernel_move_at(const void *data, int dtype, int64_t at)
{
    return (char *)data + at * (dtype == KERNEL_F32 ? 4 : 8);
}

#endif
