/* ad_value.c: leaves, constants, and reading values and their shapes. */
#include "ad_internal.h"

#include "tape_call.h"
#include "tape_disk.h"
#include "tape_replay.h"

#include <math.h>
#include <string.h>

static ad_tensor borrow(ad_tape tape, ad_dtype dtype, int rank, const int64_t *shape,
                        const void *data, enum tape_given given, struct tape_site site)
{
    struct tape *t = ad_tape_find(tape.slot, tape.generation, tape_given_name[given], site);
    uint32_t value = 0;
    if (!t)
        return (ad_tensor){0, 0, 0, 0};
    if (t->error.code == TAPE_OK)
        tape_borrow(t, (int)dtype, rank, shape, data, given, site, &value);
    return ad_handle_of(t, tape.slot, tape.generation, value);
}

ad_tensor ad_leaf_site(ad_tape tape, ad_dtype dtype, int rank, const int64_t *shape,
                       const void *data, unsigned ad_line_)
{
    return borrow(tape, dtype, rank, shape, data, TAPE_GIVEN_LEAF, AD_HERE);
}

ad_tensor ad_leaf_copy_site(ad_tape tape, ad_dtype dtype, int rank, const int64_t *shape,
                            const void *data, unsigned ad_line_)
{
    return borrow(tape, dtype, rank, shape, data, TAPE_GIVEN_COPY, AD_HERE);
}

ad_tensor ad_constant_site(ad_tape tape, ad_dtype dtype, int rank, const int64_t *shape,
                           const void *data, unsigned ad_line_)
{
    return borrow(tape, dtype, rank, shape, data, TAPE_GIVEN_CONSTANT, AD_HERE);
}

ad_tensor ad_elements_mismatch_site(ad_tape tape, ad_dtype said, ad_dtype is, unsigned ad_line_)
{
    static const char *const names[] = {[AD_F32] = "float", [AD_F64] = "double", [AD_I64] = "i64"};
    const struct tape_site site = AD_HERE;
    struct tape *t = ad_tape_find(tape.slot, tape.generation, "leaf", site);
    if (!t)
        return (ad_tensor){0, 0, 0, 0};
    const size_t n = sizeof names / sizeof *names;
    tape_fail(t, TAPE_ERROR_DTYPE, site, "leaf: the array's elements are %s, its ad_dtype says %s",
              (size_t)is < n ? names[is] : "?", (size_t)said < n ? names[said] : "?");
    return ad_handle_of(t, tape.slot, tape.generation, 0);
}

/* Types of elements by their numbers; dtype: -1 where no tensor has them. */
static const struct {
    const char *name;
    int dtype;
} element_types[] = {{"void", -1},
#define X(type, number)                                                                            \
    [number] = {#type, _Generic((type)0, float                                                     \
                                : AD_F32, double                                                   \
                                : AD_F64, long                                                     \
                                : AD_I64, unsigned long                                            \
                                : AD_I64, long long                                                \
                                : AD_I64, unsigned long long                                       \
                                : AD_I64, default                                                  \
                                : -1)},
                     AD_BUFFER_TYPES_(X)
#undef X
};

ad_status ad_elements_fail(ad_tensor x, const char *call, const char *name, const char *whose,
                           int elements, struct tape_site site)
{
    static const char *const wanted[] = {"float", "double", "int64_t"};
    struct tape *t = ad_tape_behind(x);
    const uint32_t v = ad_value_live(t, x);
    char text[96];
    if (!v || t->entries[v].array.dtype == element_types[elements].dtype)
        return AD_OK;
    const struct kernel_array *a = &t->entries[v].array;
    if (t->error.code == TAPE_OK)
        tape_fail(t, TAPE_ERROR_DTYPE, site,
                  "%s: %s is %s: the elements of the %s must be %s, not %s", call, name,
                  kernel_describe(a, text, sizeof text), whose, wanted[a->dtype],
                  element_types[elements].name);
    return (ad_status)t->error.code;
}

ad_status ad_elements_check_site(ad_tensor x, const char *call, int elements, void *buffer,
                                 int64_t count, unsigned ad_line_)
{
    const ad_status status = ad_elements_fail(x, call, "x", "buffer", elements, AD_HERE);
    if (status != AD_OK) {
        const int64_t size = ad_tape_behind(x)->entries[x.value].array.size;
        ad_spoil(element_types[elements].dtype, buffer, count < size ? count : size);
    }
    return status;
}

static ad_tensor scalar(ad_tape tape, int dtype, const void *number, struct tape_site site)
{
    struct tape *t = ad_tape_find(tape.slot, tape.generation, "scalar", site);
    uint32_t index = 0;
    if (!t)
        return (ad_tensor){0, 0, 0, 0};
    if (t->error.code == TAPE_OK)
        tape_scalar(t, dtype, number, site, &index);
    return ad_handle_of(t, tape.slot, tape.generation, index);
}

ad_tensor ad_scalar_f64_site(ad_tape tape, double number, unsigned ad_line_)
{
    return scalar(tape, AD_F64, &number, AD_HERE);
}

ad_tensor ad_scalar_f32_site(ad_tape tape, float number, unsigned ad_line_)
{
    return scalar(tape, AD_F32, &number, AD_HERE);
}

