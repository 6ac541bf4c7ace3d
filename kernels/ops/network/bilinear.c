/* ops/network/bilinear.c: a form of two vectors for each row.
 *
 * The outer products of a strip of rows are one matrix, and the result is its product with w.
 * bilinear_weights is the adjoint in w, and has bilinear for its own adjoints.
 */
#include "dense.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "outer_rows.h"

/* clang-format off */
#define BILINEAR_SAMPLE(rank_, m, n, o, x1_extents, x2_extents)                                    \
    {.n_in = 3, .dtype = {KERNEL_F64, KERNEL_F64, KERNEL_F64}, .rank = {rank_, rank_, 3},          \
     .shape = {{KERNEL_EXTENTS x1_extents}, {KERNEL_EXTENTS x2_extents}, {o, m, n}},               \
     .low = {-1, -1, -1},                                                                          \
     .high = {1, 1, 1}}
/* clang-format on */
static const struct kernel_sample bilinear_samples[] = {
    BILINEAR_SAMPLE(2, 2, 3, 4, (3, 2), (3, 3)),       BILINEAR_SAMPLE(1, 3, 2, 2, (3), (2)),
    BILINEAR_SAMPLE(3, 2, 2, 3, (2, 2, 2), (2, 2, 2)), BILINEAR_SAMPLE(2, 1, 1, 1, (1, 1), (1, 1)),
    BILINEAR_SAMPLE(2, 2, 3, 4, (0, 2), (0, 3)),       BILINEAR_SAMPLE(2, 0, 3, 2, (2, 0), (2, 3)),
};
KERNEL_SAMPLES_OF(bilinear)

static int bilinear_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x1 = call->in[0], x2 = call->in[1], w = call->in[2];
    for (int i = 0; i < 3; i++)
        if (kernel_require_float(call, i) != 0)
            return -1;
    const int last = x1->rank - 1;
    if (w->rank != 3 || !outer_rows_fit(x1, x2))
        return kernel_refuse_operands(call, ", ",
                                      "x1 [...,m], x2 [...,n] and w [o,m,n] are wanted");
    if (x1->shape[last] != w->shape[1] || x2->shape[last] != w->shape[2])
        return kernel_refuse_operands(call, ", ", "w takes %lld and %lld elements",
                                      (long long)w->shape[1], (long long)w->shape[2]);
    kernel_shape_begin(out, x1->dtype, x1->rank);
    for (int axis = 0; axis < last; axis++)
        out->extent[axis] = x1->shape[axis];
    out->extent[last] = w->shape[0];
    const struct outer_rows all = outer_rows_make(x1, x2, w->shape[0]);
    if (!gemm_fits(all.rows, all.m * all.n, all.o))
        return kernel_refuse_operands(call, ", ", "an extent is beyond the range of BLAS");
    return 0;
}

/* Of bilinear x1, x2 and w, of bilinear_weights g, x1 and x2. */
static struct outer_rows make(const struct kernel_call *call)
{
    const kernel_ref *const in = call->in;
    if (call->op == &kernel_op_bilinear)
        return outer_rows_make(in[0], in[1], in[2]->shape[0]);
    return outer_rows_make(in[1], in[2], in[0]->shape[in[0]->rank - 1]);
}

static size_t workspace(const struct kernel_call *call)
{
    const struct outer_rows all = make(call);
    return dense_workspace(call) + outer_rows_space(&all);
}

static int bilinear_forward(const struct kernel_call *call)
{
    const struct outer_rows all = make(call);
    char *space = call->workspace;
    const void *x1 = dense_data(call->in[0], &space);
    const void *x2 = dense_data(call->in[1], &space);
    const void *w = dense_data(call->in[2], &space);
    outer_rows_forward(&all, x1, x2, w, call->out[0]->data, call->accumulate, space);
    return 0;
}

/* The adjoints of x1 and x2, which are inputs `first` and the one behind it. Each is the form in
 * the other two, with w's axes exchanged as they are. */
static void accumulate_vectors(struct kernel_rule *rule, int first, kernel_ref g, kernel_ref x1,
                               kernel_ref x2, kernel_ref w)
{
    static const int64_t axes[2][3] = {{1, 0, 2}, {2, 1, 0}};
    for (int i = 0; i < 2; i++) {
        if (!kernel_needs(rule, first + i))
            continue;
        const kernel_ref in[] = {i == 0 ? g : x1, i == 0 ? x2 : g,
                                 kernel_emit(rule, &kernel_op_permute, 1, &w, 3, axes[i])};
        kernel_accumulate(rule, first + i, &kernel_op_bilinear, 3, in, 0, NULL);
    }
}

static void bilinear_pullback(struct kernel_rule *rule)
{
    const kernel_ref x1 = rule->in[0], x2 = rule->in[1], w = rule->in[2], g = rule->adjoint[0];
    if (g == NULL)
        return;
    accumulate_vectors(rule, 0, g, x1, x2, w);
    const kernel_ref in[] = {g, x1, x2};
    kernel_accumulate(rule, 2, &kernel_op_bilinear_weights, 3, in, 0, NULL);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const struct outer_rows all = make(call);
    return (struct kernel_cost){.flops = outer_rows_flops(&all), .bytes = kernel_moved_bytes(call)};
}

