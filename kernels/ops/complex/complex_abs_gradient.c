/* ops/complex/complex_abs_gradient.c: for each complex number, one of a given length and the same
 * direction. */
#include "complex_pairs.h"
#include "elementwise.h"
#include "kernel_ops.h"
#include "op_rules.h"

static const struct kernel_sample samples[] = {COMPLEX_SCALED_SAMPLES};
KERNEL_SAMPLES(samples)

static void block(const struct complex_block *b)
{
    /* x / 0 is not taken: 0 there. */
    complex_loop(b, LOOP_hypot, b->spare[0], b->re[0], b->im[0]);
    void *const parts[] = {b->re[0], b->im[0]};
    for (int k = 0; k < 2; k++) {
        complex_loop(b, LOOP_div, parts[k], parts[k], b->spare[0]);
        complex_loop(b, LOOP_pick, parts[k], b->spare[0], parts[k]);
        complex_loop(b, LOOP_mul, parts[k], parts[k], b->re[1]);
    }
}

static int forward(const struct kernel_call *call)
{
    complex_map(call, block);
    return 0;
}

/* With the unit u = x / |x| and d = re(y' conj(u)): g' is d, x' is g (y' - u d) / |x|. */
static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0], g = rule->in[1], h = rule->adjoint[0];
    if (h == NULL)
        return;
    const kernel_ref length = kernel_emit1(rule, &kernel_op_complex_abs, x);
    const kernel_ref in[] = {x, kernel_emit2(rule, &kernel_op_tie, length, length)}; /* ones */
    const kernel_ref unit = kernel_emit(rule, &kernel_op_complex_abs_gradient, 2, in, 0, NULL);
    const int64_t last[] = {0, x->rank - 1};
    const kernel_ref both = kernel_emit2(rule, &kernel_op_mul, h, unit);
    const kernel_ref d = kernel_emit(rule, &kernel_op_sum, 1, &both, 2, last);
    kernel_accumulate_value(rule, 1, d);
    if (!kernel_needs(rule, 0))
        return;
    const kernel_ref along = kernel_emit2(rule, &kernel_op_mul, unit, complex_emit_column(rule, d));
    const kernel_ref share = kernel_emit2(rule, &kernel_op_div, g, length);
    const kernel_ref across[] = {kernel_emit2(rule, &kernel_op_sub, h, along),
                                 complex_emit_column(rule, share)};
    kernel_accumulate(rule, 0, &kernel_op_mul, 2, across, 0, NULL);
}

KERNEL_OP(complex_abs_gradient) = {
    .name = "complex_abs_gradient",
    KERNEL_IN("x", "g"),
    .n_out = 1,
    .hidden = true,
    .saves_in = 3,
    .reads_for = {3, 1},
    .touches_all = true,
    .shape = complex_shape_scaled,
    .forward = forward,
    .pullback = pullback,
    .flops_per_element = 10,
    .workspace = complex_workspace,
    .sample = sample,
    .brief = "Complex numbers of length g in the direction of x.",
    .shapes = "x [...,2], g [...] -> [...,2]",
    .formula = "y = g x / |x|",
    .derivative = "g' += re(y' conj(x)) / |x|, x' += g (y' - x re(y' conj(x)) / |x|^2) / |x|",
    .edges = "0 where x is 0",
};
