/* tape_value.c: values of the tape: made by ops, borrowed from the user, read back. */
#include "tape_value.h"

#include "tape_call.h"
#include "tape_disk.h"
#include "tape_guard.h"
#include "tape_nonfinite.h"
#include "tape_observer.h"
#include "tape_part.h"

#include <math.h>
#include <string.h>

void tape_point_undo(struct tape *t, struct tape_point point)
{
    tape_guard_drop(t, point.last_guard);
    for (uint32_t i = point.n_values; i < t->n_values; i++) {
        struct tape_value *v = &t->entries[i];
        tape_disk_value_drop(t, v);
        if ((v->flags & TAPE_OWNS_DATA) && (char *)v->array.data < point.arena.buffer_top)
            tape_arena_free(&t->arena, v->array.data, tape_value_bytes(v));
        if ((v->flags & TAPE_LEAF) && (char *)v->adjoint < point.arena.buffer_top)
            tape_arena_free(&t->arena, v->adjoint, tape_value_bytes(v));
    }
    t->n_values = point.n_values;
    tape_arena_rewind(&t->arena, &point.arena);
}

static bool is_row_major(int rank, const int64_t *extent, const int64_t *stride)
{
    int64_t next = 1;
    for (int d = rank - 1; d >= 0; d--) {
        if (extent[d] != 1 && stride[d] != next)
            return false;
        next *= extent[d];
    }
    return true;
}

/* A list of n words among the records. */
static int64_t *words_make(struct tape *t, int n, const int64_t *from)
{
    int64_t *w = tape_arena_record(&t->arena, (size_t)n * sizeof *w);
    if (w)
        memcpy(w, from, (size_t)n * sizeof *w);
    return w;
}

/* kernel_strides, at once for the most frequent rank. */
static int64_t strides_of(int rank, const int64_t *extent, int dtype, int64_t *stride)
{
    const size_t bytes = kernel_dtype_bytes(dtype);
    if (rank != 1 || (uint64_t)extent[0] > UINT32_MAX)
        return kernel_strides(rank, extent, bytes, stride);
    stride[0] = 1;
    return extent[0];
}

/* Lists of v's own for what it cannot share with `like`, which may be NULL. False: no memory. */
static __attribute__((noinline)) bool value_lists(struct tape *t, struct tape_value *v,
                                                  const struct kernel_shape *shape,
                                                  const struct kernel_array *like)
{
    const int rank = v->array.rank;
    const int64_t *extent = like ? like->shape : shape->extent;
    int64_t stride[KERNEL_MAX_RANK];
    v->array.size = kernel_strides(rank, extent, kernel_dtype_bytes(shape->dtype), stride);
    if (shape->view_of >= 0) {
        memcpy(stride, shape->stride, sizeof stride);
        v->array.contiguous = v->array.size <= 1 || is_row_major(rank, extent, stride);
    }
    v->array.shape = like ? like->shape : words_make(t, rank, extent);
    v->array.strides = words_make(t, rank, stride);
    v->flags |= (like ? 0u : TAPE_OWNS_SHAPE) | TAPE_OWNS_STRIDES;
    return v->array.shape && v->array.strides;
}

/* A value with its shape, of no buffer yet. */
static struct tape_value *value_entry(struct tape *t, const struct kernel_shape *shape,
                                      const kernel_ref *in, uint32_t row)
{
    struct tape_value *v = tape_arena_entry(&t->arena, sizeof *v);
    if (!v || t->n_values == UINT32_MAX)
        return NULL;
    const struct kernel_array *like = in && shape->same_as >= 0 ? in[shape->same_as] : NULL;
    *v = (struct tape_value){.array = {.dtype = shape->dtype,
                                       .rank = like ? like->rank : shape->rank,
                                       .contiguous = true},
                             .generation = t->generation,
                             .row = row,
                             .root = t->n_values++};
    if (!like || !like->contiguous || shape->view_of >= 0)
        return value_lists(t, v, shape, like) ? v : NULL;
    v->array.shape = like->shape;
    v->array.strides = like->strides;
    v->array.size = like->size;
    return v;
}

struct tape_value *tape_value_make(struct tape *t, const struct kernel_shape *shape,
                                   const kernel_ref *in, uint32_t row)
{
    struct tape_value *v = value_entry(t, shape, in, row);
    if (!v)
        return NULL;
    if (in && shape->view_of >= 0) {
        const struct tape_value *of = (const struct tape_value *)(const void *)in[shape->view_of];
        v->array.data = kernel_behind(of->array.data,
                                      shape->offset * (int64_t)kernel_dtype_bytes(shape->dtype));
        v->root = of->root;
        return v;
    }
    v->array.data = tape_arena_buffer(&t->arena, tape_value_bytes(v));
    if (!v->array.data)
        return NULL;
    v->flags |= TAPE_OWNS_DATA;
    return v;
}

