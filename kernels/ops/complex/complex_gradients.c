/* ops/complex/complex_gradients.c: adjoints of the absolute value and of the angle: for each
 * complex number x one in its direction, or turned by 90 degrees from it, in proportion to a real
 * g.
 */
#include "complex_pairs.h"
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"

static const struct kernel_sample samples[] = {COMPLEX_SCALED_SAMPLES};
KERNEL_SAMPLES(samples)

/* What the ops differ in is the function of a block. */
static int forward(const struct kernel_call *call)
{
    complex_map(call, *(complex_function *const *)call->op->family);
    return 0;
}

/* The op's own value at x for g = 1. */
static kernel_ref by_ones(struct kernel_rule *rule, kernel_ref length)
{
    const kernel_ref ones = kernel_emit2(rule, &kernel_op_tie, length, length);
    return kernel_emit2(rule, rule->op, rule->in[0], ones);
}

/* The real part of a conj(b), of each number. */
static kernel_ref real_product(struct kernel_rule *rule, kernel_ref a, kernel_ref b)
{
    const int64_t last[] = {0, a->rank - 1};
    const kernel_ref both = kernel_emit2(rule, &kernel_op_mul, a, b);
    return kernel_emit(rule, &kernel_op_sum, 1, &both, 2, last);
}

/* Times g / |x|^n, where the lengths are in spare[0]; x / 0 is not taken: 0 there. */
static void scale_block(const struct complex_block *b, int n)
{
    void *const parts[] = {b->re[0], b->im[0]};
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < n; i++)
            complex_loop(b, LOOP_div, parts[k], parts[k], b->spare[0]);
        complex_loop(b, LOOP_pick, parts[k], b->spare[0], parts[k]);
        complex_loop(b, LOOP_mul, parts[k], parts[k], b->re[1]);
    }
}

static void abs_block(const struct complex_block *b)
{
    complex_loop(b, LOOP_hypot, b->spare[0], b->re[0], b->im[0]);
    scale_block(b, 1);
}

static complex_function *const abs_family = abs_block;

/* With the unit u = x / |x| and d = re(y' conj(u)): g' is d, x' is g (y' - u d) / |x|. */
static void abs_pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0], g = rule->in[1], h = rule->adjoint[0];
    if (h == NULL)
        return;
    const kernel_ref length = kernel_emit1(rule, &kernel_op_complex_abs, x);
    const kernel_ref unit = by_ones(rule, length);
    const kernel_ref d = real_product(rule, h, unit);
    kernel_accumulate_value(rule, 1, d);
    if (!kernel_needs(rule, 0))
        return;
    const kernel_ref along = kernel_emit2(rule, &kernel_op_mul, unit, complex_emit_column(rule, d));
    const kernel_ref share = kernel_emit2(rule, &kernel_op_div, g, length);
    const kernel_ref across[] = {kernel_emit2(rule, &kernel_op_sub, h, along),
                                 complex_emit_column(rule, share)};
    kernel_accumulate(rule, 0, &kernel_op_mul, 2, across, 0, NULL);
}

static void depends(const struct kernel_call *call, int o, int i, struct kernel_depends *d)
{
    kernel_depends_within(call->in[i], i == 0, call->out[o], 1, d);
}

KERNEL_OP(complex_abs_gradient) = {
    .name = "complex_abs_gradient",
    KERNEL_IN("x", "g"),
    .n_out = 1,
    .hidden = true,
    .saves_in = 3,
    .reads_for = {3, 1},
    .touches_all = true,
    .family = &abs_family,
    .depends = depends,
    .shape = complex_shape_scaled,
    .forward = forward,
    .pullback = abs_pullback,
    .flops_per_element = 10,
    .workspace = complex_workspace,
    .sample = sample,
    .brief = "Complex numbers of length g in the direction of x.",
    .shapes = "x [...,2], g [...] -> [...,2]",
    .formula = "y = g x / |x|",
    .derivative = "g' += re(y' conj(x)) / |x|, x' += g (y' - x re(y' conj(x)) / |x|^2) / |x|",
    .edges = "0 where x is 0",
};

static void angle_block(const struct complex_block *b)
{
    /* By the unit u = x / |x|, so that |x|^2 neither overflows nor vanishes: i u / |x|. */
    complex_loop(b, LOOP_hypot, b->spare[0], b->re[0], b->im[0]);
    complex_loop(b, LOOP_neg, b->spare[1], b->im[0], NULL);
    complex_loop(b, LOOP_copy, b->im[0], b->re[0], NULL);
    complex_loop(b, LOOP_copy, b->re[0], b->spare[1], NULL);
    scale_block(b, 2);
}

static complex_function *const angle_family = angle_block;

/* y = g c with c = i / conj(x): g' is re(y' conj(c)), x' is g i conj(y') c^2, where i c is
 * -x / |x|^2. */
static void angle_pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0], g = rule->in[1], h = rule->adjoint[0];
    if (h == NULL)
        return;
    const kernel_ref length = kernel_emit1(rule, &kernel_op_complex_abs, x);
    const kernel_ref c = by_ones(rule, length);
    if (kernel_needs(rule, 1))
        kernel_accumulate_value(rule, 1, real_product(rule, h, c));
    if (!kernel_needs(rule, 0))
        return;
    const kernel_ref share =
        kernel_emit2(rule, &kernel_op_div, kernel_emit2(rule, &kernel_op_div, g, length), length);
    const kernel_ref turned = kernel_emit2(rule, &kernel_op_complex_mul_conj, c, h);
    const kernel_ref away =
        kernel_emit2(rule, &kernel_op_mul, kernel_emit1(rule, &kernel_op_neg, x),
                     complex_emit_column(rule, share));
    const kernel_ref product[] = {turned, away};
    kernel_accumulate(rule, 0, &kernel_op_complex_mul, 2, product, 0, NULL);
}

KERNEL_OP(complex_angle_gradient) = {
    .name = "complex_angle_gradient",
    KERNEL_IN("x", "g"),
    .n_out = 1,
    .hidden = true,
    .saves_in = 3,
    .reads_for = {3, 1},
    .touches_all = true,
    .family = &angle_family,
    .depends = depends,
    .shape = complex_shape_scaled,
    .forward = forward,
    .pullback = angle_pullback,
    .flops_per_element = 14.5,
    .workspace = complex_workspace,
    .sample = sample,
    .brief = "Complex numbers i g / conj(x).",
    .shapes = "x [...,2], g [...] -> [...,2]",
    .formula = "y = g i x / |x|^2",
    .derivative = "g' += re(y' conj(i x)) / |x|^2, x' -= g conj(y') i / conj(x)^2",
    .edges = "0 where x is 0",
};
