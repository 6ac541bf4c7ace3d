/* html_sections.c: the call tree, what holds the tape, what computing again would save, scopes,
 * patterns. See html_data.h.
 */
#include "html_data.h"

#include "analyze_checkpoint.h"
#include "analyze_space.h"
#include "base_array.h"
#include "base_memory.h"
#include "report_checkpoint.h"

#include <stdlib.h>

/* A column of the expression `value` over i < n. */
#define COLUMN(data, name, n, put, value)                                                          \
    do {                                                                                           \
        base_json_array(&(data)->json, name);                                                      \
        for (size_t i = 0; i < (n); i++)                                                           \
            put(&(data)->json, NULL, value);                                                       \
        base_json_end(&(data)->json);                                                              \
    } while (0)

/* Nodes of the page's tree: more take the browser longer than a reader waits. */
enum { MOST_TREE_NODES = 1 << 17 };

void html_put_tree(struct html_data *data)
{
    struct base_json *json = &data->json;
    struct analyze_tree *tree = data->tree;
    analyze_tree_fold(tree, MOST_TREE_NODES);
    const struct html_lines lines = {&tree->node[0].line, sizeof tree->node[0], tree->n_nodes};
    base_json_object(json, "tree");
    base_json_bool(json, "has_paths", tree->has_paths);
    base_json_bool(json, "too_large", tree->too_large);
    base_json_u64(json, "n_folded", tree->n_folded);
    html_put_numbers(data, "", "folded", &tree->node[0].folded, sizeof tree->node[0],
                     tree->n_nodes);
    COLUMN(data, "parent", tree->n_nodes, base_json_i64,
           tree->node[i].parent == ANALYZE_NO_NODE ? -1 : (int64_t)tree->node[i].parent);
    COLUMN(data, "frame", tree->n_nodes, base_json_u64, tree->node[i].frame);
    base_json_array(json, "cut");
    for (size_t i = 0; i < tree->n_nodes; i++)
        if (tree->node[i].cut)
            base_json_u64(json, NULL, i);
    base_json_end(json);
    html_put_places(data, "", lines);
    html_put_costs(data, "", lines);
    base_json_end(json);
    html_put_timeline(data, tree);
    html_put_ranks(data, tree);
}

static void put_live(struct html_data *data, const struct read_tape *tape)
{
    const struct read_profile *profile = data->analysis->profile;
    const uint64_t start = profile->start_ticks;
    base_json_object(&data->json, "live");
    COLUMN(data, "ns", tape->n_moments, base_json_u64,
           read_profile_ns(profile,
                           tape->moment[i].ticks > start ? tape->moment[i].ticks - start : 0));
    COLUMN(data, "most_bytes", tape->n_moments, base_json_u64, tape->moment[i].most_bytes);
    COLUMN(data, "least_bytes", tape->n_moments, base_json_u64, tape->moment[i].least_bytes);
    COLUMN(data, "backward", tape->n_moments, base_json_u64, (uint64_t)tape->moment[i].backward);
    base_json_end(&data->json);
}

static void put_holders(struct html_data *data, const struct analyze_space *space)
{
    const struct analyze_holder *h = space->holder;
    const struct html_lines producers = {&h->line, sizeof *h, space->n};
    const struct html_lines consumers = {&h->consumer, sizeof *h, space->n};
    const struct html_lines releasers = {&h->released_by, sizeof *h, space->n};
    base_json_object(&data->json, "holders");
    COLUMN(data, "kinds", space->n, base_json_u64, h[i].kinds);
    COLUMN(data, "more", space->n, base_json_u64, (uint64_t)(h[i].more_consumers || h[i].shared));
    COLUMN(data, "byte_ns", space->n, base_json_double, h[i].byte_ns);
    if (space->n > 0) {
#define NUMBERS(name) html_put_numbers(data, "", #name, &h->name, sizeof *h, space->n);
        NUMBERS(held)
        NUMBERS(dead_bytes)
        NUMBERS(unread_bytes)
        CLASS_COUNTERS(NUMBERS)
#undef NUMBERS
        html_put_places(data, "", producers);
        html_put_places(data, "consumer_", consumers);
        html_put_places(data, "released_by_", releasers);
    }
    base_json_end(&data->json);
}

