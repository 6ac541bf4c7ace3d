/* export_firefox.c: a profile for the Firefox Profiler: samples by call path with their time and
 * phase, bytes as allocations, and the timeline as markers.
 *
 * The format: its "processed profile", version 70, which src/types/profile.ts of
 * github.com/firefox-devtools/profiler describes; its page reads older versions too.
 *
 * Invariant: samples of all threads add up to the profile's time, allocations to its tape bytes.
 * Indices are in range, a stack comes behind its prefix. A category's number is its phase's.
 */
#include "export_events.h"

#include "base_array.h"
#include "base_json.h"
#include "base_memory.h"
#include "base_strings.h"
#include "base_table.h"
#include "export_formats.h"

#include <inttypes.h>
#include <stdlib.h>

enum { FIREFOX_VERSION = 70, GECKO_VERSION = 36 };
static const uint64_t none = UINT64_MAX; /* null in a column */

struct firefox_function {
    uint64_t name, source, line; /* strings; `none`: unknown */
};

/* A place of a phase, the last of a sample's stack: with frame and stack of its own. */
struct firefox_leaf {
    uint32_t node;
    enum read_phase phase;
};

/* Stacks: the tree's nodes, then the leaves. Frames: the places, then the leaves. */
struct firefox {
    struct base_json json;
    const struct export_job *job;
    struct export_places places;
    struct export_events events;
    struct base_strings strings, files;
    struct firefox_function *function;
    struct base_table functions; /* by name and source */
    uint64_t *function_of_place;
    struct firefox_leaf *leaf;
    uint32_t *leaf_of_part;
    uint32_t *order; /* the parts by thread, then phase */
    size_t n_functions, room_functions, n_leaves;
};

/* ---- tables ---- */

static uint64_t firefox_add_function(struct firefox *f, const struct analyze_tree_node *node)
{
    char text[EXPORT_NAME_ROOM];
    struct firefox_function made = {.source = none};
    made.name = (uint64_t)base_strings_add(&f->strings, export_function(text, node));
    if (node->line.file)
        made.source = (uint64_t)base_strings_add(&f->files, export_file(text, node));
    made.line = node->line.function_line > 0 ? node->line.function_line : none;
    const uint64_t key = base_hash(made.name, made.source);
    size_t walk;
    for (int64_t at = base_table_first(&f->functions, key, &walk); at >= 0;
         at = base_table_next(&f->functions, key, &walk))
        if (f->function[at].name == made.name && f->function[at].source == made.source)
            return (uint64_t)at;
    base_table_add(&f->functions, key, f->n_functions);
    BASE_ARRAY_GROW(f->function, f->n_functions, &f->room_functions);
    f->function[f->n_functions] = made;
    return f->n_functions++;
}

