/* tape_release.c: see tape_release.h.
 *
 * The scratch flags TAPE_STAYS and TAPE_HELD are clear between calls.
 */
#include "tape_release.h"

#include "tape_disk.h"
#include "tape_reach.h"
#include "tape_value.h"

#include <stdio.h>

const char tape_release_op[] = "release", tape_release_frame_op[] = "frame_end",
           tape_release_sweep_op[] = "backward_release";

/* Gives a buffer back, in a call of `row`: to the arena, to the line that is charged for it, and to
 * the marks that count it among what is live. */
static void value_free_buffer(struct tape *t, struct tape_value *v, uint32_t row)
{
    if (t->hold)
        return;
    const uint64_t n = tape_value_bytes(v);
    const uint32_t x = tape_value_index(t, v);
    for (uint32_t k = t->n_marks; k > 0 && t->marks[k - 1].n_values > x; k--)
        t->marks[k - 1].arena.live -= tape_arena_class_bytes(n);
    tape_disk_value_drop(t, v);
    tape_arena_free(&t->arena, v->array.data, n);
    tape_account_free_value(t, v, row);
    v->array.data = NULL;
    v->flags = (v->flags & ~(uint32_t)(TAPE_OWNS_DATA | TAPE_ON_DISK)) | TAPE_FREED;
}

static void value_release_handle(struct tape *t, struct tape_value *v, uint32_t row)
{
    if (v->flags & TAPE_RELEASED)
        return;
    v->flags |= TAPE_RELEASED;
    v->retained = v->generation;
    v->generation = TAPE_NO_GENERATION;
    v->gradient_epoch = row;
    tape_account_released(t, v);
}

/* A leaf's gradient may be wanted, and a borrowed constant has no buffer of the tape's. */
static bool value_was_given(const struct tape *t, const struct tape_value *v)
{
    return (v->flags & TAPE_LEAF) ||
           (v->root == tape_value_index(t, v) && !(v->flags & (TAPE_OWNS_DATA | TAPE_FREED)));
}

/* A view of a buffer that is gone. */
static void view_blind(const struct tape *t, struct tape_value *v)
{
    if (t->entries[v->root].flags & TAPE_FREED)
        v->array.data = NULL;
}

/* Holds what the pullback of a record touches, or a replay of it (again), as far as it belongs to a
 * value from `first` on. */
static void record_hold_read(struct tape *t, struct tape_record *r, uint32_t first, bool again)
{
    if (r->n_out == 0 || (t->entries[tape_record_out(r)[0]].flags & TAPE_SPENT))
        return;
    const uint32_t touches = again ? UINT32_MAX : tape_record_touches(t, r);
    for (int i = 0; (i = tape_record_next(r, touches, i)) < r->n_in; i++) {
        uint32_t root = t->entries[tape_record_in(r)[i]].root;
        if (root >= first)
            t->entries[root].flags |= TAPE_HELD;
    }
    const uint64_t saves = again ? UINT64_MAX : tape_record_saves_out(r);
    for (int o = 0; o < r->n_out; o++) {
        uint32_t root = t->entries[tape_record_out(r)[o]].root;
        if ((saves >> o & 1) && root >= first)
            t->entries[root].flags |= TAPE_HELD;
    }
}

/* The row of a call that releases. */
static uint32_t release_row(struct tape *t, struct tape_site site, const char *op)
{
    tape_observed(t);
    tape_account_moment(t);
    uint32_t row = tape_account_row(t, site, op);
    tape_account_called(t, row);
    return row;
}

enum tape_status tape_release(struct tape *t, uint32_t x, struct tape_site site)
{
    struct tape_value *v = &t->entries[x];
    if (value_was_given(t, v))
        return tape_fail(t, TAPE_ERROR_STATE, site, "release: a %s stays until a reset or a rewind",
                         v->flags & TAPE_LEAF ? "leaf" : "constant");
    if (v->flags & TAPE_RETAIN)
        return tape_fail(t, TAPE_ERROR_STATE, site, "release: the tensor's gradient is retained");
    if (x < t->fixed.n_values)
        return tape_fail(t, TAPE_ERROR_STATE, site,
                         "release: the tensor is older than the %s that runs", tape_fixed_by(t));
    const uint32_t row = release_row(t, site, tape_release_op);
    value_release_handle(t, v, row);
    const uint32_t root = v->root;
    bool held = !(t->entries[root].flags & TAPE_OWNS_DATA);
    for (uint32_t i = root; i < t->n_values && !held; i++)
        held = t->entries[i].root == root && !(t->entries[i].flags & TAPE_RELEASED);
    for (uint32_t at = t->last_record; at != UINT32_MAX && !held;) {
        struct tape_record *r = tape_record_at(t, at);
        if (r->n_out > 0 && tape_record_out(r)[r->n_out - 1] < root)
            break;
        record_hold_read(t, r, root, t->replays != TAPE_REPLAYS_NOTHING);
        held = t->entries[root].flags & TAPE_HELD;
        at = r->previous;
    }
    for (uint32_t i = root; i < t->n_values; i++)
        t->entries[i].flags &= ~(uint32_t)TAPE_HELD;
    if (held)
        return TAPE_OK;
    value_free_buffer(t, &t->entries[root], row);
    t->has_released = true;
    for (uint32_t i = root + 1; i < t->n_values; i++)
        if (t->entries[i].root == root)
            view_blind(t, &t->entries[i]);
    return TAPE_OK;
}

