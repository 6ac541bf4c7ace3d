/* export_events.c: see export_events.h. */
#include "export_events.h"
#include "analyze_ranks.h"
#include "base_strings.h"

#include "base_array.h"
#include "base_memory.h"
#include "base_table.h"

#include <stdlib.h>
#include <string.h>

#define ROW(X, NAME, number, name, category) [READ_EVENT_##NAME] = (category),
const char *const export_event_kinds[EXPORT_EVENT_KINDS] = {
    EVENT_LIST(ROW, )[EXPORT_TRANSFER] = "transfer",
    [EXPORT_WAITS] = "waiting",
    [EXPORT_MESSAGE] = "message",
};
#undef ROW

struct reading {
    const struct export_job *job;
    struct export_events *events;
    struct base_table sites;   /* of events->site, by hash */
    struct base_table records; /* of `newest`, by the record and its tape */
    uint32_t *newest;          /* events: the newest op with a record of a tape */
    size_t n_newest, room_newest;
};

static uint64_t events_hash_site(const struct export_site *site)
{
    uint64_t h = base_hash(site->pc, (uint64_t)site->kind << 32 | site->call_line);
    h = base_hash(base_hash(h, site->thread), site->tape);
    return base_hash(base_hash(h, (uint64_t)site->process << 32 | site->scope),
                     base_hash_text(site->name));
}

static bool events_same_site(const struct export_site *a, const struct export_site *b)
{
    return a->kind == b->kind && a->thread == b->thread && a->tape == b->tape && a->pc == b->pc &&
           a->call_line == b->call_line && a->process == b->process && a->scope == b->scope &&
           strcmp(a->name, b->name) == 0;
}

/* The place of a site like this one, whose name is copied the first time. */
static uint32_t site_place(struct reading *r, const struct export_site *like)
{
    struct export_events *events = r->events;
    const uint64_t key = events_hash_site(like);
    size_t walk;
    for (int64_t at = base_table_first(&r->sites, key, &walk); at >= 0;
         at = base_table_next(&r->sites, key, &walk))
        if (events_same_site(&events->site[at], like))
            return (uint32_t)at;
    BASE_ARRAY_GROW(events->site, events->n_sites, &events->room_sites);
    base_table_add(&r->sites, key, events->n_sites);
    events->site[events->n_sites] = *like;
    events->site[events->n_sites].name = base_strdup(like->name);
    return (uint32_t)events->n_sites++;
}

/* The newest op with the event's record on the tape, or NULL. */
static uint32_t *newest_of(const struct reading *r, const struct export_event *event,
                           const struct export_site *site, uint64_t key)
{
    size_t walk;
    for (int64_t at = base_table_first(&r->records, key, &walk); at >= 0;
         at = base_table_next(&r->records, key, &walk)) {
        const struct export_event *known = &r->events->event[r->newest[at]];
        const struct export_site *of = &r->events->site[known->site];
        if (known->record == event->record && of->tape == site->tape &&
            of->process == site->process)
            return &r->newest[at];
    }
    return NULL;
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
    const bool op = site->kind == READ_EVENT_FORWARD;
    if (event->record == 0 || (!op && site->kind != READ_EVENT_BACKWARD))
        return;
    const uint64_t key = base_hash(base_hash(event->record, site->tape), site->process);
    uint32_t *newest = newest_of(r, event, site, key);
    if (op && newest) {
        *newest = (uint32_t)(r->events->n - 1);
    } else if (op) {
        BASE_ARRAY_GROW(r->newest, r->n_newest, &r->room_newest);
        base_table_add(&r->records, key, r->n_newest);
        r->newest[r->n_newest++] = (uint32_t)(r->events->n - 1);
    } else if (newest) {
        struct export_event *from = &r->events->event[*newest];
        const bool same = same_call(&r->events->site[from->site], site);
        if (same && from->flow == 0) {
            from->flow = ++r->events->n_flows;
            from->flows = 1;
        }
        event->flow = same ? from->flow : 0;
    }
}

static void events_take(void *payload, const struct read_profile *profile,
                        const struct read_event *event)
{
    struct reading *r = payload;
    struct export_events *events = r->events;
    const bool scope = event->kind == READ_EVENT_SCOPE;
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
    const uint32_t site = site_place(r, &like);
    BASE_ARRAY_GROW(events->event, events->n, &events->room);
    events->event[events->n] = (struct export_event){
        .start = event->start_ticks,
        .end = event->start_ticks + event->ticks,
        .record = event->record,
        .site = site,
        .order = (uint32_t)events->n,
    };
    events->n++;
    link_event(r);
}

/* ---- the ranks of a set ---- */

/* Ticks of the sum, which are ns, on rank 0's clock, since the sum began: may be below 0. */
static int64_t events_on_clock(const struct export_job *job, uint32_t process, uint64_t ticks)
{
    const struct read_profile *sum = job->analysis->profile;
    return analyze_ranks_since(job->analysis->ranks, sum, process, read_profile_since(sum, ticks));
}

