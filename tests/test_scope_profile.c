/* test_scope_profile.c: scopes from a program to its reports, in C and C++, by gcc and clang.
 *
 * May include: program_support.h, report.h, Check. The clock moves STEP ns at each reading: a scope
 * reads it at its begin and end, an op likewise, a sweep at its start, after the seed, after each
 * pullback and at its end.
 */
#include "program_support.h"

#include "report.h"
#include "run_cases.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { STEP = 1000 };

static void setup(void)
{
    program_setup();
    setenv("TAPESCOPE_CLOCK", "step:1000", 1);
}

static void teardown(void)
{
    program_teardown();
    unsetenv("TAPESCOPE_CLOCK");
}

/* Records the part of scopes.c of that name, with options for `record` up to NULL. */
static struct program_profile record(const char *part, const char *option)
{
    struct program_command command = {0};
    program_build("scopes");
    program_add_all(&command, TAPESCOPE_PROGRAM, "record", "-o", program_path("scopes.prof"), NULL);
    if (option)
        program_add(&command, option);
    program_add_all(&command, "--", program_path("scopes"), part, NULL);
    program_must(&command);
    struct program_profile opened = program_open(program_path("scopes.prof"));
    ck_assert(opened.profile->complete);
    ck_assert_ptr_null(opened.profile->warning);
    return opened;
}

/* The scope of that name, which may be given with that of the scope around it. */
static const struct prof_scope_cost *find(const struct prof_scope_costs *costs, const char *name)
{
    for (size_t i = 0; i < costs->n; i++)
        if (strcmp(costs->scope[i].name, name) == 0)
            return &costs->scope[i];
    ck_abort_msg("no scope %s", name);
    return NULL;
}

static void check_train(const struct prof_profile *profile)
{
    struct prof_scope_costs costs;
    ck_assert_int_eq(prof_scope_costs_make(&costs, profile, false), 0);
    ck_assert_uint_eq(costs.n, 4);
    const struct prof_scope_cost *train = find(&costs, "train"), *sweep = find(&costs, "sweep");
    const struct prof_scope_cost *first = find(&costs, "layer index=0");
    const struct prof_scope_cost *second = find(&costs, "layer index=1");
    ck_assert_uint_eq(train->parent, 0);
    ck_assert_ptr_eq(&costs.scope[second->parent - 1], train);
    ck_assert_uint_eq(train->calls, 3);
    ck_assert_uint_eq(second->calls, 3);
    ck_assert_uint_eq(first->wall_ns, 3 * 3 * STEP);
    ck_assert_uint_eq(second->wall_ns, 3 * 5 * STEP);
    ck_assert_uint_eq(second->forward_ns, 3 * 5 * STEP);
    ck_assert_uint_eq(first->cost.backward_ns, 3 * 1 * STEP);
    ck_assert_uint_eq(second->cost.backward_ns, 3 * 2 * STEP);
    /* The sweep: 7 readings after its start; 4 of its steps are pullbacks', charged to what they
     * are of, and 2 its own. */
    ck_assert_uint_eq(sweep->wall_ns, 3 * 8 * STEP);
    ck_assert_uint_eq(sweep->forward_ns, 3 * 2 * STEP);
    ck_assert_uint_eq(sweep->cost.backward_ns, 3 * 2 * STEP);
    /* layers 3 + 5, sum 1, sweep 8, and a step between each two of these */
    ck_assert_uint_eq(train->wall_ns, 3 * (3 + 5 + 1 + 8 + 5) * STEP);
    ck_assert_uint_eq(train->self_ns,
                      train->wall_ns - first->wall_ns - second->wall_ns - sweep->wall_ns);
    ck_assert_uint_eq(train->cost.backward_ns, 3 * 6 * STEP);
    ck_assert_uint_eq(train->cost.backward_ticks + costs.outside.backward_ticks,
                      profile->tape[0].backward_ticks);
    ck_assert_uint_eq(prof_cost_tape_bytes(&train->cost) + prof_cost_tape_bytes(&costs.outside),
                      profile->tape[0].handed_out_bytes);
    ck_assert_uint_eq(train->cost.peak_bytes + costs.outside.peak_bytes,
                      profile->tape[0].peak_bytes);
    ck_assert_uint_eq(train->records, 12);
    ck_assert_uint_eq(train->recorded_calls, 3);
    ck_assert_uint_eq(sweep->recorded_calls, 0);
    prof_scope_costs_free(&costs);
}

START_TEST(each_scope_costs_what_it_must)
{
    struct program_profile opened = record("train", NULL);
    check_train(opened.profile);
    program_check_sums(opened.analysis);
    program_close(&opened);
}
END_TEST

