/* collect_events.c: single events: gathered by thread, packed when there are enough, bounded in
 * bytes.
 *
 * Threads share a few stripes, each with its lock; a stripe's lock is taken inside the collector's
 * mutex and never the other way. Invariant: the bytes of all packets together stay within the
 * limit: the first packet that would not is left out, and every event after it, and they are
 * counted.
 */
#include "collect.h"

#include "profile.pb-c.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STRIPES = 16, MOST_EVENTS = 2048, MOST_SITES = 256, SLOTS = 1024 };

/* What events are of: a row of tape_event's, or a scope, in one thread. */
struct site {
    uint32_t kind, line, scope, path;
    bool again, part;
    uint64_t thread, tape;
    uintptr_t pc;
    const char *op;
};

/* A packet under way. */
struct event_batch {
    uint32_t n, n_sites;
    uint64_t last_start, last_record;
    uint32_t site_of[MOST_EVENTS];
    int64_t record[MOST_EVENTS], start[MOST_EVENTS];
    uint64_t ticks[MOST_EVENTS];
    struct site site[MOST_SITES];
    uint16_t slot[SLOTS]; /* hash table: place plus 1 */
};

struct stripe {
    pthread_mutex_t mutex;
    bool closed;
    struct event_batch *batch;  /* NULL: none yet */
    struct collect_buffer done; /* packets that wait for the file */
};

struct collect_events {
    uint64_t most_bytes;
    uint64_t used, left_out; /* atomic */
    uint64_t said;           /* of left_out, in the file */
    bool full;               /* atomic */
    struct stripe stripe[STRIPES];
};

/* Counts openings: in the child of a fork, which opens its own, the thread has another number. */
static uint32_t opened;

struct collect_events *collect_events_open(uint64_t most_bytes)
{
    struct collect_events *events = calloc(1, sizeof *events);
    if (events == NULL)
        return NULL;
    (void)__atomic_fetch_add(&opened, 1, __ATOMIC_RELAXED);
    events->most_bytes = most_bytes;
    for (int i = 0; i < STRIPES; i++)
        pthread_mutex_init(&events->stripe[i].mutex, NULL);
    return events;
}

void collect_events_close(struct collect_events *events)
{
    for (int i = 0; events != NULL && i < STRIPES; i++) {
        struct stripe *s = &events->stripe[i];
        pthread_mutex_lock(&s->mutex);
        s->closed = true;
        free(s->batch);
        free(s->done.data);
        s->batch = NULL;
        s->done = (struct collect_buffer){0};
        pthread_mutex_unlock(&s->mutex);
    }
}

static void events_empty(struct event_batch *b)
{
    b->n = b->n_sites = 0;
    b->last_start = b->last_record = 0;
    memset(b->slot, 0, sizeof b->slot);
}

void collect_events_clear(struct collect_events *events)
{
    for (int i = 0; i < STRIPES; i++) {
        struct stripe *s = &events->stripe[i];
        pthread_mutex_lock(&s->mutex);
        if (s->batch != NULL)
            events_empty(s->batch);
        s->done.n = 0;
        pthread_mutex_unlock(&s->mutex);
    }
}

static void leave_out(struct collect_events *events, uint64_t n)
{
    (void)__atomic_fetch_add(&events->left_out, n, __ATOMIC_RELAXED);
}

static void fill_sites(Tapescope__EventSite *to, Tapescope__EventSite **list,
                       const struct event_batch *b)
{
    for (uint32_t i = 0; i < b->n_sites; i++) {
        const struct site *from = &b->site[i];
        tapescope__event_site__init(&to[i]);
        to[i].kind = from->kind;
        to[i].thread = from->thread;
        to[i].tape = from->tape;
        to[i].pc = from->pc;
        to[i].line = from->line;
        to[i].op = (char *)from->op;
        to[i].scope = from->scope;
        to[i].path = from->path;
        to[i].again = from->again;
        to[i].part = from->part;
        list[i] = &to[i];
    }
}

static bool put_batch(struct collect_buffer *out, struct event_batch *b)
{
    Tapescope__EventSite site[MOST_SITES], *sites[MOST_SITES];
    Tapescope__Timeline message = TAPESCOPE__TIMELINE__INIT;
    fill_sites(site, sites, b);
    message.n_site = b->n_sites;
    message.site = sites;
    message.n_event_site = message.n_event_record = message.n_event_start = message.n_event_ticks =
        b->n;
    message.event_site = b->site_of;
    message.event_record = b->record;
    message.event_start = b->start;
    message.event_ticks = b->ticks;
    return collect_put_packet(out, TAPESCOPE__PACKET__KIND_TIMELINE, &message);
}