/* Most moments of what holds the tape, and cells of holders that changed between two of them. */
enum { MOST_MOMENTS = 1 << 10, LEAST_MOMENTS = 1 << 4, MOMENT_CELLS = 1 << 17 };

/* What each holder has at one moment, and what the page was told of before. */
struct held_moments {
    int64_t *now, *told; /* [holders]; told: at the moment before */
    uint64_t *ns, *total;
    size_t n;
    struct held_cell {
        uint64_t moment, holder;
        int64_t delta;
    } * cell;
    size_t n_cells, room_cells;
};

/* Ends a moment: what is different from the one before becomes cells. */
static void held_moment_end(struct held_moments *m, size_t n_holders, uint64_t ns, int64_t total)
{
    for (size_t i = 0; i < n_holders; i++) {
        if (m->now[i] == m->told[i])
            continue;
        BASE_ARRAY_GROW(m->cell, m->n_cells, &m->room_cells);
        m->cell[m->n_cells++] = (struct held_cell){m->n, i, m->now[i] - m->told[i]};
        m->told[i] = m->now[i];
    }
    m->ns[m->n] = ns;
    m->total[m->n++] = total > 0 ? (uint64_t)total : 0;
}

/* The changes of the stretch with the peak, some of them at a time: of each such part, what there
 * was at the moment when it was most. */
static void held_moments_collect(struct held_moments *m, const struct html_data *data,
                                 const struct analyze_space *space)
{
    const struct read_tape *tape = space->tape;
    size_t parts = MOMENT_CELLS / (space->n + 1);
    parts = parts > MOST_MOMENTS ? MOST_MOMENTS : parts < LEAST_MOMENTS ? LEAST_MOMENTS : parts;
    const size_t step = tape->n_changes / parts + 1;
    int64_t total = 0;
    for (size_t from = 0, end; from < tape->n_changes; from = end) {
        end = from + step < tape->n_changes ? from + step : tape->n_changes;
        size_t best = end;
        int64_t live = total, most = -1;
        for (size_t i = from; i < end; i++) {
            live += tape->change[i].delta;
            if (tape->change[i].ends && live > most) {
                most = live;
                best = i;
            }
        }
        for (size_t i = from; i < end; i++) {
            const struct read_change *change = &tape->change[i];
            const uint32_t holder = space->of[change->residual];
            if (holder > 0)
                m->now[holder - 1] += change->delta;
            if (i == best)
                held_moment_end(m, space->n,
                                read_profile_since(data->analysis->profile, change->ticks), most);
        }
        total = live;
    }
}

/* Who holds what, over time. */
static void put_held_moments(struct html_data *data, const struct analyze_space *space)
{
    struct base_json *json = &data->json;
    struct held_moments m = {.n = 0};
    m.now = base_calloc(space->n + 1, sizeof *m.now);
    m.told = base_calloc(space->n + 1, sizeof *m.told);
    m.ns = base_calloc(2 * MOST_MOMENTS, sizeof *m.ns);
    m.total = base_calloc(2 * MOST_MOMENTS, sizeof *m.total);
    held_moments_collect(&m, data, space);
    base_json_object(json, "moments");
    COLUMN(data, "ns", m.n, base_json_u64, m.ns[i]);
    COLUMN(data, "total", m.n, base_json_u64, m.total[i]);
    COLUMN(data, "moment", m.n_cells, base_json_u64, m.cell[i].moment);
    COLUMN(data, "holder", m.n_cells, base_json_u64, m.cell[i].holder);
    COLUMN(data, "delta", m.n_cells, base_json_i64, m.cell[i].delta);
    base_json_end(json);
    free(m.now);
    free(m.told);
    free(m.ns);
    free(m.total);
    free(m.cell);
}

