/* ad_tensor_sparse.c: sparse Jacobians and Hessians of functions of tensors: a pattern from the
 * records, and values by sweeps of rows that have no column in common.
 */
#include "ad_depends.h"
#include "ad_derivative.h"
#include "ad_seeds.h"
#include "ad_sparse_pattern.h"

#include "tape_account.h"
#include "tape_value.h"

#include <tapescope/ad_tensor_sparse.h>

/* A call, of a Jacobian or of a Hessian. */
struct sparse_call {
    struct ad_isolation s;
    enum sparse_kind kind;
    ad_function *function;
    void *payload;
    struct ad_depends_results of; /* y, or the gradients by each x[i] */
};

/* Records the function, and the gradients of which a Hessian is the Jacobian. */
static ad_status record(struct sparse_call *c)
{
    struct ad_isolation *s = &c->s;
    const struct tape *t = s->t;
    const bool hessian = c->kind == SPARSE_TENSOR_HESSIAN;
    uint32_t y = 0;
    ad_status status = ad_isolation_call(s, c->function, c->payload, &y);
    if (status == AD_OK)
        status = ad_result_check_one_dtype(s, y, hessian);
    if (status != AD_OK)
        return status;
    const int n = hessian ? s->n : 1;
    uint32_t *of = ad_gradients_get(s);
    int64_t *size = ad_scratch_get(&s->scratch, n, sizeof *size);
    if (!of || !size)
        return (ad_status)tape_fail_memory(s->t, s->site, s->what);
    if (hessian)
        status = ad_record_gradients(s, y, 0, of);
    else
        of[0] = y;
    for (int i = 0; i < n && status == AD_OK; i++) {
        size[i] = t->entries[hessian ? s->leaf[i].value : y].array.size;
        if (of[i] && !ad_depends(s, of[i]))
            of[i] = 0;
    }
    c->of = (struct ad_depends_results){n, of, size};
    return status;
}

/* What finding a pattern takes is on the line of the call. */
static ad_status find(struct sparse_call *c, struct tape_sparse *to)
{
    struct tape *t = c->s.t;
    const bool observed = tape_observed(t) != NULL;
    const uint32_t row = observed ? tape_account_row(t, c->s.site, c->s.what) : TAPE_ROW_OTHER;
    const uint64_t start = tape_clock(t);
    const ad_status status = ad_depends_find(&c->s, &c->of, to);
    if (observed)
        tape_account_ran(t, row, start, NULL, 1);
    return status;
}

static ad_status pattern_find(struct sparse_call *c, ad_sparse_pattern *pattern)
{
    struct tape *t = c->s.t;
    if (!pattern)
        return ad_sparse_refuse(t, c->s.what, c->s.site, "pattern is a null pointer");
    ad_status status = record(c);
    if (status != AD_OK)
        return status;
    struct sparse_own *own = t->memory->resize(NULL, sizeof *own, t->memory->payload);
    if (!own)
        return (ad_status)tape_fail_memory(t, c->s.site, c->s.what);
    status = find(c, &own->sparse);
    own->kind = c->kind;
    if (status == AD_OK)
        ad_sparse_give(t, c->s.site, pattern, own);
    else
        t->memory->release(own, t->memory->payload);
    return status;
}

/* ---- values ---- */

/* Where the elements of a sweep's gradients go. */
struct sparse_values {
    const struct tape_sparse *pattern;
    char *to;
    size_t each;
    bool outside; /* a gradient had more than the pattern */
};

static bool is_some(const char *at, size_t each)
{
    const double x = each == sizeof(float) ? (double)*(const float *)(const void *)at
                                           : *(const double *)(const void *)at;
    return x < 0 || x > 0;
}

/* Of the gradient by leaf i, whose columns are [first, end): elements of a row. How many of them
 * are not 0. */
static int64_t row_take(struct sparse_values *v, uint32_t row, const char *from, int64_t first,
                        int64_t end)
{
    const struct tape_sparse *s = v->pattern;
    int64_t some = 0;
    for (int64_t k = s->row_start[row]; k < s->row_start[row + 1]; k++) {
        const int64_t column = s->column[k];
        if (column < first || column >= end)
            continue;
        const char *at = from ? from + (size_t)(column - first) * v->each : NULL;
        ad_gradient_copy(v->to + (size_t)k * v->each, at, v->each);
        some += at && is_some(at, v->each);
    }
    return some;
}

