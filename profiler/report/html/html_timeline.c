/* html_timeline.c: single events for the page. See html_data.h.
 *
 * Invariant: the events are read once more, and nothing is kept of one but its share of the bins,
 * and of scopes the longest spans; so a profile of any number of them makes a page of bounded
 * size.
 *
 * Times are ns since the profile began. A sweep's own time is what no pullback and nothing that ran
 * again took of it in its thread. Ops and pullbacks of one thread follow each other.
 */
#include "html_bins.h"

#include "analyze_ranks.h"

#include "base_array.h"
#include "base_memory.h"
#include "base_table.h"
#include "html_data.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_CELLS = 1 << 19,
    LEAST_BINS = 1 << 11, /* with fewer, lines that cost least are folded into their callers */
    FOLDS = 24,
    MOST_SPANS = 1 << 14,
    MOST_SLICES = 1 << 15,
    MOST_THREADS = 256,
    MOST_ARROWS = 1 << 14,
    NO_PATH = -1
};

/* What a series is of; SWEEP: of a sweep, its own time; INNER: of a thread, what the sweep that is
 * under way has in its records, which the page does not get. */
enum timeline_kind { FORWARD, BACKWARD, RECOMPUTE, SWEEP, INNER, SHOWN = INNER };

/* For the page: in which phase its times are, and whether what it counts are calls of ops, sweeps
 * of records, both or neither. */
static const struct {
    const char *phase;
    bool calls, swept;
} kind_facts[SHOWN] = {
    [FORWARD] = {"forward", true, false},
    [BACKWARD] = {"backward", false, true},
    [RECOMPUTE] = {"recompute", false, false},
    [SWEEP] = {"backward", true, true},
};
struct series {
    uint32_t thread, node;
    enum timeline_kind kind;
};

/* A row of the account by what events say of it, and the node that has all such rows. */
struct row_key {
    uint64_t pc;
    const char *op;
    uint32_t line;
    int64_t path; /* place, or NO_PATH: any */
    uint32_t node;
};

/* A scope that was open, or an op or a pullback that ran: `of` is its scope, or its node. */
struct timeline_span {
    uint64_t start, ns;
    uint32_t of, thread;
    enum timeline_kind kind; /* of an op */
};

/* The longest of them, in an array with room for twice as many. */
struct timeline_spans {
    struct timeline_span *span;
    size_t n, most;
    uint64_t left_out;
};

struct thread {
    uint64_t tid;
    uint32_t process;
};

struct making {
    struct html_data *data;
    const struct read_profile *profile;
    const struct analyze_tree *tree;
    struct row_key *row;
    size_t n_rows;
    struct html_bins bins;
    struct series *series;
    struct base_table known; /* series by hash */
    size_t n_series, room_series;
    uint32_t *fold; /* by node: the one that stands for it */
    unsigned folds; /* how often there was no room for all nodes */
    struct timeline_spans scopes, slices;
    uint64_t n_read, end_ns; /* events; when the last of them ended */
    struct thread thread[MOST_THREADS];
    uint32_t n_threads, last_thread;
};

static int compare_rows(const void *x, const void *y)
{
    const struct row_key *a = x, *b = y;
    if (a->pc != b->pc)
        return a->pc < b->pc ? -1 : 1;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    if (a->path != b->path)
        return a->path < b->path ? -1 : 1;
    return strcmp(a->op, b->op);
}

/* The innermost node that both are below, or one of them; a parent comes before its children. */
static uint32_t timeline_common(const struct analyze_tree *tree, uint32_t a, uint32_t b)
{
    while (a != b) {
        if (a < b)
            b = tree->node[b].parent;
        else
            a = tree->node[a].parent;
    }
    return a;
}

static int64_t path_place(const struct read_profile *profile, uint32_t id)
{
    const size_t place = id ? read_profile_path(profile, id) : SIZE_MAX;
    return place == SIZE_MAX ? NO_PATH : (int64_t)place;
}

