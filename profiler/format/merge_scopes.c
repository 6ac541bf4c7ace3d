/* merge_scopes.c: the scopes of all profiles as one forest.
 *
 * May include: merge_state.h.
 * Scopes are one if their names with their keys, the scopes that they stand in and the numbers of
 * their threads are: threads of two processes share a number as do those of one that did not live
 * at one time. Invariant: a parent's place is less than its child's; counters are sums.
 */
#include "merge_state.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SCOPES_IN_PACKET = 4096 };

static bool same_scope(const void *payload, uint32_t place, const void *key)
{
    const struct merge *merge = payload;
    const struct prof_scope *a = &merge->scope[place], *b = key;
    return a->parent == b->parent && a->thread == b->thread && strcmp(a->name, b->name) == 0;
}

/* In ns, but for what is no time. */
static struct prof_scope in_ns(const struct prof_profile *profile, const struct prof_scope *from)
{
    struct prof_scope to = *from;
    to.ticks = prof_profile_ns(profile, from->ticks);
    to.sweep_ticks = prof_profile_ns(profile, from->sweep_ticks);
    to.overhead_ticks = prof_profile_ns(profile, from->overhead_ticks);
    return to;
}

static uint32_t add_scope(struct merge *merge, const struct merge_set *set, size_t i,
                          const struct prof_scope *from)
{
    struct prof_scope made = in_ns(merge->profile[i], from);
    made.parent = merge_scope(merge, i, from->parent);
    const uint64_t hash =
        merge_mix_text(merge_mix(merge_mix(0, made.parent), made.thread), made.name);
    uint32_t *slot = merge_set_find(set, hash, same_scope, merge, &made);
    if (*slot == 0) {
        merge->scope[merge->n_scopes] = made;
        return *slot = (uint32_t)++merge->n_scopes;
    }
    struct prof_scope *to = &merge->scope[*slot - 1];
#define X(name) to->name = prof_add(to->name, made.name);
    PROF_SCOPE_COUNTERS(X)
#undef X
    return *slot;
}

/* What the reader took off a row's time was in its scope's time as well. */
static void take_overhead(struct merge *merge, size_t i)
{
    const struct prof_profile *profile = merge->profile[i];
    for (size_t j = 0; j < profile->n_tapes; j++) {
        for (size_t k = 0; k < profile->tape[j].n_rows; k++) {
            const struct prof_row *row = &profile->tape[j].row[k];
            if (row->scope == 0 || row->forward_ticks == 0)
                continue;
            const uint64_t ticks = prof_whole((double)row->calls * profile->forward_overhead);
            struct prof_scope *to = &merge->scope[merge_scope(merge, i, row->scope) - 1];
            to->overhead_ticks = prof_add(to->overhead_ticks, prof_profile_ns(profile, ticks));
        }
    }
}

static bool same_expectation(const struct prof_expectation *a, const struct prof_expectation *b)
{
    return a->kind == b->kind && a->pc == b->pc && a->line == b->line && a->scope == b->scope &&
           (a->bound == b->bound || (isnan(a->bound) && isnan(b->bound)));
}

static bool same_place(const void *payload, uint32_t place, const void *key)
{
    const struct merge *merge = payload;
    return same_expectation(&merge->expectation[place], key);
}

static void add_expectation(struct merge *merge, const struct merge_set *set, size_t i,
                            const struct prof_expectation *from)
{
    struct prof_expectation made = *from;
    made.pc = merge_move(merge, i, from->pc);
    made.scope = merge_scope(merge, i, from->scope);
    uint32_t *slot = merge_set_find(set, merge_mix(merge_mix(made.kind, made.pc), made.scope),
                                    same_place, merge, &made);
    if (*slot == 0) {
        merge->expectation[merge->n_expectations] = made;
        *slot = (uint32_t)++merge->n_expectations;
    } else {
        merge->expectation[*slot - 1].times =
            prof_add(merge->expectation[*slot - 1].times, made.times);
    }
}

static void add_all(struct merge *merge, const struct merge_set *scopes,
                    const struct merge_set *expectations)
{
    size_t at = 0;
    for (size_t i = 0; i < merge->n; i++) {
        const struct prof_profile *profile = merge->profile[i];
        merge->first_scope[i] = at;
        for (size_t j = 0; j < profile->n_scopes; j++)
            merge->scope_of[at++] = add_scope(merge, scopes, i, &profile->scope[j]);
        for (size_t j = 0; j < profile->n_expectations; j++)
            add_expectation(merge, expectations, i, &profile->expectation[j]);
        if (profile->forward_overhead > 0)
            take_overhead(merge, i);
    }
}

