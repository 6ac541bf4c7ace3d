/* export_events.c: see export_events.h. */
#include "export_events.h"

#include <stdlib.h>
#include <string.h>

const char *const export_event_kinds[] = {
    [PROF_EVENT_FORWARD] = "forward",
    [PROF_EVENT_BACKWARD] = "backward",
    [PROF_EVENT_SWEEP] = "sweep",
    [PROF_EVENT_SCOPE] = "scope",
};

/* A hash table of places plus 1, without removal. */
struct table {
    uint32_t *slot;
    size_t n_slots, n;
};

struct reading {
    const struct export_job *job;
    struct export_events *events;
    struct table sites;   /* of events->site */
    struct table records; /* of events->event: the newest op with that record of its tape */
    uint32_t n_flows;
    bool failed;
};

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ (h >> 29);
}

static uint64_t hash_site(const struct export_site *site)
{
    uint64_t h = mix(site->pc, (uint64_t)site->kind << 32 | site->call_line);
    h = mix(mix(mix(h, site->thread), site->tape), (uint64_t)site->process << 32 | site->scope);
    for (const char *at = site->name; *at; at++)
        h = mix(h, (unsigned char)*at);
    return h;
}

static uint64_t hash_record(const struct reading *r, uint32_t event)
{
    const struct export_event *at = &r->events->event[event];
    const struct export_site *site = &r->events->site[at->site];
    return mix(mix(at->record, site->tape), site->process);
}

static uint64_t hash_of(const struct reading *r, const struct table *table, uint32_t place)
{
    return table == &r->sites ? hash_site(&r->events->site[place]) : hash_record(r, place);
}

/* At least twice as many slots as will be used with one more. */
static bool grow_table(struct reading *r, struct table *table)
{
    enum { LEAST = 256 };
    if (2 * (table->n + 1) <= table->n_slots)
        return true;
    const struct table old = *table;
    table->n_slots = old.n_slots ? 2 * old.n_slots : LEAST;
    table->slot = calloc(table->n_slots, sizeof *table->slot);
    if (!table->slot) {
        *table = old;
        return false;
    }
    for (size_t i = 0; i < old.n_slots; i++) {
        if (old.slot[i] == 0)
            continue;
        uint64_t h = hash_of(r, table, old.slot[i] - 1);
        while (table->slot[h & (table->n_slots - 1)])
            h++;
        table->slot[h & (table->n_slots - 1)] = old.slot[i];
    }
    free(old.slot);
    return true;
}

static void *grow(void *array, size_t n, size_t *room, size_t size)
{
    enum { LEAST = 256 };
    if (n < *room)
        return array;
    const size_t more = *room ? 2 * *room : LEAST;
    void *grown = more <= UINT32_MAX / 2 ? reallocarray(array, more, size) : NULL;
    if (grown)
        *room = more;
    return grown;
}

static bool same_site(const struct export_site *a, const struct export_site *b)
{
    return a->kind == b->kind && a->thread == b->thread && a->tape == b->tape && a->pc == b->pc &&
           a->call_line == b->call_line && a->process == b->process && a->scope == b->scope &&
           strcmp(a->name, b->name) == 0;
}

/* The place of a site like this one, whose name is copied the first time. */
static uint32_t site_place(struct reading *r, const struct export_site *like)
{
    struct export_events *events = r->events;
    if (!grow_table(r, &r->sites)) {
        r->failed = true;
        return 0;
    }
    uint64_t h = hash_site(like);
    uint32_t *slot;
    for (; *(slot = &r->sites.slot[h & (r->sites.n_slots - 1)]); h++)
        if (same_site(&events->site[*slot - 1], like))
            return *slot - 1;
    struct export_site *site =
        grow(events->site, events->n_sites, &events->room_sites, sizeof *site);
    events->site = site ? site : events->site;
    char *name = site ? strdup(like->name) : NULL;
    if (!name) {
        r->failed = true;
        return 0;
    }
    site[events->n_sites] = *like;
    site[events->n_sites].name = name;
    *slot = (uint32_t)++events->n_sites;
    r->sites.n++;
    return *slot - 1;
}

/* The slot of the newest op with the event's record on the tape, or the free one. */
static uint32_t *record_slot(struct reading *r, const struct export_event *event,
                             const struct export_site *site)
{
    uint64_t h = mix(mix(event->record, site->tape), site->process);
    for (;; h++) {
        uint32_t *slot = &r->records.slot[h & (r->records.n_slots - 1)];
        if (*slot == 0)
            return slot;
        const struct export_event *known = &r->events->event[*slot - 1];
        const struct export_site *at = &r->events->site[known->site];
        if (known->record == event->record && at->tape == site->tape &&
            at->process == site->process)
            return slot;
    }
}

