/* ops/product/dot.c: inner product of two vectors.
 *
 * Products are summed as in sum.c.
 */
#include "elementwise.h"
#include "kernel_ops.h"
#include "op_rules.h"

/* clang-format off */
#define DOT_SAMPLE(n)                                                                              \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_F64}, .rank = {1, 1}, .shape = {{n}, {n}},            \
     .low = {-1, -1}, .high = {1, 1}}
/* clang-format on */
static const struct kernel_sample samples[] = {DOT_SAMPLE(5),  DOT_SAMPLE(0), DOT_SAMPLE(1),
                                               DOT_SAMPLE(7),  DOT_SAMPLE(8), DOT_SAMPLE(9),
                                               DOT_SAMPLE(17), DOT_SAMPLE(65)};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref a = call->in[0], b = call->in[1];
    if (kernel_require_float(call, 0) != 0 || kernel_require_float(call, 1) != 0)
        return -1;
    if (a->rank != 1 || b->rank != 1)
        return kernel_refuse_operands(call, " . ", "both operands must have one axis");
    if (a->shape[0] != b->shape[0])
        return kernel_refuse_operands(call, " . ", "extents %lld and %lld differ",
                                      (long long)a->shape[0], (long long)b->shape[0]);
    kernel_shape_begin(out, a->dtype, 0);
    return 0;
}

static int forward(const struct kernel_call *call)
{
    if (!call->accumulate)
        kernel_fill(call->out[0], 0);
    kernel_elementwise(LOOP_mul, call->out[0], 2, call->in, 0, true);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] == NULL)
        return;
    for (int i = 0; i < 2; i++) {
        const kernel_ref in[] = {rule->adjoint[0], rule->in[1 - i]};
        kernel_accumulate(rule, i, &kernel_op_mul, 2, in, 0, NULL);
    }
}

KERNEL_OP(dot) = {
    .name = "dot",
    KERNEL_IN("a", "b"),
    .n_out = 1,
    .accumulates = true,
    .saves_in = 3,
    .reads_for = {2, 1},
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .flops_per_element = 2,
    .sample = sample,
    .brief = "Inner product of two vectors.",
    .shapes = "a [n], b [n] -> []",
    .formula = "y = sum_i a_i b_i",
    .derivative = "a' += y' b, b' += y' a",
    .edges = "0 where n = 0",
};
