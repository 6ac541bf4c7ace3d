/* kernel_box.c: arrays of any layout for the tests of the kernels. */
#include "kernel_box.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_state = 1;

double uniform(double low, double high)
{
    random_state = random_state * 6364136223846793005U + 1442695040888963407U;
    return low + (high - low) * (double)(random_state >> 11) / 9007199254740992.0;
}

void box_make(struct box *box, int dtype, int rank, const int64_t *shape, enum layout layout)
{
    *box = (struct box){.array = {.dtype = (uint8_t)dtype, .rank = (uint8_t)rank}};
    for (int axis = 0; axis < rank; axis++)
        box->shape[axis] = shape[axis];
    box->array.shape = box->shape;
    box->array.strides = box->strides;
    box->array.size = kernel_strides(rank, shape, 8, box->strides);
    int64_t stride = layout == GAPPED ? 2 : 1;
    for (int axis = 0; layout == REVERSED && axis < rank; axis++) {
        box->strides[axis] = stride;
        stride *= shape[axis];
    }
    for (int axis = rank - 1; layout == GAPPED && axis >= 0; axis--) {
        box->strides[axis] = stride;
        stride *= shape[axis] + 1;
    }
    int64_t dense[KERNEL_MAX_RANK], reach = 1;
    (void)kernel_strides(rank, shape, 8, dense);
    box->array.contiguous = memcmp(dense, box->strides, sizeof *dense * (size_t)rank) == 0;
    for (int axis = 0; axis < rank; axis++)
        reach += box->strides[axis] * shape[axis];
    box->array.data = calloc((size_t)reach, 8);
}

void box_free(struct box *box)
{
    free(box->array.data);
}

double get_at(kernel_ref a, int64_t offset)
{
    if (a->dtype == KERNEL_F32)
        return (double)((const float *)a->data)[offset];
    if (a->dtype == KERNEL_F64)
        return ((const double *)a->data)[offset];
    return (double)((const int64_t *)a->data)[offset];
}

void set_at(kernel_ref a, int64_t offset, double x)
{
    if (a->dtype == KERNEL_F32)
        ((float *)a->data)[offset] = (float)x;
    else if (a->dtype == KERNEL_F64)
        ((double *)a->data)[offset] = x;
    else
        ((int64_t *)a->data)[offset] = (int64_t)floor(x);
}

int64_t offset_of(kernel_ref a, int rank, const int64_t *index)
{
    int64_t offset = 0;
    for (int axis = 0; axis < a->rank; axis++)
        if (a->shape[axis] != 1)
            offset += index[axis + rank - a->rank] * a->strides[axis];
    return offset;
}

bool index_next(int rank, const int64_t *shape, int64_t *index)
{
    for (int axis = rank - 1; axis >= 0; axis--) {
        if (++index[axis] < shape[axis])
            return true;
        index[axis] = 0;
    }
    return false;
}

void box_random(struct box *box, double low, double high)
{
    int64_t index[KERNEL_MAX_RANK] = {0};
    if (box->array.size > 0)
        do
            set_at(&box->array, offset_of(&box->array, box->array.rank, index), uniform(low, high));
        while (index_next(box->array.rank, box->shape, index));
}

int box_run(const struct kernel_op *op, const kernel_ref *in, struct kernel_array *out0,
            struct kernel_array *out1, int n_attr, const int64_t *attr, bool accumulate,
            char *error)
{
    struct kernel_array *out[] = {out0, out1};
    struct kernel_call call = {.op = op,
                               .in = in,
                               .out = out,
                               .n_in = op->n_in,
                               .n_out = op->n_out,
                               .attr = attr,
                               .n_attr = n_attr,
                               .accumulate = accumulate,
                               .error = error};
    call.workspace = aligned_alloc(64, (kernel_workspace(&call) + 127) & ~(size_t)63);
    const int status = kernel_run(&call);
    free(call.workspace);
    return status;
}

double element(kernel_ref a, const int64_t *index)
{
    return get_at(a, offset_of(a, a->rank, index));
}
