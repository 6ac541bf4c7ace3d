/* norm_gradients.h: what the ops of the norms' gradients have in common.
 *
 * May include: normalize.h. Internal to kernels/. Inputs are g, x, w, mean (if centered) and rstd,
 * outputs gx, gw and gb (if centered).
 */
#ifndef NORM_GRADIENTS_H
#define NORM_GRADIENTS_H

#include "normalize.h"

/* What the ops differ in. */
struct norm_gradient_family {
    bool centered;   /* layer_norm and batch_norm */
    bool by_channel; /* batch_norm */
};

int norm_gradient_shape(const struct kernel_call *call, struct kernel_shape *out);
size_t norm_gradient_workspace(const struct kernel_call *call);
int norm_gradient_forward(const struct kernel_call *call);
void norm_gradient_pullback(struct kernel_rule *rule);
struct kernel_cost norm_gradient_cost(const struct kernel_call *call);

#endif
