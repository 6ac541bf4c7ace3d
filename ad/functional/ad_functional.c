/* ad_functional.c: a function's value and gradients in one call, and its pullback, kept. */
#include "ad_derivative.h"

#include <tapescope/ad_functional.h>

#include "tape_account.h"
#include "tape_observer.h"
#include "tape_value.h"

#include <math.h>
#include <string.h>

static double item(const struct kernel_array *y)
{
    return y->dtype == KERNEL_F32 ? (double)*(const float *)y->data : *(const double *)y->data;
}

/* One recording, one sweep. */
static ad_status value_and_gradient(struct ad_isolation *s, ad_function *function, void *payload,
                                    double *value, const struct ad_outputs *gradients)
{
    uint32_t y = 0;
    ad_status status = ad_outputs_check(s, gradients, 1);
    if (status == AD_OK)
        status = ad_isolation_call(s, function, payload, &y);
    if (status == AD_OK)
        status = ad_result_check(s, y, true);
    if (status != AD_OK)
        return status;
    const double result = item(&s->t->entries[y].array);
    ad_isolation_clear(s); /* the function may have swept by itself */
    status = (ad_status)tape_sweep(s->t, y, 0, s->site);
    if (status != AD_OK)
        return status;
    ad_outputs_take(s, gradients);
    if (value)
        *value = result;
    return AD_OK;
}

ad_status ad_value_and_gradient_site(ad_tape tape, ad_function *function, int n, const ad_tensor *x,
                                     void *payload, double *value, void *const *gradients,
                                     const int64_t *counts, unsigned ad_line_)
{
    const struct ad_outputs out = {"gradients", gradients, counts};
    struct ad_isolation s = {
        .tape = tape, .site = AD_HERE, .what = "value_and_gradient", .n = n, .x = x};
    ad_status status = ad_derivative_begin(&s, function);
    if (status == AD_OK) {
        status = value_and_gradient(&s, function, payload, value, &out);
        ad_isolation_end(&s);
    }
    if (status != AD_OK) {
        ad_outputs_spoil(n, x, &out);
        if (value)
            *value = (double)NAN;
    }
    return status;
}

/* ---- pullbacks ---- */

/* What the tape keeps of a pullback: the first value behind its mark, a constant of integers that
 * holds the result and x[n] as handles. So it goes with the recording, whoever drops that. */
enum { HANDLE_WORDS = sizeof(ad_tensor) / sizeof(int64_t) };
_Static_assert(sizeof(ad_tensor) % sizeof(int64_t) == 0, "a handle is whole words");

static ad_tensor *kept_handles(const struct tape *t, uint32_t kept)
{
    return (ad_tensor *)t->entries[kept].array.data;
}

static ad_status keep(struct ad_isolation *s, uint32_t *kept)
{
    struct tape *t = s->t;
    const struct kernel_shape shape = {.dtype = KERNEL_I64,
                                       .rank = 1,
                                       .extent = {(s->n + (int64_t)1) * HANDLE_WORDS},
                                       .same_as = -1,
                                       .view_of = -1};
    const struct tape_point point = tape_point_take(t);
    const uint32_t row = tape_account_row(t, s->site, s->what);
    struct tape_value *v = tape_value_make(t, &shape, NULL, row);
    if (!v) {
        tape_point_undo(t, point);
        return (ad_status)tape_fail_memory(t, s->site, s->what);
    }
    tape_account_value(t, v);
    tape_account_called(t, row);
    *kept = tape_value_index(t, v);
    memcpy(kept_handles(t, *kept) + 1, s->x, (size_t)s->n * sizeof *s->x);
    return AD_OK;
}

ad_pullback ad_pullback_begin_site(ad_tape tape, ad_function *function, int n, const ad_tensor *x,
                                   void *payload, unsigned ad_line_)
{
    struct ad_isolation s = {
        .tape = tape, .site = AD_HERE, .what = "pullback_begin", .n = n, .x = x};
    uint32_t y = 0, kept = 0;
    ad_status status = ad_derivative_begin(&s, function);
    struct tape *t = s.t;
    const ad_pullback none = {tape.slot, tape.generation, 0, 0};
    if (!t || status != AD_OK)
        return none;
    status = keep(&s, &kept);
    if (status == AD_OK)
        status = ad_isolation_call(&s, function, payload, &y);
    if (status == AD_OK)
        status = ad_result_check(&s, y, false);
    if (status != AD_OK) {
        ad_isolation_end(&s);
        return none;
    }
    kept_handles(t, kept)[0] = ad_handle_of(t, tape.slot, tape.generation, y);
    ad_isolation_end_keeping(&s);
    return (ad_pullback){tape.slot, tape.generation, s.level, t->marks[s.level].generation};
}