struct tape_value *tape_value_over(struct tape *t, const struct kernel_shape *shape, void *data,
                                   uint32_t row)
{
    struct tape_value *v = value_entry(t, shape, NULL, row);
    if (v)
        v->array.data = data;
    return v;
}

const char *const tape_given_name[] = {[TAPE_GIVEN_CONSTANT] = "constant",
                                       [TAPE_GIVEN_LEAF] = "leaf",
                                       [TAPE_GIVEN_COPY] = "leaf_copy",
                                       [TAPE_GIVEN_LOADED] = "load"};

enum tape_status tape_extents_check(struct tape *t, const char *what, int rank,
                                    const int64_t *shape, struct tape_site site)
{
    if (rank < 0 || rank > KERNEL_MAX_RANK)
        return tape_fail(t, TAPE_ERROR_SHAPE, site, "%s: rank %d is not in 0…%d", what, rank,
                         KERNEL_MAX_RANK);
    if (rank > 0 && !shape)
        return tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: shape is a null pointer", what);
    for (int d = 0; d < rank; d++)
        if (shape[d] < 0)
            return tape_fail(t, TAPE_ERROR_SHAPE, site, "%s: extent %d is negative: %lld", what, d,
                             (long long)shape[d]);
    return TAPE_OK;
}

enum tape_status tape_borrow(struct tape *t, int dtype, int rank, const int64_t *shape,
                             const void *data, enum tape_given given, struct tape_site site,
                             uint32_t *out)
{
    const char *what = tape_given_name[given];
    const bool copy = given == TAPE_GIVEN_COPY || given == TAPE_GIVEN_LOADED;
    const bool leaf =
        given == TAPE_GIVEN_LOADED ? dtype != KERNEL_I64 : given != TAPE_GIVEN_CONSTANT;
    tape_observed(t);
    tape_account_moment(t);
    if (dtype < 0 || dtype >= KERNEL_DTYPES)
        return tape_fail(t, TAPE_ERROR_DTYPE, site, "%s: %d is no dtype", what, dtype);
    if (leaf && dtype == KERNEL_I64)
        return tape_fail(t, TAPE_ERROR_DTYPE, site, "%s: i64 has no gradient, use ad_constant",
                         what);
    if (leaf && t->calls.innermost)
        return tape_call_refuse(t, what, site);
    if (tape_extents_check(t, what, rank, shape, site) != TAPE_OK)
        return t->error.code;
    struct tape_point point = tape_point_take(t);
    uint32_t row = t->hook && t->hook->shapes ? tape_shape_row_of(t, site, what, dtype, rank, shape)
                                              : tape_account_row(t, site, what);
    struct tape_value *v = tape_arena_entry(&t->arena, sizeof *v);
    if (!v || t->n_values == UINT32_MAX)
        goto no_memory;
    *v = (struct tape_value){.generation = t->generation, .row = row, .root = t->n_values};
    t->n_values++;
    int64_t stride[KERNEL_MAX_RANK];
    v->array =
        (struct kernel_array){.rank = (uint8_t)rank, .dtype = (uint8_t)dtype, .contiguous = true};
    v->array.size = strides_of(rank, shape, dtype, stride);
    if (v->array.size < 0) {
        tape_point_undo(t, point);
        return tape_fail(t, TAPE_ERROR_SHAPE, site, "%s: the size of the shape overflows", what);
    }
    if (!data && v->array.size > 0) {
        tape_point_undo(t, point);
        return tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: data is a null pointer", what);
    }
    v->array.data = (void *)(uintptr_t)data;
    v->flags = TAPE_OWNS_SHAPE | TAPE_OWNS_STRIDES;
    if (copy) {
        v->array.data = tape_arena_buffer(&t->arena, tape_value_bytes(v));
        if (!v->array.data)
            goto no_memory;
        v->flags |= TAPE_OWNS_DATA;
        if (v->array.size > 0)
            memcpy(v->array.data, data, tape_value_bytes(v));
    }
    v->retained = TAPE_NO_GUARD;
    int64_t *const lists = tape_arena_record(&t->arena, (size_t)rank * 2 * sizeof *lists);
    if (!lists)
        goto no_memory;
    for (int d = 0; d < rank; d++) {
        lists[d] = shape[d];
        lists[rank + d] = stride[d];
    }
    v->array.shape = lists;
    v->array.strides = lists + rank;
    if (leaf) {
        enum tape_status status = TAPE_OK;
        TAPE_PARTS_STATUS(status, leaf, t, v, site);
        if (status != TAPE_OK) {
            tape_point_undo(t, point);
            return status;
        }
        v->adjoint = tape_arena_buffer(&t->arena, tape_value_bytes(v));
        if (!v->adjoint)
            goto no_memory;
        v->gradient_epoch = t->gradient_epoch - 1;
        v->flags |= TAPE_LEAF | TAPE_NEEDS_GRADIENT;
    }
    tape_account_value(t, v);
    tape_account_called(t, row);
    tape_call_constant(t, v);
    *out = tape_value_index(t, v);
    return TAPE_OK;
no_memory:
    tape_point_undo(t, point);
    return tape_fail_memory(t, site, what);
}

