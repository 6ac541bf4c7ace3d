/* ops/complex/complex_maps.c: functions of single complex numbers, and products. */
#include "complex_pairs.h"
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"

static const struct kernel_sample away_samples[] = {COMPLEX_SAMPLES1(0.3, 2)};
static const struct kernel_sample near_samples[] = {COMPLEX_SAMPLES1(-2, 2)};
static const struct kernel_sample pair_samples[] = {COMPLEX_SAMPLES2(-1, 1)};
KERNEL_SAMPLES_OF(away)
KERNEL_SAMPLES_OF(near)
KERNEL_SAMPLES_OF(pair)

/* What the functions of one operand differ in. */
struct map {
    complex_function *block;
    const struct kernel_op *gradient; /* of x and y', where the result is real */
};

static int map_forward(const struct kernel_call *call)
{
    complex_map(call, ((const struct map *)call->op->family)->block);
    return 0;
}

static void real_pullback(struct kernel_rule *rule)
{
    const kernel_ref in[] = {rule->in[0], rule->adjoint[0]};
    if (rule->adjoint[0] != NULL)
        kernel_accumulate(rule, 0, ((const struct map *)rule->op->family)->gradient, 2, in, 0,
                          NULL);
}

static void abs_block(const struct complex_block *b)
{
    complex_loop(b, LOOP_hypot, b->re[0], b->re[0], b->im[0]);
}

static const struct map abs_map = {abs_block, &kernel_op_complex_abs_gradient};

static void real_depends(const struct kernel_call *call, int o, int i, struct kernel_depends *d)
{
    kernel_depends_within(call->in[i], 1, call->out[o], 0, d);
}

KERNEL_OP(complex_abs) = {
    .name = "complex_abs",
    KERNEL_IN("x"),
    .n_out = 1,
    .saves_in = 1,
    .depends = real_depends,
    .shape = complex_shape_real,
    .family = &abs_map,
    .forward = map_forward,
    .pullback = real_pullback,
    .flops_per_element = 5,
    .workspace = complex_workspace,
    .sample = away_sample,
    .brief = "Absolute value of complex numbers, pairs along the last axis.",
    .shapes = "x [...,2] -> [...]",
    .formula = "y = (re(x)^2 + im(x)^2)^(1/2)",
    .derivative = "x' += y' x / |x|",
    .edges = "inf if either part is infinite, else NaN if either is NaN; the derivative at 0 is 0, "
             "the second is NaN; the derivative in an infinite part is NaN",
};

static void angle_block(const struct complex_block *b)
{
    complex_loop(b, LOOP_atan2, b->re[0], b->im[0], b->re[0]);
}

static const struct map angle_map = {angle_block, &kernel_op_complex_angle_gradient};

KERNEL_OP(complex_angle) = {
    .name = "complex_angle",
    KERNEL_IN("x"),
    .n_out = 1,
    .saves_in = 1,
    .depends = real_depends,
    .shape = complex_shape_real,
    .family = &angle_map,
    .forward = map_forward,
    .pullback = real_pullback,
    .flops_per_element = 17.5,
    .workspace = complex_workspace,
    .sample = away_sample,
    .brief = "Angle of complex numbers, pairs along the last axis.",
    .shapes = "x [...,2] -> [...]",
    .formula = "y = atan2(im(x), re(x))",
    .derivative = "x' += y' i x / |x|^2",
    .edges = "values at zeros and infinities as atan2 has them; the derivative at 0 is 0, the "
             "second is NaN; the derivative in an infinite part is NaN",
};

static void exp_block(const struct complex_block *b)
{
    complex_loop(b, LOOP_exp, b->spare[0], b->re[0], NULL);
    complex_loop(b, LOOP_cos, b->re[0], b->im[0], NULL);
    complex_loop(b, LOOP_mul, b->re[0], b->spare[0], b->re[0]);
    complex_loop(b, LOOP_sin, b->spare[1], b->im[0], NULL);
    complex_loop(b, LOOP_mul, b->spare[1], b->spare[0], b->spare[1]);
    /* A real number has a real result, also where that is infinite. */
    complex_loop(b, LOOP_pick, b->im[0], b->im[0], b->spare[1]);
}

static const struct map exp_map = {.block = exp_block};

static void exp_pullback(struct kernel_rule *rule)
{
    const kernel_ref in[] = {rule->adjoint[0], rule->out[0]};
    if (rule->adjoint[0] != NULL)
        kernel_accumulate(rule, 0, &kernel_op_complex_mul_conj, 2, in, 0, NULL);
}

KERNEL_OP(complex_exp) = {
    .name = "complex_exp",
    KERNEL_IN("x"),
    .n_out = 1,
    .saves_out = 1,
    .depends = kernel_depends_rows,
    .shape = complex_shape_same,
    .family = &exp_map,
    .forward = map_forward,
    .pullback = exp_pullback,
    .flops_per_element = 31,
    .workspace = complex_workspace,
    .sample = near_sample,
    .brief = "Exponential of complex numbers, pairs along the last axis.",
    .shapes = "x [...,2] -> [...,2]",
    .formula = "y = e^re(x) (cos im(x) + i sin im(x))",
    .derivative = "x' += y' conj(y)",
    .edges = "the imaginary part of a real number is 0, also where the real part is inf; NaN where "
             "im(x) is infinite or NaN, also at re(x) = -inf",
};

