/* ops/index/topk.c: the k greatest or least numbers along an axis, and their places.
 *
 * A heap of k where k is a small part of the axis.
 */
#include "along_axis.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "order.h"
#include "part.h"
#include "reduction_samples.h"

#include <math.h>

static const char *const results[] = {"indices"};

static const struct kernel_sample samples[] = {
    AXES_SAMPLE(2, (3, 5), -1, 1, 3, 1, 2, 0),     AXES_SAMPLE(2, (4, 3), -1, 1, 3, 0, 3, 1),
    AXES_SAMPLE(3, (2, 3, 2), -1, 1, 3, -2, 1, 0), AXES_SAMPLE(1, (33), -1, 1, 3, 0, 3, 1),
    AXES_SAMPLE(1, (4), -1, 1, 3, 0, 4, 0),        AXES_SAMPLE(1, (4), -1, 1, 3, 0, 0, 0),
    AXES_SAMPLE(2, (3, 0), -1, 1, 3, 1, 0, 0),     AXES_SAMPLE(2, (0, 3), -1, 1, 3, 1, 2, 1)};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    if (kernel_require_float(call, 0) != 0)
        return -1;
    const int axis = kernel_part_axis(call, call->attr[0], x->rank);
    if (axis < 0)
        return -1;
    if (call->attr[1] < 0 || call->attr[1] > x->shape[axis])
        return kernel_refuse_operands(call, "", "k = %lld is not in 0..%lld of axis %d",
                                      (long long)call->attr[1], (long long)x->shape[axis], axis);
    for (int o = 0; o < 2; o++) {
        kernel_shape_begin(&out[o], o ? (int)KERNEL_I64 : x->dtype, x->rank);
        for (int i = 0; i < x->rank; i++)
            out[o].extent[i] = i == axis ? call->attr[1] : x->shape[i];
    }
    return 0;
}

static int forward(const struct kernel_call *call)
{
    const int axis = kernel_part_axis(call, call->attr[0], call->in[0]->rank);
    kernel_order_lines(call, axis, call->attr[1], call->attr[2] == 0);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    kernel_along_pullback(rule, &kernel_op_scatter_add, rule->out[1]);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const int64_t k = call->attr[1];
    const double depth = k > 1 ? ceil(log2((double)k)) : 0;
    return (struct kernel_cost){.flops = (uint64_t)call->in[0]->size +
                                         (uint64_t)depth * (uint64_t)call->out[0]->size,
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(topk) = {
    .name = "topk",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"axis", KERNEL_ATTR_INT}, {"k", KERNEL_ATTR_INT}, {"smallest", KERNEL_ATTR_FLAG}),
    .n_out = 2,
    .n_results = 2,
    .result_names = results,
    .saves_out = 2,
    .depends = kernel_depends_axes,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = kernel_order_workspace,
    .sample = sample,
    .brief =
        "The k greatest numbers along an axis in descending order, or the k least in ascending "
        "order, and where they were.",
    .shapes = "x [...,n,...] -> [...,k,...], indices i64 [...,k,...]",
    .formula = "y = the first k of sort(x)",
    .derivative = "x'_indices_i += y'_i",
    .edges =
        "the first of equal numbers come first, and -0 equals 0; NaN only where there are fewer "
        "than k other numbers; k beyond n is an error",
};
