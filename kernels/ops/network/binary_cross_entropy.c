/* ops/network/binary_cross_entropy.c: mean cross entropy of probabilities and targets.
 *
 * May include: mean_loss.h, kernel_ops.h.
 */
#include "kernel_ops.h"
#include "mean_loss.h"

static const char *const names[] = {"x", "target"};

static const struct kernel_sample samples[] = {
    MEAN_LOSS_SAMPLES(0.2, 0.8, 0.1, 0.9, .n_attr = 0),
};
KERNEL_SAMPLES(samples)

static int forward(const struct kernel_call *call)
{
    return mean_loss_forward(call, &kernel_op_bernoulli_loss, 0);
}

static void pullback(struct kernel_rule *rule)
{
    mean_loss_pullback(rule, &kernel_op_bernoulli_loss, 0);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    return mean_loss_cost(call, &kernel_op_bernoulli_loss);
}

KERNEL_OP(binary_cross_entropy) = {
    .name = "binary_cross_entropy",
    .in_names = names,
    .n_in = 2,
    .n_out = 1,
    .saves_in = 3,
    .reads_for = {3, 1},
    .shape = mean_loss_shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .sample = sample,
    .brief = "Mean cross entropy of probabilities x against targets, both in [0, 1].",
    .shapes = "x [...], target [...] -> []",
    .formula = "y = -mean of target ln x + (1 - target) ln(1 - x)",
    .derivative = "x' += y' ((1 - target) / (1 - x) - target / x) / n, target' += y' (ln(1 - x) - "
                  "ln x) / n; n elements",
    .edges = "NaN for no elements and for x outside [0, 1], where the derivative is the formula's; "
             "a target of 0 or 1 takes the other term "
             "as 0, so that x = target gives 0 with derivative 1 for 0 and -1 for 1; elsewhere the "
             "loss at x = 0 and x = 1 is inf, with an infinite derivative: nothing is clamped",
};
