/* ops/shape/repeat_sum.c: sums over the repetitions of a smaller array in a larger one.
 *
 * The adjoint of repeat.
 */
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "reduction_samples.h"

static const struct kernel_sample samples[] = {
    AXES_SAMPLE(2, (4, 3), -1, 1, 2, 2, 1),
    AXES_SAMPLE(2, (4, 6), -1, 1, 2, 2, 2),
    AXES_SAMPLE(3, (2, 4, 3), -1, 1, 3, 1, 4, 3),
    AXES_SAMPLE(5, (4, 4, 4, 1, 4), -1, 1, 5, 2, 2, 2, 1, 2),
    AXES_SAMPLE(1, (0), -1, 1, 1, 3),
    AXES_SAMPLE(1, (0), -1, 1, 1, 0),
    AXES_SAMPLE(1, (5), -1, 1, 1, 1),
    AXES_SAMPLE(0, (0), -1, 1, 0, 0)};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    if (kernel_require_float(call, 0) != 0)
        return -1;
    if (call->n_attr != x->rank)
        return kernel_refuse_operands(call, "", "%d axes do not become %d", x->rank, call->n_attr);
    kernel_shape_begin(out, x->dtype, x->rank);
    for (int axis = 0; axis < x->rank; axis++) {
        const int64_t extent = call->attr[axis];
        if (extent < 0 || (extent == 0 ? x->shape[axis] != 0 : x->shape[axis] % extent != 0))
            return kernel_refuse_operands(call, "", "extent %lld is no multiple of %lld",
                                          (long long)x->shape[axis], (long long)extent);
        out->extent[axis] = extent;
    }
    return 0;
}

/* x with the repetitions as axes of their own, and beside each axis its stride in y. */
struct axes {
    int rank;
    int64_t extent[2 * KERNEL_MAX_RANK], x[2 * KERNEL_MAX_RANK], y[2 * KERNEL_MAX_RANK];
};

static void axes_add(struct axes *axes, int64_t extent, int64_t x, int64_t y)
{
    if (extent == 1)
        return;
    axes->extent[axes->rank] = extent;
    axes->x[axes->rank] = x;
    axes->y[axes->rank++] = y;
}

/* The last axes, as many as arrays have, as views of both. */
static void views_make(const struct axes *axes, int first, struct kernel_view *x,
                       struct kernel_view *y)
{
    const int rank = axes->rank - first;
    x->array.rank = y->array.rank = (uint8_t)rank;
    x->array.size = y->array.size = 1;
    x->array.contiguous = y->array.contiguous = false;
    kernel_view_bind(x);
    kernel_view_bind(y);
    for (int axis = 0; axis < rank; axis++) {
        x->shape[axis] = axes->extent[first + axis];
        x->strides[axis] = axes->x[first + axis];
        y->shape[axis] = axes->y[first + axis] == 0 ? 1 : x->shape[axis];
        y->strides[axis] = axes->y[first + axis];
        x->array.size *= x->shape[axis];
        y->array.size *= y->shape[axis];
    }
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref in = call->in[0];
    struct kernel_array *const out = call->out[0];
    const int64_t elem = (int64_t)kernel_dtype_bytes(out->dtype);
    struct axes axes = {0};
    struct kernel_view x = {.array = *in}, y = {.array = *out};
    int64_t index[2 * KERNEL_MAX_RANK] = {0};
    if (!call->accumulate)
        kernel_fill(out, 0);
    if (in->size == 0)
        return 0;
    for (int axis = 0; axis < in->rank; axis++) {
        const int64_t extent = out->shape[axis];
        axes_add(&axes, in->shape[axis] / extent, extent * in->strides[axis], 0);
        axes_add(&axes, extent, in->strides[axis], out->strides[axis]);
    }
    const int first = axes.rank > KERNEL_MAX_RANK ? axes.rank - KERNEL_MAX_RANK : 0;
    views_make(&axes, first, &x, &y);
    for (;;) {
        kernel_reduce(KERNEL_REDUCE_SUM, &y.array, &x.array);
        int axis = first - 1;
        for (; axis >= 0; axis--) {
            const int64_t back = ++index[axis] < axes.extent[axis] ? 0 : axes.extent[axis];
            x.array.data = (char *)x.array.data + (1 - back) * axes.x[axis] * elem;
            y.array.data = (char *)y.array.data + (1 - back) * axes.y[axis] * elem;
            if (back == 0)
                break;
            index[axis] = 0;
        }
        if (axis < 0)
            return 0;
    }
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0];
    int64_t times[KERNEL_MAX_RANK];
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    for (int axis = 0; axis < x->rank; axis++)
        times[axis] = rule->attr[axis] > 0 ? x->shape[axis] / rule->attr[axis] : 0;
    kernel_accumulate(rule, 0, &kernel_op_repeat, 1, &rule->adjoint[0], x->rank, times);
}

static void depends(const struct kernel_call *call, int o, int i, struct kernel_depends *d)
{
    int64_t times[KERNEL_MAX_RANK];
    const kernel_ref x = call->in[0], y = call->out[0];
    for (int axis = 0; axis < y->rank; axis++) {
        const int own = axis - (y->rank - x->rank);
        times[axis] = y->shape[axis] > 0 && own >= 0 ? x->shape[own] / y->shape[axis] : 0;
    }
    (void)o;
    kernel_depends_sums(call, i, &kernel_op_repeat, y->rank, times, d);
}

KERNEL_OP(repeat_sum) = {
    .name = "repeat_sum",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"shape", KERNEL_ATTR_SHAPE}),
    .n_out = 1,
    .hidden = true,
    .accumulates = true,
    .depends = depends,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .flops_per_element = 1,
    .sample = sample,
    .brief = "Sum over the repetitions of a smaller shape in the operand's.",
    .shapes = "x [...], each extent a multiple of the result's -> shape",
    .formula = "y[...,i,...] = sum of x[...,i + k n,...] over k",
    .derivative = "x'[...,i,...] += y'[...,i mod n,...]",
    .edges = "the sum of nothing is 0",
};
