/* test_sampled_paths.c: call paths of samples: within ops as the collector knew them when they were
 * recorded, outside of ops by frame pointers, in one tree.
 *
 * Compiled with frame pointers.
 */
#include "analyze_tree.h"
#include "report_tree.h"
#include "run_cases.h"
#include "sampled_support.h"

#include <tapescope/ad_real.h>

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline))
/* Not the last thing that a function does, or its frame would be given up before the call. */
#define KEEP_FRAME __asm__ volatile("")

enum { N = 96 };

static const int64_t square[] = {N, N};
static double data[N * N];

APART static ad_tensor op(ad_tensor x)
{
    ad_tensor y = ad_matmul(x, x);
    KEEP_FRAME;
    return y;
}

APART static ad_tensor by_once(ad_tensor x)
{
    ad_tensor y = op(x);
    KEEP_FRAME;
    return y;
}

APART static ad_tensor by_thrice(ad_tensor x)
{
    ad_tensor y = op(op(op(x)));
    KEEP_FRAME;
    return y;
}

APART static ad_real by_scalars(ad_real x)
{
    ad_real y = x;
    for (int i = 0; i < 20000; i++)
        ad_set(&y, ad_real_add(ad_real_mul(y, 0.9), ad_real_sin(x)));
    KEEP_FRAME;
    return y;
}

static volatile double sink;

/* Nothing of the library. It calls something, or it might have no frame. */
APART static void burn(void)
{
    for (int i = 0; i < 1000; i++) {
        for (int k = 0; k < 1000; k++)
            sink = sink * 0.5 + k;
        (void)sampled_process_ns();
    }
    KEEP_FRAME;
}

APART static void by_code(void)
{
    burn();
    KEEP_FRAME;
}

APART static void work(void)
{
    const double start = 0.3;
    ad_tape tape;
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    for (int i = 0; i < 5; i++) {
        ad_real leaf;
        ad_tape_reset(tape);
        ad_tensor x = ad_leaf(tape, AD_F64, 2, square, data);
        (void)!ad_backward(ad_sum(ad_add(by_once(x), by_thrice(x))));
        ad_real_leaves(tape, 1, &start, &leaf);
        (void)!ad_real_backward(tape, by_scalars(leaf));
        by_code();
    }
    ck_assert_int_eq(ad_tape_status(tape), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

static struct read_profile *profile;
static struct analyze_result *analysis;
static struct analyze_tree *tree;

static void make_tree(struct read_profile *from, bool inverted)
{
    const struct analyze_tree_options how = {.combine = true, .inverted = inverted};
    profile = from;
    analysis = analyze_profile(profile, NULL, NULL);
    tree = analyze_tree_make(analysis, &how);
    ck_assert_ptr_nonnull(tree);
}

static void close_tree(void)
{
    analyze_tree_free(tree);
    analyze_free(analysis);
    read_profile_free(profile);
}

static bool is(const struct analyze_tree_node *node, const char *function)
{
    return node->line.function && strcmp(node->line.function, function) == 0;
}

/* What is below `caller`, called by `outer`, anywhere in the tree. */
static struct analyze_cost below(const char *outer, const char *caller)
{
    struct analyze_cost sum = {0};
    for (uint32_t i = 1; i < tree->n_nodes; i++) {
        const struct analyze_tree_node *node = &tree->node[i];
        if (is(node, caller) && node->parent != ANALYZE_NO_NODE &&
            is(&tree->node[node->parent], outer))
            analyze_cost_add(&sum, &node->all);
    }
    return sum;
}

/* The work is done until the tree has what is looked for. Looking takes longer than that. */
static void open_tree(const char *options, bool inverted, bool (*there)(void))
{
    bool done = false;
    for (int i = 0; i < N * N; i++)
        data[i] = 0.001 * (i % 7 - 3);
    ck_assert_int_eq(ad_profile_start_with(sampled_path, options), AD_OK);
    for (int times = 4; !done; times *= 2) {
        for (int i = 0; i < times; i++)
            work();
        make_tree(sampled_fetch(), inverted);
        done = there();
        close_tree();
    }
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    make_tree(sampled_read(sampled_path), inverted);
    /* The tree has all, and each node what is its own and what is below it. */
    ck_assert_mem_eq(&tree->node[0].all, &analysis->sum, sizeof analysis->sum);
    for (uint32_t i = 0; i < tree->n_nodes; i++) {
        struct analyze_cost sum = tree->node[i].line.cost;
        for (uint32_t c = tree->node[i].child; c != ANALYZE_NO_NODE; c = tree->node[c].next)
            analyze_cost_add(&sum, &tree->node[c].all);
        ck_assert_mem_eq(&sum, &tree->node[i].all, sizeof sum);
    }
    ck_assert_uint_eq(analyze_cost_time(&tree->node[0].all), sampled_held(profile, 0));
    ck_assert(there());
}

/* That three times the work takes longer is for the split's benchmark: machines may stall. */
static bool has_both_kinds(void)
{
    const struct analyze_cost once = below("work", "by_once"), thrice = below("work", "by_thrice"),
                              scalars =
                                  below("work", "by_scalars"); /* forward: by frame pointers */
    return once.forward_ns > 0 && once.backward_ns > 0 && thrice.forward_ns > 0 &&
           thrice.backward_ns > 0 && below("by_thrice", "op").forward_ns > 0 &&
           scalars.backward_ns > 0 && scalars.forward_ns > 0 &&
           below("by_code", "burn").other_ns > 0;
}

static bool has_code(void)
{
    return below("by_code", "burn").other_ns > 0;
}

static bool has_callers(void)
{
    return below("op", "by_thrice").backward_ns > 0 && below("burn", "by_code").other_ns > 0;
}

TEST(ops_have_the_calls_that_led_there_if_a_depth_is_given)
{
    open_tree("time=sampled,freq=4000,depth=64", false, has_both_kinds);
    ck_assert_uint_eq(profile->n_tapes, 0); /* and no bytes are counted for that */
    ck_assert(tree->has_paths);
    ck_assert_uint_eq(below("by_code", "burn").backward_ns, 0);
    close_tree();
}

TEST(ops_have_the_calls_that_led_there_where_bytes_are_counted)
{
    open_tree("time=sampled,tape=on,freq=4000", false, has_both_kinds);
    ck_assert(tree->has_paths);
    ck_assert_uint_eq(below("by_code", "burn").backward_ns, 0);
    ck_assert_uint_gt(below("work", "by_thrice").value_bytes, below("work", "by_once").value_bytes);
    close_tree();
}

TEST(samples_alone_know_no_paths_within_ops_and_the_report_says_so)
{
    char *text = NULL;
    size_t length;
    open_tree("time=sampled,freq=2000", false, has_code);
    ck_assert_uint_eq(profile->n_call_paths, 0);
    ck_assert(!tree->has_paths);
    ck_assert_uint_eq(below("work", "by_once").forward_ns, 0);
    struct report_style style = {.width = 80};
    style.out = open_memstream(&text, &length);
    const struct report_tree_options look = {.max_depth = 0};
    report_tree(tree, &look, &style);
    fclose(style.out);
    ck_assert_ptr_nonnull(strstr(text, "~total"));
    ck_assert_ptr_nonnull(strstr(text, "~self"));
    ck_assert_ptr_nonnull(strstr(text, "Callers of ops were not recorded: --depth 64"));
    free(text);
    close_tree();
}

TEST(an_inverted_tree_has_the_callers_of_both_kinds)
{
    open_tree("time=sampled,freq=4000,depth=64", true, has_callers);
    close_tree();
}

RUN_TESTS(sampled_setup, sampled_teardown)
