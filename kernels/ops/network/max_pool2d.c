/* ops/network/max_pool2d.c: the greatest element of each window, in two axes.
 *
 * May include: pooling.h, dense.h, op_rules.h, kernel_ops.h. Output 1, the maxima's numbers, is all
 * that the pullback reads.
 */
#include "dense.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "pooling.h"

static const char *const names[] = {"x"};
static const struct kernel_attr_info attrs[] = {
    {"kernel_h", KERNEL_ATTR_INT}, {"kernel_w", KERNEL_ATTR_INT},  {"stride_h", KERNEL_ATTR_INT},
    {"stride_w", KERNEL_ATTR_INT}, {"padding_h", KERNEL_ATTR_INT}, {"padding_w", KERNEL_ATTR_INT}};

/* clang-format off */
#define POOL_SAMPLE(rank_, extents, ...)                                                           \
    {.n_in = 1, .dtype = {KERNEL_F64}, .rank = {rank_}, .shape = {{EXTENTS extents}}, .low = {-2}, \
     .high = {2}, .n_attr = 6, .attr = {__VA_ARGS__}}
#define EXTENTS(...) __VA_ARGS__
/* clang-format on */
static const struct kernel_sample samples[] = {
    POOL_SAMPLE(3, (2, 4, 5), 2, 2, 2, 2, 0, 0), POOL_SAMPLE(2, (1, 1), 1, 1, 1, 1, 0, 0),
    POOL_SAMPLE(3, (2, 5, 4), 3, 2, 1, 2, 1, 1), POOL_SAMPLE(4, (1, 2, 3, 3), 2, 3, 1, 1, 1, 0),
    POOL_SAMPLE(3, (0, 3, 3), 2, 2, 1, 1, 0, 0),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    struct pooling all;
    if (kernel_require_float(call, 0) != 0)
        return -1;
    if (x->rank < 2)
        return kernel_refuse_operands(call, "", "x [...,h,w] is wanted");
    if (pooling_make(call, 2, &all) != 0)
        return -1;
    pooling_shape(&all, x, 2, &out[0]);
    out[1] = out[0];
    out[1].dtype = KERNEL_I64;
    return 0;
}

static int forward(const struct kernel_call *call)
{
    struct pooling all;
    char *space = call->workspace;
    if (pooling_make(call, 2, &all) != 0)
        return -1;
    const void *x = dense_data(call->in[0], &space);
    pooling_max(&all, x, call->out[0]->data, call->out[1]->data);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0], in[] = {rule->adjoint[0], rule->out[1]};
    if (rule->adjoint[0] != NULL)
        kernel_accumulate(rule, 0, &kernel_op_pool_scatter, 2, in, 2, x->shape + x->rank - 2);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    struct pooling all;
    char error[KERNEL_ERROR_BYTES];
    struct kernel_call priced = *call;
    priced.error = error;
    const bool fits = pooling_make(&priced, 2, &all) == 0;
    return (struct kernel_cost){.flops = fits ? pooling_terms(&all) : 0,
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(max_pool2d) = {
    .name = "max_pool2d",
    .in_names = names,
    .attrs = attrs,
    .n_in = 1,
    .n_out = 2,
    .n_attrs = 6,
    .saves_out = 2,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = dense_workspace,
    .sample = sample,
    .brief = "Maxima of windows that slide over the last two axes.",
    .shapes =
        "x [...,h,w] -> [...,oh,ow], oh = (h + 2 padding_h - kernel_h) / stride_h + 1 rounded "
        "down, ow likewise",
    .formula = "y[...,p,q] = max over i,j of x[...,p stride_h + i - padding_h,q stride_w + j - "
               "padding_w], where that is inside of x",
    .derivative = "x' += y' at the maximum of each window",
    .edges =
        "of equal elements the first gets the gradient; a NaN wins, the first one of a window; "
        "padding is never chosen, and at most half of the window; a window that does not fit "
        "is refused",
};
