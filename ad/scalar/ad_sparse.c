/* ad_sparse.c: patterns of sparse matrices, and sparse Jacobians of numbers, as the user sees them.
 *
 * Invariant: a pattern's memory is that of struct sparse_own behind `own_`, which never changes
 * once it is found.
 */
#include "ad_sparse_pattern.h"

#include "ad_internal.h"

#include "tape_bridge.h"
#include "tape_observer.h"
#include "tape_statement.h"
#include "tape_value.h"

#include <math.h>

/* ---- patterns ---- */

void ad_sparse_free(ad_sparse_pattern *pattern)
{
    struct sparse_own *own = pattern ? pattern->own_ : NULL;
    if (own) {
        const struct tape_memory memory = own->sparse.memory;
        tape_sparse_free(&own->sparse);
        memory.release(own, memory.payload);
    }
    if (pattern)
        *pattern = (ad_sparse_pattern){0};
}

void ad_sparse_give(struct tape *t, struct tape_site site, ad_sparse_pattern *pattern,
                    struct sparse_own *own)
{
    const struct tape_sparse *s = &own->sparse;
    const bool hessian = own->kind == SPARSE_HESSIAN || own->kind == SPARSE_TENSOR_HESSIAN;
    const bool tensors = own->kind == SPARSE_TENSOR_JACOBIAN || own->kind == SPARSE_TENSOR_HESSIAN;
    *pattern = (ad_sparse_pattern){s->m, s->n, s->n_values, s->row_start, s->column, own};
    tape_observer_pattern(
        t, &(struct tape_pattern){.pc = site.pc,
                                  .line = site.line,
                                  .kind = hessian ? TAPE_PATTERN_HESSIAN : TAPE_PATTERN_JACOBIAN,
                                  .m = s->m,
                                  .n = s->n,
                                  .row_start = s->row_start,
                                  .column = s->column,
                                  .coloured = tensors,
                                  .colours = tensors ? s->n_groups : 0});
}

void ad_sparse_spoil(const ad_sparse_pattern *pattern, double *values)
{
    const int64_t n = pattern && values ? pattern->n_values : 0;
    for (int64_t k = 0; k < n; k++)
        values[k] = (double)NAN;
}

ad_status ad_sparse_refuse(struct tape *t, const char *what, struct tape_site site, const char *why)
{
    return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: %s", what, why);
}

ad_status ad_sparse_check(struct tape *t, const char *what, int64_t m, int64_t n,
                          const ad_sparse_pattern *pattern, enum sparse_kind kind,
                          const double *values, struct tape_site site)
{
    static const char *const names[] = {"a Jacobian of numbers", "a Hessian of numbers",
                                        "a Jacobian of tensors", "a Hessian of tensors"};
    if (!pattern || !pattern->own_)
        return ad_sparse_refuse(t, what, site, "the pattern was never found, or was freed");
    const struct sparse_own *own = pattern->own_;
    if (own->kind != kind)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: the pattern is of %s", what,
                                    names[own->kind]);
    if (pattern->m != m || pattern->n != n)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site,
                                    "%s: the pattern is of [%lld,%lld], y and x make [%lld,%lld]",
                                    what, (long long)pattern->m, (long long)pattern->n,
                                    (long long)m, (long long)n);
    if (pattern->n_values > 0 && !values)
        return ad_sparse_refuse(t, what, site, "values is a null pointer");
    return AD_OK;
}

