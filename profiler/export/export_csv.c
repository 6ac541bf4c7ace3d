/* export_csv.c: the tree of calls as a table, a row for each line of each call path.
 *
 * Invariant: names and order of the columns stay, new ones come behind: docs/reference/json.md
 * lists them.
 */
#include "export_formats.h"
#include "export_places.h"
#include "report_csv.h"

/* What of the two times is an estimate, and its standard error; empty: there is none. */
static void csv_put_estimates(struct report_csv *csv, const struct analyze_cost *cost)
{
    if (analyze_cost_is_untimed(cost))
        report_csv_empty(csv);
    else
        report_csv_u64(csv, cost->estimated_forward_ns);
    report_csv_u64(csv, cost->estimated_backward_ns);
    const double error[2] = {analyze_cost_forward_error(cost), analyze_cost_backward_error(cost)};
    for (int i = 0; i < 2; i++) {
        if (error[i] > 0)
            report_csv_u64(csv, (uint64_t)(error[i] + 0.5));
        else
            report_csv_empty(csv);
    }
}

static void put_row(struct report_csv *csv, const struct export_job *job, uint32_t i)
{
    char name[EXPORT_NAME_ROOM];
    const struct analyze_tree_node *node = &job->tree->node[i];
    const struct analyze_line *line = &node->line;
    report_csv_u64(csv, i);
    if (node->parent != ANALYZE_NO_NODE)
        report_csv_u64(csv, node->parent);
    else
        report_csv_empty(csv);
    report_csv_u64(csv, node->depth);
    report_csv_text(csv, export_function(name, node));
    report_csv_text(csv, line->file ? export_clean(name, line->file, "") : "");
    report_csv_u64(csv, line->line);
    report_csv_text(csv, line->module ? export_clean(name, line->module, "") : "");
    report_csv_text(csv, i > 0 ? export_ops(name, node) : "");
    for (int k = 0; k < EXPORT_METRICS; k++) {
        if (k == EXPORT_FORWARD && analyze_cost_is_untimed(&line->cost))
            report_csv_empty(csv); /* not known */
        else
            report_csv_u64(csv, export_cost(&line->cost, (enum export_metric)k));
    }
    csv_put_estimates(csv, &line->cost);
    report_csv_end(csv);
}

int export_csv(const struct export_job *job)
{
    static const char *const titles[] = {
        "id",
        "parent",
        "depth",
        "function",
        "file",
        "line",
        "module",
        "ops",
        "time_ns",
        "forward_ns",
        "backward_ns",
        "recompute_ns",
        "calls",
        "tape_bytes",
        "peak_bytes",
        "other_ns",
        "waiting_ns",
        "samples",
        "estimated_forward_ns",
        "estimated_backward_ns",
        "forward_error_ns",
        "backward_error_ns",
    };
    struct report_csv csv = {.out = job->out};
    report_csv_titles(&csv, titles, sizeof titles / sizeof *titles);
    report_csv_end(&csv);
    for (uint32_t i = 0; i < job->tree->n_nodes; i++)
        put_row(&csv, job, i);
    return 0;
}
