/* ops/network/max_pool1d.c: the greatest element of each window, in one axis.
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
    {"kernel", KERNEL_ATTR_INT}, {"stride", KERNEL_ATTR_INT}, {"padding", KERNEL_ATTR_INT}};

/* clang-format off */
#define POOL_SAMPLE(rank_, extents, ...)                                                           \
    {.n_in = 1, .dtype = {KERNEL_F64}, .rank = {rank_}, .shape = {{EXTENTS extents}}, .low = {-2}, \
     .high = {2}, .n_attr = 3, .attr = {__VA_ARGS__}}
#define EXTENTS(...) __VA_ARGS__
/* clang-format on */
static const struct kernel_sample samples[] = {
    POOL_SAMPLE(2, (3, 7), 2, 2, 0),
    POOL_SAMPLE(1, (1), 1, 1, 0),
    POOL_SAMPLE(3, (2, 2, 5), 3, 2, 1),
    POOL_SAMPLE(2, (0, 3), 2, 1, 0),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    struct pooling all;
    if (kernel_require_float(call, 0) != 0)
        return -1;
    if (x->rank < 1)
        return kernel_refuse_operands(call, "", "x [...,l] is wanted");
    if (pooling_make(call, 1, &all) != 0)
        return -1;
    pooling_shape(&all, x, 1, &out[0]);
    out[1] = out[0];
    out[1].dtype = KERNEL_I64;
    return 0;
}

static int forward(const struct kernel_call *call)
{
    struct pooling all;
    char *space = call->workspace;
    if (pooling_make(call, 1, &all) != 0)
        return -1;
    const void *x = dense_data(call->in[0], &space);
    pooling_max(&all, x, call->out[0]->data, call->out[1]->data);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0], in[] = {rule->adjoint[0], rule->out[1]};
    if (rule->adjoint[0] != NULL)
        kernel_accumulate(rule, 0, &kernel_op_pool_scatter, 2, in, 1, x->shape + x->rank - 1);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    struct pooling all;
    char error[KERNEL_ERROR_BYTES];
    struct kernel_call priced = *call;
    priced.error = error;
    const bool fits = pooling_make(&priced, 1, &all) == 0;
    return (struct kernel_cost){.flops = fits ? pooling_terms(&all) : 0,
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(max_pool1d) = {
    .name = "max_pool1d",
    .in_names = names,
    .attrs = attrs,
    .n_in = 1,
    .n_out = 2,
    .n_attrs = 3,
    .saves_out = 2,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = dense_workspace,
    .sample = sample,
    .brief = "Maxima of windows that slide over the last axis.",
    .shapes = "x [...,l] -> [...,m], m = (l + 2 padding - kernel) / stride + 1 rounded down",
    .formula = "y[...,q] = max over j of x[...,q stride + j - padding], where that is inside of x",
    .derivative = "x' += y' at the maximum of each window",
    .edges =
        "of equal elements the first gets the gradient; a NaN wins, the first one of a window; "
        "padding is never chosen, and at most half of the window; a window that does not fit "
        "is refused",
};