void html_put_space(struct html_data *data)
{
    struct base_json *json = &data->json;
    struct analyze_space space;
    const int made =
        analyze_space_make(&space, data->analysis, ANALYZE_SPACE_BY_CLASS, ANALYZE_AT_PEAK, 0);
    if (made == 0 && space.tape) {
        base_json_object(json, "space");
        base_json_u64(json, "tape", space.tape->tape);
        base_json_u64(json, "total_bytes", space.total);
        base_json_u64(json, "held_bytes", space.held);
        if (space.at_is_known)
            base_json_u64(json, "at_ns", space.at_ns);
        base_json_bool(json, "backward", space.is_backward);
        base_json_bool(json, "truncated", space.tape->stretch_is_truncated);
        put_holders(data, &space);
        put_held_moments(data, &space);
        put_live(data, space.tape);
        base_json_end(json);
    } else {
        base_json_null(json, "space");
    }
    analyze_space_free(&space);
}

/* With what the page needs to weigh several lines at once. */
static void put_replay(struct html_data *data, const struct analyze_whatif *whatif)
{
    struct analyze_replay replay;
    analyze_replay_make(&replay, whatif);
    base_json_bool(&data->json, "tries_all", analyze_whatif_tries_all(whatif));
    base_json_object(&data->json, "replay");
    COLUMN(data, "option", replay.n_classes, base_json_u64, replay.class_[i].option);
    COLUMN(data, "again", replay.n_classes, base_json_u64, replay.class_[i].again);
    COLUMN(data, "rest", replay.n_moments, base_json_i64, replay.moment[i].rest);
    COLUMN(data, "changes", replay.n_moments, base_json_u64, replay.moment[i].n_changes);
    COLUMN(data, "backward", replay.n_moments, base_json_u64, (uint64_t)replay.moment[i].backward);
    COLUMN(data, "class", replay.n_changes, base_json_u64, replay.change[i].class_);
    COLUMN(data, "delta", replay.n_changes, base_json_i64, replay.change[i].delta);
    base_json_end(&data->json);
    analyze_replay_free(&replay);
}

/* Calls and loop bodies as checkpoints and sections; a time that is not known is -1. */
static void put_calls(struct html_data *data)
{
    struct base_json *json = &data->json;
    const struct analyze_proposals all = data->proposals;
    const struct analyze_proposal *call = all.proposal;
    base_json_object(json, "calls");
    base_json_bool(json, "traced", all.is_traced);
    base_json_bool(json, "lower_bound", all.is_bound);
    base_json_array(json, "what");
    for (size_t i = 0; i < all.n; i++) {
        char *text = report_proposal_text(&call[i]);
        base_json_u64(json, NULL, html_string(&data->strings, text));
        free(text);
    }
    base_json_end(json);
    COLUMN(data, "call", all.n, base_json_u64,
           html_string(&data->strings, report_proposal_call(&call[i])));
    COLUMN(data, "new_peak_bytes", all.n, base_json_u64, call[i].peak_bytes);
    COLUMN(data, "cost_ns", all.n, base_json_i64,
           call[i].cost_known ? (int64_t)call[i].cost_ns : -1);
    COLUMN(data, "estimate", all.n, base_json_u64, (uint64_t)call[i].cost_is_estimate);
    COLUMN(data, "inputs", all.n, base_json_u64, call[i].inputs);
    COLUMN(data, "outputs", all.n, base_json_u64, call[i].outputs);
    COLUMN(data, "best", all.n, base_json_u64, (uint64_t)call[i].is_best);
    if (all.n > 0)
        html_put_places(data, "", (struct html_lines){&call->line, sizeof *call, all.n});
    base_json_end(json);
}

