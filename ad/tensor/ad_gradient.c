/* ad_gradient.c: sweeps, gradients read back, derivatives recorded. */
#include "ad_internal.h"

#include "tape_call.h"
#include "tape_guard.h"
#include "tape_no_grad.h"

#include <string.h>

/* y and its seed are fit to be swept from: indices into *y_value and *seed_value (0: ones). */
static ad_status check(ad_tensor y, const ad_tensor *seed, const char *what, struct tape_site site,
                       struct tape **tape, uint32_t *y_value, uint32_t *seed_value)
{
    ad_status status;
    char a[96], b[96], open[TAPE_NO_GRAD_TEXT];
    *seed_value = 0;
    *y_value = ad_value_find(y, what, 0, site, tape, &status);
    struct tape *t = *tape;
    if (!t)
        return status;
    if (t->error.code != TAPE_OK)
        return (ad_status)t->error.code;
    if (t->calls.innermost)
        return (ad_status)tape_call_refuse(t, what, site);
    const struct tape_value *v = &t->entries[*y_value];
    kernel_describe(&v->array, a, sizeof a);
    if (v->array.dtype == KERNEL_I64)
        return (ad_status)tape_fail(t, TAPE_ERROR_DTYPE, site,
                                    "%s: y is %s, integers have no gradient", what, a);
    if (!(v->flags & TAPE_NEEDS_GRADIENT))
        return (ad_status)tape_fail(
            t, TAPE_ERROR_STATE, site,
            "%s: y does not depend on a leaf, or was computed under no_grad%s", what,
            tape_no_grad_open(t, open));
    if (!seed) {
        if (v->array.size != 1)
            return (ad_status)tape_fail(t, TAPE_ERROR_SHAPE, site,
                                        "%s: y is %s, only a tensor of size 1 needs no seed", what,
                                        a);
        return AD_OK;
    }
    *seed_value = ad_value_on(t, *seed, site, "%s: the seed", what);
    if (!*seed_value)
        return (ad_status)t->error.code;
    const struct kernel_array *s = &t->entries[*seed_value].array;
    kernel_describe(s, b, sizeof b);
    if (s->dtype != v->array.dtype || s->rank != v->array.rank ||
        memcmp(s->shape, v->array.shape, s->rank * sizeof(int64_t)) != 0)
        return (ad_status)tape_fail(
            t, s->dtype != v->array.dtype ? TAPE_ERROR_DTYPE : TAPE_ERROR_SHAPE, site,
            "%s: the seed is %s, y is %s", what, b, a);
    return AD_OK;
}

/* Sweeps from y with a seed (NULL: ones). */
static ad_status backward(ad_tensor y, const ad_tensor *seed, const char *what,
                          enum tape_status (*sweep)(struct tape *, uint32_t, uint32_t,
                                                    struct tape_site),
                          struct tape_site site)
{
    struct tape *t;
    uint32_t value, seed_value = 0;
    ad_status status = check(y, seed, what, site, &t, &value, &seed_value);
    return status == AD_OK ? (ad_status)sweep(t, value, seed_value, site) : status;
}

ad_status ad_backward_site(ad_tensor y, unsigned ad_line_)
{
    return backward(y, NULL, "backward", tape_sweep, AD_HERE);
}

ad_status ad_backward_seed_site(ad_tensor y, ad_tensor seed, unsigned ad_line_)
{
    return backward(y, &seed, "backward_seed", tape_sweep, AD_HERE);
}

ad_status ad_backward_release_site(ad_tensor y, unsigned ad_line_)
{
    return backward(y, NULL, "backward_release", tape_sweep_release, AD_HERE);
}

ad_status ad_backward_seed_release_site(ad_tensor y, ad_tensor seed, unsigned ad_line_)
{
    return backward(y, &seed, "backward_seed_release", tape_sweep_release, AD_HERE);
}

