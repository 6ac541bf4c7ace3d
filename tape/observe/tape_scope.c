/* tape_scope.c: the tree of scopes, and the stack of each thread.
 *
 * Memory is the system's own, since scopes are no tape's. What a thread has (a lane) goes to the
 * next new thread when it ends, with its part of the tree, so that a program of many short threads
 * has as many nodes as one of few. The lock guards the list of lanes and what is appended; a
 * lane's owner searches its own table without it.
 */
#include "tape_scope.h"

#include "tape_account.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 64, LEAST_SLOTS = 64, MOST_NAME = 240 };

struct frame {
    uint32_t node;           /* 0: there was no room for it */
    uint32_t now;            /* the thread's scope within it */
    uint32_t number;         /* 0: a block's */
    uint32_t session;        /* in which it was begun: of another it is no call */
    bool open;               /* counted as an open call */
    uint64_t start, records; /* ticks, and records of the thread, when it was begun */
};

struct lane {
    uint64_t number;
    uint32_t session; /* that stamp, records and sweeps belong to */
    uint32_t depth;   /* frames beyond MOST_DEPTH are counted alone */
    uint64_t stamp, records, sweeps, own;
    uint32_t *slot; /* hash table: nodes of this lane */
    uint32_t n_slots, n_nodes;
    struct lane *next; /* in the list of those that are free */
    struct frame frame[MOST_DEPTH];
};

/* Nodes are of one thread at a time, but any may begin an observation, which clears them. */
#define ADD(counter, n) (void)__atomic_fetch_add(&(counter), (uint64_t)(n), __ATOMIC_RELAXED)

_Thread_local uint32_t tape_scope_now;
_Thread_local uint64_t tape_scope_records;
_Thread_local uint64_t tape_scope_sweeps;
_Thread_local uint64_t tape_scope_own;
_Thread_local bool tape_scope_again;
_Thread_local uint64_t tape_scope_charged;

static _Thread_local struct lane *mine;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tape_scopes scopes = {.n = 1};
static struct lane *free_lanes;
static uint64_t last_lane;
static pthread_key_t at_exit;
static bool has_key;

/* ---- lanes ---- */

static void scope_leave(void *lane)
{
    struct lane *l = lane;
    l->depth = 0;
    tape_scope_now = 0;
    mine = NULL;
    pthread_mutex_lock(&lock);
    l->next = free_lanes;
    free_lanes = l;
    pthread_mutex_unlock(&lock);
}

