/* ops/network/attention.c: scaled dot-product attention.
 *
 * Output 1 is hidden and what the pullback makes the weights from: the weights themselves where
 * they are kept, else the logarithm of each row's sum of exponentials. Not kept, they exist a
 * strip of rows at a time.
 */
#include "attention_rows.h"
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"

#include <math.h>

/* 1/2 and 0 as words. */
#define HALF 0x3fe0000000000000
#define ATTENTION_SAMPLE(r, eq, ek, ev, scale, causal, keep)                                       \
    {                                                                                              \
        .n_in = 3, .dtype = {KERNEL_F64, KERNEL_F64, KERNEL_F64}, .rank = {r, r, r},               \
        .shape = {{KERNEL_EXTENTS eq}, {KERNEL_EXTENTS ek}, {KERNEL_EXTENTS ev}},                  \
        .low = {-1, -1, -1}, .high = {1, 1, 1}, .n_attr = 3, .attr = {                             \
            scale,                                                                                 \
            causal,                                                                                \
            keep                                                                                   \
        }                                                                                          \
    }
static const struct kernel_sample samples[] = {
    ATTENTION_SAMPLE(2, (3, 4), (5, 4), (5, 2), 0, 0, 0),
    ATTENTION_SAMPLE(2, (3, 4), (5, 4), (5, 2), HALF, 0, 1),
    ATTENTION_SAMPLE(2, (4, 2), (3, 2), (3, 3), 0, 1, 0),
    ATTENTION_SAMPLE(2, (3, 2), (4, 2), (4, 3), HALF, 1, 1),
    ATTENTION_SAMPLE(3, (2, 3, 2), (2, 2, 2), (2, 2, 3), 0, 0, 0),
    ATTENTION_SAMPLE(4, (2, 1, 2, 2), (2, 1, 3, 2), (2, 1, 3, 1), 0, 1, 1),
    ATTENTION_SAMPLE(2, (1, 1), (1, 1), (1, 1), 0, 0, 0),
    ATTENTION_SAMPLE(2, (17, 2), (18, 2), (18, 1), 0, 1, 0),
    ATTENTION_SAMPLE(2, (18, 2), (17, 2), (17, 1), 0, 0, 1),
    ATTENTION_SAMPLE(2, (2, 0), (3, 0), (3, 2), 0, 0, 0),
    ATTENTION_SAMPLE(2, (0, 2), (3, 2), (3, 2), 0, 0, 1),
    ATTENTION_SAMPLE(2, (2, 2), (0, 2), (0, 2), 0, 0, 0),
    ATTENTION_SAMPLE(2, (2, 2), (3, 2), (3, 0), 0, 0, 1),
    ATTENTION_SAMPLE(3, (0, 2, 2), (0, 3, 2), (0, 3, 1), 0, 1, 0),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref q = call->in[0], k = call->in[1], v = call->in[2];
    for (int i = 0; i < 3; i++)
        if (kernel_require_float(call, i) != 0)
            return -1;
    if (!attention_fits(q, k, v))
        return kernel_refuse_operands(
            call, ", ",
            "q [...,s,d], k [...,t,d] and v [...,t,e] of equal leading axes are wanted");
    const int last = q->rank - 1;
    const int64_t s = q->shape[last - 1], t = k->shape[last - 1];
    if (!gemm_fits(s, q->shape[last], t) || !gemm_fits(s, t, v->shape[last]))
        return kernel_refuse_operands(call, ", ", "an extent is beyond the range of BLAS");
    for (int o = 0; o < 2; o++) {
        const bool by_row = o == 1 && !call->attr[2];
        kernel_shape_begin(&out[o], q->dtype, by_row ? last : last + 1);
        for (int axis = 0; axis < last; axis++)
            out[o].extent[axis] = q->shape[axis];
        if (!by_row)
            out[o].extent[last] = o == 0 ? v->shape[last] : t;
    }
    return 0;
}

static size_t workspace(const struct kernel_call *call)
{
    const kernel_ref k = call->in[1], v = call->in[2];
    const struct attention a = attention_of(call->attr, call->in[0], k, v);
    const int64_t strip = call->attr[2] ? 0 : a.strip * a.t;
    return attention_space(&a) + attention_bytes(&a, strip);
}

