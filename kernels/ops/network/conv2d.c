/* ops/network/conv2d.c: convolution of images.
 *
 * The adjoints are ops of their own, and each other's adjoints.
 */
#include "convolution.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"

static const struct kernel_attr_info attrs[] = {CONVOLUTION_ATTRIBUTE_NAMES};

static const struct kernel_sample samples[] = {
    CONVOLUTION_SAMPLE(4, (2, 2, 4, 3), (3, 2, 2, 2), 7, 1, 1, 0, 0, 1, 1, 1),
    CONVOLUTION_SAMPLE(4, (1, 1, 1, 1), (1, 1, 1, 1), 7, 1, 1, 0, 0, 1, 1, 1),
    CONVOLUTION_SAMPLE(4, (1, 2, 4, 5), (2, 1, 3, 2), 7, 2, 1, 1, 2, 1, 2, 2),
    CONVOLUTION_SAMPLE(4, (2, 1, 5, 2), (2, 1, 2, 2), 7, 2, 2, 0, 1, 3, 1, 1),
    CONVOLUTION_SAMPLE(4, (2, 4, 2, 2), (2, 2, 1, 1), 7, 1, 1, 0, 0, 1, 1, 2),
    CONVOLUTION_SAMPLE(4, (1, 1, 2, 2), (1, 1, 1, 1), 7, 1, 1, 2, 0, 1, 1, 1),
    CONVOLUTION_SAMPLE(4, (0, 2, 3, 3), (3, 2, 2, 2), 7, 1, 1, 0, 0, 1, 1, 1),
    CONVOLUTION_SAMPLE(4, (1, 2, 3, 3), (0, 2, 2, 2), 7, 1, 1, 0, 0, 1, 1, 1),
    CONVOLUTION_SAMPLE(4, (1, 0, 3, 3), (2, 0, 2, 2), 7, 1, 1, 0, 0, 1, 1, 1),
};
KERNEL_SAMPLES(samples)

static int make(const struct kernel_call *call, struct convolution *all)
{
    const kernel_ref x = call->in[0], w = call->in[1];
    return convolution_make(call, x->dtype, x->shape, w->shape, call->attr, all);
}

static const struct convolution_family family = {.result = CONVOLUTION_Y,
                                                 .rank = 4,
                                                 .wanted = "x [n,c,h,w] and w [o,c/groups,kh,kw]",
                                                 .make = make};

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0], w = rule->in[1], g = rule->adjoint[0];
    if (g == NULL)
        return;
    int64_t attr[CONVOLUTION_ATTRIBUTES + 2];
    convolution_extend_to(rule->attr, x, g, w, attr);
    const kernel_ref to_x[] = {g, w}, to_w[] = {x, g};
    kernel_accumulate(rule, 0, &kernel_op_conv_transpose2d, 2, to_x, CONVOLUTION_ATTRIBUTES + 2,
                      attr);
    convolution_extend(rule->attr, w->shape + 2, attr);
    kernel_accumulate(rule, 1, &kernel_op_conv2d_weights, 2, to_w, CONVOLUTION_ATTRIBUTES + 2,
                      attr);
}

KERNEL_OP(conv2d) = {
    .name = "conv2d",
    KERNEL_IN("x", "w"),
    .attrs = attrs,
    .n_out = 1,
    .n_attrs = 7,
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
    .brief =
        "Convolution (cross-correlation) of images with windows, in groups of channels; a bias "
        "[o,1,1] is added by ad_add.",
    .shapes =
        "x [n,c,h,w], w [o,c/groups,kh,kw] -> [n,o,oh,ow], oh = (h + 2 padding_h - dilation_h "
        "(kh - 1) - 1) / stride_h + 1 rounded down, ow likewise",
    .formula = "y[n,o,p,q] = sum over c,i,j of w[o,c,i,j] x[n,c,p stride_h + i dilation_h - "
               "padding_h, q stride_w + j dilation_w - padding_w], 0 outside of x",
    .derivative = "x' += conv_transpose2d(y', w), w'[o,c,i,j] += the same sum over n,p,q of y' x",
    .edges = "0 where there are no channels; a window that does not fit into the padded image, "
             "strides and dilations below 1, and negative padding are refused",
};