static void log_block(const struct complex_block *b)
{
    complex_loop(b, LOOP_hypot, b->spare[0], b->re[0], b->im[0]);
    complex_loop(b, LOOP_atan2, b->im[0], b->im[0], b->re[0]);
    complex_loop(b, LOOP_log, b->re[0], b->spare[0], NULL);
}

static const struct map log_map = {.block = log_block};

static void log_pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] == NULL)
        return;
    const kernel_ref in[] = {rule->adjoint[0],
                             kernel_emit1(rule, &kernel_op_complex_conj, rule->in[0])};
    kernel_accumulate(rule, 0, &kernel_op_complex_div, 2, in, 0, NULL);
}

KERNEL_OP(complex_log) = {
    .name = "complex_log",
    KERNEL_IN("x"),
    .n_out = 1,
    .saves_in = 1,
    .depends = kernel_depends_rows,
    .shape = complex_shape_same,
    .family = &log_map,
    .forward = map_forward,
    .pullback = log_pullback,
    .flops_per_element = 32.5,
    .workspace = complex_workspace,
    .sample = away_sample,
    .brief = "Principal logarithm of complex numbers, pairs along the last axis.",
    .shapes = "x [...,2] -> [...,2]",
    .formula = "y = ln |x| + i atan2(im(x), re(x))",
    .derivative = "x' += y' / conj(x)",
    .edges = "the real part at 0 is -inf, and the derivative NaN; cut along the negative real "
             "axis, where the sign of a zero says which side",
};

static void conj_block(const struct complex_block *b)
{
    complex_loop(b, LOOP_neg, b->im[0], b->im[0], NULL);
}

static const struct map conj_map = {.block = conj_block};

KERNEL_OP(complex_conj) = {
    .name = "complex_conj",
    KERNEL_IN("x"),
    .n_out = 1,
    .depends = kernel_depends_rows,
    .shape = complex_shape_same,
    .family = &conj_map,
    .forward = map_forward,
    .pullback = kernel_pullback_self,
    .flops_per_element = 0.5,
    .workspace = complex_workspace,
    .sample = near_sample,
    .brief = "Conjugate of complex numbers, pairs along the last axis.",
    .shapes = "x [...,2] -> [...,2]",
    .formula = "y = re(x) - i im(x)",
    .derivative = "x' += conj(y')",
};

static int mul_forward(const struct kernel_call *call)
{
    complex_multiply(call, false);
    return 0;
}

static void mul_pullback(struct kernel_rule *rule)
{
    const kernel_ref g = rule->adjoint[0];
    if (g == NULL)
        return;
    for (int i = 0; i < 2; i++) {
        const kernel_ref in[] = {g, rule->in[1 - i]};
        kernel_accumulate(rule, i, &kernel_op_complex_mul_conj, 2, in, 0, NULL);
    }
}

KERNEL_OP(complex_mul) = {
    .name = "complex_mul",
    KERNEL_IN("a", "b"),
    .n_out = 1,
    .saves_in = 3,
    .reads_for = {2, 1},
    .depends = kernel_depends_rows,
    .shape = complex_shape_both,
    .forward = mul_forward,
    .pullback = mul_pullback,
    .flops_per_element = 3,
    .workspace = complex_workspace,
    .sample = pair_sample,
    .brief = "Product of complex numbers, pairs along the last axis.",
    .shapes = "a [...,2], b [...,2] -> [...,2], leading axes broadcast",
    .formula = "y = a b",
    .derivative = "a' += y' conj(b), b' += y' conj(a)",
    .edges = "by the four products of the parts: inf times 0 in one of them is NaN",
};

static int mul_conj_forward(const struct kernel_call *call)
{
    complex_multiply(call, true);
    return 0;
}

static void mul_conj_pullback(struct kernel_rule *rule)
{
    const kernel_ref g = rule->adjoint[0];
    if (g == NULL)
        return;
    const kernel_ref to_a[] = {g, rule->in[1]}, to_b[] = {rule->in[0], g};
    kernel_accumulate(rule, 0, &kernel_op_complex_mul, 2, to_a, 0, NULL);
    kernel_accumulate(rule, 1, &kernel_op_complex_mul_conj, 2, to_b, 0, NULL);
}

KERNEL_OP(complex_mul_conj) = {
    .name = "complex_mul_conj",
    KERNEL_IN("a", "b"),
    .n_out = 1,
    .hidden = true,
    .saves_in = 3,
    .reads_for = {2, 1},
    .depends = kernel_depends_rows,
    .shape = complex_shape_both,
    .forward = mul_conj_forward,
    .pullback = mul_conj_pullback,
    .flops_per_element = 3,
    .workspace = complex_workspace,
    .sample = pair_sample,
    .brief = "Product of a complex number with a conjugate.",
    .shapes = "a [...,2], b [...,2] -> [...,2]",
    .formula = "y = a conj(b)",
    .derivative = "a' += y' b, b' += a conj(y')",
};
