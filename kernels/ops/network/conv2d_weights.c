/* ops/network/conv2d_weights.c: conv2d's adjoint in the weights.
 *
 * May include: convolution.h, dense.h, op_rules.h, kernel_ops.h. Its own adjoints are
 * the other two.
 */
#include "convolution.h"
#include "dense.h"
#include "kernel_ops.h"
#include "op_rules.h"

static const char *const names[] = {"x", "g"};
static const struct kernel_attr_info attrs[] = {
    {"stride_h", KERNEL_ATTR_INT},   {"stride_w", KERNEL_ATTR_INT},
    {"padding_h", KERNEL_ATTR_INT},  {"padding_w", KERNEL_ATTR_INT},
    {"dilation_h", KERNEL_ATTR_INT}, {"dilation_w", KERNEL_ATTR_INT},
    {"groups", KERNEL_ATTR_INT},     {"kh", KERNEL_ATTR_INT},
    {"kw", KERNEL_ATTR_INT}};

/* clang-format off */
#define CONV_SAMPLE(x_extents, g_extents, ...)                                              \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_F64}, .rank = {4, 4},                                 \
     .shape = {{EXTENTS x_extents}, {EXTENTS g_extents}}, .low = {-1, -1}, .high = {1, 1},  \
     .n_attr = 9, .attr = {__VA_ARGS__}}
#define EXTENTS(...) __VA_ARGS__
/* clang-format on */
static const struct kernel_sample samples[] = {
    CONV_SAMPLE((2, 2, 4, 3), (2, 3, 3, 2), 1, 1, 0, 0, 1, 1, 1, 2, 2),
    CONV_SAMPLE((1, 1, 1, 1), (1, 1, 1, 1), 1, 1, 0, 0, 1, 1, 1, 1, 1),
    CONV_SAMPLE((1, 2, 4, 5), (1, 2, 2, 7), 2, 1, 1, 2, 1, 2, 2, 3, 2),
    CONV_SAMPLE((2, 2, 2, 2), (2, 2, 2, 2), 1, 1, 0, 0, 1, 1, 2, 1, 1),
    CONV_SAMPLE((0, 2, 3, 3), (0, 3, 2, 2), 1, 1, 0, 0, 1, 1, 1, 2, 2),
    CONV_SAMPLE((1, 0, 3, 3), (1, 2, 2, 2), 1, 1, 0, 0, 1, 1, 1, 2, 2),
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

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0], g = call->in[1];
    struct convolution all;
    if (kernel_require_float(call, 0) != 0 || kernel_require_float(call, 1) != 0)
        return -1;
    if (x->rank != 4 || g->rank != 4)
        return kernel_refuse_operands(call, ", ", "x [n,c,h,w] and g [n,o,oh,ow] are wanted");
    if (make(call, &all) != 0)
        return -1;
    kernel_shape_begin(out, x->dtype, 4);
    out->extent[0] = all.o;
    out->extent[1] = all.c / all.groups;
    out->extent[2] = all.kernel[0];
    out->extent[3] = all.kernel[1];
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
    const void *g = dense_data(call->in[1], &space);
    convolution_to_weights(&all, x, g, call->out[0]->data, call->accumulate, space);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0], g = rule->in[1], k = rule->adjoint[0];
    if (k == NULL)
        return;
    int64_t attr[CONVOLUTION_ATTRIBUTES + 2];
    for (int i = 0; i < CONVOLUTION_ATTRIBUTES; i++)
        attr[i] = rule->attr[i];
    for (int d = 0; d < 2; d++)
        attr[CONVOLUTION_ATTRIBUTES + d] =
            x->shape[2 + d] - convolution_image(g->shape[2 + d], k->shape[2 + d], attr[d],
                                                attr[2 + d], attr[4 + d], 0);
    const kernel_ref to_x[] = {g, k}, to_g[] = {x, k};
    kernel_accumulate(rule, 0, &kernel_op_conv_transpose2d, 2, to_x, CONVOLUTION_ATTRIBUTES + 2,
                      attr);
    kernel_accumulate(rule, 1, &kernel_op_conv2d, 2, to_g, CONVOLUTION_ATTRIBUTES, attr);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    struct convolution all = {0};
    char error[KERNEL_ERROR_BYTES];
    struct kernel_call priced = *call;
    priced.error = error;
    return make(&priced, &all) == 0 ? convolution_cost(call, &all) : (struct kernel_cost){0};
}

KERNEL_OP(conv2d_weights) = {
    .name = "conv2d_weights",
    .in_names = names,
    .attrs = attrs,
    .n_in = 2,
    .n_out = 1,
    .n_attrs = 9,
    .hidden = true,
    .accumulates = true,
    .saves_in = 3,
    .reads_for = {2, 1},
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "Adjoint of conv2d in its weights.",
    .shapes = "x [n,c,h,w], g [n,o,oh,ow] -> [o,c/groups,kh,kw]",
    .formula = "y[o,c,i,j] = sum over n,p,q of g[n,o,p,q] x[n,c,p stride_h + i dilation_h - "
               "padding_h, q stride_w + j dilation_w - padding_w], 0 outside of x",
    .derivative = "x' += conv_transpose2d(g, y'), g' += conv2d(x, y')",
};
