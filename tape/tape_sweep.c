/* tape_sweep.c: the reverse sweep, and the gradients it leaves.
 *
 * May include: tape_adjoints.h, tape_bridge.h, tape_checkpoint.h, tape_fork.h, tape_guard.h,
 * tape_inplace.h, tape_lent.h, tape_now.h, tape_preaccumulate.h, tape_real_checkpoint.h,
 * tape_release.h, tape_residual.h, tape_scope.h, tape_segment.h, tape_statement_sweep.h,
 * tape_trap.h.
 *
 * Adjoints of intermediates live only within one sweep, so that several sweeps on one recording do
 * not see each other; gradients of leaves and retained values grow with each.
 */
#include "tape_adjoints.h"
#include "tape_bridge.h"
#include "tape_checkpoint.h"
#include "tape_fork.h"
#include "tape_guard.h"
#include "tape_inplace.h"
#include "tape_lent.h"
#include "tape_now.h"
#include "tape_preaccumulate.h"
#include "tape_real_checkpoint.h"
#include "tape_release.h"
#include "tape_residual.h"
#include "tape_scope.h"
#include "tape_segment.h"
#include "tape_statement_sweep.h"
#include "tape_trap.h"

#include <string.h>

/* Fills `buffer` with the seed, or with ones. */
static void fill_seed(const struct tape *t, const struct tape_value *y, uint32_t seed, void *buffer)
{
    struct kernel_array a = y->array;
    a.data = buffer;
    if (seed)
        tape_read(t, seed, buffer);
    else
        tape_fill_ones(&a);
}

/* The adjoint of y receives the seed. */
static bool plant(struct tape *t, struct tape_value *y, uint32_t seed)
{
    bool fresh;
    if (!tape_adjoint_buffer(t, y, &fresh))
        return false;
    if (fresh) {
        fill_seed(t, y, seed, y->adjoint);
    } else { /* y is a leaf that has a gradient already: dy/dy is added */
        uint64_t n = tape_value_bytes(y);
        void *copy = tape_arena_buffer(&t->arena, n);
        if (!copy)
            return false;
        tape_account_buffer(t, y->row, n);
        fill_seed(t, y, seed, copy);
        tape_add_into(y, y->adjoint, copy, false);
        tape_arena_free(&t->arena, copy, n);
        tape_account_free(t, y->row, n);
    }
    tape_adjoint_set(t, y);
    return true;
}

/* The sweep has passed the op that made v: its adjoint is complete. */
static void harvest(struct tape *t, struct tape_value *v)
{
    if ((v->flags & TAPE_RETAIN) && v->adjoint) {
        struct tape_retained *kept = tape_retained_of(t, v);
        tape_add_into(v, kept->buffer, v->adjoint, kept->epoch != t->gradient_epoch);
        kept->epoch = t->gradient_epoch;
    }
}

static bool has_adjoint(const struct tape *t, struct tape_record *r)
{
    const uint32_t *out = tape_record_out(r);
    for (int o = 0; o < r->n_out; o++)
        if (t->entries[out[o]].adjoint)
            return true;
    return false;
}

static void drop_adjoints(struct tape *t, struct tape_record *r)
{
    const uint32_t *out = tape_record_out(r);
    for (int o = 0; o < r->n_out; o++)
        tape_adjoint_free(t, &t->entries[out[o]]);
}

/* Charges the time since *stamp to a row; stamps are chained, so that nothing is left out. */
static void account(struct tape *t, uint32_t row, uint64_t *stamp)
{
    uint64_t now = tape_clock(t);
    TAPE_ADD(tape_row(t, row)->backward_ticks, now - *stamp);
    TAPE_ADD(t->ledger.backward_ticks, now - *stamp);
    *stamp = now;
}

/* The same for the record that the sweep has passed. */
static void account_record(struct tape *t, const struct tape_record *r, uint64_t *stamp)
{
    const uint64_t start = *stamp;
    account(t, r->row, stamp);
    TAPE_ADD(tape_row(t, r->row)->backward_calls, 1);
    tape_account_event(t, TAPE_EVENT_BACKWARD, r->row, r, start, *stamp, false);
    tape_account_flush(t, t->hook, *stamp);
}

