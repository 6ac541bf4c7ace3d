/* ops/network/rms_norm.c: each row divided by its root mean square, with weights.
 *
 * Output 1, the reciprocal root mean square of the rows, is what the pullback reads beside x; it
 * has a pullback of its own.
 */
#include "dense.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "normalize.h"

/* clang-format off */
#define ROOT_SAMPLE(rank_x, rank_w, x_extents, w_extents)                                          \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_F64}, .rank = {rank_x, rank_w},                       \
     .shape = {{KERNEL_EXTENTS x_extents}, {KERNEL_EXTENTS w_extents}},                            \
     .low = {-2, 0.5}, .high = {2, 2}, .n_attr = 1,                                                \
     .attr = {(int64_t)(1023 - 3) << 52 /* 1/8, bit for bit */}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    ROOT_SAMPLE(2, 1, (3, 5), (5)),       ROOT_SAMPLE(1, 1, (4), (4)),
    ROOT_SAMPLE(3, 2, (2, 3, 2), (3, 2)), ROOT_SAMPLE(3, 1, (2, 2, 3), (3)),
    ROOT_SAMPLE(2, 1, (0, 3), (3)),       ROOT_SAMPLE(2, 1, (2, 0), (0)),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0], w = call->in[1];
    if (kernel_require_float(call, 0) != 0 || kernel_require_float(call, 1) != 0 ||
        normalize_rows_check(call, x, w) != 0)
        return -1;
    if (normalize_eps_check(call, kernel_attr_real(call->attr[0])) != 0)
        return KERNEL_REFUSED_ATTRIBUTE;
    kernel_shape_begin(&out[0], x->dtype, x->rank);
    out[0].same_as = 0;
    normalize_rows_statistics(x, w, &out[1]);
    return 0;
}

static int forward(const struct kernel_call *call)
{
    const struct normalization n = normalize_rows(call->in[0], call->in[1], false);
    char *space = call->workspace;
    struct normalize_forward data = {.y = call->out[0]->data,
                                     .rstd = call->out[1]->data,
                                     .eps = kernel_attr_real(call->attr[0])};
    data.x = dense_data(call->in[0], &space);
    data.w = dense_data(call->in[1], &space);
    normalize_forward(&n, &data);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0], w = rule->in[1];
    const struct normalization n = normalize_rows(x, w, false);
    if (x->size == 0)
        return;
    if (rule->adjoint[0] != NULL) {
        const kernel_ref in[] = {rule->adjoint[0], x, w, rule->out[1]};
        kernel_accumulate_all(rule, &kernel_op_rms_norm_gradient, 4, in, 0, NULL);
    }
    if (rule->adjoint[1] != NULL && kernel_needs(rule, 0))
        normalize_accumulate_rstd(rule, &n, NULL, rule->out[1], rule->adjoint[1]);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const struct normalization n = normalize_rows(call->in[0], call->in[1], false);
    return normalize_forward_cost(call, &n);
}

static void depends(const struct kernel_call *call, int o, int i, struct kernel_depends *d)
{
    normalize_rows_depends(call, o, i, 1, d);
}

KERNEL_OP(rms_norm) = {
    .name = "rms_norm",
    KERNEL_IN("x", "w"),
    KERNEL_ATTRS({"eps", KERNEL_ATTR_REAL}),
    .n_out = 2,
    .saves_in = 3,
    .reads_for = {3, 1},
    .touches_all = true,
    .saves_out = 2,
    .depends = depends,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = dense_workspace,
    .sample = sample,
    .brief = "Rows divided by their root mean square, then weighted; a row is what lies along the "
             "axes of w.",
    .shapes = "x [...,d...], w [d...] -> [...,d...]",
    .formula = "y = z w, z = x / (mean of x^2 + eps)^(1/2) by rows",
    .derivative = "q = y' w, x' += (q - z mean of (q z)) / (mean of x^2 + eps)^(1/2), w' += sum of "
                  "y' z over rows",
    .edges = "a row of zeros gives zeros, or NaN if eps is 0; a row with an infinity or NaN gives "
             "NaN at that element, and 0 or NaN at the others; the mean of squares may leave the "
             "range, its root may not; eps < 0 and NaN are refused",
    .source = "Zhang & Sennrich (2019), arXiv:1910.07467",
};
