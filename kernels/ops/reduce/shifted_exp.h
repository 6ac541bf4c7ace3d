/* shifted_exp.h: what logsumexp, softmax and log_softmax have in common: the maximum to shift by.
 *
 * Internal to kernels/.
 */
#ifndef SHIFTED_EXP_H
#define SHIFTED_EXP_H

#include "op_rules.h"

/* Bytes of a dense copy of the array, rounded up so that another one may lie behind it. */
size_t shifted_exp_bytes(kernel_ref array);

/* The maximum of x over the axes into `space`, dense, as an array of x's rank in which the axes
 * are kept with extents of 1. -inf for an empty reduction. */
void shifted_exp_most(kernel_ref x, unsigned axes, void *space, struct kernel_view *most);

/* Sets infinite elements of a dense array to 0: what is shifted by them would be NaN. */
void shifted_exp_finite(struct kernel_array *array);

/* Shape and bytes of workspace of an op of x with the attribute {axis}: x's shape. */
int shifted_exp_shape(const struct kernel_call *call, struct kernel_shape *out);
size_t shifted_exp_workspace(const struct kernel_call *call);

/* out = x - m and total [.., 1, ..] = the sum of e^(x - m) along attribute {axis}; total lies in
 * the workspace. With `exponentials` out holds e^(x - m) instead. Returns 0, or -1. */
int shifted_exp_run(const struct kernel_call *call, bool exponentials, struct kernel_view *total);

#endif
