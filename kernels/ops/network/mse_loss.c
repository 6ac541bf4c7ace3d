/* ops/network/mse_loss.c: mean squared error.
 *
 * May include: mean_loss.h, kernel_ops.h.
 */
#include "kernel_ops.h"
#include "mean_loss.h"

static const char *const names[] = {"x", "target"};

static const struct kernel_sample samples[] = {
    MEAN_LOSS_SAMPLES(-2, 2, -2, 2, .n_attr = 0),
};
KERNEL_SAMPLES(samples)

static int forward(const struct kernel_call *call)
{
    return mean_loss_forward(call, &kernel_op_squared_difference, 0);
}

static void pullback(struct kernel_rule *rule)
{
    mean_loss_pullback(rule, &kernel_op_squared_difference, 0);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    return mean_loss_cost(call, &kernel_op_squared_difference);
}

KERNEL_OP(mse_loss) = {
    .name = "mse_loss",
    .in_names = names,
    .n_in = 2,
    .n_out = 1,
    .saves_in = 3,
    .reads_for = {3, 3},
    .shape = mean_loss_shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .sample = sample,
    .brief = "Mean squared error.",
    .shapes = "x [...], target [...] -> []",
    .formula = "y = mean of (x - target)^2",
    .derivative = "x' += 2 y' (x - target) / n, target' -= the same; n elements",
    .edges = "NaN for no elements; operands are not broadcast",
};