/* Sweep `number` was of the rows of that group. */
static void group_take(const struct ad_seeds *w, int64_t number, void *of)
{
    struct sparse_values *v = of;
    const struct tape_sparse_group *g = &v->pattern->group[number];
    int64_t first = 0;
    for (int i = 0; i < w->n; i++) {
        const char *const from = ad_seeds_gradient(w, i);
        const int64_t n = w->s->t->entries[w->leaf[i]].array.size;
        int64_t some = 0;
        for (uint32_t k = 0; k < g->n; k++)
            some += row_take(v, v->pattern->order[g->first + k], from, first, first + n);
        for (int64_t k = 0; k < n && from; k++)
            some -= is_some(from + (size_t)k * v->each, v->each);
        v->outside = v->outside || some != 0;
        first += n;
    }
}

/* Groups [from, to), whose rows are of one result that begins at row `first`. */
static ad_status groups_sweep(struct sparse_call *c, uint32_t y, int64_t first, uint32_t from,
                              uint32_t to, struct sparse_values *v)
{
    const struct tape_sparse *s = v->pattern;
    const uint32_t *x = ad_leaves_get(&c->s);
    struct ad_seeds w;
    if (!x)
        return (ad_status)c->s.t->error.code;
    ad_status status = ad_seeds_begin(&w, &c->s, y, c->s.n, x, to - from);
    if (status != AD_OK)
        return status;
    for (uint32_t g = from; g < to && status == AD_OK; g += w.width) {
        const uint32_t n = to - g < w.width ? to - g : w.width;
        for (int on = 1; on >= 0; on--) {
            for (uint32_t k = 0; k < n; k++)
                for (uint32_t r = 0; r < s->group[g + k].n; r++)
                    ad_seeds_set(&w, k, s->order[s->group[g + k].first + r] - first, (float)on);
            if (on)
                status = ad_seeds_run(&w, n, g, group_take, v);
        }
    }
    ad_seeds_end(&w);
    return status;
}

static ad_status sweep(struct sparse_call *c, struct sparse_values *v)
{
    const struct tape_sparse *s = v->pattern;
    ad_status status = AD_OK;
    uint32_t g = 0;
    int64_t first = 0;
    for (int i = 0; i < c->of.n && status == AD_OK; i++) {
        const uint32_t from = g;
        while (g < s->n_groups && s->order[s->group[g].first] < first + c->of.size[i])
            g++;
        if (g > from && c->of.y[i])
            status = groups_sweep(c, c->of.y[i], first, from, g, v);
        else
            for (int64_t k = s->row_start[first]; k < s->row_start[first + c->of.size[i]]; k++)
                ad_gradient_copy(v->to + (size_t)k * v->each, NULL, v->each);
        first += c->of.size[i];
    }
    if (status == AD_OK && v->outside)
        status =
            (ad_status)tape_fail(c->s.t, TAPE_ERROR_STATE, c->s.site,
                                 "%s: a derivative is not in the pattern, where an op has said "
                                 "that there is none: this is a defect of the library",
                                 c->s.what);
    return status;
}

/* All of the recording's own pattern is in the user's. */
static ad_status within(struct sparse_call *c, const struct tape_sparse *user)
{
    struct tape_sparse own;
    ad_status status = find(c, &own);
    if (status != AD_OK)
        return status;
    for (int64_t i = 0; i < own.m && status == AD_OK; i++) {
        int64_t at = user->row_start[i];
        for (int64_t k = own.row_start[i]; k < own.row_start[i + 1] && status == AD_OK; k++) {
            while (at < user->row_start[i + 1] && user->column[at] < own.column[k])
                at++;
            if (at == user->row_start[i + 1] || user->column[at] != own.column[k])
                status = (ad_status)tape_fail(
                    c->s.t, TAPE_ERROR_STATE, c->s.site,
                    "%s: y[%lld] depends on x[%lld], and has no such column in the pattern, which "
                    "was found for another recording",
                    c->s.what, (long long)i, (long long)own.column[k]);
        }
    }
    tape_sparse_free(&own);
    return status;
}

