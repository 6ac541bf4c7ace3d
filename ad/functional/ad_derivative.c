/* ad_derivative.c: see ad_derivative.h. */
#include "ad_derivative.h"

#include "tape_no_grad.h"

#include <math.h>
#include <string.h>

ad_status ad_outputs_check(const struct ad_isolation *s, const struct ad_outputs *o, int64_t rows)
{
    struct tape *t = s->t;
    if (!o->buffer || !o->count)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, s->site, "%s: %s is a null pointer",
                                    s->what, o->buffer ? "counts" : o->name);
    for (int i = 0; i < s->n; i++) {
        const struct kernel_array *x = &t->entries[s->leaf[i].value].array;
        char text[96];
        int64_t size;
        if (__builtin_mul_overflow(x->size, rows, &size) || o->count[i] != size)
            return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, s->site,
                                        "%s: %s[%d] has %lld elements, not %lld rows of x[%d], %s",
                                        s->what, o->name, i, (long long)o->count[i],
                                        (long long)rows, i, kernel_describe(x, text, sizeof text));
        if (!o->buffer[i] && size > 0)
            return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, s->site,
                                        "%s: %s[%d] is a null pointer", s->what, o->name, i);
    }
    return AD_OK;
}

void ad_outputs_take(const struct ad_isolation *s, const struct ad_outputs *o, int64_t row)
{
    for (int i = 0; i < s->n; i++) {
        const uint64_t bytes = tape_value_bytes(&s->t->entries[s->leaf[i].value]);
        const void *gradient = ad_isolation_gradient(s, i);
        if (bytes == 0)
            continue;
        char *to = (char *)o->buffer[i] + (uint64_t)row * bytes;
        if (gradient)
            memcpy(to, gradient, bytes);
        else
            memset(to, 0, bytes);
    }
}

void ad_spoil(int dtype, void *buffer, int64_t n)
{
    for (int64_t i = 0; i < n && buffer; i++)
        if (dtype == KERNEL_F32)
            ((float *)buffer)[i] = NAN;
        else
            ((double *)buffer)[i] = (double)NAN;
}

void ad_outputs_spoil(int n, const ad_tensor *x, const struct ad_outputs *o)
{
    for (int i = 0; i < n && x && o->buffer && o->count; i++) {
        const struct tape *t = ad_tape_behind(x[i]);
        const uint32_t v = ad_value_live(t, x[i]);
        if (v && t->entries[v].array.dtype != KERNEL_I64)
            ad_spoil(t->entries[v].array.dtype, o->buffer[i], o->count[i]);
    }
}

ad_status ad_function_check(const struct ad_isolation *s, ad_function *function)
{
    if (s->t->error.code != TAPE_OK || function)
        return (ad_status)s->t->error.code;
    return (ad_status)tape_fail(s->t, TAPE_ERROR_ARGUMENT, s->site,
                                "%s: function is a null pointer", s->what);
}

ad_status ad_result_check(const struct ad_isolation *s, uint32_t y, bool scalar)
{
    struct tape *t = s->t;
    const struct tape_value *v = &t->entries[y];
    char text[96], open[TAPE_NO_GRAD_TEXT];
    kernel_describe(&v->array, text, sizeof text);
    if (v->array.dtype == KERNEL_I64)
        return (ad_status)tape_fail(t, TAPE_ERROR_DTYPE, s->site,
                                    "%s: the result is %s, integers have no gradient", s->what,
                                    text);
    if (scalar && v->array.size != 1)
        return (ad_status)tape_fail(t, TAPE_ERROR_SHAPE, s->site,
                                    "%s: the result is %s, it must be of size 1", s->what, text);
    if (!(v->flags & TAPE_NEEDS_GRADIENT))
        return (ad_status)tape_fail(
            t, TAPE_ERROR_STATE, s->site,
            "%s: the result does not depend on x, or was computed under no_grad%s", s->what,
            tape_no_grad_open(t, open));
    return AD_OK;
}
