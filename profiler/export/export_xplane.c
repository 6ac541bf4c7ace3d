/* export_xplane.c: the timeline for TensorBoard's profiler: a plane of the host with a line for
 * each thread, and one for each tape's live bytes.
 *
 * A plane is one message, so it is kept, packed, until it is whole.
 */
#include "export_events.h"

#include "base_buffer.h"
#include "export_formats.h"
#include "xplane.pb-c.h"

#include <stdlib.h>
#include <string.h>

/* The numbers of stats; those of events are their sites' plus 1, and one more for live bytes. */
enum { STAT_KIND = 1, STAT_LINE, STAT_TAPE, STAT_RECORD, STAT_BYTES, STAT_END };
static const char *const stat_names[STAT_END] = {
    [STAT_KIND] = "kind",     [STAT_LINE] = "line",   [STAT_TAPE] = "tape",
    [STAT_RECORD] = "record", [STAT_BYTES] = "bytes",
};
enum { MOST_STATS = 4 };

/* The fields of messages within messages, as in xplane.proto. */
enum { SPACE_PLANES = 1, PLANE_LINES = 3, LINE_EVENTS = 4 };

struct xplane_writer {
    const struct export_job *job;
    const struct export_events *events;
    struct base_buffer plane, line, message;
};

/* A number in groups of seven bits, the lowest first. */
static void add_varint(struct base_buffer *to, uint64_t n)
{
    for (; n > 0x7f; n >>= 7)
        base_buffer_add(to, &(uint8_t){(uint8_t)(n | 0x80)}, 1);
    base_buffer_add(to, &(uint8_t){(uint8_t)n}, 1);
}

static void add_message(struct base_buffer *to, const ProtobufCMessage *message)
{
    const size_t n = protobuf_c_message_get_packed_size(message);
    protobuf_c_message_pack(message, base_buffer_reserve(to, n));
    to->n += n;
}

/* What `from` holds becomes a message within the one that is put together in `to`. */
static void xplane_embed(struct base_buffer *to, unsigned field, struct base_buffer *from)
{
    enum { LENGTH_AND_BYTES = 2 };
    add_varint(to, field << 3 | LENGTH_AND_BYTES);
    add_varint(to, from->n);
    base_buffer_add(to, from->data, from->n);
    from->n = 0;
}

static int64_t xplane_ps(uint64_t ns)
{
    return ns < INT64_MAX / 1000 ? (int64_t)ns * 1000 : INT64_MAX;
}

static void xplane_number(Xplane__XStat *stat, int64_t what, uint64_t value)
{
    xplane__xstat__init(stat);
    stat->metadata_id = what;
    stat->value_case = XPLANE__XSTAT__VALUE_UINT64_VALUE;
    stat->uint64_value = value;
}

static void xplane_text(Xplane__XStat *stat, int64_t what, const char *value)
{
    xplane__xstat__init(stat);
    stat->metadata_id = what;
    stat->value_case = XPLANE__XSTAT__VALUE_STR_VALUE;
    stat->str_value = (char *)value;
}

static void xplane_put_event(struct xplane_writer *m, size_t id, uint64_t start, uint64_t end,
                             Xplane__XStat *stat, size_t n)
{
    Xplane__XStat *list[MOST_STATS];
    Xplane__XEvent event = XPLANE__XEVENT__INIT;
    for (size_t i = 0; i < n; i++)
        list[i] = &stat[i];
    event.metadata_id = (int64_t)id;
    event.data_case = XPLANE__XEVENT__DATA_OFFSET_PS;
    event.offset_ps = xplane_ps(start);
    event.duration_ps = xplane_ps(end - start);
    event.stats = list;
    event.n_stats = n;
    add_message(&m->message, &event.base);
    xplane_embed(&m->line, LINE_EVENTS, &m->message);
}

static void begin_line(struct xplane_writer *m, uint64_t id, const char *name)
{
    Xplane__XLine line = XPLANE__XLINE__INIT;
    const struct read_profile *profile = m->job->analysis->profile;
    line.id = (int64_t)id;
    line.name = (char *)name;
    line.timestamp_ns = (int64_t)profile->start_unix_ns;
    line.duration_ps = xplane_ps(profile->duration_ns);
    add_message(&m->line, &line.base);
}