void tape_release_keep(struct tape *t, uint32_t x)
{
    t->entries[x].flags |= TAPE_STAYS;
}

void tape_release_behind(struct tape *t, const struct tape_frame *frame, struct tape_site site)
{
    const uint32_t first = frame->n_values, row = release_row(t, site, tape_release_frame_op);
    const bool again = t->replays != TAPE_REPLAYS_NOTHING;
    for (uint32_t at = t->last_record; at != frame->last_record;
         at = tape_record_at(t, at)->previous)
        record_hold_read(t, tape_record_at(t, at), first, again);
    for (uint32_t i = first; i < t->n_values; i++) {
        struct tape_value *v = &t->entries[i];
        if (value_was_given(t, v) || (v->flags & TAPE_RETAIN))
            v->flags |= TAPE_STAYS;
        if ((v->flags & TAPE_STAYS) && v->root >= first)
            t->entries[v->root].flags |= TAPE_HELD;
    }
    for (uint32_t i = first; i < t->n_values; i++) {
        struct tape_value *v = &t->entries[i];
        if (!(v->flags & TAPE_STAYS))
            value_release_handle(t, v, row);
        if (!(v->flags & TAPE_HELD) && (v->flags & TAPE_OWNS_DATA))
            value_free_buffer(t, v, row);
        else if (v->root != i)
            view_blind(t, v);
        v->flags &= ~(uint32_t)(TAPE_STAYS | TAPE_HELD);
    }
    t->has_released = true;
}

void tape_release_hidden(struct tape *t, const struct kernel_op *op, const uint32_t *out)
{
    for (int o = kernel_results(op); o < op->n_out; o++) {
        struct tape_value *v = &t->entries[out[o]];
        value_release_handle(t, v, v->row);
        if (v->flags & TAPE_OWNS_DATA)
            value_free_buffer(t, v, v->row);
    }
}

/* ---- sweeps that release ---- */

/* y's value is what the user still looks at; a retained value's handle leads to its gradient. */
static bool value_outlives(const struct tape *t, uint32_t x, uint32_t y)
{
    return x == y || (t->entries[x].flags & TAPE_RETAIN);
}

bool tape_release_plan(struct tape *t, uint32_t y)
{
    if (!tape_reach_begin(t, y))
        return false;
    for (uint32_t i = 1; i < t->n_values; i++)
        t->entries[i].flags |= TAPE_STAYS;
    for (uint32_t at = t->last_record; at != UINT32_MAX; at = tape_record_at(t, at)->previous) {
        struct tape_record *r = tape_record_at(t, at);
        uint32_t reads;
        if (!tape_reach(t, r, TAPE_NEEDS_GRADIENT, &reads))
            continue;
        for (int o = 0; o < r->n_out; o++)
            if (!value_outlives(t, tape_record_out(r)[o], y))
                t->entries[tape_record_out(r)[o]].flags &= ~(uint32_t)TAPE_STAYS;
    }
    tape_reach_end(t);
    for (uint32_t i = 1; i < t->n_values; i++)
        if ((t->entries[i].flags & (TAPE_STAYS | TAPE_RELEASED)) == TAPE_STAYS)
            t->entries[t->entries[i].root].flags |= TAPE_HELD;
    return true;
}

void tape_release_passed(struct tape *t, struct tape_record *r, uint32_t row)
{
    const uint32_t *out = tape_record_out(r);
    bool reached = false;
    for (int o = 0; o < r->n_out; o++)
        reached = reached || (t->entries[out[o]].flags & TAPE_REACHED);
    for (int o = 0; o < r->n_out && reached; o++) {
        struct tape_value *v = &t->entries[out[o]];
        v->flags |= TAPE_SPENT;
        if (v->flags & TAPE_STAYS)
            continue;
        value_release_handle(t, v, row);
        if ((v->flags & (TAPE_OWNS_DATA | TAPE_HELD)) == TAPE_OWNS_DATA)
            value_free_buffer(t, v, row);
    }
}