/* Compiles scopes.c as C++ by that compiler. */
static void build_cpp(const char *compiler)
{
    struct program_command command = {0};
    program_add_all(&command, compiler, "-x", "c++", "-O1", "-g", "-Wall", "-Wextra", "-Wpedantic",
                    "-Wshadow", "-Werror", NULL);
    program_add_includes(&command);
    program_add_all(&command, program_source("scopes.c"), "-o", program_path("scopes++"), NULL);
    program_add_shared(&command);
    program_must(&command);
}

START_TEST(scopes_are_the_same_in_cpp)
{
    static const char *const compiler[] = {TEST_CXX_COMPILER, "clang++"};
    for (size_t i = 0; i < sizeof compiler / sizeof *compiler; i++) {
        if (!*compiler[i] || !program_exists(compiler[i]) || TEST_SANITIZE_FLAGS[0])
            continue;
        build_cpp(compiler[i]);
        ck_assert_int_eq(
            program_record(program_path("cpp.prof"), program_path("scopes++"), "train"), 0);
        struct program_profile opened = program_open(program_path("cpp.prof"));
        check_train(opened.profile);
        program_close(&opened);
    }
}
END_TEST

/* What `tapescope top` says of the profile, with options up to NULL. */
static const char *top(const char *option, const char *value)
{
    struct program_command command = {0};
    program_add_all(&command, TAPESCOPE_PROGRAM, "top", "--by", "scope", option, NULL);
    if (value)
        program_add(&command, value);
    program_add(&command, program_path("scopes.prof"));
    program_must(&command);
    return program_output;
}

START_TEST(the_table_fits_the_terminal)
{
    struct program_profile opened = record("train", NULL);
    static const char *const width[] = {"40", "80", "200"};
    for (int i = 0; i < 3; i++) {
        setenv("COLUMNS", width[i], 1);
        const char *text = top("--sort", "backward");
        ck_assert_ptr_nonnull(strstr(text, "train/layer index=1"));
        for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
            ck_assert_uint_le(strcspn(line, "\n"), (size_t)atoi(width[i]) + 8); /* of UTF-8 */
    }
    unsetenv("COLUMNS");
    ck_assert_ptr_nonnull(
        strstr(top("--exact", NULL),
               "\n 100% 66000 18000   48000    18000 0.38 2472     696     3 train\n"));
    ck_assert_ptr_nonnull(strstr(top("-n1", NULL), "3 more scopes; -n 0 shows everything.\n"));
    program_close(&opened);
}
END_TEST

START_TEST(the_csv_has_a_row_for_each_scope_and_thread)
{
    struct program_profile opened = record("threads", NULL);
    const char *text = top("--csv", NULL);
    ck_assert_ptr_eq(strstr(text, "name,thread,total_time,forward_time,reverse_time,chain_stack,"
                                  "no_chain_stack,autodiff_calls,no_autodiff_calls\n"),
                     text);
    int rows = 0;
    for (const char *at = text; (at = strstr(at, "\"thread, \"\"quoted\"\"/inner\",")); at++)
        rows++;
    ck_assert_int_eq(rows, 2);
    ck_assert_ptr_nonnull(
        strstr(text, "\"thread, \"\"quoted\"\"\",1,0.000007000,0.000007000,0.000000000,2,0,1,0\n"));
    struct prof_scope_costs costs;
    ck_assert_int_eq(prof_scope_costs_make(&costs, opened.profile, false), 0);
    ck_assert_uint_eq(costs.n, 2);
    ck_assert_uint_eq(costs.scope[0].thread, 0);
    ck_assert_uint_eq(costs.scope[0].calls, 2);
    ck_assert_uint_eq(costs.scope[0].wall_ns, 2 * 7 * STEP);
    prof_scope_costs_free(&costs);
    program_close(&opened);
}
END_TEST

START_TEST(what_scopes_cannot_be_asked_for_is_refused)
{
    static const char *const wrong[][2] = {
        {"--by=line", "--csv"}, {"--by=scope", "--roofline"}, {"--by=scope", "--focus=x"}};
    struct program_profile opened = record("train", NULL);
    for (int i = 0; i < 3; i++) {
        struct program_command command = {0};
        program_add_all(&command, TAPESCOPE_PROGRAM, "top", wrong[i][0], wrong[i][1],
                        program_path("scopes.prof"), NULL);
        const int status = program_run(&command);
        ck_assert(WIFEXITED(status));
        ck_assert_int_eq(WEXITSTATUS(status), 2);
        ck_assert_ptr_nonnull(strstr(program_output, "--by scope"));
    }
    program_close(&opened);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("scope_profile");
    tcase_set_timeout(cases, 240);
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, each_scope_costs_what_it_must);
    tcase_add_test(cases, scopes_are_the_same_in_cpp);
    tcase_add_test(cases, the_table_fits_the_terminal);
    tcase_add_test(cases, the_csv_has_a_row_for_each_scope_and_thread);
    tcase_add_test(cases, what_scopes_cannot_be_asked_for_is_refused);
    return run_cases("scope_profile", cases);
}
