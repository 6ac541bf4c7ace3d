/* tape_replay.c: see tape_replay.h. */
#include "tape_replay.h"

#include "tape_account.h"
#include "tape_call.h"
#include "tape_disk.h"
#include "tape_guard.h"
#include "tape_kind.h"
#include "tape_now.h"
#include "tape_observer.h"
#include "tape_release.h"
#include "tape_sweep.h"

#include <string.h>

const char tape_replay_op[] = "tensor_replay";
static const char begin_op[] = "tensor_program_begin", end_op[] = "tensor_program_end";

struct tape_replay {
    uint32_t n_values; /* when it began */
    uint32_t n_records, records_size;
    uint32_t *record;       /* of a whole program: the offsets of its records, the oldest first */
    uint32_t last_record;   /* of them */
    const char *read;       /* what has read a value while it was recorded, or NULL */
    struct tape_site at;    /* its call */
    struct tape_site stale; /* of the newest replay, where that has failed */
    bool failed;
};

static void replay_drop(struct tape *t)
{
    t->replays = TAPE_REPLAYS_NOTHING;
    t->replay->failed = false;
    t->replay->read = NULL;
}

/* ---- its begin and end ---- */

enum tape_status tape_replay_begin(struct tape *t, struct tape_site site)
{
    if (t->calls.innermost || t->fixed.n_values > 0)
        return tape_call_refuse(t, begin_op, site);
    tape_settle(t);
    if (t->last_record != UINT32_MAX) {
        char where[160];
        struct tape_record *r = tape_record_at(t, t->last_record);
        t->describe(tape_row_site(t, r->row), where, sizeof where);
        return tape_fail(
            t, TAPE_ERROR_STATE, site, "%s: %s at %s was recorded before%s; the call is", begin_op,
            tape_record_name(r), where,
            t->replays == TAPE_REPLAYS_RECORDED ? ", in a program that has no end" : "");
    }
    replay_drop(t);
    tape_disk_settle(t); /* a replay may write to what was there before */
    t->replay->n_values = t->n_values;
    t->replays = TAPE_REPLAYS_RECORDED;
    return TAPE_OK;
}

/* "WHAT at mlp.c:41 WHY". */
static enum tape_status replay_refuse(struct tape *t, const char *what, struct tape_site at,
                                      const char *why, struct tape_site site)
{
    char where[160];
    t->describe(at, where, sizeof where);
    return tape_fail(t, TAPE_ERROR_STATE, site, "%s: %s at %s %s; the call is", end_op, what, where,
                     why);
}

/* Lists the records. False: no memory. */
static bool records_list(struct tape *t)
{
    struct tape_replay *p = t->replay;
    uint32_t n = 0;
    for (uint32_t at = t->last_record; at != UINT32_MAX; at = tape_record_at(t, at)->previous)
        n++;
    uint32_t *record =
        tape_array_reserve(t->memory, p->record, n + 1, &p->records_size, sizeof *record);
    if (!record) {
        t->arena.refused = n * sizeof *record;
        return false;
    }
    p->record = record;
    p->n_records = n;
    p->last_record = t->last_record;
    for (uint32_t at = t->last_record; at != UINT32_MAX; at = tape_record_at(t, at)->previous)
        record[--n] = at;
    return true;
}

/* Whether what the values [from, to) hold is not computed: they are no record's. */
static enum tape_status values_verify(struct tape *t, uint32_t from, uint32_t to,
                                      struct tape_site site)
{
    for (uint32_t i = from; i < to; i++) {
        const struct tape_value *v = &t->entries[i];
        if (v->root == i && (v->flags & (TAPE_OWNS_DATA | TAPE_FREED)) &&
            !(v->flags & (TAPE_LEAF | TAPE_GIVEN)))
            return replay_refuse(t, tape_row(t, v->row)->op, tape_row_site(t, v->row),
                                 "leaves no op that can be computed again", site);
    }
    return TAPE_OK;
}

