/* export_csv.c: the tree of calls as a table, a row for each line of each call path.
 *
 * The form: RFC 4180, with texts always in quotes. Invariant: names and order of the columns stay,
 * new ones come behind: docs/EXPORTS.md lists them.
 */
#include "export_formats.h"
#include "export_places.h"

#include <inttypes.h>

static void csv_put_text(FILE *out, const char *text)
{
    putc('"', out);
    for (; *text; text++)
        fputs(*text == '"' ? "\"\"" : (char[]){*text, '\0'}, out);
    fputs("\",", out);
}

/* What of the two times is an estimate, and its standard error; empty: there is none. */
static void csv_put_estimates(FILE *out, const struct analyze_cost *cost)
{
    if (!analyze_cost_is_untimed(cost))
        fprintf(out, "%" PRIu64, cost->estimated_forward_ns);
    fprintf(out, ",%" PRIu64 ",", cost->estimated_backward_ns);
    const double error[2] = {analyze_cost_forward_error(cost), analyze_cost_backward_error(cost)};
    for (int i = 0; i < 2; i++) {
        if (error[i] > 0)
            fprintf(out, "%" PRIu64, (uint64_t)(error[i] + 0.5));
        fputs(i == 0 ? "," : "\r\n", out);
    }
}

static void put_row(const struct export_job *job, uint32_t i)
{
    char name[EXPORT_NAME_ROOM];
    const struct analyze_tree_node *node = &job->tree->node[i];
    const struct analyze_line *line = &node->line;
    FILE *out = job->out;
    fprintf(out, "%u,", (unsigned)i);
    if (node->parent != ANALYZE_NO_NODE)
        fprintf(out, "%u", (unsigned)node->parent);
    fprintf(out, ",%u,", (unsigned)node->depth);
    csv_put_text(out, export_function(name, node));
    csv_put_text(out, line->file ? export_clean(name, line->file, "") : "");
    fprintf(out, "%u,", (unsigned)line->line);
    csv_put_text(out, line->module ? export_clean(name, line->module, "") : "");
    csv_put_text(out, i > 0 ? export_ops(name, node) : "");
    for (int k = 0; k < EXPORT_METRICS; k++) {
        /* What is not known is empty. */
        if (k != EXPORT_FORWARD || !analyze_cost_is_untimed(&line->cost))
            fprintf(out, "%" PRIu64, export_cost(&line->cost, (enum export_metric)k));
        putc(',', out);
    }
    csv_put_estimates(out, &line->cost);
}

int export_csv(const struct export_job *job)
{
    fputs("id,parent,depth,function,file,line,module,ops,time_ns,forward_ns,backward_ns,"
          "recompute_ns,calls,tape_bytes,peak_bytes,other_ns,waiting_ns,samples,"
          "estimated_forward_ns,estimated_backward_ns,forward_error_ns,backward_error_ns\r\n",
          job->out);
    for (uint32_t i = 0; i < job->tree->n_nodes; i++)
        put_row(job, i);
    return 0;
}
