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
               attention_has(in[ROWS], in[Q], s, attention_keeps(call->attr, in[K]) ? t : -1);
    }
    if (!fits)
        return kernel_refuse_operands(call, ", ", "operands do not fit each other");
    for (int o = 0; o < 3; o++) {
        kernel_shape_begin(&out[o], in[Q]->dtype, in[Q]->rank);
        out[o].same_as = (int8_t)(Q + o);
    }
    return 0;
}

/* Rows of a batch are divided into groups of strips, which add to sums of their own for k and v:
 * as many as it takes for all parts to have one. */
static int64_t groups_of(const struct attention *a)
{
    const int64_t parts = attention_parts(a);
    const int64_t groups = a->batches > 0 ? (parts + a->batches - 1) / a->batches : 1;
    return groups < a->strips ? groups : a->strips > 0 ? a->strips : 1;
}

/* Elements of a group's sums. */
static int64_t sums_size(const struct attention *a)
{
    return a->t * (a->d + a->e);
}

/* Elements from row to row of a strip: an odd number of lines of the cache. Products read strips
 * across their rows, which would share a few sets of the cache if they were a power of 2 apart. */
static int64_t stride_of(const struct attention *a)
{
    const int64_t line = 64 / (int64_t)kernel_dtype_bytes(a->dtype);
    return ((a->t + line - 1) / line | 1) * line;
}

static size_t strip_bytes(const struct attention *a)
{
    return attention_bytes(a, a->strip * stride_of(a));
}

/* Strips of weights and of their adjoint, and what scores take. */
static size_t part_bytes(const struct attention *a)
{
    return 2 * strip_bytes(a) + attention_space(a);
}

static struct attention attention_here(const struct kernel_call *call)
{
    return attention_of(call->attr, call->in[Q], call->in[K], call->in[V], 0);
}

/* In its order: dense copies of g and rows; sums of all groups but each batch's first; the parts'.
 */
static size_t workspace(const struct kernel_call *call)
{
    const kernel_ref *in = call->in;
    const struct attention a = attention_here(call);
    return dense_bytes(in[G]) + dense_bytes(in[ROWS]) +
           attention_bytes(&a, a.batches * (groups_of(&a) - 1) * sums_size(&a)) +
           (size_t)attention_parts(&a) * part_bytes(&a);
}

/* What one call works on. */
struct attention_back {
    struct attention a;
    const struct kernel_call *call;
    int64_t groups;
    bool keep;
    void *g, *rows, *sums, *parts;
};

/* One group's sums: the outputs themselves, or workspace. */
struct attention_group {
    const struct attention_back *all;
    struct attention_scores scores;
    int64_t batch;
    void *weights, *change, *dk, *dv;
};

