/* ad_jacobian.c: whole matrices of derivatives, a row or a column a sweep, from one recording. */
#include "ad_derivative.h"

#include <tapescope/ad_functional.h>

#include <string.h>

ad_jacobian_order ad_jacobian_choice(int64_t n_results, int64_t n_variables)
{
    return n_variables < n_results ? AD_JACOBIAN_COLUMNS : AD_JACOBIAN_ROWS;
}

/* The sweep from y, from element k of which it begins: the arrays that sweeps read are looked at by
 * the first. */
static ad_status sweep_from(const struct ad_isolation *s, uint32_t y, const struct ad_unit *unit,
                            int64_t k)
{
    ad_unit_set(unit, k, 1);
    const enum tape_status status = k == 0 ? tape_sweep(s->t, y, unit->value, s->site)
                                           : tape_sweep_again(s->t, y, unit->value, s->site);
    ad_unit_set(unit, k, 0);
    return (ad_status)status;
}

/* Row k is what a sweep from element k of the result leaves. */
static ad_status rows(struct ad_isolation *s, uint32_t y, const struct ad_outputs *out)
{
    const int64_t m = s->t->entries[y].array.size;
    struct ad_unit unit;
    ad_status status = ad_unit_make(s, y, &unit);
    for (int64_t k = 0; k < m && status == AD_OK; k++) {
        ad_isolation_clear(s);
        status = sweep_from(s, y, &unit, k);
        if (status == AD_OK)
            ad_outputs_take(s, out, k);
    }
    return status;
}

/* Column `column` of x[i] is the gradient of the seed of J^T u. */
static void column_take(const struct ad_isolation *s, uint32_t seed, char *to, int64_t column,
                        int64_t n_columns)
{
    const struct tape_value *u = &s->t->entries[seed];
    const size_t bytes = kernel_dtype_bytes(u->array.dtype);
    const char *from = tape_has_adjoint(s->t, u) ? u->adjoint : NULL;
    for (int64_t k = 0; k < u->array.size; k++) {
        char *at = to + (size_t)(k * n_columns + column) * bytes;
        if (from)
            memcpy(at, from + (size_t)k * bytes, bytes);
        else
            memset(at, 0, bytes);
    }
}

static ad_status columns(struct ad_isolation *s, uint32_t y, const struct ad_outputs *out)
{
    struct tape *t = s->t;
    uint32_t seed = 0;
    uint32_t *g = ad_gradients_get(s);
    if (!g)
        return (ad_status)t->error.code;
    ad_status status = ad_record_transposed(s, y, &seed, g);
    for (int i = 0; i < s->n && status == AD_OK; i++) {
        const int64_t n = t->entries[s->leaf[i].value].array.size;
        struct ad_unit unit;
        status = ad_unit_make(s, s->leaf[i].value, &unit);
        for (int64_t k = 0; k < n && status == AD_OK; k++) {
            t->entries[seed].gradient_epoch = t->gradient_epoch - 1;
            if (ad_depends(s, g[i]))
                status = sweep_from(s, g[i], &unit, k);
            if (status == AD_OK)
                column_take(s, seed, out->buffer[i], k, n);
        }
    }
    return status;
}

static ad_status jacobian(struct ad_isolation *s, ad_function *function, void *payload,
                          ad_jacobian_order order, const struct ad_outputs *out)
{
    uint32_t y = 0;
    if ((unsigned)order > AD_JACOBIAN_COLUMNS)
        return (ad_status)tape_fail(s->t, TAPE_ERROR_ARGUMENT, s->site,
                                    "%s: %d is no ad_jacobian_order", s->what, (int)order);
    ad_status status = ad_isolation_call(s, function, payload, &y);
    if (status == AD_OK)
        status = ad_result_check_one_dtype(s, y, false);
    if (status == AD_OK)
        status = ad_outputs_check(s, out, s->t->entries[y].array.size);
    if (status != AD_OK)
        return status;
    if (order == AD_JACOBIAN_BY_SHAPE)
        order = ad_jacobian_choice(s->t->entries[y].array.size, ad_variables(s));
    return order == AD_JACOBIAN_ROWS ? rows(s, y, out) : columns(s, y, out);
}

ad_status ad_jacobian_site(ad_tape tape, ad_function *function, int n, const ad_tensor *x,
                           void *payload, ad_jacobian_order order, void *const *to,
                           const int64_t *counts, unsigned ad_line_)
{
    const struct ad_outputs out = {"jacobian", to, counts};
    struct ad_isolation s = {.tape = tape, .site = AD_HERE, .what = "jacobian", .n = n, .x = x};
    ad_status status = ad_derivative_begin(&s, function);
    if (status == AD_OK) {
        status = jacobian(&s, function, payload, order, &out);
        ad_isolation_end(&s);
    }
    if (status != AD_OK)
        ad_outputs_spoil(n, x, &out);
    return status;
}