static int firefox_compare_parts(const void *x, const void *y, void *payload)
{
    const struct analyze_tree_part *part = payload;
    const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    if (part[a].thread != part[b].thread)
        return part[a].thread < part[b].thread ? -1 : 1;
    if (part[a].phase != part[b].phase)
        return part[a].phase < part[b].phase ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* The end of the parts in `order` that are of the thread of the first. */
static size_t firefox_thread_end(const struct firefox *f, size_t first)
{
    const struct analyze_tree *tree = f->job->tree;
    size_t end = first;
    while (end < tree->n_parts &&
           tree->part[f->order[end]].thread == tree->part[f->order[first]].thread)
        end++;
    return end;
}

static void firefox_make(struct firefox *f)
{
    const struct analyze_tree *tree = f->job->tree;
    export_places_make(&f->places, tree);
    f->function_of_place = base_calloc(f->places.n + 1, sizeof *f->function_of_place);
    for (size_t i = 0; i < f->places.n; i++)
        f->function_of_place[i] = firefox_add_function(f, &tree->node[f->places.node[i]]);
    f->leaf = base_calloc(tree->n_parts + 1, sizeof *f->leaf);
    f->leaf_of_part = base_calloc(tree->n_parts + 1, sizeof *f->leaf_of_part);
    f->order = base_calloc(tree->n_parts + 1, sizeof *f->order);
    for (size_t i = 0; i < tree->n_parts; i++) {
        const struct analyze_tree_part *part = &tree->part[i];
        const struct firefox_leaf *last = f->n_leaves > 0 ? &f->leaf[f->n_leaves - 1] : NULL;
        if (!last || last->node != part->node || last->phase != part->phase)
            f->leaf[f->n_leaves++] = (struct firefox_leaf){part->node, part->phase};
        f->leaf_of_part[i] = (uint32_t)(tree->n_nodes + f->n_leaves - 1);
        f->order[i] = (uint32_t)i;
    }
    qsort_r(f->order, tree->n_parts, sizeof *f->order, firefox_compare_parts, tree->part);
}

static void firefox_free(struct firefox *f)
{
    export_places_free(&f->places);
    export_events_free(&f->events);
    base_strings_free(&f->strings);
    base_strings_free(&f->files);
    base_table_free(&f->functions);
    free(f->function);
    free(f->function_of_place);
    free(f->leaf);
    free(f->leaf_of_part);
    free(f->order);
}

/* ---- columns ---- */

typedef uint64_t firefox_value_fn(const struct firefox *f, size_t i);

static void firefox_put_or_null(struct base_json *json, const char *name, uint64_t value)
{
    if (value == none)
        base_json_null(json, name);
    else
        base_json_u64(json, name, value);
}

static void firefox_column(struct firefox *f, const char *name, size_t n, firefox_value_fn *value)
{
    base_json_array(&f->json, name);
    for (size_t i = 0; i < n; i++)
        firefox_put_or_null(&f->json, NULL, value(f, i));
    base_json_end(&f->json);
}

/* A column that has one value everywhere. */
static void firefox_same(struct firefox *f, const char *name, size_t n, const char *value)
{
    base_json_array(&f->json, name);
    for (size_t i = 0; i < n; i++)
        base_json_number(&f->json, NULL, value);
    base_json_end(&f->json);
}

/* Milliseconds, with all digits. */
static void firefox_put_ms(struct base_json *json, const char *name, uint64_t ns)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64 ".%06u", ns / 1000000, (unsigned)(ns % 1000000));
    base_json_number(json, name, text);
}

static uint64_t firefox_stack_frame(const struct firefox *f, size_t i)
{
    const size_t n = f->job->tree->n_nodes;
    return i < n ? f->places.of_node[i] : f->places.n + (i - n);
}

/* How far a stack's prefix is before it; 0: it has none. The root is in no other stack. */
static uint64_t firefox_stack_prefix(const struct firefox *f, size_t i)
{
    const struct analyze_tree *tree = f->job->tree;
    const size_t node = i < tree->n_nodes ? i : f->leaf[i - tree->n_nodes].node;
    const uint32_t parent = tree->node[node].parent;
    return parent == 0 || parent == ANALYZE_NO_NODE ? 0 : i - parent;
}

static size_t firefox_frame_place(const struct firefox *f, size_t i)
{
    return i < f->places.n ? i : f->places.of_node[f->leaf[i - f->places.n].node];
}

static uint64_t firefox_frame_function(const struct firefox *f, size_t i)
{
    return f->function_of_place[firefox_frame_place(f, i)];
}

static uint64_t firefox_frame_line(const struct firefox *f, size_t i)
{
    const uint32_t node = f->places.node[firefox_frame_place(f, i)];
    const uint32_t line = f->job->tree->node[node].line.line;
    return line > 0 ? line : none;
}

/* Callers have their caller's; the default in the end. */
static uint64_t firefox_frame_category(const struct firefox *f, size_t i)
{
    return i < f->places.n ? none : (uint64_t)f->leaf[i - f->places.n].phase;
}

static uint64_t firefox_frame_subcategory(const struct firefox *f, size_t i)
{
    return i < f->places.n ? none : 0;
}

static uint64_t firefox_function_name(const struct firefox *f, size_t i)
{
    return f->function[i].name;
}

static uint64_t firefox_function_source(const struct firefox *f, size_t i)
{
    return f->function[i].source;
}

static uint64_t firefox_function_line(const struct firefox *f, size_t i)
{
    return f->function[i].line;
}

