/* export_json.c: a profile as one JSON document: the tree of calls, scopes, tapes with their live
 * bytes over time, and the timeline.
 *
 * Invariant: names, once given, keep their meaning: docs/reference/json.md lists them.
 */
#include "export_events.h"
#include "export_formats.h"
#include "report_json.h"

static void json_put_node(struct base_json *json, const struct analyze_tree *tree, uint32_t i)
{
    const struct analyze_tree_node *node = &tree->node[i];
    base_json_object(json, NULL);
    base_json_u64(json, "id", i);
    if (node->parent != ANALYZE_NO_NODE)
        base_json_u64(json, "parent", node->parent);
    else
        base_json_null(json, "parent");
    base_json_u64(json, "depth", node->depth);
    base_json_bool(json, "cut", node->cut);
    report_json_place(json, &node->line);
    base_json_object(json, "self");
    report_json_cost(json, &node->line.cost, tree->analysis->profile);
    base_json_end(json);
    base_json_end(json);
}

static void put_scopes(struct base_json *json, const struct read_profile *profile)
{
    struct analyze_scope_costs costs;
    analyze_scope_costs_make(&costs, profile, true);
    base_json_array(json, "scopes");
    for (size_t i = 0; i < costs.n; i++) {
        const struct analyze_scope_cost *scope = &costs.scope[i];
        base_json_object(json, NULL);
        base_json_u64(json, "id", i);
        if (scope->parent > 0)
            base_json_u64(json, "parent", scope->parent - 1);
        else
            base_json_null(json, "parent");
        base_json_text(json, "name", scope->name);
        base_json_u64(json, "thread", scope->thread);
        base_json_u64(json, "calls", scope->calls);
        base_json_u64(json, "wall_ns", scope->wall_ns);
        base_json_u64(json, "self_ns", scope->self_ns);
        base_json_object(json, "all");
        report_json_cost(json, &scope->cost, profile);
        base_json_end(json);
        base_json_end(json);
    }
    base_json_end(json);
    analyze_scope_costs_free(&costs);
}

static void json_put_tape(struct base_json *json, const struct read_profile *profile,
                          const struct read_tape *tape)
{
    base_json_object(json, NULL);
    base_json_u64(json, "tape", tape->tape);
    base_json_u64(json, "thread", tape->thread);
    base_json_u64(json, "tapes", tape->tapes);
    base_json_u64(json, "sweeps", tape->sweeps);
    base_json_u64(json, "records", tape->records);
    base_json_u64(json, "tape_bytes", tape->handed_out_bytes);
    base_json_u64(json, "live_bytes", tape->live_bytes);
    base_json_u64(json, "peak_bytes", tape->peak_bytes);
    if (tape->peak_ticks > 0)
        base_json_u64(json, "peak_at_ns", read_profile_since(profile, tape->peak_ticks));
    else
        base_json_null(json, "peak_at_ns");
    base_json_array(json, "moments");
    for (size_t i = 0; i < tape->n_moments; i++) {
        const struct read_moment *moment = &tape->moment[i];
        base_json_object(json, NULL);
        base_json_u64(json, "at_ns", read_profile_since(profile, moment->ticks));
        base_json_u64(json, "most_bytes", moment->most_bytes);
        base_json_u64(json, "least_bytes", moment->least_bytes);
        base_json_bool(json, "backward", moment->backward);
        base_json_end(json);
    }
    base_json_end(json);
    base_json_end(json);
}

static void json_put_event(struct base_json *json, const struct export_site *site,
                           const struct export_event *event)
{
    base_json_object(json, NULL);
    base_json_text(json, "kind", export_event_kinds[site->kind]);
    base_json_text(json, "name", site->name);
    base_json_u64(json, "process", site->process);
    base_json_u64(json, "thread", site->thread);
    base_json_u64(json, "start_ns", event->start);
    base_json_u64(json, "ns", event->end - event->start);
    base_json_text(json, "file", site->line.file);
    base_json_u64(json, "line", site->line.line);
    base_json_u64(json, "tape", site->tape);
    if (event->record > 0)
        base_json_u64(json, "record", event->record - 1);
    else
        base_json_null(json, "record");
    base_json_u64(json, "pair", event->flow);
    base_json_u64(json, "pairs", event->flows);
    base_json_end(json);
}

static void json_put_all(struct base_json *json, const struct export_job *job,
                         const struct export_events *events)
{
    const struct read_profile *profile = job->analysis->profile;
    base_json_array(json, "nodes");
    for (uint32_t i = 0; i < job->tree->n_nodes; i++)
        json_put_node(json, job->tree, i);
    base_json_end(json);
    base_json_array(json, "tapes");
    for (size_t i = 0; i < profile->n_tapes; i++)
        json_put_tape(json, profile, &profile->tape[i]);
    base_json_end(json);
    base_json_array(json, "events");
    for (size_t i = 0; i < events->n; i++)
        json_put_event(json, &events->site[events->event[i].site], &events->event[i]);
    base_json_end(json);
    report_json_ranks(json, job->analysis->ranks);
    report_json_totals(json, "total", job->analysis);
}

int export_json(const struct export_job *job)
{
    struct base_json json;
    struct export_events events = {0};
    const struct read_profile *profile = job->analysis->profile;
    const int status = export_has_events(job) ? export_events_read(&events, job) : 0;
    if (status == 0) {
        report_json_begin(&json, job->out, "export");
        report_json_profile(&json, "profile", profile);
        base_json_bool(&json, "sampled", profile->is_sampled);
        base_json_bool(&json, "has_paths", job->tree->has_paths);
        put_scopes(&json, profile);
        json_put_all(&json, job, &events);
        base_json_finish(&json);
    }
    export_events_free(&events);
    return status;
}
