/* ops/network/nll_loss.c: mean negative log-likelihood of labels, and its gradient.
 *
 * Linear in its operand: the adjoint of each is the other. The gradient added to an adjoint touches
 * one element a row.
 */
#include "elementwise.h"
#include "kernel_ops.h"
#include "op_rules.h"

/* clang-format off */
#define LIKELIHOOD_SAMPLE(b, c)                                                                    \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_I64}, .rank = {2, 1}, .shape = {{b, c}, {b}},         \
     .low = {-3, 0}, .high = {-0.1, c}}
/* clang-format on */
static const struct kernel_sample nll_loss_samples[] = {
    LIKELIHOOD_SAMPLE(3, 5),
    LIKELIHOOD_SAMPLE(1, 1),
    LIKELIHOOD_SAMPLE(7, 4),
    LIKELIHOOD_SAMPLE(0, 3),
};
KERNEL_SAMPLES_OF(nll_loss)

static int nll_loss_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0], labels = call->in[1];
    if (kernel_require_float(call, 0) != 0)
        return -1;
    if (kernel_require_i64(call, 1, "labels") != 0)
        return KERNEL_REFUSED_DTYPE;
    if (x->rank != 2 || labels->rank != 1 || x->shape[0] != labels->shape[0])
        return kernel_refuse_operands(call, ", ", "x [b,c] and labels [b] are wanted");
    kernel_shape_begin(out, x->dtype, 0);
    return 0;
}

static int nll_loss_forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0], labels = call->in[1];
    double sum = 0;
    if (kernel_require_labels(call, labels, x->shape[1]) != 0)
        return -1;
    for (int64_t r = 0; r < x->shape[0]; r++) {
        const int64_t label = ((const int64_t *)labels->data)[r * labels->strides[0]];
        const int64_t at = r * x->strides[0] + label * x->strides[1];
        sum -= kernel_load(x->dtype, x->data, at);
    }
    kernel_fill(call->out[0], sum / (double)x->shape[0]);
    return 0;
}

static void nll_loss_pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] == NULL)
        return;
    const kernel_ref in[] = {rule->adjoint[0], rule->in[1]};
    kernel_accumulate(rule, 0, &kernel_op_nll_loss_gradient, 2, in, 1, &rule->in[0]->shape[1]);
}

static struct kernel_cost nll_loss_cost(const struct kernel_call *call)
{
    const uint64_t rows = (uint64_t)call->in[1]->size;
    return (struct kernel_cost){.flops = rows + 4,
                                .bytes = (rows + 1) * kernel_dtype_bytes(call->in[0]->dtype) +
                                         kernel_touched_bytes(call->in[1])};
}

KERNEL_OP(nll_loss) = {
    .name = "nll_loss",
    KERNEL_IN("x", "labels"),
    .n_out = 1,
    .saves_in = 2,
    .shape = nll_loss_shape,
    .forward = nll_loss_forward,
    .pullback = nll_loss_pullback,
    .cost = nll_loss_cost,
    .sample = nll_loss_sample,
    .brief = "Mean negative log-likelihood of labels under log-probabilities x, as log_softmax "
             "gives them.",
    .shapes = "x [b,c], labels i64 [b] -> []",
    .formula = "y = -(sum_i x_i,label_i) / b",
    .derivative = "x' -= y' onehot(labels) / b",
    .edges = "NaN for b = 0; a label outside 0..c-1 is refused",
};

/* clang-format off */
#define GRADIENT_SAMPLE(b, c)                                                                      \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_I64}, .rank = {0, 1}, .shape = {{0}, {b}},            \
     .low = {-1, 0}, .high = {1, c}, .n_attr = 1, .attr = {c}}
/* clang-format on */
static const struct kernel_sample nll_loss_gradient_samples[] = {
    GRADIENT_SAMPLE(3, 5),
    GRADIENT_SAMPLE(1, 1),
    GRADIENT_SAMPLE(7, 4),
    GRADIENT_SAMPLE(0, 3),
};
KERNEL_SAMPLES_OF(nll_loss_gradient)

static int nll_loss_gradient_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref g = call->in[0], labels = call->in[1];
    if (kernel_require_float(call, 0) != 0)
        return -1;
    if (g->rank != 0 || labels->rank != 1 || labels->dtype != KERNEL_I64)
        return kernel_refuse_operands(call, ", ", "g [] and labels i64 [b] are wanted");
    kernel_shape_begin(out, g->dtype, 2);
    out->extent[0] = labels->shape[0];
    out->extent[1] = call->attr[0];
    return 0;
}

static int nll_loss_gradient_forward(const struct kernel_call *call)
{
    const kernel_ref g = call->in[0], labels = call->in[1];
    struct kernel_array *out = call->out[0];
    const bool narrow = g->dtype == KERNEL_F32;
    const double one = kernel_load(g->dtype, g->data, 0);
    const double share = one / (double)labels->shape[0];
    if (kernel_require_labels(call, labels, out->shape[1]) != 0)
        return -1;
    if (!call->accumulate)
        kernel_fill(out, 0);
    for (int64_t r = 0; r < labels->shape[0]; r++) {
        const int64_t label = ((const int64_t *)labels->data)[r * labels->strides[0]];
        const int64_t at = r * out->strides[0] + label * out->strides[1];
        if (narrow)
            ((float *)out->data)[at] -= (float)share;
        else
            ((double *)out->data)[at] -= share;
    }
    return 0;
}

static void nll_loss_gradient_pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] == NULL || rule->in[1]->size == 0)
        return;
    const kernel_ref in[] = {rule->adjoint[0], rule->in[1]};
    kernel_accumulate(rule, 0, &kernel_op_nll_loss, 2, in, 0, NULL);
}

static struct kernel_cost nll_loss_gradient_cost(const struct kernel_call *call)
{
    const uint64_t rows = (uint64_t)call->in[1]->size,
                   elem = kernel_dtype_bytes(call->in[0]->dtype);
    return (struct kernel_cost){.flops = rows + 4,
                                .bytes =
                                    kernel_touched_bytes(call->in[1]) + elem + 2 * rows * elem +
                                    (call->accumulate ? 0 : kernel_touched_bytes(call->out[0]))};
}

KERNEL_OP(nll_loss_gradient) = {
    .name = "nll_loss_gradient",
    KERNEL_IN("g", "labels"),
    KERNEL_ATTRS({"columns", KERNEL_ATTR_INT}),
    .n_out = 1,
    .hidden = true,
    .accumulates = true,
    .saves_in = 2,
    .shape = nll_loss_gradient_shape,
    .forward = nll_loss_gradient_forward,
    .pullback = nll_loss_gradient_pullback,
    .cost = nll_loss_gradient_cost,
    .sample = nll_loss_gradient_sample,
    .brief = "Gradient of the mean negative log-likelihood.",
    .shapes = "g [], labels i64 [b] -> [b,columns]",
    .formula = "y = -g onehot(labels) / b",
    .derivative = "g' -= (sum_i y'_i,label_i) / b",
    .edges = "labels are those that nll_loss has accepted",
};
