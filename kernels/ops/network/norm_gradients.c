/* ops/network/norm_gradients.c: the adjoints of the operands of batch_norm, layer_norm and
 * rms_norm, in one pass.
 *
 * Inputs are g, x, w, mean (if centered) and rstd, outputs gx, gw and gb (if centered). They are
 * functions of the statistics as well, by which they are differentiated again.
 */
#include "dense.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "normalize.h"

/* What the ops differ in. */
struct norm_gradient_family {
    bool centered;   /* layer_norm and batch_norm */
    bool by_channel; /* batch_norm */
};

static struct normalization normalization_of(const struct kernel_op *op, const kernel_ref *in)
{
    const struct norm_gradient_family *const family = op->family;
    return family->by_channel ? normalize_channels(in[1])
                              : normalize_rows(in[1], in[2], family->centered);
}

static int norm_gradient_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const struct norm_gradient_family *const family = call->op->family;
    const kernel_ref x = call->in[1], w = call->in[2];
    for (int i = 0; i < call->n_in; i++)
        if (kernel_require_float(call, i) != 0)
            return -1;
    if (!family->by_channel && normalize_rows_check(call, x, w) != 0)
        return -1;
    if (family->by_channel && (x->rank < 2 || w->rank != 1 || w->shape[0] != x->shape[1]))
        return kernel_refuse_operands(call, ", ", "x [n,c,...] and w [c] are wanted");
    for (int o = 0; o < call->op->n_out; o++) {
        kernel_shape_begin(&out[o], x->dtype, o == 0 ? x->rank : w->rank);
        out[o].same_as = o == 0 ? 1 : 2;
    }
    return 0;
}

static size_t norm_gradient_workspace(const struct kernel_call *call)
{
    const struct normalization n = normalization_of(call->op, call->in);
    return dense_workspace(call) + normalize_gradient_space(&n);
}

static int norm_gradient_forward(const struct kernel_call *call)
{
    const struct normalization n = normalization_of(call->op, call->in);
    char *space = call->workspace;
    struct normalize_gradient data = {.gx = call->out[0]->data, .gw = call->out[1]->data};
    data.g = dense_data(call->in[0], &space);
    data.x = dense_data(call->in[1], &space);
    data.w = dense_data(call->in[2], &space);
    if (n.centered) {
        data.gb = call->out[2]->data;
        data.mean = dense_data(call->in[3], &space);
    }
    data.rstd = dense_data(call->in[n.centered ? 4 : 3], &space);
    normalize_gradient(&n, &data, space);
    return 0;
}

static void norm_gradient_pullback(struct kernel_rule *rule)
{
    const struct normalization n = normalization_of(rule->op, rule->in);
    normalize_gradient_pullback(rule, &n);
}

static struct kernel_cost norm_gradient_cost(const struct kernel_call *call)
{
    const struct normalization n = normalization_of(call->op, call->in);
    return normalize_gradient_cost(call, &n);
}

/* clang-format off */
#define BATCH_SAMPLE(rank_x, c, ...)                                                            \
    {.n_in = 5, .dtype = {KERNEL_F64, KERNEL_F64, KERNEL_F64, KERNEL_F64, KERNEL_F64},             \
     .rank = {rank_x, rank_x, 1, 1, 1}, .shape = {{__VA_ARGS__}, {__VA_ARGS__}, {c}, {c}, {c}},    \
     .low = {-1, -2, 0.5, -1, 0.5}, .high = {1, 2, 2, 1, 2}}
/* clang-format on */
static const struct kernel_sample batch_samples[] = {
    BATCH_SAMPLE(2, 3, 5, 3), BATCH_SAMPLE(3, 2, 2, 2, 3), BATCH_SAMPLE(3, 3, 1, 3, 4),
    BATCH_SAMPLE(2, 3, 0, 3), BATCH_SAMPLE(3, 0, 2, 0, 3),
};
KERNEL_SAMPLES_OF(batch)

static const struct norm_gradient_family batch_family = {.centered = true, .by_channel = true};

KERNEL_OP(batch_norm_gradient) = {
    .name = "batch_norm_gradient",
    KERNEL_IN("g", "x", "w", "mean", "rstd"),
    .n_out = 3,
    .hidden = true,
    .saves_in = 31,
    .reads_for = {30, 31, 27, 31, 31},
    .touches_all = true,
    .saves_out = 1,
    .family = &batch_family,
    .depends = kernel_depends_channels,
    .shape = norm_gradient_shape,
    .forward = norm_gradient_forward,
    .pullback = norm_gradient_pullback,
    .cost = norm_gradient_cost,
    .workspace = norm_gradient_workspace,
    .sample = batch_sample,
    .brief = "Adjoints of batch_norm's operands.",
    .shapes = "g [n,c,...], x [n,c,...], w [c], mean [c], rstd [c] -> [n,c,...], [c], [c]",
    .formula =
        "z = (x - mean) rstd, q = g w, gx = rstd (q - mean of q - z mean of (q z)), gw = sum "
        "of g z, gb = sum of g",
    .derivative = "the formula's, by g, x, w, mean and rstd",
};

