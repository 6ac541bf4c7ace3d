/* ops/network/layer_norm_gradient.c: the adjoints of layer_norm's operands, in one pass.
 *
 * May include: normalize.h, dense.h, kernel_ops.h. A function of the rows' statistics as well, by
 * which it is differentiated again.
 */
#include "dense.h"
#include "kernel_ops.h"
#include "normalize.h"

static const char *const names[] = {"g", "x", "w", "mean", "rstd"};

/* clang-format off */
#define GRADIENT_SAMPLE(rank_x, rank_w, x_extents, w_extents, lead)                                \
    {.n_in = 5, .dtype = {KERNEL_F64, KERNEL_F64, KERNEL_F64, KERNEL_F64, KERNEL_F64},             \
     .rank = {rank_x, rank_x, rank_w, (rank_x) - (rank_w), (rank_x) - (rank_w)},                   \
     .shape = {{EXTENTS x_extents}, {EXTENTS x_extents}, {EXTENTS w_extents}, {EXTENTS lead},      \
               {EXTENTS lead}},                                                                    \
     .low = {-1, -2, 0.5, -1, 0.5}, .high = {1, 2, 2, 1, 2}}
#define EXTENTS(...) __VA_ARGS__
/* clang-format on */
static const struct kernel_sample samples[] = {
    GRADIENT_SAMPLE(2, 1, (3, 5), (5), (3)),       GRADIENT_SAMPLE(1, 1, (4), (4), (0)),
    GRADIENT_SAMPLE(3, 2, (2, 3, 2), (3, 2), (2)), GRADIENT_SAMPLE(3, 1, (2, 2, 3), (3), (2, 2)),
    GRADIENT_SAMPLE(2, 1, (0, 3), (3), (0)),       GRADIENT_SAMPLE(2, 1, (2, 0), (0), (2)),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[1], w = call->in[2];
    for (int i = 0; i < 5; i++)
        if (kernel_require_float(call, i) != 0)
            return -1;
    if (normalize_rows_check(call, x, w) != 0)
        return -1;
    for (int o = 0; o < 3; o++) {
        kernel_shape_begin(&out[o], x->dtype, o == 0 ? x->rank : w->rank);
        out[o].same_as = o == 0 ? 1 : 2;
    }
    return 0;
}

static size_t workspace(const struct kernel_call *call)
{
    const struct normalization n = normalize_rows(call->in[1], call->in[2], true);
    return dense_workspace(call) + normalize_gradient_space(&n);
}

static int forward(const struct kernel_call *call)
{
    const struct normalization n = normalize_rows(call->in[1], call->in[2], true);
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
    const struct normalization n = normalize_rows(rule->in[1], rule->in[2], true);
    normalize_gradient_pullback(rule, &n);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const struct normalization n = normalize_rows(call->in[1], call->in[2], true);
    return normalize_gradient_cost(call, &n);
}

KERNEL_OP(layer_norm_gradient) = {
    .name = "layer_norm_gradient",
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
    .brief = "Adjoints of layer_norm's operands.",
    .shapes = "g [...,d...], x [...,d...], w [d...], mean [...], rstd [...] -> [...,d...], [d...], "
              "[d...]",
    .formula =
        "z = (x - mean) rstd, q = g w, gx = rstd (q - mean of q - z mean of (q z)), gw = sum "
        "of g z, gb = sum of g",
    .derivative = "the formula's, by g, x, w, mean and rstd",
};