/* The gradient of the value v of t can be read into the buffer. */
static ad_status check_gradient(struct tape *t, uint32_t v, const void *buffer, int64_t count,
                                const char *what, struct tape_site site)
{
    const struct tape_value *value = &t->entries[v];
    char open[TAPE_NO_GRAD_TEXT];
    if (!(value->flags & (TAPE_LEAF | TAPE_RETAIN))) {
        if (value->flags & TAPE_NEEDS_GRADIENT)
            return (ad_status)tape_fail(
                t, TAPE_ERROR_STATE, site,
                "%s: an intermediate's gradient is kept only after ad_retain_gradient", what);
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site, "%s: a constant has none%s", what,
                                    tape_no_grad_open(t, open));
    }
    const ad_status status = ad_buffer_check(t, v, what, buffer, count, site);
    if (status != AD_OK || value->array.size == 0)
        return status;
    if (!tape_was_swept(t, value))
        return (ad_status)tape_fail(
            t, TAPE_ERROR_STATE, site, "%s: no sweep since %s: ad_backward comes first", what,
            value->flags & TAPE_RETAIN       ? "ad_retain_gradient"
            : value->flags & TAPE_TAKEN_BACK ? "its buffer was taken back"
                                             : "the tape was made, reset or rewound");
    return AD_OK;
}

static void read_gradient(const struct tape *t, uint32_t v, void *buffer)
{
    const struct tape_value *value = &t->entries[v];
    if (value->array.size == 0)
        return;
    const void *gradient = tape_gradient(t, v);
    if (gradient)
        memmove(buffer, gradient, tape_value_bytes(value));
    else
        memset(buffer, 0, tape_value_bytes(value));
}

/* After a failure. What a user's own gradient buffer holds stays. */
static void spoil(const struct tape *t, uint32_t v, void *buffer, int64_t count)
{
    if (v && !((t->entries[v].flags & TAPE_USER_GRADIENT) && tape_gradient(t, v) == buffer))
        ad_buffer_spoil(t, v, buffer, count);
}

ad_status ad_gradient_site(ad_tensor x, void *buffer, int64_t count, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct tape *t;
    ad_status status;
    uint32_t v = ad_value_find(x, "gradient", 0, site, &t, &status);
    if (!t)
        return status;
    if (t->error.code != TAPE_OK)
        status = (ad_status)t->error.code;
    else if (t->calls.innermost)
        status = (ad_status)tape_call_refuse(t, "gradient", site);
    else
        status = check_gradient(t, v, buffer, count, "gradient", site);
    if (status == AD_OK)
        read_gradient(t, v, buffer);
    else
        spoil(t, v, buffer, count);
    return status;
}

/* The gradients of x[n], n > 0, can be read into the buffers. *tape: theirs, or NULL. */
static ad_status check_gradients(int n, const ad_tensor *x, void *const *buffers,
                                 const int64_t *counts, struct tape_site site, struct tape **tape)
{
    ad_status status;
    char what[32];
    ad_value_find(x[0], "gradients: x[0]", 0, site, tape, &status);
    struct tape *t = *tape;
    if (!t)
        return status;
    if (t->error.code != TAPE_OK)
        return (ad_status)t->error.code;
    if (t->calls.innermost)
        return (ad_status)tape_call_refuse(t, "gradients", site);
    if (!buffers || !counts)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "gradients: %s is a null pointer",
                                    buffers ? "counts" : "buffers");
    for (int i = 0; i < n; i++) {
        const uint32_t v = ad_value_on(t, x[i], site, "gradients: x[%d]", i);
        (void)snprintf(what, sizeof what, "gradients: x[%d]", i);
        status =
            v ? check_gradient(t, v, buffers[i], counts[i], what, site) : (ad_status)t->error.code;
        if (status != AD_OK)
            return status;
    }
    return AD_OK;
}

ad_status ad_gradients_read(int n, const ad_tensor *x, void *const *buffers, const int64_t *counts,
                            struct tape_site site)
{
    struct tape *t;
    if (n == 0)
        return AD_OK;
    if (n < 0 || !x)
        return ad_fail(AD_ERROR_ARGUMENT, site,
                       n < 0 ? "gradients: n is negative" : "gradients: x is a null pointer");
    const ad_status status = check_gradients(n, x, buffers, counts, site, &t);
    for (int i = 0; i < n && t && buffers && counts; i++)
        if (status == AD_OK)
            read_gradient(t, x[i].value, buffers[i]);
        else
            spoil(t, ad_value_live(t, x[i]), buffers[i], counts[i]);
    return status;
}

ad_status ad_gradients_site(int n, const ad_tensor *x, void *const *buffers, const int64_t *counts,
                            unsigned ad_line_)
{
    return ad_gradients_read(n, x, buffers, counts, AD_HERE);
}