/* clang-format off */
#define LAYER_SAMPLE(rank_x, rank_w, x_extents, w_extents, lead)                                \
    {.n_in = 5, .dtype = {KERNEL_F64, KERNEL_F64, KERNEL_F64, KERNEL_F64, KERNEL_F64},             \
     .rank = {rank_x, rank_x, rank_w, (rank_x) - (rank_w), (rank_x) - (rank_w)},                   \
     .shape = {{KERNEL_EXTENTS x_extents}, {KERNEL_EXTENTS x_extents},                             \
               {KERNEL_EXTENTS w_extents}, {KERNEL_EXTENTS lead},                                  \
               {KERNEL_EXTENTS lead}},                                                             \
     .low = {-1, -2, 0.5, -1, 0.5}, .high = {1, 2, 2, 1, 2}}
/* clang-format on */
static const struct kernel_sample layer_samples[] = {
    LAYER_SAMPLE(2, 1, (3, 5), (5), (3)),       LAYER_SAMPLE(1, 1, (4), (4), (0)),
    LAYER_SAMPLE(3, 2, (2, 3, 2), (3, 2), (2)), LAYER_SAMPLE(3, 1, (2, 2, 3), (3), (2, 2)),
    LAYER_SAMPLE(2, 1, (0, 3), (3), (0)),       LAYER_SAMPLE(2, 1, (2, 0), (0), (2)),
};
KERNEL_SAMPLES_OF(layer)

static const struct norm_gradient_family layer_family = {.centered = true};

static void rows_depends(const struct kernel_call *call, int o, int i, struct kernel_depends *d)
{
    if (o > 0 || i == 2)
        kernel_depends_all(call, o, i, d);
    else
        normalize_rows_depends(call, o, i, 2, d);
}

KERNEL_OP(layer_norm_gradient) = {
    .name = "layer_norm_gradient",
    KERNEL_IN("g", "x", "w", "mean", "rstd"),
    .n_out = 3,
    .hidden = true,
    .saves_in = 31,
    .reads_for = {30, 31, 27, 31, 31},
    .touches_all = true,
    .saves_out = 1,
    .family = &layer_family,
    .depends = rows_depends,
    .shape = norm_gradient_shape,
    .forward = norm_gradient_forward,
    .pullback = norm_gradient_pullback,
    .cost = norm_gradient_cost,
    .workspace = norm_gradient_workspace,
    .sample = layer_sample,
    .brief = "Adjoints of layer_norm's operands.",
    .shapes = "g [...,d...], x [...,d...], w [d...], mean [...], rstd [...] -> [...,d...], [d...], "
              "[d...]",
    .formula =
        "z = (x - mean) rstd, q = g w, gx = rstd (q - mean of q - z mean of (q z)), gw = sum "
        "of g z, gb = sum of g",
    .derivative = "the formula's, by g, x, w, mean and rstd",
};

/* clang-format off */
#define RMS_SAMPLE(rank_x, rank_w, x_extents, w_extents, lead)                                \
    {.n_in = 4, .dtype = {KERNEL_F64, KERNEL_F64, KERNEL_F64, KERNEL_F64},                         \
     .rank = {rank_x, rank_x, rank_w, (rank_x) - (rank_w)},                                        \
     .shape = {{KERNEL_EXTENTS x_extents}, {KERNEL_EXTENTS x_extents},                             \
               {KERNEL_EXTENTS w_extents}, {KERNEL_EXTENTS lead}},                                 \
     .low = {-1, -2, 0.5, 0.5}, .high = {1, 2, 2, 2}}
/* clang-format on */
static const struct kernel_sample rms_samples[] = {
    RMS_SAMPLE(2, 1, (3, 5), (5), (3)),       RMS_SAMPLE(1, 1, (4), (4), (0)),
    RMS_SAMPLE(3, 2, (2, 3, 2), (3, 2), (2)), RMS_SAMPLE(3, 1, (2, 2, 3), (3), (2, 2)),
    RMS_SAMPLE(2, 1, (0, 3), (3), (0)),       RMS_SAMPLE(2, 1, (2, 0), (0), (2)),
};
KERNEL_SAMPLES_OF(rms)

static const struct norm_gradient_family rms_family = {.centered = false};

KERNEL_OP(rms_norm_gradient) = {
    .name = "rms_norm_gradient",
    KERNEL_IN("g", "x", "w", "rstd"),
    .n_out = 2,
    .hidden = true,
    .saves_in = 15,
    .reads_for = {14, 15, 11, 15},
    .touches_all = true,
    .saves_out = 1,
    .family = &rms_family,
    .depends = rows_depends,
    .shape = norm_gradient_shape,
    .forward = norm_gradient_forward,
    .pullback = norm_gradient_pullback,
    .cost = norm_gradient_cost,
    .workspace = norm_gradient_workspace,
    .sample = rms_sample,
    .brief = "Adjoints of rms_norm's operands.",
    .shapes = "g [...,d...], x [...,d...], w [d...], rstd [...] -> [...,d...], [d...]",
    .formula = "z = x rstd, q = g w, gx = rstd (q - z mean of (q z)), gw = sum of g z",
    .derivative = "the formula's, by g, x, w and rstd",
};
