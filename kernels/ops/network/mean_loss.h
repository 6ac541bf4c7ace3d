/* mean_loss.h: losses that are the mean of an elementwise row over an input and its target.
 *
 * May include: op_rules.h. Internal to kernels/. The row gives value and derivatives; the loss sums
 * its values as they are made, so that nothing is stored but the loss.
 */
#ifndef MEAN_LOSS_H
#define MEAN_LOSS_H

#include "op_rules.h"

/* Two float operands of one shape become a scalar. */
int mean_loss_shape(const struct kernel_call *call, struct kernel_shape *out);

/* The row's mean over inputs 0 and 1 and, if the row has a third operand, this constant. */
int mean_loss_forward(const struct kernel_call *call, const struct kernel_op *row, double third);

/* The row's pullback, with the loss's adjoint divided by the number of elements. */
void mean_loss_pullback(struct kernel_rule *rule, const struct kernel_op *row, double third);

struct kernel_cost mean_loss_cost(const struct kernel_call *call, const struct kernel_op *row);

/* clang-format off */
#define MEAN_LOSS_SAMPLE(rank_, extents, low_x, high_x, low_t, high_t, ...)                        \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_F64}, .rank = {rank_, rank_},                         \
     .shape = {{KERNEL_EXTENTS extents}, {KERNEL_EXTENTS extents}},                                \
     .low = {low_x, low_t}, .high = {high_x, high_t}, __VA_ARGS__}
/* clang-format on */

#define MEAN_LOSS_SAMPLES(...)                                                                     \
    MEAN_LOSS_SAMPLE(2, (3, 5), __VA_ARGS__), MEAN_LOSS_SAMPLE(0, (0), __VA_ARGS__),               \
        MEAN_LOSS_SAMPLE(1, (17), __VA_ARGS__), MEAN_LOSS_SAMPLE(3, (2, 1, 3), __VA_ARGS__),       \
        MEAN_LOSS_SAMPLE(2, (0, 3), __VA_ARGS__)

#endif
