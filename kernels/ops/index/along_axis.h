/* along_axis.h: elements taken and added by an array of indices along an axis.
 *
 * Internal to kernels/. An array and its indices have the same extents but for the axis.
 */
#ifndef ALONG_AXIS_H
#define ALONG_AXIS_H

#include "kernel.h"

/* The axis of attribute 0; or KERNEL_REFUSED or KERNEL_REFUSED_DTYPE unless operand 1 is of i64 and
 * has the extents of operand 0, of which that of the axis may differ if `any_axis`. */
int kernel_along_shape(const struct kernel_call *call, bool any_axis);

/* Refuses, naming index and position, unless every element of operand 1, an array of any strides,
 * is in [0, n). */
int kernel_along_check(const struct kernel_call *call, int64_t n);

/* out[..., i, ...] = x[..., indices[..., i, ...], ...]: for a row-major out of any dtype. */
void kernel_along_take(struct kernel_array *out, kernel_ref x, kernel_ref indices, int axis);

/* out[..., indices[..., i, ...], ...] += x[..., i, ...], in the order of i: for floats. */
void kernel_along_add(struct kernel_array *out, kernel_ref x, kernel_ref indices, int axis);

/* Adds to input 0's adjoint that of output 0 by `op`, scatter_add or index_add, along the axis of
 * attribute 0 at these indices. */
void kernel_along_pullback(struct kernel_rule *rule, const struct kernel_op *op,
                           kernel_ref indices);

#endif
