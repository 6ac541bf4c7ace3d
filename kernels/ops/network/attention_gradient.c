/* ops/network/attention_gradient.c: the adjoints of attention's operands, a strip of rows at a
 * time.
 *
 * Its own pullback is made of elementary ops and whole weights, since it serves second derivatives
 * alone.
 */
#include "attention_rows.h"
#include "dense.h"
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"

#include <string.h>

static const char *const names[] = {"g", "q", "k", "v", "rows"};
enum { G, Q, K, V, ROWS, OPERANDS };

#define HALF 0x3fe0000000000000
#define GRADIENT_SAMPLE(r, eg, eq, ek, ev, er, scale, causal, keep)                                \
    {                                                                                              \
        .n_in = OPERANDS, .dtype = {KERNEL_F64, KERNEL_F64, KERNEL_F64, KERNEL_F64, KERNEL_F64},   \
        .rank = {r, r, r, r, (keep) ? (r) : (r)-1},                                                \
        .shape = {{KERNEL_EXTENTS eg},                                                             \
                  {KERNEL_EXTENTS eq},                                                             \
                  {KERNEL_EXTENTS ek},                                                             \
                  {KERNEL_EXTENTS ev},                                                             \
                  {KERNEL_EXTENTS er}},                                                            \
        .low = {-1, -1, -1, -1, 0}, .high = {1, 1, 1, 1, 1}, .n_attr = 3, .attr = {                \
            scale,                                                                                 \
            causal,                                                                                \
            keep                                                                                   \
        }                                                                                          \
    }
/* Kept weights are 0 where they are not seen, which random ones are not: causal ones are left to
 * the samples of attention. */
static const struct kernel_sample samples[] = {
    GRADIENT_SAMPLE(2, (3, 2), (3, 4), (5, 4), (5, 2), (3), 0, 0, 0),
    GRADIENT_SAMPLE(2, (3, 2), (3, 4), (5, 4), (5, 2), (3, 5), HALF, 0, 1),
    GRADIENT_SAMPLE(2, (4, 3), (4, 2), (3, 2), (3, 3), (4), HALF, 1, 0),
    GRADIENT_SAMPLE(3, (2, 3, 1), (2, 3, 2), (2, 2, 2), (2, 2, 1), (2, 3), 0, 0, 0),
    GRADIENT_SAMPLE(2, (1, 1), (1, 1), (1, 1), (1, 1), (1, 1), 0, 0, 1),
    GRADIENT_SAMPLE(2, (0, 2), (0, 2), (3, 2), (3, 2), (0), 0, 0, 0),
    GRADIENT_SAMPLE(2, (2, 2), (2, 2), (0, 2), (0, 2), (2, 0), 0, 0, 1),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref *in = call->in;
    for (int i = 0; i < OPERANDS; i++)
        if (kernel_require_float(call, i) != 0)
            return -1;
    bool fits = attention_fits(in[Q], in[K], in[V]);
    if (fits) {
        const int last = in[Q]->rank - 1;
        const int64_t s = in[Q]->shape[last - 1], t = in[K]->shape[last - 1];
        fits = attention_has(in[G], in[Q], s, in[V]->shape[last]) &&
               attention_has(in[ROWS], in[Q], s, call->attr[2] ? t : -1);
    }
    if (!fits)
        return kernel_refuse_operands(call, ", ", "operands do not fit each other");
    for (int o = 0; o < 3; o++) {
        kernel_shape_begin(&out[o], in[Q]->dtype, in[Q]->rank);
        out[o].same_as = (int8_t)(Q + o);
    }
    return 0;
}

/* Workspace, in its order: dense copies of g and rows; strips of weights and of their adjoint; v
 * transposed; that of the scores. */
static size_t workspace(const struct kernel_call *call)
{
    const kernel_ref *in = call->in;
    const struct attention a = attention_of(call->attr, in[Q], in[K], in[V]);
    return dense_bytes(in[G]) + dense_bytes(in[ROWS]) + 2 * attention_bytes(&a, a.strip * a.t) +
           attention_bytes(&a, a.e * a.t) + attention_space(&a);
}

/* What one call works on. */
struct attention_work {
    struct attention a;
    struct attention_scores scores;
    const struct kernel_call *call;
    void *g, *rows, *weights, *change, *turned;
};

/* The strip's weights: those that were kept, or made once more. */
static struct gemm_matrix weights_of(struct attention_work *w, int64_t batch, int64_t first,
                                     int64_t rows, struct gemm_matrix *queries)
{
    const struct attention *a = &w->a;
    const int64_t row = batch * a->s + first;
    struct gemm_matrix p = attention_dense(w->call->attr[2] ? NULL : w->weights, rows, a->t);
    p.columns = attention_seen(a, first + rows);
    *queries = attention_strip(a, &w->scores, first, &p);
    if (p.data != NULL)
        attention_exponentials(a, first, &p, attention_at(a, w->rows, row));
    else
        p.data = attention_at(a, w->rows, row * a->t);
    return p;
}

