/* ops/network/layer_norm.c: each row normalized to mean 0 and variance 1, with weights and a bias.
 *
 * Outputs 1 and 2, mean and reciprocal standard deviation of the rows, are what the pullback reads
 * beside x; they have pullbacks of their own.
 */
#include "dense.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "normalize.h"

/* clang-format off */
#define LAYER_SAMPLE(rank_x, rank_w, x_extents, w_extents)                                         \
    {.n_in = 3, .dtype = {KERNEL_F64, KERNEL_F64, KERNEL_F64}, .rank = {rank_x, rank_w, rank_w},   \
     .shape = {{KERNEL_EXTENTS x_extents}, {KERNEL_EXTENTS w_extents},                             \
               {KERNEL_EXTENTS w_extents}},                                                        \
     .low = {-2, 0.5, -1}, .high = {2, 2, 1}, .n_attr = 1,                                         \
     .attr = {(int64_t)(1023 - 3) << 52 /* 1/8, bit for bit */}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    LAYER_SAMPLE(2, 1, (3, 5), (5)),       LAYER_SAMPLE(1, 1, (4), (4)),
    LAYER_SAMPLE(3, 2, (2, 3, 2), (3, 2)), LAYER_SAMPLE(3, 1, (2, 2, 3), (3)),
    LAYER_SAMPLE(2, 1, (0, 3), (3)),       LAYER_SAMPLE(2, 1, (2, 0), (0)),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0], w = call->in[1], b = call->in[2];
    for (int i = 0; i < 3; i++)
        if (kernel_require_float(call, i) != 0)
            return -1;
    if (normalize_rows_check(call, x, w) != 0)
        return -1;
    if (normalize_eps_check(call, kernel_attr_real(call->attr[0])) != 0)
        return KERNEL_REFUSED_ATTRIBUTE;
    if (!kernel_same_extents(w, b))
        return kernel_refuse_operands(call, ", ", "w and b must have one shape");
    kernel_shape_begin(&out[0], x->dtype, x->rank);
    out[0].same_as = 0;
    normalize_rows_statistics(x, w, &out[1]);
    out[2] = out[1];
    return 0;
}

static int forward(const struct kernel_call *call)
{
    const struct normalization n = normalize_rows(call->in[0], call->in[1], true);
    char *space = call->workspace;
    struct normalize_forward data = {.y = call->out[0]->data,
                                     .mean = call->out[1]->data,
                                     .rstd = call->out[2]->data,
                                     .eps = kernel_attr_real(call->attr[0])};
    data.x = dense_data(call->in[0], &space);
    data.w = dense_data(call->in[1], &space);
    data.b = dense_data(call->in[2], &space);
    normalize_forward(&n, &data);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0], w = rule->in[1];
    const kernel_ref g = rule->adjoint[0], to_mean = rule->adjoint[1], to_rstd = rule->adjoint[2];
    const struct normalization n = normalize_rows(x, w, true);
    const double each = 1 / (double)n.inner;
    if (x->size == 0)
        return;
    if (g != NULL && (kernel_needs(rule, 0) || kernel_needs(rule, 1))) {
        const kernel_ref in[] = {g, x, w, rule->out[1], rule->out[2]};
        kernel_accumulate_all(rule, &kernel_op_layer_norm_gradient, 5, in, 0, NULL);
    } else if (g != NULL) {
        kernel_accumulate_value(rule, 2, g);
    }
    if (to_mean != NULL && kernel_needs(rule, 0)) {
        const kernel_ref share = normalize_emit_kept(
            rule, &n, kernel_emit_real(rule, &kernel_op_scale, each, to_mean), x);
        kernel_accumulate(rule, 0, &kernel_op_broadcast_to, 1, &share, x->rank, x->shape);
    }
    if (to_rstd != NULL && kernel_needs(rule, 0))
        normalize_accumulate_rstd(rule, &n, rule->out[1], rule->out[2], to_rstd);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const struct normalization n = normalize_rows(call->in[0], call->in[1], true);
    return normalize_forward_cost(call, &n);
}

static void depends(const struct kernel_call *call, int o, int i, struct kernel_depends *d)
{
    normalize_rows_depends(call, o, i, 1, d);
}

KERNEL_OP(layer_norm) = {
    .name = "layer_norm",
    KERNEL_IN("x", "w", "b"),
    KERNEL_ATTRS({"eps", KERNEL_ATTR_REAL}),
    .n_out = 3,
    .saves_in = 3,
    .reads_for = {3, 1, 0},
    .touches_all = true,
    .saves_out = 6,
    .depends = depends,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = dense_workspace,
    .sample = sample,
    .brief = "Rows normalized to mean 0 and variance 1, then weighted and shifted; a row is what "
             "lies along the axes of w.",
    .shapes = "x [...,d...], w [d...], b [d...] -> [...,d...]",
    .formula = "y = z w + b, z = (x - mean) / (var + eps)^(1/2) by rows, var without correction",
    .derivative =
        "q = y' w, x' += (q - mean of q - z mean of (q z)) / (var + eps)^(1/2), w' += sum "
        "of y' z over rows, b' += sum of y' over rows",
    .edges = "a row of equal elements gives b, or NaN if eps is 0; a row with an infinity or NaN "
             "gives NaN; var may leave the range, (var + eps)^(-1/2) may not; eps < 0 and NaN are "
             "refused",
    .source = "Ba, Kiros & Hinton (2016), arXiv:1607.06450",
};
