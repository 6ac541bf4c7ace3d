/* ops/reduce/var.c: variance over axes.
 *
 * May include: elementwise.h, op_rules.h, reduction_samples.h, kernel_ops.h. Two passes, the second
 * one corrected by what the rounding of the mean leaves (Chan, Golub and LeVeque, The American
 * Statistician 37 (1983), 242-247), so that a large mean costs no accuracy.
 */
#include "elementwise.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "reduction_samples.h"

#include <math.h>

static const char *const names[] = {"x"};
static const struct kernel_attr_info attrs[] = {
    {"keepdim", KERNEL_ATTR_FLAG}, {"correction", KERNEL_ATTR_INT}, {"axes", KERNEL_ATTR_AXES}};

static const struct kernel_sample samples[] = {
    REDUCTION_SAMPLES_WITH(1, -2, 2), REDUCTION_SAMPLES_WITH(0, -2, 2),
    AXES_SAMPLE(0, (0), -1, 1, 2, 0, 0), AXES_SAMPLE(1, (65), -1, 1, 2, 0, 1)};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    return kernel_reduction_shape_at(call, 2, out);
}

static size_t rounded(kernel_ref array)
{
    return ((size_t)array->size * kernel_dtype_bytes(array->dtype) + 63) & ~(size_t)63;
}

static size_t workspace(const struct kernel_call *call)
{
    return rounded(call->in[0]) + rounded(call->out[0]);
}

/* What sums of squares are divided by; NaN where there is no variance. */
static double divisor(kernel_ref x, unsigned axes, int64_t correction)
{
    const double n = (double)kernel_axes_count(x, axes), left = n - (double)correction;
    return n > 0 && left > 0 ? left : (double)NAN;
}

static void divide(struct kernel_array *array, double by)
{
    const float narrow = (float)by;
    struct kernel_array one = {.size = 1, .dtype = array->dtype, .contiguous = true};
    if (array->dtype == KERNEL_F32)
        one.data = (void *)&narrow;
    else
        one.data = (void *)&by;
    const kernel_ref in[] = {array, &one};
    kernel_elementwise(LOOP_div, array, 2, in, NULL, false);
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    struct kernel_array *y = call->out[0];
    struct kernel_view kept, apart, mean;
    char *space = call->workspace;
    unsigned axes;
    if (kernel_axes(call, 2, &axes) != 0)
        return -1;
    const double n = (double)kernel_axes_count(x, axes);
    kernel_keep_axes(&kept, y, x, axes);
    kernel_view_dense(&apart, space, x->dtype, x->rank, x->shape);
    kernel_view_dense(&mean, space + rounded(x), x->dtype, x->rank, kept.shape);
    kernel_fill(&mean.array, 0);
    kernel_reduce(KERNEL_REDUCE_SUM, &mean.array, x);
    divide(&mean.array, n);
    const kernel_ref from_mean[] = {x, &mean.array}, distance = &apart.array;
    kernel_elementwise(LOOP_sub, &apart.array, 2, from_mean, NULL, false);
    /* The distances' own sum, which exact arithmetic would make 0. */
    kernel_fill(&mean.array, 0);
    kernel_reduce(KERNEL_REDUCE_SUM, &mean.array, &apart.array);
    kernel_elementwise(LOOP_square, &apart.array, 1, &distance, NULL, false);
    kernel_fill(y, 0);
    kernel_reduce(KERNEL_REDUCE_SUM, &kept.array, &apart.array);
    const kernel_ref rest = &mean.array, corrected[] = {&kept.array, &mean.array};
    kernel_elementwise(LOOP_square, &mean.array, 1, &rest, NULL, false);
    divide(&mean.array, n);
    kernel_elementwise(LOOP_sub, &kept.array, 2, corrected, NULL, false);
    divide(&kept.array, divisor(x, axes, call->attr[1]));
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0];
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const struct kernel_call call = {
        .op = rule->op, .in = rule->in, .attr = rule->attr, .n_in = 1, .n_attr = rule->n_attr};
    unsigned axes;
    if (kernel_axes(&call, 2, &axes) != 0)
        return;
    const double factor = 2 / divisor(x, axes, rule->attr[1]);
    const kernel_ref mean = kernel_emit_reduction(rule, &kernel_op_mean, x, 2);
    const kernel_ref share = kernel_emit_real(rule, &kernel_op_scale, factor,
                                              kernel_emit_kept_at(rule, rule->adjoint[0], 2));
    const kernel_ref in[] = {kernel_emit2(rule, &kernel_op_sub, x, mean), share};
    kernel_accumulate(rule, 0, &kernel_op_mul, 2, in, 0, NULL);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    return (struct kernel_cost){.flops =
                                    (uint64_t)(5 * call->in[0]->size + 10 * call->out[0]->size),
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(var) = {
    .name = "var",
    .in_names = names,
    .attrs = attrs,
    .n_in = 1,
    .n_out = 1,
    .n_attrs = 3,
    .saves_in = 1,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "Variance over axes; correction 1 is the unbiased estimate, 0 the population's.",
    .shapes = "x [...] -> x without the axes, or with extents of 1 there",
    .formula = "y = sum over the axes of (x - mean)^2 / (number of terms - correction)",
    .derivative = "x' += 2 y' (x - mean) / (number of terms - correction)",
    .edges = "NaN, and a gradient of NaN, where there is nothing or not more than `correction` "
             "terms; NaN if an element is infinite",
};
