/* ops/network/avg_pool1d.c: the mean of each window, in one axis.
 *
 * May include: pooling.h, dense.h, op_rules.h, kernel_ops.h. Linear: nothing is saved.
 */
#include "dense.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "pooling.h"

#include <string.h>

static const char *const names[] = {"x"};
static const struct kernel_attr_info attrs[] = {{"kernel", KERNEL_ATTR_INT},
                                                {"stride", KERNEL_ATTR_INT},
                                                {"padding", KERNEL_ATTR_INT},
                                                {"count_padding", KERNEL_ATTR_FLAG}};

/* clang-format off */
#define POOL_SAMPLE(rank_, extents, ...)                                                           \
    {.n_in = 1, .dtype = {KERNEL_F64}, .rank = {rank_}, .shape = {{EXTENTS extents}}, .low = {-2}, \
     .high = {2}, .n_attr = 4, .attr = {__VA_ARGS__}}
#define EXTENTS(...) __VA_ARGS__
/* clang-format on */
static const struct kernel_sample samples[] = {
    POOL_SAMPLE(2, (3, 7), 2, 2, 0, 0),    POOL_SAMPLE(1, (1), 1, 1, 0, 1),
    POOL_SAMPLE(3, (2, 2, 5), 3, 2, 1, 0), POOL_SAMPLE(3, (2, 2, 5), 3, 2, 1, 1),
    POOL_SAMPLE(2, (0, 3), 2, 1, 0, 1),    POOL_SAMPLE(2, (0, 3), 2, 1, 0, 0),
};
KERNEL_SAMPLES(samples)

static int make(const struct kernel_call *call, struct pooling *all)
{
    const int status = pooling_make(call, 1, all);
    all->count_padding = call->attr[3] != 0;
    return status;
}

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    struct pooling all;
    if (kernel_require_float(call, 0) != 0)
        return -1;
    if (x->rank < 1 || x->rank == KERNEL_MAX_RANK)
        return kernel_refuse_operands(call, "", "x [...,l] of at most 7 axes is wanted");
    if (make(call, &all) != 0)
        return -1;
    pooling_shape(&all, x, 1, out);
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

/* Through planes of height 1. */
static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0], g = rule->adjoint[0];
    const int last = x->rank - 1;
    const int64_t *const own = rule->attr;
    int64_t shape_of[KERNEL_MAX_RANK];
    if (g == NULL || !kernel_needs(rule, 0))
        return;
    const int64_t attr[] = {1, own[0], 1, own[1], 0, own[2], own[3], 1, x->shape[last]};
    memcpy(shape_of, g->shape, (size_t)last * sizeof *shape_of);
    shape_of[last] = 1;
    shape_of[last + 1] = g->shape[last];
    const kernel_ref wide = kernel_emit_shape(rule, &kernel_op_reshape, g, x->rank + 1, shape_of);
    const kernel_ref to_x = kernel_emit(rule, &kernel_op_avg_pool2d_gradient, 1, &wide, 9, attr);
    kernel_accumulate_value(rule, 0,
                            kernel_emit_shape(rule, &kernel_op_reshape, to_x, x->rank, x->shape));
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

KERNEL_OP(avg_pool1d) = {
    .name = "avg_pool1d",
    .in_names = names,
    .attrs = attrs,
    .n_in = 1,
    .n_out = 1,
    .n_attrs = 4,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = dense_workspace,
    .sample = sample,
    .brief = "Means of windows that slide over the last axis.",
    .shapes = "x [...,l] -> [...,m], m = (l + 2 padding - kernel) / stride + 1 rounded down",
    .formula =
        "y[...,q] = sum over j of x[...,q stride + j - padding], 0 outside of x, / number of "
        "terms",
    .derivative = "x' += y' / number of terms, at each element of the window",
    .edges =
        "with count_padding the number of terms is the window's size, which is usual, else the "
        "number of its elements inside of x; padding is at most half of the window; a window "
        "that does not fit is refused",
};
