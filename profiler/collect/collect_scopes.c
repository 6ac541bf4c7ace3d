/* collect_scopes.c: the process's scopes and expectations as packets.
 *
 * Threads may be in scopes while the tree is read: nodes are complete once they are counted, and
 * counters are loaded relaxed. What is known here of the file belongs to the collector's mutex.
 */
#include "collect.h"

#include "profile_frame.h"

#include <stdlib.h>
#include <string.h>

enum { SCOPES_PER_PACKET = 1 << 12 };

#define LOAD(place) __atomic_load_n((place), __ATOMIC_RELAXED)

/* Messages of one packet, and the room for them. */
struct pack {
    Tapescope__Scope **scopes;
    Tapescope__ScopeKey **keys; /* TAPE_SCOPE_KEYS a scope */
    Tapescope__Expectation **expectations;
    uint32_t n;
    Tapescope__Steps steps;
    Tapescope__Scopes message;
};

static bool pack_open(struct pack *pack, uint32_t n_scopes, uint32_t n_expectations)
{
    const size_t most = n_scopes < SCOPES_PER_PACKET ? n_scopes : SCOPES_PER_PACKET;
    *pack = (struct pack){
        .scopes = profile_list(&tapescope__scope__descriptor, most),
        .keys = profile_list(&tapescope__scope_key__descriptor, TAPE_SCOPE_KEYS * most),
        .expectations = profile_list(&tapescope__expectation__descriptor, n_expectations),
    };
    tapescope__scopes__init(&pack->message);
    return pack->scopes && pack->keys && pack->expectations;
}

static void scopes_pack_close(struct pack *pack)
{
    free(pack->scopes);
    free(pack->keys);
    free(pack->expectations);
}

/* Appends the packet, and empties it. */
static bool pack_send(struct pack *pack, struct collect_buffer *out)
{
    pack->message.n_scope = pack->n;
    pack->message.scope = pack->scopes;
    const bool ok = collect_put_packet(out, TAPESCOPE__PACKET__KIND_SCOPES, &pack->message);
    pack->n = 0;
    pack->message.n_expectation = 0;
    return ok;
}

static void pack_scope(struct pack *pack, uint32_t id, const struct tape_scope *from,
                       const struct collect_scope *now)
{
    Tapescope__Scope *to = pack->scopes[pack->n];
    Tapescope__ScopeKey **keys = &pack->keys[(size_t)pack->n * TAPE_SCOPE_KEYS];
    to->id = id;
    to->parent = from->parent;
    to->thread = from->lane;
    to->name = (char *)from->name;
    to->n_key = from->n_keys;
    to->key = keys;
    for (uint32_t i = 0; i < from->n_keys; i++) {
        keys[i]->key = (char *)from->key[i];
        keys[i]->value = from->value[i];
    }
#define X(name) to->name = now->name;
    SCOPE_COUNTERS(X)
#undef X
    pack->n++;
}

static void pack_expectations(struct pack *pack, const struct tape_scopes *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct tape_expectation *e = &from->expectation[i];
        Tapescope__Expectation *to = pack->expectations[i];
        to->id = i + 1;
        to->kind = e->kind;
        to->pc = e->pc;
        to->line = e->line;
        to->scope = e->scope;
        to->bound = e->bound;
        to->times = LOAD(&e->times);
    }
    pack->message.n_expectation = n;
    pack->message.expectation = pack->expectations;
}

static void pack_steps(struct pack *pack, const struct tape_steps *from)
{
    tapescope__steps__init(&pack->steps);
    pack->steps.first = LOAD(&from->first);
    pack->steps.last = LOAD(&from->last);
    pack->steps.seen = LOAD(&from->seen);
    pack->steps.by_call = LOAD(&from->by_call) != 0;
    pack->message.steps = &pack->steps;
}

static uint64_t times_passed(const struct tape_scopes *from, uint32_t n)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += LOAD(&from->expectation[i].times);
    return sum;
}

static bool scopes_reserve(struct collect_scopes *scopes, uint32_t n)
{
    if (n <= scopes->capacity)
        return true;
    struct collect_scope *scope = realloc(scopes->scope, n * sizeof *scope);
    if (scope == NULL)
        return false;
    memset(scope + scopes->capacity, 0, (n - scopes->capacity) * sizeof *scope);
    scopes->scope = scope;
    scopes->capacity = n;
    return true;
}

/* Appends those of the first n nodes that are new or changed, or all. */
static bool put_nodes(struct collect_buffer *out, struct collect_scopes *scopes, struct pack *pack,
                      uint32_t n, bool all)
{
    for (uint32_t i = 1; i < n; i++) {
        const struct tape_scope *from = tape_scopes_at(scopes->from, i);
        struct collect_scope *known = &scopes->scope[i];
        const struct collect_scope now = {.written = true,
#define X(name) .name = LOAD(&from->name),
                                          SCOPE_COUNTERS(X)
#undef X
        };
        bool same = known->written;
#define X(name) same = same && now.name == known->name;
        SCOPE_COUNTERS(X)
#undef X
        if (same && !all)
            continue;
        if (pack->n == SCOPES_PER_PACKET && !pack_send(pack, out))
            return false;
        pack_scope(pack, i, from, &now);
        if (!all)
            *known = now;
    }
    return true;
}

bool collect_scopes_are_new(const struct collect_scopes *scopes)
{
    return scopes->from != NULL && __atomic_load_n(&scopes->from->n, __ATOMIC_ACQUIRE) > scopes->n;
}

bool collect_put_scopes(struct collect_buffer *out, struct collect_scopes *scopes, bool all)
{
    const struct tape_scopes *from = scopes->from;
    if (from == NULL)
        return true;
    const uint32_t n = __atomic_load_n(&from->n, __ATOMIC_ACQUIRE);
    const uint32_t n_expected = __atomic_load_n(&from->n_expectations, __ATOMIC_ACQUIRE);
    const uint64_t lost = LOAD(&from->lost), expected = times_passed(from, n_expected);
    const bool asked = LOAD(&from->steps.asked) != 0;
    const uint64_t seen = asked ? LOAD(&from->steps.seen) + 1 : 0;
    if (n <= 1 && expected == 0 && lost == 0 && !asked)
        return true;
    const size_t before = out->n;
    struct pack pack;
    bool ok = pack_open(&pack, n, n_expected) && scopes_reserve(scopes, n) &&
              put_nodes(out, scopes, &pack, n, all);
    pack.message.lost = lost;
    if (asked)
        pack_steps(&pack, &from->steps);
    if (ok && (all || expected != scopes->expected))
        pack_expectations(&pack, from, n_expected);
    if (ok && (pack.n > 0 || pack.message.n_expectation > 0 || lost != scopes->lost ||
               seen != scopes->seen_steps))
        ok = pack_send(&pack, out);
    scopes_pack_close(&pack);
    if (!ok) {
        out->n = before;
        return false;
    }
    if (!all) {
        scopes->n = n;
        scopes->expected = expected;
        scopes->lost = lost;
        scopes->seen_steps = seen;
    }
    return true;
}

void collect_scopes_free(struct collect_scopes *scopes)
{
    free(scopes->scope);
    *scopes = (struct collect_scopes){0};
}
