/* kernel_wide.c: see kernel_wide.h. */
#include "kernel_wide.h"

#include <string.h>

/* Array k of the call: its seeds in front, then axes of extent 1, so that each seed has `rank`
 * axes. What is the same for all seeds stays as it is: it is broadcast. */
static struct kernel_array *wide_array(struct kernel_wide *w, int k, kernel_ref from, int rank,
                                       uint32_t n)
{
    struct kernel_array *a = &w->array[k];
    int64_t *shape = w->shape[k], *strides = w->strides[k];
    const int before = rank - from->rank;
    *a = *from;
    if (from->seed_stride == 0)
        return a;
    shape[0] = n;
    strides[0] = from->seed_stride;
    for (int d = 1; d <= before; d++) {
        shape[d] = 1;
        strides[d] = from->size;
    }
    if (from->rank > 0) {
        memcpy(shape + 1 + before, from->shape, from->rank * sizeof *shape);
        memcpy(strides + 1 + before, from->strides, from->rank * sizeof *strides);
    }
    a->shape = shape;
    a->strides = strides;
    a->rank = (uint8_t)(1 + rank);
    a->size = n * from->size;
    a->contiguous = from->contiguous && from->seed_stride == from->size;
    a->seed_stride = 0;
    return a;
}

bool kernel_wide_make(struct kernel_wide *wide, const struct kernel_call *call, uint32_t n)
{
    const struct kernel_op *op = call->op;
    int rank = call->out[0]->rank, least = KERNEL_MAX_RANK;
    if (!(op->elementwise || op->batches) || call->n_in > KERNEL_MAX_IN || call->n_out != 1)
        return false;
    for (int i = 0; i < call->n_in; i++) {
        rank = call->in[i]->rank > rank ? call->in[i]->rank : rank;
        least = call->in[i]->rank < least ? call->in[i]->rank : least;
    }
    if (rank >= KERNEL_MAX_RANK || (op->batches && least < op->batches))
        return false;
    for (int i = 0; i < call->n_in; i++)
        wide->in[i] = wide_array(wide, i, call->in[i], rank, n);
    wide->out[0] = wide_array(wide, call->n_in, call->out[0], rank, n);
    wide->call = *call;
    wide->call.in = wide->in;
    wide->call.out = wide->out;
    return true;
}