static struct lane *lane_take(void)
{
    pthread_mutex_lock(&lock);
    if (!has_key)
        has_key = pthread_key_create(&at_exit, scope_leave) == 0;
    struct lane *l = has_key ? free_lanes : NULL;
    if (l) {
        free_lanes = l->next;
    } else if (has_key && (l = calloc(1, sizeof *l))) {
        l->slot = calloc(LEAST_SLOTS, sizeof *l->slot);
        l->n_slots = LEAST_SLOTS;
        if (l->slot) {
            l->number = ++last_lane;
        } else {
            free(l);
            l = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
    if (l && pthread_setspecific(at_exit, l) != 0) {
        scope_leave(l);
        l = NULL;
    }
    return l;
}

/* ---- the tree ---- */

static uint64_t scope_hash_text(uint64_t h, const char *text)
{
    for (size_t i = 0; text[i] && i < MOST_NAME; i++)
        h = (h ^ (unsigned char)text[i]) * UINT64_C(1099511628211); /* FNV-1a */
    return (h ^ 0xff) * UINT64_C(1099511628211);
}

static uint64_t scope_hash_of(uint32_t parent, const char *name, struct tape_scope_keys keys)
{
    uint64_t h = scope_hash_text(UINT64_C(14695981039346656037) ^ parent, name);
    for (uint32_t i = 0; i < keys.n; i++)
        h = scope_hash_text(h ^ (uint64_t)keys.value[i] * UINT64_C(0x9E3779B97F4A7C15),
                            keys.key[i]);
    return h ^ (h >> 29);
}

static uint64_t hash_of_node(const struct tape_scope *s)
{
    return scope_hash_of(
        s->parent, s->name,
        (struct tape_scope_keys){.n = s->n_keys, .key = s->key, .value = s->value});
}

static bool is_node(const struct tape_scope *s, uint32_t parent, const char *name,
                    struct tape_scope_keys keys)
{
    if (s->parent != parent || s->n_keys != keys.n || strncmp(s->name, name, MOST_NAME) != 0)
        return false;
    for (uint32_t i = 0; i < keys.n; i++)
        if (s->value[i] != keys.value[i] || strncmp(s->key[i], keys.key[i], MOST_NAME) != 0)
            return false;
    return true;
}

static bool lane_reserve(struct lane *l)
{
    if (2 * (l->n_nodes + 1) <= l->n_slots)
        return true;
    const uint32_t n = 2 * l->n_slots;
    uint32_t *slot = calloc(n, sizeof *slot);
    if (!slot)
        return false;
    for (uint32_t i = 0; i < l->n_slots; i++) {
        if (!l->slot[i])
            continue;
        uint64_t h = hash_of_node(tape_scopes_at(&scopes, l->slot[i]));
        while (slot[h & (n - 1)])
            h++;
        slot[h & (n - 1)] = l->slot[i];
    }
    free(l->slot);
    l->slot = slot;
    l->n_slots = n;
    return true;
}

/* Copies the texts of a node into one piece of memory. */
static bool copy_texts(struct tape_scope *to, const char *name, struct tape_scope_keys keys)
{
    size_t n[1 + TAPE_SCOPE_KEYS] = {strnlen(name, MOST_NAME)}, all = n[0] + 1;
    for (uint32_t i = 0; i < keys.n; i++) {
        n[i + 1] = strnlen(keys.key[i], MOST_NAME);
        all += n[i + 1] + 1;
    }
    char *text = calloc(all, 1);
    if (!text)
        return false;
    to->name = memcpy(text, name, n[0]);
    text += n[0] + 1;
    for (uint32_t i = 0; i < keys.n; i++) {
        to->key[i] = memcpy(text, keys.key[i], n[i + 1]);
        to->value[i] = keys.value[i];
        text += n[i + 1] + 1;
    }
    return true;
}

/* A new node's number, or 0: no room. */
static uint32_t scope_append(struct lane *l, uint32_t parent, const char *name,
                             struct tape_scope_keys keys)
{
    pthread_mutex_lock(&lock);
    uint32_t i = scopes.n;
    struct tape_scope **chunk = &scopes.chunk[i / TAPE_SCOPE_CHUNK % TAPE_SCOPE_CHUNKS];
    bool ok = i < TAPE_SCOPE_CHUNK * TAPE_SCOPE_CHUNKS && lane_reserve(l);
    if (ok && !*chunk)
        ok = (*chunk = calloc(TAPE_SCOPE_CHUNK, sizeof **chunk)) != NULL;
    if (ok) {
        struct tape_scope *s = tape_scopes_at(&scopes, i);
        *s = (struct tape_scope){.parent = parent, .n_keys = keys.n, .lane = l->number};
        ok = copy_texts(s, name, keys);
    }
    if (ok) {
        l->n_nodes++;
        /* Another thread that reads n must find the node filled. */
        __atomic_store_n(&scopes.n, i + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return ok ? i : 0;
}

/* The node's number, or 0: there is no room for it. */
static uint32_t scope_node_of(struct lane *l, uint32_t parent, const char *name,
                              struct tape_scope_keys keys)
{
    const uint64_t h = scope_hash_of(parent, name, keys);
    for (uint64_t k = h;; k++) {
        const uint32_t at = l->slot[k & (l->n_slots - 1)];
        if (!at)
            break;
        if (is_node(tape_scopes_at(&scopes, at), parent, name, keys))
            return at;
    }
    const uint32_t made = scope_append(l, parent, name, keys);
    if (made) {
        uint64_t k = h;
        while (l->slot[k & (l->n_slots - 1)])
            k++;
        l->slot[k & (l->n_slots - 1)] = made;
    }
    return made;
}

/* ---- begin and end ---- */

/* A moment of an observation; without a hook: nothing observes. */
struct moment {
    struct tape_hook *hook;
    uint32_t session;
    uint64_t ticks;
};

/* The session is asked for last: a hook whose observation has ended since counts nothing. */
static struct moment moment_now(void)
{
    struct moment now = {.hook = __atomic_load_n(&tape_hook_now, __ATOMIC_ACQUIRE)};
    if (now.hook)
        now.ticks = now.hook->clock();
    if (now.hook && !tape_session_of(now.hook, &now.session))
        now.hook = NULL;
    return now;
}

/* The thread's present scope gets what has passed since the last begin or end. */
static void scope_charge(struct lane *l, const struct moment *at)
{
    const uint32_t session = at->session;
    const uint64_t now = at->ticks;
    if (l->session == session && tape_scope_now != 0) {
        struct tape_scope *s = tape_scopes_at(&scopes, tape_scope_now);
        ADD(s->ticks, now - l->stamp - (tape_scope_own - l->own));
        ADD(s->records, tape_scope_records - l->records);
        ADD(s->sweep_ticks, tape_scope_again ? now - l->stamp : tape_scope_sweeps - l->sweeps);
    }
    if (tape_scope_again && l->session == session)
        tape_scope_charged += now - l->stamp;
    l->session = session;
    l->stamp = now;
    l->records = tape_scope_records;
    l->sweeps = tape_scope_sweeps;
    l->own = tape_scope_own;
}

static void scope_settle(struct lane *l)
{
    const struct moment now = moment_now();
    if (now.hook)
        scope_charge(l, &now);
}

uint32_t tape_scope_begin(const char *name, struct tape_scope_keys keys, uint32_t number)
{
    if (!__atomic_load_n(&tape_hook_now, __ATOMIC_ACQUIRE) || (!mine && !(mine = lane_take())))
        return 0;
    struct lane *l = mine;
    const struct moment now = moment_now();
    if (!now.hook)
        return 0;
    scope_charge(l, &now);
    const uint32_t at = l->depth++;
    if (at >= MOST_DEPTH) {
        ADD(scopes.lost, 1);
        return l->depth;
    }
    const uint32_t node = scope_node_of(l, tape_scope_now, name, keys);
    if (node) {
        tape_scope_now = node;
        ADD(tape_scopes_at(&scopes, node)->calls, !tape_scope_again);
        ADD(tape_scopes_at(&scopes, node)->open_calls, !tape_scope_again);
    } else {
        ADD(scopes.lost, 1);
    }
    l->frame[at] = (struct frame){.node = node,
                                  .now = tape_scope_now,
                                  .number = number,
                                  .session = l->session,
                                  .open = node && !tape_scope_again,
                                  .start = now.ticks,
                                  .records = tape_scope_records};
    return l->depth;
}

uint32_t tape_scope_depth(void)
{
    return mine ? mine->depth : 0;
}

/* Ends all scopes behind the first `depth`. */
static void scope_unwind(struct lane *l, uint32_t depth)
{
    const struct moment now = moment_now();
    struct tape_hook *hook = now.hook;
    if (hook)
        scope_charge(l, &now);
    while (l->depth > depth) {
        const uint32_t at = --l->depth;
        if (at >= MOST_DEPTH)
            continue;
        const struct frame *f = &l->frame[at];
        const bool counted = hook && f->session == now.session;
        if (counted && f->open)
            ADD(tape_scopes_at(&scopes, f->node)->open_calls, -1);
        if (counted && f->node && tape_scope_records != f->records && !tape_scope_again)
            ADD(tape_scopes_at(&scopes, f->node)->recorded_calls, 1);
        if (counted && f->node && hook->event)
            hook->event(hook, &(struct tape_event){.kind = TAPE_EVENT_SCOPE,
                                                   .scope = f->node,
                                                   .start = f->start,
                                                   .end = now.ticks});
        tape_scope_now = at > 0 ? l->frame[at - 1].now : 0;
    }
}

uint32_t tape_scope_again_begin(uint32_t scope)
{
    const bool observed = __atomic_load_n(&tape_hook_now, __ATOMIC_ACQUIRE) != NULL;
    struct lane *l = mine;
    uint32_t depth = 0;
    if (observed && l && (l->depth > 0 || scope))
        scope_settle(l);
    /* Nodes of another thread's, which had the tape before, are that thread's to write. */
    if (observed && l && (l->depth > 0 || scope) && l->depth < MOST_DEPTH &&
        (scope == 0 || tape_scopes_at(&scopes, scope)->lane == l->number)) {
        l->frame[l->depth] = (struct frame){.now = scope, .number = UINT32_MAX};
        tape_scope_now = scope;
        depth = ++l->depth;
    }
    tape_scope_again = true;
    return depth;
}

void tape_scope_again_end(uint32_t depth)
{
    if (depth && mine && mine->depth >= depth)
        scope_unwind(mine, depth - 1);
    tape_scope_again = false;
}

static const char *name_at(const struct lane *l, uint32_t at)
{
    const uint32_t node = l->frame[at < MOST_DEPTH ? at : MOST_DEPTH - 1].node;
    return node ? tape_scopes_at(&scopes, node)->name : "";
}

struct tape_scope_fault tape_scope_end(uint32_t depth)
{
    struct lane *l = mine;
    struct tape_scope_fault fault = {TAPE_SCOPE_FINE, NULL};
    if (!l || l->depth < depth) /* an end that was a fault has ended it already */
        return fault;
    if (l->depth > depth)
        fault = (struct tape_scope_fault){TAPE_SCOPE_LEFT_OPEN, name_at(l, l->depth - 1)};
    scope_unwind(l, depth - 1);
    return fault;
}

struct tape_scope_fault tape_scope_end_number(uint32_t number)
{
    struct lane *l = mine;
    struct tape_scope_fault fault = {TAPE_SCOPE_FINE, NULL};
    uint32_t at = l ? l->depth : 0;
    if (at > MOST_DEPTH) { /* whose end this is was not kept: the last one's, if all is well */
        l->depth--;
        return fault;
    }
    while (at > 0 && l->frame[at - 1].number != number)
        at--;
    if (at == 0) /* begun before anything observed */
        return fault;
    if (at < l->depth)
        fault = (struct tape_scope_fault){TAPE_SCOPE_IN_BLOCK, name_at(l, l->depth - 1)};
    scope_unwind(l, at - 1);
    return fault;
}

/* ---- expectations ---- */

void tape_scope_expect(uintptr_t pc, uint32_t line, enum tape_expected kind, double bound)
{
    if (!__atomic_load_n(&tape_hook_now, __ATOMIC_ACQUIRE))
        return;
    pthread_mutex_lock(&lock);
    if (!scopes.expectation)
        scopes.expectation = calloc(TAPE_SCOPE_EXPECTATIONS, sizeof *scopes.expectation);
    struct tape_expectation *e = scopes.expectation;
    uint32_t i = 0, n = e ? scopes.n_expectations : 0;
    while (i < n && !(e[i].pc == pc && e[i].kind == (uint32_t)kind && e[i].bound == bound &&
                      e[i].scope == tape_scope_now))
        i++;
    if (e && i == n && n < TAPE_SCOPE_EXPECTATIONS) {
        e[i] = (struct tape_expectation){
            .pc = pc, .line = line, .scope = tape_scope_now, .kind = kind, .bound = bound};
        __atomic_store_n(&scopes.n_expectations, ++n, __ATOMIC_RELEASE);
    }
    if (i < n)
        ADD(e[i].times, 1);
    else
        ADD(scopes.lost, 1);
    pthread_mutex_unlock(&lock);
}

/* ---- observations ---- */

void tape_scope_settle(void)
{
    if (mine && mine->depth > 0)
        scope_settle(mine);
}

void tape_scope_observe(struct tape_hook *hook)
{
    pthread_mutex_lock(&lock);
    for (uint32_t i = 1; i < scopes.n; i++) {
        struct tape_scope *s = tape_scopes_at(&scopes, i);
#define X(name) __atomic_store_n(&s->name, 0, __ATOMIC_RELAXED);
        SCOPE_COUNTERS(X)
#undef X
    }
    for (uint32_t i = 0; i < scopes.n_expectations; i++)
        __atomic_store_n(&scopes.expectation[i].times, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&scopes.lost, 0, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
    if (hook->begin)
        hook->begin(hook, &scopes);
}

struct tape_steps *tape_scope_steps(void)
{
    return &scopes.steps;
}

void tape_scope_forget(void)
{
    pthread_mutex_init(&lock, NULL);
}