/* Scores of a strip become exponentials of their differences to the row's maximum, divided by
 * their sum if the weights are kept, which are then done; else the sums' logarithms go to `logs`
 * and the rows of y [.., e] are yet to be divided, by what `sums` receives. */
static void exponentials(const struct attention *a, int64_t first, const struct gemm_matrix *strip,
                         void *logs, double *sums)
{
    const struct kernel_isa *isa = kernel_isa_get();
    for (int64_t r = 0; r < strip->rows; r++) {
        void *row = attention_at(a, strip->data, r * strip->row_stride);
        const int64_t seen = attention_seen(a, first + r + 1);
        const double most = isa->max[a->dtype](seen, row);
        isa->exp_shift[a->dtype](1, seen, row, &most);
        const double sum = isa->sum[a->dtype](seen, row);
        attention_clear(a, row, seen, strip->columns);
        sums[r] = 1 / sum;
        if (logs != NULL)
            kernel_store(a->dtype, logs, r, most + log(sum));
        else
            kernel_loop_run(LOOP_scale, a->dtype, seen, row, row, NULL, &sums[r], false);
    }
}

/* The strip's rows of y: weights times v. */
static void weigh(const struct attention *a, const struct attention_scores *scores,
                  const struct gemm_matrix *strip, const struct gemm_matrix *v,
                  const struct gemm_matrix *y, const double *sums)
{
    struct gemm_matrix seen = *v;
    seen.rows = strip->columns;
    gemm_run(a->dtype, strip, &seen, y, false, scores->products);
    for (int64_t r = 0; r < y->rows && sums != NULL; r++) {
        void *row = attention_at(a, y->data, r * a->e);
        kernel_loop_run(LOOP_scale, a->dtype, a->e, row, row, NULL, &sums[r], false);
    }
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref q = call->in[0], k = call->in[1], v = call->in[2];
    const struct attention a = attention_of(call->attr, q, k, v);
    const bool keep = call->attr[2] != 0;
    struct attention_scores scores;
    if (a.t == 0) {
        kernel_fill(call->out[0], 0);
        kernel_fill(call->out[1], 0);
        return 0;
    }
    char *space = call->workspace;
    attention_begin(&a, q, k, space + attention_bytes(&a, keep ? 0 : a.strip * a.t), &scores);
    for (int64_t b = 0; b < a.batches; b++) {
        const struct gemm_matrix of_v = attention_matrix(v, b);
        attention_batch(&a, &scores, b);
        for (int64_t first = 0; first < a.s; first += a.strip) {
            const int64_t rows = a.s - first < a.strip ? a.s - first : a.strip;
            const int64_t row = b * a.s + first;
            double sums[ATTENTION_MOST_ROWS];
            struct gemm_matrix strip = attention_dense(space, rows, a.t);
            if (keep)
                strip.data = attention_at(&a, call->out[1]->data, row * a.t);
            const struct gemm_matrix y =
                attention_dense(attention_at(&a, call->out[0]->data, row * a.e), rows, a.e);
            strip.columns = attention_seen(&a, first + rows);
            (void)attention_strip(&a, &scores, first, &strip);
            exponentials(&a, first, &strip, keep ? NULL : attention_at(&a, call->out[1]->data, row),
                         sums);
            for (int64_t r = 0; r < rows && keep; r++)
                attention_clear(&a, attention_at(&a, strip.data, r * a.t), strip.columns, a.t);
            weigh(&a, &scores, &strip, &of_v, &y, keep ? NULL : sums);
        }
    }
    return 0;
}

/* The weights, kept or made again. */
static kernel_ref weights(struct kernel_rule *rule)
{
    if (rule->attr[2])
        return rule->out[1];
    const kernel_ref in[] = {rule->in[0], rule->in[1], rule->out[1]};
    return kernel_emit(rule, &kernel_op_attention_weights, 3, in, 2, rule->attr);
}

/* What arrives at the hidden output, as an adjoint of the scores: weights times its difference to
 * its mean, or, by rows, weights times it. */
