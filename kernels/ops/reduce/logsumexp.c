/* ops/reduce/logsumexp.c: logarithm of the sum of exponentials over axes.
 *
 * Exponentials are taken of differences to the maximum, so that none overflows.
 */
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "reduction_samples.h"
#include "shifted_exp.h"

static const struct kernel_sample samples[] = {REDUCTION_SAMPLES(-3, 3),
                                               AXES_SAMPLE(2, (3, 0), -1, 1, 2, 0, 0)};
KERNEL_SAMPLES(samples)

static size_t workspace(const struct kernel_call *call)
{
    return dense_copy_bytes(call->in[0]) + dense_copy_bytes(call->out[0]);
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    struct kernel_array *y = call->out[0];
    struct kernel_view most, e, kept;
    char *space = call->workspace;
    unsigned axes;
    if (kernel_axes(call, 1, &axes) != 0)
        return -1;
    shifted_exp_most(x, axes, space + dense_copy_bytes(x), &most);
    shifted_exp_finite(&most.array);
    kernel_view_dense(&e, space, x->dtype, x->rank, x->shape);
    const kernel_ref shift[] = {x, &most.array};
    kernel_elementwise(LOOP_sub, &e.array, 2, shift, 0, false);
    kernel_loop_run(LOOP_exp, x->dtype, x->size, space, space, NULL, 0, false);
    kernel_fill(y, 0);
    kernel_keep_axes(&kept, y, x, axes);
    kernel_reduce(KERNEL_REDUCE_SUM, &kept.array, &e.array);
    const kernel_ref sum = &kept.array, back[] = {&kept.array, &most.array};
    kernel_elementwise(LOOP_log, &kept.array, 1, &sum, 0, false);
    kernel_elementwise(LOOP_add, &kept.array, 2, back, 0, false);
    return 0;
}

/* y is rounded at its own size, so e^(x - y) sums to s, near 1 at best: it is divided by s, or by 1
 * where s is NaN. The quotient does not depend on y. */
static void pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const kernel_ref y = kernel_emit_kept(rule, rule->out[0]);
    const kernel_ref share =
        kernel_emit1(rule, &kernel_op_exp, kernel_emit2(rule, &kernel_op_sub, rule->in[0], y));
    const kernel_ref sum = kernel_emit_reduction(rule, &kernel_op_sum, share, 1);
    const kernel_ref excess = kernel_emit2(rule, &kernel_op_gate, sum,
                                           kernel_emit_real(rule, &kernel_op_offset, -1, sum));
    const kernel_ref in[] = {
        share, kernel_emit2(rule, &kernel_op_div, kernel_emit_kept(rule, rule->adjoint[0]),
                            kernel_emit_real(rule, &kernel_op_offset, 1, excess))};
    kernel_accumulate(rule, 0, &kernel_op_mul, 2, in, 0, NULL);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    return (struct kernel_cost){.flops =
                                    (uint64_t)(23 * call->in[0]->size + 21 * call->out[0]->size),
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(logsumexp) = {
    .name = "logsumexp",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"keepdim", KERNEL_ATTR_FLAG}, {"axes", KERNEL_ATTR_AXES}),
    .n_out = 1,
    .saves_in = 1,
    .saves_out = 1,
    .depends = kernel_depends_axes,
    .shape = kernel_reduction_shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "Logarithm of the sum of exponentials over axes.",
    .shapes = "x [...] -> x without the axes, or with extents of 1 there",
    .formula = "y = ln(sum over the axes of e^x)",
    .derivative = "x' += y' e^(x - y)",
    .edges =
        "of nothing it is -inf; inf if any element is inf and none is NaN, and the gradient of "
        "infinite elements is then NaN; -inf where all are, with the gradient NaN",
};
