/* analyze_tree_inclusive.c: each place of a tree once, with what it called.
 *
 * See there for the invariant.
 */
#include "analyze_tree.h"

#include "base_memory.h"

#include <stdlib.h>

/* An outer node is of the same place: what this one has is counted there. */
static bool is_within_itself(const struct analyze_tree *tree, uint32_t i)
{
    const uint32_t frame = tree->node[i].frame;
    for (uint32_t up = tree->node[i].parent; up != ANALYZE_NO_NODE; up = tree->node[up].parent)
        if (tree->node[up].frame == frame)
            return true;
    return false;
}

/* The lines, and for each frame the place of its line, plus 1; the caller frees both. */
static struct analyze_line *make_lines(const struct analyze_tree *tree, size_t *n,
                                       uint32_t **places)
{
    struct analyze_line *line = base_calloc(tree->n_nodes + 1, sizeof *line);
    uint32_t *place = base_calloc(tree->n_frames + 1, sizeof *place);
    *places = place;
    *n = 0;
    for (uint32_t i = 1; i < tree->n_nodes; i++) {
        const struct analyze_tree_node *node = &tree->node[i];
        if (node->frame == ANALYZE_NO_NODE) { /* the tape's own */
            line[*n] = node->line;
            line[(*n)++].cost = node->all;
            continue;
        }
        if (node->cut)
            continue;
        if (place[node->frame] == 0) {
            line[*n] = node->line;
            line[*n].cost = (struct analyze_cost){0};
            place[node->frame] = (uint32_t)++ * n;
        }
        struct analyze_line *to = &line[place[node->frame] - 1];
        analyze_names_add(&to->ops, &node->line.ops);
        if (!is_within_itself(tree, i))
            analyze_cost_add(&to->cost, &node->all);
    }
    return line;
}

struct analyze_line *analyze_tree_inclusive(const struct analyze_tree *tree, size_t *n)
{
    uint32_t *place;
    struct analyze_line *line = make_lines(tree, n, &place);
    free(place);
    return line;
}

/* Takes b, of which no counter is greater, from a. */
static void tree_inclusive_subtract(struct analyze_cost *a, const struct analyze_cost *b)
{
#define X(name) a->name -= b->name;
    ANALYZE_COST_MEMBERS(X)
#undef X
    a->byte_ns = a->byte_ns > b->byte_ns ? a->byte_ns - b->byte_ns : 0;
}

struct analyze_line *analyze_tree_through(const struct analyze_tree *tree, size_t *n)
{
    uint32_t *place;
    struct analyze_line *line = make_lines(tree, n, &place);
    for (uint32_t i = 1; i < tree->n_nodes; i++) {
        const struct analyze_tree_node *node = &tree->node[i];
        if (node->frame != ANALYZE_NO_NODE && place[node->frame] > 0)
            tree_inclusive_subtract(&line[place[node->frame] - 1].cost, &node->line.cost);
    }
    free(place);
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++)
        if (!line[i].own && !line[i].idle && !analyze_cost_is_nothing(&line[i].cost))
            line[kept++] = line[i];
    *n = kept;
    return line;
}

struct analyze_tree *analyze_tree_flatten(const struct analyze_tree *tree)
{
    uint32_t *place;
    size_t n;
    struct analyze_line *line = make_lines(tree, &n, &place);
    struct analyze_tree *flat = base_calloc(1, sizeof *flat);
    struct analyze_tree_node *node = base_calloc(n + 1, sizeof *node);
    *flat = *tree;
    flat->is_flat = true;
    flat->node = node;
    flat->row_node = NULL;
    flat->n_nodes = n + 1;
    node[0] = tree->node[0];
    node[0].child = ANALYZE_NO_NODE;
    for (size_t i = n; i > 0; i--) { /* so that the children are in order */
        node[i] = (struct analyze_tree_node){.line = line[i - 1],
                                             .all = line[i - 1].cost,
                                             .parent = 0,
                                             .child = ANALYZE_NO_NODE,
                                             .next = node[0].child,
                                             .depth = 1};
        if (!line[i - 1].own && !line[i - 1].idle)
            node[i].line.cost = (struct analyze_cost){0};
        node[0].child = (uint32_t)i;
    }
    for (uint32_t i = 1; i < tree->n_nodes; i++) {
        const struct analyze_tree_node *from = &tree->node[i];
        if (from->frame != ANALYZE_NO_NODE && place[from->frame] > 0)
            analyze_cost_add(&node[place[from->frame]].line.cost, &from->line.cost);
    }
    free(line);
    free(place);
    return flat;
}

void analyze_call_through(struct analyze_result *analysis)
{
    const struct analyze_tree_options how = {.selected = true};
    struct analyze_tree *tree = analyze_tree_make(analysis, &how);
    size_t n = 0;
    struct analyze_line *line = analyze_tree_through(tree, &n);
    analyze_tree_free(tree);
    free(analysis->through);
    analysis->through = line;
    analysis->n_through = n;
}
