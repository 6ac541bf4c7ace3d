/* ops/reduce/absolute_power.c: powers of magnitudes, with or without the sign.
 *
 * The pullback of a p-norm is made of these, and they are closed under differentiation.
 */
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"

#include <math.h>

/* Either sign of operand, odd and even, each of the exponents; then the sizes. */
static bool sample(int k, struct kernel_sample *s)
{
    static const double exponents[] = {0, 1, 2, 2.5, -1};
    static const int64_t sizes[] = {0, 1, 7, 17};
    enum { EXPONENTS = sizeof exponents / sizeof *exponents };
    const int size = k - 4 * EXPONENTS;
    if (k < 0 || size >= (int)(sizeof sizes / sizeof *sizes))
        return false;
    *s = (struct kernel_sample){.n_in = 1, .n_attr = 2, .dtype = {KERNEL_F64}, .rank = {2}};
    s->shape[0][0] = 2;
    s->shape[0][1] = 3;
    s->low[0] = k & 1 ? -2 : 0.3;
    s->high[0] = k & 1 ? -0.3 : 2;
    s->attr[0] = k >> 1 & 1;
    s->attr[1] = kernel_attr_word(exponents[(k >> 2) % EXPONENTS]);
    if (size >= 0) {
        s->rank[0] = 1;
        s->shape[0][0] = sizes[size];
        s->attr[1] = kernel_attr_word(1.5);
    }
    return true;
}

/* |x|^q, or sign(x) |x|^q, which is 0 at 0 whatever q is. */
static double power_of(double x, bool odd, double q)
{
    const double size = fabs(x);
    const double power = q == 1 ? size : q == 2 ? size * size : q == 0 ? 1 : pow(size, q);
    if (isnan(x))
        return x;
    if (!odd)
        return power;
    return x > 0 ? power : x < 0 ? -power : 0;
}

static int forward(const struct kernel_call *call)
{
    struct kernel_array *y = call->out[0];
    const bool odd = call->attr[0] != 0;
    const double q = kernel_attr_real(call->attr[1]);
    kernel_elementwise(LOOP_copy, y, 1, call->in, 0, false);
    if (y->dtype == KERNEL_F32) {
        float *v = y->data;
        for (int64_t i = 0; i < y->size; i++)
            v[i] = (float)power_of((double)v[i], odd, q);
    } else {
        double *v = y->data;
        for (int64_t i = 0; i < y->size; i++)
            v[i] = power_of(v[i], odd, q);
    }
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const double q = kernel_attr_real(rule->attr[1]);
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0) || q == 0)
        return;
    const int64_t attr[] = {!rule->attr[0], kernel_attr_word(q - 1)};
    const kernel_ref power = kernel_emit(rule, &kernel_op_absolute_power, 1, rule->in, 2, attr);
    const kernel_ref in[] = {kernel_emit_real(rule, &kernel_op_scale, q, rule->adjoint[0]), power};
    kernel_accumulate(rule, 0, &kernel_op_mul, 2, in, 0, NULL);
}

KERNEL_OP(absolute_power) = {
    .name = "absolute_power",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"odd", KERNEL_ATTR_FLAG}, {"exponent", KERNEL_ATTR_REAL}),
    .n_out = 1,
    .hidden = true,
    .saves_in = 1,
    .depends = kernel_depends_elements,
    .shape = kernel_shape_floats,
    .forward = forward,
    .pullback = pullback,
    .flops_per_element = 40,
    .sample = sample,
    .brief = "Power of the magnitude, with the sign where odd.",
    .shapes = "x [...] -> [...]",
    .formula = "y = |x|^q, or sign(x) |x|^q",
    .derivative = "x' += q y' times the other power with q - 1",
    .edges = "with the sign it is 0 at 0; NaN at NaN",
};
