/* ops/network/mean_loss.c: losses that are the mean of an elementwise row over an input and its
 * target.
 *
 * The row gives value and derivatives; the loss sums its values as they are made, so that nothing
 * is stored but the loss.
 */
#include "elementwise.h"
#include "kernel_ops.h"
#include "op_rules.h"

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

static int mean_loss_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0], target = call->in[1];
    if (kernel_require_float(call, 0) != 0 || kernel_require_float(call, 1) != 0)
        return -1;
    if (!kernel_same_extents(x, target))
        return kernel_refuse_operands(call, ", ", "x and target must have one shape");
    kernel_shape_begin(out, x->dtype, 0);
    return 0;
}

/* The row's mean over inputs 0 and 1 and, if the row has a third operand, the attribute. */
static int mean_loss_forward(const struct kernel_call *call)
{
    const struct kernel_op *const row = call->op->family;
    const double third = row->n_in == 3 ? kernel_attr_real(call->attr[0]) : 0;
    struct kernel_array *loss = call->out[0];
    const float narrow = (float)third;
    struct kernel_array constant = {.size = 1, .dtype = loss->dtype, .contiguous = true};
    constant.data = loss->dtype == KERNEL_F32 ? (void *)&narrow : (void *)&third;
    const kernel_ref in[] = {call->in[0], call->in[1], &constant};
    const double n = (double)call->in[0]->size;
    kernel_fill(loss, 0);
    kernel_elementwise((enum kernel_loop_id)row->loop, loss, row->n_in, in, NULL, true);
    if (loss->dtype == KERNEL_F32)
        *(float *)loss->data = (float)((double)*(float *)loss->data / n);
    else
        *(double *)loss->data /= n;
    return 0;
}

/* The row's pullback, with the loss's adjoint divided by the number of elements. */
static void mean_loss_pullback(struct kernel_rule *rule)
{
    const struct kernel_op *const row = rule->op->family;
    const double third = row->n_in == 3 ? kernel_attr_real(rule->attr[0]) : 0;
    if (rule->adjoint[0] == NULL)
        return;
    const kernel_ref *const in = rule->in, *const adjoint = rule->adjoint;
    const int n_attr = rule->n_attr;
    const double each = in[0]->size > 0 ? 1 / (double)in[0]->size : 0;
    const kernel_ref share = kernel_emit_real(rule, &kernel_op_scale, each, adjoint[0]);
    kernel_ref operands[3] = {in[0], in[1], NULL};
    if (row->n_in == 3) /* a constant, which no gradient reaches */
        operands[2] = kernel_emit_real(rule, &kernel_op_scale, third,
                                       kernel_emit2(rule, &kernel_op_tie, adjoint[0], adjoint[0]));
    rule->in = operands;
    rule->adjoint = &share;
    rule->n_attr = 0;
    if (share != NULL)
        row->pullback(rule);
    rule->in = in;
    rule->adjoint = adjoint;
    rule->n_attr = n_attr;
}

static struct kernel_cost mean_loss_cost(const struct kernel_call *call)
{
    const struct kernel_op *const row = call->op->family;
    return (struct kernel_cost){
        .flops = ((uint64_t)row->flops_per_element + 1) * (uint64_t)call->in[0]->size + 4,
        .bytes = kernel_moved_bytes(call)};
}

static const struct kernel_sample mse_samples[] = {
    MEAN_LOSS_SAMPLES(-2, 2, -2, 2, .n_attr = 0),
};
KERNEL_SAMPLES_OF(mse)

KERNEL_OP(mse_loss) = {
    .name = "mse_loss",
    KERNEL_IN("x", "target"),
    .n_out = 1,
    .saves_in = 3,
    .reads_for = {3, 3},
    .shape = mean_loss_shape,
    .family = &kernel_op_squared_difference,
    .forward = mean_loss_forward,
    .pullback = mean_loss_pullback,
    .cost = mean_loss_cost,
    .sample = mse_sample,
    .brief = "Mean squared error.",
    .shapes = "x [...], target [...] -> []",
    .formula = "y = mean of (x - target)^2",
    .derivative = "x' += 2 y' (x - target) / n, target' -= the same; n elements",
    .edges = "NaN for no elements; operands are not broadcast",
};