static enum tape_status records_verify(struct tape *t, struct tape_site site)
{
    const struct tape_replay *p = t->replay;
    uint32_t value = p->n_values;
    enum tape_status status = TAPE_OK;
    for (uint32_t k = 0; k < p->n_records && status == TAPE_OK; k++) {
        struct tape_record *r = tape_record_at(t, p->record[k]);
        const struct tape_site at = tape_row_site(t, r->row);
        const struct record_kind *kind = tape_record_kind(r);
        const char *fixed = kind->fixed ? kind->fixed(r) : NULL;
        if (!kind->replay || fixed)
            return replay_refuse(t, tape_record_name(r), at,
                                 fixed ? fixed : "is no op: it cannot be computed again", site);
        status = values_verify(t, value, tape_record_out(r)[0], site);
        value = tape_record_out(r)[r->n_out - 1] + 1;
    }
    return status == TAPE_OK ? values_verify(t, value, t->n_values, site) : status;
}

enum tape_status tape_replay_end(struct tape *t, struct tape_site site)
{
    struct tape_replay *p = t->replay;
    if (t->replays != TAPE_REPLAYS_RECORDED)
        return t->error.code != TAPE_OK ? t->error.code
                                        : tape_fail(t, TAPE_ERROR_STATE, site,
                                                    "%s: no program is being recorded", end_op);
    if (t->error.code == TAPE_OK && (t->calls.innermost || t->fixed.n_values > 0))
        return tape_call_refuse(t, end_op, site);
    tape_settle(t);
    enum tape_status status = t->error.code;
    if (status == TAPE_OK && !records_list(t))
        status = tape_fail_memory(t, site, end_op);
    if (status == TAPE_OK)
        status = records_verify(t, site);
    if (status == TAPE_OK && p->read)
        status = replay_refuse(t, p->read, p->at,
                               "has read what was computed, and nobody knows what was done with it",
                               site);
    if (status == TAPE_OK)
        t->replays = TAPE_REPLAYS_WHOLE;
    else
        replay_drop(t);
    return status;
}

void tape_replay_reads(struct tape *t, uint32_t x, const char *what, struct tape_site site)
{
    const struct tape_value *root = &t->entries[t->entries[x].root];
    if (t->replays != TAPE_REPLAYS_RECORDED || t->replay->read ||
        tape_value_index(t, root) < t->replay->n_values || !(root->flags & TAPE_OWNS_DATA) ||
        (root->flags & (TAPE_LEAF | TAPE_GIVEN)))
        return;
    t->replay->read = what;
    t->replay->at = site;
}

/* ---- once more ---- */

enum tape_status tape_replay_ready(struct tape *t, const char *what, struct tape_site site)
{
    char where[160];
    if (t->calls.innermost || t->fixed.n_values > 0)
        return tape_call_refuse(t, what, site);
    tape_settle(t);
    if (t->replays != TAPE_REPLAYS_WHOLE)
        return tape_fail(t, TAPE_ERROR_STATE, site,
                         "%s: the tape has no program: ad_tensor_program_begin and _end come first",
                         what);
    if (t->last_record == t->replay->last_record)
        return TAPE_OK;
    struct tape_record *r = tape_record_at(t, t->last_record);
    t->describe(tape_row_site(t, r->row), where, sizeof where);
    return tape_fail(t, TAPE_ERROR_STATE, site,
                     "%s: %s at %s was recorded behind the program: a rewind to a mark from behind "
                     "its end drops it; the call is",
                     what, tape_record_name(r), where);
}

