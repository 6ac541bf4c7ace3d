/* shifted_exp.h: what logsumexp, softmax and log_softmax have in common: the maximum to shift by.
 *
 * Internal to kernels/.
 */
#ifndef SHIFTED_EXP_H
#define SHIFTED_EXP_H

#include "dense.h"
#include "op_rules.h"

/* The maximum of x over the axes into `space`, dense, as an array of x's rank in which the axes
 * are kept with extents of 1. -inf for an empty reduction. */
void shifted_exp_most(kernel_ref x, unsigned axes, void *space, struct kernel_view *most);

/* Sets infinite elements of a dense array to 0: what is shifted by them would be NaN. */
void shifted_exp_finite(struct kernel_array *array);

/* Bytes of workspace of an op of x with the attribute {axis}. */
size_t shifted_exp_workspace(const struct kernel_call *call);

/* out = x - m and total [.., 1, ..] = the sum of e^(x - m) along attribute {axis}; total lies in
 * the workspace. With `exponentials` out holds e^(x - m) instead. Returns 0, or -1. */
int shifted_exp_run(const struct kernel_call *call, bool exponentials, struct kernel_view *total);

#endif
