/* ops/reduce/softmax_gradient.c: softmax's adjoint along the last axis.
 *
 * A row of the result lies in cache between its two passes.
 */
#include "dense.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "softmax_rows.h"

/* clang-format off */
#define ROWS_SAMPLE(rank_, ...)                                                                    \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_F64}, .rank = {rank_, rank_},                         \
     .shape = {{__VA_ARGS__}, {__VA_ARGS__}}, .low = {-1, 0.1}, .high = {1, 0.9}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    ROWS_SAMPLE(2, 3, 5),    ROWS_SAMPLE(1, 1),    ROWS_SAMPLE(1, 17),
    ROWS_SAMPLE(3, 2, 2, 3), ROWS_SAMPLE(2, 0, 3), ROWS_SAMPLE(2, 3, 0),
};
KERNEL_SAMPLES(samples)

enum { FLOPS = 4 };

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref g = call->in[0], y = call->in[1];
    if (kernel_require_float(call, 0) != 0 || kernel_require_float(call, 1) != 0)
        return -1;
    if (g->rank < 1 || !kernel_same_extents(g, y))
        return kernel_refuse_operands(call, ", ", "g and y must have one shape with an axis");
    return kernel_shape_same(call, out);
}

static int forward(const struct kernel_call *call)
{
    char *space = call->workspace;
    const void *const g = dense_data(call->in[0], &space);
    const void *const y = dense_data(call->in[1], &space);
    softmax_rows_run(call->out[0], y, g, FLOPS);
    return 0;
}

/* The sum of a b along the last axis, kept. */
static kernel_ref emit_sum(struct kernel_rule *rule, kernel_ref a, kernel_ref b)
{
    const kernel_ref ab = kernel_emit2(rule, &kernel_op_mul, a, b);
    return kernel_emit(rule, &kernel_op_sum, 1, &ab, 2, (const int64_t[]){1, -1});
}

/* The result is symmetric in g for each y: the same op gives g's adjoint. */
static void pullback(struct kernel_rule *rule)
{
    const kernel_ref g = rule->in[0], y = rule->in[1], h = rule->adjoint[0];
    if (h == NULL)
        return;
    kernel_accumulate(rule, 0, &kernel_op_softmax_gradient, 2, (const kernel_ref[]){h, y}, 0, NULL);
    if (!kernel_needs(rule, 1))
        return;
    const kernel_ref apart = kernel_emit2(rule, &kernel_op_sub, g, emit_sum(rule, g, y));
    const kernel_ref to_sum = kernel_emit1(rule, &kernel_op_neg, emit_sum(rule, h, y));
    kernel_accumulate(rule, 1, &kernel_op_mul, 2, (const kernel_ref[]){h, apart}, 0, NULL);
    kernel_accumulate(rule, 1, &kernel_op_mul, 2, (const kernel_ref[]){g, to_sum}, 0, NULL);
}

KERNEL_OP(softmax_gradient) = {
    .name = "softmax_gradient",
    KERNEL_IN("g", "y"),
    .n_out = 1,
    .hidden = true,
    .saves_in = 3,
    .reads_for = {2, 3},
    .depends = kernel_depends_rows,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .flops_per_element = FLOPS,
    .workspace = dense_workspace,
    .sample = sample,
    .brief = "Adjoint of softmax along the last axis.",
    .shapes = "g [...,n], y [...,n] -> [...,n]",
    .formula = "x = y (g - sum of g y along the last axis)",
    .derivative = "g' += y (x' - sum of x' y), y' += x' (g - sum of g y) - g sum of x' y",
};