/* Each row with its path and for any path, ordered, each once. */
static void take_rows(struct making *m)
{
    const struct read_profile *profile = m->profile;
    const uint32_t *node = m->tree->row_node;
    size_t all = 0, n = 0;
    for (size_t i = 0; i < profile->n_tapes; i++)
        all += 2 * profile->tape[i].n_rows;
    m->row = base_calloc(all + 1, sizeof *m->row);
    for (size_t i = 0; i < profile->n_tapes; i++)
        for (size_t j = 0; j < profile->tape[i].n_rows; j++, node++) {
            const struct read_row *row = &profile->tape[i].row[j];
            const int64_t path = path_place(profile, row->path);
            if (*node == ANALYZE_NO_NODE)
                continue;
            m->row[n++] = (struct row_key){row->pc, row->op, row->line, NO_PATH, *node};
            if (path != NO_PATH)
                m->row[n++] = (struct row_key){row->pc, row->op, row->line, path, *node};
        }
    qsort(m->row, n, sizeof *m->row, compare_rows);
    for (size_t i = 0; i < n; i++) {
        struct row_key *last = m->n_rows > 0 ? &m->row[m->n_rows - 1] : NULL;
        if (last && compare_rows(last, &m->row[i]) == 0)
            last->node = timeline_common(m->tree, last->node, m->row[i].node);
        else
            m->row[m->n_rows++] = m->row[i];
    }
}

/* The node that an event belongs to: where its path is not known, one that has all it may be. */
static uint32_t timeline_node_of(const struct making *m, const struct read_event *event)
{
    const size_t path = read_profile_path_numbered(m->profile, event->path);
    struct row_key key = {event->pc, event->op, event->line, NO_PATH, 0};
    const struct row_key *found = NULL;
    if (path != SIZE_MAX) {
        key.path = (int64_t)path;
        found = bsearch(&key, m->row, m->n_rows, sizeof key, compare_rows);
        key.path = NO_PATH;
    }
    if (!found)
        found = bsearch(&key, m->row, m->n_rows, sizeof key, compare_rows);
    return found ? found->node : 0;
}

/* The event's thread; the last number stands for all that there is no room for. */
static uint32_t thread_of(struct making *m, const struct read_event *event)
{
    for (uint32_t k = 0; k < m->n_threads; k++) {
        const uint32_t i = (m->last_thread + k) % m->n_threads;
        if (m->thread[i].tid == event->thread && m->thread[i].process == event->process)
            return m->last_thread = i;
    }
    if (m->n_threads == MOST_THREADS)
        return MOST_THREADS - 1;
    m->thread[m->n_threads] = (struct thread){event->thread, event->process};
    return m->last_thread = m->n_threads++;
}

static uint32_t series_of(struct making *m, uint32_t thread, uint32_t node, enum timeline_kind kind)
{
    const uint64_t key = base_hash(base_hash(base_hash(0, node), thread), kind);
    size_t walk;
    for (int64_t at = base_table_first(&m->known, key, &walk); at >= 0;
         at = base_table_next(&m->known, key, &walk)) {
        const struct series *known = &m->series[at];
        if (known->thread == thread && known->node == node && known->kind == kind)
            return (uint32_t)at;
    }
    BASE_ARRAY_GROW(m->series, m->n_series, &m->room_series);
    m->series[m->n_series] = (struct series){thread, node, kind};
    base_table_add(&m->known, key, m->n_series);
    return (uint32_t)m->n_series++;
}

static bool is_inner(const void *payload, uint32_t series)
{
    return ((const struct making *)payload)->series[series].kind == INNER;
}

static int compare_length(const void *x, const void *y)
{
    const struct timeline_span *a = x, *b = y;
    if (a->ns != b->ns)
        return a->ns > b->ns ? -1 : 1;
    return a->start < b->start ? -1 : a->start > b->start;
}

static int compare_start(const void *x, const void *y)
{
    const struct timeline_span *a = x, *b = y;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return compare_length(x, y);
}

/* Keeps the longest. */
static void cut_spans(struct timeline_spans *spans)
{
    if (spans->n <= spans->most)
        return;
    qsort(spans->span, spans->n, sizeof *spans->span, compare_length);
    spans->left_out += spans->n - spans->most;
    spans->n = spans->most;
}

static void take_span(struct timeline_spans *spans, const struct timeline_span *span)
{
    if (spans->n == 2 * spans->most)
        cut_spans(spans);
    spans->span[spans->n++] = *span;
}

/* There is no room for cells: nodes that cost less than a bound, which is doubled each time, are
 * part of their callers from now on. A caller's number is less than that of what it calls. */
static bool timeline_fewer(void *payload)
{
    struct making *m = payload;
    const struct analyze_tree *tree = m->tree;
    if (m->folds == FOLDS)
        return false;
    const uint64_t whole = analyze_cost_time(&tree->node[0].all);
    const uint64_t bound = whole >> (FOLDS - ++m->folds);
    for (size_t i = 1; i < tree->n_nodes; i++)
        m->fold[i] = m->folds < FOLDS && analyze_cost_time(&tree->node[i].all) >= bound
                         ? (uint32_t)i
                         : m->fold[tree->node[i].parent];
    const size_t n = m->n_series;
    uint32_t *to = base_malloc((n + 1) * sizeof *to);
    for (size_t i = 0; i < n; i++) {
        const struct series series = m->series[i];
        to[i] = series_of(m, series.thread, m->fold[series.node], series.kind);
    }
    html_bins_map(&m->bins, to);
    free(to);
    return true;
}

