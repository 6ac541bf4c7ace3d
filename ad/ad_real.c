/* ad_real.c: the scalar face: which tape a thread records on, leaves, sweeps, gradients.
 *
 * May include: ad_real.h, ad_internal.h, tape_statement.h, tape_trap.h, tape_value.h.
 * Statements themselves are written by the user's code (ad_real_expression.h); it calls here when
 * the cursor has no room.
 */
#include <tapescope/ad_real.h>

#include "ad_internal.h"

#include "tape_statement.h"
#include "tape_trap.h"
#include "tape_value.h"

#include <math.h>
#include <string.h>

#if AD_LINE_MACROS
#undef ad_real_gradient
#endif

__thread struct ad_statement_cursor ad_statement_cursor_;

/* The tape that the thread records on, and those that it goes back to. */
static _Thread_local struct tape *recording;

#define SAME(field)                                                                                \
    _Static_assert(offsetof(struct ad_statement_cursor, field) ==                                  \
                       offsetof(struct tape_cursor, field),                                        \
                   "one layout")
SAME(partial);
SAME(word);
SAME(result);
_Static_assert(sizeof(struct ad_statement_cursor) == sizeof(struct tape_cursor), "one layout");

/* ---- which tape ---- */

static void attach(struct tape *t)
{
    recording = t;
    if (t)
        tape_statement_attach(t, (struct tape_cursor *)(void *)&ad_statement_cursor_);
}

/* t is recorded on above what was so far. */
static ad_status push(struct tape *t, ad_tape tape, const char *what, struct tape_site site)
{
    if (!tape_statement_reserve_tags(t, t->n_marks + 3))
        return (ad_status)tape_fail_memory(t, site, what);
    if (!t->statements.slot)
        tape_statement_name(t, tape.slot, tape.generation);
    if (recording)
        tape_statement_detach(recording);
    t->statements.below = recording;
    t->statements.depth = 1;
    attach(t);
    return AD_OK;
}

void ad_real_forget(struct tape *t)
{
    if (t->statements.depth == 0)
        return;
    if (recording == t) {
        tape_statement_detach(t);
        attach(t->statements.below);
    } else {
        struct tape *above = recording;
        while (above->statements.below != t)
            above = above->statements.below;
        above->statements.below = t->statements.below;
    }
    t->statements.below = NULL;
    t->statements.depth = 0;
}

ad_status ad_record_begin_site(ad_tape tape, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct tape *t = ad_tape_find(tape.slot, tape.generation, "record_begin", site);
    if (!t)
        return ad_failed();
    if (t == recording)
        t->statements.depth++;
    else if (t->statements.depth > 0)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                    "record_begin: the thread records on this tape already, "
                                    "beneath another");
    else
        return push(t, tape, "record_begin", site);
    return AD_OK;
}

ad_status ad_record_end_site(ad_tape tape, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct tape *t = ad_tape_find(tape.slot, tape.generation, "record_end", site);
    if (!t)
        return ad_failed();
    if (t != recording)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                    "record_end: the thread does not record on this tape");
    if (--t->statements.depth == 0) {
        t->statements.depth = 1;
        ad_real_forget(t);
    }
    return AD_OK;
}

/* ---- what statements call ---- */

bool ad_statement_room_(uint32_t n, uint32_t low, double value)
{
    /* The statement and its call lie in one object, so less than 2 GiB apart. */
    const uintptr_t near = (uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0));
    const struct tape_site site = {
        low ? near + (uintptr_t)(intptr_t)(int32_t)(low - (uint32_t)near) : near, 0};
    if (recording && recording->trap)
        tape_trap_statement(recording, value, site);
    if (recording)
        return tape_statement_room(recording, n, site);
    ad_fail(AD_ERROR_STATE, site, "statement: the thread records on no tape");
    return false;
}

