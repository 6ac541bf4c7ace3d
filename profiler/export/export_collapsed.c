/* export_collapsed.c: a line for each call path: its calls, outermost first, and one figure. */
#include "export_formats.h"

#include "base_memory.h"
#include "export_places.h"

#include <inttypes.h>
#include <stdlib.h>

int export_collapsed(const struct export_job *job)
{
    char name[EXPORT_NAME_ROOM];
    const struct analyze_tree *tree = job->tree;
    if (job->metric == EXPORT_LIFETIME && !export_has(job->analysis->profile, job->metric)) {
        snprintf(job->error, job->error_room, "%s: lifetimes need exact times",
                 job->analysis->profile->path);
        return 1;
    }
    struct export_cost_list list;
    uint32_t *stack = base_calloc(tree->n_nodes, sizeof *stack);
    export_costs_make(&list, job, job->metric);
    for (size_t i = 0; i < list.n; i++) {
        size_t n = export_stack(stack, tree, list.cost[i].node);
        if (job->split)
            fprintf(job->out, "%s;", export_phase_names[list.cost[i].phase]);
        while (n-- > 0)
            fprintf(job->out, "%s%s", export_label(name, &tree->node[stack[n]], ";"),
                    n > 0 ? ";" : "");
        fprintf(job->out, " %" PRIu64 "\n", list.cost[i].cost);
    }
    export_costs_free(&list);
    free(stack);
    return 0;
}
