/* ad_real_tensor.c: the bridges between tensors and real numbers: handles checked, errors named. */
#include <tapescope/ad_real_tensor.h>

#include "ad_internal.h"

#include "tape_bridge.h"

#include <math.h>

#define SAME(field)                                                                                \
    _Static_assert(offsetof(ad_real, field) == offsetof(struct tape_real, field), "one layout")
SAME(value);
SAME(index);
SAME(tag);
_Static_assert(sizeof(ad_real) == sizeof(struct tape_real), "one layout");

static void poison(int64_t n, ad_real *y, uint32_t tag)
{
    for (int64_t i = 0; i < n && y; i++)
        y[i] = (ad_real){(double)NAN, 0, tag};
}

/* The value whose elements are wanted, or 0 and *status. */
static uint32_t find(ad_tensor x, int64_t n, const ad_real *y, struct tape_site site,
                     struct tape **tape, ad_status *status)
{
    static const char what[] = "reals_of_tensor";
    const uint32_t v = ad_value_find(x, what, 0, site, tape, status);
    struct tape *t = *tape;
    if (!v || t->error.code != TAPE_OK) {
        *status = t && t->error.code ? (ad_status)t->error.code : *status;
        return 0;
    }
    const struct kernel_array *a = &t->entries[v].array;
    char text[96];
    if (n != a->size)
        *status = (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site,
                                       "%s: n is %lld, %s has %lld elements", what, (long long)n,
                                       kernel_describe(a, text, sizeof text), (long long)a->size);
    else if (!y && n > 0)
        *status =
            (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: y is a null pointer", what);
    return *status == AD_OK ? v : 0;
}

ad_status ad_reals_of_tensor_site(ad_tensor x, int64_t n, ad_real *y, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct tape *t;
    ad_status status;
    struct tape_real *to = (struct tape_real *)(void *)y;
    const uint32_t v = find(x, n, y, site, &t, &status);
    if (!v) {
        /* n may be anything. */
        if (n <= UINT32_MAX)
            poison(n, y, ad_poison(t));
        return status;
    }
    if ((t->entries[v].flags & TAPE_NEEDS_GRADIENT) && !t->no_grad)
        status = ad_real_record(t, (ad_tape){x.tape, x.tape_generation}, tape_elements_kind.op.name,
                                site);
    if (status == AD_OK)
        status = (ad_status)tape_bridge_reals(t, v, to, site);
    if (status != AD_OK)
        poison(n, y, ad_poison(t));
    return status;
}

ad_tensor ad_tensor_of_reals_site(ad_tape tape, int rank, const int64_t *shape, const ad_real *x,
                                  unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct tape *t = ad_tape_find(tape.slot, tape.generation, tape_gather_kind.op.name, site);
    uint32_t value = 0;
    if (!t)
        return (ad_tensor){0, 0, 0, 0};
    if (t->error.code == TAPE_OK)
        tape_bridge_tensor(t, rank, shape, (const struct tape_real *)(const void *)x, site, &value);
    return ad_handle_of(t, tape.slot, tape.generation, value);
}