/* Why an operand is refused; in the tape that is recorded on if there is one. */
static void refuse(ad_real x, struct tape_site site)
{
    const uint32_t slot = x.tag >> 16;
    ad_status code = AD_ERROR_HANDLE;
    const char *why = "an operand was never set, or its tape was destroyed";
    struct tape *owner = slot ? __atomic_load_n(&ad_slots[slot].tape, __ATOMIC_RELAXED) : NULL;
    if (recording && slot == recording->statements.slot) {
        why = "an operand was dropped by a reset or a rewind";
    } else if (owner && __atomic_load_n(&ad_slots[slot].thread, __ATOMIC_RELAXED) != ad_thread) {
        code = AD_ERROR_THREAD;
        why = "an operand belongs to a tape of another thread";
    } else if (owner && recording) {
        code = AD_ERROR_TAPE;
        why = "an operand belongs to another tape than the one recorded on";
    } else if (owner) {
        code = AD_ERROR_STATE;
        why = "the thread records on no tape";
    }
    if (recording)
        tape_fail(recording, (enum tape_status)code, site, "statement: %s", why);
    else
        ad_fail(code, site, "statement: %s", why);
}

uint32_t ad_statement_operand_(ad_real x)
{
    struct tape_site site = {(uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)),
                             0};
    if (recording && tape_statement_holds(recording, x.index, x.tag))
        return x.index;
    refuse(x, site);
    return 0;
}

/* ---- leaves ---- */

static ad_status leaves(ad_tape tape, int64_t n, const double *values, ad_real *x,
                        struct tape_site site)
{
    /* More than there are indices is no number of elements: nothing is written. */
    for (int64_t i = 0; i < n && n <= UINT32_MAX && x && values; i++)
        x[i] = (ad_real){values[i], 0, 0};
    struct tape *t = ad_tape_find(tape.slot, tape.generation, "real_leaves", site);
    if (!t)
        return ad_failed();
    if (t->error.code != TAPE_OK)
        return (ad_status)t->error.code;
    if (n < 0 || (n > 0 && (!values || !x)))
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "real_leaves: %s",
                                    n < 0 ? "n is negative" : "a null pointer");
    if (recording && recording != t)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                    "real_leaves: the thread records on another tape: "
                                    "ad_record_begin comes first");
    ad_status status = recording ? AD_OK : push(t, tape, "real_leaves", site);
    uint32_t first;
    if (status == AD_OK && n > 0)
        status = (ad_status)tape_statement_leaves(t, n, values, site, &first);
    for (int64_t i = 0; i < n && status == AD_OK; i++) {
        x[i].index = first + (uint32_t)i;
        x[i].tag = (uint32_t)(t->statements.rest.result >> 32);
    }
    return status;
}

ad_status ad_real_leaves_site(ad_tape tape, int64_t n, const double *values, ad_real *x,
                              unsigned ad_line_)
{
    return leaves(tape, n, values, x, AD_HERE);
}

ad_real ad_real_leaf_site(ad_tape tape, double value, unsigned ad_line_)
{
    ad_real x = {value, 0, 0};
    leaves(tape, 1, &value, &x, AD_HERE);
    return x;
}

/* ---- sweeps ---- */

/* The tape, without an error; else NULL and *status. */
static struct tape *enter(ad_tape tape, const char *what, struct tape_site site, ad_status *status)
{
    struct tape *t = ad_tape_find(tape.slot, tape.generation, what, site);
    *status = t ? (ad_status)t->error.code : ad_failed();
    return *status == AD_OK ? t : NULL;
}

/* The indices of n values of the tape, in memory that the caller releases. 0: a constant. NULL:
 * *status says why. */
static uint32_t *indices(struct tape *t, int64_t n, const ad_real *x, const char *what,
                         const char *name, struct tape_site site, ad_status *status)
{
    *status = AD_OK;
    if (n < 0 || (n > 0 && !x)) {
        *status = (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: %s", what,
                                       n < 0 ? "a number is negative" : "a null pointer");
        return NULL;
    }
    uint32_t *index =
        (uint64_t)n < SIZE_MAX / sizeof *index - 1
            ? t->memory->resize(NULL, ((size_t)n + 1) * sizeof *index, t->memory->payload)
            : NULL;
    if (!index) {
        *status = (ad_status)tape_fail_memory(t, site, what);
        return NULL;
    }
    for (int64_t i = 0; i < n && *status == AD_OK; i++) {
        index[i] = x[i].index;
        if (x[i].index && !tape_statement_holds(t, x[i].index, x[i].tag))
            *status = (ad_status)tape_fail(
                t, TAPE_ERROR_HANDLE, site,
                "%s: %s[%lld] is no value of this tape: it was dropped, never set, or is another's",
                what, name, (long long)i);
    }
    if (*status == AD_OK)
        return index;
    t->memory->release(index, t->memory->payload);
    return NULL;
}

