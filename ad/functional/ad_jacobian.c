/* ad_jacobian.c: whole matrices of derivatives, a row or a column a seed, from one recording. */
#include "ad_derivative.h"
#include "ad_seeds.h"

#include <tapescope/ad_functional.h>

#include <string.h>

ad_jacobian_order ad_jacobian_choice(int64_t n_results, int64_t n_variables)
{
    return n_variables < n_results ? AD_JACOBIAN_COLUMNS : AD_JACOBIAN_ROWS;
}

/* The gradients of a sweep are row `row` of the outputs. */
static void row_take(const struct ad_seeds *w, int64_t row, void *of)
{
    const struct ad_outputs *out = of;
    for (int i = 0; i < w->n; i++) {
        const uint64_t bytes = tape_value_bytes(&w->s->t->entries[w->leaf[i]]);
        ad_gradient_copy((char *)out->buffer[i] + (uint64_t)row * bytes, ad_seeds_gradient(w, i),
                         bytes);
    }
}

/* Row k is what a sweep from element k of the result leaves. */
static ad_status rows(struct ad_isolation *s, uint32_t y, struct ad_outputs *out)
{
    struct ad_seeds w;
    const uint32_t *x = ad_leaves_get(s);
    if (!x)
        return (ad_status)s->t->error.code;
    ad_status status = ad_seeds_begin(&w, s, y, s->n, x, s->t->entries[y].array.size);
    if (status != AD_OK)
        return status;
    status = ad_seeds_units(&w, row_take, out);
    ad_seeds_end(&w);
    return status;
}

/* Where columns of one x[i] go. */
struct columns {
    char *to;
    int64_t n;
};

/* The gradient of the seed of J^T u is column `column`. */
static void column_take(const struct ad_seeds *w, int64_t column, void *of)
{
    const struct columns *c = of;
    const struct kernel_array *u = &w->s->t->entries[w->leaf[0]].array;
    const size_t bytes = kernel_dtype_bytes(u->dtype);
    const char *from = ad_seeds_gradient(w, 0);
    for (int64_t k = 0; k < u->size; k++)
        ad_gradient_copy(c->to + (size_t)(k * c->n + column) * bytes,
                         from ? from + (size_t)k * bytes : NULL, bytes);
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
        const struct tape_value *x = &t->entries[s->leaf[i].value];
        struct columns c = {out->buffer[i], x->array.size};
        struct ad_seeds w;
        if (!ad_depends(s, g[i])) {
            ad_gradient_copy(c.to, NULL, (uint64_t)t->entries[y].array.size * tape_value_bytes(x));
            continue;
        }
        status = ad_seeds_begin(&w, s, g[i], 1, &seed, c.n);
        if (status != AD_OK)
            return status;
        status = ad_seeds_units(&w, column_take, &c);
        ad_seeds_end(&w);
    }
    return status;
}

static ad_status jacobian(struct ad_isolation *s, ad_function *function, void *payload,
                          ad_jacobian_order order, struct ad_outputs *out)
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
    struct ad_outputs out = {"jacobian", to, counts};
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
    int i;       /* of which x[i] rows come */
    int64_t row; /* of all rows, the first of those */
};

/* The sweep from element k of the gradient by x[i] has ended. */
static void second_take(const struct ad_seeds *w, int64_t k, void *of)
{
    const struct ad_isolation *s = w->s;
    const struct second *to = of;
    const size_t bytes = kernel_dtype_bytes(s->t->entries[w->leaf[to->i]].array.dtype);
    if (to->diagonal) {
        const char *gradient = ad_seeds_gradient(w, to->i);
        ad_gradient_copy((char *)to->diagonal->buffer[to->i] + (size_t)k * bytes,
                         gradient ? gradient + (size_t)k * bytes : NULL, bytes);
        return;
    }
    char *at = to->matrix + (size_t)((to->row + k) * ad_variables(s)) * bytes;
    for (int j = 0; j < s->n; j++) {
        const uint64_t n = tape_value_bytes(&s->t->entries[w->leaf[j]]);
        ad_gradient_copy(at, ad_seeds_gradient(w, j), n);
        at += n;
    }
}

/* No x has a part in the gradient by x[i]. */
static void second_zeros(const struct ad_isolation *s, const struct second *to)
{
    const uint64_t n = tape_value_bytes(&s->t->entries[s->leaf[to->i].value]);
    const size_t bytes = kernel_dtype_bytes(s->t->entries[s->leaf[to->i].value].array.dtype);
    const size_t row = (size_t)ad_variables(s);
    if (to->diagonal)
        ad_gradient_copy(to->diagonal->buffer[to->i], NULL, n);
    else
        ad_gradient_copy(to->matrix + (size_t)to->row * row * bytes, NULL, n * row);
}

/* A row is what a sweep from one element of the recorded gradient leaves. */
static ad_status second_rows(struct ad_isolation *s, uint32_t y, struct second *to)
{
    struct tape *t = s->t;
    uint32_t *g = ad_gradients_get(s);
    const uint32_t *x = g ? ad_leaves_get(s) : NULL;
    if (!x)
        return (ad_status)t->error.code;
    ad_status status = ad_record_gradients(s, y, 0, g);
    for (int i = 0; i < s->n && status == AD_OK; i++) {
        const int64_t n = t->entries[x[i]].array.size;
        struct ad_seeds w;
        to->i = i;
        if (ad_depends(s, g[i])) {
            status = ad_seeds_begin(&w, s, g[i], s->n, x, n);
            if (status != AD_OK)
                return status;
            status = ad_seeds_units(&w, second_take, to);
            ad_seeds_end(&w);
        } else {
            second_zeros(s, to);
        }
        to->row += n;
    }
    return status;
}

static ad_status second(struct ad_isolation *s, ad_function *function, void *payload,
                        struct second *to)
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
    struct second to = {.matrix = hessian};
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
    struct second to = {.diagonal = &out};
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