static void events_add_message(struct reading *r, const struct export_site *like, int64_t start,
                               int64_t end, uint32_t flow, uint32_t flows)
{
    struct export_events *events = r->events;
    const uint32_t site = site_place(r, like);
    BASE_ARRAY_GROW(events->event, events->n, &events->room);
    events->event[events->n] = (struct export_event){
        .start = (uint64_t)start,
        .end = (uint64_t)(end < start ? start : end),
        .site = site,
        .flow = flow,
        .flows = flows,
        .order = (uint32_t)events->n,
    };
    events->n++;
}

/* What is around the others comes last, see events_compare. An arrow goes to the transfer: that is
 * what begins behind the send, or behind the last that came to a collective call. */
static void events_take_message(struct reading *r, size_t rank, size_t i)
{
    char name[EXPORT_NAME_ROOM];
    const struct analyze_ranks *ranks = r->job->analysis->ranks;
    const struct read_profile *profile = ranks->analysis[rank]->profile;
    const struct read_message_call *call = &profile->message_call[profile->message[i].call];
    const struct analyze_message *m = &ranks->log[rank].message[i];
    const uint32_t before = r->events->n_flows;
    const struct read_profile *sum = r->job->analysis->profile;
    const int64_t start = analyze_ranks_logged(ranks, sum, m->start_ns);
    const int64_t end = analyze_ranks_logged(ranks, sum, m->end_ns);
    int64_t met = start + m->waiting_ns;
    struct export_site site = {.process = (uint32_t)rank + 1, .pc = call->pc};
    site.call_line = call->line;
    snprintf(name, sizeof name, "%.4000s%s", call->op, call->backward ? " backward" : "");
    if (m->gets > 0 && m->waiting_ns > 0 && met < end)
        met++;
    site.kind = EXPORT_TRANSFER;
    site.name = (char *)"transfer";
    if (m->measured || m->gets > 0)
        events_add_message(r, &site, met, end, m->gets > 0 ? before + m->gets : 0, 0);
    site.kind = EXPORT_WAITS;
    site.name = (char *)"waiting";
    if (m->measured && m->waiting_ns > 0)
        events_add_message(r, &site, start, start + m->waiting_ns, 0, 0);
    site.kind = EXPORT_MESSAGE;
    site.name = name;
    events_add_message(r, &site, start, end, m->sends > 0 ? before + m->sends : 0, m->n_sends);
}

/* Adds the ranks' messages, and puts all on rank 0's clock. */
static void events_take_ranks(struct reading *r)
{
    struct export_events *events = r->events;
    const struct analyze_ranks *ranks = r->job->analysis->ranks;
    const uint64_t begin = r->job->analysis->profile->start_ticks;
    int64_t least = 0;
    for (size_t i = 0; i < events->n; i++) {
        struct export_event *event = &events->event[i];
        const uint32_t process = events->site[event->site].process;
        event->start = (uint64_t)events_on_clock(r->job, process, event->start);
        event->end = (uint64_t)events_on_clock(r->job, process, event->end);
    }
    for (size_t rank = 0; rank < ranks->n; rank++)
        for (size_t i = 0; i < ranks->log[rank].n; i++)
            events_take_message(r, rank, i);
    for (size_t i = 0; i < events->n; i++)
        least = (int64_t)events->event[i].start < least ? (int64_t)events->event[i].start : least;
    for (size_t i = 0; i < events->n; i++) {
        events->event[i].start += begin - (uint64_t)least;
        events->event[i].end += begin - (uint64_t)least;
    }
}

