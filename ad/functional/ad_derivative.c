/* ad_derivative.c: see ad_derivative.h. */
#include "ad_derivative.h"

#include "tape_no_grad.h"
#include "tape_value.h"

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
                                        "%s: %s[%d] has %lld elements, not %lld row%s of x[%d], %s",
                                        s->what, o->name, i, (long long)o->count[i],
                                        (long long)rows, rows == 1 ? "" : "s", i,
                                        kernel_describe(x, text, sizeof text));
        if (!o->buffer[i] && size > 0)
            return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, s->site,
                                        "%s: %s[%d] is a null pointer", s->what, o->name, i);
    }
    return AD_OK;
}

void ad_gradient_copy(void *to, const void *gradient, uint64_t bytes)
{
    if (bytes == 0)
        return;
    if (gradient)
        memcpy(to, gradient, bytes);
    else
        memset(to, 0, bytes);
}

void ad_outputs_take(const struct ad_isolation *s, const struct ad_outputs *o)
{
    for (int i = 0; i < s->n; i++)
        ad_gradient_copy(o->buffer[i], ad_isolation_gradient(s, i),
                         tape_value_bytes(&s->t->entries[s->leaf[i].value]));
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

void ad_spoil_like(int n, const ad_tensor *x, void *buffer, int64_t count)
{
    const struct tape *t = n > 0 && x ? ad_tape_behind(x[0]) : NULL;
    const uint32_t v = t ? ad_value_live(t, x[0]) : 0;
    if (v && t->entries[v].array.dtype != KERNEL_I64)
        ad_spoil(t->entries[v].array.dtype, buffer, count);
}

ad_status ad_derivative_begin(struct ad_isolation *s, ad_function *function)
{
    struct tape *t = s->t = ad_tape_find(s->tape.slot, s->tape.generation, s->what, s->site);
    if (!t)
        return ad_failed();
    if (t->error.code == TAPE_OK && !function)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, s->site,
                                    "%s: function is a null pointer", s->what);
    return ad_isolation_begin(s);
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

ad_status ad_result_check_one_dtype(const struct ad_isolation *s, uint32_t y, bool scalar)
{
    struct tape *t = s->t;
    const int dtype = t->entries[y].array.dtype;
    const ad_status status = ad_result_check(s, y, scalar);
    for (int i = 0; i < s->n && status == AD_OK; i++) {
        const int of = t->entries[s->leaf[i].value].array.dtype;
        if (of != dtype)
            return (ad_status)tape_fail(t, TAPE_ERROR_DTYPE, s->site,
                                        "%s: x[%d] is %s, the result is %s: one is needed", s->what,
                                        i, kernel_dtype_name(of), kernel_dtype_name(dtype));
    }
    return status;
}

int64_t ad_variables(const struct ad_isolation *s)
{
    int64_t n = 0;
    for (int i = 0; i < s->n; i++)
        n += s->t->entries[s->leaf[i].value].array.size;
    return n;
}

static ad_status no_memory(const struct ad_isolation *s)
{
    return (ad_status)tape_fail_memory(s->t, s->site, s->what);
}

uint32_t *ad_gradients_get(struct ad_isolation *s)
{
    uint32_t *g = ad_scratch_get(&s->scratch, s->n, sizeof *g);
    if (!g)
        no_memory(s);
    return g;
}

uint32_t *ad_leaves_get(struct ad_isolation *s)
{
    uint32_t *x = ad_gradients_get(s);
    for (int i = 0; i < s->n && x; i++)
        x[i] = s->leaf[i].value;
    return x;
}

ad_status ad_record_gradients(struct ad_isolation *s, uint32_t y, uint32_t seed, uint32_t *g)
{
    const uint32_t *x = ad_leaves_get(s);
    if (!x)
        return (ad_status)s->t->error.code;
    /* What the function has left open would keep the gradients from being recorded. */
    tape_no_grad_restore(s->t, &s->t->marks[s->level]);
    return (ad_status)tape_graph(s->t, y, seed, s->n, x, s->site, g);
}

ad_status ad_record_transposed(struct ad_isolation *s, uint32_t y, uint32_t *seed, uint32_t *g)
{
    struct tape *t = s->t;
    struct kernel_array ones = t->entries[y].array;
    ones.data = ad_scratch_get(&s->scratch, ones.size, kernel_dtype_bytes(ones.dtype));
    if (!ones.data)
        return no_memory(s);
    tape_fill_ones(&ones);
    ad_status status = (ad_status)tape_borrow(t, ones.dtype, ones.rank, ones.shape, ones.data,
                                              TAPE_GIVEN_LEAF, s->site, seed);
    const uint32_t end = t->last_record;
    if (status == AD_OK)
        status = ad_record_gradients(s, y, *seed, g);
    if (status != AD_OK)
        return status;
    t->fixed.last_record = end; /* no sweep goes back into the function */
    return tape_graph_only(t, *seed, end) ? AD_OK : no_memory(s);
}
