/* tape_told.c: see tape_told.h. */
#include "tape_told.h"

#include "tape_inplace.h"
#include "tape_kind.h"

#include <string.h>

enum { TOLD_APART = 64 }; /* bytes that lie between two arrays, whatever their length */

/* What a value was before. */
struct told_before {
    void *adjoint;
    uint64_t moved; /* bytes that its array was moved by, modulo 2^64 */
    uint32_t epoch;
    bool computed; /* by an op of the program, into a buffer of its own */
};

struct tape_telling {
    struct tape *t;
    struct tape_teller *to;
    struct told_before *before; /* [n_values] */
    uint64_t outside;           /* where the next array outside lies */
};

static void *outside_take(struct tape_telling *g, enum tape_told_array what, uint32_t x,
                          uint64_t bytes)
{
    const uint64_t at = g->outside;
    g->to->outside(g->to, what, x, at, bytes);
    g->outside += (bytes + 2 * TOLD_APART - 1) / TOLD_APART * TOLD_APART;
    return (void *)(uintptr_t)at;
}

/* ---- before and after ---- */

static void array_shift(struct tape_value *v, uint64_t by)
{
    v->array.data = (void *)(uintptr_t)((uint64_t)(uintptr_t)v->array.data + by);
}

/* Arrays that are not computed, and views of them, go outside; so do leaves' gradients, which hold
 * nothing yet. */
static void told_move_out(struct tape_telling *g)
{
    struct tape *t = g->t;
    for (uint32_t i = 1; i < t->n_values; i++) {
        struct tape_value *v = &t->entries[i];
        struct told_before *b = &g->before[i];
        if (v->root == i && !b->computed) {
            const void *at = outside_take(g, TAPE_TOLD_VALUE, i, tape_value_bytes(v));
            b->moved = (uint64_t)(uintptr_t)at - (uint64_t)(uintptr_t)v->array.data;
        } else {
            b->moved = g->before[v->root].moved;
        }
        array_shift(v, b->moved);
        if (!(v->flags & TAPE_LEAF))
            continue;
        b->adjoint = v->adjoint;
        b->epoch = v->gradient_epoch;
        v->adjoint = outside_take(g, TAPE_TOLD_GRADIENT, i, tape_value_bytes(v));
        v->gradient_epoch = t->gradient_epoch - 1;
    }
}

static void told_move_back(struct tape_telling *g)
{
    for (uint32_t i = 1; i < g->t->n_values; i++) {
        struct tape_value *v = &g->t->entries[i];
        array_shift(v, 0 - g->before[i].moved);
        if (v->flags & TAPE_LEAF) {
            v->adjoint = g->before[i].adjoint;
            v->gradient_epoch = g->before[i].epoch;
        }
    }
}

static void computed_find(struct tape_telling *g)
{
    struct tape *t = g->t;
    for (uint32_t at = t->last_record; at != UINT32_MAX; at = tape_record_at(t, at)->previous) {
        struct tape_record *r = tape_record_at(t, at);
        for (int o = 0; o < r->n_out; o++)
            g->before[tape_record_out(r)[o]].computed = true;
    }
}

/* ---- the way back ---- */

static bool seeds_plant(struct tape_telling *g, uint32_t m, const uint32_t *y)
{
    struct tape *t = g->t;
    for (uint32_t k = 0; k < m; k++) {
        struct tape_value *v = &t->entries[y[k]];
        bool fresh;
        if (!(v->flags & TAPE_NEEDS_GRADIENT))
            continue;
        const void *from = outside_take(g, TAPE_TOLD_SEED, k, tape_value_bytes(v));
        void *to = tape_adjoint_buffer(t, v, &fresh);
        if (!to)
            return false;
        tape_adjoint_set(t, v);
        g->to->move(g->to, to, from, tape_value_bytes(v), v->row);
    }
    return true;
}

static bool record_told(struct tape *t, struct tape_record *r)
{
    uint64_t stamp = 0;
    bool seeded = false, ok = true;
    for (int o = 0; o < r->n_out; o++)
        seeded = seeded || t->entries[tape_record_out(r)[o]].adjoint;
    if (seeded)
        ok = tape_record_kind(r)->sweep(t, r, &stamp);
    for (int o = 0; o < r->n_out; o++)
        tape_adjoint_free(t, &t->entries[tape_record_out(r)[o]]);
    return ok;
}

static bool sweep_tell(struct tape_telling *g, uint32_t m, const uint32_t *y)
{
    struct tape *t = g->t;
    bool ok = seeds_plant(g, m, y);
    for (uint32_t at = t->last_record; at != UINT32_MAX;) {
        struct tape_record *r = tape_record_at(t, at);
        if (ok)
            ok = record_told(t, r);
        for (int o = 0; o < r->n_out && !ok; o++)
            tape_adjoint_free(t, &t->entries[tape_record_out(r)[o]]);
        at = r->previous;
    }
    for (uint32_t i = 1; i < t->n_values && ok; i++)
        if (t->entries[i].flags & TAPE_LEAF)
            g->to->leaf(g->to, i, tape_has_adjoint(t, &t->entries[i]));
    return ok;
}

enum tape_status tape_told_verify(struct tape *t, const char *what, struct tape_site site)
{
    char where[160];
    const struct tape_value *listened = NULL;
    struct tape_record *first = NULL;
    for (uint32_t at = t->last_record; at != UINT32_MAX; at = tape_record_at(t, at)->previous)
        if (tape_record_kind(tape_record_at(t, at)) != &tape_op_kind)
            first = tape_record_at(t, at);
    for (uint32_t i = t->n_values; i-- > 1;)
        if (t->entries[i].flags & TAPE_LISTENED)
            listened = &t->entries[i];
    if (!first && !listened)
        return TAPE_OK;
    t->describe(tape_row_site(t, first ? first->row : listened->row), where, sizeof where);
    return tape_fail(t, TAPE_ERROR_STATE, site, "%s: %s at %s %s; the call is", what,
                     first ? tape_record_name(first) : "a tensor", where,
                     first ? "is a function of the user's, which no kernel computes"
                           : "has an ad_on_adjoint, which only a sweep calls");
}

static bool told_run(struct tape_telling *g, uint32_t m, const uint32_t *y)
{
    const bool ok = tape_replay_tell(g->t);
    if (ok)
        g->to->forward(g->to);
    return ok && sweep_tell(g, m, y);
}

bool tape_tell(struct tape *t, struct tape_teller *to, uint32_t m, const uint32_t *y)
{
    struct tape_telling g = {.t = t, .to = to, .outside = TAPE_TOLD_OUTSIDE};
    const size_t bytes = t->n_values * sizeof *g.before;
    g.before = t->memory->resize(NULL, bytes, t->memory->payload);
    if (!g.before) {
        t->arena.refused = bytes;
        return false;
    }
    memset(g.before, 0, bytes);
    /* Nothing is computed: what the buffers take for the time of this call is no line's. */
    tape_account_settle(t);
    struct tape_hook *const hook = t->hook;
    const uint64_t peak = t->arena.peak;
    t->hook = NULL;
    t->teller = to;
    computed_find(&g);
    told_move_out(&g);
    const bool ok = told_run(&g, m, y);
    told_move_back(&g);
    t->teller = NULL;
    t->arena.peak = peak;
    t->hook = hook;
    t->memory->release(g.before, t->memory->payload);
    return ok;
}