static enum tape_status value_filled(struct tape *t, const struct kernel_shape *shape,
                                     const kernel_ref *in, struct tape_site site, const char *what,
                                     uint32_t *out)
{
    tape_observed(t);
    tape_account_moment(t);
    struct tape_point point = tape_point_take(t);
    const uint32_t row = t->hook && t->hook->shapes
                             ? tape_shape_row(t, site, what, shape, in ? 1 : 0, in)
                             : tape_account_row(t, site, what);
    struct tape_value *v = tape_value_make(t, shape, in, row);
    if (!v) {
        tape_point_undo(t, point);
        return tape_fail_memory(t, site, what);
    }
    if (shape->view_of < 0) {
        memset(v->array.data, 0, tape_value_bytes(v));
        v->flags |= TAPE_GIVEN;
    }
    tape_account_value(t, v);
    tape_account_called(t, v->row);
    *out = tape_value_index(t, v);
    return TAPE_OK;
}

enum tape_status tape_scalar(struct tape *t, int dtype, const void *number, struct tape_site site,
                             uint32_t *out)
{
    struct kernel_shape shape = {.dtype = (uint8_t)dtype, .same_as = -1, .view_of = -1};
    const double value = dtype == KERNEL_F32   ? (double)*(const float *)number
                         : dtype == KERNEL_F64 ? *(const double *)number
                                               : 0;
    if (t->nonfinite && tape_nonfinite_numbers(t, "scalar", NULL, 1, &value, site) != TAPE_OK)
        return t->error.code;
    enum tape_status status = value_filled(t, &shape, NULL, site, "scalar", out);
    if (status != TAPE_OK)
        return status;
    memcpy(t->entries[*out].array.data, number, kernel_dtype_bytes(dtype));
    tape_call_constant(t, &t->entries[*out]);
    return TAPE_OK;
}

enum tape_status tape_zeros(struct tape *t, uint32_t like, struct tape_site site, uint32_t *out)
{
    kernel_ref in[1] = {&t->entries[like].array};
    struct kernel_shape shape = {.dtype = in[0]->dtype, .same_as = 0, .view_of = -1};
    return value_filled(t, &shape, in, site, "zeros", out);
}

enum tape_status tape_ones(struct tape *t, uint32_t like, struct tape_site site, uint32_t *out)
{
    enum tape_status status = tape_zeros(t, like, site, out);
    if (status == TAPE_OK)
        tape_fill_ones(&t->entries[*out].array);
    return status;
}

void tape_add_into(const struct tape_value *v, void *buffer, const void *from, bool fresh)
{
    if (fresh) {
        memcpy(buffer, from, tape_value_bytes(v));
        return;
    }
    for (int64_t i = 0; i < v->array.size; i++) {
        if (v->array.dtype == KERNEL_F32)
            ((float *)buffer)[i] += ((const float *)from)[i];
        else
            ((double *)buffer)[i] += ((const double *)from)[i];
    }
}

void tape_fill_ones(const struct kernel_array *a)
{
    for (int64_t i = 0; i < a->size; i++) {
        if (a->dtype == KERNEL_F32)
            ((float *)a->data)[i] = 1;
        else
            ((double *)a->data)[i] = 1;
    }
}

enum tape_status tape_detach(struct tape *t, uint32_t x, struct tape_site site, uint32_t *out)
{
    kernel_ref in[1] = {&t->entries[x].array};
    struct kernel_shape shape = {.dtype = in[0]->dtype, .same_as = 0, .view_of = 0};
    memcpy(shape.stride, in[0]->strides, in[0]->rank * sizeof(int64_t));
    if (!tape_call_reads(t, x))
        return tape_fail_memory(t, site, "detach");
    return value_filled(t, &shape, in, site, "detach", out);
}

void tape_read(const struct tape *t, uint32_t x, void *buffer)
{
    const struct kernel_array *a = &t->entries[x].array;
    size_t bytes = kernel_dtype_bytes(a->dtype);
    if (a->contiguous) {
        if (a->size)
            memcpy(buffer, a->data, (size_t)a->size * bytes);
        return;
    }
    char *to = buffer;
    int64_t index[KERNEL_MAX_RANK] = {0};
    for (int64_t i = 0; i < a->size; i++, to += bytes) {
        int64_t at = 0;
        for (int d = 0; d < a->rank; d++)
            at += index[d] * a->strides[d];
        memcpy(to, (const char *)a->data + (size_t)at * bytes, bytes);
        for (int d = a->rank - 1; d >= 0 && ++index[d] == a->shape[d]; d--)
            index[d] = 0;
    }
}
