/* ops/reduce/log_softmax.c: logarithm of softmax along one axis.
 *
 * Exponentials are taken of differences to the maximum, so that none overflows.
 */
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "reduction_samples.h"
#include "shifted_exp.h"

static const struct kernel_sample samples[] = {ONE_AXIS_SAMPLES(-3, 3)};
KERNEL_SAMPLES(samples)

static int forward(const struct kernel_call *call)
{
    struct kernel_view total;
    if (shifted_exp_run(call, false, &total) != 0)
        return -1;
    const kernel_ref sum = &total.array, in[] = {call->out[0], &total.array};
    kernel_elementwise(LOOP_log, &total.array, 1, &sum, 0, false);
    kernel_elementwise(LOOP_sub, call->out[0], 2, in, 0, false);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref g = rule->adjoint[0];
    if (g == NULL || !kernel_needs(rule, 0))
        return;
    const kernel_ref p = kernel_emit1(rule, &kernel_op_exp, rule->out[0]);
    const kernel_ref total = kernel_emit_reduction(rule, &kernel_op_sum, g, 0);
    const kernel_ref in[] = {g, kernel_emit2(rule, &kernel_op_mul, p, total)};
    kernel_accumulate(rule, 0, &kernel_op_sub, 2, in, 0, NULL);
}

KERNEL_OP(log_softmax) = {
    .name = "log_softmax",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"axis", KERNEL_ATTR_INT}),
    .n_out = 1,
    .saves_out = 1,
    .depends = kernel_depends_axes,
    .shape = kernel_shape_axes,
    .forward = forward,
    .pullback = pullback,
    .flops_per_element = 26,
    .workspace = shifted_exp_workspace,
    .sample = sample,
    .brief = "Logarithm of softmax along one axis.",
    .shapes = "x [...] -> [...]",
    .formula = "y = x - ln(sum of e^x along the axis)",
    .derivative = "x' += y' - e^y (sum of y' along the axis)",
    .edges = "-inf gives -inf; NaN along the axis where an element is inf or NaN, or all are -inf",
};
