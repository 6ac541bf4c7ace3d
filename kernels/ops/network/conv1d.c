/* ops/network/conv1d.c: convolution along one axis.
 *
 * May include: convolution.h, dense.h, op_rules.h, kernel_ops.h. It is conv2d of images of height
 * 1, also backwards.
 */
#include "convolution.h"
#include "dense.h"
#include "kernel_ops.h"
#include "op_rules.h"

static const char *const names[] = {"x", "w"};
static const struct kernel_attr_info attrs[] = {{"stride", KERNEL_ATTR_INT},
                                                {"padding", KERNEL_ATTR_INT},
                                                {"dilation", KERNEL_ATTR_INT},
                                                {"groups", KERNEL_ATTR_INT}};

/* clang-format off */
#define CONV_SAMPLE(x_extents, w_extents, ...)                                                     \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_F64}, .rank = {3, 3},                                 \
     .shape = {{EXTENTS x_extents}, {EXTENTS w_extents}}, .low = {-1, -1}, .high = {1, 1},         \
     .n_attr = 4, .attr = {__VA_ARGS__}}
#define EXTENTS(...) __VA_ARGS__
/* clang-format on */
static const struct kernel_sample samples[] = {
    CONV_SAMPLE((2, 2, 5), (3, 2, 2), 1, 0, 1, 1),
    CONV_SAMPLE((1, 2, 6), (2, 1, 3), 2, 2, 2, 2),
    CONV_SAMPLE((1, 1, 1), (1, 1, 1), 1, 0, 1, 1),
    CONV_SAMPLE((0, 2, 3), (3, 2, 2), 1, 1, 1, 1),
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

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0], w = call->in[1];
    struct convolution all;
    if (kernel_require_float(call, 0) != 0 || kernel_require_float(call, 1) != 0)
        return -1;
    if (x->rank != 3 || w->rank != 3)
        return kernel_refuse_operands(call, ", ", "x [n,c,l] and w [o,c/groups,k] are wanted");
    if (make(call, &all) != 0)
        return -1;
    kernel_shape_begin(out, x->dtype, 3);
    out->extent[0] = all.n;
    out->extent[1] = all.o;
    out->extent[2] = all.result[1];
    return 0;
}

static size_t workspace(const struct kernel_call *call)
{
    struct convolution all;
    return make(call, &all) == 0 ? dense_workspace(call) + convolution_space(&all) : 0;
}

static int forward(const struct kernel_call *call)
{
    struct convolution all;
    char *space = call->workspace;
    if (make(call, &all) != 0)
        return -1;
    const void *x = dense_data(call->in[0], &space);
    const void *w = dense_data(call->in[1], &space);
    convolution_forward(&all, x, w, call->out[0]->data, call->accumulate, space);
    return 0;
}

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

static struct kernel_cost cost(const struct kernel_call *call)
{
    struct convolution all = {0};
    char error[KERNEL_ERROR_BYTES];
    struct kernel_call priced = *call;
    priced.error = error;
    return make(&priced, &all) == 0 ? convolution_cost(call, &all) : (struct kernel_cost){0};
}

KERNEL_OP(conv1d) = {
    .name = "conv1d",
    .in_names = names,
    .attrs = attrs,
    .n_in = 2,
    .n_out = 1,
    .n_attrs = 4,
    .accumulates = true,
    .saves_in = 3,
    .reads_for = {2, 1},
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
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
