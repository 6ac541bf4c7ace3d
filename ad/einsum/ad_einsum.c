/* ad_einsum.c: ad_einsum: sums of products by an equation, on handles.
 *
 * All or nothing: what was recorded before a failure is dropped before anyone has a handle to it.
 */
#include "ad_einsum.h"
#include "ad_internal.h"

/* The operands' values and their tape. On a failure NULL, the error is kept, and *home is the
 * handle that the result gets. */
static struct tape *find_operands(const ad_tensor *tensors, int n, struct tape_site site,
                                  uint32_t *in, ad_tensor *home)
{
    struct tape *t = NULL;
    ad_status status;
    for (int i = 0; i < n && t == NULL; i++) {
        t = ad_tape_behind(tensors[i]);
        if (t != NULL)
            *home = (ad_tensor){tensors[i].tape, tensors[i].tape_generation, 0, 0};
    }
    if (t == NULL)
        ad_value_find(tensors[0], "einsum", 1, site, &t, &status);
    for (int i = 0; i < n && t != NULL; i++) {
        in[i] = ad_value_on(t, tensors[i], site, "einsum: operand %d", i + 1);
        if (in[i] == 0)
            return NULL;
    }
    return t != NULL && t->error.code == TAPE_OK ? t : NULL;
}

static enum tape_status check_dtypes(struct tape *t, int n, const kernel_ref *in,
                                     const char *equation, struct tape_site site)
{
    char shown[EINSUM_SHOWN_BYTES];
    for (int i = 0; i < n; i++)
        if (in[i]->dtype == KERNEL_I64 || in[i]->dtype != in[0]->dtype)
            return tape_fail(t, TAPE_ERROR_DTYPE, site,
                             "einsum: \"%s\": operand %d is %s: all are f32 or all f64",
                             einsum_shown(equation, shown), i + 1, kernel_dtype_name(in[i]->dtype));
    return TAPE_OK;
}

/* The failure of an equation with the operands' shapes, as many as there is room for. */
static void fail(struct tape *t, enum tape_status status, const struct einsum *e,
                 const kernel_ref *in, struct tape_site site)
{
    char shapes[160] = "", one[96], shown[EINSUM_SHOWN_BYTES];
    size_t used = 0;
    for (int i = 0; i < e->n && used < sizeof shapes; i++) {
        const int wrote = snprintf(shapes + used, sizeof shapes - used, i > 0 ? ", %s" : "%s",
                                   kernel_describe(in[i], one, sizeof one));
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    tape_fail(t, status, site, "einsum: \"%s\" of %s: %s", einsum_shown(e->text, shown), shapes,
              e->error);
}

/* Where there is a first operand, its tape keeps the error. */
static ad_tensor refuse_arguments(const char *equation, const ad_tensor *tensors, int n,
                                  struct tape_site site)
{
    char error[80];
    struct tape *t = NULL;
    ad_status status;
    if (equation == NULL || tensors == NULL)
        (void)snprintf(error, sizeof error, "einsum: %s is a null pointer",
                       tensors == NULL ? "tensors" : "equation");
    else
        (void)snprintf(error, sizeof error, "einsum: %d operands, from 1 to %d are possible", n,
                       (int)TAPE_MAX_IN);
    if (tensors == NULL || n < 1) {
        ad_fail(AD_ERROR_ARGUMENT, site, "%s", error);
        return (ad_tensor){0, 0, 0, 0};
    }
    if (ad_value_find(tensors[0], "einsum", 1, site, &t, &status) != 0)
        tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s", error);
    return (ad_tensor){tensors[0].tape, tensors[0].tape_generation, 0, 0};
}

ad_tensor ad_einsum_site(const char *equation, const ad_tensor *tensors, int n, unsigned ad_line_)
{
    const struct tape_site site = AD_HERE;
    ad_tensor home = {0, 0, 0, 0};
    uint32_t operand[TAPE_MAX_IN], out;
    kernel_ref in[TAPE_MAX_IN];
    if (equation == NULL || tensors == NULL || n < 1 || n > TAPE_MAX_IN)
        return refuse_arguments(equation, tensors, n, site);
    struct tape *t = find_operands(tensors, n, site, operand, &home);
    if (t == NULL)
        return home;
    struct einsum e = {.text = equation, .n = n};
    for (int i = 0; i < n; i++)
        in[i] = &t->entries[operand[i]].array;
    enum tape_status status = check_dtypes(t, n, in, equation, site);
    if (status != TAPE_OK)
        return home;
    status = einsum_read(&e, in);
    if (status != TAPE_OK) {
        fail(t, status, &e, in, site);
        return home;
    }
    const struct tape_mark before = tape_mark_here(t);
    if (einsum_lower(t, &e, operand, site, &out) != TAPE_OK) {
        tape_drop_behind(t, &before);
        return home;
    }
    return ad_handle_of(t, home.tape, home.tape_generation, out);
}