/* Whether r is a record whose results are scalars; if it is, its part of the sweep is done. */
static bool scalars(struct tape *t, struct tape_record *r, uint64_t *stamp, bool *ok)
{
    if (r->n_out > 0)
        return false;
    struct tape_statements *s = &t->statements;
    *ok = true;
    if (!s->adjoint)
        return true;
    if (r->op == &tape_statement_op)
        *ok = tape_run_sweep(t, tape_run_of(r), s->adjoint, s->width,
                             s->adjoint + (size_t)tape_statement_next(t) * s->width);
    else if (r->op == &tape_join_op)
        *ok = tape_join_pullback(t, r, stamp);
    else if (r->op == &tape_real_checkpoint_op)
        *ok = tape_real_checkpoint_pullback(t, r, stamp);
    else if (!s->reading)
        *ok = tape_bridge_to_value(t, r) && (!t->trap || tape_trap_adjoints(t, r));
    if (t->hook)
        account_record(t, r, stamp);
    return true;
}

/* Of a record whose results are tensors. */
static bool pullback(struct tape *t, struct tape_record *r, uint64_t *stamp)
{
    if (r->op == &tape_checkpoint_op)
        return tape_checkpoint_pullback(t, r, stamp);
    if (r->n_in > 0)
        return tape_inplace_pullback(t, r);
    tape_bridge_to_scalars(t, r);
    return true;
}

/* Runs the pullbacks from the last record on, up to `end`. Returns the record that failed, or
 * UINT32_MAX; no adjoint of a tensor is left then. release: the row of a sweep that gives up what
 * lies behind it, or TAPE_ROW_NONE. */
static uint32_t pull(struct tape *t, uint32_t end, uint32_t release, uint64_t *stamp)
{
    for (uint32_t at = t->last_record; at != end;) {
        struct tape_record *r = tape_record_at(t, at);
        bool ok = true;
        tape_now_row(t, r->row);
        if (scalars(t, r, stamp, &ok)) {
            if (!ok)
                return at;
        } else if (has_adjoint(t, r)) {
            for (int o = 0; o < r->n_out; o++)
                harvest(t, &t->entries[tape_record_out(r)[o]]);
            if (!pullback(t, r, stamp) || (t->trap && !tape_trap_adjoints(t, r)))
                return at;
            drop_adjoints(t, r);
            if (__builtin_expect(t->hook != NULL, 0)) {
                tape_residual_read(t, r);
                account_record(t, r, stamp);
            }
        }
        if (release != TAPE_ROW_NONE)
            tape_release_passed(t, r, release);
        at = r->previous;
    }
    return UINT32_MAX;
}

static uint32_t sweep(struct tape *t, uint32_t end, uint32_t release, uint64_t *stamp)
{
    const uint32_t failed = pull(t, end, release, stamp);
    for (uint32_t at = failed; at != UINT32_MAX; at = tape_record_at(t, at)->previous)
        drop_adjoints(t, tape_record_at(t, at));
    return failed;
}

bool tape_sweep_behind(struct tape *t, uint32_t end, uint64_t *stamp)
{
    const uint32_t failed = pull(t, end, TAPE_ROW_NONE, stamp);
    if (failed == UINT32_MAX)
        return true;
    for (uint32_t at = failed; at != end; at = tape_record_at(t, at)->previous)
        drop_adjoints(t, tape_record_at(t, at));
    return false;
}

bool tape_sweep_fork(struct tape *child, uint64_t *stamp)
{
    return sweep(child, UINT32_MAX, TAPE_ROW_NONE, stamp) == UINT32_MAX;
}

static void tell_watch(void)
{
    void (*watch)(void) = __atomic_load_n(&tape_sweep_watch, __ATOMIC_RELAXED);
    if (__builtin_expect(watch != NULL, 0))
        watch();
}

