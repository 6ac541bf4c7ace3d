/* shifted_exp.c: maxima over axes, and sums of exponentials of differences to them. */
#include "shifted_exp.h"
#include "elementwise.h"

#include <math.h>

/* A dense array of x's rank with the axes kept, in `space`. */
static void kept_view(kernel_ref x, unsigned axes, void *space, struct kernel_view *view)
{
    int64_t shape[KERNEL_MAX_RANK];
    for (int axis = 0; axis < x->rank; axis++)
        shape[axis] = axes >> axis & 1 ? 1 : x->shape[axis];
    kernel_view_dense(view, space, x->dtype, x->rank, shape);
}

void shifted_exp_most(kernel_ref x, unsigned axes, void *space, struct kernel_view *most)
{
    kept_view(x, axes, space, most);
    kernel_fill(&most->array, -INFINITY);
    kernel_reduce(KERNEL_REDUCE_MAX, &most->array, x);
}

void shifted_exp_finite(struct kernel_array *array)
{
    for (int64_t i = 0; i < array->size; i++) {
        if (array->dtype == KERNEL_F32) {
            float *x = array->data;
            x[i] = isinf(x[i]) ? 0 : x[i];
        } else {
            double *x = array->data;
            x[i] = isinf(x[i]) ? 0 : x[i];
        }
    }
}

size_t shifted_exp_workspace(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    /* Where the axis is empty its sums are more than the elements. */
    size_t sums = kernel_dtype_bytes(x->dtype);
    unsigned axes = 0;
    (void)kernel_axes(call, 0, &axes);
    for (int axis = 0; axis < x->rank; axis++)
        sums *= axes >> axis & 1 ? 1 : (size_t)x->shape[axis];
    return dense_copy_bytes(x) + dense_rounded(sums);
}

int shifted_exp_run(const struct kernel_call *call, bool exponentials, struct kernel_view *total)
{
    const kernel_ref x = call->in[0];
    struct kernel_array *y = call->out[0];
    struct kernel_view most, scratch;
    struct kernel_array *e = y;
    char *space = call->workspace;
    unsigned axes;
    if (kernel_axes(call, 0, &axes) != 0)
        return -1;
    shifted_exp_most(x, axes, space + dense_copy_bytes(x), &most);
    const kernel_ref shift[] = {x, &most.array}, shifted = y;
    kernel_elementwise(LOOP_sub, y, 2, shift, 0, false);
    if (!exponentials) {
        kernel_view_dense(&scratch, space, x->dtype, x->rank, x->shape);
        e = &scratch.array;
    }
    kernel_elementwise(LOOP_exp, e, 1, &shifted, 0, false);
    kept_view(x, axes, space + dense_copy_bytes(x), total);
    kernel_fill(&total->array, 0);
    kernel_reduce(KERNEL_REDUCE_SUM, &total->array, e);
    return 0;
}
