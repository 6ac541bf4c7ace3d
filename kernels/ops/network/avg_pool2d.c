/* ops/network/avg_pool2d.c: the mean of each window, in two axes.
 *
 * May include: pooling.h, dense.h, op_rules.h, kernel_ops.h. Linear: nothing is saved.
 */
#include "dense.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "pooling.h"

#include <string.h>

static const char *const names[] = {"x"};
static const struct kernel_attr_info attrs[] = {
    {"kernel_h", KERNEL_ATTR_INT},      {"kernel_w", KERNEL_ATTR_INT},
    {"stride_h", KERNEL_ATTR_INT},      {"stride_w", KERNEL_ATTR_INT},
    {"padding_h", KERNEL_ATTR_INT},     {"padding_w", KERNEL_ATTR_INT},
    {"count_padding", KERNEL_ATTR_FLAG}};

/* clang-format off */
#define POOL_SAMPLE(rank_, extents, ...)                                                           \
    {.n_in = 1, .dtype = {KERNEL_F64}, .rank = {rank_}, .shape = {{EXTENTS extents}}, .low = {-2}, \
     .high = {2}, .n_attr = 7, .attr = {__VA_ARGS__}}
#define EXTENTS(...) __VA_ARGS__
/* clang-format on */
static const struct kernel_sample samples[] = {
    POOL_SAMPLE(3, (2, 4, 5), 2, 2, 2, 2, 0, 0, 0),
    POOL_SAMPLE(2, (1, 1), 1, 1, 1, 1, 0, 0, 1),
    POOL_SAMPLE(2, (1, 1), 1, 1, 1, 1, 0, 0, 0),
    POOL_SAMPLE(3, (2, 5, 4), 3, 2, 1, 2, 1, 1, 0),
    POOL_SAMPLE(3, (2, 5, 4), 3, 2, 1, 2, 1, 1, 1),
    POOL_SAMPLE(4, (1, 2, 3, 3), 2, 3, 1, 1, 1, 0, 1),
    POOL_SAMPLE(4, (1, 2, 3, 3), 2, 3, 1, 1, 1, 0, 0),
    POOL_SAMPLE(3, (0, 3, 3), 2, 2, 1, 1, 0, 0, 0),
};
KERNEL_SAMPLES(samples)

static int make(const struct kernel_call *call, struct pooling *all)
{
    const int status = pooling_make(call, 2, all);
    all->count_padding = call->attr[6] != 0;
    return status;
}

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    struct pooling all;
    if (kernel_require_float(call, 0) != 0)
        return -1;
    if (x->rank < 2)
        return kernel_refuse_operands(call, "", "x [...,h,w] is wanted");
    if (make(call, &all) != 0)
        return -1;
    pooling_shape(&all, x, 2, out);
    return 0;
}

static int forward(const struct kernel_call *call)
{
    struct pooling all;
    char *space = call->workspace;
    if (make(call, &all) != 0)
        return -1;
    const void *x = dense_data(call->in[0], &space);
    pooling_mean(&all, x, call->out[0]->data);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0];
    int64_t attr[9];
    if (rule->adjoint[0] == NULL)
        return;
    memcpy(attr, rule->attr, 7 * sizeof *attr);
    attr[7] = x->shape[x->rank - 2];
    attr[8] = x->shape[x->rank - 1];
    kernel_accumulate(rule, 0, &kernel_op_avg_pool2d_gradient, 1, rule->adjoint, 9, attr);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    struct pooling all;
    char error[KERNEL_ERROR_BYTES];
    struct kernel_call priced = *call;
    priced.error = error;
    const bool fits = make(&priced, &all) == 0;
    const uint64_t n = (uint64_t)call->out[0]->size;
    return (struct kernel_cost){.flops = fits ? pooling_terms(&all) + 4 * n : 0,
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(avg_pool2d) = {
    .name = "avg_pool2d",
    .in_names = names,
    .attrs = attrs,
    .n_in = 1,
    .n_out = 1,
    .n_attrs = 7,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = dense_workspace,
    .sample = sample,
    .brief = "Means of windows that slide over the last two axes.",
    .shapes =
        "x [...,h,w] -> [...,oh,ow], oh = (h + 2 padding_h - kernel_h) / stride_h + 1 rounded "
        "down, ow likewise",
    .formula = "y[...,p,q] = sum over i,j of x[...,p stride_h + i - padding_h,q stride_w + j - "
               "padding_w], 0 outside of x, / number of terms",
    .derivative = "x' += y' / number of terms, at each element of the window",
    .edges =
        "with count_padding the number of terms is the window's size, which is usual, else the "
        "number of its elements inside of x; padding is at most half of the window; a window "
        "that does not fit is refused",
};
