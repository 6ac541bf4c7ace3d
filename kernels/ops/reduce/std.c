/* ops/reduce/std.c: standard deviation over axes. */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "reduction_samples.h"
#include "variance.h"

static const struct kernel_sample samples[] = {
    REDUCTION_SAMPLES_WITH(0, -2, 2), AXES_SAMPLE(2, (3, 5), -2, 2, 2, 0, 1),
    AXES_SAMPLE(2, (3, 5), -2, 2, 3, 1, 1, 0), AXES_SAMPLE(0, (0), -1, 1, 2, 0, 0),
    AXES_SAMPLE(1, (65), -1, 1, 2, 0, 1)};
KERNEL_SAMPLES(samples)

static int forward(const struct kernel_call *call)
{
    return kernel_variance(call, true);
}

/* Distances are divided first, since 1 / y may leave the range. Where y is 0 the divisor is 1 and
 * the share 0: constants, which do not depend on y. */
static void pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const kernel_ref g = kernel_emit_kept_at(rule, rule->adjoint[0], 2);
    const kernel_ref y = kernel_emit_kept_at(rule, rule->out[0], 2);
    const kernel_ref zero =
        kernel_emit2(rule, &kernel_op_tie, y, kernel_emit_real(rule, &kernel_op_scale, 0, y));
    const kernel_ref safe = kernel_emit2(rule, &kernel_op_add, y, zero);
    const kernel_ref share =
        kernel_emit_real(rule, &kernel_op_scale, 1 / kernel_variance_divisor(rule), g);
    const kernel_ref in[] = {kernel_emit2(rule, &kernel_op_div, kernel_emit_centred(rule), safe),
                             kernel_emit2(rule, &kernel_op_pick, y, share)};
    kernel_accumulate(rule, 0, &kernel_op_mul, 2, in, 0, NULL);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    struct kernel_cost sum = kernel_variance_cost(call);
    sum.flops += 4 * (uint64_t)call->out[0]->size;
    return sum;
}

KERNEL_OP(std) = {
    .name = "std",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"keepdim", KERNEL_ATTR_FLAG}, {"correction", KERNEL_ATTR_INT},
                 {"axes", KERNEL_ATTR_AXES}),
    .n_out = 1,
    .saves_in = 1,
    .saves_out = 1,
    .depends = kernel_depends_axes,
    .shape = kernel_variance_shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = kernel_variance_workspace,
    .sample = sample,
    .brief = "Standard deviation over axes; correction 1 is that of the unbiased variance, 0 the "
             "population's.",
    .shapes = "x [...] -> x without the axes, or with extents of 1 there",
    .formula = "y = (sum over the axes of (x - mean)^2 / (number of terms - correction))^(1/2)",
    .derivative = "x' += y' (x - mean) / (y (number of terms - correction))",
    .edges = "0 with a gradient of 0 where all elements are equal; NaN, and a gradient of NaN, "
             "where there is nothing or not more than `correction` terms; NaN if an element is "
             "infinite; a negative correction is refused; "
             "sums and squares on the way may leave the range",
};
