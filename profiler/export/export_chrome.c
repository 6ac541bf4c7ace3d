/* export_chrome.c: the timeline as Chrome's trace events: a begin and an end for each event, an
 * arrow from each op to its pullback, and counters of the tapes' live bytes.
 *
 * The format: "Trace Event Format", The Chromium Authors; times are in microseconds. Invariant:
 * begins and ends of a thread are nested, also in the order of the file.
 */
#include "base_json.h"
#include "export_events.h"
#include "export_formats.h"

#include <inttypes.h>

/* Microseconds of whole nanoseconds, with all digits: a reader that adds up what was rounded would
 * end a slice behind the one around it. */
static void chrome_put_time(struct base_json *json, uint64_t at_ns)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64 ".%03u", at_ns / 1000, (unsigned)(at_ns % 1000));
    base_json_number(json, "ts", text);
}

static void chrome_begin(struct base_json *json, const char *phase, uint64_t pid, uint64_t tid,
                         uint64_t at_ns)
{
    base_json_object(json, NULL);
    base_json_text(json, "ph", phase);
    base_json_u64(json, "pid", pid);
    base_json_u64(json, "tid", tid);
    chrome_put_time(json, at_ns);
}

static void chrome_put_name(struct base_json *json, const char *what, uint64_t pid, uint64_t tid,
                            const char *name)
{
    chrome_begin(json, "M", pid, tid, 0);
    base_json_text(json, "name", what);
    base_json_object(json, "args");
    base_json_text(json, "name", name);
    base_json_end(json);
    base_json_end(json);
}

/* What differs from call to call is said at the end: speedscope makes calls one frame that begin
 * alike. What took no time is an instant: its begin and end would have no order among others'. */
static void put_edge(struct base_json *json, const struct export_job *job,
                     const struct export_site *site, const struct export_event *event, bool is_end)
{
    char text[EXPORT_NAME_ROOM];
    const bool instant = event->start == event->end;
    chrome_begin(json,
                 instant  ? "i"
                 : is_end ? "E"
                          : "B",
                 export_pid(job, site->process), site->thread, is_end ? event->end : event->start);
    base_json_text(json, "name", export_event_name(text, site));
    base_json_text(json, "cat", export_event_kinds[site->kind]);
    if (instant)
        base_json_text(json, "s", "t");
    base_json_object(json, "args");
    if (!is_end && *export_event_place(text, site))
        base_json_text(json, "line", text);
    if ((is_end || instant) && export_has_tape(site))
        base_json_u64(json, "tape", site->tape);
    if ((is_end || instant) && event->record > 0)
        base_json_u64(json, "record", event->record - 1);
    base_json_end(json);
    base_json_end(json);
}

/* From an op to each of its pullbacks, from a send to what came of it, from the last that came to a
 * collective call to those that have waited. */
static void put_arrow(struct base_json *json, const struct export_job *job,
                      const struct export_site *site, const struct export_event *event,
                      uint32_t flow)
{
    const bool is_end = export_is_arrow_end(site);
    const char *what = site->kind < READ_EVENT_KINDS ? "pullback" : "message";
    chrome_begin(json, is_end ? "f" : "s", export_pid(job, site->process), site->thread,
                 event->start);
    base_json_text(json, "name", what);
    base_json_text(json, "cat", what);
    base_json_u64(json, "id", flow);
    if (is_end)
        base_json_text(json, "bp", "e"); /* at the slice around it */
    base_json_end(json);
}

struct chrome_edges {
    struct base_json *json;
    const struct export_job *job;
    const struct export_events *events;
};

static void chrome_put_edge(void *payload, const struct export_event *event, bool is_end)
{
    const struct chrome_edges *edges = payload;
    const struct export_site *site = &edges->events->site[event->site];
    if (!is_end || event->end > event->start)
        put_edge(edges->json, edges->job, site, event, is_end);
    const uint32_t arrows = is_end ? 0 : export_is_arrow_end(site) ? event->flow > 0 : event->flows;
    for (uint32_t i = 0; i < arrows; i++)
        put_arrow(edges->json, edges->job, site, event, event->flow + i);
}

static void chrome_put_tape(struct base_json *json, const struct export_job *job,
                            const struct read_tape *tape)
{
    char name[64];
    const struct read_profile *profile = job->analysis->profile;
    export_tape_name(name, sizeof name, tape);
    for (size_t i = 0; i < tape->n_moments; i++) {
        chrome_begin(json, "C", profile->pid, tape->thread,
                     read_profile_since(profile, tape->moment[i].ticks));
        base_json_text(json, "name", name);
        base_json_object(json, "args");
        base_json_u64(json, "bytes", tape->moment[i].most_bytes);
        base_json_end(json);
        base_json_end(json);
    }
}

static void chrome_put_all(const struct export_job *job, const struct export_events *events)
{
    struct base_json json;
    const struct read_profile *profile = job->analysis->profile;
    base_json_begin(&json, job->out);
    base_json_text(&json, "displayTimeUnit", "ns");
    base_json_array(&json, "traceEvents");
    for (size_t i = 0; i < events->n_threads; i++) {
        const struct export_thread *thread = &events->thread[i];
        const uint64_t pid = export_pid(job, thread->process);
        char row[EXPORT_THREAD_ROOM], name[EXPORT_NAME_ROOM];
        if (i == 0 || thread->process != events->thread[i - 1].process)
            chrome_put_name(&json, "process_name", pid, 0,
                            export_process_name(name, job, thread->process));
        chrome_put_name(&json, "thread_name", pid, thread->tid,
                        export_thread_name(row, job, thread));
        export_each_edge(events, thread, chrome_put_edge,
                         &(struct chrome_edges){&json, job, events});
    }
    for (size_t i = 0; i < profile->n_tapes; i++)
        chrome_put_tape(&json, job, &profile->tape[i]);
    base_json_end(&json);
    base_json_finish(&json);
}

int export_chrome(const struct export_job *job)
{
    struct export_events events;
    const int status = export_events_read(&events, job);
    if (status == 0)
        chrome_put_all(job, &events);
    export_events_free(&events);
    return status;
}
