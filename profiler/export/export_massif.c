/* export_massif.c: live bytes of the tape with the greatest peak over time for ms_print, with who
 * held them at the peak.
 *
 * The format: what valgrind's ms_print reads, with times in fractions of a millisecond; lines of a
 * tree are indented by their depth.
 */
#include "export_formats.h"
#include "export_places.h"

#include <inttypes.h>
#include <stdlib.h>

struct massif_writer {
    const struct export_job *job;
    const struct read_tape *tape;
    unsigned n; /* snapshots so far */
    uint64_t at;
};

static void put_snapshot(struct massif_writer *m, uint64_t at_ns, uint64_t bytes, const char *tree)
{
    m->at = at_ns > m->at ? at_ns : m->at; /* time does not go back */
    fprintf(m->job->out,
            "#-----------\nsnapshot=%u\n#-----------\ntime=%" PRIu64 ".%06" PRIu64
            "\nmem_heap_B=%" PRIu64 "\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=%s\n",
            m->n++, m->at / 1000000, m->at % 1000000, bytes, tree);
}

/* What lies below a node at the peak: those that hold something. */
static unsigned count_below(const struct analyze_tree *tree, const struct analyze_tree_node *node)
{
    unsigned n = 0;
    for (uint32_t i = node->child; i != ANALYZE_NO_NODE; i = tree->node[i].next)
        n += tree->node[i].all.peak_bytes > 0;
    return n;
}

/* Each node before those below it; without recursion, since a tree may be deep. */
static void put_tree(const struct massif_writer *m)
{
    char name[EXPORT_NAME_ROOM], file[EXPORT_NAME_ROOM];
    const struct analyze_tree *tree = m->job->tree;
    uint32_t i = 0;
    while (i != ANALYZE_NO_NODE) {
        const struct analyze_tree_node *node = &tree->node[i];
        const bool shown = i == 0 || node->all.peak_bytes > 0;
        if (i == 0)
            fprintf(m->job->out, "n%u: %" PRIu64 " (held at the peak)\n", count_below(tree, node),
                    node->all.peak_bytes);
        else if (shown)
            fprintf(m->job->out, "%*sn%u: %" PRIu64 " 0x%X: %s (%s:%u)\n", (int)node->depth, "",
                    count_below(tree, node), node->all.peak_bytes, (unsigned)node->frame,
                    export_function(name, node), *export_file(file, node) ? file : "?",
                    (unsigned)node->line.line);
        if (shown && node->child != ANALYZE_NO_NODE) {
            i = node->child;
            continue;
        }
        while (i != ANALYZE_NO_NODE && tree->node[i].next == ANALYZE_NO_NODE)
            i = tree->node[i].parent;
        if (i != ANALYZE_NO_NODE)
            i = tree->node[i].next;
    }
}

static void put_peak(struct massif_writer *m)
{
    put_snapshot(m, read_profile_since(m->job->analysis->profile, m->tape->peak_ticks),
                 m->tape->peak_bytes, "peak");
    put_tree(m);
}

int export_massif(const struct export_job *job)
{
    char name[EXPORT_NAME_ROOM];
    const struct read_profile *profile = job->analysis->profile;
    struct massif_writer m = {.job = job, .tape = export_peak_tape(profile)};
    if (!m.tape || m.tape->peak_bytes == 0)
        return export_no_bytes(job);
    fprintf(job->out, "desc: bytes of a tape\ncmd: %s\ntime_unit: ms\n",
            export_clean(name, profile->program, ""));
    put_snapshot(&m, 0, 0, "empty");
    bool has_peak = false;
    for (size_t i = 0; i < m.tape->n_moments; i++) {
        const struct read_moment *moment = &m.tape->moment[i];
        if (!has_peak && moment->ticks >= m.tape->peak_ticks) {
            put_peak(&m);
            has_peak = true;
        }
        put_snapshot(&m, read_profile_since(profile, moment->ticks), moment->most_bytes, "empty");
    }
    if (!has_peak)
        put_peak(&m);
    put_snapshot(&m, profile->duration_ns, m.tape->live_bytes, "empty");
    return 0;
}