void html_put_whatif(struct html_data *data)
{
    struct base_json *json = &data->json;
    struct analyze_whatif whatif;
    const int made = analyze_whatif_make(&whatif, data->analysis, false);
    if (made == 0) {
        const struct analyze_option *option = whatif.option;
        base_json_object(json, "whatif");
        base_json_u64(json, "peak_bytes", whatif.peak_bytes);
        base_json_u64(json, "tape_peak_bytes", whatif.tape->peak_bytes);
        base_json_u64(json, "run_ns", whatif.run_ns);
        base_json_u64(json, "changes_per_moment", whatif.merged);
        base_json_bool(json, "truncated", whatif.is_truncated);
        base_json_u64(json, "lines_left_out", whatif.n_left_out);
        const struct analyze_spill spill = analyze_spill_of(whatif.tape);
        base_json_object(json, "spill");
        base_json_u64(json, "tensor_bytes", spill.tensor_bytes);
        base_json_u64(json, "statement_bytes", spill.statement_bytes);
        base_json_end(json);
        base_json_object(json, "options");
        COLUMN(data, "new_peak_bytes", whatif.n, base_json_u64, option[i].peak_bytes);
        COLUMN(data, "cost_ns", whatif.n, base_json_u64, option[i].cost_ns);
        COLUMN(data, "saved_bytes", whatif.n, base_json_u64, option[i].saved_peak);
        COLUMN(data, "count", whatif.n, base_json_u64, option[i].count);
        COLUMN(data, "best", whatif.n, base_json_u64, (uint64_t)option[i].is_best);
        if (whatif.n > 0)
            html_put_places(data, "", (struct html_lines){&option->line, sizeof *option, whatif.n});
        base_json_end(json);
        put_replay(data, &whatif);
        put_calls(data);
        base_json_end(json);
    } else {
        base_json_null(json, "whatif");
    }
    analyze_whatif_free(&whatif);
}

void html_put_scopes(struct html_data *data)
{
    struct base_json *json = &data->json;
    struct analyze_scope_costs costs;
    analyze_scope_costs_make(&costs, data->analysis->profile, false);
    const struct analyze_scope_cost *scope = costs.scope;
    base_json_object(json, "scopes");
    COLUMN(data, "name", costs.n, base_json_u64, html_string(&data->strings, scope[i].name));
    COLUMN(data, "parent", costs.n, base_json_i64, (int64_t)scope[i].parent - 1);
    COLUMN(data, "begun", costs.n, base_json_u64, scope[i].calls);
    COLUMN(data, "wall_ns", costs.n, base_json_u64, scope[i].wall_ns);
    COLUMN(data, "self_ns", costs.n, base_json_u64, scope[i].self_ns);
    COLUMN(data, "forward_ns", costs.n, base_json_u64, scope[i].forward_ns);
    COLUMN(data, "backward_ns", costs.n, base_json_u64, scope[i].cost.backward_ns);
    COLUMN(data, "tape_bytes", costs.n, base_json_u64, analyze_cost_tape_bytes(&scope[i].cost));
    COLUMN(data, "peak_bytes", costs.n, base_json_u64, scope[i].cost.peak_bytes);
    base_json_end(json);
    analyze_scope_costs_free(&costs);
}

/* Colours that are not known are -1. A picture is an array of its own. */
void html_put_patterns(struct html_data *data)
{
    struct base_json *json = &data->json;
    size_t n;
    struct analyze_pattern *p = analyze_patterns(data->analysis, &n);
    base_json_object(json, "patterns");
    base_json_u64(json, "left_out", data->analysis->profile->patterns_left_out);
    base_json_object(json, "found");
    COLUMN(data, "hessian", n, base_json_u64, (uint64_t)(p[i].found->kind == READ_PATTERN_HESSIAN));
    COLUMN(data, "rows", n, base_json_u64, p[i].found->rows);
    COLUMN(data, "columns", n, base_json_u64, p[i].found->columns);
    COLUMN(data, "nonzeros", n, base_json_u64, p[i].found->values);
    COLUMN(data, "colours", n, base_json_i64,
           p[i].found->coloured ? (int64_t)p[i].found->colours : -1);
    COLUMN(data, "found", n, base_json_u64, p[i].calls);
    COLUMN(data, "width", n, base_json_u64, p[i].found->width);
    if (n > 0)
        html_put_places(data, "", (struct html_lines){&p->line, sizeof *p, n});
    base_json_end(json);
    base_json_array(json, "pictures");
    for (size_t i = 0; i < n; i++) {
        const struct read_pattern *found = p[i].found;
        base_json_array(json, NULL);
        for (size_t k = 0; k < (size_t)found->height * found->width; k++)
            base_json_u64(json, NULL, found->cell[k]);
        base_json_end(json);
    }
    base_json_end(json);
    base_json_end(json);
    free(p);
}
