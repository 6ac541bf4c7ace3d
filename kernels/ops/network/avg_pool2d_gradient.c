/* ops/network/avg_pool2d_gradient.c: the adjoint of avg_pool2d, of which it is the adjoint. */
#include "dense.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "pooling.h"
#include "reduction_samples.h"

#include <string.h>

static const struct kernel_sample samples[] = {
    AXES_SAMPLE(3, (2, 2, 2), -2, 2, 9, 2, 2, 2, 2, 0, 0, 0, 4, 5),
    AXES_SAMPLE(2, (1, 1), -2, 2, 9, 1, 1, 1, 1, 0, 0, 1, 1, 1),
    AXES_SAMPLE(3, (2, 5, 3), -2, 2, 9, 3, 2, 1, 2, 1, 1, 1, 5, 4),
    AXES_SAMPLE(3, (2, 5, 3), -2, 2, 9, 3, 2, 1, 2, 1, 1, 0, 5, 4),
    AXES_SAMPLE(3, (0, 2, 2), -2, 2, 9, 2, 2, 1, 1, 0, 0, 0, 3, 3),
};
KERNEL_SAMPLES(samples)

/* As avg_pool2d of an x of this shape. */
static int make(const struct kernel_call *call, struct pooling *all)
{
    const kernel_ref g = call->in[0];
    int64_t shape_of[KERNEL_MAX_RANK];
    struct kernel_array x = *g;
    const kernel_ref in[] = {&x};
    struct kernel_call pooled = *call;
    memcpy(shape_of, g->shape, g->rank * sizeof *shape_of);
    shape_of[g->rank - 2] = call->attr[7];
    shape_of[g->rank - 1] = call->attr[8];
    x.shape = shape_of;
    pooled.in = in;
    if (pooling_make(&pooled, all) != 0)
        return -1;
    if (g->shape[g->rank - 2] != all->result[0] || g->shape[g->rank - 1] != all->result[1])
        return kernel_refuse_operands(call, "", "g is no result of such windows");
    return 0;
}

static const struct pooling_family family = {.axes = 2, .mean = true, .make = make};

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref g = call->in[0];
    struct pooling all;
    if (kernel_require_float(call, 0) != 0)
        return -1;
    if (g->rank < 2)
        return kernel_refuse_operands(call, "", "g [...,oh,ow] is wanted");
    if (make(call, &all) != 0)
        return -1;
    kernel_shape_begin(out, g->dtype, g->rank);
    for (int axis = 0; axis < g->rank - 2; axis++)
        out->extent[axis] = g->shape[axis];
    out->extent[g->rank - 2] = call->attr[7];
    out->extent[g->rank - 1] = call->attr[8];
    return 0;
}

static size_t workspace(const struct kernel_call *call)
{
    struct pooling all;
    return dense_workspace(call) + (make(call, &all) == 0 ? pooling_spread_space(&all) : 0);
}

static int forward(const struct kernel_call *call)
{
    struct pooling all;
    char *space = call->workspace;
    if (make(call, &all) != 0)
        return -1;
    const void *g = dense_data(call->in[0], &space);
    pooling_spread(&all, g, call->out[0]->data, call->accumulate, space);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] != NULL)
        kernel_accumulate(rule, 0, &kernel_op_avg_pool2d, 1, rule->adjoint, 7, rule->attr);
}

KERNEL_OP(avg_pool2d_gradient) = {
    .name = "avg_pool2d_gradient",
    KERNEL_IN("g"),
    KERNEL_ATTRS({"kernel_h", KERNEL_ATTR_INT}, {"kernel_w", KERNEL_ATTR_INT},
                 {"stride_h", KERNEL_ATTR_INT}, {"stride_w", KERNEL_ATTR_INT},
                 {"padding_h", KERNEL_ATTR_INT}, {"padding_w", KERNEL_ATTR_INT},
                 {"skip_padding", KERNEL_ATTR_FLAG}, {"h", KERNEL_ATTR_INT},
                 {"w", KERNEL_ATTR_INT}),
    .n_out = 1,
    .hidden = true,
    .accumulates = true,
    .family = &family,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = pooling_cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "Adjoint of avg_pool2d.",
    .shapes = "g [...,oh,ow] -> [...,h,w]",
    .formula = "y = sum over the windows that an element is in of g / number of terms",
    .derivative = "g' += avg_pool2d(y')",
};
