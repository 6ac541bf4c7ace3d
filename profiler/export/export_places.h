/* export_places.h: the places of a tree's nodes, each once, and their names as other programs can
 * read them.
 *
 * Private to profiler/export. Invariant: a name holds no control character and is UTF-8 of at most
 * EXPORT_NAME_ROOM - 1 bytes, whatever the profile says.
 */
#ifndef PROFILER_EXPORT_PLACES_H
#define PROFILER_EXPORT_PLACES_H

#include "export.h"

enum { EXPORT_NAME_ROOM = 4096 };

struct export_places {
    uint32_t *of_node; /* the place of each node of the tree */
    uint32_t *node;    /* a node that is there, for each place */
    size_t n;
};

/* The caller frees it. */
void export_places_make(struct export_places *places, const struct analyze_tree *tree);
void export_places_free(struct export_places *places);

/* A figure of a node, or of what it has of a phase, where they are split. */
struct export_own_cost {
    uint32_t node;
    enum read_phase phase; /* READ_PHASE_NONE where they are not */
    uint64_t cost;         /* more than 0 */
};
struct export_cost_list {
    struct export_own_cost *cost; /* by node, then phase */
    size_t n;
};
/* The caller frees it. */
void export_costs_make(struct export_cost_list *list, const struct export_job *job,
                       enum export_metric metric);
void export_costs_free(struct export_cost_list *list);

/* A node and its callers, itself first; the root is in no other stack than its own. `stack` has
 * room for all nodes of a path. Returns how many. */
size_t export_stack(uint32_t *stack, const struct analyze_tree *tree, uint32_t node);

/* Text without what a line cannot hold: control characters and the characters of `instead` become
 * "?", what is no UTF-8 becomes U+FFFD, and what has no room ends in "...". Returns buf. */
char *export_clean(char buf[EXPORT_NAME_ROOM], const char *text, const char *instead);

/* A node's function, or what is known instead; its file, or module, or "" if neither is known; all
 * of its ops with commas between them. Return buf. */
char *export_function(char buf[EXPORT_NAME_ROOM], const struct analyze_tree_node *node);
char *export_file(char buf[EXPORT_NAME_ROOM], const struct analyze_tree_node *node);
char *export_ops(char buf[EXPORT_NAME_ROOM], const struct analyze_tree_node *node);
/* "function file.c:12": where a consumer shows one name alone. */
char *export_label(char buf[EXPORT_NAME_ROOM], const struct analyze_tree_node *node,
                   const char *instead);

/* What a counter of the tape's live bytes is called. */
void export_tape_name(char *buf, size_t n, const struct read_tape *tape);

/* Whether anything was measured at the node itself. */
bool export_has_cost(const struct analyze_tree_node *node);

#endif
