/* ops/complex/complex_angle.c: angles of complex numbers.
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
    complex_loop(b, LOOP_atan2, b->re[0], b->im[0], b->re[0]);
}

static int forward(const struct kernel_call *call)
{
    complex_map(call, block);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref in[] = {rule->in[0], rule->adjoint[0]};
    if (rule->adjoint[0] != NULL)
        kernel_accumulate(rule, 0, &kernel_op_complex_angle_gradient, 2, in, 0, NULL);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    return (struct kernel_cost){.flops = 35 * (uint64_t)call->out[0]->size,
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(complex_angle) = {
    .name = "complex_angle",
    .in_names = names,
    .n_in = 1,
    .n_out = 1,
    .saves_in = 1,
    .shape = complex_shape_real,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = complex_workspace,
    .sample = sample,
    .brief = "Angle of complex numbers, pairs along the last axis.",
    .shapes = "x [...,2] -> [...]",
    .formula = "y = atan2(im(x), re(x))",
    .derivative = "x' += y' i x / |x|^2",
    .edges = "values at zeros and infinities as atan2 has them; the derivative at 0 is 0, the "
             "second is NaN; the derivative in an infinite part is NaN",
};
