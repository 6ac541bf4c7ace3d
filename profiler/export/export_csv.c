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
        fputs(k + 1 < EXPORT_METRICS ? "," : "\r\n", out);
    }
}

int export_csv(const struct export_job *job)
{
    fputs("id,parent,depth,function,file,line,module,ops,time_ns,forward_ns,backward_ns,"
          "recompute_ns,calls,tape_bytes,peak_bytes,other_ns,waiting_ns,samples\r\n",
          job->out);
    for (uint32_t i = 0; i < job->tree->n_nodes; i++)
        put_row(job, i);
    return 0;
}
