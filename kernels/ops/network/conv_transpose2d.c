/* ops/network/conv_transpose2d.c: transposed convolution of images.
 *
 * It is the adjoint of conv2d in the images.
 */
#include "convolution.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"

#include <limits.h>

static const struct kernel_attr_info attrs[] = {CONVOLUTION_ATTRIBUTE_NAMES,
                                                {"output_padding_h", KERNEL_ATTR_OPTION},
                                                {"output_padding_w", KERNEL_ATTR_OPTION}};

static const struct kernel_sample samples[] = {
    CONVOLUTION_SAMPLE(4, (2, 3, 3, 2), (3, 2, 2, 2), 9, 1, 1, 0, 0, 1, 1, 1, 0, 0),
    CONVOLUTION_SAMPLE(4, (1, 1, 1, 1), (1, 1, 1, 1), 9, 1, 1, 0, 0, 1, 1, 1, 0, 0),
    CONVOLUTION_SAMPLE(4, (1, 2, 2, 3), (2, 1, 3, 2), 9, 2, 3, 1, 0, 1, 2, 2, 1, 2),
    CONVOLUTION_SAMPLE(4, (2, 2, 2, 2), (2, 2, 1, 1), 9, 1, 1, 0, 0, 1, 1, 2, 0, 0),
    CONVOLUTION_SAMPLE(4, (0, 2, 3, 3), (2, 1, 2, 2), 9, 1, 1, 0, 0, 1, 1, 1, 0, 0),
    CONVOLUTION_SAMPLE(4, (1, 0, 3, 3), (0, 2, 2, 2), 9, 1, 1, 0, 0, 1, 1, 1, 0, 0),
};
KERNEL_SAMPLES(samples)

static int make(const struct kernel_call *call, struct convolution *all)
{
    const kernel_ref x = call->in[0], w = call->in[1];
    const int64_t *const attr = call->attr, *const beyond = attr + CONVOLUTION_ATTRIBUTES;
    int64_t image[4] = {x->shape[0]};
    for (int i = 0; i < CONVOLUTION_ATTRIBUTES; i++)
        if (attr[i] < 0 || attr[i] > INT_MAX)
            return kernel_refuse_operands(call, ", ", "%s %lld is out of range", attrs[i].name,
                                          (long long)attr[i]);
    if (x->shape[1] != w->shape[0] || __builtin_mul_overflow(w->shape[1], attr[6], &image[1]))
        return kernel_refuse_operands(call, ", ", "x has %lld channels, w takes %lld",
                                      (long long)x->shape[1], (long long)w->shape[0]);
    for (int k = 0; k < 2; k++) {
        if (beyond[k] < 0 || beyond[k] >= attr[k])
            return kernel_refuse_operands(call, ", ", "%s %lld is not in 0..%lld",
                                          attrs[CONVOLUTION_ATTRIBUTES + k].name,
                                          (long long)beyond[k], (long long)attr[k] - 1);
        if (x->shape[2 + k] > INT_MAX || w->shape[2 + k] > INT_MAX || x->shape[2 + k] < 1)
            return kernel_refuse_operands(call, ", ", "there is no image of extent %lld",
                                          (long long)x->shape[2 + k]);
        image[2 + k] = convolution_image(x->shape[2 + k], w->shape[2 + k], attr[k], attr[2 + k],
                                         attr[4 + k], beyond[k]);
        if (image[2 + k] < 1)
            return kernel_refuse_operands(call, ", ", "the result has an extent of %lld",
                                          (long long)image[2 + k]);
    }
    return convolution_make(call, x->dtype, image, w->shape, attr, all);
}

static const struct convolution_family family = {.result = CONVOLUTION_X,
                                                 .rank = 4,
                                                 .wanted = "x [n,o,h,w] and w [o,c/groups,kh,kw]",
                                                 .make = make};

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0], w = rule->in[1], g = rule->adjoint[0];
    if (g == NULL)
        return;
    int64_t attr[CONVOLUTION_ATTRIBUTES + 2];
    convolution_extend(rule->attr, w->shape + 2, attr);
    const kernel_ref to_x[] = {g, w}, to_w[] = {g, x};
    kernel_accumulate(rule, 0, &kernel_op_conv2d, 2, to_x, CONVOLUTION_ATTRIBUTES, attr);
    kernel_accumulate(rule, 1, &kernel_op_conv2d_weights, 2, to_w, CONVOLUTION_ATTRIBUTES + 2,
                      attr);
}

KERNEL_OP(conv_transpose2d) = {
    .name = "conv_transpose2d",
    KERNEL_IN("x", "w"),
    .attrs = attrs,
    .n_out = 1,
    .n_attrs = 9,
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
    .brief = "Transposed convolution of images: the adjoint of conv2d in its images.",
    .shapes =
        "x [n,o,h,w], w [o,c/groups,kh,kw] -> [n,c,H,W], H = (h - 1) stride_h - 2 padding_h + "
        "dilation_h (kh - 1) + 1 + output_padding_h, W likewise",
    .formula =
        "y[n,c,p stride_h + i dilation_h - padding_h, q stride_w + j dilation_w - padding_w] "
        "+= w[o,c,i,j] x[n,o,p,q], what falls outside left out",
    .derivative = "x' += conv2d(y', w), w'[o,c,i,j] += the same sum over n,p,q of y' x",
    .edges = "0 where nothing falls; output padding is less than the stride",
};
