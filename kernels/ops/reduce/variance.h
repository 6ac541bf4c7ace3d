/* variance.h: what the variance and the standard deviation over axes have in common.
 *
 * Internal to kernels/. For ops with one operand and the attributes {keepdim, correction,
 * axes...}.
 */
#ifndef VARIANCE_H
#define VARIANCE_H

#include "kernel.h"

/* The shape rule: refuses a negative correction. */
int kernel_variance_shape(const struct kernel_call *call, struct kernel_shape *out);

/* Writes the variance, or its square root, into output 0: exactly 0 where all elements are equal,
 * NaN where there are not more than `correction`. Returns 0, or -1 with call->error. */
int kernel_variance(const struct kernel_call *call, bool root);
size_t kernel_variance_workspace(const struct kernel_call *call);
struct kernel_cost kernel_variance_cost(const struct kernel_call *call);

/* Divides each element of a dense array. */
void kernel_divide_by(struct kernel_array *array, double by);

/* For pullbacks: x less its mean, and what sums of squares are divided by, NaN for too few. */
kernel_ref kernel_emit_centred(struct kernel_rule *rule);
double kernel_variance_divisor(const struct kernel_rule *rule);

#endif