bool merge_open_scopes(struct merge *merge)
{
    size_t scopes = 0, expectations = 0;
    struct merge_set set = {0}, stated = {0};
    for (size_t i = 0; i < merge->n; i++) {
        scopes += merge->profile[i]->n_scopes;
        expectations += merge->profile[i]->n_expectations;
    }
    merge->scope = calloc(scopes + 1, sizeof *merge->scope);
    merge->scope_of = calloc(scopes + 1, sizeof *merge->scope_of);
    merge->first_scope = calloc(merge->n + 1, sizeof *merge->first_scope);
    merge->expectation = calloc(expectations + 1, sizeof *merge->expectation);
    const bool ok = merge_set_open(&set, scopes) && merge_set_open(&stated, expectations) &&
                    merge->scope && merge->scope_of && merge->first_scope && merge->expectation;
    if (ok)
        add_all(merge, &set, &stated);
    free(set.slot);
    free(stated.slot);
    return ok;
}

uint32_t merge_scope(const struct merge *merge, size_t i, uint32_t scope)
{
    return scope ? merge->scope_of[merge->first_scope[i] + scope - 1] : 0;
}

/* Steps are those of every process: from the first to the last that any has measured. */
static bool sum_steps(const struct merge *merge, Tapescope__Steps *steps)
{
    bool any = false;
    for (size_t i = 0; i < merge->n; i++) {
        const struct prof_profile *profile = merge->profile[i];
        if (!profile->has_steps)
            continue;
        if (!any || profile->first_step < steps->first)
            steps->first = profile->first_step;
        if (!any || profile->last_step > steps->last)
            steps->last = profile->last_step;
        if (profile->seen_steps > steps->seen)
            steps->seen = profile->seen_steps;
        steps->by_call |= profile->steps_by_call;
        any = true;
    }
    return any;
}

static Tapescope__Expectation **pack_expectations(const struct merge *merge,
                                                  Tapescope__Expectation *made)
{
    Tapescope__Expectation **list =
        calloc(merge->n_expectations + 1, sizeof(Tapescope__Expectation *));
    for (size_t i = 0; list && made && i < merge->n_expectations; i++) {
        const struct prof_expectation *from = &merge->expectation[i];
        tapescope__expectation__init(&made[i]);
        made[i].id = (uint32_t)i + 1;
        made[i].kind = from->kind;
        made[i].pc = from->pc;
        made[i].line = from->line;
        made[i].scope = from->scope;
        made[i].bound = from->bound;
        made[i].times = from->times;
        list[i] = &made[i];
    }
    return list;
}

static void fill_scope(Tapescope__Scope *to, const struct prof_scope *from, size_t place)
{
    tapescope__scope__init(to);
    to->id = (uint32_t)place + 1;
    to->parent = from->parent;
    to->thread = from->thread;
    to->name = from->name;
#define X(name) to->name = from->name;
    PROF_SCOPE_COUNTERS(X)
#undef X
}

/* Packets of scopes; the last one has what is not a scope. */
static void put_packets(const struct merge *merge, struct writer *writer, Tapescope__Scopes *whole,
                        Tapescope__Scope *made, Tapescope__Scope **list)
{
    for (size_t i = 0; writer->error == 0;) {
        Tapescope__Scopes scopes = TAPESCOPE__SCOPES__INIT;
        Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
        size_t n = 0;
        for (; i < merge->n_scopes && n < SCOPES_IN_PACKET; i++, n++) {
            list[n] = &made[n];
            fill_scope(&made[n], &merge->scope[i], i);
        }
        if (i == merge->n_scopes)
            scopes = *whole;
        scopes.scope = list;
        scopes.n_scope = n;
        packet.kind_case = TAPESCOPE__PACKET__KIND_SCOPES;
        packet.scopes = &scopes;
        writer_put_packet(writer, &packet);
        if (i == merge->n_scopes)
            break;
    }
}

void merge_put_scopes(const struct merge *merge, struct writer *writer)
{
    Tapescope__Scopes whole = TAPESCOPE__SCOPES__INIT;
    Tapescope__Steps steps = TAPESCOPE__STEPS__INIT;
    for (size_t i = 0; i < merge->n; i++)
        whole.lost = prof_add(whole.lost, merge->profile[i]->lost_scopes);
    whole.steps = sum_steps(merge, &steps) ? &steps : NULL;
    if (merge->n_scopes == 0 && merge->n_expectations == 0 && whole.lost == 0 && !whole.steps)
        return;
    Tapescope__Scope *made = calloc(SCOPES_IN_PACKET, sizeof *made);
    Tapescope__Scope **list = calloc(SCOPES_IN_PACKET, sizeof(Tapescope__Scope *));
    Tapescope__Expectation *stated = calloc(merge->n_expectations + 1, sizeof *stated);
    whole.expectation = pack_expectations(merge, stated);
    whole.n_expectation = merge->n_expectations;
    if (made && list && stated && whole.expectation)
        put_packets(merge, writer, &whole, made, list);
    else if (writer->error == 0)
        writer->error = ENOMEM;
    free(made);
    free(list);
    free(stated);
    free(whole.expectation);
}