static int events_compare(const void *x, const void *y, void *payload)
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
static void events_nest(struct export_events *events, const struct export_thread *thread,
                        const struct read_profile *profile, size_t *open)
{
    size_t depth = 0;
    for (size_t i = thread->first; i < thread->first + thread->n; i++) {
        struct export_event *event = &events->event[i];
        event->start = read_profile_since(profile, event->start);
        event->end = read_profile_since(profile, event->end);
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
static void events_arrange(struct export_events *events, const struct export_job *job)
{
    size_t *open = base_calloc(events->n + 1, sizeof *open);
    qsort_r(events->event, events->n, sizeof *events->event, events_compare, events->site);
    size_t room = 0;
    for (size_t i = 0; i < events->n; i++) {
        const struct export_site *site = &events->site[events->event[i].site];
        const struct export_thread *last =
            events->n_threads > 0 ? &events->thread[events->n_threads - 1] : NULL;
        if (!last || last->tid != site->thread || last->process != site->process) {
            BASE_ARRAY_GROW(events->thread, events->n_threads, &room);
            events->thread[events->n_threads++] =
                (struct export_thread){.process = site->process,
                                       .messages = site->kind >= READ_EVENT_KINDS,
                                       .tid = site->thread,
                                       .first = i};
        }
        events->thread[events->n_threads - 1].n++;
    }
    for (size_t i = 0; i < events->n_threads; i++)
        events_nest(events, &events->thread[i], job->analysis->profile, open);
    free(open);
}

bool export_has_events(const struct export_job *job)
{
    const struct analyze_ranks *ranks = job->analysis->ranks;
    size_t n = 0;
    for (size_t i = 0; ranks && i < ranks->n; i++)
        n += ranks->log[i].n;
    return n > 0 || job->analysis->profile->n_events > 0;
}

/* False: job->error says why. */
static bool events_read_timeline(struct reading *r)
{
    const struct export_job *job = r->job;
    if (job->analysis->profile->n_events == 0)
        return true;
    struct read_profile *again = read_profile_events(read_profile_stored(job->analysis->profile),
                                                     events_take, r, job->error, job->error_room);
    read_profile_free(again);
    return again != NULL;
}

/* Messages are at the addresses of their rank. */
static void events_find_line(const struct export_job *job, struct export_site *site)
{
    size_t rank;
    const bool message = site->kind >= READ_EVENT_KINDS &&
                         analyze_ranks_place(job->analysis->ranks, site->process, &rank);
    const struct analyze_result *analysis =
        message ? job->analysis->ranks->analysis[rank] : job->analysis;
    const struct read_row row = {.pc = site->pc, .line = site->call_line, .op = site->name};
    if (site->kind != READ_EVENT_SCOPE)
        analyze_line_of_row(analysis, &row, &site->line);
}

int export_events_read(struct export_events *events, const struct export_job *job)
{
    const struct read_profile *profile = job->analysis->profile;
    *events = (struct export_events){0};
    if (!export_has_events(job)) {
        snprintf(job->error, job->error_room,
                 "%s: it has no timeline; record one by: tapescope record --timeline 64MiB -- "
                 "./program",
                 profile->path);
        return 1;
    }
    struct reading r = {.job = job, .events = events};
    const bool ok = events_read_timeline(&r);
    if (ok && job->analysis->ranks)
        events_take_ranks(&r);
    base_table_free(&r.sites);
    base_table_free(&r.records);
    free(r.newest);
    if (!ok)
        return 1;
    for (size_t i = 0; i < events->n_sites; i++)
        events_find_line(job, &events->site[i]);
    events_arrange(events, job);
    return 0;
}

bool export_has_tape(const struct export_site *site)
{
    return site->kind != READ_EVENT_SCOPE && site->kind < READ_EVENT_KINDS;
}

bool export_is_arrow_end(const struct export_site *site)
{
    return site->kind == READ_EVENT_BACKWARD || site->kind == EXPORT_TRANSFER;
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

char *export_thread_name(char buf[EXPORT_THREAD_ROOM], const struct export_job *job,
                         const struct export_thread *thread)
{
    size_t rank;
    char of[24] = "";
    if (analyze_ranks_place(job->analysis->ranks, thread->process, &rank))
        snprintf(of, sizeof of, "rank %d ", job->analysis->ranks->rank[rank].rank);
    else if (thread->process > 0)
        snprintf(of, sizeof of, "process %u ", (unsigned)thread->process);
    if (thread->messages)
        snprintf(buf, EXPORT_THREAD_ROOM, "%smessages", of);
    else
        snprintf(buf, EXPORT_THREAD_ROOM, "%sthread %llu", of, (unsigned long long)thread->tid);
    return buf;
}

char *export_process_name(char buf[EXPORT_NAME_ROOM], const struct export_job *job,
                          uint32_t process)
{
    size_t rank;
    char text[EXPORT_NAME_ROOM];
    const char *program = job->analysis->profile->program;
    if (!analyze_ranks_place(job->analysis->ranks, process, &rank))
        return export_clean(buf, program, "");
    snprintf(text, sizeof text, "rank %d %.4000s", job->analysis->ranks->rank[rank].rank, program);
    return export_clean(buf, text, "");
}

uint64_t export_pid(const struct export_job *job, uint32_t process)
{
    return process > 0 ? process : job->analysis->profile->pid;
}

char *export_event_name(char buf[EXPORT_NAME_ROOM], const struct export_site *site)
{
    char text[EXPORT_NAME_ROOM];
    if (site->kind == READ_EVENT_SWEEP)
        return export_clean(buf, "sweep", "");
    if (site->kind != READ_EVENT_BACKWARD)
        return export_clean(buf, site->name, "");
    snprintf(text, sizeof text, "%.4000s backward", site->name);
    return export_clean(buf, text, "");
}

char *export_event_place(char buf[EXPORT_NAME_ROOM], const struct export_site *site)
{
    char text[EXPORT_NAME_ROOM];
    const struct analyze_line *line = &site->line;
    text[0] = '\0';
    if (line->file && line->line > 0)
        snprintf(text, sizeof text, "%s:%u", base_file_name(line->file), (unsigned)line->line);
    else if (line->file)
        snprintf(text, sizeof text, "%s", base_file_name(line->file));
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

void export_each_edge(const struct export_events *events, const struct export_thread *thread,
                      export_edge_fn *each, void *payload)
{
    size_t depth = 0, *open = base_calloc(thread->n + 1, sizeof *open);
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
}
