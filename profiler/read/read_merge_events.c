/* read_merge_events.c: single events of all profiles, one profile after the other.
 *
 * Events are read once more and written as they come, so that their number takes no memory.
 * Processes are numbered, and their tapes: what two of them call tape 1 are two tapes of the sum.
 */
#include "read_merge_state.h"

#include "base_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_EVENTS = 2048, MOST_SITES = 256 };

/* A packet under way, and what is known of the profile that is read. */
struct events {
    const struct read_merge *merge;
    struct read_writer *writer;
    const struct read_merge_part *part;
    uint64_t n_read;
    uint64_t tapes, most_tape;        /* before this profile, and so far */
    uint32_t processes, most_process; /* likewise */
    uint64_t last_start, last_record;
    size_t n, n_sites;
    uint32_t site_of[MOST_EVENTS];
    int64_t record[MOST_EVENTS], start[MOST_EVENTS];
    uint64_t ticks[MOST_EVENTS];
    Tapescope__EventSite site[MOST_SITES], *sites[MOST_SITES];
};

static void merge_events_put_packet(struct events *events, uint64_t left_out)
{
    Tapescope__Timeline timeline = TAPESCOPE__TIMELINE__INIT;
    Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
    timeline.n_site = events->n_sites;
    timeline.site = events->sites;
    timeline.n_event_site = timeline.n_event_record = timeline.n_event_start =
        timeline.n_event_ticks = events->n;
    timeline.event_site = events->site_of;
    timeline.event_record = events->record;
    timeline.event_start = events->start;
    timeline.event_ticks = events->ticks;
    timeline.left_out = left_out;
    packet.kind_case = TAPESCOPE__PACKET__KIND_TIMELINE;
    packet.timeline = &timeline;
    if (events->writer->error == 0)
        read_writer_put_packet(events->writer, &packet);
    for (size_t i = 0; i < events->n_sites; i++)
        free(events->site[i].op);
    events->n = events->n_sites = 0;
    events->last_start = events->last_record = 0;
}

static bool merge_events_same_site(const Tapescope__EventSite *a, const Tapescope__EventSite *b)
{
    return a->pc == b->pc && a->kind == b->kind && a->line == b->line && a->scope == b->scope &&
           a->tape == b->tape && a->thread == b->thread && a->process == b->process &&
           a->path == b->path && a->again == b->again && a->part == b->part &&
           strcmp(a->op, b->op) == 0;
}

/* The place of the event's site in the packet; a packet that has no room for it is written. */
static uint32_t merge_events_place_of(struct events *events, const Tapescope__EventSite *site)
{
    for (size_t i = events->n_sites; i-- > 0;)
        if (merge_events_same_site(&events->site[i], site))
            return (uint32_t)i;
    if (events->n_sites == MOST_SITES)
        merge_events_put_packet(events, 0);
    Tapescope__EventSite *to = events->sites[events->n_sites] = &events->site[events->n_sites];
    *to = *site;
    to->op = base_strdup(site->op); /* the event's own is gone after the call */
    return (uint32_t)events->n_sites++;
}

static uint64_t merge_events_end_of(const struct read_event *event)
{
    return event->ticks < UINT64_MAX - event->start_ticks ? event->start_ticks + event->ticks
                                                          : UINT64_MAX;
}

static void merge_events_take(void *payload, const struct read_profile *profile,
                              const struct read_event *event)
{
    struct events *events = payload;
    const struct read_merge *merge = events->merge;
    const struct read_merge_part *part = events->part;
    const struct read_profile *whole = part->profile;
    (void)profile; /* it is not read to its end: times are known by the first reading */
    if (events->n_read++ >= whole->n_events || events->writer->error != 0)
        return;
    Tapescope__EventSite site = TAPESCOPE__EVENT_SITE__INIT;
    site.kind = event->kind;
    site.thread = event->thread;
    site.tape = event->tape ? events->tapes + event->tape : 0;
    site.process = events->processes + (event->process ? event->process : 1);
    site.pc = read_merge_move(merge, part, event->pc);
    site.line = event->line;
    site.op = (char *)event->op;
    const size_t path = read_profile_path_numbered(whole, event->path);
    site.path = path == SIZE_MAX ? 0 : read_merge_path(part, whole->call_path[path].id);
    site.again = event->again;
    site.part = event->part;
    site.scope = event->scope <= whole->n_scopes ? read_merge_scope(part, event->scope) : 0;
    events->most_tape = site.tape > events->most_tape ? site.tape : events->most_tape;
    if (site.process > events->most_process)
        events->most_process = site.process;
    const uint32_t place = merge_events_place_of(events, &site);
    const uint64_t start = read_merge_time(merge, part, event->start_ticks);
    events->site_of[events->n] = place;
    events->record[events->n] = (int64_t)(event->record - events->last_record);
    events->start[events->n] = (int64_t)(start - events->last_start);
    events->ticks[events->n] = read_merge_time(merge, part, merge_events_end_of(event)) - start;
    events->last_record = event->record;
    events->last_start = start;
    if (++events->n == MOST_EVENTS)
        merge_events_put_packet(events, 0);
}

/* False: the writer's error says why, or the merge's. */
static bool take_profile(struct events *events, const struct read_merge_part *part)
{
    const struct read_profile *known = part->profile;
    events->part = part;
    events->n_read = 0;
    struct read_profile *again = read_profile_events(known->path, merge_events_take, events,
                                                     events->merge->error, events->merge->room);
    const bool ok = again && events->n_read >= known->n_events;
    if (again && !ok)
        snprintf(events->merge->error, events->merge->room, "%s: it has changed meanwhile",
                 known->path);
    read_profile_free(again);
    if (!ok && events->writer->error == 0)
        events->writer->error = EIO;
    events->tapes = events->most_tape;
    return events->writer->error == 0;
}

void read_merge_put_events(const struct read_merge *merge, struct read_writer *writer)
{
    uint64_t all = 0, left_out = 0;
    for (size_t i = 0; i < merge->n; i++) {
        all += merge->part[i].profile->n_events;
        left_out = read_add(left_out, merge->part[i].profile->events_left_out);
    }
    if ((all == 0 && left_out == 0) || writer->error != 0)
        return;
    struct events *events = base_calloc(1, sizeof *events);
    events->merge = merge;
    events->writer = writer;
    for (size_t i = 0; i < merge->n; i++) {
        if (merge->part[i].profile->n_events > 0 && !take_profile(events, &merge->part[i]))
            break;
        const uint32_t next = events->processes + 1; /* one without events has a number as well */
        events->processes = events->most_process > next ? events->most_process : next;
    }
    merge_events_put_packet(events, left_out);
    free(events);
}
