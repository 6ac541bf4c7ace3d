/* ops/network/attention_weights.c: the weights of attention from its rows' sums.
 *
 * For second derivatives, where the weights have to be a value of their own.
 */
#include "attention_rows.h"
#include "dense.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"

#define HALF 0x3fe0000000000000
#define WEIGHTS_SAMPLE(r, eq, ek, el, scale, causal)                                               \
    {                                                                                              \
        .n_in = 3, .dtype = {KERNEL_F64, KERNEL_F64, KERNEL_F64}, .rank = {r, r, (r)-1},           \
        .shape = {{KERNEL_EXTENTS eq}, {KERNEL_EXTENTS ek}, {KERNEL_EXTENTS el}},                  \
        .low = {-1, -1, 0}, .high = {1, 1, 2}, .n_attr = 2, .attr = {                              \
            scale,                                                                                 \
            causal                                                                                 \
        }                                                                                          \
    }
static const struct kernel_sample samples[] = {
    WEIGHTS_SAMPLE(2, (3, 4), (5, 4), (3), 0, 0),
    WEIGHTS_SAMPLE(2, (4, 2), (3, 2), (4), HALF, 1),
    WEIGHTS_SAMPLE(3, (2, 2, 2), (2, 3, 2), (2, 2), 0, 1),
    WEIGHTS_SAMPLE(2, (1, 1), (1, 1), (1), 0, 0),
    WEIGHTS_SAMPLE(2, (2, 0), (3, 0), (2), 0, 0),
    WEIGHTS_SAMPLE(2, (0, 2), (3, 2), (0), 0, 0),
    WEIGHTS_SAMPLE(2, (2, 2), (0, 2), (2), 0, 1),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref q = call->in[0], k = call->in[1], logs = call->in[2];
    for (int i = 0; i < 3; i++)
        if (kernel_require_float(call, i) != 0)
            return -1;
    if (!attention_fits(q, k, NULL) || !attention_has(logs, q, q->shape[q->rank - 2], -1))
        return kernel_refuse_operands(call, ", ",
                                      "q [...,s,d], k [...,t,d] and logs [...,s] are wanted");
    kernel_shape_begin(out, q->dtype, q->rank);
    for (int axis = 0; axis < q->rank; axis++)
        out->extent[axis] = axis < q->rank - 1 ? q->shape[axis] : k->shape[axis - 1];
    return 0;
}

static size_t workspace(const struct kernel_call *call)
{
    const struct attention a = attention_of(call->attr, call->in[0], call->in[1], NULL, 0);
    return attention_space(&a) + dense_bytes(call->in[2]);
}

static int forward(const struct kernel_call *call)
{
    const struct attention a = attention_of(call->attr, call->in[0], call->in[1], NULL, 0);
    struct attention_scores scores;
    char *space = call->workspace;
    if (call->out[0]->size == 0)
        return 0;
    void *logs = (void *)(uintptr_t)dense_data(call->in[2], &space);
    attention_begin(&a, call->in[0], call->in[1], space, &scores);
    for (int64_t b = 0; b < a.batches; b++)
        for (int64_t first = 0; first < a.s; first += a.strip) {
            const int64_t rows = a.s - first < a.strip ? a.s - first : a.strip;
            const int64_t row = b * a.s + first;
            const struct gemm_matrix queries = attention_queries(&a, &scores, b, first, rows);
            const struct gemm_matrix strip =
                attention_dense(attention_at(&a, call->out[0]->data, row * a.t), rows, a.t);
            attention_tile(&a, &scores, b, &queries, 0, &strip);
            attention_exponentials(&a, first, &strip, attention_at(&a, logs, row));
        }
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] == NULL)
        return;
    const kernel_ref scores = kernel_emit2(rule, &kernel_op_mul, rule->adjoint[0], rule->out[0]);
    attention_add_scores(rule, 0, scores);
    const int64_t along_rows[] = {0, rule->in[0]->rank - 1};
    if (kernel_needs(rule, 2))
        kernel_accumulate_value(
            rule, 2,
            kernel_emit1(rule, &kernel_op_neg,
                         kernel_emit(rule, &kernel_op_sum, 1, &scores, 2, along_rows)));
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const struct attention a = attention_of(call->attr, call->in[0], call->in[1], NULL, 0);
    return (struct kernel_cost){.flops = (uint64_t)(2 * a.d + 21) * attention_pairs(&a),
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(attention_weights) = {
    .name = "attention_weights",
    KERNEL_IN("q", "k", "logs"),
    KERNEL_ATTRS({"scale", KERNEL_ATTR_REAL}, {"causal", KERNEL_ATTR_FLAG}),
    .n_out = 1,
    .hidden = true,
    .saves_in = 3,
    .saves_out = 1,
    .reads_for = {2, 1, 0},
    .depends = kernel_depends_matrices,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "Weights of attention.",
    .shapes = "q [...,s,d], k [...,t,d], logs [...,s] -> [...,s,t]",
    .formula = "p = exp(scale q k^T - logs) where a row sees the column, else 0",
    .derivative = "u = p p', q' += scale u k, k' += scale u^T q, logs' -= sum of u over columns",
};
