/* dense_copy.c: float operands as dense row-major data. */
#include "dense_copy.h"
#include "elementwise.h"
#include "op_rules.h"

size_t dense_copy_bytes(kernel_ref x)
{
    return ((size_t)x->size * kernel_dtype_bytes(x->dtype) + 63) & ~(size_t)63;
}

size_t dense_copy_space(kernel_ref x)
{
    return x->contiguous ? 0 : dense_copy_bytes(x);
}

void *dense_copy(kernel_ref x, char **space)
{
    if (x->contiguous)
        return x->data;
    struct kernel_view view;
    kernel_view_dense(&view, *space, x->dtype, x->rank, x->shape);
    kernel_elementwise(LOOP_copy, &view.array, 1, &x, NULL, false);
    *space += dense_copy_bytes(x);
    return view.array.data;
}
