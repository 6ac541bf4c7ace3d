/* tape_call.c: see tape_call.h.
 *
 * The signature of a call names values that it made by their place behind its begin, older ones by
 * their index: so it is the same wherever on the tape the call is made again.
 */
#include "tape_call.h"

#include "tape_disk.h"
#include "tape_guard.h"
#include "tape_no_grad.h"
#include "tape_part.h"

static void call_flag_read(struct tape *t, const struct tape_call *c, uint32_t end, bool on)
{
    for (uint32_t k = c->first; k < end; k++) {
        uint32_t *flags = &t->entries[t->calls.read[k]].flags;
        *flags = on ? *flags | TAPE_READ : *flags & ~(uint32_t)TAPE_READ;
    }
}

/* The innermost call has read an older value. */
static bool call_note_read(struct tape *t, uint32_t x)
{
    struct tape_calls *calls = &t->calls;
    if (t->entries[x].flags & TAPE_READ)
        return true;
    uint32_t *read =
        tape_array_reserve(t->memory, calls->read, calls->n_read + 1, &calls->size, sizeof *read);
    if (!read)
        return false;
    calls->read = read;
    calls->read[calls->n_read++] = x;
    t->entries[x].flags |= TAPE_READ;
    return true;
}

bool tape_call_begin(struct tape *t, struct tape_call *c, int n, const uint32_t *in, bool dry)
{
    *c = (struct tape_call){.up = t->calls.innermost,
                            .from = tape_mark_here(t),
                            .fixed = t->fixed,
                            .n_marks = t->n_marks,
                            .gradient_epoch = t->gradient_epoch,
                            .dry = t->calls.dry,
                            .has_released = t->has_released,
                            .first = t->calls.n_read};
    if (c->up)
        call_flag_read(t, c->up, c->first, false);
    bool noted = true;
    for (int i = 0; i < n && noted; i++)
        noted = call_note_read(t, in[i]);
    c->n_inputs = t->calls.n_read - c->first;
    t->calls.innermost = c;
    t->calls.made = true;
    t->calls.dry = dry;
    t->fixed =
        (struct tape_fixed){t->n_values, t->n_marks, t->n_frames, t->last_record, t->fixed.by};
    if (!noted)
        tape_call_end(t, c);
    return noted;
}

/* Marks and frames of the call's own, and handles of what it made, are no more. */
static void call_leave(struct tape *t, const struct tape_call *c)
{
    tape_no_grad_restore(t, &c->from);
    t->n_marks = c->n_marks;
    while (t->n_frames > 0 && t->frames[t->n_frames - 1].number > c->from.frame)
        t->n_frames--;
    t->generation++;
}

void tape_call_drop(struct tape *t, struct tape_call *c)
{
    for (uint32_t i = c->from.n_values; i < t->n_values; i++) {
        const struct tape_value *v = &t->entries[i];
        tape_account_drop_value(t, v);
        tape_disk_value_drop(t, v);
        if (v->flags & TAPE_OWNS_DATA)
            tape_arena_free(&t->arena, v->array.data, tape_value_bytes(v));
    }
    for (uint32_t at = t->last_record; t->hook && at != c->from.last_record;
         at = tape_record_at(t, at)->previous)
        tape_account_drop_record(t, tape_record_at(t, at));
    tape_account_drop_guards(t, c->from.last_guard);
    tape_guard_drop(t, c->from.last_guard);
    tape_arena_cut(&t->arena, &c->from.arena);
    if (c->of_scalars)
        TAPE_PARTS_CALL(rewind, t, &c->from, NULL);
    TAPE_PARTS_CALL(call_drop, t, &c->from);
    t->n_values = c->from.n_values;
    t->last_record = c->from.last_record;
    t->n_records = c->from.n_records;
    t->has_released = c->has_released;
    call_leave(t, c);
}

void tape_call_keep(struct tape *t, struct tape_call *c)
{
    call_leave(t, c);
}

void tape_call_end(struct tape *t, struct tape_call *c)
{
    struct tape_calls *calls = &t->calls;
    const uint32_t end = calls->n_read;
    call_flag_read(t, c, end, false);
    calls->innermost = c->up;
    calls->dry = c->dry;
    t->fixed = c->fixed;
    tape_no_grad_restore(t, &c->from);
    t->gradient_epoch = c->gradient_epoch; /* a rewind within the call has cleared nothing */
    calls->n_read = c->first;
    if (!c->up)
        return;
    call_flag_read(t, c->up, c->first, true);
    for (uint32_t k = c->first; k < end; k++)
        if (calls->read[k] < c->up->from.n_values)
            call_note_read(t, calls->read[k]); /* there is room: it moves down */
}

const uint32_t *tape_call_read(const struct tape *t, const struct tape_call *c, uint32_t *n)
{
    const uint32_t first = c->first + c->n_inputs;
    *n = t->calls.n_read - first;
    return t->calls.read + first;
}

static void call_mix(struct tape *t, uint64_t word)
{
    for (struct tape_call *c = t->calls.innermost; c; c = c->up)
        c->signature = tape_hash_mix(c->signature, word);
}

static void call_mix_value(struct tape *t, uint32_t x)
{
    for (struct tape_call *c = t->calls.innermost; c; c = c->up)
        c->signature = tape_hash_mix(
            c->signature, x < c->from.n_values ? x : UINT64_MAX - (x - c->from.n_values));
}

bool tape_call_reads(struct tape *t, uint32_t x)
{
    if (!t->calls.innermost)
        return true;
    call_mix_value(t, x);
    return x >= t->calls.innermost->from.n_values || call_note_read(t, x);
}

bool tape_call_op(struct tape *t, const struct kernel_op *op, int n_in, const uint32_t *in,
                  int n_attr, const int64_t *attr)
{
    for (struct tape_call *c = t->calls.innermost; c; c = c->up)
        c->n_ops++;
    call_mix(t, (uintptr_t)op);
    for (int k = 0; k < n_attr; k++)
        call_mix(t, (uint64_t)attr[k]);
    bool noted = true;
    for (int i = 0; i < n_in && noted; i++)
        noted = tape_call_reads(t, in[i]);
    call_mix(t, (uint64_t)t->no_grad);
    return noted;
}

void tape_call_constant(struct tape *t, const struct tape_value *v)
{
    if (!t->calls.innermost)
        return;
    call_mix(t, (uint64_t)v->array.rank << 8 | v->array.dtype);
    for (int d = 0; d < v->array.rank; d++)
        call_mix(t, (uint64_t)v->array.shape[d]);
    if (v->array.size > 0)
        call_mix(t, tape_guard_hash(t, v));
}

void tape_call_results(struct tape *t, int n, const uint32_t *out)
{
    for (int o = 0; o < n; o++)
        call_mix_value(t, out[o]);
}

const char *tape_fixed_by(const struct tape *t)
{
    const struct tape_call *c = t->calls.innermost;
    return !c        ? (t->fixed.by ? t->fixed.by : "gradient check")
           : c->runs ? c->runs
                     : "checkpoint's function";
}

enum tape_status tape_call_refuse(struct tape *t, const char *what, struct tape_site site)
{
    return tape_fail(t, TAPE_ERROR_STATE, site, "%s: not while a %s runs", what, tape_fixed_by(t));
}

enum tape_status tape_call_refuse_scalars(struct tape *t, const char *what, struct tape_site site)
{
    if (!t->calls.innermost->of_scalars)
        return tape_call_refuse(t, what, site);
    return tape_fail(t, TAPE_ERROR_STATE, site,
                     "%s: the function of a checkpoint depends on a variable that it is not given",
                     what);
}
