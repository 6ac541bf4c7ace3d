/* ops/complex/complex_angle_gradient.c: each complex number turned by 90 degrees, divided by its
 * squared length.
 */
#include "complex_pairs.h"
#include "elementwise.h"
#include "kernel_ops.h"
#include "op_rules.h"

static const struct kernel_sample samples[] = {COMPLEX_SCALED_SAMPLES};
KERNEL_SAMPLES(samples)

static void block(const struct complex_block *b)
{
    /* By the unit u = x / |x|, so that |x|^2 neither overflows nor vanishes: i u / |x|. */
    complex_loop(b, LOOP_hypot, b->spare[0], b->re[0], b->im[0]);
    complex_loop(b, LOOP_neg, b->spare[1], b->im[0], NULL);
    complex_loop(b, LOOP_copy, b->im[0], b->re[0], NULL);
    complex_loop(b, LOOP_copy, b->re[0], b->spare[1], NULL);
    void *const parts[] = {b->re[0], b->im[0]};
    for (int k = 0; k < 2; k++) {
        complex_loop(b, LOOP_div, parts[k], parts[k], b->spare[0]);
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

/* y = g c with c = i / conj(x): g' is re(y' conj(c)), x' is g i conj(y') c^2, where i c is
 * -x / |x|^2. */
static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0], g = rule->in[1], h = rule->adjoint[0];
    if (h == NULL)
        return;
    const kernel_ref length = kernel_emit1(rule, &kernel_op_complex_abs, x);
    const kernel_ref in[] = {x, kernel_emit2(rule, &kernel_op_tie, length, length)}; /* ones */
    const kernel_ref c = kernel_emit(rule, &kernel_op_complex_angle_gradient, 2, in, 0, NULL);
    const int64_t last[] = {0, x->rank - 1};
    const kernel_ref both = kernel_emit2(rule, &kernel_op_mul, h, c);
    if (kernel_needs(rule, 1))
        kernel_accumulate_value(rule, 1, kernel_emit(rule, &kernel_op_sum, 1, &both, 2, last));
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
    .shape = complex_shape_scaled,
    .forward = forward,
    .pullback = pullback,
    .flops_per_element = 14.5,
    .workspace = complex_workspace,
    .sample = sample,
    .brief = "Complex numbers i g / conj(x).",
    .shapes = "x [...,2], g [...] -> [...,2]",
    .formula = "y = g i x / |x|^2",
    .derivative = "g' += re(y' conj(i x)) / |x|^2, x' -= g conj(y') i / conj(x)^2",
    .edges = "0 where x is 0",
};
