/* ops/network/conv1d.c: convolution along one axis.
 *
 * It is conv2d of images of height 1, also backwards.
 */
#include "convolution.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"

static const struct kernel_sample samples[] = {
    CONVOLUTION_SAMPLE(3, (2, 2, 5), (3, 2, 2), 4, 1, 0, 1, 1),
    CONVOLUTION_SAMPLE(3, (1, 2, 6), (2, 1, 3), 4, 2, 2, 2, 2),
    CONVOLUTION_SAMPLE(3, (1, 1, 1), (1, 1, 1), 4, 1, 0, 1, 1),
    CONVOLUTION_SAMPLE(3, (0, 2, 3), (3, 2, 2), 4, 1, 1, 1, 1),
};
KERNEL_SAMPLES(samples)

/* conv2d's attributes. */
static void widen(const int64_t *attr, int64_t wide[CONVOLUTION_ATTRIBUTES])
{
    wide[0] = wide[4] = 1;
    wide[2] = 0;
    wide[1] = attr[0];
    wide[3] = attr[1];
    wide[5] = attr[2];
    wide[6] = attr[3];
}

static int make(const struct kernel_call *call, struct convolution *all)
{
    int64_t x[4], w[4], attr[CONVOLUTION_ATTRIBUTES];
    convolution_widen(call->in[0], x);
    convolution_widen(call->in[1], w);
    widen(call->attr, attr);
    return convolution_make(call, call->in[0]->dtype, x, w, attr, all);
}

static const struct convolution_family family = {
    .result = CONVOLUTION_Y, .rank = 3, .wanted = "x [n,c,l] and w [o,c/groups,k]", .make = make};

static kernel_ref wide(struct kernel_rule *rule, kernel_ref value)
{
    int64_t shape_of[4];
    convolution_widen(value, shape_of);
    return kernel_emit_shape(rule, &kernel_op_reshape, value, 4, shape_of);
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0], w = rule->in[1], g = rule->adjoint[0];
    int64_t attr[CONVOLUTION_ATTRIBUTES + 2];
    if (g == NULL)
        return;
    const kernel_ref across = wide(rule, g);
    widen(rule->attr, attr);
    if (kernel_needs(rule, 0)) {
        const kernel_ref in[] = {across, wide(rule, w)};
        attr[CONVOLUTION_ATTRIBUTES] = 0;
        attr[CONVOLUTION_ATTRIBUTES + 1] =
            x->shape[2] - convolution_image(g->shape[2], w->shape[2], attr[1], attr[3], attr[5], 0);
        const kernel_ref to_x =
            kernel_emit(rule, &kernel_op_conv_transpose2d, 2, in, CONVOLUTION_ATTRIBUTES + 2, attr);
        kernel_accumulate_value(rule, 0,
                                kernel_emit_shape(rule, &kernel_op_reshape, to_x, 3, x->shape));
    }
    if (kernel_needs(rule, 1)) {
        const kernel_ref in[] = {wide(rule, x), across};
        attr[CONVOLUTION_ATTRIBUTES] = 1;
        attr[CONVOLUTION_ATTRIBUTES + 1] = w->shape[2];
        const kernel_ref to_w =
            kernel_emit(rule, &kernel_op_conv2d_weights, 2, in, CONVOLUTION_ATTRIBUTES + 2, attr);
        kernel_accumulate_value(rule, 1,
                                kernel_emit_shape(rule, &kernel_op_reshape, to_w, 3, w->shape));
    }
}

KERNEL_OP(conv1d) = {
    .name = "conv1d",
    KERNEL_IN("x", "w"),
    KERNEL_ATTRS({"stride", KERNEL_ATTR_OPTION_ONE}, {"padding", KERNEL_ATTR_OPTION},
                 {"dilation", KERNEL_ATTR_OPTION_ONE}, {"groups", KERNEL_ATTR_OPTION_ONE}),
    .n_out = 1,
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
    .brief = "Convolution (cross-correlation) along the last axis, in groups of channels; a bias "
             "[o,1] is added by ad_add.",
    .shapes =
        "x [n,c,l], w [o,c/groups,k] -> [n,o,m], m = (l + 2 padding - dilation (k - 1) - 1) / "
        "stride + 1 rounded down",
    .formula = "y[n,o,q] = sum over c,j of w[o,c,j] x[n,c,q stride + j dilation - padding], 0 "
               "outside of x",
    .derivative =
        "x' += the transposed convolution of y', w'[o,c,j] += the same sum over n,q of y' "
        "x",
    .edges = "0 where there are no channels; a window that does not fit into the padded axis, "
             "strides and dilations below 1, and negative padding are refused",
};