static void firefox_put_code(struct firefox *f)
{
    const size_t stacks = f->job->tree->n_nodes + f->n_leaves, frames = f->places.n + f->n_leaves;
    base_json_object(&f->json, "stackTable");
    firefox_column(f, "frame", stacks, firefox_stack_frame);
    firefox_column(f, "prefixOffset", stacks, firefox_stack_prefix);
    base_json_u64(&f->json, "length", stacks);
    base_json_end(&f->json);
    base_json_object(&f->json, "frameTable");
    firefox_same(f, "address", frames, "-1");
    firefox_same(f, "lib", frames, "-1");
    firefox_same(f, "inlineDepth", frames, "0");
    firefox_column(f, "category", frames, firefox_frame_category);
    firefox_column(f, "subcategory", frames, firefox_frame_subcategory);
    firefox_column(f, "func", frames, firefox_frame_function);
    firefox_same(f, "nativeSymbol", frames, "null");
    firefox_same(f, "innerWindowID", frames, "null");
    firefox_column(f, "line", frames, firefox_frame_line);
    firefox_same(f, "column", frames, "null");
    firefox_same(f, "originalLocation", frames, "null");
    base_json_u64(&f->json, "length", frames);
    base_json_end(&f->json);
    base_json_object(&f->json, "funcTable");
    firefox_column(f, "name", f->n_functions, firefox_function_name);
    firefox_same(f, "isJS", f->n_functions, "false");
    firefox_same(f, "relevantForJS", f->n_functions, "false");
    firefox_same(f, "resource", f->n_functions, "-1");
    firefox_column(f, "source", f->n_functions, firefox_function_source);
    firefox_column(f, "lineNumber", f->n_functions, firefox_function_line);
    firefox_same(f, "columnNumber", f->n_functions, "null");
    firefox_same(f, "originalLocation", f->n_functions, "null");
    base_json_u64(&f->json, "length", f->n_functions);
    base_json_end(&f->json);
}

static void firefox_put_empty(struct firefox *f, const char *table, const char *const *columns)
{
    base_json_object(&f->json, table);
    for (; *columns; columns++) {
        base_json_array(&f->json, *columns);
        base_json_end(&f->json);
    }
    base_json_u64(&f->json, "length", 0);
    base_json_end(&f->json);
}

/* Of native code nothing is left to be looked up, so there are neither libraries nor symbols. The
 * strings come last: all that is written before adds some. */
static void firefox_put_shared(struct firefox *f)
{
    static const char *const resources[] = {"name", "host", "type", NULL},
                             *const symbols[] = {"libIndex", "address", "name", "functionSize",
                                                 NULL},
                             *const locations[] = {"source", "line", "column", NULL};
    base_json_object(&f->json, "shared");
    firefox_put_code(f);
    firefox_put_empty(f, "resourceTable", resources);
    firefox_put_empty(f, "nativeSymbols", symbols);
    firefox_put_empty(f, "sourceLocationTable", locations);
    base_json_object(&f->json, "sources");
    base_json_array(&f->json, "filename");
    for (size_t i = 0; i < f->files.n; i++)
        base_json_i64(&f->json, NULL, base_strings_add(&f->strings, f->files.text[i]));
    base_json_end(&f->json);
    firefox_same(f, "id", f->files.n, "null");
    firefox_same(f, "startLine", f->files.n, "1");
    firefox_same(f, "startColumn", f->files.n, "1");
    firefox_same(f, "sourceMapURL", f->files.n, "null");
    firefox_same(f, "content", f->files.n, "null");
    base_json_u64(&f->json, "length", f->files.n);
    base_json_end(&f->json);
    base_json_array(&f->json, "stringArray");
    for (size_t i = 0; i < f->strings.n; i++)
        base_json_text(&f->json, NULL, f->strings.text[i]);
    base_json_end(&f->json);
    base_json_end(&f->json);
}

/* ---- threads ---- */

/* The samples or allocations of a thread, whose parts are first to end in `order`: stack, weight
 * and time of each part that has some. Costs have no time of their own: each begins where the one
 * before ends. */
