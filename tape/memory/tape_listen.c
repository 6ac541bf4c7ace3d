/* tape_listen.c: see tape_listen.h. */
#include "tape_listen.h"

#include "tape_no_grad.h"
#include "tape_nonfinite.h"
#include "tape_observer.h"
#include "tape_reach.h"
#include "tape_value.h"

#include <string.h>

const char tape_listen_op[] = "on_adjoint";

struct tape_listeners {
    struct tape_listener *of; /* [n], in no order */
    uint32_t n, size;
    bool on; /* a sweep is under way that changes gradients */
};

static bool listener_lives(const struct tape *t, const struct tape_listener *l)
{
    if (l->value >= t->n_values)
        return false;
    const struct tape_value *v = &t->entries[l->value];
    return (v->flags & TAPE_LISTENED) &&
           (v->flags & TAPE_RELEASED ? v->retained : v->generation) == l->generation;
}

/* The listener of a value that has one, or NULL. */
static struct tape_listener *listener_of(const struct tape *t, uint32_t x)
{
    struct tape_listeners *s = t->listeners;
    for (uint32_t i = s->n; i-- > 0;)
        if (s->of[i].value == x && listener_lives(t, &s->of[i]))
            return &s->of[i];
    return NULL;
}

static void listeners_tidy(struct tape *t)
{
    struct tape_listeners *s = t->listeners;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++)
        if (listener_lives(t, &s->of[i]))
            s->of[n++] = s->of[i];
    s->n = n;
}

enum tape_status tape_listen(struct tape *t, uint32_t x, const struct tape_listener *l,
                             struct tape_site site)
{
    struct tape_listeners *s = t->listeners;
    struct tape_value *v = &t->entries[x];
    char open[TAPE_NO_GRAD_TEXT];
    tape_observed(t);
    tape_account_moment(t);
    if (x < t->fixed.n_values)
        return tape_fail(t, TAPE_ERROR_STATE, site, "%s: the tensor is older than the %s that runs",
                         tape_listen_op, tape_fixed_by(t));
    if (!(v->flags & TAPE_NEEDS_GRADIENT))
        return tape_fail(t, TAPE_ERROR_STATE, site, "%s: a constant has no adjoint%s",
                         tape_listen_op, tape_no_grad_open(t, open));
    struct tape_listener *at = listener_of(t, x);
    if (!l->callback) {
        v->flags &= ~(uint32_t)TAPE_LISTENED;
        return TAPE_OK;
    }
    if (!at) {
        if (s->n == s->size)
            listeners_tidy(t);
        struct tape_listener *of =
            tape_array_reserve(t->memory, s->of, s->n + 1, &s->size, sizeof *of);
        if (!of)
            return tape_fail(t, TAPE_ERROR_MEMORY, site, "%s: out of memory", tape_listen_op);
        s->of = of;
        at = &s->of[s->n++];
    }
    *at = *l;
    at->value = x;
    at->generation = v->generation;
    at->before = NULL;
    at->row = tape_account_row(t, site, tape_listen_op);
    tape_account_called(t, at->row);
    v->flags |= TAPE_LISTENED;
    return TAPE_OK;
}

/* ---- sweeps ---- */

bool tape_listen_begin(struct tape *t)
{
    struct tape_listeners *s = t->listeners;
    s->on = true;
    for (uint32_t i = 0; i < s->n; i++) {
        struct tape_listener *l = &s->of[i];
        struct tape_value *v = &t->entries[l->value];
        if (!listener_lives(t, l) || !(v->flags & TAPE_LEAF) || !tape_has_adjoint(t, v))
            continue;
        const uint64_t n = tape_value_bytes(v);
        l->before = tape_arena_buffer(&t->arena, n);
        if (!l->before)
            return false;
        tape_account_buffer(t, l->row, n);
        memcpy(l->before, v->adjoint, n);
        v->gradient_epoch = t->gradient_epoch - 1;
    }
    return true;
}

