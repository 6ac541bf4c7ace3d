/* report_tree.h: the tree of calls as text. */
#ifndef PROFILER_REPORT_REPORT_TREE_H
#define PROFILER_REPORT_REPORT_TREE_H

#include "analyze_tree.h"
#include "report.h"

enum report_tree_order {
    REPORT_TREE_BY_COST,
    REPORT_TREE_BY_CALLS,
    REPORT_TREE_BY_SELF,
    REPORT_TREE_BY_SOURCE,
};

struct report_tree_options {
    enum report_sort metric;      /* not REPORT_SORT_RATIO */
    enum report_tree_order order; /* of the calls below one */
    size_t max_depth;             /* of the nodes shown; 0: all */
    size_t min_count;             /* calls that a node shown has, with all below */
    double noise_floor; /* times the root of its parent's calls, which it exceeds; 0: any */
    double least_share; /* of the whole cost, which a node shown has with all below; 0: any */
    bool inverted;      /* as the tree was made */
    /* Of a sum of ranks, if each is to have a column: the trees of the ranks, made as the sum's. */
    const struct analyze_tree *const *of_rank;
};

/* Each node with what it and all below cost. */
void report_tree(const struct analyze_tree *tree, const struct report_tree_options *options,
                 const struct report_style *style);

#endif
