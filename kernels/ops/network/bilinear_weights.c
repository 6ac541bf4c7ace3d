/* ops/network/bilinear_weights.c: the adjoint of bilinear in its weights.
 *
 * Its own adjoints are bilinear.
 */
#include "dense.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "outer_rows.h"

/* clang-format off */
#define WEIGHTS_SAMPLE(rank_, g_extents, x1_extents, x2_extents)                                   \
    {.n_in = 3, .dtype = {KERNEL_F64, KERNEL_F64, KERNEL_F64}, .rank = {rank_, rank_, rank_},      \
     .shape = {{KERNEL_EXTENTS g_extents}, {KERNEL_EXTENTS x1_extents},                            \
               {KERNEL_EXTENTS x2_extents}},                                                       \
     .low = {-1, -1, -1}, .high = {1, 1, 1}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    WEIGHTS_SAMPLE(2, (3, 4), (3, 2), (3, 3)),          WEIGHTS_SAMPLE(1, (2), (3), (2)),
    WEIGHTS_SAMPLE(3, (2, 2, 3), (2, 2, 2), (2, 2, 2)), WEIGHTS_SAMPLE(2, (1, 1), (1, 1), (1, 1)),
    WEIGHTS_SAMPLE(2, (0, 4), (0, 2), (0, 3)),          WEIGHTS_SAMPLE(2, (2, 2), (2, 0), (2, 3)),
};
KERNEL_SAMPLES(samples)

static struct outer_rows make(const struct kernel_call *call)
{
    const kernel_ref g = call->in[0];
    return outer_rows_make(call->in[1], call->in[2], g->shape[g->rank - 1]);
}

static int shape(const struct kernel_call *call, struct kernel_shape *out)
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

static size_t workspace(const struct kernel_call *call)
{
    const struct outer_rows all = make(call);
    return dense_workspace(call) + outer_rows_space(&all);
}

static int forward(const struct kernel_call *call)
{
    const struct outer_rows all = make(call);
    char *space = call->workspace;
    const void *g = dense_data(call->in[0], &space);
    const void *x1 = dense_data(call->in[1], &space);
    const void *x2 = dense_data(call->in[2], &space);
    outer_rows_to_weights(&all, g, x1, x2, call->out[0]->data, call->accumulate, space);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    static const int64_t for_x1[] = {1, 0, 2}, for_x2[] = {2, 1, 0};
    const kernel_ref g = rule->in[0], x1 = rule->in[1], x2 = rule->in[2], k = rule->adjoint[0];
    if (k == NULL)
        return;
    const kernel_ref to_g[] = {x1, x2, k};
    kernel_accumulate(rule, 0, &kernel_op_bilinear, 3, to_g, 0, NULL);
    if (kernel_needs(rule, 1)) {
        const kernel_ref in[] = {g, x2, kernel_emit(rule, &kernel_op_permute, 1, &k, 3, for_x1)};
        kernel_accumulate(rule, 1, &kernel_op_bilinear, 3, in, 0, NULL);
    }
    if (kernel_needs(rule, 2)) {
        const kernel_ref in[] = {x1, g, kernel_emit(rule, &kernel_op_permute, 1, &k, 3, for_x2)};
        kernel_accumulate(rule, 2, &kernel_op_bilinear, 3, in, 0, NULL);
    }
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const struct outer_rows all = make(call);
    return (struct kernel_cost){.flops = outer_rows_flops(&all), .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(bilinear_weights) = {
    .name = "bilinear_weights",
    KERNEL_IN("g", "x1", "x2"),
    .n_out = 1,
    .hidden = true,
    .accumulates = true,
    .saves_in = 7,
    .reads_for = {6, 5, 3},
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "Adjoint of bilinear in its weights.",
    .shapes = "g [...,o], x1 [...,m], x2 [...,n] -> [o,m,n]",
    .formula = "y_oij = sum of g_o x1_i x2_j over rows",
    .derivative = "g' += bilinear(x1, x2, y'), x1' and x2' likewise",
};