bool tape_listen_tell(struct tape *t, struct tape_value *v, uint64_t *stamp)
{
    const uint32_t x = tape_value_index(t, v);
    const struct tape_listener *l = t->listeners->on ? listener_of(t, x) : NULL;
    if (!l || x < t->fixed.n_values) /* a function by itself is as it is */
        return true;
    const uint32_t row = l->row;
    tape_now_row(t, TAPE_PHASE_BACKWARD, row);
    bool ok = l->call(t, l, v, tape_row_site(t, row));
    ok = ok &&
         (!t->nonfinite || tape_nonfinite_adjoint(t, v, tape_listen_op, tape_row_site(t, row)));
    tape_sweep_charge_row(t, row, stamp);
    return ok;
}

bool tape_listen_leaves(struct tape *t, uint64_t *stamp)
{
    struct tape_listeners *s = t->listeners;
    for (uint32_t i = 0; i < s->n; i++) {
        struct tape_listener *l = &s->of[i];
        struct tape_value *v = &t->entries[l->value];
        if (!listener_lives(t, l) || !(v->flags & TAPE_LEAF))
            continue;
        const bool has = tape_has_adjoint(t, v);
        if (has && !tape_listen_tell(t, v, stamp))
            return false;
        if (!l->before)
            continue;
        tape_add_into(v, v->adjoint, l->before, !has);
        v->gradient_epoch = t->gradient_epoch;
    }
    return true;
}

void tape_listen_end(struct tape *t)
{
    struct tape_listeners *s = t->listeners;
    s->on = false;
    for (uint32_t i = 0; i < s->n; i++) {
        struct tape_listener *l = &s->of[i];
        if (!l->before)
            continue;
        const uint64_t n = tape_value_bytes(&t->entries[l->value]);
        tape_arena_free(&t->arena, l->before, n);
        tape_account_free(t, l->row, n);
        l->before = NULL;
    }
}

/* ---- the part ---- */

static void listeners_attach(struct tape *t, void *state)
{
    t->listeners = state;
}

static void listeners_begin(struct tape *t)
{
    t->listeners->n = 0;
}

static void listeners_end(struct tape *t)
{
    if (t->listeners->of)
        t->memory->release(t->listeners->of, t->memory->payload);
}

static void listeners_rewind(struct tape *t, const struct tape_mark *mark, const char *end)
{
    struct tape_listeners *s = t->listeners;
    uint32_t n = 0;
    (void)end;
    for (uint32_t i = 0; i < s->n; i++)
        if (s->of[i].value < mark->n_values)
            s->of[n++] = s->of[i];
    s->n = n;
}

/* A function that changes an adjoint would be no part of a recorded derivative. */
static enum tape_status listeners_graph_refuse(struct tape *t, uint32_t y, struct tape_site site)
{
    const struct tape_listeners *s = t->listeners;
    const struct tape_listener *found = NULL;
    uint32_t reads;
    if (s->n == 0)
        return TAPE_OK;
    if (!tape_reach_begin(t, y))
        return tape_fail_memory(t, site, "create_graph");
    for (uint32_t at = t->last_record; at != UINT32_MAX; at = tape_record_at(t, at)->previous)
        tape_reach(t, tape_record_at(t, at), TAPE_STARTS, &reads);
    for (uint32_t i = 0; i < s->n && !found; i++)
        if (listener_lives(t, &s->of[i]) &&
            (t->entries[s->of[i].value].flags & (TAPE_STARTS | TAPE_REACHED)) ==
                (TAPE_STARTS | TAPE_REACHED))
            found = &s->of[i];
    tape_reach_end(t);
    if (!found)
        return TAPE_OK;
    char made[160];
    t->describe(tape_row_site(t, found->row), made, sizeof made);
    return tape_fail(t, TAPE_ERROR_STATE, site,
                     "create_graph: on the way an adjoint has a callback, from %s at %s, which a "
                     "recorded derivative would lack; the call is",
                     tape_listen_op, made);
}

const struct tape_part tape_listen_part = {.bytes = sizeof(struct tape_listeners),
                                           .attach = listeners_attach,
                                           .begin = listeners_begin,
                                           .end = listeners_end,
                                           .rewind = listeners_rewind,
                                           .graph_refuse = listeners_graph_refuse};