/* Of one call. A run of statements has no event of an op: what had its place before is another. */
static bool same_call(const struct export_site *op, const struct export_site *pullback)
{
    return op->pc == pullback->pc && op->call_line == pullback->call_line &&
           strcmp(op->name, pullback->name) == 0;
}

/* Joins ops and pullbacks in the order of the profile; the last event is new. */
static void link_event(struct reading *r)
{
    struct export_event *event = &r->events->event[r->events->n - 1];
    const struct export_site *site = &r->events->site[event->site];
    const bool op = site->kind == PROF_EVENT_FORWARD;
    if (event->record == 0 || (!op && site->kind != PROF_EVENT_BACKWARD))
        return;
    if (!grow_table(r, &r->records)) {
        r->failed = true;
        return;
    }
    uint32_t *slot = record_slot(r, event, site);
    if (op) {
        r->records.n += *slot == 0;
        *slot = (uint32_t)r->events->n;
    } else if (*slot > 0) {
        struct export_event *from = &r->events->event[*slot - 1];
        const bool same = same_call(&r->events->site[from->site], site);
        if (same && from->flow == 0)
            from->flow = ++r->n_flows;
        event->flow = same ? from->flow : 0;
    }
}

static void take(void *payload, const struct prof_profile *profile, const struct prof_event *event)
{
    struct reading *r = payload;
    struct export_events *events = r->events;
    if (r->failed)
        return;
    const bool scope = event->kind == PROF_EVENT_SCOPE;
    const char *name = event->op;
    if (scope)
        name = event->scope > 0 ? profile->scope[event->scope - 1].name : "";
    const struct export_site like = {
        .kind = event->kind,
        .process = event->process,
        .thread = event->thread,
        .tape = event->tape,
        .pc = event->pc,
        .call_line = event->line,
        .scope = event->scope,
        .name = (char *)name,
    };
    struct export_event *at = grow(events->event, events->n, &events->room, sizeof *at);
    events->event = at ? at : events->event;
    const uint32_t site = at ? site_place(r, &like) : 0;
    r->failed |= !at;
    if (r->failed)
        return;
    at[events->n] = (struct export_event){
        .start = event->start_ticks,
        .end = event->start_ticks + event->ticks,
        .record = event->record,
        .site = site,
        .order = (uint32_t)events->n,
    };
    events->n++;
    link_event(r);
}

static int compare(const void *x, const void *y, void *payload)
{
    const struct export_event *a = x, *b = y;
    const struct export_site *site = payload;
    const struct export_site *s = &site[a->site], *t = &site[b->site];
    if (s->process != t->process)
        return s->process < t->process ? -1 : 1;
    if (s->thread != t->thread)
        return s->thread < t->thread ? -1 : 1;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->end != b->end)
        return a->end > b->end ? -1 : 1;
    return a->order > b->order ? -1 : 1; /* what ended later is around the other */
}

/* Times as ns; what would end behind an event that it began in ends with it. */
static void nest(struct export_events *events, const struct export_thread *thread,
                 const struct prof_profile *profile, size_t *open)
{
    size_t depth = 0;
    for (size_t i = thread->first; i < thread->first + thread->n; i++) {
        struct export_event *event = &events->event[i];
        event->start = export_ns(profile, event->start);
        event->end = export_ns(profile, event->end);
        if (event->end < event->start) /* a forged profile's */
            event->end = event->start;
        while (depth > 0 && events->event[open[depth - 1]].end <= event->start)
            depth--;
        if (depth > 0 && events->event[open[depth - 1]].end < event->end)
            event->end = events->event[open[depth - 1]].end;
        open[depth++] = i;
    }
}

/* Orders the events and divides them among the threads. */
static int arrange(struct export_events *events, const struct export_job *job)
{
    size_t *open = calloc(events->n + 1, sizeof *open);
    qsort_r(events->event, events->n, sizeof *events->event, compare, events->site);
    size_t room = 0;
    for (size_t i = 0; open && i < events->n; i++) {
        const struct export_site *site = &events->site[events->event[i].site];
        const struct export_thread *last =
            events->n_threads > 0 ? &events->thread[events->n_threads - 1] : NULL;
        if (!last || last->tid != site->thread || last->process != site->process) {
            struct export_thread *thread =
                grow(events->thread, events->n_threads, &room, sizeof *thread);
            if (!thread) {
                free(open);
                return -1;
            }
            events->thread = thread;
            thread[events->n_threads++] =
                (struct export_thread){.process = site->process, .tid = site->thread, .first = i};
        }
        events->thread[events->n_threads - 1].n++;
    }
    for (size_t i = 0; open && i < events->n_threads; i++)
        nest(events, &events->thread[i], job->analysis->profile, open);
    free(open);
    return open ? 0 : -1;
}

