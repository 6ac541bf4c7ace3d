/* ad_directional.c: derivatives in a direction, from one recording that is differentiated again:
 * J v by the seed of J^T u, H v by x.
 */
#include "ad_derivative.h"

#include <tapescope/ad_functional.h>

#include "kernel_ops.h"

#include <string.h>

/* *sum = <g, v> over the leaves, recorded; 0 where no g[i] depends on a variable. */
static ad_status dot(struct ad_isolation *s, const uint32_t *g, const void *const *v, uint32_t *sum)
{
    struct tape *t = s->t;
    ad_status status = AD_OK;
    *sum = 0;
    for (int i = 0; i < s->n && status == AD_OK; i++) {
        const struct kernel_array a = t->entries[g[i]].array;
        const int64_t whole[9] = {0}; /* of sum: over all axes */
        uint32_t pair[2] = {g[i], 0}, part = 0;
        if (!ad_depends(s, g[i]))
            continue;
        status = (ad_status)tape_borrow(t, a.dtype, a.rank, a.shape, v[i], TAPE_GIVEN_CONSTANT,
                                        s->site, &pair[1]);
        if (status == AD_OK)
            status = (ad_status)tape_apply(t, &kernel_op_mul, 2, pair, 0, NULL, s->site, &part);
        if (status == AD_OK)
            status = (ad_status)tape_apply(t, &kernel_op_sum, 1, &part, 1, whole, s->site, &part);
        if (status == AD_OK && *sum)
            status = (ad_status)tape_apply(t, &kernel_op_add, 2, (uint32_t[]){*sum, part}, 0, NULL,
                                           s->site, &part);
        *sum = part;
    }
    return status;
}

/* The directions are there, one for each leaf. */
static ad_status check_direction(const struct ad_isolation *s, const void *const *direction,
                                 const int64_t *counts)
{
    /* They are only read. */
    const struct ad_outputs as = {"direction", (void *const *)(uintptr_t)direction, counts};
    return ad_outputs_check(s, &as, 1);
}

struct jvp {
    const void *const *direction;
    const int64_t *counts;
    void *value, *derivative;
    int64_t n_y;
};

static ad_status jvp_check(const struct ad_isolation *s, uint32_t y, const struct jvp *j)
{
    const struct kernel_array *a = &s->t->entries[y].array;
    char text[96];
    const ad_status status = ad_result_check_one_dtype(s, y, false);
    if (status != AD_OK)
        return status;
    if (j->n_y != a->size)
        return (ad_status)tape_fail(s->t, TAPE_ERROR_ARGUMENT, s->site,
                                    "%s: n_y is %lld, the result is %s", s->what, (long long)j->n_y,
                                    kernel_describe(a, text, sizeof text));
    if (!j->derivative && a->size > 0)
        return (ad_status)tape_fail(s->t, TAPE_ERROR_ARGUMENT, s->site,
                                    "%s: derivative is a null pointer", s->what);
    return AD_OK;
}

static ad_status jvp(struct ad_isolation *s, ad_function *function, void *payload,
                     const struct jvp *j)
{
    struct tape *t = s->t;
    uint32_t y = 0, seed = 0, sum = 0;
    uint32_t *g = ad_gradients_get(s);
    if (!g)
        return (ad_status)s->t->error.code;
    ad_status status = check_direction(s, j->direction, j->counts);
    if (status == AD_OK)
        status = ad_isolation_call(s, function, payload, &y);
    if (status == AD_OK)
        status = jvp_check(s, y, j);
    if (status == AD_OK)
        status = ad_record_transposed(s, y, &seed, g);
    if (status == AD_OK)
        status = dot(s, g, j->direction, &sum);
    if (status == AD_OK && sum)
        status = (ad_status)tape_sweep(t, sum, 0, s->site);
    if (status != AD_OK)
        return status;
    const struct tape_value *u = &t->entries[seed];
    if (tape_has_adjoint(t, u) && u->array.size > 0)
        memcpy(j->derivative, u->adjoint, tape_value_bytes(u));
    else if (u->array.size > 0)
        memset(j->derivative, 0, tape_value_bytes(u));
    if (j->value)
        tape_read(t, y, j->value);
    return AD_OK;
}

/* As many as two results and their direction need. NOLINTNEXTLINE(readability-function-size) */
ad_status ad_jvp_site(ad_tape tape, ad_function *function, int n, const ad_tensor *x, void *payload,
                      const void *const *direction, const int64_t *counts, void *value,
                      void *derivative, int64_t n_y, unsigned ad_line_)
{
    const struct jvp j = {direction, counts, value, derivative, n_y};
    struct ad_isolation s = {.tape = tape, .site = AD_HERE, .what = "jvp", .n = n, .x = x};
    ad_status status = ad_derivative_begin(&s, function);
    if (status == AD_OK) {
        status = jvp(&s, function, payload, &j);
        ad_isolation_end(&s);
    }
    if (status != AD_OK) {
        ad_spoil_like(n, x, value, n_y);
        ad_spoil_like(n, x, derivative, n_y);
    }
    return status;
}

static ad_status hvp(struct ad_isolation *s, ad_function *function, void *payload,
                     const void *const *direction, const struct ad_outputs *product)
{
    uint32_t y = 0, sum = 0;
    uint32_t *g = ad_gradients_get(s);
    if (!g)
        return (ad_status)s->t->error.code;
    ad_status status = check_direction(s, direction, product->count);
    if (status == AD_OK)
        status = ad_outputs_check(s, product, 1);
    if (status == AD_OK)
        status = ad_isolation_call(s, function, payload, &y);
    if (status == AD_OK)
        status = ad_result_check_one_dtype(s, y, true);
    if (status == AD_OK)
        status = ad_record_gradients(s, y, 0, g);
    if (status == AD_OK)
        status = dot(s, g, direction, &sum);
    if (status != AD_OK)
        return status;
    ad_isolation_clear(s);
    if (sum)
        status = (ad_status)tape_sweep(s->t, sum, 0, s->site);
    if (status == AD_OK)
        ad_outputs_take(s, product);
    return status;
}

ad_status ad_hvp_site(ad_tape tape, ad_function *function, int n, const ad_tensor *x, void *payload,
                      const void *const *direction, void *const *product, const int64_t *counts,
                      unsigned ad_line_)
{
    const struct ad_outputs out = {"product", product, counts};
    struct ad_isolation s = {.tape = tape, .site = AD_HERE, .what = "hvp", .n = n, .x = x};
    ad_status status = ad_derivative_begin(&s, function);
    if (status == AD_OK) {
        status = hvp(&s, function, payload, direction, &out);
        ad_isolation_end(&s);
    }
    if (status != AD_OK)
        ad_outputs_spoil(n, x, &out);
    return status;
}
