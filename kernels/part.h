/* part.h: parts of arrays along one axis, and rows by their indices: for ops that move elements.
 *
 * Internal to kernels/. Elements of every dtype may be moved; only floats are added.
 */
#ifndef PART_H
#define PART_H

#include "kernel.h"
#include "op_rules.h"

/* An axis of `rank`, counted from the end where negative; or -1 with call->error. */
int kernel_part_axis(const struct kernel_call *call, int64_t axis, int rank);

/* The shape of floats input 0, which have the axis of attribute 0. */
int kernel_part_shape(const struct kernel_call *call, struct kernel_shape *out);

/* The elements start, start + step, ... of one axis of an array, n of them. */
void kernel_part_view(struct kernel_view *view, const struct kernel_array *of, int axis,
                      int64_t start, int64_t step, int64_t n);

/* to = from, or to += from, for equal extents and dtypes and any strides. */
void kernel_part_copy(struct kernel_array *to, kernel_ref from, bool accumulate);

/* Refuses, naming position and value, unless every element of input 1 is in [0, rows). */
int kernel_part_indices(const struct kernel_call *call, int64_t rows);

/* Row i of an array: its elements in all axes but the first, dense if `array` is row-major. */
void kernel_part_row(struct kernel_view *row, const struct kernel_array *array, int64_t i);

#endif