static void firefox_put_costs(struct firefox *f, size_t first, size_t end,
                              enum export_metric metric)
{
    static const char *const columns[] = {"stack", "weight", "time"};
    size_t n = 0;
    for (int column = 0; column < 3; column++) {
        uint64_t at = 0;
        n = 0;
        base_json_array(&f->json, columns[column]);
        for (size_t i = first; i < end; i++) {
            const struct analyze_cost *cost = &f->job->tree->part[f->order[i]].cost;
            const uint64_t weight = export_cost(cost, metric);
            if (weight > 0 && column == 0)
                base_json_u64(&f->json, NULL, f->leaf_of_part[f->order[i]]);
            else if (weight > 0 && column == 1 && metric == EXPORT_TAPE)
                base_json_u64(&f->json, NULL, weight);
            else if (weight > 0)
                firefox_put_ms(&f->json, NULL, column == 1 ? weight : at);
            at = read_add(at, export_cost(cost, EXPORT_TIME));
            n += weight > 0;
        }
        base_json_end(&f->json);
    }
    base_json_u64(&f->json, "length", n);
}

static void firefox_begin_thread(struct firefox *f, const char *name, uint32_t process,
                                 uint64_t tid, bool is_main)
{
    char text[32], program[EXPORT_NAME_ROOM];
    struct base_json *json = &f->json;
    snprintf(text, sizeof text, "%" PRIu64, export_pid(f->job, process));
    base_json_object(json, NULL);
    base_json_text(json, "processName",
                   base_file_name(export_process_name(program, f->job, process)));
    base_json_text(json, "processType", "default");
    base_json_u64(json, "processStartupTime", 0);
    base_json_null(json, "processShutdownTime");
    base_json_u64(json, "registerTime", 0);
    base_json_null(json, "unregisterTime");
    base_json_array(json, "pausedRanges");
    base_json_end(json);
    base_json_text(json, "name", name);
    base_json_bool(json, "isMainThread", is_main);
    base_json_text(json, "pid", text);
    base_json_u64(json, "tid", tid);
}

static void firefox_put_no_markers(struct firefox *f)
{
    static const char *const columns[] = {"data",  "name",     "startTime", "endTime",
                                          "phase", "category", NULL};
    firefox_put_empty(f, "markers", columns);
}

static void firefox_put_cost_thread(struct firefox *f, size_t first, size_t end)
{
    char name[64] = "costs";
    const uint64_t thread = f->job->tree->part[f->order[first]].thread;
    if (thread > 0)
        snprintf(name, sizeof name, "costs of thread %" PRIu64, thread);
    firefox_begin_thread(f, name, 0, thread, first == 0);
    base_json_object(&f->json, "samples");
    base_json_text(&f->json, "weightType", "tracing-ms");
    firefox_put_costs(f, first, end, EXPORT_TIME);
    base_json_end(&f->json);
    base_json_object(&f->json, "nativeAllocations");
    base_json_text(&f->json, "weightType", "bytes");
    firefox_put_costs(f, first, end, EXPORT_TAPE);
    base_json_end(&f->json);
    firefox_put_no_markers(f);
    base_json_end(&f->json);
}

static void firefox_put_marker_data(struct base_json *json, const struct export_site *site,
                                    const struct export_event *event)
{
    char text[EXPORT_NAME_ROOM];
    base_json_object(json, NULL);
    base_json_text(json, "type", export_event_kinds[site->kind]);
    if (*export_event_place(text, site))
        base_json_text(json, "line", text);
    if (export_has_tape(site))
        base_json_u64(json, "tape", site->tape);
    if (event->record > 0)
        base_json_u64(json, "record", event->record - 1);
    base_json_end(json);
}

static uint64_t firefox_event_category(const struct export_site *site)
{
    if (site->kind == READ_EVENT_FORWARD)
        return READ_PHASE_FORWARD;
    return site->kind == READ_EVENT_BACKWARD || site->kind == READ_EVENT_SWEEP ? READ_PHASE_BACKWARD
                                                                               : READ_PHASE_NONE;
}

