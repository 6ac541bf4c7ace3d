/* export_pprof.c: a profile for `go tool pprof`: a sample for each call path, line, phase and
 * thread. */
#include "export_formats.h"

#include "base_memory.h"
#include "base_strings.h"
#include "export_packet.h"
#include "export_places.h"
#include "pprof.pb-c.h"

#include <inttypes.h>
#include <stdlib.h>

enum { LABELS = 3 };

/* pprof takes the first type for how often, and shows the default. */
static const enum export_metric order[] = {
    EXPORT_CALLS, EXPORT_TIME, EXPORT_FORWARD, EXPORT_BACKWARD, EXPORT_RECOMPUTE,
    EXPORT_TAPE,  EXPORT_PEAK, EXPORT_OTHER,   EXPORT_WAITING,  EXPORT_SAMPLES,
};

struct pprof_writer {
    const struct export_job *job;
    struct export_places places;
    struct base_strings strings;
    struct export_packets packets;
    uint32_t *stack; /* of nodes, and of locations: with room for the deepest */
    uint64_t *location;
};

static int64_t pprof_text(struct pprof_writer *m, const char *text)
{
    return base_strings_add(&m->strings, text);
}

static int64_t pprof_whole(uint64_t n)
{
    return n < INT64_MAX ? (int64_t)n : INT64_MAX;
}

static void put_types(struct pprof_writer *m)
{
    Pprof__ValueType type[EXPORT_METRICS], *list[EXPORT_METRICS];
    Pprof__Profile part = PPROF__PROFILE__INIT;
    const struct read_profile *profile = m->job->analysis->profile;
    for (unsigned i = 0; i < EXPORT_METRICS; i++) {
        if (!export_has(profile, order[i]))
            continue;
        list[part.n_sample_type] = &type[i];
        pprof__value_type__init(&type[i]);
        type[i].type = pprof_text(m, export_metric_names[order[i]]);
        type[i].unit = pprof_text(m, export_metric_units[order[i]]);
        part.n_sample_type++;
    }
    part.sample_type = list;
    const bool timed = export_cost(&m->job->tree->node[0].all, EXPORT_TIME) > 0;
    part.default_sample_type =
        pprof_text(m, export_metric_names[timed ? EXPORT_TIME : EXPORT_TAPE]);
    int64_t comment = 0;
    if (profile->is_sampled) {
        comment = pprof_text(m, "times are estimates, from samples");
        part.comment = &comment;
        part.n_comment = 1;
    }
    part.time_nanos = pprof_whole(profile->start_unix_ns);
    part.duration_nanos = pprof_whole(profile->duration_ns);
    export_put_message(&m->packets, &part.base);
}

static void put_mapping(struct pprof_writer *m)
{
    Pprof__Mapping mapping = PPROF__MAPPING__INIT, *list = &mapping;
    Pprof__Profile part = PPROF__PROFILE__INIT;
    char name[EXPORT_NAME_ROOM];
    mapping.id = 1;
    mapping.filename = pprof_text(m, export_clean(name, m->job->analysis->profile->program, ""));
    mapping.has_functions = mapping.has_filenames = mapping.has_line_numbers =
        mapping.has_inline_frames = true;
    part.mapping = &list;
    part.n_mapping = 1;
    export_put_message(&m->packets, &part.base);
}

/* A place is a location with a function of its own; pprof merges those that are equal. */
static void put_place(struct pprof_writer *m, uint64_t id, const struct analyze_tree_node *node)
{
    char name[EXPORT_NAME_ROOM];
    Pprof__Function function = PPROF__FUNCTION__INIT, *functions = &function;
    Pprof__Line line = PPROF__LINE__INIT, *lines = &line;
    Pprof__Location location = PPROF__LOCATION__INIT, *locations = &location;
    Pprof__Profile part = PPROF__PROFILE__INIT;
    function.id = id;
    function.name = function.system_name = pprof_text(m, export_function(name, node));
    function.filename = pprof_text(m, export_file(name, node));
    function.start_line = node->line.function_line;
    line.function_id = id;
    line.line = node->line.line;
    location.id = id;
    location.mapping_id = 1;
    location.line = &lines;
    location.n_line = 1;
    part.function = &functions;
    part.n_function = 1;
    part.location = &locations;
    part.n_location = 1;
    export_put_message(&m->packets, &part.base);
}

static void pprof_put_label(struct pprof_writer *m, Pprof__Sample *sample, const char *key,
                            const char *text)
{
    Pprof__Label *label = sample->label[sample->n_label];
    pprof__label__init(label);
    label->key = pprof_text(m, key);
    label->str = pprof_text(m, text);
    sample->n_label += *text != '\0';
}

static void put_sample(struct pprof_writer *m, const struct analyze_tree_part *of)
{
    const struct analyze_tree *tree = m->job->tree;
    char ops[EXPORT_NAME_ROOM], thread[32] = "";
    int64_t value[EXPORT_METRICS];
    Pprof__Label label[LABELS], *labels[LABELS] = {&label[0], &label[1], &label[2]};
    Pprof__Sample sample = PPROF__SAMPLE__INIT, *samples = &sample;
    Pprof__Profile part = PPROF__PROFILE__INIT;
    for (unsigned k = 0; k < EXPORT_METRICS; k++)
        if (export_has(m->job->analysis->profile, order[k]))
            value[sample.n_value++] = pprof_whole(export_cost(&of->cost, order[k]));
    sample.n_location_id = export_stack(m->stack, tree, of->node);
    for (size_t i = 0; i < sample.n_location_id; i++)
        m->location[i] = m->places.of_node[m->stack[i]] + UINT64_C(1);
    sample.location_id = m->location;
    sample.value = value;
    sample.label = labels;
    if (of->thread > 0)
        snprintf(thread, sizeof thread, "%" PRIu64, of->thread);
    pprof_put_label(m, &sample, "op", export_ops(ops, &tree->node[of->node]));
    pprof_put_label(m, &sample, "phase", export_phase_names[of->phase]);
    pprof_put_label(m, &sample, "thread", thread);
    part.sample = &samples;
    part.n_sample = 1;
    export_put_message(&m->packets, &part.base);
}

static void pprof_put_all(struct pprof_writer *m)
{
    const struct analyze_tree *tree = m->job->tree;
    pprof_text(m, "");
    put_types(m);
    put_mapping(m);
    for (size_t i = 0; i < m->places.n; i++)
        put_place(m, i + 1, &tree->node[m->places.node[i]]);
    for (size_t i = 0; i < tree->n_parts; i++)
        if (!analyze_cost_is_nothing(&tree->part[i].cost))
            put_sample(m, &tree->part[i]);
    Pprof__Profile last = PPROF__PROFILE__INIT;
    last.string_table = m->strings.text;
    last.n_string_table = m->strings.n;
    export_put_message(&m->packets, &last.base);
}

int export_pprof(const struct export_job *job)
{
    struct pprof_writer m = {.job = job};
    size_t deepest = 0;
    for (size_t i = 0; i < job->tree->n_nodes; i++)
        deepest = job->tree->node[i].depth > deepest ? job->tree->node[i].depth : deepest;
    m.stack = base_calloc(deepest + 1, sizeof *m.stack);
    m.location = base_calloc(deepest + 1, sizeof *m.location);
    export_places_make(&m.places, job->tree);
    export_packets_begin(&m.packets, job->out, true);
    pprof_put_all(&m);
    export_packets_end(&m.packets);
    base_strings_free(&m.strings);
    export_places_free(&m.places);
    free(m.stack);
    free(m.location);
    return 0;
}
