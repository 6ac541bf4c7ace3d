/* triangle.h: what the triangles of matrices have in common.
 *
 * May include: kernel.h. Internal to kernels/. For ops with one operand [...,m,n] and the attribute
 * {diagonal}: 0 is the main one, positive ones lie above it.
 */
#ifndef TRIANGLE_H
#define TRIANGLE_H

#include "kernel.h"

int kernel_triangle_shape(const struct kernel_call *call, struct kernel_shape *out);

/* Output 0 = x on the diagonal and below it, or above it, and 0 elsewhere. Any dtype. */
int kernel_triangle_copy(const struct kernel_call *call, bool upper);

/* Adds the same triangle of y' to x'. */
void kernel_triangle_pullback(struct kernel_rule *rule);

struct kernel_cost kernel_triangle_cost(const struct kernel_call *call);
bool kernel_triangle_sample(int k, struct kernel_sample *sample);

#endif
