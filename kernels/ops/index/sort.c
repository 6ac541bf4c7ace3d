/* ops/index/sort.c: the numbers along an axis in order, and their places. */
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
    AXES_SAMPLE(2, (3, 5), -1, 1, 2, 1, 0),     AXES_SAMPLE(2, (4, 3), -1, 1, 2, 0, 1),
    AXES_SAMPLE(3, (2, 3, 2), -1, 1, 2, -2, 0), AXES_SAMPLE(1, (19), -1, 1, 2, 0, 1),
    AXES_SAMPLE(1, (1), -1, 1, 2, 0, 0),        AXES_SAMPLE(2, (3, 0), -1, 1, 2, 1, 0),
    AXES_SAMPLE(2, (0, 3), -1, 1, 2, 1, 0)};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    if (kernel_part_shape(call, out) != 0)
        return -1;
    out[1] = out[0];
    out[1].dtype = KERNEL_I64;
    return 0;
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    const int axis = kernel_part_axis(call, call->attr[0], x->rank);
    kernel_order_lines(call, axis, x->shape[axis], call->attr[1] != 0);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    kernel_along_pullback(rule, &kernel_op_scatter_add, rule->out[1]);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    const int64_t n = x->shape[kernel_part_axis(call, call->attr[0], x->rank)];
    const double depth = n > 1 ? ceil(log2((double)n)) : 0;
    return (struct kernel_cost){.flops = (uint64_t)depth * (uint64_t)x->size,
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(sort) = {
    .name = "sort",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"axis", KERNEL_ATTR_INT}, {"descending", KERNEL_ATTR_FLAG}),
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
    .brief = "The numbers along an axis in ascending or descending order, and where they were.",
    .shapes = "x [...,n,...] -> [...,n,...], indices i64 [...,n,...]",
    .formula = "y_i = x_indices_i, y_0 <= y_1 <= ...; descending: y_0 >= y_1 >= ...",
    .derivative = "x'_indices_i += y'_i",
    .edges = "equal numbers keep their order, also descending, and -0 equals 0; NaN comes last in "
             "both directions; a negative axis counts from the end",
};
