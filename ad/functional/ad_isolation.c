/* ad_isolation.c: see ad_isolation.h. */
#include "ad_isolation.h"

#include "tape_account.h"
#include "tape_call.h"
#include "tape_no_grad.h"
#include "tape_observer.h"
#include "tape_part.h"

#include <string.h>

enum { CHANGED = TAPE_NEEDS_GRADIENT | TAPE_RETAIN | TAPE_USER_GRADIENT };

static ad_status check(struct ad_isolation *s)
{
    struct tape *t = s->t;
    char open[TAPE_NO_GRAD_TEXT];
    if (t->error.code != TAPE_OK)
        return (ad_status)t->error.code;
    if (!s->x || s->n < 1)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, s->site, "%s: %s", s->what,
                                    s->n < 1 ? "n is less than 1" : "x is a null pointer");
    if (t->no_grad)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, s->site, "%s: not under no_grad%s",
                                    s->what, tape_no_grad_open(t, open));
    if (t->calls.innermost)
        return (ad_status)tape_call_refuse(t, s->what, s->site);
    for (int i = 0; i < s->n; i++) {
        const uint32_t v = ad_value_on(t, s->x[i], s->site, "%s: x[%d]", s->what, i);
        if (!v)
            return (ad_status)t->error.code;
        if (!(t->entries[v].flags & TAPE_LEAF))
            return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, s->site, "%s: x[%d] is not a leaf",
                                        s->what, i);
    }
    return AD_OK;
}

/* The leaves' own buffers. False: out of memory; none is left. */
static bool buffers_make(struct ad_isolation *s)
{
    struct tape *t = s->t;
    s->arena = tape_arena_take_mark(&t->arena);
    for (int i = 0; i < s->n; i++) {
        struct tape_value *v = &t->entries[s->x[i].value];
        s->leaf[i].value = s->x[i].value;
        s->leaf[i].own = tape_arena_buffer(&t->arena, tape_value_bytes(v));
        if (!s->leaf[i].own)
            return false;
        tape_account_buffer(t, v->row, tape_value_bytes(v));
    }
    return true;
}

static void buffers_free(struct ad_isolation *s)
{
    struct tape *t = s->t;
    for (int i = 0; i < s->n && s->leaf[i].own; i++) {
        const struct tape_value *v = &t->entries[s->leaf[i].value];
        tape_arena_free(&t->arena, s->leaf[i].own, tape_value_bytes(v));
        tape_account_free(t, v->row, tape_value_bytes(v));
    }
}

/* The flags of older values as they were. */
static void flags_restore(struct ad_isolation *s)
{
    for (uint32_t i = 0; i < s->n_values; i++) {
        struct tape_value *v = &s->t->entries[i];
        v->flags = (v->flags & ~(uint32_t)CHANGED) | (s->flags[i] & CHANGED);
    }
}

/* The leaves alone are variables, each with its own buffer. False: a leaf is there twice. */
static bool leaves_isolate(struct ad_isolation *s)
{
    struct tape *t = s->t;
    for (uint32_t i = 0; i < s->n_values; i++) {
        struct tape_value *v = &t->entries[i];
        s->flags[i] = v->flags;
        v->flags &= ~(uint32_t)(TAPE_NEEDS_GRADIENT | TAPE_RETAIN);
    }
    for (int i = 0; i < s->n; i++) {
        struct tape_value *v = &t->entries[s->leaf[i].value];
        if (v->flags & TAPE_NEEDS_GRADIENT) {
            flags_restore(s);
            tape_fail(t, TAPE_ERROR_ARGUMENT, s->site, "%s: x[%d] is a leaf that x has already",
                      s->what, i);
            return false;
        }
        v->flags |= TAPE_NEEDS_GRADIENT;
    }
    for (int i = 0; i < s->n; i++) {
        struct tape_value *v = &t->entries[s->leaf[i].value];
        s->leaf[i].epoch = v->gradient_epoch;
        s->leaf[i].adjoint = v->adjoint;
    }
    ad_isolation_clear(s);
    return true;
}