/* ---- second derivatives ---- */

/* Where rows of second derivatives go: to a matrix, or only their diagonal elements to buffers. */
struct second {
    char *matrix;
    const struct ad_outputs *diagonal;
};

/* The sweep from element k of the gradient by x[i], which is element `row` of all, has ended. */
static void second_take(const struct ad_isolation *s, const struct second *to, int i, int64_t k,
                        int64_t row)
{
    const size_t bytes = kernel_dtype_bytes(s->t->entries[s->leaf[i].value].array.dtype);
    if (to->diagonal) {
        const char *gradient = ad_isolation_gradient(s, i);
        char *at = (char *)to->diagonal->buffer[i] + (size_t)k * bytes;
        if (gradient)
            memcpy(at, gradient + (size_t)k * bytes, bytes);
        else
            memset(at, 0, bytes);
        return;
    }
    char *at = to->matrix + (size_t)(row * ad_variables(s)) * bytes;
    for (int j = 0; j < s->n; j++) {
        const uint64_t n = tape_value_bytes(&s->t->entries[s->leaf[j].value]);
        const void *gradient = ad_isolation_gradient(s, j);
        if (n > 0 && gradient)
            memcpy(at, gradient, n);
        else if (n > 0)
            memset(at, 0, n);
        at += n;
    }
}

/* A row is what a sweep from one element of the recorded gradient leaves. */
static ad_status second_rows(struct ad_isolation *s, uint32_t y, const struct second *to)
{
    struct tape *t = s->t;
    uint32_t *g = ad_gradients_get(s);
    int64_t row = 0;
    if (!g)
        return (ad_status)t->error.code;
    ad_status status = ad_record_gradients(s, y, 0, g);
    for (int i = 0; i < s->n && status == AD_OK; i++) {
        const int64_t n = t->entries[s->leaf[i].value].array.size;
        struct ad_unit unit;
        status = ad_unit_make(s, s->leaf[i].value, &unit);
        for (int64_t k = 0; k < n && status == AD_OK; k++, row++) {
            ad_isolation_clear(s);
            if (ad_depends(s, g[i]))
                status = sweep_from(s, g[i], &unit, k);
            if (status == AD_OK)
                second_take(s, to, i, k, row);
        }
    }
    return status;
}

static ad_status second(struct ad_isolation *s, ad_function *function, void *payload,
                        const struct second *to)
{
    uint32_t y = 0;
    ad_status status = ad_isolation_call(s, function, payload, &y);
    if (status == AD_OK)
        status = ad_result_check_one_dtype(s, y, true);
    return status == AD_OK ? second_rows(s, y, to) : status;
}

/* The matrix has room. */
static ad_status check_matrix(const struct ad_isolation *s, const void *hessian, int64_t count)
{
    const int64_t n = ad_variables(s);
    int64_t size;
    if (__builtin_mul_overflow(n, n, &size) || count != size)
        return (ad_status)tape_fail(
            s->t, TAPE_ERROR_ARGUMENT, s->site,
            "%s: hessian has %lld elements, x has %lld, so that it is [%lld,%lld]", s->what,
            (long long)count, (long long)n, (long long)n, (long long)n);
    if (!hessian && size > 0)
        return (ad_status)tape_fail(s->t, TAPE_ERROR_ARGUMENT, s->site,
                                    "%s: hessian is a null pointer", s->what);
    return AD_OK;
}

ad_status ad_hessian_site(ad_tape tape, ad_function *function, int n, const ad_tensor *x,
                          void *payload, void *hessian, int64_t count, unsigned ad_line_)
{
    const struct second to = {.matrix = hessian};
    struct ad_isolation s = {.tape = tape, .site = AD_HERE, .what = "hessian", .n = n, .x = x};
    ad_status status = ad_derivative_begin(&s, function);
    if (status == AD_OK) {
        status = check_matrix(&s, hessian, count);
        if (status == AD_OK)
            status = second(&s, function, payload, &to);
        ad_isolation_end(&s);
    }
    if (status != AD_OK)
        ad_spoil_like(n, x, hessian, count);
    return status;
}

ad_status ad_hessian_diagonal_site(ad_tape tape, ad_function *function, int n, const ad_tensor *x,
                                   void *payload, void *const *diagonal, const int64_t *counts,
                                   unsigned ad_line_)
{
    const struct ad_outputs out = {"diagonal", diagonal, counts};
    const struct second to = {.diagonal = &out};
    struct ad_isolation s = {
        .tape = tape, .site = AD_HERE, .what = "hessian_diagonal", .n = n, .x = x};
    ad_status status = ad_derivative_begin(&s, function);
    if (status == AD_OK) {
        status = ad_outputs_check(&s, &out, 1);
        if (status == AD_OK)
            status = second(&s, function, payload, &to);
        ad_isolation_end(&s);
    }
    if (status != AD_OK)
        ad_outputs_spoil(n, x, &out);
    return status;
}
