/* dense.c: operands as row-major data. */
#include "dense.h"
#include "part.h"

size_t dense_copy_bytes(kernel_ref array)
{
    return dense_rounded((size_t)array->size * kernel_dtype_bytes(array->dtype));
}

size_t dense_bytes(kernel_ref operand)
{
    return operand->contiguous ? 0 : dense_copy_bytes(operand);
}

const void *dense_data(kernel_ref operand, char **space)
{
    struct kernel_view copy;
    if (operand->contiguous)
        return operand->data;
    kernel_view_dense(&copy, *space, operand->dtype, operand->rank, operand->shape);
    *space += dense_bytes(operand);
    kernel_part_copy(&copy.array, operand, false);
    return copy.array.data;
}

size_t dense_workspace(const struct kernel_call *call)
{
    size_t bytes = 0;
    for (int i = 0; i < call->n_in; i++)
        bytes += dense_bytes(call->in[i]);
    return bytes;
}