/* r = g v^T becomes the adjoint of the scaled scores: p (r - sum of p r), 0 where not seen. */
static void scores_back(const struct attention *a, int64_t first, const struct gemm_matrix *p,
                        const struct gemm_matrix *r)
{
    const struct kernel_isa *isa = kernel_isa_get();
    for (int64_t i = 0; i < p->rows; i++) {
        void *row = attention_at(a, r->data, i * r->row_stride);
        const int64_t seen = attention_seen(a, first + i + 1);
        isa->softmax_back[a->dtype](seen, attention_at(a, p->data, i * p->row_stride), row);
        attention_clear(a, row, seen, r->columns);
    }
}

static void strip_run(struct attention_work *w, int64_t batch, int64_t first, int64_t rows,
                      const struct gemm_matrix *v_turned)
{
    const struct attention *a = &w->a;
    struct kernel_array *const *out = w->call->out;
    const int64_t row = batch * a->s + first;
    void *space = w->scores.products;
    struct gemm_matrix queries, columns = *v_turned;
    const struct gemm_matrix p = weights_of(w, batch, first, rows, &queries);
    struct gemm_matrix r = attention_dense(w->change, rows, a->t);
    const struct gemm_matrix g = attention_dense(attention_at(a, w->g, row * a->e), rows, a->e);
    r.columns = columns.columns = p.columns;
    gemm_run(a->dtype, &g, &columns, &r, false, space);
    /* A causal strip sees less than all columns: the others were set to 0. */
    const bool add = a->causal || first > 0;
    const struct gemm_matrix dv =
        attention_dense(attention_at(a, out[2]->data, batch * a->t * a->e), p.columns, a->e);
    const struct gemm_matrix p_flipped = attention_flipped(p);
    gemm_run(a->dtype, &p_flipped, &g, &dv, add, space);
    scores_back(a, first, &p, &r);
    struct gemm_matrix k = attention_matrix(w->call->in[K], batch);
    k.rows = p.columns;
    const struct gemm_matrix dq =
        attention_dense(attention_at(a, out[0]->data, row * a->d), rows, a->d);
    gemm_run(a->dtype, &r, &k, &dq, false, space);
    attention_scaled(a, &dq, &dq);
    const struct gemm_matrix dk =
        attention_dense(attention_at(a, out[1]->data, batch * a->t * a->d), p.columns, a->d);
    const struct gemm_matrix r_flipped = attention_flipped(r);
    gemm_run(a->dtype, &r_flipped, &queries, &dk, add, space);
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref *in = call->in;
    struct attention_work w = {.a = attention_of(call->attr, in[Q], in[K], in[V]), .call = call};
    const struct attention *a = &w.a;
    char *space = call->workspace;
    if (a->causal || a->s == 0 || a->t == 0)
        for (int o = 0; o < 3; o++)
            kernel_fill(call->out[o], 0);
    if (a->batches == 0 || a->s == 0 || a->t == 0)
        return 0;
    w.g = (void *)(uintptr_t)dense_data(in[G], &space);
    w.rows = (void *)(uintptr_t)dense_data(in[ROWS], &space);
    w.weights = space;
    w.change = space + attention_bytes(a, a->strip * a->t);
    w.turned = space + 2 * attention_bytes(a, a->strip * a->t);
    attention_begin(a, in[Q], in[K], (char *)w.turned + attention_bytes(a, a->e * a->t), &w.scores);
    for (int64_t b = 0; b < a->batches; b++) {
        const struct gemm_matrix v = attention_matrix(in[V], b);
        const struct gemm_matrix v_turned = attention_transposed(a, &v, w.turned);
        attention_batch(a, &w.scores, b);
        for (int64_t first = 0; first < a->s; first += a->strip)
            strip_run(&w, b, first, a->s - first < a->strip ? a->s - first : a->strip, &v_turned);
    }
    return 0;
}

static kernel_ref mul(struct kernel_rule *rule, kernel_ref a, kernel_ref b)
{
    return kernel_emit2(rule, &kernel_op_mul, a, b);
}

static kernel_ref product(struct kernel_rule *rule, kernel_ref a, kernel_ref b)
{
    return kernel_emit2(rule, &kernel_op_matmul, a, b);
}

static kernel_ref turned(struct kernel_rule *rule, kernel_ref x)
{
    return kernel_emit1(rule, &kernel_op_transpose, x);
}

static kernel_ref row_sums(struct kernel_rule *rule, kernel_ref x)
{
    const int64_t along_rows[] = {1, rule->in[Q]->rank - 1};
    return kernel_emit(rule, &kernel_op_sum, 1, &x, 2, along_rows);
}

