/* analyze_scopes.c: what each scope cost, with the scopes within it.
 *
 * Peaks are of the tape with the greatest peak alone, as elsewhere. Invariant: a scope's parent
 * has a lower place, so that one walk from the end adds up all.
 */
#include "analyze.h"

#include "base_memory.h"
#include "base_table.h"

#include <stdlib.h>
#include <string.h>

/* While the costs are made: ticks of each scope. */
struct build {
    struct analyze_scope_costs *costs;
    struct ticks {
        uint64_t all, self, sweeps, off; /* off: what observing added */
    } * ticks;
    struct base_table known; /* by hash */
    bool by_thread;
};

/* The place of a scope with this name in this parent; made if there is none. */
static size_t scopes_place_of(struct build *b, const struct read_scope *from)
{
    struct analyze_scope_costs *costs = b->costs;
    const size_t parent = from->parent ? costs->place[from->parent - 1] + 1 : 0;
    const uint64_t thread = b->by_thread ? from->thread : 0;
    const uint64_t key = base_hash(base_hash(base_hash_text(from->name), parent), thread);
    size_t walk;
    for (int64_t at = base_table_first(&b->known, key, &walk); at >= 0;
         at = base_table_next(&b->known, key, &walk)) {
        struct analyze_scope_cost *known = &costs->scope[at];
        if (known->parent != parent || strcmp(known->name, from->name) != 0 ||
            (b->by_thread && known->thread != thread))
            continue;
        if (known->thread != from->thread)
            known->thread = 0;
        return (size_t)at;
    }
    costs->scope[costs->n] =
        (struct analyze_scope_cost){.name = from->name, .parent = parent, .thread = from->thread};
    base_table_add(&b->known, key, costs->n);
    return costs->n++;
}

static void add_scope(struct build *b, size_t i, const struct read_scope *from)
{
    const size_t at = scopes_place_of(b, from);
    struct analyze_scope_cost *to = &b->costs->scope[at];
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

static void scopes_add_rows(struct build *b, const struct read_profile *profile,
                            const struct read_tape *tape, bool at_peak)
{
    for (size_t i = 0; i < tape->n_rows; i++) {
        const struct read_row *row = &tape->row[i];
        const struct analyze_cost cost = analyze_row_cost(profile, row, at_peak);
        if (row->scope == 0) {
            analyze_cost_add(&b->costs->outside, &cost);
            continue;
        }
        const size_t at = b->costs->place[row->scope - 1];
        analyze_cost_add(&b->costs->scope[at].cost, &cost);
        /* The reader has taken it off the row. */
        if (profile->forward_overhead > 0) {
            const double off = (double)read_row_timed_calls(row) * profile->forward_overhead;
            b->ticks[at].off = read_add(b->ticks[at].off, read_whole(off));
        }
    }
}

static void scopes_set_times(struct analyze_cost *cost, const struct read_profile *profile)
{
    cost->forward_ns = read_profile_ns(profile, cost->forward_ticks);
    cost->backward_ns = read_profile_ns(profile, cost->backward_ticks);
    cost->recompute_ns = read_profile_ns(profile, cost->recompute_ticks);
}

static void add_up(struct build *b, const struct read_profile *profile)
{
    for (size_t i = b->costs->n; i-- > 0;) {
        struct analyze_scope_cost *scope = &b->costs->scope[i];
        if (scope->parent) {
            struct analyze_scope_cost *parent = &b->costs->scope[scope->parent - 1];
            analyze_cost_add(&parent->cost, &scope->cost);
            parent->records += scope->records;
            b->ticks[scope->parent - 1].all += b->ticks[i].all;
            b->ticks[scope->parent - 1].sweeps += b->ticks[i].sweeps;
            b->ticks[scope->parent - 1].off =
                read_add(b->ticks[scope->parent - 1].off, b->ticks[i].off);
        }
        const struct ticks *ticks = &b->ticks[i];
        const uint64_t other = read_add(ticks->sweeps, ticks->off);
        scope->wall_ns = read_profile_ns(profile, ticks->all);
        scope->self_ns = read_profile_ns(profile, ticks->self);
        scope->forward_ns = read_profile_ns(profile, ticks->all > other ? ticks->all - other : 0);
        scopes_set_times(&scope->cost, profile);
    }
    scopes_set_times(&b->costs->outside, profile);
}

void analyze_scope_costs_make(struct analyze_scope_costs *costs, const struct read_profile *profile,
                              bool by_thread)
{
    struct build b = {.costs = costs, .by_thread = by_thread};
    *costs = (struct analyze_scope_costs){
        .scope = base_calloc(profile->n_scopes + 1, sizeof *costs->scope),
        .place = base_calloc(profile->n_scopes + 1, sizeof *costs->place),
    };
    b.ticks = base_calloc(profile->n_scopes + 1, sizeof *b.ticks);
    size_t peak = 0;
    for (size_t i = 1; i < profile->n_tapes; i++)
        if (profile->tape[i].peak_bytes > profile->tape[peak].peak_bytes)
            peak = i;
    for (size_t i = 0; i < profile->n_scopes; i++)
        add_scope(&b, i, &profile->scope[i]);
    for (size_t i = 0; i < profile->n_tapes; i++)
        scopes_add_rows(&b, profile, &profile->tape[i], i == peak);
    add_up(&b, profile);
    free(b.ticks);
    base_table_free(&b.known);
}

void analyze_scope_costs_free(struct analyze_scope_costs *costs)
{
    free(costs->scope);
    free(costs->place);
    *costs = (struct analyze_scope_costs){0};
}
