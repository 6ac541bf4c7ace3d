/* ops/network/attention.c: scaled dot-product attention.
 *
 * Output 1 is hidden and what the pullback makes the weights from: the weights themselves where
 * they are kept, else the logarithm of each row's sum of exponentials. Not kept, they exist a
 * tile at a time: each tile's exponentials are those of differences to the greatest score so far,
 * and what earlier tiles gave is multiplied when that grows.
 */
#include "attention_rows.h"
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"

#include <math.h>

/* Columns of a tile. */
enum { TILE = 256 };

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
        const bool by_row = o == 1 && !attention_keeps(call->attr, k);
        kernel_shape_begin(&out[o], q->dtype, by_row ? last : last + 1);
        for (int axis = 0; axis < last; axis++)
            out[o].extent[axis] = q->shape[axis];
        if (!by_row)
            out[o].extent[last] = o == 0 ? v->shape[last] : t;
    }
    return 0;
}

/* Kept weights are made a strip at a time, at their place. */
static struct attention attention_here(const struct kernel_call *call)
{
    const kernel_ref *in = call->in;
    return attention_of(call->attr, in[0], in[1], in[2],
                        attention_keeps(call->attr, in[1]) ? 0 : TILE);
}

static size_t part_bytes(const struct attention *a)
{
    return attention_bytes(a, a->strip * a->tile) + attention_space(a);
}

static size_t workspace(const struct kernel_call *call)
{
    const struct attention a = attention_here(call);
    return (size_t)attention_parts(&a) * part_bytes(&a);
}

/* Of each row of a strip: the greatest score so far, and the sum of exponentials of the differences
 * to it. */
struct attention_sums {
    double most[ATTENTION_MOST_ROWS], sum[ATTENTION_MOST_ROWS];
};

/* Scores of columns from, from + 1, ... become exponentials. What y [e] has of earlier columns is
 * multiplied to fit. A row of -inf alone has a sum of 0, and becomes NaN at the end. */
static void row_exponentials(const struct attention *a, int64_t seen, void *row, double *most,
                             double *sum, void *y)
{
    const struct kernel_isa *isa = kernel_isa_get();
    const double here = isa->max[a->dtype](seen, row), before = *most;
    if (here > before || isnan(here))
        *most = here;
    const double shift = *most == -INFINITY ? 0 : *most;
    isa->exp_shift[a->dtype](1, seen, row, &shift);
    if (*most != before) {
        const double factor = exp(before - *most);
        *sum *= factor;
        if (y != NULL)
            kernel_loop_run(LOOP_scale, a->dtype, a->e, y, y, NULL, &factor, false);
    }
    *sum += isa->sum[a->dtype](seen, row);
}

static void tile_exponentials(const struct attention *a, int64_t first, int64_t from,
                              const struct gemm_matrix *tile, struct attention_sums *sums, char *y)
{
    for (int64_t r = 0; r < tile->rows; r++) {
        void *row = attention_at(a, tile->data, r * tile->row_stride);
        int64_t seen = attention_seen(a, first + r + 1) - from;
        seen = seen < 0 ? 0 : seen < tile->columns ? seen : tile->columns;
        if (seen > 0)
            row_exponentials(a, seen, row, &sums->most[r], &sums->sum[r],
                             from > 0 ? attention_at(a, y, r * a->e) : NULL);
        attention_clear(a, row, seen, tile->columns);
    }
}

/* Rows of x [.., columns] are divided by their sums. */
static void divide(const struct attention *a, int64_t rows, int64_t columns, void *x,
                   const struct attention_sums *sums)
{
    for (int64_t r = 0; r < rows; r++) {
        const double factor = 1 / sums->sum[r];
        void *row = attention_at(a, x, r * columns);
        kernel_loop_run(LOOP_scale, a->dtype, columns, row, row, NULL, &factor, false);
    }
}

