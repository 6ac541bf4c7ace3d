/* analyze_tree_join.c: the same calls in two trees.
 *
 * See analyze_tree.h for the invariant.
 */
#include "analyze_join.h"

#include "analyze_tree.h"
#include "base_memory.h"

#include <stdlib.h>

/* While the pairs are made; the lists have room for the nodes of either tree. */
struct joiner {
    const struct analyze_tree *tree[2];
    struct analyze_tree_pair *pair;
    size_t n;
    const struct analyze_line **list[2];
};

/* A line of a list is the first member of its node. */
static uint32_t tree_join_place_of(const struct analyze_tree *tree, const struct analyze_line *line)
{
    return line ? (uint32_t)((const struct analyze_tree_node *)(const void *)line - tree->node)
                : ANALYZE_NO_NODE;
}

/* Children stand in the order of their line, then of their place in the tree. */
static int tree_join_compare_lines(const void *x, const void *y)
{
    const struct analyze_line *a = *(const struct analyze_line *const *)x;
    const struct analyze_line *b = *(const struct analyze_line *const *)y;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return a < b ? -1 : a > b;
}

static size_t list_children(struct joiner *j, int side, uint32_t parent)
{
    const struct analyze_tree *tree = j->tree[side];
    size_t n = 0;
    if (parent == ANALYZE_NO_NODE)
        return 0;
    for (uint32_t i = tree->node[parent].child; i != ANALYZE_NO_NODE; i = tree->node[i].next)
        j->list[side][n++] = &tree->node[i].line;
    qsort(j->list[side], n, sizeof *j->list[side], tree_join_compare_lines);
    return n;
}

static void add_pair(struct joiner *j, uint32_t parent, const struct analyze_line *base,
                     const struct analyze_line *now, bool moved)
{
    j->pair[j->n++] = (struct analyze_tree_pair){
        .parent = parent,
        .node = {tree_join_place_of(j->tree[0], base), tree_join_place_of(j->tree[1], now)},
        .moved = moved,
    };
}

/* Adds what a pair's calls called. */
static void add_below(struct joiner *j, uint32_t parent)
{
    const uint32_t *node = j->pair[parent].node;
    const size_t n[2] = {list_children(j, 0, node[0]), list_children(j, 1, node[1])};
    if (n[0] == 0 || n[1] == 0) {
        for (size_t i = 0; i < n[0]; i++)
            add_pair(j, parent, j->list[0][i], NULL, false);
        for (size_t i = 0; i < n[1]; i++)
            add_pair(j, parent, NULL, j->list[1][i], false);
        return;
    }
    struct analyze_join join;
    const struct analyze_line *const *const list[2] = {j->list[0], j->list[1]};
    analyze_join_lists(&join, list, n);
    for (size_t i = 0; i < join.n_rows; i++)
        add_pair(j, parent, join.row[i].line[0], join.row[i].line[1], join.row[i].moved);
    analyze_join_free(&join);
}

struct analyze_tree_pair *analyze_tree_join(const struct analyze_tree *base,
                                            const struct analyze_tree *now, size_t *n)
{
    struct joiner j = {.tree = {base, now}};
    j.pair = base_calloc(base->n_nodes + now->n_nodes, sizeof *j.pair);
    j.list[0] = base_calloc(base->n_nodes, sizeof *j.list[0]);
    j.list[1] = base_calloc(now->n_nodes, sizeof *j.list[1]);
    add_pair(&j, ANALYZE_NO_NODE, &base->node[0].line, &now->node[0].line, false);
    for (uint32_t i = 0; i < j.n; i++)
        add_below(&j, i);
    free(j.list[0]);
    free(j.list[1]);
    *n = j.n;
    return j.pair;
}