ad_tensor ad_scalar_i64_site(ad_tape tape, int64_t number, unsigned ad_line_)
{
    return scalar(tape, AD_I64, &number, AD_HERE);
}

ad_tensor ad_detach_site(ad_tensor x, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct tape *t;
    ad_status status;
    uint32_t value = ad_value_find(x, "detach", 0, site, &t, &status), out = 0;
    if (!t)
        return (ad_tensor){0, 0, 0, 0};
    if (value && t->error.code == TAPE_OK)
        tape_detach(t, value, site, &out);
    return ad_handle_of(t, x.tape, x.tape_generation, out);
}

ad_tape ad_tape_of_site(ad_tensor x, unsigned ad_line_)
{
    struct tape *t;
    ad_status status;
    ad_value_find(x, "tape_of", 0, AD_HERE, &t, &status);
    return t ? (ad_tape){x.tape, x.tape_generation} : (ad_tape){0, 0};
}

int ad_rank_site(ad_tensor x, unsigned ad_line_)
{
    struct tape *t;
    ad_status status;
    uint32_t v = ad_value_find(x, "rank", 0, AD_HERE, &t, &status);
    return v ? t->entries[v].array.rank : -1;
}

int64_t ad_size_site(ad_tensor x, unsigned ad_line_)
{
    struct tape *t;
    ad_status status;
    uint32_t v = ad_value_find(x, "size", 0, AD_HERE, &t, &status);
    return v ? t->entries[v].array.size : -1;
}

int ad_dtype_of_site(ad_tensor x, unsigned ad_line_)
{
    struct tape *t;
    ad_status status;
    uint32_t v = ad_value_find(x, "dtype_of", 0, AD_HERE, &t, &status);
    return v ? t->entries[v].array.dtype : -1;
}

ad_status ad_shape_site(ad_tensor x, int64_t *shape, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct tape *t;
    ad_status status;
    uint32_t v = ad_value_find(x, "shape", 0, site, &t, &status);
    if (!v)
        return status;
    const struct kernel_array *a = &t->entries[v].array;
    if (!shape && a->rank)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "shape: shape is a null pointer");
    if (a->rank)
        memcpy(shape, a->shape, a->rank * sizeof *shape);
    return AD_OK;
}

ad_status ad_buffer_check(struct tape *t, uint32_t x, const char *what, const void *buffer,
                          int64_t count, struct tape_site site)
{
    int64_t size = t->entries[x].array.size;
    char text[96];
    if (count != size)
        return (ad_status)tape_fail(
            t, TAPE_ERROR_ARGUMENT, site, "%s: the buffer has %lld elements, %s has %lld", what,
            (long long)count, kernel_describe(&t->entries[x].array, text, sizeof text),
            (long long)size);
    if (!buffer && size)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: buffer is a null pointer",
                                    what);
    return AD_OK;
}

void ad_spoil(int dtype, void *buffer, int64_t n)
{
    for (int64_t i = 0; i < n && buffer; i++)
        if (dtype == KERNEL_F32)
            ((float *)buffer)[i] = NAN;
        else if (dtype == KERNEL_F64)
            ((double *)buffer)[i] = (double)NAN;
        else if (dtype == KERNEL_I64)
            ((int64_t *)buffer)[i] = INT64_MIN;
}

void ad_buffer_spoil(const struct tape *t, uint32_t x, void *buffer, int64_t count)
{
    if (!x || !buffer)
        return;
    const struct kernel_array *a = &t->entries[x].array;
    ad_spoil(a->dtype, buffer, count < a->size ? count : a->size);
}

ad_status ad_value_site(ad_tensor x, void *buffer, int64_t count, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct tape *t;
    ad_status status;
    uint32_t v = ad_value_find(x, "value", 0, site, &t, &status);
    if (!v)
        return status;
    status = ad_buffer_check(t, v, "value", buffer, count, site);
    if (status == AD_OK && !tape_call_reads(t, v))
        status = (ad_status)tape_fail_memory(t, site, "value");
    tape_replay_reads(t, v, "value", site);
    if (status == AD_OK && !tape_disk_need_values(t, "value", 1, &v, site))
        status = (ad_status)t->error.code;
    if (status == AD_OK)
        tape_read(t, v, buffer);
    else
        ad_buffer_spoil(t, v, buffer, count);
    return status;
}

double ad_item_site(ad_tensor x, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct tape *t;
    ad_status status;
    uint32_t v = ad_value_find(x, "item", 0, site, &t, &status);
    if (!v)
        return NAN;
    const struct kernel_array *a = &t->entries[v].array;
    char text[96];
    if (a->size != 1 || a->dtype == KERNEL_I64) {
        tape_fail(t, a->size != 1 ? TAPE_ERROR_SHAPE : TAPE_ERROR_DTYPE, site,
                  "item: takes a float tensor of size 1, not %s",
                  kernel_describe(a, text, sizeof text));
        return NAN;
    }
    if (!tape_call_reads(t, v)) {
        tape_fail_memory(t, site, "item");
        return NAN;
    }
    tape_replay_reads(t, v, "item", site);
    return a->dtype == KERNEL_F32 ? (double)*(const float *)a->data : *(const double *)a->data;
}
