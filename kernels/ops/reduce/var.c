/* ops/reduce/var.c: variance over axes. */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "reduction_samples.h"
#include "variance.h"

static const struct kernel_sample samples[] = {
    REDUCTION_SAMPLES_WITH(1, -2, 2), REDUCTION_SAMPLES_WITH(0, -2, 2),
    AXES_SAMPLE(0, (0), -1, 1, 2, 0, 0), AXES_SAMPLE(1, (65), -1, 1, 2, 0, 1)};
KERNEL_SAMPLES(samples)

static int forward(const struct kernel_call *call)
{
    return kernel_variance(call, false);
}

static void pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const kernel_ref share =
        kernel_emit_real(rule, &kernel_op_scale, 2 / kernel_variance_divisor(rule),
                         kernel_emit_kept_at(rule, rule->adjoint[0], 2));
    const kernel_ref in[] = {kernel_emit_centred(rule), share};
    kernel_accumulate(rule, 0, &kernel_op_mul, 2, in, 0, NULL);
}

KERNEL_OP(var) = {
    .name = "var",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"keepdim", KERNEL_ATTR_FLAG}, {"correction", KERNEL_ATTR_INT},
                 {"axes", KERNEL_ATTR_AXES}),
    .n_out = 1,
    .saves_in = 1,
    .depends = kernel_depends_axes,
    .shape = kernel_variance_shape,
    .forward = forward,
    .pullback = pullback,
    .cost = kernel_variance_cost,
    .workspace = kernel_variance_workspace,
    .sample = sample,
    .brief = "Variance over axes; correction 1 is the unbiased estimate, 0 the population's.",
    .shapes = "x [...] -> x without the axes, or with extents of 1 there",
    .formula = "y = sum over the axes of (x - mean)^2 / (number of terms - correction)",
    .derivative = "x' += 2 y' (x - mean) / (number of terms - correction)",
    .edges = "NaN, and a gradient of NaN, where there is nothing or not more than `correction` "
             "terms; NaN if an element is infinite; a negative correction is refused; "
             "sums and squares on the way may leave the range",
};
