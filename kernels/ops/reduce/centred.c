/* ops/reduce/centred.c: elements less their mean over axes. Serves the pullbacks of var and std.
 *
 * The first mean is rounded at the size of the elements, so the mean of the differences is taken
 * off as well (Chan, Golub and LeVeque, The American Statistician 37 (1983), 242-247). Where a sum
 * leaves the range all is done again with smaller numbers.
 */
#include "dense.h"
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "reduction_samples.h"
#include "variance.h"

#include <math.h>

static const struct kernel_sample samples[] = {
    AXES_SAMPLE(2, (3, 5), -2, 2, 0, 0),    AXES_SAMPLE(2, (3, 5), -2, 2, 1, 0),
    AXES_SAMPLE(2, (3, 5), -2, 2, 1, -1),   AXES_SAMPLE(3, (2, 3, 4), -2, 2, 2, 0, 2),
    AXES_SAMPLE(3, (2, 3, 4), -2, 2, 1, 1), AXES_SAMPLE(1, (17), -2, 2, 0, 0),
    AXES_SAMPLE(0, (0), -1, 1, 0, 0),       AXES_SAMPLE(2, (0, 3), -2, 2, 1, 1)};
KERNEL_SAMPLES(samples)

static size_t rounded(kernel_ref x, int64_t count)
{
    return dense_rounded((size_t)(x->size / count) * kernel_dtype_bytes(x->dtype));
}

static size_t workspace(const struct kernel_call *call)
{
    unsigned axes = 0;
    (void)kernel_axes(call, 0, &axes);
    return call->in[0]->size == 0 ? 0
                                  : 2 * rounded(call->in[0], kernel_axes_count(call->in[0], axes));
}

/* y = a, less the mean of that over the axes; a may be y. */
static void take_off_mean(struct kernel_array *y, kernel_ref a, struct kernel_array *mean)
{
    const kernel_ref in[] = {a, mean};
    kernel_fill(mean, 0);
    kernel_reduce(KERNEL_REDUCE_SUM, mean, a);
    kernel_divide_by(mean, (double)a->size / (double)mean->size);
    kernel_elementwise(LOOP_sub, y, 2, in, NULL, false);
}

/* What each element is multiplied by: 1 where the sums of the mean's index are finite. Returns
 * whether one is not 1. */
static bool find_scales(const struct kernel_array *mean, struct kernel_array *scale)
{
    bool far = false;
    for (int64_t i = 0; i < mean->size; i++) {
        if (mean->dtype == KERNEL_F32) {
            const bool finite = isfinite(((const float *)mean->data)[i]);
            ((float *)scale->data)[i] = finite ? 1 : 0x1p-40F;
            far = far || !finite;
        } else {
            const bool finite = isfinite(((const double *)mean->data)[i]);
            ((double *)scale->data)[i] = finite ? 1 : 0x1p-70;
            far = far || !finite;
        }
    }
    return far;
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    struct kernel_array *const y = call->out[0];
    struct kernel_view mean, scale;
    int64_t kept[KERNEL_MAX_RANK];
    unsigned axes;
    if (kernel_axes(call, 0, &axes) != 0)
        return -1;
    if (x->size == 0)
        return 0;
    for (int axis = 0; axis < x->rank; axis++)
        kept[axis] = axes >> axis & 1 ? 1 : x->shape[axis];
    kernel_view_dense(&mean, call->workspace, x->dtype, x->rank, kept);
    kernel_view_dense(&scale, (char *)call->workspace + rounded(x, kernel_axes_count(x, axes)),
                      x->dtype, x->rank, kept);
    take_off_mean(y, x, &mean.array);
    take_off_mean(y, y, &mean.array);
    if (!find_scales(&mean.array, &scale.array))
        return 0;
    const kernel_ref down[] = {x, &scale.array}, up[] = {y, &scale.array};
    kernel_elementwise(LOOP_mul, y, 2, down, NULL, false);
    take_off_mean(y, y, &mean.array);
    take_off_mean(y, y, &mean.array);
    kernel_elementwise(LOOP_div, y, 2, up, NULL, false);
    return 0;
}

KERNEL_OP(centred) = {
    .name = "centred",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"axes", KERNEL_ATTR_AXES}),
    .n_out = 1,
    .hidden = true,
    .depends = kernel_depends_axes,
    .shape = kernel_shape_axes,
    .forward = forward,
    .pullback = kernel_pullback_self,
    .flops_per_element = 4,
    .workspace = workspace,
    .sample = sample,
    .brief = "Elements less their mean over axes.",
    .shapes = "x [...] -> [...]",
    .formula = "y = x - mean of x over the axes",
    .derivative = "x' += y' - mean of y' over the axes",
};