/* Column `column` of the markers, all of which are intervals. */
static void firefox_put_markers(struct firefox *f, const struct export_thread *thread)
{
    static const char *const columns[] = {"data", "name", "startTime", "endTime", "category"};
    char text[EXPORT_NAME_ROOM];
    struct base_json *json = &f->json;
    base_json_object(json, "markers");
    for (int column = 0; column < 5; column++) {
        base_json_array(json, columns[column]);
        for (size_t i = thread->first; i < thread->first + thread->n; i++) {
            const struct export_event *event = &f->events.event[i];
            const struct export_site *site = &f->events.site[event->site];
            if (column == 0)
                firefox_put_marker_data(json, site, event);
            else if (column == 1)
                base_json_i64(json, NULL,
                              base_strings_add(&f->strings, export_event_name(text, site)));
            else if (column == 4)
                base_json_u64(json, NULL, firefox_event_category(site));
            else
                firefox_put_ms(json, NULL, column == 2 ? event->start : event->end);
        }
        base_json_end(json);
    }
    firefox_same(f, "phase", thread->n, "1");
    base_json_u64(json, "length", thread->n);
    base_json_end(json);
}

/* The first thread of each process stands for it. */
static void firefox_put_time_thread(struct firefox *f, size_t i)
{
    char row[EXPORT_THREAD_ROOM], name[EXPORT_THREAD_ROOM + 16];
    const struct export_thread *thread = &f->events.thread[i];
    const bool is_first = (i == 0 || thread->process != f->events.thread[i - 1].process) &&
                          (thread->process > 0 || f->job->tree->n_parts == 0);
    snprintf(name, sizeof name, "%s over time", export_thread_name(row, f->job, thread));
    firefox_begin_thread(f, name, thread->process, thread->tid, is_first);
    base_json_bool(&f->json, "showMarkersInTimeline", true);
    base_json_object(&f->json, "samples");
    base_json_text(&f->json, "weightType", "samples");
    base_json_null(&f->json, "weight");
    firefox_same(f, "stack", 1, "null");
    firefox_same(f, "time", 1, "0");
    base_json_u64(&f->json, "length", 1);
    base_json_end(&f->json);
    firefox_put_markers(f, thread);
    base_json_end(&f->json);
}

static void firefox_put_threads(struct firefox *f)
{
    base_json_array(&f->json, "threads");
    for (size_t i = 0, end; i < f->job->tree->n_parts; i = end) {
        end = firefox_thread_end(f, i);
        firefox_put_cost_thread(f, i, end);
    }
    for (size_t i = 0; i < f->events.n_threads; i++)
        firefox_put_time_thread(f, i);
    base_json_end(&f->json);
}

/* ---- the rest ---- */

static void firefox_put_categories(struct base_json *json)
{
    static const char *const color[READ_PHASES] = {[READ_PHASE_NONE] = "grey", /* the default's */
                                                   [READ_PHASE_FORWARD] = "blue",
                                                   [READ_PHASE_BACKWARD] = "orange",
                                                   [READ_PHASE_RECOMPUTE] = "purple"};
    base_json_array(json, "categories");
    for (int i = 0; i < READ_PHASES; i++) {
        base_json_object(json, NULL);
        base_json_text(json, "name", export_phase_names[i]);
        base_json_text(json, "color", color[i]);
        base_json_array(json, "subcategories");
        base_json_text(json, NULL, "Other");
        base_json_end(json);
        base_json_end(json);
    }
    base_json_end(json);
}

static void firefox_put_field(struct base_json *json, const char *key, const char *format)
{
    base_json_object(json, NULL);
    base_json_text(json, "key", key);
    base_json_text(json, "label", key);
    base_json_text(json, "format", format);
    base_json_end(json);
}

/* A schema for each kind of event. */
static void firefox_put_schemas(struct base_json *json)
{
    static const char *const places[] = {"marker-chart", "marker-table", "timeline-overview"};
    base_json_array(json, "markerSchema");
    for (int kind = 0; kind < EXPORT_EVENT_KINDS; kind++) {
        if (!export_event_kinds[kind])
            continue;
        base_json_object(json, NULL);
        base_json_text(json, "name", export_event_kinds[kind]);
        base_json_text(json, "tableLabel", "{marker.data.line}");
        base_json_array(json, "display");
        for (size_t i = 0; i < sizeof places / sizeof *places; i++)
            base_json_text(json, NULL, places[i]);
        base_json_end(json);
        base_json_array(json, "fields");
        firefox_put_field(json, "line", "string");
        firefox_put_field(json, "tape", "integer");
        firefox_put_field(json, "record", "integer");
        base_json_end(json);
        base_json_bool(json, "isStackBased", true);
        base_json_end(json);
    }
    base_json_end(json);
}