ad_status ad_gradient_buffer_site(ad_tensor x, void *buffer, int64_t count, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct tape *t;
    ad_status status;
    uint32_t v = ad_value_find(x, "gradient_buffer", 0, site, &t, &status);
    if (!v)
        return status;
    if (t->calls.innermost)
        return (ad_status)tape_call_refuse(t, "gradient_buffer", site);
    if (!(t->entries[v].flags & TAPE_LEAF))
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site, "gradient_buffer: not a leaf");
    if (v < t->fixed.n_values)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                    "gradient_buffer: the leaf is older than the %s that runs",
                                    tape_fixed_by(t));
    if (buffer)
        status = ad_buffer_check(t, v, "gradient_buffer", buffer, count, site);
    return status == AD_OK ? (ad_status)tape_gradient_buffer(t, v, buffer, site) : status;
}

ad_status ad_retain_gradient_site(ad_tensor x, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct tape *t;
    ad_status status;
    uint32_t v = ad_value_find(x, "retain_gradient", 0, site, &t, &status);
    if (v && t->calls.innermost)
        return (ad_status)tape_call_refuse(t, "retain_gradient", site);
    return v ? (ad_status)tape_retain(t, v, site) : status;
}

/* The indices of what create_graph is to differentiate by. */
static ad_status find_inputs(struct tape *t, int n, const ad_tensor *x, uint32_t *inputs,
                             struct tape_site site)
{
    char open[TAPE_NO_GRAD_TEXT];
    for (int i = 0; i < n; i++) {
        inputs[i] = ad_value_on(t, x[i], site, "create_graph: x[%d]", i);
        if (!inputs[i])
            return (ad_status)t->error.code;
        if (t->entries[inputs[i]].array.dtype == KERNEL_I64)
            return (ad_status)tape_fail(t, TAPE_ERROR_DTYPE, site,
                                        "create_graph: x[%d] is of integers", i);
        /* Ops that had only constants left no record, so that a derivative would lack their part.
         */
        if (!(t->entries[inputs[i]].flags & TAPE_NEEDS_GRADIENT))
            return (ad_status)tape_fail(
                t, TAPE_ERROR_STATE, site,
                "create_graph: x[%d] is constant: no leaf is in it, or it was detached, computed "
                "under no_grad, or lies outside a %s that runs%s",
                i, tape_fixed_by(t), tape_no_grad_open(t, open));
    }
    return AD_OK;
}

bool ad_leaf_changed_site(ad_tensor x, unsigned ad_line_)
{
    struct tape *t;
    ad_status status;
    uint32_t v = ad_value_find(x, "leaf_changed", 0, AD_HERE, &t, &status);
    return v && tape_guard_changed(t, v);
}

ad_status ad_create_graph_site(ad_tensor y, ad_tensor seed, int n, const ad_tensor *x,
                               ad_tensor *gradient, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct tape *t;
    uint32_t y_value, seed_value;
    ad_status status =
        check(y, seed.tape ? &seed : NULL, "create_graph", site, &t, &y_value, &seed_value);
    for (int i = 0; i < n && gradient; i++)
        gradient[i] = t ? (ad_tensor){y.tape, y.tape_generation, 0, 0} : (ad_tensor){0, 0, 0, 0};
    if (status != AD_OK)
        return status;
    if (n < 0 || (n > 0 && (!x || !gradient)))
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site,
                                    n < 0 ? "create_graph: n is negative"
                                          : "create_graph: x or gradient is a null pointer");
    char open[TAPE_NO_GRAD_TEXT];
    if (t->no_grad)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site, "create_graph: not under no_grad%s",
                                    tape_no_grad_open(t, open));
    /* Their indices, and behind them those of the gradients. */
    uint32_t *inputs =
        t->memory->resize(NULL, (2 * (size_t)n + 1) * sizeof *inputs, t->memory->payload);
    if (!inputs)
        return (ad_status)tape_fail(t, TAPE_ERROR_MEMORY, site, "create_graph: out of memory");
    status = find_inputs(t, n, x, inputs, site);
    if (status == AD_OK)
        status = (ad_status)tape_graph(t, y_value, seed_value, n, inputs, site, inputs + n);
    for (int i = 0; i < n && status == AD_OK; i++)
        gradient[i] = ad_handle_of(t, y.tape, y.tape_generation, inputs[n + i]);
    t->memory->release(inputs, t->memory->payload);
    return status;
}