void tape_replay_bind(struct tape *t, uint32_t x, const void *data)
{
    const struct tape_value *v = &t->entries[x];
    const char *const was = v->array.data;
    if (v->array.size == 0)
        return;
    if (v->flags & TAPE_OWNS_DATA) {
        memcpy(v->array.data, data, tape_value_bytes(v));
        return;
    }
    for (uint32_t i = x; i < t->n_values && data != was; i++) {
        struct tape_value *of = &t->entries[i]; /* x, or a view of it */
        if (of->root == x)
            of->array.data = kernel_behind(data, (const char *)of->array.data - was);
    }
}

static enum tape_status replay_records(struct tape *t)
{
    const struct tape_replay *p = t->replay;
    enum tape_status status = TAPE_OK;
    for (uint32_t k = 0; k < p->n_records && status == TAPE_OK; k++) {
        struct tape_record *r = tape_record_at(t, p->record[k]);
        tape_now_row(t, TAPE_PHASE_FORWARD, r->row);
        status = tape_record_kind(r)->replay(t, r);
    }
    return status;
}

bool tape_replay_tell(struct tape *t)
{
    const struct tape_replay *p = t->replay;
    bool ok = true;
    for (uint32_t k = 0; k < p->n_records && ok; k++) {
        struct tape_record *r = tape_record_at(t, p->record[k]);
        ok = tape_record_kind(r)->replay(t, r) == TAPE_OK;
    }
    return ok;
}

enum tape_status tape_replay(struct tape *t, struct tape_site site)
{
    struct tape_replay *p = t->replay;
    tape_observed(t);
    TAPE_DOING(t, TAPE_PHASE_FORWARD, site, tape_replay_op);
    const uint32_t own = t->hook || t->now ? tape_now_own(t, site, tape_replay_op) : TAPE_ROW_OTHER;
    uint64_t stamp = tape_clock(t);
    const enum tape_phase before = tape_activity_begin(t, TAPE_PHASE_NONE, &stamp);
    p->failed = true;
    p->stale = site;
    tape_guard_accept(t);
    tape_account_ran(t, own, 0, NULL, 0); /* until now; the rest of it follows the ops */
    const enum tape_status status = replay_records(t);
    p->failed = status != TAPE_OK;
    tape_now_row(t, TAPE_PHASE_FORWARD, own);
    tape_account_ran(t, own, 0, NULL, 1);
    tape_activity_begin(t, before, NULL);
    return status;
}

/* ---- the tape's life ---- */

static void replay_attach(struct tape *t, void *state)
{
    t->replay = state;
}

static void replay_finish(struct tape *t)
{
    if (t->replay->record)
        t->memory->release(t->replay->record, t->memory->payload);
}

static void replay_rewind(struct tape *t, const struct tape_mark *mark, const char *end)
{
    (void)end;
    if (t->replays == TAPE_REPLAYS_WHOLE ? mark->n_records < t->replay->n_records
                                         : mark->n_values < t->replay->n_values)
        replay_drop(t);
}

static enum tape_status replay_sweep_refuse(struct tape *t, const char *what, struct tape_site site)
{
    char where[160];
    if (t->replays == TAPE_REPLAYS_RECORDED && what != tape_graph_op)
        return tape_fail(t, TAPE_ERROR_STATE, site,
                         "%s: not while a program is recorded: ad_tensor_program_end comes first",
                         what);
    if (t->replays == TAPE_REPLAYS_WHOLE && what == tape_release_sweep_op)
        return tape_fail(t, TAPE_ERROR_STATE, site,
                         "%s: a replay needs what it would give up: ad_backward", what);
    if (!t->replay->failed)
        return TAPE_OK;
    t->describe(t->replay->stale, where, sizeof where);
    return tape_fail(t, TAPE_ERROR_STATE, site,
                     "%s: the replay at %s has failed: some values are new, some old; the call is",
                     what, where);
}

const struct tape_part tape_replay_part = {.bytes = sizeof(struct tape_replay),
                                           .attach = replay_attach,
                                           .begin = replay_drop,
                                           .end = replay_finish,
                                           .rewind = replay_rewind,
                                           .sweep_refuse = replay_sweep_refuse};
