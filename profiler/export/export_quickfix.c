/* export_quickfix.c: the costliest lines as an editor's list of places: "FILE:LINE: 12 % forward,
 * 30 % backward, 1.1MiB: matmul", the costliest first.
 *
 * The form is that of compilers (GNU Coding Standards, "Formatting Error Messages"), which vim's
 * quickfix, emacs' compilation mode and VS Code's problem matchers know.
 */
#include "export_formats.h"

#include "base_memory.h"
#include "export_places.h"
#include "report_units.h"

#include <stdlib.h>
#include <string.h>

/* Lines below this share of the time and of the tape bytes are left out. */
static const double least_share = 0.005;

struct quickfix_line {
    const struct analyze_tree_node *node; /* the first of its nodes */
    struct analyze_cost cost;
    struct analyze_names ops;
    uint64_t key;
};

static int quickfix_compare_places(const struct analyze_line *a, const struct analyze_line *b)
{
    const int files = a->file == b->file ? 0 : strcmp(a->file, b->file);
    return files != 0 ? files : a->line < b->line ? -1 : a->line > b->line;
}

static int quickfix_by_place(const void *x, const void *y)
{
    const struct quickfix_line *a = x, *b = y;
    const int places = quickfix_compare_places(&a->node->line, &b->node->line);
    return places != 0 ? places : a->node < b->node ? -1 : a->node > b->node;
}

static int quickfix_by_key(const void *x, const void *y)
{
    const struct quickfix_line *a = x, *b = y;
    return a->key != b->key ? (a->key > b->key ? -1 : 1) : quickfix_by_place(x, y);
}

/* The lines with costs of their own, each once; the caller frees the array. */
static struct quickfix_line *quickfix_take(const struct export_job *job, enum export_metric metric,
                                           size_t *n)
{
    const struct analyze_tree *tree = job->tree;
    struct quickfix_line *line = base_calloc(tree->n_nodes + 1, sizeof *line);
    size_t all = 0;
    *n = 0;
    for (size_t i = 0; i < tree->n_nodes; i++) {
        const struct analyze_tree_node *node = &tree->node[i];
        if (node->line.file && node->line.line > 0 && export_has_cost(node))
            line[all++] = (struct quickfix_line){node, node->line.cost, node->line.ops, 0};
    }
    qsort(line, all, sizeof *line, quickfix_by_place);
    for (size_t i = 0; i < all; i++) {
        struct quickfix_line *last = *n > 0 ? &line[*n - 1] : NULL;
        if (last && quickfix_compare_places(&last->node->line, &line[i].node->line) == 0) {
            analyze_cost_add(&last->cost, &line[i].cost);
            analyze_names_add(&last->ops, &line[i].ops);
        } else {
            line[(*n)++] = line[i];
        }
    }
    for (size_t i = 0; i < *n; i++)
        line[i].key = export_cost(&line[i].cost, metric);
    qsort(line, *n, sizeof *line, quickfix_by_key);
    return line;
}

static double quickfix_share(const struct export_job *job, const struct analyze_cost *cost,
                             enum export_metric metric, enum export_metric of)
{
    const uint64_t all = export_cost(&job->tree->node[0].all, of);
    return all > 0 ? (double)export_cost(cost, metric) / (double)all : 0;
}

static void quickfix_put_line(const struct export_job *job, const struct quickfix_line *line)
{
    static const enum export_metric phases[] = {EXPORT_FORWARD, EXPORT_BACKWARD, EXPORT_RECOMPUTE,
                                                EXPORT_OTHER};
    char name[EXPORT_NAME_ROOM], bytes[REPORT_UNITS_ROOM];
    const char *between = " ";
    struct analyze_tree_node named = *line->node;
    named.line.ops = line->ops;
    fprintf(job->out, "%s:%u:", export_file(name, line->node), (unsigned)line->node->line.line);
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        const double share = quickfix_share(job, &line->cost, phases[i], EXPORT_TIME);
        if (share < least_share)
            continue;
        fprintf(job->out, "%s%.*f %% %s", between, share < 0.1 ? 1 : 0, 100 * share,
                export_metric_names[phases[i]]);
        between = ", ";
    }
    if (export_cost(&line->cost, EXPORT_TAPE) > 0)
        fprintf(job->out, "%s%s", between,
                report_units_bytes(bytes, export_cost(&line->cost, EXPORT_TAPE)));
    if (*export_ops(name, &named))
        fprintf(job->out, ": %s", name);
    putc('\n', job->out);
}

int export_quickfix(const struct export_job *job)
{
    size_t n;
    const bool timed = export_cost(&job->tree->node[0].all, EXPORT_TIME) > 0;
    const enum export_metric metric =
        job->metric == EXPORT_TIME && !timed ? EXPORT_TAPE : job->metric;
    struct quickfix_line *line = quickfix_take(job, metric, &n);
    for (size_t i = 0; i < n; i++)
        if (quickfix_share(job, &line[i].cost, EXPORT_TIME, EXPORT_TIME) >= least_share ||
            quickfix_share(job, &line[i].cost, EXPORT_TAPE, EXPORT_TAPE) >= least_share)
            quickfix_put_line(job, &line[i]);
    free(line);
    return 0;
}