static void firefox_put_meta(struct firefox *f)
{
    char text[EXPORT_NAME_ROOM];
    struct base_json *json = &f->json;
    const struct read_profile *profile = f->job->analysis->profile;
    base_json_object(json, "meta");
    base_json_u64(json, "version", GECKO_VERSION);
    base_json_u64(json, "preprocessedProfileVersion", FIREFOX_VERSION);
    base_json_u64(json, "interval", 1);
    firefox_put_ms(json, "startTime", profile->start_unix_ns);
    base_json_u64(json, "processType", 0);
    base_json_text(json, "product", export_clean(text, profile->program, ""));
    base_json_text(json, "importedFrom", "tapescope");
    base_json_u64(json, "stackwalk", 1);
    base_json_bool(json, "symbolicated", true);
    base_json_bool(json, "symbolicationNotSupported", true);
    base_json_bool(json, "usesOnlyOneStackType", true);
    base_json_bool(json, "sourceCodeIsNotOnSearchfox", true);
    base_json_bool(json, "keepProfileThreadOrder", true);
    firefox_put_categories(json);
    firefox_put_schemas(json);
    base_json_end(json);
}

static void firefox_put_counter_samples(struct base_json *json, const struct read_profile *profile,
                                        const struct read_tape *tape)
{
    base_json_object(json, "samples");
    base_json_array(json, "time");
    for (size_t i = 0; i < tape->n_moments; i++)
        firefox_put_ms(json, NULL, read_profile_since(profile, tape->moment[i].ticks));
    base_json_end(json);
    base_json_array(json, "count"); /* since the one before */
    for (size_t i = 0; i < tape->n_moments; i++)
        base_json_i64(
            json, NULL,
            (int64_t)(tape->moment[i].most_bytes - (i > 0 ? tape->moment[i - 1].most_bytes : 0)));
    base_json_end(json);
    base_json_u64(json, "length", tape->n_moments);
    base_json_end(json);
}

static void firefox_put_counter(struct base_json *json, const struct read_profile *profile,
                                const struct read_tape *tape)
{
    char name[64], pid[32];
    export_tape_name(name, sizeof name, tape);
    snprintf(pid, sizeof pid, "%" PRIu64, profile->pid);
    base_json_object(json, NULL);
    base_json_text(json, "name", name);
    base_json_text(json, "category", "Memory");
    base_json_text(json, "description", "live bytes, the most of each interval");
    base_json_text(json, "pid", pid);
    base_json_u64(json, "mainThreadIndex", 0);
    firefox_put_counter_samples(json, profile, tape);
    base_json_object(json, "display");
    base_json_text(json, "graphType", "line-accumulated");
    base_json_text(json, "unit", "bytes");
    base_json_text(json, "color", "grey");
    base_json_null(json, "markerSchemaLocation");
    base_json_u64(json, "sortWeight", 0);
    base_json_text(json, "label", name);
    base_json_array(json, "tooltipRows");
    base_json_object(json, NULL);
    base_json_text(json, "type", "value");
    base_json_text(json, "source", "accumulated");
    base_json_object(json, "format");
    base_json_text(json, "unit", "bytes");
    base_json_end(json);
    base_json_text(json, "label", "live");
    base_json_end(json);
    base_json_end(json);
    base_json_end(json);
    base_json_end(json);
}

static void firefox_put_all(struct firefox *f)
{
    const struct read_profile *profile = f->job->analysis->profile;
    base_json_begin(&f->json, f->job->out);
    firefox_put_meta(f);
    base_json_array(&f->json, "libs");
    base_json_end(&f->json);
    firefox_put_threads(f);
    base_json_array(&f->json, "counters");
    for (size_t i = 0; i < profile->n_tapes; i++)
        if (profile->tape[i].n_moments > 0)
            firefox_put_counter(&f->json, profile, &profile->tape[i]);
    base_json_end(&f->json);
    firefox_put_shared(f);
    base_json_finish(&f->json);
}

int export_firefox(const struct export_job *job)
{
    struct firefox f = {.job = job};
    const int status = export_has_events(job) ? export_events_read(&f.events, job) : 0;
    firefox_make(&f);
    if (status == 0)
        firefox_put_all(&f);
    firefox_free(&f);
    return status;
}
