/* ops/network/huber_loss.c: mean of squares near 0 and magnitudes beyond.
 *
 * May include: mean_loss.h, kernel_ops.h.
 */
#include "kernel_ops.h"
#include "mean_loss.h"

static const char *const names[] = {"x", "target"};
static const struct kernel_attr_info attrs[] = {{"delta", KERNEL_ATTR_REAL}};

/* 2^power, bit for bit. */
#define DELTA(power) .n_attr = 1, .attr = {(int64_t)(1023 + (power)) << 52}

static const struct kernel_sample samples[] = {
    MEAN_LOSS_SAMPLES(-1, 1, -1, 1, DELTA(2)),
    MEAN_LOSS_SAMPLE(2, (3, 5), 1, 2, -2, -1, DELTA(-1)),
    MEAN_LOSS_SAMPLE(1, (9), -2, -1, 1, 2, DELTA(-1)),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const double delta = kernel_attr_real(call->attr[0]);
    if (mean_loss_shape(call, out) != 0)
        return -1;
    if (!(delta > 0))
        return kernel_refuse_real(call, "delta", delta, "a positive number");
    return 0;
}

static int forward(const struct kernel_call *call)
{
    return mean_loss_forward(call, &kernel_op_huber, kernel_attr_real(call->attr[0]));
}

static void pullback(struct kernel_rule *rule)
{
    mean_loss_pullback(rule, &kernel_op_huber, kernel_attr_real(rule->attr[0]));
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    return mean_loss_cost(call, &kernel_op_huber);
}

KERNEL_OP(huber_loss) = {
    .name = "huber_loss",
    .in_names = names,
    .attrs = attrs,
    .n_in = 2,
    .n_out = 1,
    .n_attrs = 1,
    .saves_in = 3,
    .reads_for = {3, 3},
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .sample = sample,
    .brief = "Mean Huber loss: squares up to a distance of delta, linear beyond.",
    .shapes = "x [...], target [...] -> []",
    .formula = "d = x - target, y = mean of |d| <= delta ? d^2 / 2 : delta (|d| - delta / 2)",
    .derivative = "x' += y' min(max(d, -delta), delta) / n, target' -= the same; n elements",
    .edges = "NaN for no elements; where |d| = delta the second derivative is half of that within; "
             "delta <= 0 and NaN are refused; delta = inf gives half of mse_loss",
    .source = "Huber, The Annals of Mathematical Statistics 35 (1964) 73-101, doi "
              "10.1214/aoms/1177703732",
};
