/* tape_sweep.c: the reverse sweep.
 *
 * Adjoints of intermediates live only within one sweep, so that several sweeps on one recording do
 * not see each other; gradients of leaves and retained values grow with each.
 */
#include "tape_sweep.h"

#include "tape_disk.h"
#include "tape_due.h"
#include "tape_inplace.h"
#include "tape_kind.h"
#include "tape_listen.h"
#include "tape_nonfinite.h"
#include "tape_now.h"
#include "tape_observer.h"
#include "tape_part.h"
#include "tape_record_watch.h"
#include "tape_release.h"
#include "tape_user_gradient.h"
#include "tape_verify.h"

#include <string.h>

/* ---- the records, the last one first ---- */

/* Whether an adjoint has come to a record's results, or it is swept without one, in its turn. */
static bool record_is_seeded(const struct tape *t, struct tape_record *r)
{
    if (r->n_out == 0)
        return tape_record_kind(r)->seeded && tape_record_kind(r)->seeded(t);
    const uint32_t *out = tape_record_out(r);
    for (int o = 0; o < r->n_out; o++)
        if (t->entries[out[o]].adjoint)
            return true;
    return tape_record_always(r) && !tape_record_waits(r);
}

/* All that use the record's results have been passed: their adjoints are complete. False: the
 * tape's error says what is wrong with one. */
static bool record_complete(struct tape *t, struct tape_record *r, uint64_t *stamp)
{
    for (int o = 0; o < r->n_out; o++) {
        struct tape_value *v = &t->entries[tape_record_out(r)[o]];
        if (!(v->flags & (TAPE_RETAIN | TAPE_LISTENED)) || !v->adjoint)
            continue;
        if ((v->flags & TAPE_LISTENED) && !tape_listen_tell(t, v, stamp))
            return false;
        if (!(v->flags & TAPE_RETAIN))
            continue;
        struct tape_retained *retained = tape_retained_of(t, v);
        const bool fresh = retained->epoch != t->gradient_epoch;
        tape_add_into(v, retained->buffer, v->adjoint, fresh);
        retained->epoch = t->gradient_epoch;
    }
    return true;
}

static void record_drop_adjoints(struct tape *t, struct tape_record *r)
{
    const uint32_t *out = tape_record_out(r);
    for (int o = 0; o < r->n_out; o++)
        tape_adjoint_free(t, &t->entries[out[o]]);
}

/* None of the adjoints that a pullback has left is one that the user asked to be told of. */
static bool record_passes(struct tape *t, struct tape_record *r)
{
    return !t->nonfinite || t->reading || tape_nonfinite_adjoints(t, r);
}

static bool record_pull(struct tape *t, struct tape_record *r, uint64_t *stamp)
{
    if (!record_complete(t, r, stamp))
        return false;
    if (tape_watches(t))
        tape_watch_pullback(t, r);
    if (!tape_disk_need_record(t, r) || !tape_record_kind(r)->sweep(t, r, stamp) ||
        !record_passes(t, r))
        return false;
    record_drop_adjoints(t, r);
    tape_sweep_passed(t, r, stamp);
    return true;
}

/* Pulls the adjoints of each record's results back to its operands, up to `end`. Returns the record
 * that failed, or UINT32_MAX; no adjoint of a tensor is left then. release: the row of a sweep that
 * gives up what lies behind it, or TAPE_ROW_NONE. */
static uint32_t sweep_records(struct tape *t, uint32_t end, uint32_t release, uint64_t *stamp)
{
    for (uint32_t at = t->last_record; at != end;) {
        struct tape_record *r = tape_record_at(t, at), *due;
        tape_now_row(t, TAPE_PHASE_BACKWARD, r->row);
        if (record_is_seeded(t, r) && !record_pull(t, r, stamp))
            return at;
        while ((due = tape_due_next(t, at)) != NULL) {
            tape_now_row(t, TAPE_PHASE_BACKWARD, due->row);
            if (!record_pull(t, due, stamp))
                return at;
        }
        if (release != TAPE_ROW_NONE)
            tape_release_passed(t, r, release);
        at = r->previous;
    }
    return UINT32_MAX;
}

/* The adjoints that a sweep has left which failed at a record. */
static void sweep_clear(struct tape *t, uint32_t failed, uint32_t end)
{
    for (uint32_t at = failed; at != UINT32_MAX && at != end; at = tape_record_at(t, at)->previous)
        record_drop_adjoints(t, tape_record_at(t, at));
}

bool tape_sweep_behind(struct tape *t, uint32_t end, uint64_t *stamp)
{
    const uint32_t failed = sweep_records(t, end, TAPE_ROW_NONE, stamp);
    sweep_clear(t, failed, end);
    return failed == UINT32_MAX;
}

