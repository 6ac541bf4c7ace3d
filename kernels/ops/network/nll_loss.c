/* ops/network/nll_loss.c: mean negative log-likelihood of labels.
 *
 * Linear in its operand: the adjoint is an op of its own whose adjoint is this one.
 */
#include "elementwise.h"
#include "kernel_ops.h"
#include "op_rules.h"

/* clang-format off */
#define LIKELIHOOD_SAMPLE(b, c)                                                                    \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_I64}, .rank = {2, 1}, .shape = {{b, c}, {b}},         \
     .low = {-3, 0}, .high = {-0.1, c}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    LIKELIHOOD_SAMPLE(3, 5),
    LIKELIHOOD_SAMPLE(1, 1),
    LIKELIHOOD_SAMPLE(7, 4),
    LIKELIHOOD_SAMPLE(0, 3),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
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

static int forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0], labels = call->in[1];
    double sum = 0;
    if (kernel_require_labels(call, labels, x->shape[1]) != 0)
        return -1;
    for (int64_t r = 0; r < x->shape[0]; r++) {
        const int64_t label = ((const int64_t *)labels->data)[r * labels->strides[0]];
        const int64_t at = r * x->strides[0] + label * x->strides[1];
        sum -= x->dtype == KERNEL_F32 ? (double)((const float *)x->data)[at]
                                      : ((const double *)x->data)[at];
    }
    kernel_fill(call->out[0], sum / (double)x->shape[0]);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] == NULL)
        return;
    const kernel_ref in[] = {rule->adjoint[0], rule->in[1]};
    kernel_accumulate(rule, 0, &kernel_op_nll_loss_gradient, 2, in, 1, &rule->in[0]->shape[1]);
}

static struct kernel_cost cost(const struct kernel_call *call)
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
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .sample = sample,
    .brief = "Mean negative log-likelihood of labels under log-probabilities x, as log_softmax "
             "gives them.",
    .shapes = "x [b,c], labels i64 [b] -> []",
    .formula = "y = -(sum_i x_i,label_i) / b",
    .derivative = "x' -= y' onehot(labels) / b",
    .edges = "NaN for b = 0; a label outside 0..c-1 is refused",
};
