/* ops/network/batch_norm.c: each channel of a batch normalized to mean 0 and variance 1, with
 * weights and a bias.
 *
 * Mean and variance of the batch are results, for whoever keeps running averages; the pullback
 * reads them beside x.
 */
#include "dense.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "normalize.h"

static const char *const results[] = {"mean", "var"};

/* clang-format off */
#define BATCH_SAMPLE(rank_x, c, ...)                                                               \
    {.n_in = 3, .dtype = {KERNEL_F64, KERNEL_F64, KERNEL_F64}, .rank = {rank_x, 1, 1},             \
     .shape = {{__VA_ARGS__}, {c}, {c}}, .low = {-2, 0.5, -1}, .high = {2, 2, 1}, .n_attr = 1,     \
     .attr = {(int64_t)(1023 - 3) << 52 /* 1/8, bit for bit */}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    BATCH_SAMPLE(2, 3, 5, 3),    BATCH_SAMPLE(3, 2, 2, 2, 3), BATCH_SAMPLE(4, 2, 2, 2, 2, 2),
    BATCH_SAMPLE(3, 3, 1, 3, 4), BATCH_SAMPLE(3, 0, 2, 0, 3),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0], w = call->in[1], b = call->in[2];
    for (int i = 0; i < 3; i++)
        if (kernel_require_float(call, i) != 0)
            return -1;
    if (x->rank < 2 || w->rank != 1 || b->rank != 1 || w->shape[0] != x->shape[1] ||
        b->shape[0] != x->shape[1])
        return kernel_refuse_operands(call, ", ", "x [n,c,...], w [c] and b [c] are wanted");
    for (int axis = 0; axis < x->rank && x->shape[1] > 0; axis++)
        if (x->shape[axis] == 0)
            return kernel_refuse_operands(call, ", ", "axis %d is empty and has no mean", axis);
    if (normalize_eps_check(call, kernel_attr_real(call->attr[0])) != 0)
        return KERNEL_REFUSED_ATTRIBUTE;
    kernel_shape_begin(&out[0], x->dtype, x->rank);
    out[0].same_as = 0;
    for (int o = 1; o < 3; o++) {
        kernel_shape_begin(&out[o], x->dtype, 1);
        out[o].same_as = 1;
    }
    return 0;
}

static size_t workspace(const struct kernel_call *call)
{
    const kernel_ref w = call->in[1];
    return dense_workspace(call) +
           dense_rounded((size_t)w->size * kernel_dtype_bytes(w->dtype)); /* for rstd */
}

static int forward(const struct kernel_call *call)
{
    const struct normalization n = normalize_channels(call->in[0]);
    char *space = call->workspace;
    struct normalize_forward data = {.y = call->out[0]->data,
                                     .mean = call->out[1]->data,
                                     .var = call->out[2]->data,
                                     .eps = kernel_attr_real(call->attr[0])};
    data.x = dense_data(call->in[0], &space);
    data.w = dense_data(call->in[1], &space);
    data.b = dense_data(call->in[2], &space);
    data.rstd = space;
    normalize_forward(&n, &data);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0], w = rule->in[1], mean = rule->out[1], var = rule->out[2];
    const kernel_ref g = rule->adjoint[0], to_mean = rule->adjoint[1], to_var = rule->adjoint[2];
    const struct normalization n = normalize_channels(x);
    const double each = 1 / (double)(n.outer * n.inner);
    if (x->size == 0)
        return;
    if (g != NULL && (kernel_needs(rule, 0) || kernel_needs(rule, 1))) {
        const double eps = kernel_attr_real(rule->attr[0]);
        const kernel_ref rstd = kernel_emit1(rule, &kernel_op_rsqrt,
                                             kernel_emit_real(rule, &kernel_op_offset, eps, var));
        const kernel_ref in[] = {g, x, w, mean, rstd};
        kernel_accumulate_all(rule, &kernel_op_batch_norm_gradient, 5, in, 0, NULL);
    } else if (g != NULL) {
        normalize_accumulate_sum(rule, &n, 2, g);
    }
    if (to_mean != NULL && kernel_needs(rule, 0)) {
        const kernel_ref share = normalize_emit_kept(
            rule, &n, kernel_emit_real(rule, &kernel_op_scale, each, to_mean), x);
        kernel_accumulate(rule, 0, &kernel_op_broadcast_to, 1, &share, x->rank, x->shape);
    }
    if (to_var != NULL && kernel_needs(rule, 0)) {
        const kernel_ref in[] = {
            kernel_emit2(rule, &kernel_op_sub, x, normalize_emit_kept(rule, &n, mean, x)),
            normalize_emit_kept(rule, &n,
                                kernel_emit_real(rule, &kernel_op_scale, 2 * each, to_var), x)};
        kernel_accumulate(rule, 0, &kernel_op_mul, 2, in, 0, NULL);
    }
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const struct normalization n = normalize_channels(call->in[0]);
    return normalize_forward_cost(call, &n);
}

KERNEL_OP(batch_norm) = {
    .name = "batch_norm",
    KERNEL_IN("x", "w", "b"),
    KERNEL_ATTRS({"eps", KERNEL_ATTR_REAL}),
    .n_out = 3,
    .n_results = 3,
    .result_names = results,
    .saves_in = 3,
    .reads_for = {3, 1, 0},
    .touches_all = true,
    .saves_out = 6,
    .depends = kernel_depends_channels,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "Channels of a batch normalized to mean 0 and variance 1, then weighted and shifted; "
             "also the batch's mean and variance.",
    .shapes = "x [n,c,...], w [c], b [c] -> y [n,c,...], mean [c], var [c]",
    .formula =
        "y = z w + b, z = (x - mean) / (var + eps)^(1/2) by channels, var without correction",
    .derivative =
        "q = y' w, x' += (q - mean of q - z mean of (q z)) / (var + eps)^(1/2) + (mean' + "
        "2 (x - mean) var') / m, w' += sum of y' z, b' += sum of y'; m elements a channel",
    .edges =
        "a channel of equal elements gives b, or NaN if eps is 0; a channel with an infinity or "
        "NaN gives NaN; where var leaves the range y and its gradient are kept, second derivatives "
        "are not; an empty channel is refused; eps < 0 and NaN are refused",
    .source = "Ioffe & Szegedy (2015), arXiv:1502.03167",
};
