/* ops/product/outer.c: outer product of two vectors.
 *
 * A product of a column, which is a view of the first operand, and a row.
 */
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"

/* clang-format off */
#define OUTER_SAMPLE(m, n)                                                                         \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_F64}, .rank = {1, 1}, .shape = {{m}, {n}},            \
     .low = {-1, -1}, .high = {1, 1}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    OUTER_SAMPLE(3, 5), OUTER_SAMPLE(1, 1), OUTER_SAMPLE(0, 3),  OUTER_SAMPLE(3, 0),
    OUTER_SAMPLE(7, 8), OUTER_SAMPLE(1, 9), OUTER_SAMPLE(17, 1),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref a = call->in[0], b = call->in[1];
    if (kernel_require_float(call, 0) != 0 || kernel_require_float(call, 1) != 0)
        return -1;
    if (a->rank != 1 || b->rank != 1)
        return kernel_refuse_operands(call, " x ", "both operands must have one axis");
    kernel_shape_begin(out, a->dtype, 2);
    out->extent[0] = a->shape[0];
    out->extent[1] = b->shape[0];
    return 0;
}

static int forward(const struct kernel_call *call)
{
    struct kernel_view column = {.array = *call->in[0]};
    column.array.rank = 2;
    column.shape[0] = call->in[0]->shape[0];
    column.shape[1] = 1;
    column.strides[0] = call->in[0]->strides[0];
    column.strides[1] = 1;
    kernel_view_bind(&column);
    const kernel_ref in[] = {&column.array, call->in[1]};
    kernel_elementwise(LOOP_mul, call->out[0], 2, in, 0, call->accumulate);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref g = rule->adjoint[0];
    if (g == NULL)
        return;
    const kernel_ref rows[] = {g, rule->in[1]}, columns[] = {rule->in[0], g};
    kernel_accumulate(rule, 0, &kernel_op_matmul, 2, rows, 0, NULL);
    kernel_accumulate(rule, 1, &kernel_op_matmul, 2, columns, 0, NULL);
}

static void depends(const struct kernel_call *call, int o, int i, struct kernel_depends *d)
{
    kernel_depends_along(call->in[i], call->out[o], &i, d);
}

KERNEL_OP(outer) = {
    .name = "outer",
    KERNEL_IN("a", "b"),
    .n_out = 1,
    .accumulates = true,
    .saves_in = 3,
    .reads_for = {2, 1},
    .depends = depends,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .flops_per_element = 1,
    .sample = sample,
    .brief = "Outer product of two vectors.",
    .shapes = "a [m], b [n] -> [m,n]",
    .formula = "y_ij = a_i b_j",
    .derivative = "a' += y' b, b' += y'^T a",
};
