/* export_callgrind.c: a profile for callgrind_annotate and KCachegrind: each node's own cost on its
 * line, and a call for each node below it.
 *
 * The format: valgrind's manual, "Callgrind Format Specification"; names are "(number) name" the
 * first time, "(number)" from then on.
 */
#include "base_strings.h"
#include "export_formats.h"
#include "export_places.h"

#include <inttypes.h>
#include <string.h>

static void callgrind_put_name(struct base_strings *names, FILE *out, const char *key,
                               const char *name)
{
    const size_t before = names->n;
    const uint32_t place = (uint32_t)base_strings_add(names, *name ? name : "???");
    fprintf(out, "%s=(%u)", key, (unsigned)place + 1);
    if (names->n > before)
        fprintf(out, " %s", names->text[place]);
    putc('\n', out);
}

/* A function within itself has a name of its own at each level, as callgrind has it, so that what
 * is added up by name counts nothing twice. */
static char *level_name(char buf[EXPORT_NAME_ROOM], const struct analyze_tree *tree, uint32_t i)
{
    enum { LEVEL_ROOM = 16 };
    const struct analyze_line *line = &tree->node[i].line;
    unsigned level = 1;
    for (uint32_t up = tree->node[i].parent; up != ANALYZE_NO_NODE; up = tree->node[up].parent) {
        const struct analyze_line *outer = &tree->node[up].line;
        level += line->function && outer->function && line->file == outer->file &&
                 strcmp(line->function, outer->function) == 0;
    }
    export_function(buf, &tree->node[i]);
    const size_t n = strnlen(buf, EXPORT_NAME_ROOM - LEVEL_ROOM);
    if (level > 1)
        snprintf(buf + n, LEVEL_ROOM, "'%u", level);
    return buf;
}

/* The column at place i: split, those of the phases come first, which is how callgrind_annotate
 * sorts. */
static enum export_metric callgrind_column(const struct export_job *job, int i)
{
    enum { PHASES = EXPORT_RECOMPUTE - EXPORT_TIME };
    if (!job->split || i > PHASES)
        return (enum export_metric)i;
    return i < PHASES ? (enum export_metric)(i + 1) : EXPORT_TIME;
}

static void callgrind_put_columns(const struct export_job *job, const struct analyze_cost *cost)
{
    for (int i = 0; i < EXPORT_METRICS; i++)
        if (export_has(job->analysis->profile, callgrind_column(job, i)))
            fprintf(job->out, " %" PRIu64, export_cost(cost, callgrind_column(job, i)));
    putc('\n', job->out);
}

static void put_costs(const struct export_job *job, uint32_t line, const struct analyze_cost *cost)
{
    fprintf(job->out, "%u", (unsigned)line);
    callgrind_put_columns(job, cost);
}

static void put_head(const struct export_job *job)
{
    char name[EXPORT_NAME_ROOM];
    const struct read_profile *profile = job->analysis->profile;
    fprintf(job->out, "# callgrind format\nversion: 1\ncreator: tapescope\npid: %" PRIu64 "\n",
            profile->pid);
    fprintf(job->out, "cmd: %s", export_clean(name, profile->program, ""));
    for (size_t i = 1; i < profile->n_arguments; i++)
        fprintf(job->out, " %s", export_clean(name, profile->argument[i], ""));
    if (profile->is_sampled)
        fputs("\ndesc: Times: estimates, from samples", job->out);
    fputs("\npositions: line\nevents:", job->out);
    for (int i = 0; i < EXPORT_METRICS; i++)
        if (export_has(profile, callgrind_column(job, i)))
            fprintf(job->out, " %s", export_metric_names[callgrind_column(job, i)]);
    fputs("\nsummary:", job->out);
    callgrind_put_columns(job, &job->tree->node[0].all);
}

/* How often a function was called is not known: the ops within it are. */
static uint64_t calls_of(const struct analyze_cost *cost)
{
    const uint64_t calls = cost->calls + cost->recompute_calls;
    return calls > 0 ? calls : 1;
}

static void callgrind_put_node(const struct export_job *job, struct base_strings *files,
                               struct base_strings *functions, uint32_t i)
{
    char name[EXPORT_NAME_ROOM];
    const struct analyze_tree *tree = job->tree;
    const struct analyze_tree_node *node = &tree->node[i];
    putc('\n', job->out);
    callgrind_put_name(files, job->out, "fl", export_file(name, node));
    callgrind_put_name(functions, job->out, "fn", level_name(name, tree, i));
    if (export_has_cost(node))
        put_costs(job, node->line.line, &node->line.cost);
    for (uint32_t at = node->child; at != ANALYZE_NO_NODE; at = tree->node[at].next) {
        const struct analyze_tree_node *below = &tree->node[at];
        callgrind_put_name(files, job->out, "cfi", export_file(name, below));
        callgrind_put_name(functions, job->out, "cfn", level_name(name, tree, at));
        fprintf(job->out, "calls=%" PRIu64 " %u\n", calls_of(&below->all),
                (unsigned)below->line.line);
        put_costs(job, node->line.line, &below->all);
    }
}

int export_callgrind(const struct export_job *job)
{
    struct base_strings files = {0}, functions = {0}; /* each with its own numbers */
    put_head(job);
    /* Nothing calls the outermost functions; the root is only what has no call path at all. */
    if (export_has_cost(&job->tree->node[0])) {
        callgrind_put_name(&files, job->out, "fl", "");
        callgrind_put_name(&functions, job->out, "fn", "(all)");
        put_costs(job, 0, &job->tree->node[0].line.cost);
    }
    for (uint32_t i = 1; i < job->tree->n_nodes; i++)
        callgrind_put_node(job, &files, &functions, i);
    base_strings_free(&files);
    base_strings_free(&functions);
    return 0;
}