/* a + b, where either may be missing altogether. */
static void add_product(struct kernel_rule *rule, int input, kernel_ref a, kernel_ref b)
{
    const kernel_ref in[] = {a, b};
    kernel_accumulate(rule, input, &kernel_op_matmul, 2, in, 0, NULL);
}

/* With weights p, r = g v^T, e = r - sum of p r and u = p e the outputs are scale u k, scale u^T q
 * and p^T g, whose adjoints are dq, dk and dv; what is named after them here is their adjoint. */
static void pullback(struct kernel_rule *rule)
{
    const kernel_ref *in = rule->in;
    const kernel_ref dq = rule->adjoint[0], dk = rule->adjoint[1], dv = rule->adjoint[2];
    const double scale = attention_scale(rule->attr, in[Q]);
    const kernel_ref of_rows[] = {in[Q], in[K], in[ROWS]};
    if (dq == NULL && dk == NULL && dv == NULL)
        return;
    const kernel_ref p =
        rule->attr[2] ? in[ROWS]
                      : kernel_emit(rule, &kernel_op_attention_weights, 3, of_rows, 2, rule->attr);
    const kernel_ref r = product(rule, in[G], turned(rule, in[V]));
    const kernel_ref mean = row_sums(rule, mul(rule, p, r));
    const kernel_ref e = kernel_emit2(rule, &kernel_op_sub, r, mean);
    kernel_ref p_adjoint = NULL, u_adjoint = NULL;
    if (dq != NULL)
        u_adjoint = product(rule, dq, turned(rule, in[K]));
    if (dk != NULL)
        u_adjoint = kernel_emit_sum(rule, u_adjoint, product(rule, in[Q], turned(rule, dk)));
    if (u_adjoint != NULL) {
        const kernel_ref u = kernel_emit_real(rule, &kernel_op_scale, scale, mul(rule, p, e));
        if (dk != NULL)
            add_product(rule, Q, u, dk);
        if (dq != NULL)
            add_product(rule, K, turned(rule, u), dq);
        u_adjoint = kernel_emit_real(rule, &kernel_op_scale, scale, u_adjoint);
        const kernel_ref e_adjoint = mul(rule, u_adjoint, p), total = row_sums(rule, e_adjoint);
        const kernel_ref r_adjoint =
            kernel_emit2(rule, &kernel_op_sub, e_adjoint, mul(rule, p, total));
        p_adjoint =
            kernel_emit2(rule, &kernel_op_sub, mul(rule, u_adjoint, e), mul(rule, r, total));
        add_product(rule, G, r_adjoint, in[V]);
        add_product(rule, V, turned(rule, r_adjoint), in[G]);
    }
    if (dv != NULL) {
        add_product(rule, G, p, dv);
        p_adjoint = kernel_emit_sum(rule, p_adjoint, product(rule, in[G], turned(rule, dv)));
    }
    if (rule->attr[2]) {
        kernel_accumulate_value(rule, ROWS, p_adjoint);
        return;
    }
    const kernel_ref scores = mul(rule, p_adjoint, p);
    attention_add_scores(rule, Q, scores);
    const int64_t along_rows[] = {0, in[Q]->rank - 1};
    if (kernel_needs(rule, ROWS))
        kernel_accumulate_value(
            rule, ROWS,
            kernel_emit1(rule, &kernel_op_neg,
                         kernel_emit(rule, &kernel_op_sum, 1, &scores, 2, along_rows)));
}

/* Four products, or five with the scores once more, and 4 operations for each weight. */
static struct kernel_cost cost(const struct kernel_call *call)
{
    const struct attention a = attention_of(call->attr, call->in[Q], call->in[K], call->in[V]);
    const uint64_t each = (uint64_t)(4 * a.d + 4 * a.e + 4);
    const uint64_t again = call->attr[2] ? 0 : (uint64_t)(2 * a.d + 21);
    return (struct kernel_cost){.flops = (each + again) * attention_pairs(&a),
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(attention_gradient) = {
    .name = "attention_gradient",
    .in_names = names,
    KERNEL_ATTRS({"scale", KERNEL_ATTR_REAL}, {"causal", KERNEL_ATTR_FLAG},
                 {"keep_weights", KERNEL_ATTR_FLAG}),
    .n_in = OPERANDS,
    .n_out = 3,
    .hidden = true,
    .saves_in = 31,
    .reads_for = {30, 31, 31, 23, 31},
    .touches_all = true,
    .depends = kernel_depends_matrices,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "Adjoints of attention's operands.",
    .shapes = "g [...,s,e], q [...,s,d], k [...,t,d], v [...,t,e], rows [...,s] or [...,s,t] -> "
              "[...,s,d], [...,t,d], [...,t,e]",
    .formula = "u = p (r - sum over columns of p r), r = g v^T: scale u k, scale u^T q, p^T g",
    .derivative = "that of the formula, with the weights p from rows",
    .edges = "kept weights are 0 where a causal row does not see the column",
};
