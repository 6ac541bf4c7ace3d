/* export_places.c: see export_places.h. */
#include "export_places.h"
#include "base_strings.h"

#include "base_json.h"
#include "base_memory.h"

#include <stdlib.h>
#include <string.h>

void export_places_make(struct export_places *places, const struct analyze_tree *tree)
{
    uint32_t *of_frame = base_calloc(tree->n_frames + 1, sizeof *of_frame); /* plus 1 */
    *places = (struct export_places){
        .of_node = base_calloc(tree->n_nodes + 1, sizeof *places->of_node),
        .node = base_calloc(tree->n_nodes + 1, sizeof *places->node),
    };
    for (uint32_t i = 0; i < tree->n_nodes; i++) {
        const uint32_t frame = tree->node[i].frame;
        if (frame != ANALYZE_NO_NODE && of_frame[frame] > 0) {
            places->of_node[i] = of_frame[frame] - 1;
            continue;
        }
        places->of_node[i] = (uint32_t)places->n;
        places->node[places->n++] = i;
        if (frame != ANALYZE_NO_NODE)
            of_frame[frame] = (uint32_t)places->n;
    }
    free(of_frame);
}

void export_places_free(struct export_places *places)
{
    free(places->of_node);
    free(places->node);
    *places = (struct export_places){0};
}

static void costs_add(struct export_cost_list *list, uint32_t node, enum read_phase phase,
                      uint64_t cost)
{
    struct export_own_cost *last = list->n > 0 ? &list->cost[list->n - 1] : NULL;
    if (cost == 0)
        return;
    if (last && last->node == node && last->phase == phase)
        last->cost += cost;
    else
        list->cost[list->n++] = (struct export_own_cost){node, phase, cost};
}

void export_costs_make(struct export_cost_list *list, const struct export_job *job,
                       enum export_metric metric)
{
    const struct analyze_tree *tree = job->tree;
    const size_t most = job->split ? tree->n_parts : tree->n_nodes;
    *list = (struct export_cost_list){.cost = base_calloc(most + 1, sizeof *list->cost)};
    for (size_t i = 0; i < most; i++) {
        if (job->split)
            costs_add(list, tree->part[i].node, tree->part[i].phase,
                      export_cost(&tree->part[i].cost, metric));
        else
            costs_add(list, (uint32_t)i, READ_PHASE_NONE,
                      export_cost(&tree->node[i].line.cost, metric));
    }
}

void export_costs_free(struct export_cost_list *list)
{
    free(list->cost);
    *list = (struct export_cost_list){0};
}

size_t export_stack(uint32_t *stack, const struct analyze_tree *tree, uint32_t node)
{
    size_t n = 0;
    do {
        stack[n++] = node;
        node = tree->node[node].parent;
    } while (node != 0 && node != ANALYZE_NO_NODE);
    return n;
}

char *export_clean(char buf[EXPORT_NAME_ROOM], const char *text, const char *instead)
{
    enum { LONGEST = 4, ELLIPSIS = 4 }; /* a character, "..." and its end */
    static const char replacement[] = {'\xEF', '\xBF', '\xBD'};
    const unsigned char *at = (const unsigned char *)text;
    size_t n = 0;
    while (*at && n + LONGEST + ELLIPSIS <= EXPORT_NAME_ROOM) {
        const unsigned length = base_json_character(at);
        if (length == 0) {
            memcpy(buf + n, replacement, sizeof replacement);
            n += sizeof replacement;
        } else if (base_json_control(at, length) != 0 || strchr(instead, *at)) {
            buf[n++] = '?';
        } else {
            memcpy(buf + n, at, length);
            n += length;
        }
        at += length ? length : 1;
    }
    snprintf(buf + n, EXPORT_NAME_ROOM - n, "%s", *at ? "..." : "");
    return buf;
}

char *export_function(char buf[EXPORT_NAME_ROOM], const struct analyze_tree_node *node)
{
    char text[EXPORT_NAME_ROOM];
    const struct analyze_line *line = &node->line;
    if (node->parent == ANALYZE_NO_NODE)
        return export_clean(buf, "(all)", "");
    if (line->own) {
        snprintf(text, sizeof text, "(tape) %s", line->ops.n > 0 ? line->ops.name[0] : "");
        return export_clean(buf, text, "");
    }
    if (node->cut)
        return export_clean(buf, "(frames left out)", "");
    if (line->function)
        return export_clean(buf, line->function, "");
    const char *module = line->module ? base_file_name(line->module) : "?";
    if (line->offset == 0)
        return export_clean(buf, module, "");
    snprintf(text, sizeof text, "%s+0x%llx", module, (unsigned long long)line->offset);
    return export_clean(buf, text, "");
}

char *export_file(char buf[EXPORT_NAME_ROOM], const struct analyze_tree_node *node)
{
    const struct analyze_line *line = &node->line;
    return export_clean(buf, line->file ? line->file : line->module ? line->module : "", "");
}

char *export_ops(char buf[EXPORT_NAME_ROOM], const struct analyze_tree_node *node)
{
    char text[EXPORT_NAME_ROOM];
    const struct analyze_names *ops = &node->line.ops;
    size_t n = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < ops->n && n < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i > 0 ? "," : "", ops->name[i]);
    if (ops->more && n < sizeof text)
        snprintf(text + n, sizeof text - n, ",+");
    return export_clean(buf, text, "");
}

char *export_label(char buf[EXPORT_NAME_ROOM], const struct analyze_tree_node *node,
                   const char *instead)
{
    char function[EXPORT_NAME_ROOM], text[2 * EXPORT_NAME_ROOM];
    export_function(function, node);
    const struct analyze_line *line = &node->line;
    if (line->file && line->line > 0)
        snprintf(text, sizeof text, "%s %s:%u", function, base_file_name(line->file),
                 (unsigned)line->line);
    else if (line->file)
        snprintf(text, sizeof text, "%s %s", function, base_file_name(line->file));
    else
        snprintf(text, sizeof text, "%s", function);
    return export_clean(buf, text, instead);
}

void export_tape_name(char *buf, size_t n, const struct read_tape *tape)
{
    if (tape->tape > 0)
        snprintf(buf, n, "bytes of tape %llu", (unsigned long long)tape->tape);
    else
        snprintf(buf, n, "bytes of tapes that were destroyed");
}

bool export_has_cost(const struct analyze_tree_node *node)
{
    return !analyze_cost_is_nothing(&node->line.cost);
}