/* An op, a pullback or a sweep. Times that samples estimate are no events'. */
static void take_time(struct making *m, const struct read_event *event, uint64_t from, uint64_t to)
{
    const uint32_t thread = thread_of(m, event), own_node = timeline_node_of(m, event);
    const uint32_t node = m->fold[own_node];
    const uint32_t inner = series_of(m, thread, 0, INNER);
    if (event->kind == READ_EVENT_SWEEP) {
        const uint32_t own = series_of(m, thread, node, SWEEP);
        html_bins_add_outer(&m->bins, own, inner, from, to, 1);
        return;
    }
    const bool forward = event->kind == READ_EVENT_FORWARD;
    const enum timeline_kind kind = !forward ? BACKWARD : event->again ? RECOMPUTE : FORWARD;
    const uint32_t series = series_of(m, thread, node, kind);
    take_span(&m->slices, &(struct timeline_span){from, to - from, own_node, thread, kind});
    html_bins_add(&m->bins, series, from, to, !event->part);
    if (kind != FORWARD)
        html_bins_add(&m->bins, inner, from, to, 0);
}

/* Of ranks on rank 0's clock; what is before the profile began is at its beginning. */
static uint64_t timeline_since(const struct making *m, uint32_t process, uint64_t ticks)
{
    const struct analyze_ranks *ranks = m->data->analysis->ranks;
    const int64_t ns =
        analyze_ranks_since(ranks, m->profile, process, read_profile_since(m->profile, ticks));
    return ns > 0 ? (uint64_t)ns : 0;
}

static void timeline_take(void *payload, const struct read_profile *part,
                          const struct read_event *event)
{
    struct making *m = payload;
    const struct read_profile *profile = m->profile;
    (void)part; /* it is not read to its end: times are known by the first reading */
    if (m->n_read++ >= profile->n_events)
        return;
    const uint64_t from = timeline_since(m, event->process, event->start_ticks);
    const uint64_t to = timeline_since(m, event->process, read_event_end(event));
    m->end_ns = to > m->end_ns ? to : m->end_ns;
    if (event->kind == READ_EVENT_SCOPE) {
        if (event->scope > 0 && event->scope <= profile->n_scopes)
            take_span(&m->scopes, &(struct timeline_span){.start = from,
                                                          .ns = to > from ? to - from : 0,
                                                          .of = event->scope - 1,
                                                          .thread = thread_of(m, event)});
    } else if (!profile->is_sampled) {
        take_time(m, event, from, to > from ? to : from);
    }
}

/* Series without a cell have no number in the page; the others are numbered in their order. */
static void put_bins(struct making *m)
{
    struct base_json *json = &m->data->json;
    const struct html_bins *bins = &m->bins;
    static const char *const name[] = {"thread", "node", "kind", "cells"};
    base_json_object(json, "series");
    for (int column = 0; column < 4; column++) {
        base_json_array(json, name[column]);
        for (size_t i = 0, n; i < bins->n_cells; i += n) {
            const uint64_t number = bins->cell[i].key >> 32;
            const struct series *series = &m->series[number];
            for (n = 1; i + n < bins->n_cells && bins->cell[i + n].key >> 32 == number;)
                n++;
            const uint64_t value[] = {series->thread, series->node, series->kind, n};
            base_json_u64(json, NULL, value[column]);
        }
        base_json_end(json);
    }
    base_json_end(json);
    base_json_object(json, "cells");
    base_json_array(json, "bin"); /* less that of the cell before; of a series' first less 0 */
    for (size_t i = 0; i < bins->n_cells; i++) {
        const uint64_t key = bins->cell[i].key, before = i > 0 ? bins->cell[i - 1].key : 0;
        const bool first = i == 0 || before >> 32 != key >> 32;
        base_json_u64(json, NULL, first ? key & UINT32_MAX : key - before);
    }
    base_json_end(json);
    static const struct html_cell none; /* no cell has a member either */
    const struct html_cell *cell = bins->n_cells > 0 ? bins->cell : &none;
    html_put_numbers(m->data, "", "ns", &cell->ns, sizeof *cell, bins->n_cells);
    html_put_numbers(m->data, "", "count", &cell->count, sizeof *cell, bins->n_cells);
    base_json_end(json);
}