/* The end of a sweep, which failed at a record or did not. begun: when it began. */
static enum tape_status conclude(struct tape *t, bool ok, uint32_t own, const char *what,
                                 struct tape_site site, uint64_t begun, uint64_t *stamp)
{
    if (t->hook) {
        account(t, own, stamp);
        tape_scope_swept(*stamp - begun);
        tape_account_event(t, TAPE_EVENT_SWEEP, own, NULL, begun, *stamp, false);
        TAPE_ADD(tape_row(t, own)->calls, 1);
        TAPE_ADD(tape_row(t, own)->backward_calls, 1);
        TAPE_ADD(t->ledger.sweeps, 1);
    }
    if (ok) {
        t->sweeps++;
        t->phase++;
        t->swept_epoch = t->gradient_epoch;
        tell_watch();
        return TAPE_OK;
    }
    /* Half a sweep is in the gradients: none is better than a wrong one. */
    t->gradient_epoch++;
    return t->error.code ? t->error.code : tape_fail_memory(t, site, what);
}

/* Nothing that the sweep from y, or from the roots among statements, reads is gone or changed. */
static enum tape_status verify(struct tape *t, uint32_t y, const char *what, struct tape_site site)
{
    enum tape_status status = tape_release_verify(t, y, TAPE_NEEDS_GRADIENT, what, site);
    if (status == TAPE_OK)
        status = tape_guard_verify(t, y, TAPE_NEEDS_GRADIENT, what, site);
    return status;
}

static enum tape_status sweep_from(struct tape *t, uint32_t y, uint32_t seed, bool release,
                                   struct tape_site site)
{
    const uint64_t begun = tape_clock(t);
    uint64_t stamp = begun;
    tape_statement_settle(t);
    /* What is no pullback's is the sweep's own: the call, the seed, the end. */
    const char *what = release ? tape_release_sweep_op : "backward";
    TAPE_DOING(t, TAPE_PHASE_BACKWARD, site, what);
    if (t->sections.n > 0)
        return tape_section_refuse(t, what, site);
    uint32_t own = tape_now_own(t, site, what), failed = UINT32_MAX;
    if (t->trap && tape_trap_begin(t, seed, what, site) != TAPE_OK)
        return t->error.code;
    const enum tape_status status = verify(t, y, what, site);
    if (status != TAPE_OK && status != TAPE_ERROR_MEMORY)
        return status;
    const bool ready =
        status == TAPE_OK && (t->statements.n_gathers == 0 || tape_adjoints_begin(t, 1, own));
    if (!ready || (release && !tape_release_plan(t, y))) {
        if (t->statements.adjoint)
            tape_adjoints_end(t);
        return conclude(t, false, own, what, site, begun, &stamp);
    }
    tape_lent_begin(t);
    const bool planted = plant(t, &t->entries[y], seed);
    if (t->hook)
        account(t, own, &stamp);
    if (planted)
        failed = sweep(t, tape_bridge_oldest(t), release ? own : TAPE_ROW_NONE, &stamp);
    tape_now_row(t, own);
    if (t->statements.adjoint)
        tape_adjoints_end(t);
    if (planted && failed == UINT32_MAX)
        tape_lent_add(t);
    if (release)
        tape_release_end(t, planted ? failed : t->last_record, own);
    return conclude(t, planted && failed == UINT32_MAX, own, what, site, begun, &stamp);
}

/* What verify does, for a sweep from n statements. */
static enum tape_status verify_roots(struct tape *t, int64_t n, const uint32_t *y, const char *what,
                                     struct tape_site site)
{
    struct tape_statements *s = &t->statements;
    if (s->n_elements == 0)
        return TAPE_OK;
    s->root = y;
    s->n_roots = n;
    const enum tape_status status = verify(t, 0, what, site);
    s->n_roots = 0;
    return status;
}

