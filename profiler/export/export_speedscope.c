/* export_speedscope.c: a profile for speedscope: the calls by each figure that is not zero
 * everywhere, and what each thread did when, if the profile has a timeline.
 *
 * The format: https://www.speedscope.app/file-format-schema.json
 */
#include "export_events.h"

#include "base_json.h"
#include "base_memory.h"
#include "export_formats.h"
#include "export_places.h"

#include <stdlib.h>
#include <string.h>

/* The frames of the file: places, then sites of events, then phases. */
struct speedscope_frames {
    const struct export_places *places;
    size_t phases; /* place of the first */
    uint32_t *stack;
};

static void speedscope_put_frames(struct base_json *json, const struct export_job *job,
                                  const struct export_places *places,
                                  const struct export_events *events)
{
    char name[EXPORT_NAME_ROOM];
    base_json_object(json, "shared");
    base_json_array(json, "frames");
    for (size_t i = 0; i < places->n; i++) {
        const struct analyze_tree_node *node = &job->tree->node[places->node[i]];
        base_json_object(json, NULL);
        base_json_text(json, "name", export_label(name, node, "")); /* it shows the name alone */
        if (*export_file(name, node))
            base_json_text(json, "file", name);
        if (node->line.line > 0)
            base_json_u64(json, "line", node->line.line);
        base_json_end(json);
    }
    for (size_t i = 0; i < events->n_sites; i++) {
        base_json_object(json, NULL);
        base_json_text(json, "name", export_event_label(name, &events->site[i]));
        base_json_end(json);
    }
    for (int i = 0; job->split && i < READ_PHASES; i++) {
        base_json_object(json, NULL);
        base_json_text(json, "name", export_phase_names[i]);
        base_json_end(json);
    }
    base_json_end(json);
    base_json_end(json);
}

/* The frame of a phase comes behind those of places and events. */
static void put_stack(struct base_json *json, const struct speedscope_frames *frames,
                      const struct export_job *job, const struct export_own_cost *cost)
{
    size_t n = export_stack(frames->stack, job->tree, cost->node);
    base_json_array(json, NULL);
    if (job->split)
        base_json_u64(json, NULL, frames->phases + cost->phase);
    while (n-- > 0)
        base_json_u64(json, NULL, frames->places->of_node[frames->stack[n]]);
    base_json_end(json);
}

static void put_profile(struct base_json *json, const struct export_job *job,
                        const struct speedscope_frames *frames, enum export_metric metric)
{
    const char *unit = export_metric_units[metric];
    char name[64];
    struct export_cost_list list;
    export_costs_make(&list, job, metric);
    base_json_object(json, NULL);
    base_json_text(json, "type", "sampled");
    const bool is_estimate = job->analysis->profile->is_sampled && strcmp(unit, "nanoseconds") == 0;
    snprintf(name, sizeof name, "%s%s", export_metric_names[metric],
             is_estimate ? " (sampled)" : "");
    base_json_text(json, "name", name);
    base_json_text(json, "unit", strcmp(unit, "count") == 0 ? "none" : unit);
    base_json_u64(json, "startValue", 0);
    base_json_u64(json, "endValue", export_cost(&job->tree->node[0].all, metric));
    base_json_array(json, "samples");
    for (size_t i = 0; i < list.n; i++)
        put_stack(json, frames, job, &list.cost[i]);
    base_json_end(json);
    base_json_array(json, "weights");
    for (size_t i = 0; i < list.n; i++)
        base_json_u64(json, NULL, list.cost[i].cost);
    base_json_end(json);
    base_json_end(json);
    export_costs_free(&list);
}

struct edges {
    struct base_json *json;
    size_t first; /* frame of the first site */
};

static void speedscope_put_edge(void *payload, const struct export_event *event, bool is_end)
{
    const struct edges *edges = payload;
    base_json_object(edges->json, NULL);
    base_json_text(edges->json, "type", is_end ? "C" : "O");
    base_json_u64(edges->json, "frame", edges->first + event->site);
    base_json_u64(edges->json, "at", is_end ? event->end : event->start);
    base_json_end(edges->json);
}

static void speedscope_put_thread(struct base_json *json, const struct export_job *job,
                                  const struct export_places *places,
                                  const struct export_events *events,
                                  const struct export_thread *thread)
{
    char name[EXPORT_THREAD_ROOM + 16], row[EXPORT_THREAD_ROOM];
    uint64_t end = 0;
    for (size_t i = thread->first; i < thread->first + thread->n; i++)
        end = events->event[i].end > end ? events->event[i].end : end;
    snprintf(name, sizeof name, "%s over time", export_thread_name(row, job, thread));
    base_json_object(json, NULL);
    base_json_text(json, "type", "evented");
    base_json_text(json, "name", name);
    base_json_text(json, "unit", "nanoseconds");
    base_json_u64(json, "startValue", 0);
    base_json_u64(json, "endValue", end);
    base_json_array(json, "events");
    struct edges edges = {json, places->n};
    export_each_edge(events, thread, speedscope_put_edge, &edges);
    base_json_end(json);
    base_json_end(json);
}

static void speedscope_put_all(const struct export_job *job, const struct export_places *places,
                               const struct export_events *events, uint32_t *stack)
{
    struct base_json json;
    char name[EXPORT_NAME_ROOM];
    const struct speedscope_frames frames = {places, places->n + events->n_sites, stack};
    base_json_begin(&json, job->out);
    base_json_text(&json, "$schema", "https://www.speedscope.app/file-format-schema.json");
    base_json_text(&json, "name", export_clean(name, job->analysis->profile->program, ""));
    base_json_text(&json, "exporter", "tapescope");
    base_json_u64(&json, "activeProfileIndex", 0);
    speedscope_put_frames(&json, job, places, events);
    base_json_array(&json, "profiles");
    for (int i = 0; i < EXPORT_METRICS; i++)
        if (export_cost(&job->tree->node[0].all, (enum export_metric)i) > 0)
            put_profile(&json, job, &frames, (enum export_metric)i);
    for (size_t i = 0; i < events->n_threads; i++)
        speedscope_put_thread(&json, job, places, events, &events->thread[i]);
    base_json_end(&json);
    base_json_finish(&json);
}

int export_speedscope(const struct export_job *job)
{
    struct export_places places = {0};
    struct export_events events = {0};
    uint32_t *stack = base_calloc(job->tree->n_nodes, sizeof *stack);
    export_places_make(&places, job->tree);
    const int status = export_has_events(job) ? export_events_read(&events, job) : 0;
    if (status == 0)
        speedscope_put_all(job, &places, &events, stack);
    export_events_free(&events);
    export_places_free(&places);
    free(stack);
    return status;
}
