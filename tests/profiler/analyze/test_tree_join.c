/* test_tree_join.c: the calls of two trees, made by hand, as one tree. */
#include "analyze_tree.h"
#include "run_cases.h"

#include <check.h>
#include <stdlib.h>

enum { MOST = 16 };

/* A call: its depth, the function that it stands in, its line, its op. */
struct call {
    uint32_t depth;
    const char *function;
    uint32_t line;
    const char *op;
};

static struct analyze_tree_node node[2][MOST];
static struct analyze_tree tree[2];
static struct analyze_tree_pair *pair;
static size_t n_pairs;

/* Calls come in the order of a walk; node 0 is the root. */
static void make(int side, const struct call *call, size_t n)
{
    uint32_t last[MOST] = {0};
    tree[side] = (struct analyze_tree){.node = node[side], .n_nodes = n + 1};
    node[side][0] = (struct analyze_tree_node){.line.own = true,
                                               .parent = ANALYZE_NO_NODE,
                                               .child = ANALYZE_NO_NODE,
                                               .next = ANALYZE_NO_NODE};
    for (uint32_t i = 1; i <= n; i++, call++) {
        const uint32_t parent = call->depth == 1 ? 0 : last[call->depth - 1];
        struct analyze_tree_node *to = &node[side][i];
        *to = (struct analyze_tree_node){.parent = parent,
                                         .child = ANALYZE_NO_NODE,
                                         .next = node[side][parent].child,
                                         .depth = call->depth};
        to->line.file = "x.c";
        to->line.function = call->function;
        to->line.line = call->line;
        if (call->op)
            to->line.ops = (struct analyze_names){.name = {call->op}, .n = 1};
        node[side][parent].child = i;
        last[call->depth] = i;
    }
}
#define MAKE(side, ...)                                                                            \
    make(side, (const struct call[]){__VA_ARGS__},                                                 \
         sizeof((const struct call[]){__VA_ARGS__}) / sizeof(struct call))

/* Joins; each node is in one pair, below its parent's, which comes before. */
static void join(void)
{
    uint32_t seen[2][MOST] = {{0}};
    pair = analyze_tree_join(&tree[0], &tree[1], &n_pairs);
    ck_assert_ptr_nonnull(pair);
    for (uint32_t i = 0; i < n_pairs; i++)
        for (int side = 0; side < 2; side++) {
            const uint32_t at = pair[i].node[side];
            if (at == ANALYZE_NO_NODE)
                continue;
            seen[side][at]++;
            if (at == 0) {
                ck_assert_uint_eq(i, 0);
                continue;
            }
            ck_assert_uint_lt(pair[i].parent, i);
            ck_assert_uint_eq(pair[pair[i].parent].node[side], node[side][at].parent);
        }
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < tree[side].n_nodes; i++)
            ck_assert_uint_eq(seen[side][i], 1);
}

static void teardown(void)
{
    free(pair);
    pair = NULL;
}

/* The pair of a node of one side. */
static const struct analyze_tree_pair *of(int side, uint32_t at)
{
    for (size_t i = 0; i < n_pairs; i++)
        if (pair[i].node[side] == at)
            return &pair[i];
    ck_abort_msg("no pair");
    return NULL;
}

TEST(calls_of_one_line_are_one_whatever_their_order_and_ops)
{
    MAKE(0, {1, "main", 5, NULL}, {2, "layer", 9, "tanh"}, {2, "layer", 8, "matmul"},
         {1, "main", 6, "sum"});
    MAKE(1, {1, "main", 6, "mean"}, {1, "main", 5, NULL}, {2, "layer", 8, "matmul"},
         {2, "layer", 9, "tanh"});
    join();
    ck_assert_uint_eq(n_pairs, 5);
    ck_assert_uint_eq(of(0, 1)->node[1], 2);
    ck_assert_uint_eq(of(0, 2)->node[1], 4);
    ck_assert_uint_eq(of(0, 3)->node[1], 3);
    ck_assert_uint_eq(of(0, 4)->node[1], 1);
    for (size_t i = 0; i < n_pairs; i++)
        ck_assert(!pair[i].moved);
}

TEST(what_is_new_or_gone_has_all_below_it_so)
{
    MAKE(0, {1, "main", 5, NULL}, {2, "old", 3, NULL}, {3, "deep", 2, "exp"});
    MAKE(1, {1, "main", 5, NULL}, {2, "fresh", 3, NULL}, {3, "deep", 2, "exp"});
    join();
    ck_assert_uint_eq(n_pairs, 6);
    ck_assert_uint_eq(of(0, 2)->node[1], ANALYZE_NO_NODE);
    ck_assert_uint_eq(of(0, 3)->node[1], ANALYZE_NO_NODE);
    ck_assert_uint_eq(of(1, 2)->node[0], ANALYZE_NO_NODE);
    ck_assert_uint_eq(of(1, 3)->node[0], ANALYZE_NO_NODE);
}

TEST(a_line_that_moved_is_told_by_its_function_and_op)
{
    MAKE(0, {1, "main", 5, NULL}, {2, "layer", 8, "matmul"}, {2, "layer", 10, "tanh"});
    MAKE(1, {1, "main", 7, NULL}, {2, "layer", 12, "tanh"}, {2, "layer", 9, "matmul"});
    join();
    ck_assert_uint_eq(n_pairs, 4);
    ck_assert(of(0, 1)->moved && of(0, 1)->node[1] == 1);
    ck_assert(of(0, 2)->moved && of(0, 2)->node[1] == 3);
    ck_assert(of(0, 3)->moved && of(0, 3)->node[1] == 2);
}

RUN_TESTS(NULL, teardown)
