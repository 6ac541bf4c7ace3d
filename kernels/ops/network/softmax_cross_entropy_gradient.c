/* ops/network/softmax_cross_entropy_gradient.c: gradient of the mean cross entropy in the logits.
 *
 * An op of its own so that the pullback is one pass over the probabilities, and yet can be
 * differentiated again.
 */
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"

/* clang-format off */
#define GRADIENT_SAMPLE(b, c)                                                                      \
    {.n_in = 3, .dtype = {KERNEL_F64, KERNEL_F64, KERNEL_I64}, .rank = {0, 2, 1},                  \
     .shape = {{0}, {b, c}, {b}}, .low = {-1, 0.1, 0}, .high = {1, 0.9, c}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    GRADIENT_SAMPLE(3, 5),  GRADIENT_SAMPLE(1, 1), GRADIENT_SAMPLE(4, 10),
    GRADIENT_SAMPLE(2, 17), GRADIENT_SAMPLE(0, 3),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref g = call->in[0], p = call->in[1], labels = call->in[2];
    if (kernel_require_float(call, 0) != 0 || kernel_require_float(call, 1) != 0)
        return -1;
    if (g->rank != 0 || p->rank != 2 || labels->rank != 1 || labels->dtype != KERNEL_I64 ||
        labels->shape[0] != p->shape[0])
        return kernel_refuse_operands(call, ", ", "g [], p [b,c] and labels i64 [b] are wanted");
    kernel_shape_begin(out, p->dtype, 2);
    out->same_as = 1;
    return 0;
}

/* The row's element at the label is made as (p - 1) s, which keeps its accuracy where p is near
 * 1. */
static int forward(const struct kernel_call *call)
{
    const kernel_ref g = call->in[0], p = call->in[1], labels = call->in[2];
    struct kernel_array *out = call->out[0];
    const int64_t rows = p->shape[0];
    const bool narrow = p->dtype == KERNEL_F32;
    const double one = kernel_load(g->dtype, g->data, 0);
    const double scale = one / (double)rows;
    const int64_t *to = out->strides, *from = p->strides;
    if (kernel_require_labels(call, labels, p->shape[1]) != 0)
        return -1;
    if (call->accumulate) {
        /* First what the loop below does not give at the labels: -s. */
        for (int64_t r = 0; r < rows; r++) {
            const int64_t label = ((const int64_t *)labels->data)[r * labels->strides[0]];
            const int64_t o = r * to[0] + label * to[1];
            if (narrow)
                ((float *)out->data)[o] -= (float)scale;
            else
                ((double *)out->data)[o] -= scale;
        }
        kernel_elementwise(LOOP_scale, out, 1, &p, &scale, true);
        return 0;
    }
    kernel_elementwise(LOOP_scale, out, 1, &p, &scale, false);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t label = ((const int64_t *)labels->data)[r * labels->strides[0]];
        const int64_t o = r * to[0] + label * to[1], i = r * from[0] + label * from[1];
        if (narrow)
            ((float *)out->data)[o] = (((const float *)p->data)[i] - 1) * (float)scale;
        else
            ((double *)out->data)[o] = (((const double *)p->data)[i] - 1) * scale;
    }
    return 0;
}

/* g' is the inner product of y' with what the op gives for g = 1. */
static void pullback(struct kernel_rule *rule)
{
    const kernel_ref g = rule->in[0], p = rule->in[1], labels = rule->in[2];
    const kernel_ref h = rule->adjoint[0];
    if (h == NULL)
        return;
    if (kernel_needs(rule, 0)) {
        const int64_t all[] = {0};
        /* A one of rank 0; g itself may not be there. */
        const kernel_ref sum = kernel_emit(rule, &kernel_op_sum, 1, &h, 1, all);
        const kernel_ref in[] = {kernel_emit2(rule, &kernel_op_tie, sum, sum), p, labels};
        const kernel_ref unit =
            kernel_emit(rule, &kernel_op_softmax_cross_entropy_gradient, 3, in, 0, NULL);
        const kernel_ref product = kernel_emit2(rule, &kernel_op_mul, h, unit);
        kernel_accumulate(rule, 0, &kernel_op_sum, 1, &product, 1, all);
    }
    if (kernel_needs(rule, 1)) {
        const int64_t share = kernel_attr_word(1 / (double)p->shape[0]);
        const kernel_ref product = kernel_emit2(rule, &kernel_op_mul, h, g);
        kernel_accumulate(rule, 1, &kernel_op_scale, 1, &product, 1, &share);
    }
}

KERNEL_OP(softmax_cross_entropy_gradient) = {
    .name = "softmax_cross_entropy_gradient",
    KERNEL_IN("g", "p", "labels"),
    .n_out = 1,
    .hidden = true,
    .accumulates = true,
    .saves_in = 7,
    .reads_for = {6, 1},
    .depends = kernel_depends_elements,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .flops_per_element = 1,
    .sample = sample,
    .brief = "Gradient of the mean cross entropy in the logits.",
    .shapes = "g [], p [b,c], labels i64 [b] -> [b,c]",
    .formula = "y = g (p - onehot(labels)) / b",
    .derivative = "g' += sum of y' (p - onehot(labels)) / b, p' += y' g / b",
    .edges = "labels are those that softmax_cross_entropy has accepted",
};