static void bilinear_depends(const struct kernel_call *call, int o, int i, struct kernel_depends *d)
{
    const int results[3] = {call->out[o]->rank - 1, -1, -1};
    if (i < 2)
        kernel_depends_rows(call, o, i, d);
    else
        kernel_depends_along(call->in[i], call->out[o], results, d);
}

KERNEL_OP(bilinear) = {
    .name = "bilinear",
    KERNEL_IN("x1", "x2", "w"),
    .n_out = 1,
    .accumulates = true,
    .saves_in = 7,
    .reads_for = {6, 5, 3},
    .depends = bilinear_depends,
    .shape = bilinear_shape,
    .forward = bilinear_forward,
    .pullback = bilinear_pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = bilinear_sample,
    .brief = "Bilinear forms of the rows of x1 and x2; a bias [o] is added by ad_add.",
    .shapes = "x1 [...,m], x2 [...,n], w [o,m,n] -> [...,o]",
    .formula = "y_o = sum_ij x1_i w_oij x2_j by rows",
    .derivative = "x1'_i += sum_oj y'_o w_oij x2_j, x2'_j += sum_oi y'_o w_oij x1_i, w'_oij += sum "
                  "of y'_o x1_i x2_j over rows",
    .edges = "0 where m or n is 0",
};

/* clang-format off */
#define WEIGHTS_SAMPLE(rank_, g_extents, x1_extents, x2_extents)                                   \
    {.n_in = 3, .dtype = {KERNEL_F64, KERNEL_F64, KERNEL_F64}, .rank = {rank_, rank_, rank_},      \
     .shape = {{KERNEL_EXTENTS g_extents}, {KERNEL_EXTENTS x1_extents},                            \
               {KERNEL_EXTENTS x2_extents}},                                                       \
     .low = {-1, -1, -1}, .high = {1, 1, 1}}
/* clang-format on */
static const struct kernel_sample weights_samples[] = {
    WEIGHTS_SAMPLE(2, (3, 4), (3, 2), (3, 3)),          WEIGHTS_SAMPLE(1, (2), (3), (2)),
    WEIGHTS_SAMPLE(3, (2, 2, 3), (2, 2, 2), (2, 2, 2)), WEIGHTS_SAMPLE(2, (1, 1), (1, 1), (1, 1)),
    WEIGHTS_SAMPLE(2, (0, 4), (0, 2), (0, 3)),          WEIGHTS_SAMPLE(2, (2, 2), (2, 0), (2, 3)),
};
KERNEL_SAMPLES_OF(weights)

static int weights_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    for (int i = 0; i < 3; i++)
        if (kernel_require_float(call, i) != 0)
            return -1;
    if (!outer_rows_fit(call->in[0], call->in[1]) || !outer_rows_fit(call->in[1], call->in[2]))
        return kernel_refuse_operands(call, ", ", "g [...,o], x1 [...,m], x2 [...,n] are wanted");
    const struct outer_rows all = make(call);
    kernel_shape_begin(out, call->in[0]->dtype, 3);
    out->extent[0] = all.o;
    out->extent[1] = all.m;
    out->extent[2] = all.n;
    return 0;
}

static int weights_forward(const struct kernel_call *call)
{
    const struct outer_rows all = make(call);
    char *space = call->workspace;
    const void *g = dense_data(call->in[0], &space);
    const void *x1 = dense_data(call->in[1], &space);
    const void *x2 = dense_data(call->in[2], &space);
    outer_rows_to_weights(&all, g, x1, x2, call->out[0]->data, call->accumulate, space);
    return 0;
}

static void weights_pullback(struct kernel_rule *rule)
{
    const kernel_ref g = rule->in[0], x1 = rule->in[1], x2 = rule->in[2], k = rule->adjoint[0];
    if (k == NULL)
        return;
    const kernel_ref to_g[] = {x1, x2, k};
    kernel_accumulate(rule, 0, &kernel_op_bilinear, 3, to_g, 0, NULL);
    accumulate_vectors(rule, 1, g, x1, x2, k);
}

KERNEL_OP(bilinear_weights) = {
    .name = "bilinear_weights",
    KERNEL_IN("g", "x1", "x2"),
    .n_out = 1,
    .hidden = true,
    .accumulates = true,
    .saves_in = 7,
    .reads_for = {6, 5, 3},
    .shape = weights_shape,
    .forward = weights_forward,
    .pullback = weights_pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = weights_sample,
    .brief = "Adjoint of bilinear in its weights.",
    .shapes = "g [...,o], x1 [...,m], x2 [...,n] -> [o,m,n]",
    .formula = "y_oij = sum of g_o x1_i x2_j over rows",
    .derivative = "g' += bilinear(x1, x2, y'), x1' and x2' likewise",
};
