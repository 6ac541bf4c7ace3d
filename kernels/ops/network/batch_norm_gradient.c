/* ops/network/batch_norm_gradient.c: the adjoints of batch_norm's operands, in one pass.
 *
 * May include: normalize.h, dense.h, kernel_ops.h. A function of the channels' statistics as well,
 * by which it is differentiated again.
 */
#include "dense.h"
#include "kernel_ops.h"
#include "normalize.h"

static const char *const names[] = {"g", "x", "w", "mean", "rstd"};

/* clang-format off */
#define GRADIENT_SAMPLE(rank_x, c, ...)                                                            \
    {.n_in = 5, .dtype = {KERNEL_F64, KERNEL_F64, KERNEL_F64, KERNEL_F64, KERNEL_F64},             \
     .rank = {rank_x, rank_x, 1, 1, 1}, .shape = {{__VA_ARGS__}, {__VA_ARGS__}, {c}, {c}, {c}},    \
     .low = {-1, -2, 0.5, -1, 0.5}, .high = {1, 2, 2, 1, 2}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    GRADIENT_SAMPLE(2, 3, 5, 3), GRADIENT_SAMPLE(3, 2, 2, 2, 3), GRADIENT_SAMPLE(3, 3, 1, 3, 4),
    GRADIENT_SAMPLE(2, 3, 0, 3), GRADIENT_SAMPLE(3, 0, 2, 0, 3),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[1], w = call->in[2];
    for (int i = 0; i < 5; i++)
        if (kernel_require_float(call, i) != 0)
            return -1;
    if (x->rank < 2 || w->rank != 1 || w->shape[0] != x->shape[1])
        return kernel_refuse_operands(call, ", ", "x [n,c,...] and w [c] are wanted");
    for (int o = 0; o < 3; o++) {
        kernel_shape_begin(&out[o], x->dtype, o == 0 ? x->rank : w->rank);
        out[o].same_as = o == 0 ? 1 : 2;
    }
    return 0;
}

static size_t workspace(const struct kernel_call *call)
{
    const struct normalization n = normalize_channels(call->in[1]);
    return dense_workspace(call) + normalize_gradient_space(&n);
}

static int forward(const struct kernel_call *call)
{
    const struct normalization n = normalize_channels(call->in[1]);
    char *space = call->workspace;
    struct normalize_gradient data = {
        .gx = call->out[0]->data, .gw = call->out[1]->data, .gb = call->out[2]->data};
    data.g = dense_data(call->in[0], &space);
    data.x = dense_data(call->in[1], &space);
    data.w = dense_data(call->in[2], &space);
    data.mean = dense_data(call->in[3], &space);
    data.rstd = dense_data(call->in[4], &space);
    normalize_gradient(&n, &data, space);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const struct normalization n = normalize_channels(rule->in[1]);
    normalize_gradient_pullback(rule, &n);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const struct normalization n = normalize_channels(call->in[1]);
    return normalize_gradient_cost(call, &n);
}

KERNEL_OP(batch_norm_gradient) = {
    .name = "batch_norm_gradient",
    .in_names = names,
    .n_in = 5,
    .n_out = 3,
    .hidden = true,
    .saves_in = 31,
    .reads_for = {30, 31, 27, 31, 31},
    .touches_all = true,
    .saves_out = 1,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "Adjoints of batch_norm's operands.",
    .shapes = "g [n,c,...], x [n,c,...], w [c], mean [c], rstd [c] -> [n,c,...], [c], [c]",
    .formula =
        "z = (x - mean) rstd, q = g w, gx = rstd (q - mean of q - z mean of (q z)), gw = sum "
        "of g z, gb = sum of g",
    .derivative = "the formula's, by g, x, w, mean and rstd",
};
