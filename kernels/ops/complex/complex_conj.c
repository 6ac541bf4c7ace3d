/* ops/complex/complex_conj.c: conjugates.
 *
 * May include: complex_pairs.h, elementwise.h, op_rules.h, kernel_ops.h.
 */
#include "complex_pairs.h"
#include "elementwise.h"
#include "kernel_ops.h"
#include "op_rules.h"

static const char *const names[] = {"x"};

static const struct kernel_sample samples[] = {COMPLEX_SAMPLES1(-2, 2)};
KERNEL_SAMPLES(samples)

static void block(const struct complex_block *b)
{
    complex_loop(b, LOOP_neg, b->im[0], b->im[0], NULL);
}

static int forward(const struct kernel_call *call)
{
    complex_map(call, block);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] != NULL)
        kernel_accumulate(rule, 0, &kernel_op_complex_conj, 1, &rule->adjoint[0], 0, NULL);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    return (struct kernel_cost){.flops = 1 * (uint64_t)call->out[0]->size / 2,
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(complex_conj) = {
    .name = "complex_conj",
    .in_names = names,
    .n_in = 1,
    .n_out = 1,
    .shape = complex_shape_same,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = complex_workspace,
    .sample = sample,
    .brief = "Conjugate of complex numbers, pairs along the last axis.",
    .shapes = "x [...,2] -> [...,2]",
    .formula = "y = re(x) - i im(x)",
    .derivative = "x' += conj(y')",
};
