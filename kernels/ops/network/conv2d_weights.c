/* ops/network/conv2d_weights.c: conv2d's adjoint in the weights.
 *
 * Its own adjoints are the other two.
 */
#include "convolution.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"

static const struct kernel_attr_info attrs[] = {
    CONVOLUTION_ATTRIBUTE_NAMES, {"kh", KERNEL_ATTR_INT}, {"kw", KERNEL_ATTR_INT}};

static const struct kernel_sample samples[] = {
    CONVOLUTION_SAMPLE(4, (2, 2, 4, 3), (2, 3, 3, 2), 9, 1, 1, 0, 0, 1, 1, 1, 2, 2),
    CONVOLUTION_SAMPLE(4, (1, 1, 1, 1), (1, 1, 1, 1), 9, 1, 1, 0, 0, 1, 1, 1, 1, 1),
    CONVOLUTION_SAMPLE(4, (1, 2, 4, 5), (1, 2, 2, 7), 9, 2, 1, 1, 2, 1, 2, 2, 3, 2),
    CONVOLUTION_SAMPLE(4, (2, 2, 2, 2), (2, 2, 2, 2), 9, 1, 1, 0, 0, 1, 1, 2, 1, 1),
    CONVOLUTION_SAMPLE(4, (0, 2, 3, 3), (0, 3, 2, 2), 9, 1, 1, 0, 0, 1, 1, 1, 2, 2),
    CONVOLUTION_SAMPLE(4, (1, 0, 3, 3), (1, 2, 2, 2), 9, 1, 1, 0, 0, 1, 1, 1, 2, 2),
};
KERNEL_SAMPLES(samples)

static int make(const struct kernel_call *call, struct convolution *all)
{
    const kernel_ref x = call->in[0], g = call->in[1];
    const int64_t *const attr = call->attr, groups = attr[6] > 0 ? attr[6] : 1;
    const int64_t weights[] = {g->shape[1], x->shape[1] / groups, attr[7], attr[8]};
    if (convolution_make(call, x->dtype, x->shape, weights, attr, all) != 0)
        return -1;
    if (g->shape[0] != all->n || g->shape[2] != all->result[0] || g->shape[3] != all->result[1])
        return kernel_refuse_operands(call, ", ", "g is no result of x");
    return 0;
}

static const struct convolution_family family = {
    .result = CONVOLUTION_W, .rank = 4, .wanted = "x [n,c,h,w] and g [n,o,oh,ow]", .make = make};

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0], g = rule->in[1], k = rule->adjoint[0];
    if (k == NULL)
        return;
    int64_t attr[CONVOLUTION_ATTRIBUTES + 2];
    convolution_extend_to(rule->attr, x, g, k, attr);
    const kernel_ref to_x[] = {g, k}, to_g[] = {x, k};
    kernel_accumulate(rule, 0, &kernel_op_conv_transpose2d, 2, to_x, CONVOLUTION_ATTRIBUTES + 2,
                      attr);
    kernel_accumulate(rule, 1, &kernel_op_conv2d, 2, to_g, CONVOLUTION_ATTRIBUTES, attr);
}

KERNEL_OP(conv2d_weights) = {
    .name = "conv2d_weights",
    KERNEL_IN("x", "g"),
    .attrs = attrs,
    .n_out = 1,
    .n_attrs = 9,
    .hidden = true,
    .accumulates = true,
    .saves_in = 3,
    .reads_for = {2, 1},
    .family = &family,
    .depends = convolution_depends,
    .shape = convolution_shape,
    .forward = convolution_forward,
    .pullback = pullback,
    .cost = convolution_cost,
    .workspace = convolution_workspace,
    .sample = sample,
    .brief = "Adjoint of conv2d in its weights.",
    .shapes = "x [n,c,h,w], g [n,o,oh,ow] -> [o,c/groups,kh,kw]",
    .formula = "y[o,c,i,j] = sum over n,p,q of g[n,o,p,q] x[n,c,p stride_h + i dilation_h - "
               "padding_h, q stride_w + j dilation_w - padding_w], 0 outside of x",
    .derivative = "x' += conv_transpose2d(g, y'), g' += conv2d(x, y')",
};