void tape_release_end(struct tape *t, uint32_t at, uint32_t row)
{
    for (; at != UINT32_MAX; at = tape_record_at(t, at)->previous)
        tape_release_passed(t, tape_record_at(t, at), row);
    for (uint32_t i = 1; i < t->n_values; i++) {
        struct tape_value *v = &t->entries[i];
        if (v->root != i)
            view_blind(t, v);
        v->flags &= ~(uint32_t)(TAPE_STAYS | TAPE_HELD);
    }
    t->has_released = true; /* even if none was freed, records are spent */
}

/* ---- what is there, and what is gone ---- */

void tape_release_wake(struct tape *t, int n, const uint32_t *x, bool awake)
{
    for (int i = 0; i < n; i++) {
        struct tape_value *v = &t->entries[x[i]];
        if (v->flags & TAPE_RELEASED)
            v->generation = awake ? v->retained : TAPE_NO_GENERATION;
    }
}

uint64_t tape_release_saved(struct tape *t, uint64_t *bytes)
{
    uint64_t n = 0;
    *bytes = 0;
    for (uint32_t at = t->last_record; at != UINT32_MAX; at = tape_record_at(t, at)->previous)
        if (tape_record_is_swept(t, tape_record_at(t, at)))
            record_hold_read(t, tape_record_at(t, at), 1, false);
    for (uint32_t i = 1; i < t->n_values; i++) {
        struct tape_value *v = &t->entries[i];
        if ((v->flags & (TAPE_HELD | TAPE_OWNS_DATA)) == (TAPE_HELD | TAPE_OWNS_DATA)) {
            *bytes += tape_value_bytes(v);
            n++;
        }
        v->flags &= ~(uint32_t)TAPE_HELD;
    }
    return n;
}

void tape_release_describe(const struct tape *t, const struct tape_value *v, char *buf, size_t n)
{
    const struct tape_row *row = tape_row(t, v->gradient_epoch);
    char where[160];
    t->describe(tape_row_site(t, v->gradient_epoch), where, sizeof where);
    snprintf(buf, n, "was released %s %s",
             row->op == tape_release_frame_op   ? "at the end of its frame at"
             : row->op == tape_release_sweep_op ? "by the sweep at"
                                                : "at",
             where);
}

/* Says that the sweep would need a record or value that is gone. */
static enum tape_status release_fail_gone(struct tape *t, struct tape_record *r,
                                          const struct tape_value *v, bool spent, const char *what,
                                          struct tape_site site)
{
    char shape[96], made[160], how[240] = "";
    t->describe(tape_row_site(t, r->row), made, sizeof made);
    if (spent)
        return tape_fail(t, TAPE_ERROR_STATE, site,
                         "%s: a sweep that releases has passed %s at %s already; the call is", what,
                         tape_record_name(r), made);
    tape_release_describe(t, v, how, sizeof how);
    return tape_fail(t, TAPE_ERROR_STATE, site, "%s: the %s that %s at %s reads %s; the call is",
                     what, kernel_describe(&v->array, shape, sizeof shape), tape_record_name(r),
                     made, how);
}

/* What tape_release_verify does, in a walk that has begun. */
static enum tape_status release_verify(struct tape *t, enum tape_flag wants, const char *what,
                                       struct tape_site site)
{
    for (uint32_t at = t->last_record; at != UINT32_MAX; at = tape_record_at(t, at)->previous) {
        struct tape_record *r = tape_record_at(t, at);
        uint32_t reads;
        if (!tape_reach(t, r, wants, &reads))
            continue;
        const uint64_t saves = tape_record_saves_out(r);
        for (int o = 0; o < r->n_out; o++) {
            const struct tape_value *v = &t->entries[tape_record_out(r)[o]];
            bool freed = (saves >> o & 1) && t->entries[v->root].flags & TAPE_FREED;
            if ((v->flags & TAPE_SPENT) || freed)
                return release_fail_gone(t, r, &t->entries[v->root], v->flags & TAPE_SPENT, what,
                                         site);
        }
        for (int i = 0; (i = tape_record_next(r, reads, i)) < r->n_in; i++) {
            const struct tape_value *v = &t->entries[tape_record_in(r)[i]];
            if (t->entries[v->root].flags & TAPE_FREED)
                return release_fail_gone(t, r, &t->entries[v->root], false, what, site);
        }
    }
    return TAPE_OK;
}

enum tape_status tape_release_verify(struct tape *t, uint32_t y, enum tape_flag wants,
                                     const char *what, struct tape_site site)
{
    if (__builtin_expect(!t->has_released, 1))
        return TAPE_OK;
    if (!tape_reach_begin(t, y))
        return tape_fail_memory(t, site, what);
    const enum tape_status status = release_verify(t, wants, what, site);
    tape_reach_end(t);
    return status;
}