/* 2^power, bit for bit. */
#define DELTA(power) .n_attr = 1, .attr = {(int64_t)(1023 + (power)) << 52}

static const struct kernel_sample huber_samples[] = {
    MEAN_LOSS_SAMPLES(-1, 1, -1, 1, DELTA(2)),
    MEAN_LOSS_SAMPLE(2, (3, 5), 1, 2, -2, -1, DELTA(-1)),
    MEAN_LOSS_SAMPLE(1, (9), -2, -1, 1, 2, DELTA(-1)),
};
KERNEL_SAMPLES_OF(huber)

static int huber_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const double delta = kernel_attr_real(call->attr[0]);
    if (mean_loss_shape(call, out) != 0)
        return -1;
    if (!(delta > 0))
        return kernel_refuse_real(call, "delta", delta, "a positive number");
    return 0;
}

KERNEL_OP(huber_loss) = {
    .name = "huber_loss",
    KERNEL_IN("x", "target"),
    KERNEL_ATTRS({"delta", KERNEL_ATTR_REAL}),
    .n_out = 1,
    .saves_in = 3,
    .reads_for = {3, 3},
    .shape = huber_shape,
    .family = &kernel_op_huber,
    .forward = mean_loss_forward,
    .pullback = mean_loss_pullback,
    .cost = mean_loss_cost,
    .sample = huber_sample,
    .brief = "Mean Huber loss: squares up to a distance of delta, linear beyond.",
    .shapes = "x [...], target [...] -> []",
    .formula = "d = x - target, y = mean of |d| <= delta ? d^2 / 2 : delta (|d| - delta / 2)",
    .derivative = "x' += y' min(max(d, -delta), delta) / n, target' -= the same; n elements",
    .edges = "NaN for no elements; where |d| = delta the second derivative is half of that within; "
             "delta <= 0 and NaN are refused; delta = inf gives half of mse_loss",
    .source = "Huber, The Annals of Mathematical Statistics 35 (1964) 73-101, doi "
              "10.1214/aoms/1177703732",
};

static const struct kernel_sample bernoulli_samples[] = {
    MEAN_LOSS_SAMPLES(0.2, 0.8, 0.1, 0.9, .n_attr = 0),
};
KERNEL_SAMPLES_OF(bernoulli)

KERNEL_OP(binary_cross_entropy) = {
    .name = "binary_cross_entropy",
    KERNEL_IN("x", "target"),
    .n_out = 1,
    .saves_in = 3,
    .reads_for = {3, 1},
    .shape = mean_loss_shape,
    .family = &kernel_op_bernoulli_loss,
    .forward = mean_loss_forward,
    .pullback = mean_loss_pullback,
    .cost = mean_loss_cost,
    .sample = bernoulli_sample,
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

static const struct kernel_sample logistic_samples[] = {
    MEAN_LOSS_SAMPLES(-3, 3, 0.1, 0.9, .n_attr = 0),
};
KERNEL_SAMPLES_OF(logistic)

KERNEL_OP(binary_cross_entropy_with_logits) = {
    .name = "binary_cross_entropy_with_logits",
    KERNEL_IN("x", "target"),
    .n_out = 1,
    .saves_in = 3,
    .reads_for = {3, 1},
    .shape = mean_loss_shape,
    .family = &kernel_op_logistic_loss,
    .forward = mean_loss_forward,
    .pullback = mean_loss_pullback,
    .cost = mean_loss_cost,
    .sample = logistic_sample,
    .brief = "Mean cross entropy of the probabilities sigmoid(x) against targets in [0, 1].",
    .shapes = "x [...], target [...] -> []",
    .formula = "y = mean of ln(1 + e^x) - x target",
    .derivative = "x' += y' (sigmoid(x) - target) / n, target' -= y' x / n; n elements",
    .edges = "NaN for no elements; no overflow, and no cancellation for targets in [0, 1]; an "
             "infinite x gives 0 where the target is sigmoid(x), else inf",
};
