/* order.h: numbers sorted, and the first of them selected.
 *
 * Internal to kernels/. Equal numbers keep their order, -0 equals 0, and NaN comes last whatever
 * the direction.
 */
#ifndef ORDER_H
#define ORDER_H

#include "kernel.h"

/* What sort and topk do: output 0 receives the first k numbers along an axis in their order, output
 * 1 their places. */
void kernel_order_lines(const struct kernel_call *call, int axis, int64_t k, bool descending);
size_t kernel_order_workspace(const struct kernel_call *call);

#endif