ad_status ad_isolation_begin(struct ad_isolation *s)
{
    struct tape *t = s->t;
    s->scratch = (struct ad_scratch){.memory = *t->memory};
    ad_status status = check(s);
    if (status != AD_OK)
        return status;
    tape_observed(t);
    tape_account_moment(t);
    tape_settle(t);
    s->n_values = s->older ? s->older->n_values : t->n_values;
    s->flags = ad_scratch_get(&s->scratch, s->n_values, sizeof *s->flags);
    s->leaf = ad_scratch_get(&s->scratch, s->n, sizeof *s->leaf);
    bool have = s->flags && s->leaf;
    if (have && (!buffers_make(s) || (s->level = tape_mark(t)) == UINT32_MAX)) {
        have = false;
        buffers_free(s);
        tape_arena_rewind(&t->arena, &s->arena);
    }
    if (!have) {
        ad_scratch_free(&s->scratch);
        return (ad_status)tape_fail_memory(t, s->site, s->what);
    }
    s->epoch = t->gradient_epoch;
    s->sweeps = t->sweeps;
    s->swept_epoch = t->swept_epoch;
    s->fixed = t->fixed;
    s->hold = t->hold;
    if (!leaves_isolate(s)) {
        t->n_marks = s->level;
        buffers_free(s);
        tape_arena_rewind(&t->arena, &s->arena);
        ad_scratch_free(&s->scratch);
        return (ad_status)t->error.code;
    }
    t->fixed = (struct tape_fixed){s->n_values, t->n_marks, t->n_frames,
                                   s->older ? s->older->last_record : t->last_record,
                                   s->by ? s->by : s->what};
    return AD_OK;
}

bool ad_isolation_intact(const struct ad_isolation *s)
{
    return ad_tape_find(s->tape.slot, s->tape.generation, s->what, s->site) == s->t;
}

ad_status ad_isolation_call(struct ad_isolation *s, ad_function *function, void *payload,
                            uint32_t *y)
{
    struct tape *t = s->t;
    const ad_tensor result = function(s->tape, s->x, s->n, payload);
    if (!ad_isolation_intact(s))
        return ad_failed();
    if (t->error.code != TAPE_OK)
        return (ad_status)t->error.code;
    *y = ad_value_on(t, result, s->site, "%s: the result", s->what);
    if (!*y)
        return (ad_status)t->error.code;
    for (uint32_t i = t->marks[s->level].n_values; i < t->n_values; i++)
        if (t->entries[i].flags & TAPE_LEAF)
            t->entries[i].flags &= ~(uint32_t)TAPE_NEEDS_GRADIENT;
    return AD_OK;
}

void ad_isolation_clear(struct ad_isolation *s)
{
    for (int i = 0; i < s->n; i++) {
        struct tape_value *v = &s->t->entries[s->leaf[i].value];
        v->adjoint = s->leaf[i].own;
        v->flags &= ~(uint32_t)TAPE_USER_GRADIENT;
        v->gradient_epoch = s->t->gradient_epoch - 1;
    }
}

const void *ad_isolation_gradient(const struct ad_isolation *s, int i)
{
    const struct tape_value *v = &s->t->entries[s->leaf[i].value];
    return tape_has_adjoint(s->t, v) ? v->adjoint : NULL;
}

void ad_isolation_drop_level(struct tape *t, uint32_t level)
{
    tape_observed(t);
    tape_account_moment(t);
    const enum tape_release_cause before = tape_observer_cause(t, TAPE_BY_REWIND);
    tape_drop_behind(t, &t->marks[level]);
    tape_observer_cause(t, before);
    tape_observer_dropped(t);
    t->n_marks = level;
    t->generation++;
}

void ad_isolation_drop(struct ad_isolation *s)
{
    ad_isolation_drop_level(s->t, s->level);
    s->t->n_marks = s->level + 1;
}

/* What the isolation changed is as it was; its sweeps are none of the user's, whose gradients still
 * need one. */
static void restore(struct ad_isolation *s)
{
    struct tape *t = s->t;
    t->fixed = s->fixed;
    t->hold = s->hold;
    t->gradient_epoch = s->epoch;
    t->sweeps = s->sweeps;
    t->swept_epoch = s->swept_epoch;
    flags_restore(s);
    for (int i = 0; i < s->n; i++) {
        struct tape_value *v = &t->entries[s->leaf[i].value];
        v->adjoint = s->leaf[i].adjoint;
        v->gradient_epoch = s->leaf[i].epoch;
    }
    buffers_free(s);
}

void ad_isolation_end(struct ad_isolation *s)
{
    if (ad_isolation_intact(s)) {
        ad_isolation_drop_level(s->t, s->level);
        restore(s);
        tape_arena_rewind(&s->t->arena, &s->arena);
    }
    ad_scratch_free(&s->scratch);
}

void ad_isolation_end_keeping(struct ad_isolation *s)
{
    struct tape *t = s->t;
    const struct tape_mark *from = &t->marks[s->level];
    tape_settle(t);
    tape_no_grad_restore(t, from);
    while (t->n_frames > 0 && t->frames[t->n_frames - 1].number > from->frame)
        t->n_frames--;
    t->n_marks = s->level + 1;
    /* The buffers were there when the mark was taken. */
    const uint64_t live = t->arena.live;
    restore(s);
    t->marks[s->level].arena.live -= live - t->arena.live;
    ad_scratch_free(&s->scratch);
}