/* Ordered by when they began, into the object that is open. */
static void put_times(struct making *m, struct timeline_spans *spans)
{
    struct base_json *json = &m->data->json;
    const struct timeline_span *span = spans->span;
    cut_spans(spans);
    qsort(spans->span, spans->n, sizeof *spans->span, compare_start);
    base_json_array(json, "thread");
    for (size_t i = 0; i < spans->n; i++)
        base_json_u64(json, NULL, span[i].thread);
    base_json_end(json);
    base_json_array(json, "start_ns"); /* less that of the one before */
    for (size_t i = 0; i < spans->n; i++)
        base_json_u64(json, NULL, span[i].start - (i > 0 ? span[i - 1].start : 0));
    base_json_end(json);
    base_json_array(json, "ns");
    for (size_t i = 0; i < spans->n; i++)
        base_json_u64(json, NULL, span[i].ns);
    base_json_end(json);
}

static void put_spans(struct making *m, const struct analyze_scope_costs *costs)
{
    struct base_json *json = &m->data->json;
    base_json_object(json, "spans");
    put_times(m, &m->scopes);
    base_json_array(json, "scope");
    for (size_t i = 0; i < m->scopes.n; i++)
        base_json_u64(json, NULL, costs->place[m->scopes.span[i].of]);
    base_json_end(json);
    base_json_end(json);
    base_json_u64(json, "spans_left_out", m->scopes.left_out);
}

/* Ops and pullbacks one by one. */
static void put_slices(struct making *m)
{
    struct base_json *json = &m->data->json;
    base_json_object(json, "slices");
    put_times(m, &m->slices);
    base_json_array(json, "node");
    for (size_t i = 0; i < m->slices.n; i++)
        base_json_u64(json, NULL, m->slices.span[i].of);
    base_json_end(json);
    base_json_array(json, "kind");
    for (size_t i = 0; i < m->slices.n; i++)
        base_json_u64(json, NULL, m->slices.span[i].kind);
    base_json_end(json);
    base_json_end(json);
    base_json_u64(json, "slices_left_out", m->slices.left_out);
}

/* Of the threads' processes; -1: of none. */
static void put_ranks(struct making *m)
{
    size_t rank;
    const struct analyze_ranks *ranks = m->data->analysis->ranks;
    base_json_array(&m->data->json, "rank");
    for (uint32_t i = 0; i < m->n_threads; i++)
        base_json_i64(
            &m->data->json, NULL,
            analyze_ranks_place(ranks, m->thread[i].process, &rank) ? ranks->rank[rank].rank : -1);
    base_json_end(&m->data->json);
}

struct timeline_arrow {
    uint32_t from, to; /* processes */
    uint64_t sent_ns, came_ns;
};

/* Where a message was sent, or came; the last of a collective call began, or another's ended. */
static void arrow_end(struct making *m, size_t rank, const struct analyze_message *message,
                      struct timeline_arrow *arrow, size_t n)
{
    const struct analyze_ranks *ranks = m->data->analysis->ranks;
    const int64_t start = analyze_ranks_logged(ranks, m->profile, message->start_ns);
    const int64_t end = analyze_ranks_logged(ranks, m->profile, message->end_ns);
    for (uint32_t k = 0; k < message->n_sends && message->sends + k <= n; k++) {
        arrow[message->sends + k - 1].from = (uint32_t)rank + 1;
        arrow[message->sends + k - 1].sent_ns = start > 0 ? (uint64_t)start : 0;
    }
    if (message->gets > 0 && message->gets <= n) {
        arrow[message->gets - 1].to = (uint32_t)rank + 1;
        arrow[message->gets - 1].came_ns = end > 0 ? (uint64_t)end : 0;
    }
}

