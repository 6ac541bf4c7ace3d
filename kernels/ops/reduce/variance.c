/* variance.c: variance over axes, for the ops that are made of it.
 *
 * Two passes. The second is corrected by the rounding error of the mean (Chan, Golub and LeVeque,
 * The American Statistician 37 (1983), 242-247), so that a large mean costs no accuracy. Before
 * them the first element is subtracted from all, so that equal elements leave exactly 0. Where a
 * variance leaves the range all is done again with numbers scaled by a power of two.
 */
#include "variance.h"
#include "dense.h"
#include "elementwise.h"
#include "kernel_ops.h"
#include "op_rules.h"

#include <math.h>

int kernel_variance_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    if (call->attr[1] < 0)
        return kernel_refuse_real(call, "correction", (double)call->attr[1],
                                  "a number of at least 0");
    return kernel_reduction_shape_at(call, 2, out);
}

size_t kernel_variance_workspace(const struct kernel_call *call)
{
    return dense_copy_bytes(call->in[0]) + 2 * dense_copy_bytes(call->out[0]);
}

static double divisor(kernel_ref x, unsigned axes, int64_t correction)
{
    const double n = (double)kernel_axes_count(x, axes), left = n - (double)correction;
    return n > 0 && left > 0 ? left : (double)NAN;
}

void kernel_divide_by(struct kernel_array *array, double by)
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

/* Scratch of one call: `apart` has x's shape, `mean` and `scale` the output's, its axes kept. */
struct variance {
    kernel_ref x;
    double n, divisor;
    unsigned axes;
    struct kernel_view kept, apart, mean, scale;
};

/* The variance into `kept`: of x, or of x times the scales. */
static void variance_run(struct variance *v, bool scaled)
{
    struct kernel_array *const apart = &v->apart.array, *const mean = &v->mean.array;
    struct kernel_array *const kept = &v->kept.array;
    struct kernel_view first;
    const kernel_ref distance = apart, rest = mean, from_mean[] = {apart, mean};
    first_of(&first, v->x, v->axes);
    const kernel_ref from_first[] = {v->x, &first.array}, times[] = {v->x, &v->scale.array};
    if (scaled) {
        kernel_elementwise(LOOP_mul, apart, 2, times, NULL, false);
        first_of(&first, apart, v->axes);
        const kernel_ref one = &first.array;
        kernel_elementwise(LOOP_copy, mean, 1, &one, NULL, false);
        kernel_elementwise(LOOP_sub, apart, 2, from_mean, NULL, false);
    } else {
        kernel_elementwise(LOOP_sub, apart, 2, from_first, NULL, false);
    }
    kernel_fill(mean, 0);
    kernel_reduce(KERNEL_REDUCE_SUM, mean, apart);
    kernel_divide_by(mean, v->n);
    kernel_elementwise(LOOP_sub, apart, 2, from_mean, NULL, false);
    /* The distances' own sum, which exact arithmetic would make 0. */
    kernel_fill(mean, 0);
    kernel_reduce(KERNEL_REDUCE_SUM, mean, apart);
    kernel_elementwise(LOOP_square, apart, 1, &distance, NULL, false);
    kernel_fill(kept, 0);
    kernel_reduce(KERNEL_REDUCE_SUM, kept, apart);
    const kernel_ref corrected[] = {kept, mean};
    kernel_elementwise(LOOP_square, mean, 1, &rest, NULL, false);
    kernel_divide_by(mean, v->n);
    kernel_elementwise(LOOP_sub, kept, 2, corrected, NULL, false);
    kernel_divide_by(kept, v->divisor);
}

/* A power of two near 1 / most, for a variance that overflowed or whose squares may have vanished;
 * else 1. */
static double scale_for(int dtype, double variance, double most)
{
    const double least = dtype == KERNEL_F32 ? 0x1p-100 : 0x1p-960;
    const int limit = dtype == KERNEL_F32 ? 120 : 1000;
    int exponent;
    if ((variance >= least && isfinite(variance)) || !isfinite(most) || most == 0)
        return 1;
    (void)frexp(most, &exponent);
    return ldexp(1, exponent > limit ? -limit : exponent < -limit ? limit : -exponent);
}

/* Finds the scales. Returns whether one is not 1. */
static bool variance_scales(struct variance *v)
{
    struct kernel_array *const apart = &v->apart.array, *const scale = &v->scale.array;
    bool far = false;
    for (int64_t i = 0; i < scale->size && !far; i++)
        far = scale_for(scale->dtype, kernel_load(scale->dtype, v->kept.array.data, i), 2) != 1;
    if (!far)
        return false;
    kernel_elementwise(LOOP_abs, apart, 1, &v->x, NULL, false);
    kernel_fill(scale, 0);
    kernel_reduce(KERNEL_REDUCE_MAX, scale, apart);
    far = false;
    for (int64_t i = 0; i < scale->size; i++) {
        const double by = scale_for(scale->dtype, kernel_load(scale->dtype, v->kept.array.data, i),
                                    kernel_load(scale->dtype, scale->data, i));
        far = far || by != 1;
        if (scale->dtype == KERNEL_F32)
            ((float *)scale->data)[i] = (float)by;
        else
            ((double *)scale->data)[i] = by;
    }
    return far;
}

/* y = the square root of y, which rounding may leave a little below 0. */
static void variance_root(struct kernel_array *y)
{
    const kernel_ref variance = y;
    kernel_elementwise(LOOP_relu, y, 1, &variance, NULL, false);
    kernel_elementwise(LOOP_sqrt, y, 1, &variance, NULL, false);
}

int kernel_variance(const struct kernel_call *call, bool root)
{
    const kernel_ref x = call->in[0];
    struct kernel_array *y = call->out[0];
    struct variance v = {.x = x};
    char *space = call->workspace;
    if (kernel_axes(call, 2, &v.axes) != 0)
        return -1;
    if (x->size == 0) {
        kernel_fill(y, (double)NAN);
        return 0;
    }
    v.n = (double)kernel_axes_count(x, v.axes);
    v.divisor = divisor(x, v.axes, call->attr[1]);
    kernel_keep_axes(&v.kept, y, x, v.axes);
    kernel_view_dense(&v.apart, space, x->dtype, x->rank, x->shape);
    kernel_view_dense(&v.mean, space + dense_copy_bytes(x), x->dtype, x->rank, v.kept.shape);
    kernel_view_dense(&v.scale, space + dense_copy_bytes(x) + dense_copy_bytes(y), x->dtype,
                      x->rank, v.kept.shape);
    variance_run(&v, false);
    const bool far = !isnan(v.divisor) && variance_scales(&v);
    if (far)
        variance_run(&v, true);
    if (root)
        variance_root(y);
    const kernel_ref back[] = {&v.kept.array, &v.scale.array};
    for (int k = 0; far && k < (root ? 1 : 2); k++)
        kernel_elementwise(LOOP_div, &v.kept.array, 2, back, NULL, false);
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
    return kernel_emit(rule, &kernel_op_centred, 1, rule->in, rule->n_attr - 2, rule->attr + 2);
}

double kernel_variance_divisor(const struct kernel_rule *rule)
{
    const struct kernel_call call = {
        .op = rule->op, .in = rule->in, .attr = rule->attr, .n_in = 1, .n_attr = rule->n_attr};
    unsigned axes = 0;
    (void)kernel_axes(&call, 2, &axes);
    return divisor(rule->in[0], axes, rule->attr[1]);
}
