/* ops/reduce/sum_to.c: sums over the axes along which a smaller shape broadcasts to the operand's.
 *
 * The adjoint of broadcast_to.
 */
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "reduction_samples.h"

static const struct kernel_sample samples[] = {
    AXES_SAMPLE(2, (3, 4), -1, 1, 1, 4),
    AXES_SAMPLE(2, (3, 4), -1, 1, 0, 0),
    AXES_SAMPLE(3, (2, 3, 5), -1, 1, 2, 3, 1),
    AXES_SAMPLE(2, (0, 4), -1, 1, 1, 4),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    const int rank = call->n_attr;
    if (kernel_require_float(call, 0) != 0)
        return -1;
    if (rank > x->rank)
        return kernel_refuse_operands(call, "", "%d axes do not become %d", x->rank, rank);
    kernel_shape_begin(out, x->dtype, rank);
    for (int axis = 0; axis < rank; axis++) {
        const int64_t extent = x->shape[axis + x->rank - rank];
        out->extent[axis] = call->attr[axis];
        if (call->attr[axis] != 1 && call->attr[axis] != extent)
            return kernel_refuse_operands(call, "", "extent %lld does not become %lld",
                                          (long long)extent, (long long)call->attr[axis]);
    }
    return 0;
}

static int forward(const struct kernel_call *call)
{
    if (!call->accumulate)
        kernel_fill(call->out[0], 0);
    kernel_reduce(KERNEL_REDUCE_SUM, call->out[0], call->in[0]);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0];
    if (rule->adjoint[0] != NULL && kernel_needs(rule, 0))
        kernel_accumulate_value(
            rule, 0,
            kernel_emit_shape(rule, &kernel_op_broadcast_to, rule->adjoint[0], x->rank, x->shape));
}

KERNEL_OP(sum_to) = {
    .name = "sum_to",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"shape", KERNEL_ATTR_SHAPE}),
    .n_out = 1,
    .hidden = true,
    .accumulates = true,
    .depends = kernel_depends_elements,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .flops_per_element = 1,
    .sample = sample,
    .brief = "Sum over the axes that broadcasting to the operand's shape would repeat.",
    .shapes = "x [...] -> shape",
    .formula = "y = sum of x over the repeated axes",
    .derivative = "x' += y', broadcast",
    .edges = "the sum of nothing is 0",
};
