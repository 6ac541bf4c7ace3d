/* ops/network/rms_norm_gradient.c: the adjoints of rms_norm's operands, in one pass.
 *
 * May include: normalize.h, dense.h, kernel_ops.h. A function of the rows' statistics as well, by
 * which it is differentiated again.
 */
#include "dense.h"
#include "kernel_ops.h"
#include "normalize.h"

static const char *const names[] = {"g", "x", "w", "rstd"};

/* clang-format off */
#define GRADIENT_SAMPLE(rank_x, rank_w, x_extents, w_extents, lead)                                \
    {.n_in = 4, .dtype = {KERNEL_F64, KERNEL_F64, KERNEL_F64, KERNEL_F64},                         \
     .rank = {rank_x, rank_x, rank_w, (rank_x) - (rank_w)},                                        \
     .shape = {{EXTENTS x_extents}, {EXTENTS x_extents}, {EXTENTS w_extents}, {EXTENTS lead}},     \
     .low = {-1, -2, 0.5, 0.5}, .high = {1, 2, 2, 2}}
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
    for (int i = 0; i < 4; i++)
        if (kernel_require_float(call, i) != 0)
            return -1;
    if (normalize_rows_check(call, x, w) != 0)
        return -1;
    for (int o = 0; o < 2; o++) {
        kernel_shape_begin(&out[o], x->dtype, o == 0 ? x->rank : w->rank);
        out[o].same_as = o == 0 ? 1 : 2;
    }
    return 0;
}

static size_t workspace(const struct kernel_call *call)
{
    const struct normalization n = normalize_rows(call->in[1], call->in[2], false);
    return dense_workspace(call) + normalize_gradient_space(&n);
}

static int forward(const struct kernel_call *call)
{
    const struct normalization n = normalize_rows(call->in[1], call->in[2], false);
    char *space = call->workspace;
    struct normalize_gradient data = {.gx = call->out[0]->data, .gw = call->out[1]->data};
    data.g = dense_data(call->in[0], &space);
    data.x = dense_data(call->in[1], &space);
    data.w = dense_data(call->in[2], &space);
    data.rstd = dense_data(call->in[3], &space);
    normalize_gradient(&n, &data, space);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const struct normalization n = normalize_rows(rule->in[1], rule->in[2], false);
    normalize_gradient_pullback(rule, &n);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const struct normalization n = normalize_rows(call->in[1], call->in[2], false);
    return normalize_gradient_cost(call, &n);
}

KERNEL_OP(rms_norm_gradient) = {
    .name = "rms_norm_gradient",
    .in_names = names,
    .n_in = 4,
    .n_out = 2,
    .hidden = true,
    .saves_in = 15,
    .reads_for = {14, 15, 11, 15},
    .touches_all = true,
    .saves_out = 1,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "Adjoints of rms_norm's operands.",
    .shapes = "g [...,d...], x [...,d...], w [d...], rstd [...] -> [...,d...], [d...]",
    .formula = "z = x rstd, q = g w, gx = rstd (q - z mean of (q z)), gw = sum of g z",
    .derivative = "the formula's, by g, x, w and rstd",
};
