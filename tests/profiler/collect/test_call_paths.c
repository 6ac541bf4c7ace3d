/* test_call_paths.c: programs whose calls are known, recorded, and the tree of their calls.
 *
 * What a machine lacks (a compiler) is printed as skipped.
 */
#include "analyze_tree.h"
#include "program_support.h"
#include "run_cases.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct program_profile opened;
static struct analyze_tree *tree;

static void open_tree(const char *profile, const struct analyze_tree_options *options)
{
    opened = program_open(profile);
    tree = analyze_tree_make(opened.analysis, options);
    ck_assert_ptr_nonnull(tree);
    /* The tree has all, and each node what is its own and what its children have. */
    ck_assert(!tree->too_large);
    ck_assert_uint_eq(tree->n_left_out, 0);
    ck_assert_mem_eq(&tree->node[0].all, &opened.analysis->sum, sizeof opened.analysis->sum);
    for (uint32_t i = 0; i < tree->n_nodes; i++) {
        struct analyze_cost sum = tree->node[i].line.cost;
        for (uint32_t c = tree->node[i].child; c != ANALYZE_NO_NODE; c = tree->node[c].next)
            analyze_cost_add(&sum, &tree->node[c].all);
        ck_assert_mem_eq(&sum, &tree->node[i].all, sizeof sum);
    }
    program_check_sums(opened.analysis);
}

static void close_tree(void)
{
    analyze_tree_free(tree);
    program_close(&opened);
}

/* The node at "main/recurse/leaf_op", of a tree in which functions are combined; or NULL. */
static const struct analyze_tree_node *find(const char *path)
{
    uint32_t at = 0;
    for (size_t n = strcspn(path, "/"); *path && at != ANALYZE_NO_NODE;
         path += n + (path[n] == '/'), n = strcspn(path, "/")) {
        at = tree->node[at].child;
        while (at != ANALYZE_NO_NODE &&
               !(tree->node[at].line.function && strlen(tree->node[at].line.function) == n &&
                 strncmp(tree->node[at].line.function, path, n) == 0))
            at = tree->node[at].next;
    }
    return at != ANALYZE_NO_NODE ? &tree->node[at] : NULL;
}

static void expect_calls(const char *how, const char *path, uint64_t self, uint64_t all)
{
    const struct analyze_tree_node *node = find(path);
    ck_assert_msg(node != NULL, "%s: no node %s", how, path);
    ck_assert_msg(node->line.cost.calls == self && node->all.calls == all,
                  "%s: %s has %llu and %llu calls instead of %llu and %llu", how, path,
                  (unsigned long long)node->line.cost.calls, (unsigned long long)node->all.calls,
                  (unsigned long long)self, (unsigned long long)all);
}

static void build(const char *compiler, const char *flag, const char *more, const char *source,
                  const char *output)
{
    struct program_command command = {0};
    program_add_all(&command, compiler, "-g", flag, more, NULL);
    program_add_all(&command, program_source(source), "-o", program_path(output), NULL);
    program_add_includes(&command);
    program_add_shared(&command);
    program_add_all(&command, "-ldl", "-lpthread", NULL);
    program_must(&command);
}

static void build_library(const char *compiler, const char *flag, const char *more,
                          const char *name, const char *room, const char *output)
{
    struct program_command command = {0};
    program_add_all(&command, compiler, "-g", flag, more, "-fPIC", "-shared", name, room,
                    program_source("paths_library.c"), "-o", program_path(output), NULL);
    program_add_includes(&command);
    program_must(&command);
}

static void record(const char *program, const char *options)
{
    setenv("TAPESCOPE_OPTIONS", options, 1);
    int status = program_record(program_path("x.prof"), program_path(program), NULL);
    ck_assert_msg(status == 0, "status %#x\n%s", (unsigned)status, program_output);
}

