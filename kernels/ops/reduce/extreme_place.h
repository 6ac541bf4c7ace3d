/* extreme_place.h: what argmax and argmin have in common.
 *
 * May include: kernel.h. Internal to kernels/. For ops with one operand and the attributes {axis,
 * keepdim}.
 */
#ifndef EXTREME_PLACE_H
#define EXTREME_PLACE_H

#include "kernel.h"

/* Refuses an empty axis: "... is empty and has no `what`". */
int kernel_extreme_shape(const struct kernel_call *call, const char *what,
                         struct kernel_shape *out);
int kernel_extreme_place(const struct kernel_call *call, bool least);
size_t kernel_extreme_workspace(const struct kernel_call *call);
struct kernel_cost kernel_extreme_cost(const struct kernel_call *call);
bool kernel_extreme_sample(int k, struct kernel_sample *sample);

#endif