static ad_status backward(ad_tape tape, int64_t n, const ad_real *y, const double *seed,
                          const char *what, struct tape_site site)
{
    ad_status status;
    struct tape *t = enter(tape, what, site, &status);
    if (t && t->fixed.n_values)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                    "%s: not while a gradient check runs", what);
    uint32_t *index = t ? indices(t, n, y, what, "y", site, &status) : NULL;
    if (!index)
        return status;
    bool active = false;
    for (int64_t i = 0; i < n; i++)
        active = active || index[i];
    if (active)
        status = (ad_status)tape_sweep_statements(t, n, index, seed, site);
    else
        status = (ad_status)tape_fail(
            t, TAPE_ERROR_STATE, site,
            "%s: y does not depend on a leaf, or was computed under no_grad", what);
    t->memory->release(index, t->memory->payload);
    return status;
}

ad_status ad_real_backward_site(ad_tape tape, ad_real y, unsigned ad_line_)
{
    return backward(tape, 1, &y, NULL, "real_backward", AD_HERE);
}

ad_status ad_real_backward_seeds_site(ad_tape tape, int64_t n, const ad_real *y, const double *seed,
                                      unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    ad_status status;
    struct tape *t = enter(tape, "real_backward_seeds", site, &status);
    if (!t)
        return status;
    if (n > 0 && !seed)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site,
                                    "real_backward_seeds: seed is a null pointer");
    return backward(tape, n, y, seed, "real_backward_seeds", site);
}

static ad_status gradients(ad_tape tape, int64_t n, const ad_real *x, double *gradient,
                           struct tape_site site)
{
    static const char what[] = "real_gradient";
    ad_status status;
    struct tape *t = enter(tape, what, site, &status);
    if (!t)
        return status;
    if (n < 0 || (n > 0 && (!x || !gradient)))
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: %s", what,
                                    n < 0 ? "n is negative" : "a null pointer");
    for (int64_t i = 0; i < n; i++) {
        uint32_t value, element;
        if (x[i].index == 0 || !tape_statement_holds(t, x[i].index, x[i].tag))
            return (ad_status)tape_fail(
                t, TAPE_ERROR_HANDLE, site, "%s: x[%lld] is %s", what, (long long)i,
                x[i].index ? "no value of this tape: it was dropped, never set, or is another's"
                           : "a constant");
        if (!tape_statement_leaf(t, x[i].index, &value, &element))
            return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                        "%s: x[%lld] is no leaf; ad_real_jacobian has derivatives "
                                        "by what was computed",
                                        what, (long long)i);
        const struct tape_value *v = &t->entries[value];
        if (!tape_was_swept(t, v))
            return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                        "%s: no sweep since the tape was made, reset or rewound: "
                                        "ad_real_backward comes first",
                                        what);
        const double *sum = tape_gradient(t, value);
        gradient[i] = sum ? sum[element] : 0;
    }
    return AD_OK;
}

ad_status ad_real_gradients_site(ad_tape tape, int64_t n, const ad_real *x, double *gradient,
                                 unsigned ad_line_)
{
    return gradients(tape, n, x, gradient, AD_HERE);
}

double ad_real_gradient_site(ad_tape tape, ad_real x, unsigned ad_line_)
{
    double gradient = NAN;
    return gradients(tape, 1, &x, &gradient, AD_HERE) == AD_OK ? gradient : (double)NAN;
}

ad_status ad_real_jacobian_site(ad_tape tape, int64_t m, const ad_real *y, int64_t n,
                                const ad_real *x, double *jacobian, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    static const char what[] = "real_jacobian";
    ad_status status;
    struct tape *t = enter(tape, what, site, &status);
    if (!t)
        return status;
    if (m > 0 && n > 0 && !jacobian)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: jacobian is a null pointer",
                                    what);
    uint32_t *of = indices(t, m, y, what, "y", site, &status);
    uint32_t *by = of ? indices(t, n, x, what, "x", site, &status) : NULL;
    if (by)
        status = (ad_status)tape_jacobian_statements(t, m, of, n, by, jacobian, site);
    t->memory->release(by, t->memory->payload);
    t->memory->release(of, t->memory->payload);
    return status;
}