static const struct {
    const char *path;
    uint64_t self, all;
} calls[] = {
    {"main", 2, 31}, /* sum, backward */
    {"main/open_tape", 1, 1},
    {"main/recurse", 1, 6},
    {"main/recurse/recurse", 1, 5},
    {"main/recurse/recurse/recurse/recurse/recurse", 1, 2},
    {"main/recurse/recurse/recurse/recurse/recurse/leaf_op", 1, 1},
    {"main/even", 0, 1},
    {"main/even/odd/even/odd/leaf_op", 1, 1},
    {"main/has_inlined", 0, 4},
    {"main/has_inlined/middle", 0, 4},
    {"main/has_inlined/middle/innermost", 2, 4},
    {"main/has_inlined/middle/innermost/leaf_op", 2, 2},
    {"main/sort/compare/leaf_op", 1, 1},
    {"main/with_room/leaf_op", 2, 2},
    {"main/aligned/leaf_op", 1, 1},
    {"main/scalars", 2, 12}, /* leaves and sweep */
    {"main/scalars/step", 10, 10},
    {"main/leaf_op", 1, 1},
    {"in_thread", 0, 202},
    {"in_thread/open_tape", 2, 2},
    {"in_thread/leaf_op", 200, 200},
};

static void check_calls(const char *how)
{
    static const struct analyze_tree_options combined = {.combine = true};
    open_tree(program_path("x.prof"), &combined);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const bool libraries = i == 0; /* load() is called from main */
        expect_calls(how, calls[i].path, calls[i].self, calls[i].all + (libraries ? 9 : 0));
    }
    /* The second library may lie where the first was: then the first's frames have its names. */
    expect_calls(how, "main/load", 0, 9);
    expect_calls(how, "main/load/open_tape", 3, 3);
    ck_assert(find("main/load/first_through/leaf_op") || find("main/load/second_through/leaf_op"));
    const struct analyze_tree_node *load = find("main/load");
    uint64_t through = 0;
    for (uint32_t i = load->child; i != ANALYZE_NO_NODE; i = tree->node[i].next)
        for (uint32_t k = tree->node[i].child; k != ANALYZE_NO_NODE; k = tree->node[k].next)
            if (strcmp(tree->node[k].line.function, "leaf_op") == 0)
                through += tree->node[k].line.cost.calls;
    ck_assert_msg(through == 6, "%s: %llu calls through a library", how,
                  (unsigned long long)through);
    /* Recursion is counted once. */
    size_t n;
    struct analyze_line *line = analyze_tree_inclusive(tree, &n);
    ck_assert_ptr_nonnull(line);
    for (size_t i = 0; i < n; i++) {
        const char *function = line[i].function ? line[i].function : "";
        uint64_t all = line[i].cost.calls;
        ck_assert(strcmp(function, "recurse") != 0 || all == 6);
        ck_assert(strcmp(function, "odd") != 0 || all == 1);
        ck_assert(strcmp(function, "main") != 0 || all == 40);
    }
    free(line);
    close_tree();
}

static void check_variant(const char *compiler, const char *flag, const char *more,
                          const char *options)
{
    char how[256], first[PATH_MAX + 32], second[PATH_MAX + 32];
    snprintf(how, sizeof how, "%s %s %s %s", compiler, flag, more, options);
    build_library(compiler, flag, more, "-DNAME=first_through", "-DROOM=16", "first.so");
    build_library(compiler, flag, more, "-DNAME=second_through", "-DROOM=400", "second.so");
    struct program_command command = {0};
    snprintf(first, sizeof first, "-DPATHS_FIRST=\"%s\"", program_path("first.so"));
    snprintf(second, sizeof second, "-DPATHS_SECOND=\"%s\"", program_path("second.so"));
    program_add_all(&command, compiler, "-g", "-std=gnu11", flag, more, first, second,
                    program_source("paths.c"), "-o", program_path("paths"), NULL);
    program_add_includes(&command);
    program_add_shared(&command);
    program_add_all(&command, "-ldl", "-lpthread", NULL);
    program_must(&command);
    record("paths", options);
    check_calls(how);
}

TEST(calls_are_known_from_any_code_by_its_unwind_tables)
{
    check_variant(TEST_C_COMPILER, "-O0", "-fomit-frame-pointer", "");
    check_variant(TEST_C_COMPILER, "-O2", "-fomit-frame-pointer", "");
    check_variant(TEST_C_COMPILER, "-O2", "-fno-omit-frame-pointer", "depth=1000");
}

TEST(calls_are_known_from_code_of_the_second_compiler)
{
    if (!*TEST_CLANG || strstr(TEST_SANITIZE_FLAGS, "sanitize")) {
        puts("skipped: no clang that goes with the library");
        return;
    }
    check_variant(TEST_CLANG, "-O0", "-fomit-frame-pointer", "");
    check_variant(TEST_CLANG, "-O2", "-fomit-frame-pointer", "");
}

