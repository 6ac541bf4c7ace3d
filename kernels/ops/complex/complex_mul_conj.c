/* ops/complex/complex_mul_conj.c: products with conjugates, for pullbacks.
 *
 * May include: complex_pairs.h, elementwise.h, op_rules.h, kernel_ops.h.
 */
#include "complex_pairs.h"
#include "elementwise.h"
#include "kernel_ops.h"
#include "op_rules.h"

static const char *const names[] = {"a", "b"};

static const struct kernel_sample samples[] = {COMPLEX_SAMPLES2(-1, 1)};
KERNEL_SAMPLES(samples)

static int forward(const struct kernel_call *call)
{
    complex_multiply(call, true);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref g = rule->adjoint[0];
    if (g == NULL)
        return;
    const kernel_ref to_a[] = {g, rule->in[1]}, to_b[] = {rule->in[0], g};
    kernel_accumulate(rule, 0, &kernel_op_complex_mul, 2, to_a, 0, NULL);
    kernel_accumulate(rule, 1, &kernel_op_complex_mul_conj, 2, to_b, 0, NULL);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    return (struct kernel_cost){.flops = 6 * (uint64_t)call->out[0]->size / 2,
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(complex_mul_conj) = {
    .name = "complex_mul_conj",
    .in_names = names,
    .n_in = 2,
    .n_out = 1,
    .hidden = true,
    .saves_in = 3,
    .reads_for = {2, 1},
    .shape = complex_shape_both,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = complex_workspace,
    .sample = sample,
    .brief = "Product of a complex number with a conjugate.",
    .shapes = "a [...,2], b [...,2] -> [...,2]",
    .formula = "y = a conj(b)",
    .derivative = "a' += y' b, b' += a conj(y')",
};
