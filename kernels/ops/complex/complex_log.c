/* ops/complex/complex_log.c: principal logarithms of complex numbers.
 *
 * May include: complex_pairs.h, elementwise.h, op_rules.h, kernel_ops.h.
 */
#include "complex_pairs.h"
#include "elementwise.h"
#include "kernel_ops.h"
#include "op_rules.h"

static const char *const names[] = {"x"};

static const struct kernel_sample samples[] = {COMPLEX_SAMPLES1(0.3, 2)};
KERNEL_SAMPLES(samples)

static void block(const struct complex_block *b)
{
    complex_loop(b, LOOP_hypot, b->spare[0], b->re[0], b->im[0]);
    complex_loop(b, LOOP_atan2, b->im[0], b->im[0], b->re[0]);
    complex_loop(b, LOOP_log, b->re[0], b->spare[0], NULL);
}

static int forward(const struct kernel_call *call)
{
    complex_map(call, block);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] == NULL)
        return;
    const kernel_ref in[] = {rule->adjoint[0],
                             kernel_emit1(rule, &kernel_op_complex_conj, rule->in[0])};
    kernel_accumulate(rule, 0, &kernel_op_complex_div, 2, in, 0, NULL);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    return (struct kernel_cost){.flops = 65 * (uint64_t)call->out[0]->size / 2,
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(complex_log) = {
    .name = "complex_log",
    .in_names = names,
    .n_in = 1,
    .n_out = 1,
    .saves_in = 1,
    .shape = complex_shape_same,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = complex_workspace,
    .sample = sample,
    .brief = "Principal logarithm of complex numbers, pairs along the last axis.",
    .shapes = "x [...,2] -> [...,2]",
    .formula = "y = ln |x| + i atan2(im(x), re(x))",
    .derivative = "x' += y' / conj(x)",
    .edges = "the real part at 0 is -inf, and the derivative NaN; cut along the negative real "
             "axis, where the sign of a zero says which side",
};