static void xplane_put_thread(struct xplane_writer *m, const struct export_thread *thread,
                              uint64_t id)
{
    char name[EXPORT_THREAD_ROOM], place[EXPORT_NAME_ROOM];
    begin_line(m, id, export_thread_name(name, m->job, thread));
    for (size_t i = thread->first; i < thread->first + thread->n; i++) {
        const struct export_event *event = &m->events->event[i];
        const struct export_site *site = &m->events->site[event->site];
        Xplane__XStat stat[MOST_STATS];
        size_t n = 0;
        xplane_text(&stat[n++], STAT_KIND, export_event_kinds[site->kind]);
        if (*export_event_place(place, site))
            xplane_text(&stat[n++], STAT_LINE, place);
        if (export_has_tape(site))
            xplane_number(&stat[n++], STAT_TAPE, site->tape);
        if (event->record > 0)
            xplane_number(&stat[n++], STAT_RECORD, event->record - 1);
        xplane_put_event(m, event->site + (size_t)1, event->start, event->end, stat, n);
    }
    xplane_embed(&m->plane, PLANE_LINES, &m->line);
}

/* A value holds until the next. */
static void xplane_put_tape(struct xplane_writer *m, const struct read_tape *tape, uint64_t id)
{
    char name[64];
    const struct read_profile *profile = m->job->analysis->profile;
    if (tape->n_moments == 0)
        return;
    export_tape_name(name, sizeof name, tape);
    begin_line(m, id, name);
    for (size_t i = 0; i < tape->n_moments; i++) {
        const bool last = i + 1 == tape->n_moments;
        const uint64_t start = read_profile_since(profile, tape->moment[i].ticks);
        uint64_t end = last ? start : read_profile_since(profile, tape->moment[i + 1].ticks);
        Xplane__XStat stat;
        xplane_number(&stat, STAT_BYTES, tape->moment[i].most_bytes);
        xplane_put_event(m, m->events->n_sites + 1, start, end > start ? end : start, &stat, 1);
    }
    xplane_embed(&m->plane, PLANE_LINES, &m->line);
}

static void put_event_name(struct xplane_writer *m, size_t id, const char *name)
{
    Xplane__XEventMetadata metadata = XPLANE__XEVENT_METADATA__INIT;
    Xplane__EventEntry entry = XPLANE__EVENT_ENTRY__INIT, *list = &entry;
    Xplane__XPlane plane = XPLANE__XPLANE__INIT;
    metadata.id = entry.key = (int64_t)id;
    metadata.name = (char *)name;
    entry.value = &metadata;
    plane.event_metadata = &list;
    plane.n_event_metadata = 1;
    add_message(&m->plane, &plane.base);
}

static void put_stat_name(struct xplane_writer *m, int64_t id)
{
    Xplane__XStatMetadata metadata = XPLANE__XSTAT_METADATA__INIT;
    Xplane__StatEntry entry = XPLANE__STAT_ENTRY__INIT, *list = &entry;
    Xplane__XPlane plane = XPLANE__XPLANE__INIT;
    metadata.id = entry.key = id;
    metadata.name = (char *)stat_names[id];
    entry.value = &metadata;
    plane.stat_metadata = &list;
    plane.n_stat_metadata = 1;
    add_message(&m->plane, &plane.base);
}

static void put_plane(struct xplane_writer *m)
{
    char name[EXPORT_NAME_ROOM];
    Xplane__XPlane plane = XPLANE__XPLANE__INIT;
    const struct export_events *events = m->events;
    const struct read_profile *profile = m->job->analysis->profile;
    plane.id = 1;
    plane.name = (char *)"/host:CPU"; /* the name that TensorBoard looks for */
    add_message(&m->plane, &plane.base);
    for (int64_t i = 1; i < STAT_END; i++)
        put_stat_name(m, i);
    for (size_t i = 0; i < events->n_sites; i++)
        put_event_name(m, i + 1, export_event_name(name, &events->site[i]));
    put_event_name(m, events->n_sites + 1, "live bytes");
    for (size_t i = 0; i < events->n_threads; i++)
        xplane_put_thread(m, &events->thread[i], i + 1);
    for (size_t i = 0; i < profile->n_tapes; i++)
        xplane_put_tape(m, &profile->tape[i], events->n_threads + i + 1);
}

int export_xplane(const struct export_job *job)
{
    struct export_events events;
    const int status = export_events_read(&events, job);
    struct xplane_writer m = {.job = job, .events = &events};
    if (status == 0) {
        put_plane(&m);
        xplane_embed(&m.message, SPACE_PLANES, &m.plane);
        fwrite(m.message.data, 1, m.message.n, job->out);
    }
    base_buffer_free(&m.plane);
    base_buffer_free(&m.line);
    base_buffer_free(&m.message);
    export_events_free(&events);
    return status;
}
