/* analyze_tree.h: the rows of all tapes by call path: a tree of calls.
 *
 * Invariant: the cost of the root is the exact sum of all rows that were kept, and with what was
 * left out that of the analysis; the cost of a node is the exact sum of what is its own and of its
 * children. A function that calls itself is not counted twice.
 */
#ifndef PROFILER_ANALYZE_TREE_H
#define PROFILER_ANALYZE_TREE_H

#include "analyze.h"

#define ANALYZE_NO_NODE UINT32_MAX

struct analyze_tree_options {
    bool inverted; /* from the lines that record, down to their callers */
    bool combine;  /* a node for a function, not for each of its lines */
    bool flat;     /* a call of what is on the path already goes back to it */
    bool system;   /* also frames of the system's libraries that have no source */
    bool selected; /* only rows of lines that analyze_select() keeps */
    bool parts;    /* also each node's own cost by phase and thread */
    /* Rows are kept if any frame of theirs is in focus, and none is ignored; NULL: does not matter.
     * Asked once for each frame, and for each row with its op. */
    bool (*focus)(void *payload, const struct analyze_line *line);
    bool (*ignore)(void *payload, const struct analyze_line *line);
    void *payload;
};

/* line.cost is the node's own, line.ops the ops that it is of: those on this very line. Inverted,
 * it is that of the rows whose path ends here, and the ops are with the line that recorded them. */
struct analyze_tree_node {
    struct analyze_line line;
    struct analyze_cost all;      /* with all below */
    uint32_t parent, child, next; /* places in the array, or ANALYZE_NO_NODE */
    uint32_t depth;               /* of the root: 0 */
    uint32_t frame;               /* equal for equal places */
    uint64_t folded;              /* nodes that analyze_tree_fold() has made part of this one */
    bool cut;                     /* stands for frames that were not kept */
};

/* What of a node's own cost is of one phase and thread. Calls and bytes are of the forward phase:
 * it is what put them on the tape. */
struct analyze_tree_part {
    uint32_t node;
    enum read_phase phase; /* READ_PHASE_NONE: of samples outside of ops */
    uint64_t thread;       /* of the system; 0: unknown, or several */
    struct analyze_cost cost;
};

struct analyze_tree {
    const struct analyze_result *analysis;
    struct analyze_tree_node *node; /* node[0] is the root; a parent comes before its children */
    size_t n_nodes, n_frames;
    /* The nodes that the rows of all tapes, one tape after the other, are part of; ANALYZE_NO_NODE:
     * a row that is left out, or has no cost. */
    uint32_t *row_node;
    /* By node, phase and thread; those of a node add up to its own cost. NULL: not asked for. */
    struct analyze_tree_part *part;
    size_t n_parts;
    struct analyze_cost left_out; /* of rows that are not in focus, or ignored */
    size_t n_left_out;
    size_t n_folded; /* nodes that are part of their callers */
    bool is_flat;    /* made by analyze_tree_flatten() */
    bool has_paths;  /* any row has one */
    bool too_large;  /* not every path is shown to its end: there were too many nodes */
};

/* The analysis must outlive the tree; the caller frees it. */
struct analyze_tree *analyze_tree_make(const struct analyze_result *analysis,
                                       const struct analyze_tree_options *options);
void analyze_tree_free(struct analyze_tree *tree);

/* Leaves at most `most` nodes: those that cost most, by the greatest of their shares of time,
 * calls, bytes and bytes at the peak, with all of their callers. What the others have is their
 * caller's own, so sums stay exact; their ops are named nowhere. `most` of 0: all stay. Not of a
 * tree with parts. */
void analyze_tree_fold(struct analyze_tree *tree, size_t most);

/* The same without its levels: below the root is a node for each line (function, if they are
 * combined), whose own cost is that of all of its nodes, and whose cost with all below counts what
 * it calls once, also where it calls itself. Costs of nodes overlap.
 * It has no row_node and no parts. The caller frees it; the tree it was made of may be freed. */
struct analyze_tree *analyze_tree_flatten(const struct analyze_tree *tree);

/* Each line of the tree (each function, if they are combined) once with what it and all that it
 * called has cost, in no order; *n of them. The caller frees it. */
struct analyze_line *analyze_tree_inclusive(const struct analyze_tree *tree, size_t *n);

/* A call in two trees: places of its nodes, ANALYZE_NO_NODE where one has none. */
struct analyze_tree_pair {
    uint32_t parent; /* place of the caller's pair, ANALYZE_NO_NODE: the roots */
    uint32_t node[2];
    bool moved; /* found by function and op, not by its line number */
};

/* Joins two trees made in the same way, from their roots down: what is called by calls that are one
 * is joined as lines of two profiles are (analyze_join.h). Each node of either is in exactly one
 * pair; a pair comes before those below it. *n of them; the caller frees it. */
struct analyze_tree_pair *analyze_tree_join(const struct analyze_tree *base,
                                            const struct analyze_tree *now, size_t *n);

#endif
