/* ops/complex/complex_exp.c: exponentials of complex numbers.
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
    complex_loop(b, LOOP_exp, b->spare[0], b->re[0], NULL);
    complex_loop(b, LOOP_cos, b->re[0], b->im[0], NULL);
    complex_loop(b, LOOP_mul, b->re[0], b->spare[0], b->re[0]);
    complex_loop(b, LOOP_sin, b->spare[1], b->im[0], NULL);
    complex_loop(b, LOOP_mul, b->spare[1], b->spare[0], b->spare[1]);
    /* A real number has a real result, also where that is infinite. */
    complex_loop(b, LOOP_pick, b->im[0], b->im[0], b->spare[1]);
}

static int forward(const struct kernel_call *call)
{
    complex_map(call, block);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref in[] = {rule->adjoint[0], rule->out[0]};
    if (rule->adjoint[0] != NULL)
        kernel_accumulate(rule, 0, &kernel_op_complex_mul_conj, 2, in, 0, NULL);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    return (struct kernel_cost){.flops = 62 * (uint64_t)call->out[0]->size / 2,
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(complex_exp) = {
    .name = "complex_exp",
    .in_names = names,
    .n_in = 1,
    .n_out = 1,
    .saves_out = 1,
    .shape = complex_shape_same,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = complex_workspace,
    .sample = sample,
    .brief = "Exponential of complex numbers, pairs along the last axis.",
    .shapes = "x [...,2] -> [...,2]",
    .formula = "y = e^re(x) (cos im(x) + i sin im(x))",
    .derivative = "x' += y' conj(y)",
    .edges = "the imaginary part of a real number is 0, also where the real part is inf; NaN where "
             "im(x) is infinite or NaN, also at re(x) = -inf",
};