static kernel_ref by_weights(struct kernel_rule *rule, kernel_ref g)
{
    const int last = rule->in[0]->rank - 1;
    const kernel_ref p = weights(rule);
    if (rule->attr[2]) {
        const int64_t along_rows[] = {1, last};
        const kernel_ref product = kernel_emit2(rule, &kernel_op_mul, g, p);
        const kernel_ref mean = kernel_emit(rule, &kernel_op_sum, 1, &product, 2, along_rows);
        return kernel_emit2(rule, &kernel_op_mul, p, kernel_emit2(rule, &kernel_op_sub, g, mean));
    }
    int64_t column[KERNEL_MAX_RANK];
    for (int axis = 0; axis < last; axis++)
        column[axis] = g->shape[axis];
    column[last] = 1;
    return kernel_emit2(rule, &kernel_op_mul, p,
                        kernel_emit_shape(rule, &kernel_op_reshape, g, last + 1, column));
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref q = rule->in[0], k = rule->in[1], v = rule->in[2];
    if (rule->adjoint[0] != NULL && rule->needs == 4) { /* v alone, which need not be there then */
        const kernel_ref in[] = {kernel_emit1(rule, &kernel_op_transpose, weights(rule)),
                                 rule->adjoint[0]};
        kernel_accumulate(rule, 2, &kernel_op_matmul, 2, in, 0, NULL);
    } else if (rule->adjoint[0] != NULL) {
        const kernel_ref in[] = {rule->adjoint[0], q, k, v, rule->out[1]};
        kernel_ref result[3];
        kernel_emit_all(rule, &kernel_op_attention_gradient, 5, in, 3, rule->attr, result);
        for (int i = 0; i < 3; i++)
            kernel_accumulate_value(rule, i, result[i]);
    }
    if (rule->adjoint[1] != NULL)
        attention_add_scores(rule, 0, by_weights(rule, rule->adjoint[1]));
}

/* Two products, and softmax for what is seen. */
static struct kernel_cost cost(const struct kernel_call *call)
{
    const struct attention a = attention_of(call->attr, call->in[0], call->in[1], call->in[2]);
    const uint64_t each = (uint64_t)(2 * a.d + 2 * a.e + 26);
    return (struct kernel_cost){.flops = each * attention_pairs(&a),
                                .bytes = kernel_moved_bytes(call)};
}

/* What is kept for the pullback has all in a matrix, too. */
static void depends(const struct kernel_call *call, int o, int i, struct kernel_depends *d)
{
    if (o == 0 && i == 0)
        kernel_depends_rows(call, o, i, d);
    else
        kernel_depends_matrices(call, o, i, d);
}

KERNEL_OP(attention) = {
    .name = "attention",
    KERNEL_IN("q", "k", "v"),
    KERNEL_ATTRS({"scale", KERNEL_ATTR_REAL}, {"causal", KERNEL_ATTR_FLAG},
                 {"keep_weights", KERNEL_ATTR_FLAG}),
    .n_out = 2,
    .saves_in = 7,
    .saves_out = 2,
    .reads_for = {7, 7, 3},
    .depends = depends,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "Scaled dot-product attention; keep_weights: the softmax stays on the tape, else "
             "their rows' "
             "sums alone, and the pullback makes the weights again.",
    .shapes = "q [...,s,d], k [...,t,d], v [...,t,e] -> [...,s,e], leading axes equal; scale 0 is "
              "d^(-1/2)",
    .formula = "y = p v, p = softmax(scale q k^T) by rows; causal: row i sees columns 0 to i alone",
    .derivative = "v' += p^T y', r = y' v^T, u = p (r - sum over columns of p r), q' += scale u k, "
                  "k' += scale u^T q",
    .edges =
        "0 where t = 0; a row of s without a column to see exists only then, since row i of a "
        "causal one sees column 0; NaN in rows that see a score of inf or NaN or -inf alone; a "
        "NaN or inf that is not seen in k does not matter, in v it does",
    .source = "Vaswani et al. (2017), arXiv:1706.03762, eq. 1; in strips: Milakov & Gimelshein "
              "(2018), arXiv:1805.02867, and Dao et al. (2022), arXiv:2205.14135",
};