int export_events_read(struct export_events *events, const struct export_job *job)
{
    const struct prof_profile *profile = job->analysis->profile;
    *events = (struct export_events){0};
    if (profile->n_events == 0) {
        snprintf(job->error, job->error_room,
                 "%s: it has no timeline; record one by: tapescope record --timeline 64MiB -- "
                 "./program",
                 profile->path);
        return 1;
    }
    struct reading r = {.job = job, .events = events};
    struct prof_profile *again =
        prof_profile_read_events(profile->path, take, &r, job->error, job->error_room);
    free(r.sites.slot);
    free(r.records.slot);
    if (!again)
        return 1;
    prof_profile_free(again);
    if (r.failed)
        return -1;
    for (size_t i = 0; i < events->n_sites; i++) {
        struct export_site *site = &events->site[i];
        const struct prof_row row = {.pc = site->pc, .line = site->call_line, .op = site->name};
        if (site->kind != PROF_EVENT_SCOPE)
            prof_line_of_row(job->analysis, &row, &site->line);
    }
    return arrange(events, job);
}

void export_events_free(struct export_events *events)
{
    for (size_t i = 0; i < events->n_sites; i++)
        free(events->site[i].name);
    free(events->event);
    free(events->site);
    free(events->thread);
    *events = (struct export_events){0};
}

char *export_thread_name(char buf[EXPORT_THREAD_ROOM], const struct export_thread *thread)
{
    if (thread->process > 0)
        snprintf(buf, EXPORT_THREAD_ROOM, "process %u thread %llu", (unsigned)thread->process,
                 (unsigned long long)thread->tid);
    else
        snprintf(buf, EXPORT_THREAD_ROOM, "thread %llu", (unsigned long long)thread->tid);
    return buf;
}

uint64_t export_pid(const struct export_job *job, uint32_t process)
{
    return process > 0 ? process : job->analysis->profile->pid;
}

char *export_event_name(char buf[EXPORT_NAME_ROOM], const struct export_site *site)
{
    char text[EXPORT_NAME_ROOM];
    if (site->kind == PROF_EVENT_SWEEP)
        return export_clean(buf, "sweep", "");
    if (site->kind != PROF_EVENT_BACKWARD)
        return export_clean(buf, site->name, "");
    snprintf(text, sizeof text, "%.4000s backward", site->name);
    return export_clean(buf, text, "");
}

char *export_event_place(char buf[EXPORT_NAME_ROOM], const struct export_site *site)
{
    char text[EXPORT_NAME_ROOM];
    const struct prof_line *line = &site->line;
    text[0] = '\0';
    if (line->file && line->line > 0)
        snprintf(text, sizeof text, "%s:%u", export_base_name(line->file), (unsigned)line->line);
    else if (line->file)
        snprintf(text, sizeof text, "%s", export_base_name(line->file));
    return export_clean(buf, text, "");
}

char *export_event_label(char buf[EXPORT_NAME_ROOM], const struct export_site *site)
{
    char name[EXPORT_NAME_ROOM], place[EXPORT_NAME_ROOM], text[2 * EXPORT_NAME_ROOM];
    export_event_name(name, site);
    export_event_place(place, site);
    snprintf(text, sizeof text, "%s%s%s", name, *place ? " " : "", place);
    return export_clean(buf, text, "");
}

int export_each_edge(const struct export_events *events, const struct export_thread *thread,
                     export_edge_fn *each, void *payload)
{
    size_t depth = 0, *open = calloc(thread->n + 1, sizeof *open);
    if (!open)
        return -1;
    for (size_t i = thread->first; i < thread->first + thread->n; i++) {
        const struct export_event *event = &events->event[i];
        while (depth > 0 && events->event[open[depth - 1]].end <= event->start)
            each(payload, &events->event[open[--depth]], true);
        each(payload, event, false);
        open[depth++] = i;
    }
    while (depth > 0)
        each(payload, &events->event[open[--depth]], true);
    free(open);
    return 0;
}