/* Of each message from rank to rank, and of each wait in a collective call. */
static void put_arrows(struct making *m)
{
    const struct analyze_ranks *ranks = m->data->analysis->ranks;
    struct base_json *json = &m->data->json;
    struct timeline_arrow *arrow = base_calloc(MOST_ARROWS, sizeof *arrow);
    uint64_t all = 0;
    size_t n = 0;
    for (size_t i = 0; ranks && i < ranks->n; i++)
        for (size_t k = 0; k < ranks->log[i].n; k++) {
            const struct analyze_message *message = &ranks->log[i].message[k];
            all = message->gets > all ? message->gets : all;
            arrow_end(m, i, message, arrow, MOST_ARROWS);
        }
    n = all < MOST_ARROWS ? (size_t)all : MOST_ARROWS;
    base_json_object(json, "arrows");
    html_put_numbers(m->data, "", "sent_ns", &arrow->sent_ns, sizeof *arrow, n);
    html_put_numbers(m->data, "", "came_ns", &arrow->came_ns, sizeof *arrow, n);
    base_json_array(json, "from");
    for (size_t i = 0; i < n; i++)
        base_json_u64(json, NULL, arrow[i].from);
    base_json_end(json);
    base_json_array(json, "to");
    for (size_t i = 0; i < n; i++)
        base_json_u64(json, NULL, arrow[i].to);
    base_json_end(json);
    base_json_end(json);
    base_json_u64(json, "arrows_left_out", all - n);
    free(arrow);
}

static void timeline_put(struct making *m, const struct analyze_scope_costs *costs)
{
    struct base_json *json = &m->data->json;
    const struct read_profile *profile = m->profile;
    html_bins_sort(&m->bins, is_inner, m);
    base_json_object(json, "timeline");
    base_json_u64(json, "events_left_out", profile->events_left_out);
    base_json_u64(json, "events_end_ns", m->end_ns);
    base_json_bool(json, "folded", m->folds > 0);
    base_json_double(json, "forward_overhead_ns",
                     profile->forward_overhead / profile->ticks_per_ns);
    base_json_double(json, "backward_overhead_ns",
                     profile->backward_overhead / profile->ticks_per_ns);
    base_json_array(json, "kinds");
    for (int kind = 0; kind < SHOWN; kind++) {
        base_json_object(json, NULL);
        base_json_text(json, "phase", kind_facts[kind].phase);
        base_json_bool(json, "calls", kind_facts[kind].calls);
        base_json_bool(json, "swept", kind_facts[kind].swept);
        base_json_end(json);
    }
    base_json_end(json);
    base_json_u64(json, "bins", m->bins.n);
    base_json_u64(json, "bin_ns", m->bins.width_ns);
    base_json_object(json, "threads");
    base_json_array(json, "number");
    for (uint32_t i = 0; i < m->n_threads; i++)
        base_json_u64(json, NULL, m->thread[i].tid);
    base_json_end(json);
    base_json_array(json, "process");
    for (uint32_t i = 0; i < m->n_threads; i++)
        base_json_u64(json, NULL, m->thread[i].process);
    base_json_end(json);
    put_ranks(m);
    base_json_end(json);
    put_bins(m);
    put_spans(m, costs);
    put_slices(m);
    put_arrows(m);
    base_json_end(json);
}

void html_put_timeline(struct html_data *data, const struct analyze_tree *tree)
{
    const struct read_profile *profile = data->analysis->profile;
    if (profile->n_events == 0) {
        base_json_null(&data->json, "timeline");
        return;
    }
    struct analyze_scope_costs costs;
    struct making m = {.data = data, .profile = profile, .tree = tree};
    m.scopes = (struct timeline_spans){
        .span = base_malloc((size_t)2 * MOST_SPANS * sizeof *m.scopes.span), .most = MOST_SPANS};
    m.slices = (struct timeline_spans){
        .span = base_malloc((size_t)2 * MOST_SLICES * sizeof *m.slices.span), .most = MOST_SLICES};
    m.fold = base_malloc((tree->n_nodes + 1) * sizeof *m.fold);
    for (size_t i = 0; i < tree->n_nodes; i++)
        m.fold[i] = (uint32_t)i;
    analyze_scope_costs_make(&costs, profile, false);
    take_rows(&m);
    html_bins_open(&m.bins, profile->duration_ns, MOST_CELLS);
    m.bins.least = LEAST_BINS;
    m.bins.fewer = timeline_fewer;
    m.bins.payload = &m;
    char error[512];
    struct read_profile *again =
        read_profile_events(read_profile_stored(profile), timeline_take, &m, error, sizeof error);
    if (again) {
        timeline_put(&m, &costs);
    } else { /* it was there a moment ago */
        base_json_null(&data->json, "timeline");
        if (data->options->warn) {
            char text[640];
            snprintf(text, sizeof text, "%s; the page has no single events", error);
            data->options->warn(data->options->warn_payload, text);
        }
    }
    read_profile_free(again);
    analyze_scope_costs_free(&costs);
    html_bins_free(&m.bins);
    base_table_free(&m.known);
    free(m.row);
    free(m.series);
    free(m.scopes.span);
    free(m.slices.span);
    free(m.fold);
}