/* The tape of a pullback that lives; else NULL, and *status says why. */
static struct tape *find(ad_pullback p, const char *what, struct tape_site site, ad_status *status)
{
    struct tape *t = ad_tape_find(p.tape, p.tape_generation, what, site);
    const char *why = NULL;
    if (!t) {
        *status = ad_failed();
        return NULL;
    }
    *status = AD_OK;
    if (p.generation == 0)
        why = "the pullback's begin failed";
    else if (p.level >= t->n_marks || t->marks[p.level].generation != p.generation)
        why = "the pullback was ended, or dropped by a reset or a rewind; the call is";
    else if (p.level < t->fixed.n_marks)
        why = "the pullback is older than the function that is differentiated now";
    if (why)
        *status = t->error.code
                      ? (ad_status)t->error.code
                      : (ad_status)tape_fail(t, TAPE_ERROR_STATE, site, "%s: %s", what, why);
    return why ? NULL : t;
}

/* Its handles, the first that of its result, and *n of its leaves. NULL: it does not live, or the
 * tape is in error, which *status says. */
static const ad_tensor *find_handles(ad_pullback p, const char *what, struct tape_site site,
                                     struct tape **tape, int *n, ad_status *status)
{
    struct tape *t = *tape = find(p, what, site, status);
    if (!t || (*status = (ad_status)t->error.code) != AD_OK)
        return NULL;
    const uint32_t kept = t->marks[p.level].n_values;
    const ad_tensor *handles = kept_handles(t, kept);
    if (!handles) /* a frame around it has ended */
        *status = (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                       "%s: the pullback was released by the end of a frame", what);
    *n = (int)(t->entries[kept].array.size / HANDLE_WORDS) - 1;
    return handles;
}

ad_tensor ad_pullback_result_site(ad_pullback pullback, unsigned ad_line_)
{
    struct tape *t;
    ad_status status;
    int n;
    const ad_tensor *handles = find_handles(pullback, "pullback_result", AD_HERE, &t, &n, &status);
    return handles ? handles[0] : (ad_tensor){pullback.tape, pullback.tape_generation, 0, 0};
}

/* The seed as a value; 0: ones. */
static ad_status seed_borrow(struct ad_isolation *s, uint32_t y, const void *seed, int64_t n_seed,
                             uint32_t *value)
{
    struct tape *t = s->t;
    const struct kernel_array *a = &t->entries[y].array;
    char text[96];
    *value = 0;
    kernel_describe(a, text, sizeof text);
    if (!seed && a->size != 1)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, s->site,
                                    "%s: seed is a null pointer, and the result is %s", s->what,
                                    text);
    if (!seed)
        return AD_OK;
    if (n_seed != a->size)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, s->site,
                                    "%s: the seed has %lld elements, the result is %s", s->what,
                                    (long long)n_seed, text);
    return (ad_status)tape_borrow(t, a->dtype, a->rank, a->shape, seed, TAPE_GIVEN_CONSTANT,
                                  s->site, value);
}

static ad_status pullback_call(struct ad_isolation *s, ad_tensor result, const void *seed,
                               int64_t n_seed, const struct ad_outputs *gradients)
{
    uint32_t seed_value;
    const uint32_t y = ad_value_on(s->t, result, s->site, "%s: the result", s->what);
    ad_status status = y ? ad_outputs_check(s, gradients, 1) : (ad_status)s->t->error.code;
    if (status == AD_OK)
        status = seed_borrow(s, y, seed, n_seed, &seed_value);
    if (status == AD_OK)
        status = (ad_status)tape_sweep(s->t, y, seed_value, s->site);
    if (status == AD_OK)
        ad_outputs_take(s, gradients);
    return status;
}

ad_status ad_pullback_call_site(ad_pullback pullback, const void *seed, int64_t n_seed,
                                void *const *gradients, const int64_t *counts, unsigned ad_line_)
{
    const struct ad_outputs out = {"gradients", gradients, counts};
    struct ad_isolation s = {.tape = {pullback.tape, pullback.tape_generation},
                             .site = AD_HERE,
                             .what = "pullback_call"};
    ad_status status;
    const ad_tensor *handles = find_handles(pullback, s.what, s.site, &s.t, &s.n, &status);
    if (!handles)
        return status;
    const struct tape_mark begin = s.t->marks[pullback.level];
    s.x = handles + 1;
    s.older = &begin;
    status = ad_isolation_begin(&s);
    if (status == AD_OK) {
        status = pullback_call(&s, handles[0], seed, n_seed, &out);
        ad_isolation_end(&s);
    }
    if (status != AD_OK)
        ad_outputs_spoil(s.n, s.x, &out);
    return status;
}

ad_status ad_seed_check_site(ad_pullback pullback, int elements, unsigned ad_line_)
{
    const struct tape_site site = AD_HERE;
    struct tape *t;
    ad_status status;
    int n;
    const ad_tensor *handles = find_handles(pullback, "pullback_call", site, &t, &n, &status);
    return handles
               ? ad_elements_fail(handles[0], "pullback_call", "the result", "seed", elements, site)
               : status;
}

ad_status ad_pullback_end_site(ad_pullback pullback, unsigned ad_line_)
{
    ad_status status;
    struct tape *t = find(pullback, "pullback_end", AD_HERE, &status);
    if (!t)
        return status;
    ad_isolation_drop_level(t, pullback.level);
    return AD_OK;
}
