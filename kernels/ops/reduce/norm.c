/* ops/reduce/norm.c: p-norm over axes.
 *
 * Magnitudes are divided by the greatest one before they are raised to the power, so that nothing
 * overflows or vanishes.
 */
#include "dense.h"
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "reduction_samples.h"

#include <math.h>

/* The axes for each p; the greatest magnitudes are far apart, for p = inf. */
static bool sample(int k, struct kernel_sample *s)
{
    static const struct kernel_sample base[] = {REDUCTION_SAMPLES_WITH(0, -1, 2.3),
                                                AXES_SAMPLE(0, (0), -1, 2, 2, 0, 0)};
    static const double p[] = {2, 1, (double)INFINITY, 3};
    enum { BASES = sizeof base / sizeof *base, POWERS = sizeof p / sizeof *p };
    if (k == BASES * POWERS) { /* powers that are not whole are smooth away from 0 alone */
        *s = (struct kernel_sample)AXES_SAMPLE(2, (3, 5), 0.5, 2, 3, 0, 0, 1);
        s->attr[1] = kernel_attr_word(2.5);
        return true;
    }
    if (!kernel_sample_from(base, BASES, k < 0 ? k : k / POWERS, s))
        return false;
    s->attr[1] = kernel_attr_word(p[k % POWERS]);
    return true;
}

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const double p = kernel_attr_real(call->attr[1]);
    if (kernel_reduction_shape_at(call, 2, out) != 0)
        return -1;
    if (!(p >= 1))
        return kernel_refuse_real(call, "p", p, "a number of at least 1");
    return 0;
}

static size_t workspace(const struct kernel_call *call)
{
    return dense_copy_bytes(call->in[0]) + dense_copy_bytes(call->out[0]);
}

/* What becomes of each element of a dense array. */
enum step { MAGNITUDE, DIVISOR, POWER };

static double step_of(enum step step, double x, double p)
{
    if (step == MAGNITUDE)
        return fabs(x);
    if (step == DIVISOR)
        return x > 0 && isfinite(x) ? x : 1;
    return p == 2 ? x * x : pow(x, p);
}

static void each(enum step step, struct kernel_array *array, double p)
{
    for (int64_t i = 0; i < array->size; i++) {
        if (array->dtype == KERNEL_F32) {
            float *x = array->data;
            x[i] = (float)step_of(step, (double)x[i], p);
        } else {
            double *x = array->data;
            x[i] = step_of(step, x[i], p);
        }
    }
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    struct kernel_array *y = call->out[0];
    const double p = kernel_attr_real(call->attr[1]);
    struct kernel_view kept, sizes, most;
    char *space = call->workspace;
    unsigned axes;
    if (kernel_axes(call, 2, &axes) != 0)
        return -1;
    kernel_keep_axes(&kept, y, x, axes);
    kernel_view_dense(&sizes, space, x->dtype, x->rank, x->shape);
    kernel_view_dense(&most, space + dense_copy_bytes(x), x->dtype, x->rank, kept.shape);
    kernel_elementwise(LOOP_copy, &sizes.array, 1, &x, 0, false);
    each(MAGNITUDE, &sizes.array, p);
    kernel_fill(y, 0);
    if (p == 1 || isinf(p)) {
        kernel_reduce(p == 1 ? KERNEL_REDUCE_SUM : KERNEL_REDUCE_MAX, &kept.array, &sizes.array);
        return 0;
    }
    kernel_fill(&most.array, 0);
    kernel_reduce(KERNEL_REDUCE_MAX, &most.array, &sizes.array);
    each(DIVISOR, &most.array, p);
    const kernel_ref scaled[] = {&sizes.array, &most.array};
    kernel_elementwise(LOOP_div, &sizes.array, 2, scaled, 0, false);
    each(POWER, &sizes.array, p);
    kernel_reduce(KERNEL_REDUCE_SUM, &kept.array, &sizes.array);
    const kernel_ref sum = y, product[] = {&kept.array, &most.array};
    if (p == 2)
        kernel_elementwise(LOOP_sqrt, y, 1, &sum, 0, false);
    else
        each(POWER, y, 1 / p);
    kernel_elementwise(LOOP_mul, &kept.array, 2, product, 0, false);
    return 0;
}

static kernel_ref power(struct kernel_rule *rule, kernel_ref x, bool odd, double q)
{
    const int64_t attr[] = {odd, kernel_attr_word(q)};
    return kernel_emit(rule, &kernel_op_absolute_power, 1, &x, 2, attr);
}

static void pullback(struct kernel_rule *rule)
{
    const double p = kernel_attr_real(rule->attr[1]);
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const kernel_ref x = rule->in[0], g = kernel_emit_kept_at(rule, rule->adjoint[0], 2);
    kernel_ref in[2] = {g, NULL};
    if (p == 1) {
        in[1] = power(rule, x, true, 0);
    } else {
        const kernel_ref y = kernel_emit_kept_at(rule, rule->out[0], 2);
        if (isinf(p)) {
            in[0] = kernel_emit_tied(rule, power(rule, x, false, 1), y, g, 2);
            in[1] = power(rule, x, true, 0);
        } else {
            /* 1 where y is 0, so that x / y is 0 there; a constant, which does not depend on y. */
            const kernel_ref zero = kernel_emit2(rule, &kernel_op_tie, y,
                                                 kernel_emit_real(rule, &kernel_op_scale, 0, y));
            const kernel_ref divisor = kernel_emit2(rule, &kernel_op_add, y, zero);
            const kernel_ref part = kernel_emit2(rule, &kernel_op_div, x, divisor);
            in[1] = p == 2 ? part : power(rule, part, true, p - 1);
        }
    }
    kernel_accumulate(rule, 0, &kernel_op_mul, 2, in, 0, NULL);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const double p = kernel_attr_real(call->attr[1]);
    const uint64_t each_flops = p == 1 || isinf(p) ? 2 : p == 2 ? 7 : 46;
    return (struct kernel_cost){.flops = each_flops * (uint64_t)call->in[0]->size,
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(norm) = {
    .name = "norm",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"keepdim", KERNEL_ATTR_FLAG}, {"p", KERNEL_ATTR_REAL},
                 {"axes", KERNEL_ATTR_AXES}),
    .n_out = 1,
    .saves_in = 1,
    .saves_out = 1,
    .depends = kernel_depends_axes,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "p-norm over axes, 1 <= p <= inf.",
    .shapes = "x [...] -> x without the axes, or with extents of 1 there",
    .formula = "y = (sum over the axes of |x|^p)^(1/p), max of |x| for p = inf",
    .derivative = "x' += y' sign(x) (|x| / y)^(p-1); for p = inf y' sign(x) / number of maxima, "
                  "where |x| = y",
    .edges = "of nothing it is 0; where the norm is 0 the gradient is 0, and there is no second "
             "derivative; the gradient of an infinite element is NaN for 1 < p < inf; sign(0) = 0; "
             "p < 1 and NaN are refused",
};
