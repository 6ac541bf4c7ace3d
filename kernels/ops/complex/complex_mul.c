/* ops/complex/complex_mul.c: products of complex numbers.
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
    complex_multiply(call, false);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref g = rule->adjoint[0];
    if (g == NULL)
        return;
    for (int i = 0; i < 2; i++) {
        const kernel_ref in[] = {g, rule->in[1 - i]};
        kernel_accumulate(rule, i, &kernel_op_complex_mul_conj, 2, in, 0, NULL);
    }
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    return (struct kernel_cost){.flops = 6 * (uint64_t)call->out[0]->size / 2,
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(complex_mul) = {
    .name = "complex_mul",
    .in_names = names,
    .n_in = 2,
    .n_out = 1,
    .saves_in = 3,
    .reads_for = {2, 1},
    .shape = complex_shape_both,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = complex_workspace,
    .sample = sample,
    .brief = "Product of complex numbers, pairs along the last axis.",
    .shapes = "a [...,2], b [...,2] -> [...,2], leading axes broadcast",
    .formula = "y = a b",
    .derivative = "a' += y' conj(b), b' += y' conj(a)",
    .edges = "by the four products of the parts: inf times 0 in one of them is NaN",
};