static enum tape_status sweep_statements(struct tape *t, int64_t n, const uint32_t *y,
                                         const double *seed, struct tape_site site)
{
    static const char what[] = "real_backward";
    if (t->sections.n > 0)
        return tape_section_refuse(t, what, site);
    TAPE_DOING(t, TAPE_PHASE_BACKWARD, site, what);
    const uint64_t begun = tape_clock(t);
    uint64_t stamp = begun;
    const uint32_t own = tape_now_own(t, site, what);
    tape_statement_settle(t);
    const enum tape_status status = verify_roots(t, n, y, what, site);
    if (status != TAPE_OK)
        return status == TAPE_ERROR_MEMORY ? conclude(t, false, own, what, site, begun, &stamp)
                                           : status;
    if (t->trap && (tape_trap_begin(t, 0, what, site) != TAPE_OK ||
                    (seed && tape_trap_numbers(t, what, "seed", n, seed, site) != TAPE_OK)))
        return t->error.code;
    tape_lent_begin(t);
    double *adjoint = tape_adjoints_begin(t, 1, own);
    for (int64_t i = 0; i < n && adjoint; i++)
        adjoint[y[i]] += seed ? seed[i] : 1;
    if (t->hook)
        account(t, own, &stamp);
    const bool ok = adjoint && sweep(t, UINT32_MAX, TAPE_ROW_NONE, &stamp) == UINT32_MAX;
    tape_now_row(t, own);
    if (adjoint)
        tape_adjoints_end(t);
    if (ok)
        tape_lent_add(t);
    return conclude(t, ok, own, what, site, begun, &stamp);
}

static enum tape_status jacobian_of(struct tape *t, int64_t m, const uint32_t *y, int64_t n,
                                    const uint32_t *x, double *jacobian, struct tape_site site)
{
    static const char what[] = "real_jacobian";
    if (t->sections.n > 0)
        return tape_section_refuse(t, what, site);
    const bool crosses = tape_bridge_crosses(t);
    TAPE_DOING(t, TAPE_PHASE_BACKWARD, site, what);
    const uint64_t begun = tape_clock(t);
    uint64_t stamp = begun;
    const uint32_t own = tape_now_own(t, site, what);
    tape_statement_settle(t);
    const enum tape_status status = crosses ? verify_roots(t, m, y, what, site) : TAPE_OK;
    if (status != TAPE_OK)
        return status;
    if (t->trap && tape_trap_begin(t, 0, what, site) != TAPE_OK)
        return t->error.code;
    if (crosses)
        tape_bridge_hush(t);
    else
        t->statements.reading = true;
    bool ok = true;
    uint64_t sweeps = 0;
    uint32_t width = crosses ? 1 : TAPE_MAX_WIDTH; /* of a tensor there is one adjoint at a time */
    for (int64_t i = 0; i < m && ok; i += width) {
        while (width > 1 && width / 2 >= m - i)
            width /= 2;
        double *adjoint = tape_adjoints_begin(t, width, own);
        ok = adjoint != NULL;
        if (!ok)
            break;
        const int64_t rows = m - i < width ? m - i : width;
        for (int64_t k = 0; k < rows; k++)
            adjoint[(size_t)y[i + k] * width + (size_t)k] = 1;
        ok = sweep(t, UINT32_MAX, TAPE_ROW_NONE, &stamp) == UINT32_MAX;
        sweeps++;
        tape_now_row(t, own);
        adjoint = t->statements.adjoint;
        /* Index 0 is that of constants, and gathers what statements with constants give it. */
        memset(adjoint, 0, width * sizeof *adjoint);
        for (int64_t j = 0; j < n; j++)
            for (int64_t k = 0; k < rows; k++)
                jacobian[(i + k) * n + j] = adjoint[(size_t)x[j] * width + (size_t)k];
        tape_adjoints_end(t);
    }
    t->statements.reading = false;
    if (crosses)
        tape_bridge_unhush(t);
    if (t->hook) {
        account(t, own, &stamp);
        tape_scope_swept(stamp - begun);
        tape_account_event(t, TAPE_EVENT_SWEEP, own, NULL, begun, stamp, false);
        TAPE_ADD(tape_row(t, own)->calls, 1);
        TAPE_ADD(tape_row(t, own)->backward_calls, 1);
        TAPE_ADD(t->ledger.sweeps, sweeps);
    }
    if (ok) {
        tell_watch();
        return TAPE_OK;
    }
    return t->error.code ? t->error.code : tape_fail_memory(t, site, what);
}

/* From the begin of a sweep to its end one observer, or none, sees all of it. */
static enum tape_phase enter(struct tape *t, struct tape_site site)
{
    t->swept_from = site.pc;
    tape_observed(t);
    tape_residual_cause(t, TAPE_BY_SWEEP);
    return tape_activity_begin(t, TAPE_PHASE_BACKWARD, NULL);
}