/* Packs what the stripe has, or leaves it out. */
static void events_pack(struct collect_events *events, struct stripe *s)
{
    struct event_batch *b = s->batch;
    const size_t before = s->done.n;
    if (b == NULL || b->n == 0)
        return;
    bool ok = !__atomic_load_n(&events->full, __ATOMIC_RELAXED) && put_batch(&s->done, b);
    if (ok) {
        const uint64_t bytes = s->done.n - before;
        ok = __atomic_add_fetch(&events->used, bytes, __ATOMIC_RELAXED) <= events->most_bytes;
        if (!ok)
            __atomic_store_n(&events->full, true, __ATOMIC_RELAXED);
    }
    if (!ok) {
        s->done.n = before;
        leave_out(events, b->n);
    }
    events_empty(b);
}

/* The place of a site in the batch, or MOST_SITES: it has no room for one more. */
static uint32_t events_place_of(struct event_batch *b, const struct site *site)
{
    uint64_t h = site->pc ^ (uint64_t)site->line << 40 ^ (uint64_t)site->scope << 20 ^ site->kind;
    h ^= (uint64_t)site->path << 28 ^ (uint64_t)site->again << 8 ^ (uint64_t)site->part << 9;
    h = (h ^ site->tape << 12 ^ site->thread << 50 ^ (uintptr_t)site->op) *
        UINT64_C(0x9E3779B97F4A7C15);
    for (uint32_t k = (uint32_t)(h >> 40);; k++) {
        uint16_t *slot = &b->slot[k % SLOTS];
        if (*slot == 0) {
            if (b->n_sites == MOST_SITES)
                return MOST_SITES;
            b->site[b->n_sites] = *site;
            *slot = (uint16_t)(++b->n_sites);
            return b->n_sites - 1;
        }
        const struct site *known = &b->site[*slot - 1];
        if (known->pc == site->pc && known->op == site->op && known->line == site->line &&
            known->scope == site->scope && known->kind == site->kind && known->tape == site->tape &&
            known->thread == site->thread && known->path == site->path &&
            known->again == site->again && known->part == site->part)
            return *slot - 1U;
    }
}

static void events_append(struct collect_events *events, struct stripe *s, const struct site *site,
                          const struct tape_event *event)
{
    struct event_batch *b = s->batch;
    uint32_t place = b->n < MOST_EVENTS ? events_place_of(b, site) : MOST_SITES;
    if (place == MOST_SITES) {
        events_pack(events, s);
        place = events_place_of(b, site);
    }
    b->site_of[b->n] = place;
    b->record[b->n] = (int64_t)(event->record - b->last_record);
    b->start[b->n] = (int64_t)(event->start - b->last_start);
    b->ticks[b->n] = event->end - event->start;
    b->last_record = event->record;
    b->last_start = event->start;
    b->n++;
}

void collect_events_take(struct collect_events *events, const struct tape_event *event)
{
    static _Thread_local uint64_t thread;
    static _Thread_local uint32_t seen;
    const uint32_t now = __atomic_load_n(&opened, __ATOMIC_RELAXED);
    if (__atomic_load_n(&events->full, __ATOMIC_RELAXED)) {
        leave_out(events, 1);
        return;
    }
    if (seen != now) {
        seen = now;
        thread = (uint64_t)syscall(SYS_gettid);
    }
    struct stripe *s = &events->stripe[thread % STRIPES];
    const struct tape_row *row = event->row;
    const struct site site = {.kind = event->kind,
                              .line = row != NULL ? row->line : 0,
                              .scope = event->scope,
                              .path = row != NULL ? row->path : 0,
                              .again = event->kind == TAPE_EVENT_FORWARD && event->again,
                              .part = event->part,
                              .thread = thread,
                              .tape = event->tape,
                              .pc = row != NULL ? row->pc : 0,
                              .op = row != NULL ? row->op : ""};
    pthread_mutex_lock(&s->mutex);
    if (s->batch == NULL && !s->closed)
        s->batch = calloc(1, sizeof *s->batch);
    if (s->batch != NULL)
        events_append(events, s, &site, event);
    else if (!s->closed)
        leave_out(events, 1);
    pthread_mutex_unlock(&s->mutex);
}

static bool put_left_out(struct collect_buffer *out, struct collect_events *events)
{
    const uint64_t left_out = __atomic_load_n(&events->left_out, __ATOMIC_RELAXED);
    if (left_out == events->said)
        return true;
    Tapescope__Timeline message = TAPESCOPE__TIMELINE__INIT;
    message.left_out = left_out;
    events->said = left_out;
    return collect_put_packet(out, TAPESCOPE__PACKET__KIND_TIMELINE, &message);
}

bool collect_put_events(struct collect_buffer *out, struct collect_events *events, bool all)
{
    bool ok = true;
    for (int i = 0; i < STRIPES; i++) {
        struct stripe *s = &events->stripe[i];
        pthread_mutex_lock(&s->mutex);
        if (all)
            events_pack(events, s);
        ok = ok && collect_put_bytes(out, s->done.data, s->done.n);
        s->done.n = 0;
        pthread_mutex_unlock(&s->mutex);
    }
    return ok && put_left_out(out, events);
}