static ad_status values_find(struct sparse_call *c, const ad_sparse_pattern *pattern, void *values,
                             int64_t count)
{
    struct tape *t = c->s.t;
    ad_status status = record(c);
    int64_t m = 0;
    for (int i = 0; i < c->of.n; i++)
        m += c->of.size[i];
    if (status == AD_OK)
        status = ad_sparse_check(t, c->s.what, m, ad_variables(&c->s), pattern, c->kind, values,
                                 c->s.site);
    if (status == AD_OK && count != pattern->n_values)
        status = (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, c->s.site,
                                      "%s: values has %lld elements, the pattern has %lld",
                                      c->s.what, (long long)count, (long long)pattern->n_values);
    if (status != AD_OK)
        return status;
    const struct sparse_own *own = pattern->own_;
    if (own->sparse.hash != ad_depends_hash(&c->s, &c->of))
        status = within(c, &own->sparse);
    struct sparse_values v = {.pattern = &own->sparse,
                              .to = values,
                              .each =
                                  kernel_dtype_bytes(t->entries[c->s.leaf[0].value].array.dtype)};
    return status == AD_OK ? sweep(c, &v) : status;
}

/* ---- the calls ---- */

static ad_status call_pattern(struct sparse_call *c, ad_sparse_pattern *pattern)
{
    if (pattern)
        *pattern = (ad_sparse_pattern){0};
    ad_status status = ad_derivative_begin(&c->s, c->function);
    if (status == AD_OK) {
        status = pattern_find(c, pattern);
        ad_isolation_end(&c->s);
    }
    return status;
}

static ad_status call_values(struct sparse_call *c, const ad_sparse_pattern *pattern, void *values,
                             int64_t count)
{
    ad_status status = ad_derivative_begin(&c->s, c->function);
    if (status == AD_OK) {
        status = values_find(c, pattern, values, count);
        ad_isolation_end(&c->s);
    }
    if (status != AD_OK)
        ad_spoil_like(c->s.n, c->s.x, values, count);
    return status;
}

ad_status ad_jacobian_pattern_site(ad_tape tape, ad_function *function, int n, const ad_tensor *x,
                                   void *payload, ad_sparse_pattern *pattern, unsigned ad_line_)
{
    struct sparse_call c = {
        .s = {.tape = tape, .site = AD_HERE, .what = "jacobian_pattern", .n = n, .x = x},
        .kind = SPARSE_TENSOR_JACOBIAN,
        .function = function,
        .payload = payload};
    return call_pattern(&c, pattern);
}

ad_status ad_jacobian_sparse_site(ad_tape tape, ad_function *function, int n, const ad_tensor *x,
                                  void *payload, const ad_sparse_pattern *pattern, void *values,
                                  int64_t count, unsigned ad_line_)
{
    struct sparse_call c = {
        .s = {.tape = tape, .site = AD_HERE, .what = "jacobian_sparse", .n = n, .x = x},
        .kind = SPARSE_TENSOR_JACOBIAN,
        .function = function,
        .payload = payload};
    return call_values(&c, pattern, values, count);
}

ad_status ad_hessian_pattern_site(ad_tape tape, ad_function *function, int n, const ad_tensor *x,
                                  void *payload, ad_sparse_pattern *pattern, unsigned ad_line_)
{
    struct sparse_call c = {
        .s = {.tape = tape, .site = AD_HERE, .what = "hessian_pattern", .n = n, .x = x},
        .kind = SPARSE_TENSOR_HESSIAN,
        .function = function,
        .payload = payload};
    return call_pattern(&c, pattern);
}

ad_status ad_hessian_sparse_site(ad_tape tape, ad_function *function, int n, const ad_tensor *x,
                                 void *payload, const ad_sparse_pattern *pattern, void *values,
                                 int64_t count, unsigned ad_line_)
{
    struct sparse_call c = {
        .s = {.tape = tape, .site = AD_HERE, .what = "hessian_sparse", .n = n, .x = x},
        .kind = SPARSE_TENSOR_HESSIAN,
        .function = function,
        .payload = payload};
    return call_values(&c, pattern, values, count);
}