static enum tape_status leave(struct tape *t, enum tape_phase before, enum tape_status status)
{
    tape_activity_begin(t, before, NULL);
    tape_residual_cause(t, TAPE_BY_CALL);
    return status;
}

enum tape_status tape_sweep(struct tape *t, uint32_t y, uint32_t seed, struct tape_site site)
{
    const enum tape_phase before = enter(t, site);
    return leave(t, before, sweep_from(t, y, seed, false, site));
}

enum tape_status tape_sweep_release(struct tape *t, uint32_t y, uint32_t seed,
                                    struct tape_site site)
{
    const enum tape_phase before = enter(t, site);
    return leave(t, before, sweep_from(t, y, seed, true, site));
}

enum tape_status tape_sweep_statements(struct tape *t, int64_t n, const uint32_t *y,
                                       const double *seed, struct tape_site site)
{
    const enum tape_phase before = enter(t, site);
    return leave(t, before, sweep_statements(t, n, y, seed, site));
}

enum tape_status tape_jacobian_statements(struct tape *t, int64_t m, const uint32_t *y, int64_t n,
                                          const uint32_t *x, double *jacobian,
                                          struct tape_site site)
{
    const enum tape_phase before = enter(t, site);
    return leave(t, before, jacobian_of(t, m, y, n, x, jacobian, site));
}

bool tape_was_swept(const struct tape *t, const struct tape_value *v)
{
    if (v->flags & TAPE_RETAIN)
        return tape_retained_of(t, v)->sweeps != t->sweeps;
    if ((v->flags & TAPE_TAKEN_BACK) && tape_lent_lost(t, tape_value_index(t, v)))
        return false;
    return (v->flags & TAPE_USER_GRADIENT) || t->swept_epoch == t->gradient_epoch;
}

void tape_zero_gradients(struct tape *t)
{
    t->gradient_epoch++;
    t->swept_epoch = t->gradient_epoch;
}

const void *tape_gradient(const struct tape *t, uint32_t x)
{
    const struct tape_value *v = &t->entries[x];
    if (v->flags & TAPE_LEAF)
        return v->flags & TAPE_USER_GRADIENT ? tape_lent_buffer(t, x)
               : tape_has_adjoint(t, v)      ? v->adjoint
                                             : NULL;
    const struct tape_retained *kept = tape_retained_of(t, v);
    return kept->epoch == t->gradient_epoch ? kept->buffer : NULL;
}

enum tape_status tape_retain(struct tape *t, uint32_t x, struct tape_site site)
{
    struct tape_value *v = &t->entries[x];
    tape_observed(t);
    tape_account_moment(t);
    if (v->flags & (TAPE_LEAF | TAPE_RETAIN))
        return TAPE_OK;
    if (!(v->flags & TAPE_NEEDS_GRADIENT))
        return tape_fail(t, TAPE_ERROR_STATE, site, "retain_gradient: a constant has no gradient");
    /* The buffer lies behind the mark and would be dropped before its value. */
    if (t->n_marks && x < t->marks[t->n_marks - 1].n_values)
        return tape_fail(t, TAPE_ERROR_STATE, site,
                         "retain_gradient: the value is older than the last mark");
    struct tape_point point = tape_point_take(t);
    size_t offset = (size_t)(t->arena.record_top - t->arena.record_base) / 8;
    struct tape_retained *kept = tape_arena_record(&t->arena, sizeof *kept);
    void *buffer = kept ? tape_arena_buffer(&t->arena, tape_value_bytes(v)) : NULL;
    if (!buffer || offset >= UINT32_MAX) {
        tape_point_undo(t, point);
        return tape_fail_memory(t, site, "retain_gradient");
    }
    *kept = (struct tape_retained){
        .buffer = buffer, .epoch = t->gradient_epoch - 1, .sweeps = t->sweeps};
    v->retained = (uint32_t)offset;
    v->flags |= TAPE_RETAIN;
    tape_account_bytes(t, v->row, sizeof *kept);
    tape_account_buffer(t, v->row, tape_value_bytes(v));
    return TAPE_OK;
}