uint32_t *ad_sparse_numbers(struct tape *t, const char *what, int64_t m, const ad_real *y,
                            int64_t n, const ad_real *x, struct tape_site site, ad_status *status)
{
    const bool fits = m <= UINT32_MAX && n <= UINT32_MAX;
    bool active;
    *status = AD_OK;
    if (m < 0 || n < 0 || (m > 0 && !y) || (n > 0 && !x))
        *status = ad_sparse_refuse(t, what, site,
                                   m < 0 || n < 0 ? "a number is negative" : "a null pointer");
    else if (!fits)
        *status = ad_sparse_refuse(t, what, site, "more numbers than a tape has");
    if (*status == AD_OK)
        *status = (ad_status)tape_statement_check(t, what, "y", m, (const struct tape_real *)y,
                                                  site, &active);
    if (*status == AD_OK)
        *status = (ad_status)tape_statement_check(t, what, "x", n, (const struct tape_real *)x,
                                                  site, &active);
    for (int64_t i = 0; *status == AD_OK && i < n; i++)
        if (x[i].index == 0)
            *status = ad_real_refuse_constant(t, what, "x", i, "real", site);
    if (*status != AD_OK)
        return NULL;
    uint32_t *index =
        t->memory->resize(NULL, (size_t)(m + n + 1) * sizeof *index, t->memory->payload);
    if (!index)
        *status = (ad_status)tape_fail_memory(t, site, what);
    for (int64_t i = 0; y && i < m && index; i++)
        index[i] = y[i].index;
    for (int64_t i = 0; x && i < n && index; i++)
        index[m + i] = x[i].index;
    return index;
}

/* ---- Jacobians ---- */

static ad_status jacobian_pattern(ad_tape tape, int64_t m, const ad_real *y, int64_t n,
                                  const ad_real *x, ad_sparse_pattern *pattern,
                                  struct tape_site site)
{
    static const char what[] = "real_jacobian_pattern";
    ad_status status;
    struct tape *t = ad_real_enter(tape, what, site, &status);
    if (!t)
        return status;
    if (!pattern)
        return ad_sparse_refuse(t, what, site, "pattern is a null pointer");
    uint32_t *index = ad_sparse_numbers(t, what, m, y, n, x, site, &status);
    if (!index)
        return status;
    struct sparse_own *own = t->memory->resize(NULL, sizeof *own, t->memory->payload);
    status = own ? (ad_status)tape_sparse_find(t, m, index, n, index + m, &own->sparse, site)
                 : (ad_status)tape_fail_memory(t, site, what);
    if (own && status == AD_OK) {
        own->kind = SPARSE_JACOBIAN;
        ad_sparse_give(t, site, pattern, own);
    } else if (own)
        t->memory->release(own, t->memory->payload);
    t->memory->release(index, t->memory->payload);
    return status;
}

ad_status ad_real_jacobian_pattern_site(ad_tape tape, int64_t m, const ad_real *y, int64_t n,
                                        const ad_real *x, ad_sparse_pattern *pattern,
                                        unsigned ad_line_)
{
    if (pattern)
        *pattern = (ad_sparse_pattern){0};
    return jacobian_pattern(tape, m, y, n, x, pattern, AD_HERE);
}

static ad_status jacobian_values(ad_tape tape, int64_t m, const ad_real *y, int64_t n,
                                 const ad_real *x, const ad_sparse_pattern *pattern, double *values,
                                 struct tape_site site)
{
    static const char what[] = "real_jacobian_sparse";
    ad_status status;
    struct tape *t = ad_real_enter(tape, what, site, &status);
    if (!t)
        return status;
    status = ad_sparse_check(t, what, m, n, pattern, SPARSE_JACOBIAN, values, site);
    if (status != AD_OK)
        return status;
    uint32_t *index = ad_sparse_numbers(t, what, m, y, n, x, site, &status);
    if (!index)
        return status;
    const struct sparse_own *own = pattern->own_;
    status = (ad_status)tape_sparse_values(t, index, index + m, &own->sparse, values, site);
    t->memory->release(index, t->memory->payload);
    return status;
}

ad_status ad_real_jacobian_sparse_site(ad_tape tape, int64_t m, const ad_real *y, int64_t n,
                                       const ad_real *x, const ad_sparse_pattern *pattern,
                                       double *values, unsigned ad_line_)
{
    const ad_status status = jacobian_values(tape, m, y, n, x, pattern, values, AD_HERE);
    if (status != AD_OK)
        ad_sparse_spoil(pattern, values);
    return status;
}
