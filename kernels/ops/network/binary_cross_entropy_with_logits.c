/* ops/network/binary_cross_entropy_with_logits.c: mean cross entropy of logits and targets.
 *
 * May include: mean_loss.h, kernel_ops.h.
 */
#include "kernel_ops.h"
#include "mean_loss.h"

static const char *const names[] = {"x", "target"};

static const struct kernel_sample samples[] = {
    MEAN_LOSS_SAMPLES(-3, 3, 0.1, 0.9, .n_attr = 0),
};
KERNEL_SAMPLES(samples)

static int forward(const struct kernel_call *call)
{
    return mean_loss_forward(call, &kernel_op_logistic_loss, 0);
}

static void pullback(struct kernel_rule *rule)
{
    mean_loss_pullback(rule, &kernel_op_logistic_loss, 0);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    return mean_loss_cost(call, &kernel_op_logistic_loss);
}

KERNEL_OP(binary_cross_entropy_with_logits) = {
    .name = "binary_cross_entropy_with_logits",
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
    .brief = "Mean cross entropy of the probabilities sigmoid(x) against targets in [0, 1].",
    .shapes = "x [...], target [...] -> []",
    .formula = "y = mean of ln(1 + e^x) - x target",
    .derivative = "x' += y' (sigmoid(x) - target) / n, target' -= y' x / n; n elements",
    .edges = "NaN for no elements; no overflow, and no cancellation for targets in [0, 1]; an "
             "infinite x gives 0 where the target is sigmoid(x), else inf",
};
