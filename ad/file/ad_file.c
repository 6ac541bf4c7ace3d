/* ad_file.c: tensors of a tape to and from files. Those of a struct are in ad_visit.c. */
#include "ad_npz.h"

#include <tapescope/ad_file.h>

#include "tape_call.h"

#include <string.h>

/* The lists are there. */
static ad_status check_lists(struct ad_npz *f, int n, const void *names, const void *x)
{
    if (n < 0)
        return (ad_status)tape_fail(f->t, TAPE_ERROR_ARGUMENT, f->site, "%s: n is negative: %d",
                                    f->what, n);
    if (n > 0 && (!names || !x))
        return (ad_status)tape_fail(f->t, TAPE_ERROR_ARGUMENT, f->site, "%s: %s is a null pointer",
                                    f->what, names ? "x" : "names");
    return AD_OK;
}

/* An array of each name. NULL: the tape's error. */
static struct ad_npz_array *arrays_of(struct ad_npz *f, int n, const char *const *names)
{
    struct ad_npz_array *a = ad_scratch_get(&f->scratch, n, sizeof *a);
    if (!a)
        tape_fail(f->t, TAPE_ERROR_MEMORY, f->site, "%s: out of memory", f->what);
    for (int i = 0; a && i < n; i++)
        a[i].name = names[i];
    return a;
}

/* The value v as an array; one with gaps is copied. */
static ad_status array_of(struct ad_npz *f, uint32_t v, struct ad_npy_array *a)
{
    const struct kernel_array *from = &f->t->entries[v].array;
    a->dtype = from->dtype;
    a->rank = from->rank;
    a->size = from->size;
    memcpy(a->shape, from->shape, from->rank * sizeof *a->shape);
    a->data = from->data;
    if (!tape_call_reads(f->t, v))
        return (ad_status)tape_fail_memory(f->t, f->site, f->what);
    if (from->contiguous)
        return AD_OK;
    void *copy = ad_scratch_get(&f->scratch, a->size, kernel_dtype_bytes(from->dtype));
    if (!copy)
        return (ad_status)tape_fail(f->t, TAPE_ERROR_MEMORY, f->site, "%s: out of memory", f->what);
    tape_read(f->t, v, copy);
    a->data = copy;
    return AD_OK;
}

static ad_status save(struct ad_npz *f, int n, const char *const *names, const ad_tensor *x)
{
    ad_status status = check_lists(f, n, names, x);
    if (status != AD_OK)
        return status;
    struct ad_npz_array *a = arrays_of(f, n, names);
    if (!a)
        return (ad_status)f->t->error.code;
    for (int i = 0; i < n && status == AD_OK; i++) {
        const uint32_t v = ad_value_on(f->t, x[i], f->site, "%s: x[%d]", f->what, i);
        status = v ? array_of(f, v, &a[i].array) : (ad_status)f->t->error.code;
    }
    return status == AD_OK ? ad_npz_write(f, n, a) : status;
}

ad_status ad_save_site(ad_tape tape, const char *path, int n, const char *const *names,
                       const ad_tensor *x, unsigned ad_line_)
{
    struct ad_npz f = {.what = "save", .path = path, .site = AD_HERE};
    ad_status status;
    if (!ad_npz_begin(&f, tape, &status))
        return status;
    status = save(&f, n, names, x);
    ad_scratch_free(&f.scratch);
    return status;
}

static ad_status load(struct ad_npz *f, ad_tape tape, int n, const char *const *names, ad_tensor *x)
{
    struct tape *t = f->t;
    ad_status status = check_lists(f, n, names, x);
    if (status != AD_OK)
        return status;
    struct ad_npz_array *a = arrays_of(f, n, names);
    if (!a)
        return (ad_status)t->error.code;
    status = ad_npz_read(f, n, a);
    if (status != AD_OK)
        return status;
    const struct tape_mark before = tape_mark_here(t);
    for (int i = 0; i < n && status == AD_OK; i++) {
        const struct ad_npy_array *from = &a[i].array;
        uint32_t value;
        status = (ad_status)tape_borrow(t, from->dtype, from->rank, from->shape, from->data,
                                        TAPE_GIVEN_LOADED, f->site, &value);
        if (status == AD_OK)
            x[i] = ad_handle_of(t, tape.slot, tape.generation, value);
    }
    if (status != AD_OK)
        tape_drop_behind(t, &before);
    return status;
}

ad_status ad_load_site(ad_tape tape, const char *path, int n, const char *const *names,
                       ad_tensor *x, unsigned ad_line_)
{
    struct ad_npz f = {.what = "load", .path = path, .site = AD_HERE};
    ad_status status;
    if (ad_npz_begin(&f, tape, &status)) {
        status = load(&f, tape, n, names, x);
        ad_scratch_free(&f.scratch);
    }
    for (int i = 0; i < n && x && status != AD_OK; i++)
        x[i] = f.t ? ad_handle_of(f.t, tape.slot, tape.generation, 0) : (ad_tensor){0, 0, 0, 0};
    return status;
}