/* qsort() keeps no frame pointers: what leads to it is not known. */
TEST(calls_are_known_by_frame_pointers_where_code_has_them)
{
    if (strstr(TEST_SANITIZE_FLAGS, "thread")) {
        puts("skipped: threads begin in ThreadSanitizer's code, which has no frame pointers");
        return;
    }
    static const struct analyze_tree_options combined = {.combine = true};
    build(TEST_C_COMPILER, "-O2", "-fno-omit-frame-pointer", "paths.c", "paths");
    record("paths", "unwind=fp");
    open_tree(program_path("x.prof"), &combined);
    for (size_t i = 1; i < sizeof calls / sizeof *calls; i++)
        if (!strstr(calls[i].path, "sort"))
            expect_calls("fp", calls[i].path, calls[i].self, calls[i].all);
    close_tree();
}

TEST(lines_of_inlined_calls_are_those_of_the_source)
{
    static const struct analyze_tree_options lines = {.combine = false};
    char *text = program_text(program_source("paths.c"));
    build(TEST_C_COMPILER, "-O2", "-fomit-frame-pointer", "paths.c", "paths");
    record("paths", "");
    open_tree(program_path("x.prof"), &lines);
    unsigned found = 0;
    for (uint32_t i = 0; i < tree->n_nodes; i++) {
        const struct analyze_tree_node *node = &tree->node[i];
        if (node->depth != 5 || strcmp(node->line.function, "leaf_op") != 0)
            continue;
        const struct analyze_tree_node *up = &tree->node[node->parent];
        if (strcmp(up->line.function, "innermost") != 0)
            continue;
        ck_assert_uint_eq(up->line.line, program_line(text, "leaf in innermost"));
        up = &tree->node[up->parent];
        ck_assert_str_eq(up->line.function, "middle");
        unsigned line = program_line(text, "innermost in middle");
        ck_assert(up->line.line == line || up->line.line == line + 1); /* it is called twice */
        up = &tree->node[up->parent];
        ck_assert_uint_eq(up->line.line, program_line(text, "middle in has_inlined"));
        found++;
    }
    ck_assert_uint_eq(found, 2);
    free(text);
    close_tree();
}

TEST(recursion_may_be_folded)
{
    static const struct analyze_tree_options flat = {.combine = true, .flat = true};
    build(TEST_C_COMPILER, "-O2", "-fomit-frame-pointer", "paths.c", "paths");
    record("paths", "");
    open_tree(program_path("x.prof"), &flat);
    expect_calls("flat", "main/recurse", 5, 6);
    expect_calls("flat", "main/recurse/leaf_op", 1, 1);
    ck_assert_ptr_null(find("main/recurse/recurse"));
    expect_calls("flat", "main/even/odd", 0, 1);
    expect_calls("flat", "main/even/odd/leaf_op", 1, 1);
    close_tree();
}

TEST(an_inverted_tree_has_the_callers_below)
{
    static const struct analyze_tree_options inverted = {.combine = true, .inverted = true};
    build(TEST_C_COMPILER, "-O2", "-fomit-frame-pointer", "paths.c", "paths");
    record("paths", "");
    open_tree(program_path("x.prof"), &inverted);
    const struct analyze_tree_node *leaf = find("leaf_op");
    ck_assert_ptr_nonnull(leaf);
    ck_assert_uint_eq(leaf->all.calls, 1 + 1 + 2 + 1 + 2 + 1 + 1 + 200);
    ck_assert_str_eq(leaf->line.ops.name[0], "tanh");
    ck_assert_uint_eq(find("leaf_op/compare/sort/main")->all.calls, 1);
    ck_assert_uint_eq(find("leaf_op/in_thread")->all.calls, 200);
    ck_assert_uint_eq(find("leaf_op/innermost/middle/has_inlined/main")->all.calls, 2);
    close_tree();
}

TEST(a_deep_stack_keeps_its_innermost_frames)
{
    static const struct analyze_tree_options combined = {.combine = true};
    build(TEST_C_COMPILER, "-O2", "-fomit-frame-pointer", "paths.c", "paths");
    record("paths", "depth=3");
    open_tree(program_path("x.prof"), &combined);
    ck_assert_ptr_null(find("main/recurse/recurse/recurse"));
    const struct analyze_tree_node *cut = NULL;
    for (uint32_t i = tree->node[0].child; i != ANALYZE_NO_NODE; i = tree->node[i].next)
        cut = tree->node[i].cut ? &tree->node[i] : cut;
    ck_assert_ptr_nonnull(cut);
    /* recurse/recurse/leaf_op and three levels of recurse */
    unsigned levels = 0;
    for (uint32_t i = cut->child; i != ANALYZE_NO_NODE; i = tree->node[i].next)
        levels += tree->node[i].line.function && strcmp(tree->node[i].line.function, "recurse") == 0
                      ? (unsigned)tree->node[i].all.calls
                      : 0;
    ck_assert_uint_eq(levels, 4);
    close_tree();
}