/* ---- a sweep from its begin to its end ---- */

/* Nothing that the sweep reads is gone or changed. */
static enum tape_status sweep_verify(struct tape *t, const struct tape_sweep *s)
{
    if (s->again || (s->y == 0 && !s->reads_values))
        return TAPE_OK;
    t->verified = s;
    enum tape_status status = tape_release_verify(t, s->y, TAPE_NEEDS_GRADIENT, s->what, s->site);
    if (status == TAPE_OK)
        status = tape_guard_verify(t, s->y, TAPE_NEEDS_GRADIENT, s->what, s->site);
    t->verified = NULL;
    return status;
}

/* Nothing that the sweep begins with is what the user asked to be told of. */
static enum tape_status sweep_check_seeds(struct tape *t, const struct tape_sweep *s)
{
    const enum tape_status status = tape_nonfinite_begin(t, s->seed, s->what, s->site);
    if (status != TAPE_OK || !s->seeds)
        return status;
    return tape_nonfinite_numbers(t, s->what, "seed", s->n_roots, s->seeds, s->site);
}

static void sweep_tell_watch(void)
{
    void (*watch)(void) = __atomic_load_n(&tape_sweep_watch, __ATOMIC_RELAXED);
    if (__builtin_expect(watch != NULL, 0))
        watch();
}

static enum tape_status sweep_conclude(struct tape *t, struct tape_sweep *s, bool ok)
{
    tape_sweep_ends(t, s);
    if (ok && s->grows_gradients) {
        t->sweeps++;
        t->phase++;
        t->swept_epoch = t->gradient_epoch;
    } else if (s->grows_gradients) {
        t->gradient_epoch++; /* half a sweep is in the gradients: none is better than a wrong one */
    }
    if (!ok && !t->error.code && s->n_seeds > 1)
        return TAPE_ERROR_MEMORY;
    if (!ok)
        return t->error.code ? t->error.code : tape_fail_memory(t, s->site, s->what);
    if (!t->unlisted)
        sweep_tell_watch();
    return TAPE_OK;
}

static enum tape_status sweep_drive(struct tape *t, struct tape_sweep *s)
{
    TAPE_DOING(t, TAPE_PHASE_BACKWARD, s->site, s->what);
    s->begun = s->stamp = tape_clock(t);
    enum tape_status status = TAPE_OK;
    TAPE_PARTS_STATUS(status, sweep_refuse, t, s->what, s->site);
    if (status != TAPE_OK)
        return status;
    /* What is no pullback's is the sweep's own: the call, the seed, the end. Where nobody looks
     * only what the sweep releases has to know its row. */
    s->own = t->hook || t->now || s->releases ? tape_now_own(t, s->site, s->what) : TAPE_ROW_OTHER;
    const uint64_t own = t->own_ticks;
    tape_settle(t);
    s->begun += t->own_ticks - own;
    s->stamp += t->own_ticks - own;
    s->own_ticks = t->own_ticks;
    status = sweep_verify(t, s);
    if (status == TAPE_ERROR_MEMORY && s->grows_gradients)
        return sweep_conclude(t, s, false);
    if (status != TAPE_OK)
        return status;
    if (t->nonfinite && sweep_check_seeds(t, s) != TAPE_OK)
        return t->error.code;
    return sweep_conclude(t, s, s->run(t, s));
}

enum tape_status tape_sweep_drive(struct tape *t, struct tape_sweep *s)
{
    const enum tape_phase before = tape_sweep_begins(t, s->site);
    const enum tape_status status = sweep_drive(t, s);
    tape_sweep_leaves(t, before);
    return status;
}

/* ---- from a value ---- */

/* Fills `buffer` with the seeds, the seed, or ones. */
static void seed_fill(const struct tape *t, const struct tape_value *y, const struct tape_sweep *s,
                      void *buffer)
{
    struct kernel_array a = y->array;
    a.data = buffer;
    if (s->planted && a.size > 0)
        memcpy(buffer, s->planted, tape_adjoint_bytes(t, y));
    else if (s->seed)
        tape_read(t, s->seed, buffer);
    else if (!s->planted)
        tape_fill_ones(&a);
}

/* Whether the seed's own array can be y's adjoint: nothing but the pullback of an op, the newest
 * record, will see it, and that only reads. */
