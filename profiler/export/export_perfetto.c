/* export_perfetto.c: the timeline for Perfetto: a track for each thread with nested slices, an
 * arrow from each op to its pullbacks, and a counter of the live bytes of each tape. Of a set of
 * ranks each is a process, and has a track of its messages, with an arrow from each send to where
 * it came.
 */
#include "export_events.h"
#include "export_formats.h"
#include "export_packet.h"
#include "perfetto.pb-c.h"

#include "base_memory.h"

#include <stdlib.h>

/* Of TrackEvent.type, CounterDescriptor.unit and TracePacket.sequence_flags. */
enum { BEGINS = 1, ENDS = 2, COUNTS = 4, BYTES = 3, CLEARED = 1, NEEDED = 2 };

/* The texts are of one sequence; its number is free. Tracks: threads and counters, and behind all
 * of them the processes. */
enum { SEQUENCE = 1, FIRST_THREAD = 1, KINDS = EXPORT_EVENT_KINDS };
#define PROCESS_TRACK (UINT64_C(1) << 40)

struct perfetto_writer {
    const struct export_job *job;
    const struct export_events *events;
    struct export_packets packets;
    uint64_t track;
};

static void perfetto_put_packet(struct perfetto_writer *m, Perfetto__TracePacket *packet)
{
    Perfetto__Trace trace = PERFETTO__TRACE__INIT;
    packet->has_trusted_packet_sequence_id = true;
    packet->trusted_packet_sequence_id = SEQUENCE;
    if (!packet->has_sequence_flags) {
        packet->has_sequence_flags = true;
        packet->sequence_flags = NEEDED;
    }
    trace.packet = &packet;
    trace.n_packet = 1;
    export_put_message(&m->packets, &trace.base);
}

static void put_track(struct perfetto_writer *m, Perfetto__TrackDescriptor *track, uint64_t uuid)
{
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    track->has_uuid = true;
    track->uuid = uuid;
    packet.track_descriptor = track;
    perfetto_put_packet(m, &packet);
}

static void put_process(struct perfetto_writer *m, uint32_t number)
{
    char name[EXPORT_NAME_ROOM];
    Perfetto__ProcessDescriptor process = PERFETTO__PROCESS_DESCRIPTOR__INIT;
    Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
    process.has_pid = true;
    process.pid = (int32_t)export_pid(m->job, number);
    process.process_name = export_process_name(name, m->job, number);
    track.process = &process;
    put_track(m, &track, PROCESS_TRACK + number);
}

static void perfetto_put_thread(struct perfetto_writer *m, uint64_t uuid,
                                const struct export_thread *of)
{
    Perfetto__ThreadDescriptor thread = PERFETTO__THREAD_DESCRIPTOR__INIT;
    Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
    track.name = of->messages ? (char *)"messages" : NULL;
    track.thread = of->messages ? NULL : &thread;
    thread.has_pid = thread.has_tid = true;
    thread.pid = (int32_t)export_pid(m->job, of->process);
    thread.tid = (int32_t)of->tid;
    track.has_parent_uuid = true;
    track.parent_uuid = PROCESS_TRACK + of->process;
    put_track(m, &track, uuid);
}

static void put_category(struct perfetto_writer *m, size_t kind)
{
    Perfetto__InternedText text = PERFETTO__INTERNED_TEXT__INIT, *texts = &text;
    Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    text.has_iid = true;
    text.iid = kind + 1;
    text.name = (char *)export_event_kinds[kind];
    data.event_categories = &texts;
    data.n_event_categories = 1;
    packet.interned_data = &data;
    if (kind == 0) {
        packet.has_sequence_flags = true;
        packet.sequence_flags = CLEARED;
    }
    perfetto_put_packet(m, &packet);
}

/* A site's name and place have its number plus 1. */
static void put_site(struct perfetto_writer *m, size_t i)
{
    char name[EXPORT_NAME_ROOM], file[EXPORT_NAME_ROOM], function[EXPORT_NAME_ROOM];
    const struct export_site *site = &m->events->site[i];
    Perfetto__InternedText text = PERFETTO__INTERNED_TEXT__INIT, *texts = &text;
    Perfetto__SourceLocation location = PERFETTO__SOURCE_LOCATION__INIT, *locations = &location;
    Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    text.has_iid = location.has_iid = true;
    text.iid = location.iid = i + 1;
    text.name = export_event_name(name, site);
    data.event_names = &texts;
    data.n_event_names = 1;
    if (site->line.file) {
        location.file_name = export_clean(file, site->line.file, "");
        location.function_name =
            export_clean(function, site->line.function ? site->line.function : "", "");
        location.has_line_number = true;
        location.line_number = site->line.line;
        data.source_locations = &locations;
        data.n_source_locations = 1;
    }
    packet.interned_data = &data;
    perfetto_put_packet(m, &packet);
}

