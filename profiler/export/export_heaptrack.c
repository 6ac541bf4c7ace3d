/* export_heaptrack.c: what came on the tape with the greatest peak and went, change by change, for
 * heaptrack_print and heaptrack_gui, which add up and find the peak themselves.
 *
 * The format: version 3 of what heaptrack_interpret writes: all numbers hexadecimal; s: a text, i:
 * a place, t: a place and the trace around it, a: a size and a trace, + and -: one of these came
 * or went, c: milliseconds. Texts, places and traces are numbered from 1, sizes from 0.
 */
#include "export_classes.h"

#include "base_memory.h"
#include "base_strings.h"
#include "export_formats.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct heaptrack_writer {
    const struct export_job *job;
    const struct export_classes *classes;
    FILE *out;
    struct base_strings texts, sizes;
    uint32_t *trace; /* of each node, from 1; of each class, behind those */
    uint32_t n_traces;
};

static unsigned heaptrack_text(struct heaptrack_writer *m, const char *name)
{
    const size_t before = m->texts.n;
    if (!*name)
        return 0;
    const uint32_t place = (uint32_t)base_strings_add(&m->texts, name);
    if (m->texts.n > before)
        fprintf(m->out, "s %zx %s\n", strlen(name), name);
    return place + 1;
}

/* A place of its own for each trace. */
static uint32_t put_trace(struct heaptrack_writer *m, uint32_t parent, const char *function,
                          const char *file, const char *module, unsigned line)
{
    const unsigned in = heaptrack_text(m, module), at = heaptrack_text(m, file),
                   name = heaptrack_text(m, function);
    m->n_traces++;
    fprintf(m->out, "i %x %x %x %x %x\nt %x %x\n", (unsigned)m->n_traces, in, name, at, line,
            (unsigned)m->n_traces, (unsigned)parent);
    return m->n_traces;
}

static void put_traces(struct heaptrack_writer *m)
{
    char name[EXPORT_NAME_ROOM], file[EXPORT_NAME_ROOM], module[EXPORT_NAME_ROOM];
    const struct analyze_tree *tree = m->job->tree;
    for (uint32_t i = 1; i < tree->n_nodes; i++) {
        const struct analyze_tree_node *node = &tree->node[i];
        export_clean(module, node->line.module ? node->line.module : "", "");
        m->trace[i] =
            put_trace(m, m->trace[node->parent], export_function(name, node),
                      node->line.file ? export_file(file, node) : "", module, node->line.line);
    }
    for (size_t i = 0; i < m->classes->n; i++) {
        const struct export_class *class = &m->classes->class[i];
        m->trace[tree->n_nodes + i] =
            put_trace(m, m->trace[class->node], export_class_name(name, class), "", "", 0);
    }
}

static void heaptrack_put_change(struct heaptrack_writer *m, const struct read_change *change)
{
    char key[64];
    const uint32_t class = m->classes->of_peak[change->residual];
    const bool came = change->delta > 0;
    const uint64_t size = came ? (uint64_t)change->delta : UINT64_C(0) - (uint64_t)change->delta;
    if (class == ANALYZE_NO_NODE || size == 0)
        return;
    const size_t before = m->sizes.n;
    snprintf(key, sizeof key, "%" PRIx64 " %x", size,
             (unsigned)m->trace[m->job->tree->n_nodes + class]);
    const uint32_t place = (uint32_t)base_strings_add(&m->sizes, key);
    if (m->sizes.n > before)
        fprintf(m->out, "a %s\n", key);
    fprintf(m->out, "%c %x\n", came ? '+' : '-', (unsigned)place);
}

/* Within a moment what goes comes first, so that no sum in between is greater than it was. */
static void put_changes(struct heaptrack_writer *m)
{
    const struct read_tape *tape = m->classes->peak_tape;
    uint64_t last_ms = UINT64_MAX;
    for (size_t first = 0, end; first < tape->n_changes; first = end) {
        end = first;
        while (end < tape->n_changes && !tape->change[end++].ends)
            ;
        const uint64_t ms =
            read_profile_since(m->job->analysis->profile, tape->change[first].ticks) / 1000000;
        if (ms != last_ms)
            fprintf(m->out, "c %" PRIx64 "\n", ms);
        last_ms = ms;
        for (size_t i = first; i < end; i++)
            if (tape->change[i].delta < 0)
                heaptrack_put_change(m, &tape->change[i]);
        for (size_t i = first; i < end; i++)
            if (tape->change[i].delta > 0)
                heaptrack_put_change(m, &tape->change[i]);
    }
}

int export_heaptrack(const struct export_job *job)
{
    char name[EXPORT_NAME_ROOM];
    struct export_classes classes;
    struct heaptrack_writer m = {.job = job, .classes = &classes, .out = job->out};
    int status = export_classes_make(&classes, job);
    if (status == 0 && classes.peak_tape->n_changes == 0)
        status = export_no_bytes(job);
    if (status == 0) {
        m.trace = base_calloc(job->tree->n_nodes + classes.n + 1, sizeof *m.trace);
        fprintf(job->out, "v 10400 3\nX %s\nI 1000 100000\n",
                export_clean(name, job->analysis->profile->program, ""));
        put_traces(&m);
        put_changes(&m);
    }
    base_strings_free(&m.texts);
    base_strings_free(&m.sizes);
    export_classes_free(&classes);
    free(m.trace);
    return status;
}