static bool seed_lends(struct tape *t, const struct tape_value *y, const struct tape_sweep *s)
{
    if (!s->seed || s->planted || t->teller || y->adjoint || y->array.size == 0 ||
        (y->flags & (TAPE_LEAF | TAPE_LISTENED)) || t->last_record == UINT32_MAX)
        return false;
    const struct kernel_array *seed = &t->entries[s->seed].array;
    struct tape_record *r = tape_record_at(t, t->last_record);
    if (!seed->contiguous || seed->dtype != y->array.dtype || seed->size != y->array.size ||
        tape_record_kind(r) != &tape_op_kind)
        return false;
    for (int o = 0; o < r->n_out; o++)
        if (tape_record_out(r)[o] == s->y)
            return true;
    return false;
}

/* The adjoint of y receives the seed. */
static bool seed_plant(struct tape *t, struct tape_value *y, const struct tape_sweep *s)
{
    bool fresh;
    if (seed_lends(t, y, s)) {
        y->adjoint = t->entries[s->seed].array.data;
        t->lent = y->adjoint;
        tape_adjoint_set(t, y);
        return true;
    }
    if (!tape_adjoint_buffer(t, y, &fresh))
        return false;
    if (fresh) {
        seed_fill(t, y, s, y->adjoint);
    } else { /* y is a leaf that has a gradient already: dy/dy is added */
        uint64_t n = tape_value_bytes(y);
        void *copy = tape_arena_buffer(&t->arena, n);
        if (!copy)
            return false;
        tape_account_buffer(t, y->row, n);
        seed_fill(t, y, s, copy);
        tape_add_into(y, y->adjoint, copy, false);
        tape_arena_free(&t->arena, copy, n);
        tape_account_free(t, y->row, n);
    }
    tape_adjoint_set(t, y);
    return true;
}

static bool sweep_value(struct tape *t, struct tape_sweep *s)
{
    bool ready = true;
    TAPE_PARTS_ALL(ready, sweep_begin, t, s->own);
    if (!ready || (s->releases && !tape_release_plan(t, s->y))) {
        TAPE_PARTS_CALL(sweep_end, t);
        return false;
    }
    uint32_t failed = t->last_record;
    t->n_seeds = s->planted ? s->n_seeds : 1;
    tape_user_gradient_begin(t);
    bool ok = tape_listen_begin(t) && seed_plant(t, &t->entries[s->y], s);
    tape_sweep_own(t, s);
    if (ok) {
        failed =
            sweep_records(t, tape_sweep_oldest(t), s->releases ? s->own : TAPE_ROW_NONE, &s->stamp);
        sweep_clear(t, failed, UINT32_MAX);
        ok = failed == UINT32_MAX && tape_listen_leaves(t, &s->stamp);
    }
    t->lent = NULL;
    tape_listen_end(t);
    tape_now_row(t, TAPE_PHASE_BACKWARD, s->own);
    TAPE_PARTS_CALL(sweep_end, t);
    if (ok)
        tape_user_gradient_add(t);
    if (s->releases)
        tape_release_end(t, failed, s->own);
    t->n_seeds = 1;
    return ok;
}

enum tape_status tape_sweep(struct tape *t, uint32_t y, uint32_t seed, struct tape_site site)
{
    return tape_sweep_drive(t, &(struct tape_sweep){.run = sweep_value,
                                                    .what = "backward",
                                                    .site = site,
                                                    .y = y,
                                                    .seed = seed,
                                                    .grows_gradients = true});
}

enum tape_status tape_sweep_seeds(struct tape *t, uint32_t y, uint32_t n, const void *seeds,
                                  bool again, struct tape_site site)
{
    return tape_sweep_drive(t, &(struct tape_sweep){.run = sweep_value,
                                                    .what = "backward",
                                                    .site = site,
                                                    .y = y,
                                                    .planted = seeds,
                                                    .n_seeds = n,
                                                    .again = again,
                                                    .grows_gradients = true});
}

bool tape_sweep_takes_seeds(const struct tape *t)
{
    if (t->nonfinite)
        return false;
    for (uint32_t at = t->last_record; at != tape_sweep_oldest(t);) {
        struct tape_record *r = tape_record_at(t, at);
        if (tape_record_kind(r) != &tape_op_kind)
            return false;
        for (int o = 0; o < r->n_out; o++)
            if (t->entries[tape_record_out(r)[o]].flags & (TAPE_RETAIN | TAPE_LISTENED))
                return false;
        at = r->previous;
    }
    return true;
}

enum tape_status tape_sweep_release(struct tape *t, uint32_t y, uint32_t seed,
                                    struct tape_site site)
{
    return tape_sweep_drive(t, &(struct tape_sweep){.run = sweep_value,
                                                    .what = tape_release_sweep_op,
                                                    .site = site,
                                                    .y = y,
                                                    .seed = seed,
                                                    .releases = true,
                                                    .grows_gradients = true});
}
