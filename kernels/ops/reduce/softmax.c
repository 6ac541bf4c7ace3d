/* ops/reduce/softmax.c: exponentials divided by their sum along one axis.
 *
 * Exponentials are taken of differences to the maximum, so that none overflows. Rows that lie dense
 * and fill some vectors are passed one by one, while they lie in cache.
 */
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "reduction_samples.h"
#include "shifted_exp.h"
#include "softmax_rows.h"

static const struct kernel_sample samples[] = {ONE_AXIS_SAMPLES(-3, 3)};
KERNEL_SAMPLES(samples)

enum { LEAST_COLUMNS = 64, FLOPS = 26 };

static bool is_dense_rows(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    const int64_t axis = call->attr[0];
    return x->size > 0 && x->contiguous && (axis == -1 || axis == x->rank - 1) &&
           x->shape[x->rank - 1] >= LEAST_COLUMNS;
}

static int forward(const struct kernel_call *call)
{
    struct kernel_view total;
    if (is_dense_rows(call)) {
        softmax_rows_run(call->out[0], call->in[0]->data, NULL, FLOPS);
        return 0;
    }
    if (shifted_exp_run(call, true, &total) != 0)
        return -1;
    const kernel_ref in[] = {call->out[0], &total.array};
    kernel_elementwise(LOOP_div, call->out[0], 2, in, 0, false);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref g = rule->adjoint[0], y = rule->out[0];
    if (g == NULL || !kernel_needs(rule, 0))
        return;
    const int64_t axis = rule->attr[0];
    if (axis == -1 || axis == g->rank - 1) {
        kernel_accumulate(rule, 0, &kernel_op_softmax_gradient, 2, (const kernel_ref[]){g, y}, 0,
                          NULL);
        return;
    }
    const kernel_ref weighted = kernel_emit2(rule, &kernel_op_mul, g, y);
    const kernel_ref mean = kernel_emit_reduction(rule, &kernel_op_sum, weighted, 0);
    const kernel_ref in[] = {kernel_emit2(rule, &kernel_op_sub, g, mean), y};
    kernel_accumulate(rule, 0, &kernel_op_mul, 2, in, 0, NULL);
}

KERNEL_OP(softmax) = {
    .name = "softmax",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"axis", KERNEL_ATTR_INT}),
    .n_out = 1,
    .saves_out = 1,
    .depends = kernel_depends_axes,
    .shape = kernel_shape_axes,
    .forward = forward,
    .pullback = pullback,
    .flops_per_element = FLOPS,
    .workspace = shifted_exp_workspace,
    .sample = sample,
    .brief = "Softmax along one axis.",
    .shapes = "x [...] -> [...]",
    .formula = "y = e^x / sum of e^x along the axis",
    .derivative = "x' += y (y' - sum of y' y along the axis)",
    .edges = "-inf gives 0; NaN along the axis where an element is inf or NaN, or all are -inf",
};
