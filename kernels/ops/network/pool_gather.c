/* ops/network/pool_gather.c: elements by their numbers in planes.
 *
 * The adjoint of pool_scatter.
 */
#include "dense.h"
#include "kernel_ops.h"
#include "op_rules.h"

/* clang-format off */
#define GATHER_SAMPLE(rank_, x_extents, extents, size, axes)                                       \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_I64}, .rank = {rank_, rank_},                         \
     .shape = {{KERNEL_EXTENTS x_extents}, {KERNEL_EXTENTS extents}},                              \
     .low = {-1, 0}, .high = {1, size},                                                            \
     .n_attr = 1, .attr = {axes}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    GATHER_SAMPLE(3, (2, 3, 4), (2, 2, 3), 12, 2),
    GATHER_SAMPLE(2, (3, 5), (3, 4), 5, 1),
    GATHER_SAMPLE(2, (1, 1), (1, 1), 1, 2),
    GATHER_SAMPLE(3, (0, 2, 2), (0, 2, 2), 4, 2),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0], at = call->in[1];
    if (kernel_require_float(call, 0) != 0)
        return -1;
    if (kernel_require_i64(call, 1, "numbers") != 0)
        return KERNEL_REFUSED_DTYPE;
    bool fits = x->rank == at->rank && x->rank >= call->attr[0];
    for (int axis = 0; axis < x->rank - call->attr[0] && fits; axis++)
        fits = x->shape[axis] == at->shape[axis];
    if (!fits)
        return kernel_refuse_operands(call, ", ", "x and at differ in the last %lld axes alone",
                                      (long long)call->attr[0]);
    kernel_shape_begin(out, x->dtype, x->rank);
    for (int axis = 0; axis < x->rank; axis++)
        out->extent[axis] = at->shape[axis];
    return 0;
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    struct kernel_array *y = call->out[0];
    char *space = call->workspace;
    int64_t planes = 1;
    for (int axis = 0; axis < x->rank - call->attr[0]; axis++)
        planes *= x->shape[axis];
    const void *from = dense_data(x, &space);
    const int64_t *at = dense_data(call->in[1], &space);
    const int64_t size = planes > 0 ? x->size / planes : 0;
    const int64_t count = planes > 0 ? y->size / planes : 0;
    for (int64_t p = 0, i = 0; p < planes; p++)
        for (int64_t k = 0; k < count; k++, i++) {
            if (y->dtype == KERNEL_F32)
                ((float *)y->data)[i] = ((const float *)from)[p * size + at[i]];
            else
                ((double *)y->data)[i] = ((const double *)from)[p * size + at[i]];
        }
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0], in[] = {rule->adjoint[0], rule->in[1]};
    const int axes = (int)rule->attr[0];
    if (rule->adjoint[0] != NULL)
        kernel_accumulate(rule, 0, &kernel_op_pool_scatter, 2, in, axes, x->shape + x->rank - axes);
}

KERNEL_OP(pool_gather) = {
    .name = "pool_gather",
    KERNEL_IN("x", "at"),
    KERNEL_ATTRS({"axes", KERNEL_ATTR_INT}),
    .n_out = 1,
    .hidden = true,
    .saves_in = 2,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = kernel_cost_take,
    .workspace = dense_workspace,
    .sample = sample,
    .brief = "Elements by their numbers in planes, which are the last axes.",
    .shapes = "x [...,p...], at i64 [...,q...] -> [...,q...]",
    .formula = "y[...,i] = x[...,at[...,i]]",
    .derivative = "x'[...,k] += sum of y'[...,i] over the i with at[...,i] = k",
    .edges = "numbers are those that a pooling has found",
};
