/* variance.c: variance over axes, for the ops that are made of it.
 *
 * May include: variance.h, elementwise.h, op_rules.h, kernel_ops.h. Two passes, the second one
 * corrected by what the rounding of the mean leaves (Chan, Golub and LeVeque, The American
 * Statistician 37 (1983), 242-247), so that a large mean costs no accuracy. Before them the first
 * element is subtracted from all, so that equal elements leave exactly 0.
 */
#include "variance.h"
#include "elementwise.h"
#include "kernel_ops.h"
#include "op_rules.h"

#include <math.h>

static size_t rounded(kernel_ref array)
{
    return ((size_t)array->size * kernel_dtype_bytes(array->dtype) + 63) & ~(size_t)63;
}

int kernel_variance_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    if (call->attr[1] < 0)
        return kernel_refuse_real(call, "correction", (double)call->attr[1],
                                  "a number of at least 0");
    return kernel_reduction_shape_at(call, 2, out);
}

size_t kernel_variance_workspace(const struct kernel_call *call)
{
    return rounded(call->in[0]) + rounded(call->out[0]);
}

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

/* The first element along the axes, which are kept as extents of 1. */
static void first_of(struct kernel_view *first, kernel_ref x, unsigned axes)
{
    first->array = *x;
    kernel_view_bind(first);
    for (int axis = 0; axis < x->rank; axis++) {
        first->shape[axis] = axes >> axis & 1 ? 1 : x->shape[axis];
        first->strides[axis] = x->strides[axis];
    }
    first->array.size = x->size / kernel_axes_count(x, axes);
    first->array.contiguous = first->array.size == x->size && x->contiguous;
}

int kernel_variance(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    struct kernel_array *y = call->out[0];
    struct kernel_view kept, first, apart, mean;
    char *space = call->workspace;
    unsigned axes;
    if (kernel_axes(call, 2, &axes) != 0)
        return -1;
    if (x->size == 0) {
        kernel_fill(y, (double)NAN);
        return 0;
    }
    const double n = (double)kernel_axes_count(x, axes);
    kernel_keep_axes(&kept, y, x, axes);
    first_of(&first, x, axes);
    kernel_view_dense(&apart, space, x->dtype, x->rank, x->shape);
    kernel_view_dense(&mean, space + rounded(x), x->dtype, x->rank, kept.shape);
    const kernel_ref from_first[] = {x, &first.array};
    kernel_elementwise(LOOP_sub, &apart.array, 2, from_first, NULL, false);
    kernel_fill(&mean.array, 0);
    kernel_reduce(KERNEL_REDUCE_SUM, &mean.array, &apart.array);
    divide(&mean.array, n);
    const kernel_ref from_mean[] = {&apart.array, &mean.array}, distance = &apart.array;
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

struct kernel_cost kernel_variance_cost(const struct kernel_call *call)
{
    return (struct kernel_cost){.flops =
                                    (uint64_t)(6 * call->in[0]->size + 10 * call->out[0]->size),
                                .bytes = kernel_moved_bytes(call)};
}

kernel_ref kernel_emit_centred(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0];
    return kernel_emit2(rule, &kernel_op_sub, x,
                        kernel_emit_reduction(rule, &kernel_op_mean, x, 2));
}

double kernel_variance_divisor(const struct kernel_rule *rule)
{
    const struct kernel_call call = {
        .op = rule->op, .in = rule->in, .attr = rule->attr, .n_in = 1, .n_attr = rule->n_attr};
    unsigned axes = 0;
    (void)kernel_axes(&call, 2, &axes);
    return divisor(rule->in[0], axes, rule->attr[1]);
}
