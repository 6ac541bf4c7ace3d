/* analyze_tree_fold.c: a tree with fewer nodes: those that cost least become part of their caller.
 *
 * A node never costs more than its caller, so whatever is kept has all of its callers.
 */
#include "analyze_tree.h"

#include "base_memory.h"

#include <stdlib.h>

/* The greatest share of the whole that a node has of any of these. */
static double fold_weight(const struct analyze_cost *cost, const struct analyze_cost *whole)
{
    const uint64_t pair[][2] = {
        {analyze_cost_time(cost), analyze_cost_time(whole)},
        {analyze_cost_tape_bytes(cost), analyze_cost_tape_bytes(whole)},
        {cost->peak_bytes, whole->peak_bytes},
        {cost->other_ns, whole->other_ns},
        {cost->calls, whole->calls},
    };
    double most = 0;
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
        const double share = pair[i][1] > 0 ? (double)pair[i][0] / (double)pair[i][1] : 0;
        most = share > most ? share : most;
    }
    return most;
}

static int fold_compare(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return a > b ? -1 : a < b;
}

/* The weight of the last node that is kept; *ties: how many of that weight are. */
static double fold_limit(const double *weight, size_t n, size_t most, size_t *ties)
{
    double *sorted = base_malloc(n * sizeof *sorted);
    for (size_t i = 0; i < n; i++)
        sorted[i] = weight[i];
    qsort(sorted, n, sizeof *sorted, fold_compare);
    const double limit = sorted[most - 1];
    size_t first = most - 1;
    while (first > 0 && !(sorted[first - 1] > limit))
        first--;
    *ties = most - first;
    free(sorted);
    return limit;
}

/* Parents come before their children: their new places are known. */
static void fold_nodes(struct analyze_tree *tree, const double *weight, double limit, size_t ties,
                       uint32_t *to)
{
    struct analyze_tree_node *node = tree->node;
    size_t kept = 1;
    for (size_t i = 1; i < tree->n_nodes; i++) {
        const uint32_t parent = to[node[i].parent];
        const bool tied = !(weight[i] > limit) && !(weight[i] < limit);
        if (weight[i] > limit || (tied && ties > 0)) {
            ties -= tied;
            to[i] = (uint32_t)kept;
            node[kept] = node[i];
            node[kept].parent = parent;
            node[kept].child = ANALYZE_NO_NODE;
            node[kept].next = node[parent].child;
            node[parent].child = (uint32_t)kept++;
        } else {
            to[i] = parent;
            analyze_cost_add(&node[parent].line.cost, &node[i].line.cost);
            node[parent].folded += 1 + node[i].folded;
        }
    }
    tree->n_folded += tree->n_nodes - kept;
    tree->n_nodes = kept;
}

void analyze_tree_fold(struct analyze_tree *tree, size_t most)
{
    const size_t n = tree->n_nodes;
    if (n <= most || most == 0)
        return;
    double *weight = base_malloc(n * sizeof *weight);
    uint32_t *to = base_calloc(n, sizeof *to);
    size_t ties, n_rows = 0;
    const struct analyze_cost whole = tree->node[0].all;
    weight[0] = 2;
    for (size_t i = 1; i < n; i++)
        weight[i] = fold_weight(&tree->node[i].all, &whole);
    const double limit = fold_limit(weight, n, most, &ties);
    tree->node[0].child = ANALYZE_NO_NODE;
    fold_nodes(tree, weight, limit, ties, to);
    const struct read_profile *profile = tree->analysis->profile;
    for (size_t i = 0; i < profile->n_tapes; i++)
        n_rows += profile->tape[i].n_rows;
    for (size_t i = 0; tree->row_node && i < n_rows; i++)
        if (tree->row_node[i] != ANALYZE_NO_NODE)
            tree->row_node[i] = to[tree->row_node[i]];
    free(weight);
    free(to);
}