/* The strip's weights: those that were kept, or made once more. */
static struct gemm_matrix weights_of(const struct attention_group *w, int64_t first,
                                     const struct gemm_matrix *queries)
{
    const struct attention *a = &w->all->a;
    const int64_t row = w->batch * a->s + first;
    struct gemm_matrix p = {w->weights, queries->rows, attention_seen(a, first + queries->rows),
                            stride_of(a), 1};
    if (w->all->keep) {
        p.data = attention_at(a, w->all->rows, row * a->t);
        p.row_stride = a->t;
        return p;
    }
    attention_tile(a, &w->scores, w->batch, queries, 0, &p);
    attention_exponentials(a, first, &p, attention_at(a, w->all->rows, row));
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

/* add: to what is in the sums. */
static void strip_run(const struct attention_group *w, int64_t first, bool add)
{
    const struct attention *a = &w->all->a;
    const struct kernel_call *call = w->all->call;
    const int64_t rows = a->s - first < a->strip ? a->s - first : a->strip;
    const int64_t row = w->batch * a->s + first;
    void *space = w->scores.products;
    const struct gemm_matrix queries = attention_queries(a, &w->scores, w->batch, first, rows);
    const struct gemm_matrix p = weights_of(w, first, &queries);
    struct gemm_matrix k = attention_matrix(call->in[K], w->batch);
    struct gemm_matrix v = attention_matrix(call->in[V], w->batch);
    k.rows = v.rows = p.columns;
    const struct gemm_matrix v_flipped = attention_flipped(v), p_flipped = attention_flipped(p);
    const struct gemm_matrix r = {w->change, rows, p.columns, stride_of(a), 1};
    const struct gemm_matrix g =
        attention_dense(attention_at(a, w->all->g, row * a->e), rows, a->e);
    gemm_run(a->dtype, &g, &v_flipped, &r, false, space);
    const struct gemm_matrix dv = attention_dense(w->dv, p.columns, a->e);
    gemm_run(a->dtype, &p_flipped, &g, &dv, add, space);
    scores_back(a, first, &p, &r);
    const struct gemm_matrix dq =
        attention_dense(attention_at(a, call->out[0]->data, row * a->d), rows, a->d);
    gemm_run(a->dtype, &r, &k, &dq, false, space);
    attention_scaled(a, &dq, &dq);
    const struct gemm_matrix dk = attention_dense(w->dk, p.columns, a->d);
    const struct gemm_matrix r_flipped = attention_flipped(r);
    gemm_run(a->dtype, &r_flipped, &queries, &dk, add, space);
}

static void group_sums(const struct attention_back *all, int64_t batch, int64_t group, void **dk,
                       void **dv)
{
    const struct attention *a = &all->a;
    if (group == 0) {
        *dk = attention_at(a, all->call->out[1]->data, batch * a->t * a->d);
        *dv = attention_at(a, all->call->out[2]->data, batch * a->t * a->e);
        return;
    }
    *dk = attention_at(a, all->sums, (batch * (all->groups - 1) + group - 1) * sums_size(a));
    *dv = attention_at(a, *dk, a->t * a->d);
}

/* Every groups-th strip of a batch, so that causal groups see about as much as each other. */
static void group_run(const void *job, int64_t unit, int part)
{
    const struct attention_back *all = job;
    const struct attention *a = &all->a;
    const int64_t group = unit % all->groups;
    char *space = (char *)all->parts + (size_t)part * part_bytes(a);
    struct attention_group w = {.all = all,
                                .batch = unit / all->groups,
                                .weights = space,
                                .change = space + strip_bytes(a)};
    attention_begin(a, all->call->in[Q], all->call->in[K], space + 2 * strip_bytes(a), &w.scores);
    group_sums(all, w.batch, group, &w.dk, &w.dv);
    /* A causal strip sees less than all columns: the others are 0. */
    if (a->causal) {
        attention_clear(a, w.dk, 0, a->t * a->d);
        attention_clear(a, w.dv, 0, a->t * a->e);
    }
    for (int64_t strip = group; strip < a->strips; strip += all->groups)
        strip_run(&w, strip * a->strip, a->causal || strip > group);
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref *in = call->in;
    struct attention_back all = {
        .a = attention_here(call), .call = call, .keep = attention_keeps(call->attr, in[K])};
    const struct attention *a = &all.a;
    char *space = call->workspace;
    if (a->s == 0 || a->t == 0)
        for (int o = 0; o < 3; o++)
            kernel_fill(call->out[o], 0);
    if (a->batches == 0 || a->s == 0 || a->t == 0)
        return 0;
    all.g = (void *)(uintptr_t)dense_data(in[G], &space);
    all.rows = (void *)(uintptr_t)dense_data(in[ROWS], &space);
    all.groups = groups_of(a);
    all.sums = space;
    all.parts = space + attention_bytes(a, a->batches * (all.groups - 1) * sums_size(a));
    attention_run(&(struct attention_work){group_run, &all, a->batches * all.groups, 0},
                  attention_parts(a));
    for (int64_t b = 0; b < a->batches; b++)
        for (int64_t group = 1; group < all.groups; group++) {
            void *dk, *dv, *more_k, *more_v;
            group_sums(&all, b, 0, &dk, &dv);
            group_sums(&all, b, group, &more_k, &more_v);
            kernel_loop_run(LOOP_copy, a->dtype, a->t * a->d, dk, more_k, NULL, NULL, true);
            kernel_loop_run(LOOP_copy, a->dtype, a->t * a->e, dv, more_v, NULL, NULL, true);
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
        attention_keeps(rule->attr, in[K])
            ? in[ROWS]
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
    if (attention_keeps(rule->attr, in[K])) {
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
    const struct attention a = attention_here(call);
    const uint64_t each = (uint64_t)(4 * a.d + 4 * a.e + 4);
    const uint64_t again = attention_keeps(call->attr, call->in[K]) ? 0 : (uint64_t)(2 * a.d + 21);
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
