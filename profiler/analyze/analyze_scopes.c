/* analyze_scopes.c: what each scope cost, with the scopes within it.
 *
 * May include: analyze.h. Peaks are of the tape with the greatest peak alone, as elsewhere.
 * Invariant: a scope's parent has a lower place, so that one walk from the end adds up all.
 */
#include "analyze.h"

#include <stdlib.h>
#include <string.h>

/* While the costs are made: ticks of each scope. */
struct build {
    struct prof_scope_costs *costs;
    struct ticks {
        uint64_t all, self, sweeps, off; /* off: what observing added */
    } * ticks;
    size_t *slot; /* hash table: place plus 1 */
    size_t n_slots;
    bool by_thread;
};

static uint64_t hash_of(size_t parent, uint64_t thread, const char *name)
{
    uint64_t h = 14695981039346656037u ^ parent ^ thread << 32; /* FNV-1a */
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 1099511628211u;
    return h ^ h >> 29;
}

/* The place of a scope with this name in this parent; made if there is none. */
static size_t place_of(struct build *b, const struct prof_scope *from)
{
    struct prof_scope_costs *costs = b->costs;
    const size_t parent = from->parent ? costs->place[from->parent - 1] + 1 : 0;
    const uint64_t thread = b->by_thread ? from->thread : 0;
    for (uint64_t h = hash_of(parent, thread, from->name);; h++) {
        size_t *slot = &b->slot[h & (b->n_slots - 1)];
        if (*slot == 0) {
            costs->scope[costs->n] = (struct prof_scope_cost){
                .name = from->name, .parent = parent, .thread = from->thread};
            *slot = ++costs->n;
            return costs->n - 1;
        }
        struct prof_scope_cost *known = &costs->scope[*slot - 1];
        if (known->parent != parent || strcmp(known->name, from->name) != 0 ||
            (b->by_thread && known->thread != thread))
            continue;
        if (known->thread != from->thread)
            known->thread = 0;
        return *slot - 1;
    }
}

static void add_scope(struct build *b, size_t i, const struct prof_scope *from)
{
    const size_t at = place_of(b, from);
    struct prof_scope_cost *to = &b->costs->scope[at];
    b->costs->place[i] = at;
    to->calls += from->calls;
    to->recorded_calls += from->recorded_calls;
    to->open_calls += from->open_calls;
    to->records += from->records;
    b->ticks[at].all += from->ticks;
    b->ticks[at].self += from->ticks;
    b->ticks[at].sweeps += from->sweep_ticks;
    b->ticks[at].off += from->overhead_ticks; /* of merged profiles: their rows add none */
}

static void add_rows(struct build *b, const struct prof_profile *profile,
                     const struct prof_tape *tape, bool at_peak)
{
    for (size_t i = 0; i < tape->n_rows; i++) {
        const struct prof_row *row = &tape->row[i];
        struct prof_cost cost = {
#define X(name) .name = row->name,
            PROF_ROW_COUNTERS(X)
#undef X
                .byte_ns = row->byte_ticks / profile->ticks_per_ns,
        };
        if (!at_peak)
            cost.peak_bytes = 0;
        if (row->scope == 0) {
            prof_cost_add(&b->costs->outside, &cost);
            continue;
        }
        const size_t at = b->costs->place[row->scope - 1];
        prof_cost_add(&b->costs->scope[at].cost, &cost);
        if (row->forward_ticks > 0) /* the reader has taken it off the row */
            b->ticks[at].off = prof_add(b->ticks[at].off,
                                        prof_whole((double)row->calls * profile->forward_overhead));
    }
}

static void set_times(struct prof_cost *cost, const struct prof_profile *profile)
{
    cost->forward_ns = prof_profile_ns(profile, cost->forward_ticks);
    cost->backward_ns = prof_profile_ns(profile, cost->backward_ticks);
    cost->recompute_ns = prof_profile_ns(profile, cost->recompute_ticks);
}

static void add_up(struct build *b, const struct prof_profile *profile)
{
    for (size_t i = b->costs->n; i-- > 0;) {
        struct prof_scope_cost *scope = &b->costs->scope[i];
        if (scope->parent) {
            struct prof_scope_cost *parent = &b->costs->scope[scope->parent - 1];
            prof_cost_add(&parent->cost, &scope->cost);
            parent->records += scope->records;
            b->ticks[scope->parent - 1].all += b->ticks[i].all;
            b->ticks[scope->parent - 1].sweeps += b->ticks[i].sweeps;
            b->ticks[scope->parent - 1].off =
                prof_add(b->ticks[scope->parent - 1].off, b->ticks[i].off);
        }
        const struct ticks *ticks = &b->ticks[i];
        const uint64_t other = prof_add(ticks->sweeps, ticks->off);
        scope->wall_ns = prof_profile_ns(profile, ticks->all);
        scope->self_ns = prof_profile_ns(profile, ticks->self);
        scope->forward_ns = prof_profile_ns(profile, ticks->all > other ? ticks->all - other : 0);
        set_times(&scope->cost, profile);
    }
    set_times(&b->costs->outside, profile);
}

int prof_scope_costs_make(struct prof_scope_costs *costs, const struct prof_profile *profile,
                          bool by_thread)
{
    struct build b = {.costs = costs, .n_slots = 64, .by_thread = by_thread};
    while (b.n_slots < 2 * profile->n_scopes)
        b.n_slots *= 2;
    *costs = (struct prof_scope_costs){
        .scope = calloc(profile->n_scopes + 1, sizeof *costs->scope),
        .place = calloc(profile->n_scopes + 1, sizeof *costs->place),
    };
    b.ticks = calloc(profile->n_scopes + 1, sizeof *b.ticks);
    b.slot = calloc(b.n_slots, sizeof *b.slot);
    const bool ok = costs->scope && costs->place && b.ticks && b.slot;
    size_t peak = 0;
    for (size_t i = 1; i < profile->n_tapes; i++)
        if (profile->tape[i].peak_bytes > profile->tape[peak].peak_bytes)
            peak = i;
    for (size_t i = 0; ok && i < profile->n_scopes; i++)
        add_scope(&b, i, &profile->scope[i]);
    for (size_t i = 0; ok && i < profile->n_tapes; i++)
        add_rows(&b, profile, &profile->tape[i], i == peak);
    if (ok)
        add_up(&b, profile);
    free(b.ticks);
    free(b.slot);
    return ok ? 0 : -1;
}

void prof_scope_costs_free(struct prof_scope_costs *costs)
{
    free(costs->scope);
    free(costs->place);
    *costs = (struct prof_scope_costs){0};
}
