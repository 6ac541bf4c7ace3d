/* test_checkpoint_paths.c: what a sweep computes again belongs to the calls and scopes that
 * computed it first, in a recorded program.
 */
#include "analyze_tree.h"
#include "program_support.h"
#include "run_cases.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void build_program(const char *flag)
{
    struct program_command command = {0};
    program_add_all(&command, TEST_C_COMPILER, "-g", "-O2", flag,
                    program_source("paths_checkpoint.c"), "-o", program_path("paths"), NULL);
    program_add_includes(&command);
    program_add_shared(&command);
    program_must(&command);
}

static void record(const char *options)
{
    setenv("TAPESCOPE_OPTIONS", options, 1);
    int status = program_record(program_path("x.prof"), program_path("paths"), NULL);
    ck_assert_msg(status == 0, "status %#x\n%s", (unsigned)status, program_output);
}

/* The node of this name below the one at `at`, or NULL. */
static const struct analyze_tree_node *below(const struct analyze_tree *tree, uint32_t at,
                                             const char *name)
{
    for (uint32_t i = tree->node[at].child; i != ANALYZE_NO_NODE; i = tree->node[i].next)
        if (tree->node[i].line.function && strcmp(tree->node[i].line.function, name) == 0)
            return &tree->node[i];
    return NULL;
}

static const struct analyze_tree_node *find(const struct analyze_tree *tree,
                                            const char *const *name)
{
    const struct analyze_tree_node *node = &tree->node[0];
    for (; *name && node; name++)
        node = below(tree, (uint32_t)(node - tree->node), *name);
    return node;
}

/* Three blocks once each, and four in halves of halves, each block with the part that it is in, the
 * part within that, and itself. */
static void check_tree(void)
{
    static const struct analyze_tree_options combined = {.combine = true};
    static const char *const single[] = {"main", "forward", "block", "layer", NULL},
                             *const nested[] = {"main",  "forward", "halves", "halves",
                                                "block", "layer",   NULL},
                             *const sweep[] = {"main", "sweep", NULL};
    struct program_profile opened = program_open(program_path("x.prof"));
    struct analyze_tree *tree = analyze_tree_make(opened.analysis, &combined);
    ck_assert_ptr_nonnull(tree);
    program_check_sums(opened.analysis);
    const struct analyze_tree_node *node = find(tree, single);
    ck_assert_ptr_nonnull(node);
    ck_assert_uint_eq(node->all.calls, 3);
    ck_assert_uint_eq(node->all.recompute_calls, 3);
    ck_assert_uint_eq(node->all.backward_calls, 3);
    ck_assert_uint_gt(node->all.forward_flops, 0);
    ck_assert_uint_eq(node->all.recompute_flops, node->all.forward_flops);
    ck_assert_uint_eq(node->all.recompute_moved, node->all.forward_moved);
    node = find(tree, nested);
    ck_assert_ptr_nonnull(node);
    ck_assert_uint_eq(node->all.calls, 4);
    ck_assert_uint_eq(node->all.recompute_calls, 12);
    ck_assert_uint_eq(node->all.backward_calls, 4);
    ck_assert_uint_eq(node->all.recompute_flops, 3 * node->all.forward_flops);
    node = find(tree, sweep);
    ck_assert_ptr_nonnull(node);
    ck_assert_uint_eq(node->child, ANALYZE_NO_NODE);
    ck_assert_uint_eq(node->all.recompute_calls, 0);
    analyze_tree_free(tree);
    program_close(&opened);
}

TEST(recomputation_is_on_the_call_path_of_the_first_run)
{
    static const char *const options[] = {"", "frames=all", "depth=12"};
    build_program("-fomit-frame-pointer");
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        record(options[i]);
        check_tree();
    }
}

TEST(recomputation_is_on_the_call_path_of_the_first_run_by_frame_pointers)
{
    build_program("-fno-omit-frame-pointer");
    record("unwind=fp");
    check_tree();
}

/* Where a stack is deeper than what is kept, its innermost frames are those of the first run. */
TEST(deep_stacks_are_cut_alike)
{
    build_program("-fomit-frame-pointer");
    record("depth=2");
    struct program_profile opened = program_open(program_path("x.prof"));
    for (size_t t = 0; t < opened.profile->n_tapes; t++) {
        const struct read_tape *tape = &opened.profile->tape[t];
        for (size_t i = 0; i < tape->n_rows; i++)
            ck_assert_msg(tape->row[i].recompute_calls == 0 || tape->row[i].calls > 0, "%s",
                          tape->row[i].op);
    }
    program_close(&opened);
}

TEST(recomputation_is_in_the_scope_of_the_first_run)
{
    build_program("-fomit-frame-pointer");
    record("");
    struct program_profile opened = program_open(program_path("x.prof"));
    struct analyze_scope_costs costs;
    analyze_scope_costs_make(&costs, opened.profile, false);
    unsigned found = 0;
    for (size_t i = 0; i < costs.n; i++) {
        const struct analyze_scope_cost *s = &costs.scope[i];
        ck_assert_msg(strcmp(s->name, "sweep") != 0 || s->cost.recompute_calls == 0,
                      "the sweep's scope has recomputation");
        ck_assert_uint_le(s->forward_ns, s->wall_ns);
        if (strcmp(s->name, "block") != 0)
            continue;
        found++;
        ck_assert_str_eq(costs.scope[s->parent - 1].name, "forward");
        ck_assert_uint_eq(s->calls, 7);
        ck_assert_uint_eq(s->cost.recompute_calls, 3 + 12);
    }
    ck_assert_uint_eq(found, 1); /* none within the sweep's */
    analyze_scope_costs_free(&costs);
    program_close(&opened);
}

RUN_TESTS(program_setup, program_teardown)