static void perfetto_note(Perfetto__DebugAnnotation *to, const char *name, uint64_t value)
{
    perfetto__debug_annotation__init(to);
    to->name = (char *)name;
    to->has_uint_value = true;
    to->uint_value = value;
}

/* Numbers of the arrows that begin or end at the event, to be freed. */
static uint64_t *perfetto_flows(const struct export_event *event, size_t *n)
{
    *n = event->flows > 0 ? event->flows : event->flow > 0;
    uint64_t *flow = base_calloc(*n + 1, sizeof *flow);
    for (size_t i = 0; i < *n; i++)
        flow[i] = event->flow + i;
    return flow;
}

static void perfetto_put_edge(void *payload, const struct export_event *event, bool is_end)
{
    struct perfetto_writer *m = payload;
    const struct export_site *site = &m->events->site[event->site];
    Perfetto__DebugAnnotation notes[2], *list[] = {&notes[0], &notes[1]};
    Perfetto__TrackEvent slice = PERFETTO__TRACK_EVENT__INIT;
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    uint64_t category = site->kind + UINT64_C(1);
    uint64_t *flow = perfetto_flows(event, &slice.n_flow_ids);
    slice.has_type = slice.has_track_uuid = true;
    slice.type = is_end ? ENDS : BEGINS;
    slice.track_uuid = m->track;
    if (is_end)
        slice.n_flow_ids = 0;
    if (!is_end) {
        slice.has_name_iid = true;
        slice.name_iid = event->site + UINT64_C(1);
        slice.has_source_location_iid = site->line.file != NULL;
        slice.source_location_iid = event->site + UINT64_C(1);
        slice.category_iids = &category;
        slice.n_category_iids = 1;
        slice.flow_ids = flow;
        if (export_has_tape(site))
            perfetto_note(&notes[slice.n_debug_annotations++], "tape", site->tape);
        if (event->record > 0)
            perfetto_note(&notes[slice.n_debug_annotations++], "record", event->record - 1);
        slice.debug_annotations = list;
    }
    packet.has_timestamp = true;
    packet.timestamp = is_end ? event->end : event->start;
    packet.track_event = &slice;
    perfetto_put_packet(m, &packet);
    free(flow);
}

static void perfetto_put_tape(struct perfetto_writer *m, const struct read_tape *tape,
                              uint64_t uuid)
{
    char name[64];
    Perfetto__CounterDescriptor counter = PERFETTO__COUNTER_DESCRIPTOR__INIT;
    Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
    if (tape->n_moments == 0)
        return;
    export_tape_name(name, sizeof name, tape);
    counter.has_unit = true;
    counter.unit = BYTES;
    track.name = name;
    track.counter = &counter;
    track.has_parent_uuid = true;
    track.parent_uuid = PROCESS_TRACK;
    put_track(m, &track, uuid);
    for (size_t i = 0; i < tape->n_moments; i++) {
        Perfetto__TrackEvent event = PERFETTO__TRACK_EVENT__INIT;
        Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
        event.has_type = event.has_track_uuid = event.has_counter_value = true;
        event.type = COUNTS;
        event.track_uuid = uuid;
        event.counter_value = (int64_t)tape->moment[i].most_bytes;
        packet.has_timestamp = true;
        packet.timestamp = read_profile_since(m->job->analysis->profile, tape->moment[i].ticks);
        packet.track_event = &event;
        perfetto_put_packet(m, &packet);
    }
}

static void perfetto_put_all(struct perfetto_writer *m)
{
    const struct export_events *events = m->events;
    const struct read_profile *profile = m->job->analysis->profile;
    for (size_t i = 0; i < KINDS; i++)
        put_category(m, i);
    for (size_t i = 0; i < events->n_sites; i++)
        put_site(m, i);
    put_process(m, 0); /* of the counters, too */
    for (size_t i = 0; i < events->n_threads; i++) {
        const struct export_thread *thread = &events->thread[i];
        if (thread->process > 0 && (i == 0 || thread->process != thread[-1].process))
            put_process(m, thread->process);
        m->track = FIRST_THREAD + i;
        perfetto_put_thread(m, m->track, thread);
        export_each_edge(events, &events->thread[i], perfetto_put_edge, m);
    }
    for (size_t i = 0; i < profile->n_tapes; i++)
        perfetto_put_tape(m, &profile->tape[i], FIRST_THREAD + events->n_threads + i);
}

int export_perfetto(const struct export_job *job)
{
    struct export_events events;
    const int status = export_events_read(&events, job);
    if (status == 0) {
        struct perfetto_writer m = {.job = job, .events = &events};
        export_packets_begin(&m.packets, job->out, false);
        perfetto_put_all(&m);
        export_packets_end(&m.packets);
    }
    export_events_free(&events);
    return status;
}