TEST_EACH(a_recording_without_paths_has_none, 2)
{
    static const char *const options[] = {"depth=0", "frames=none"};
    static const struct analyze_tree_options combined = {.combine = true};
    build(TEST_C_COMPILER, "-O2", "-fomit-frame-pointer", "paths.c", "paths");
    record("paths", options[_i]);
    open_tree(program_path("x.prof"), &combined);
    ck_assert(!tree->has_paths);
    ck_assert_uint_eq(opened.profile->n_call_paths, 0);
    expect_calls(options[_i], "leaf_op", 209, 209);
    close_tree();
}

TEST(code_without_symbols_has_its_paths)
{
    static const struct analyze_tree_options lines = {.combine = false};
    struct program_command command = {0};
    build(TEST_C_COMPILER, "-O2", "-fomit-frame-pointer", "paths.c", "paths");
    program_add_all(&command, "strip", program_path("paths"), NULL);
    program_must(&command);
    record("paths", "");
    open_tree(program_path("x.prof"), &lines);
    uint32_t deepest = 0;
    for (uint32_t i = 0; i < tree->n_nodes; i++)
        if (tree->node[i].line.cost.calls > 0 && tree->node[i].depth > deepest)
            deepest = tree->node[i].depth;
    ck_assert_uint_eq(deepest, 8); /* _start, main, five times recurse, leaf_op */
    close_tree();
}

TEST_EACH(frames_of_c_plus_plus_and_exceptions_through_them, 2)
{
    static const struct analyze_tree_options combined = {.combine = true};
    if (!*TEST_CXX_COMPILER) {
        puts("skipped: no C++ compiler");
        return;
    }
    build(TEST_CXX_COMPILER, _i ? "-O2" : "-O0", "-std=c++17", "paths_cpp.cpp", "paths");
    record("paths", "");
    open_tree(program_path("x.prof"), &combined);
    expect_calls("C++", "main", 1, 11);
    expect_calls("C++", "main/train", 2, 10);
    const struct analyze_tree_node *train = find("main/train");
    ck_assert_uint_ne(train->child, ANALYZE_NO_NODE);
    const struct analyze_tree_node *repeat = &tree->node[train->child];
    ck_assert_int_eq(strncmp(repeat->line.function, "repeat", 6), 0);
    const struct analyze_tree_node *lambda = &tree->node[repeat->child];
    ck_assert_str_eq(lambda->line.function, "operator()");
    const struct analyze_tree_node *layer = &tree->node[lambda->child];
    ck_assert_str_eq(layer->line.function, "layer");
    ck_assert_uint_eq(layer->all.calls, 8);
    close_tree();
}

TEST(frames_of_fortran)
{
    static const struct analyze_tree_options combined = {.combine = true};
    if (!*TEST_FORTRAN_COMPILER) {
        puts("skipped: no Fortran compiler");
        return;
    }
    struct program_command object = {0}, link = {0};
    program_add_all(&object, TEST_FORTRAN_COMPILER, "-g", "-O1", "-fno-optimize-sibling-calls",
                    "-c", program_source("paths_fortran.f90"), "-J", program_folder, "-o",
                    program_path("nested.o"), NULL);
    program_must(&object);
    program_add_all(&link, TEST_C_COMPILER, "-g", "-O2", program_source("paths_fortran.c"),
                    program_path("nested.o"), "-o", program_path("paths"), NULL);
    program_add_includes(&link);
    program_add_shared(&link);
    program_must(&link);
    record("paths", "");
    open_tree(program_path("x.prof"), &combined);
    expect_calls("Fortran", "main/nested", 0, 4);
    expect_calls("Fortran", "main/nested/nested/nested", 0, 2);
    expect_calls("Fortran", "main/nested/nested/nested/record", 2, 2);
    close_tree();
}

RUN_TESTS(program_setup, program_teardown)
