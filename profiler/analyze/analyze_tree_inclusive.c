/* analyze_tree_inclusive.c: each place of a tree once, with what it called.
 *
 * See there for the invariant.
 */
#include "analyze_tree.h"

#include "base_memory.h"

#include <stdlib.h>

/* An outer node is of the same place: what this one has is counted there. */
static bool is_within_itself(const struct prof_tree *tree, uint32_t i)
{
    const uint32_t frame = tree->node[i].frame;
    for (uint32_t up = tree->node[i].parent; up != PROF_NO_NODE; up = tree->node[up].parent)
        if (tree->node[up].frame == frame)
            return true;
    return false;
}

/* The lines, and for each frame the place of its line, plus 1; the caller frees both. */
static struct prof_line *make_lines(const struct prof_tree *tree, size_t *n, uint32_t **places)
{
    struct prof_line *line = base_calloc(tree->n_nodes + 1, sizeof *line);
    uint32_t *place = base_calloc(tree->n_frames + 1, sizeof *place);
    *places = place;
    *n = 0;
    for (uint32_t i = 1; i < tree->n_nodes; i++) {
        const struct prof_tree_node *node = &tree->node[i];
        if (node->frame == PROF_NO_NODE) { /* the tape's own */
            line[*n] = node->line;
            line[(*n)++].cost = node->all;
            continue;
        }
        if (node->cut)
            continue;
        if (place[node->frame] == 0) {
            line[*n] = node->line;
            line[*n].cost = (struct prof_cost){0};
            place[node->frame] = (uint32_t)++ * n;
        }
        struct prof_line *to = &line[place[node->frame] - 1];
        prof_names_add(&to->ops, &node->line.ops);
        if (!is_within_itself(tree, i))
            prof_cost_add(&to->cost, &node->all);
    }
    return line;
}

struct prof_line *prof_tree_inclusive(const struct prof_tree *tree, size_t *n)
{
    uint32_t *place;
    struct prof_line *line = make_lines(tree, n, &place);
    free(place);
    return line;
}

/* Takes b, of which no counter is greater, from a. */
static void subtract(struct prof_cost *a, const struct prof_cost *b)
{
#define X(name) a->name -= b->name;
    PROF_COST_MEMBERS(X)
#undef X
    a->byte_ns = a->byte_ns > b->byte_ns ? a->byte_ns - b->byte_ns : 0;
}

struct prof_line *prof_tree_through(const struct prof_tree *tree, size_t *n)
{
    uint32_t *place;
    struct prof_line *line = make_lines(tree, n, &place);
    for (uint32_t i = 1; i < tree->n_nodes; i++) {
        const struct prof_tree_node *node = &tree->node[i];
        if (node->frame != PROF_NO_NODE && place[node->frame] > 0)
            subtract(&line[place[node->frame] - 1].cost, &node->line.cost);
    }
    free(place);
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++)
        if (!line[i].own && !line[i].idle && !prof_cost_is_nothing(&line[i].cost))
            line[kept++] = line[i];
    *n = kept;
    return line;
}

struct prof_tree *prof_tree_flatten(const struct prof_tree *tree)
{
    uint32_t *place;
    size_t n;
    struct prof_line *line = make_lines(tree, &n, &place);
    struct prof_tree *flat = base_calloc(1, sizeof *flat);
    struct prof_tree_node *node = base_calloc(n + 1, sizeof *node);
    *flat = *tree;
    flat->is_flat = true;
    flat->node = node;
    flat->row_node = NULL;
    flat->n_nodes = n + 1;
    node[0] = tree->node[0];
    node[0].child = PROF_NO_NODE;
    for (size_t i = n; i > 0; i--) { /* so that the children are in order */
        node[i] = (struct prof_tree_node){.line = line[i - 1],
                                          .all = line[i - 1].cost,
                                          .parent = 0,
                                          .child = PROF_NO_NODE,
                                          .next = node[0].child,
                                          .depth = 1};
        if (!line[i - 1].own && !line[i - 1].idle)
            node[i].line.cost = (struct prof_cost){0};
        node[0].child = (uint32_t)i;
    }
    for (uint32_t i = 1; i < tree->n_nodes; i++) {
        const struct prof_tree_node *from = &tree->node[i];
        if (from->frame != PROF_NO_NODE && place[from->frame] > 0)
            prof_cost_add(&node[place[from->frame]].line.cost, &from->line.cost);
    }
    free(line);
    free(place);
    return flat;
}

void prof_analysis_call_through(struct prof_analysis *analysis)
{
    const struct prof_tree_options how = {.selected = true};
    struct prof_tree *tree = prof_tree_make(analysis, &how);
    size_t n = 0;
    struct prof_line *line = prof_tree_through(tree, &n);
    prof_tree_free(tree);
    free(analysis->through);
    analysis->through = line;
    analysis->n_through = n;
}
