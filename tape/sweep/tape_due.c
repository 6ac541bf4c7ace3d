/* tape_due.c: see tape_due.h.
 *
 * What a sweep calls again (a checkpoint's function) records behind all that was planned, so no
 * offset there is one that something is due behind.
 */
#include "tape_due.h"

#include "tape_account.h"
#include "tape_kind.h"
#include "tape_sweep.h"
#include "tape_value.h"

#include <string.h>

static void due_next(struct tape_dues *s)
{
    s->behind = s->done < s->n ? s->of[s->done].behind : UINT32_MAX;
}

struct tape_record *tape_due_take(struct tape *t)
{
    struct tape_dues *s = t->dues;
    struct tape_record *r = tape_record_at(t, s->of[s->done++].record);
    due_next(s);
    return r;
}

static bool due_add(struct tape *t, uint32_t at)
{
    struct tape_dues *s = t->dues;
    struct tape_due *of = tape_array_reserve(t->memory, s->of, s->n + 1, &s->size, sizeof *of);
    if (!of)
        return false;
    s->of = of;
    s->of[s->n++] = (struct tape_due){.record = at};
    return true;
}

/* Finds the records, and the oldest reader of each value: the walk ends with the oldest. */
static bool due_find(struct tape *t)
{
    struct tape_dues *s = t->dues;
    for (uint32_t at = t->last_record; at != tape_sweep_oldest(t);) {
        struct tape_record *r = tape_record_at(t, at);
        const bool waits = tape_record_waits(r);
        if (waits && !due_add(t, at))
            return false;
        for (int i = 0; i < r->n_in && !waits; i++)
            s->reader[tape_record_in(r)[i]] = at;
        at = r->previous;
    }
    return true;
}

static bool dues_plan(struct tape *t, uint32_t own)
{
    struct tape_dues *s = t->dues;
    uint32_t behind = t->last_record;
    (void)own;
    if (!s->any)
        return true;
    uint32_t *reader =
        tape_array_reserve(t->memory, s->reader, t->n_values, &s->readers, sizeof *reader);
    if (!reader)
        return false;
    s->reader = reader;
    memset(reader, 0xff, t->n_values * sizeof *reader); /* UINT32_MAX: nobody reads it */
    if (!due_find(t))
        return false;
    for (uint32_t k = 0; k < s->n; k++) {
        struct tape_record *r = tape_record_at(t, s->of[k].record);
        for (int i = 0; i < r->n_in; i++)
            if (reader[tape_record_in(r)[i]] < behind)
                behind = reader[tape_record_in(r)[i]];
        s->of[k].behind = behind;
    }
    due_next(s);
    return true;
}

bool tape_due_hold(struct tape *t, uint32_t row, uint64_t bytes)
{
    const uint64_t all = tape_arena_class_bytes(bytes); /* the account's padding is as a buffer's */
    if (!tape_arena_charge(&t->arena, all)) {
        t->arena.refused = all;
        tape_fail_memory(t, tape_row_site(t, row), tape_row(t, row)->op);
        return false;
    }
    t->dues->of[t->dues->done - 1].held = bytes;
    tape_account_buffer(t, row, bytes);
    return true;
}

static void dues_let_go(struct tape *t)
{
    for (uint32_t k = 0; k < t->dues->done; k++) {
        const struct tape_due *due = &t->dues->of[k];
        if (due->held == 0)
            continue;
        t->arena.live -= tape_arena_class_bytes(due->held);
        tape_account_free(t, tape_record_at(t, due->record)->row, due->held);
    }
}

static void dues_done(struct tape *t)
{
    dues_let_go(t);
    t->dues->n = t->dues->done = 0;
    t->dues->behind = UINT32_MAX;
}

static void dues_attach(struct tape *t, void *state)
{
    t->dues = state;
}

static void dues_begin(struct tape *t)
{
    t->dues->any = false;
    dues_done(t);
}

static void dues_end(struct tape *t)
{
    if (t->dues->of)
        t->memory->release(t->dues->of, t->memory->payload);
    if (t->dues->reader)
        t->memory->release(t->dues->reader, t->memory->payload);
}

const struct tape_part tape_dues_part = {.bytes = sizeof(struct tape_dues),
                                         .attach = dues_attach,
                                         .begin = dues_begin,
                                         .end = dues_end,
                                         .sweep_begin = dues_plan,
                                         .sweep_end = dues_done};
