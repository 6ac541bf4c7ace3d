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
    uint32_t *stack = base_calloc(tree->n_nodes, sizeof *stack);
    for (uint32_t i = 0; i < tree->n_nodes; i++) {
        const uint64_t cost = export_cost(&tree->node[i].line.cost, job->metric);
        if (cost == 0)
            continue;
        size_t n = 0;
        for (uint32_t at = i; n == 0 || at != 0; at = tree->node[at].parent) {
            stack[n++] = at;
            if (at == 0)
                break;
        }
        while (n-- > 0)
            fprintf(job->out, "%s%s", export_label(name, &tree->node[stack[n]], ";"),
                    n > 0 ? ";" : "");
        fprintf(job->out, " %" PRIu64 "\n", cost);
    }
    free(stack);
    return 0;
}