/* A strip of rows, tile by tile; kept weights are one tile, which is divided before it weighs. */
static void strip_run(const void *job, int64_t unit, int part)
{
    const struct kernel_call *call = job;
    const struct attention a = attention_here(call);
    const bool keep = attention_keeps(call->attr, call->in[1]);
    /* Causal strips see the more the later they are: the longest begin. */
    const int64_t b = unit / a.strips, first = (a.strips - 1 - unit % a.strips) * a.strip;
    const int64_t rows = a.s - first < a.strip ? a.s - first : a.strip, row = b * a.s + first;
    const int64_t seen = attention_seen(&a, first + rows);
    char *space = (char *)call->workspace + (size_t)part * part_bytes(&a);
    struct attention_scores scores;
    struct attention_sums sums;
    attention_begin(&a, call->in[0], call->in[1], space + attention_bytes(&a, a.strip * a.tile),
                    &scores);
    const struct gemm_matrix v = attention_matrix(call->in[2], b);
    const struct gemm_matrix queries = attention_queries(&a, &scores, b, first, rows);
    void *const kept = keep ? attention_at(&a, call->out[1]->data, row * a.t) : NULL;
    const struct gemm_matrix y =
        attention_dense(attention_at(&a, call->out[0]->data, row * a.e), rows, a.e);
    for (int r = 0; r < ATTENTION_MOST_ROWS; r++) {
        sums.most[r] = -INFINITY;
        sums.sum[r] = 0;
    }
    for (int64_t from = 0; from < seen; from += a.tile) {
        struct gemm_matrix tile = attention_dense(keep ? kept : space, rows, a.tile);
        tile.columns = seen - from < a.tile ? seen - from : a.tile;
        attention_tile(&a, &scores, b, &queries, from, &tile);
        tile_exponentials(&a, first, from, &tile, &sums, y.data);
        if (keep)
            for (int64_t r = 0; r < rows; r++)
                attention_clear(&a, attention_at(&a, kept, r * a.t), tile.columns, a.t);
        if (keep)
            divide(&a, rows, a.t, kept, &sums);
        const struct gemm_matrix of_v = attention_rows(&a, &v, from, tile.columns);
        gemm_run(a.dtype, &tile, &of_v, &y, from > 0, scores.products);
    }
    if (keep)
        return;
    divide(&a, rows, a.e, y.data, &sums);
    for (int64_t r = 0; r < rows; r++)
        kernel_store(a.dtype, call->out[1]->data, row + r, sums.most[r] + log(sums.sum[r]));
}

static int forward(const struct kernel_call *call)
{
    const struct attention a = attention_here(call);
    if (a.t == 0) {
        kernel_fill(call->out[0], 0);
        kernel_fill(call->out[1], 0);
        return 0;
    }
    attention_run(&(struct attention_work){strip_run, call, a.batches * a.strips, 0},
                  attention_parts(&a));
    return 0;
}

/* The weights, kept or made again. */
static kernel_ref weights(struct kernel_rule *rule)
{
    if (attention_keeps(rule->attr, rule->in[1]))
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
    if (attention_keeps(rule->attr, rule->in[1])) {
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
    const struct attention a = attention_of(call->attr, call->in[0], call->in[1], call->in[2], 0);
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
    .brief = "Scaled dot-product attention. keep_weights: the weights stay on the tape where t is "
             "at most 512; else their rows' sums alone, and the pullback makes the weights again, "
             "so memory grows with s, not with s t.",
    .shapes = "q [...,s,d], k [...,t,d], v [...,t,e] -> [...,s,e], leading axes equal; scale 0 is "
              "d^(-1/2)",
    .formula = "y = p v, p = softmax(scale q k^T) by rows; causal: row i sees columns 0 to i alone",
    .derivative = "v' += p^T y', r = y' v^T, u = p (r - sum over columns of p r), q' += scale u k, "
                  "k' += scale u^T q",
    .edges =
        "0 where t = 0; a row of s without a column to see exists only then, since row i of a "
        "causal one sees column 0; NaN in rows that see a score of inf or NaN or -inf alone; a "
        "NaN or inf that is not seen in k does not matter, in v it does",
    .source = "Vaswani et al. (2017), arXiv:1706.03762, eq. 1; in tiles: Milakov & Gimelshein "
              "(2018), arXiv:1805.02867, and Dao et al. (2022), arXiv:2205.14135",
};
