/* ops/complex/complex_div.c: quotients of complex numbers.
 *
 * May include: complex_pairs.h, elementwise.h, op_rules.h, kernel_ops.h.
 */
#include "complex_pairs.h"
#include "elementwise.h"
#include "kernel_ops.h"
#include "op_rules.h"

static const char *const names[] = {"a", "b"};

static const struct kernel_sample samples[] = {COMPLEX_SAMPLES2(0.4, 2)};
KERNEL_SAMPLES(samples)

static void block(const struct complex_block *b)
{
    /* By the unit u = b / |b|: a conj(u) / |b|, where |b|^2 would overflow or vanish. */
    void *const length = b->spare[0], *const re = b->spare[1];
    complex_loop(b, LOOP_hypot, length, b->re[1], b->im[1]);
    complex_loop(b, LOOP_div, b->re[1], b->re[1], length);
    complex_loop(b, LOOP_div, b->im[1], b->im[1], length);
    complex_loop(b, LOOP_mul, re, b->re[0], b->re[1]);
    complex_loop(b, LOOP_mul, b->re[1], b->im[0], b->re[1]);
    complex_loop(b, LOOP_mul, b->im[0], b->im[0], b->im[1]);
    complex_loop(b, LOOP_mul, b->im[1], b->re[0], b->im[1]);
    complex_loop(b, LOOP_add, b->re[0], re, b->im[0]);
    complex_loop(b, LOOP_sub, b->im[0], b->re[1], b->im[1]);
    complex_loop(b, LOOP_div, b->re[0], b->re[0], length);
    complex_loop(b, LOOP_div, b->im[0], b->im[0], length);
}

static int forward(const struct kernel_call *call)
{
    complex_map(call, block);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref g = rule->adjoint[0];
    if (g == NULL)
        return;
    const kernel_ref in[] = {g, kernel_emit1(rule, &kernel_op_complex_conj, rule->in[1])};
    if (!kernel_needs(rule, 1)) {
        kernel_accumulate(rule, 0, &kernel_op_complex_div, 2, in, 0, NULL);
        return;
    }
    const kernel_ref share = kernel_emit(rule, &kernel_op_complex_div, 2, in, 0, NULL);
    kernel_accumulate_value(rule, 0, share);
    const kernel_ref product = kernel_emit2(rule, &kernel_op_complex_mul_conj, share, rule->out[0]);
    kernel_accumulate(rule, 1, &kernel_op_neg, 1, &product, 0, NULL);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    return (struct kernel_cost){.flops = 32 * (uint64_t)call->out[0]->size / 2,
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(complex_div) = {
    .name = "complex_div",
    .in_names = names,
    .n_in = 2,
    .n_out = 1,
    .saves_in = 2,
    .saves_out = 1,
    .shape = complex_shape_both,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = complex_workspace,
    .sample = sample,
    .brief = "Quotient of complex numbers, pairs along the last axis.",
    .shapes = "a [...,2], b [...,2] -> [...,2], leading axes broadcast",
    .formula = "y = a / b",
    .derivative = "a' += y' / conj(b), b' -= y' conj(y) / conj(b)",
    .edges = "NaN where b is 0 or has an infinite part",
};
