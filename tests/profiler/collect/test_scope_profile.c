/* test_scope_profile.c: scopes from a program to its reports, in C and C++, by gcc and clang.
 *
 * The clock moves STEP ns at each reading: a scope reads it at its begin and end, an op likewise,
 * a sweep at its start, after the seed, after each pullback and at its end.
 */
#include "program_support.h"

#include "report.h"
#include "run_cases.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* Records the part of scopes.c of that name with these options of the recording. */
static struct program_profile record(const char *part, const char *options)
{
    program_build("scopes");
    if (options)
        setenv("TAPESCOPE_OPTIONS", options, 1);
    ck_assert_int_eq(program_record(program_path("scopes.prof"), program_path("scopes"), part), 0);
    unsetenv("TAPESCOPE_OPTIONS");
    struct program_profile opened = program_open(program_path("scopes.prof"));
    ck_assert(opened.profile->complete);
    ck_assert_ptr_null(opened.profile->warning);
    return opened;
}

/* The scope of that name, which may be given with that of the scope around it. */
static const struct analyze_scope_cost *find(const struct analyze_scope_costs *costs,
                                             const char *name)
{
    for (size_t i = 0; i < costs->n; i++)
        if (strcmp(costs->scope[i].name, name) == 0)
            return &costs->scope[i];
    ck_abort_msg("no scope %s", name);
    return NULL;
}

static void check_train(const struct read_profile *profile)
{
    struct analyze_scope_costs costs;
    analyze_scope_costs_make(&costs, profile, false);
    ck_assert_uint_eq(costs.n, 4);
    const struct analyze_scope_cost *train = find(&costs, "train"), *sweep = find(&costs, "sweep");
    const struct analyze_scope_cost *first = find(&costs, "layer index=0");
    const struct analyze_scope_cost *second = find(&costs, "layer index=1");
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
    ck_assert_uint_eq(analyze_cost_tape_bytes(&train->cost) +
                          analyze_cost_tape_bytes(&costs.outside),
                      profile->tape[0].handed_out_bytes);
    ck_assert_uint_eq(train->cost.peak_bytes + costs.outside.peak_bytes,
                      profile->tape[0].peak_bytes);
    ck_assert_uint_eq(train->records, 12);
    ck_assert_uint_eq(train->recorded_calls, 3);
    ck_assert_uint_eq(sweep->recorded_calls, 0);
    analyze_scope_costs_free(&costs);
}

TEST(each_scope_costs_what_it_must)
{
    struct program_profile opened = record("train", NULL);
    check_train(opened.profile);
    program_check_sums(opened.analysis);
    program_close(&opened);
}

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

/* An exception ends the scopes that it leaves: the next one stands in none. */
static void check_thrown(const struct read_profile *profile)
{
    struct analyze_scope_costs costs;
    analyze_scope_costs_make(&costs, profile, false);
    ck_assert_uint_eq(costs.n, 4);
    ck_assert_uint_eq(find(&costs, "caught")->parent, 0);
    ck_assert_uint_eq(find(&costs, "caught")->wall_ns, STEP);
    ck_assert_uint_eq(find(&costs, "throws depth=0")->wall_ns, STEP);
    ck_assert_uint_eq(find(&costs, "throws depth=2")->wall_ns, 5 * STEP);
    analyze_scope_costs_free(&costs);
}

TEST(scopes_are_the_same_in_cpp)
{
    static const char *const compiler[] = {TEST_CXX_COMPILER, "clang++"};
    for (size_t i = 0; i < sizeof compiler / sizeof *compiler; i++) {
        if (!*compiler[i] || !program_exists(compiler[i]) || TEST_SANITIZE_FLAGS[0] != 0)
            continue;
        build_cpp(compiler[i]);
        ck_assert_int_eq(
            program_record(program_path("cpp.prof"), program_path("scopes++"), "train"), 0);
        struct program_profile opened = program_open(program_path("cpp.prof"));
        check_train(opened.profile);
        program_close(&opened);
        ck_assert_int_eq(
            program_record(program_path("cpp.prof"), program_path("scopes++"), "throws"), 0);
        opened = program_open(program_path("cpp.prof"));
        check_thrown(opened.profile);
        program_close(&opened);
    }
}

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

TEST(the_table_fits_the_terminal)
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

TEST(the_csv_has_a_row_for_each_scope_and_thread)
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
    struct analyze_scope_costs costs;
    analyze_scope_costs_make(&costs, opened.profile, false);
    ck_assert_uint_eq(costs.n, 2);
    ck_assert_uint_eq(costs.scope[0].thread, 0);
    ck_assert_uint_eq(costs.scope[0].calls, 2);
    ck_assert_uint_eq(costs.scope[0].wall_ns, 2 * 7 * STEP);
    analyze_scope_costs_free(&costs);
    program_close(&opened);
}

TEST(what_scopes_cannot_be_asked_for_is_refused)
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

TEST(expectations_are_held_against_what_was_measured)
{
    struct program_profile opened = record("expect", NULL);
    char *text = program_text(program_source("scopes.c"));
    struct analyze_expected_costs costs;
    analyze_expected_costs_make(&costs, opened.analysis);
    static const struct {
        const char *label;
        bool holds, scope;
        double bound;
    } want[] = {{"function holds", true, false, 1 << 20},
                {"function fails", false, false, 100},
                {"ratio holds", true, true, 100},
                {"ratio fails", false, true, 0.001}};
    ck_assert_uint_eq(costs.n, 4);
    ck_assert_uint_eq(costs.n_failed, 2);
    for (size_t i = 0; i < 4; i++) {
        const struct analyze_expected_cost *e = &costs.expected[i];
        ck_assert_uint_eq(e->line, program_line(text, want[i].label));
        ck_assert_str_eq(e->function, "expect");
        ck_assert(e->known);
        ck_assert(e->holds == want[i].holds);
        ck_assert_double_eq(e->stated->bound, want[i].bound);
        ck_assert_int_eq(e->scope != 0, want[i].scope);
        ck_assert_uint_eq(e->times, 1);
    }
    /* Of all rows but the tape's own padding; two pullbacks over two ops and what is between. */
    const struct analyze_totals *total = &opened.analysis->total;
    ck_assert_double_gt(costs.expected[0].measured, 0.5 * (double)total->handed_out_bytes);
    ck_assert_double_le(costs.expected[0].measured, (double)total->handed_out_bytes);
    ck_assert_double_eq(costs.expected[2].measured, 2.0 / 5);
    analyze_expected_costs_free(&costs);
    free(text);
    struct program_command command = {0};
    program_add_all(&command, TAPESCOPE_PROGRAM, "top", program_path("scopes.prof"), NULL);
    program_must(&command);
    ck_assert_ptr_nonnull(strstr(program_output, " expects tape <= 100B, measured "));
    ck_assert_ptr_nonnull(
        strstr(program_output, " expects b/f <= 0.001, measured 0.4: scope cheap"));
    ck_assert_ptr_null(strstr(program_output, "b/f <= 100"));
    program_close(&opened);
}

TEST(expectations_without_room_are_counted)
{
    struct program_profile opened = record("expect much", NULL);
    struct analyze_expected_costs costs;
    analyze_expected_costs_make(&costs, opened.analysis);
    ck_assert_uint_eq(costs.n, 1024);
    ck_assert_uint_eq(costs.n_failed, 0);
    ck_assert_uint_eq(costs.expected[0].times, 2);
    ck_assert_uint_eq(costs.expected[1023].times, 1);
    ck_assert_uint_eq(opened.analysis->profile->lost_scopes, 6);
    analyze_expected_costs_free(&costs);
    struct program_command command = {0};
    program_add_all(&command, TAPESCOPE_PROGRAM, "top", "--by", "scope",
                    program_path("scopes.prof"), NULL);
    program_must(&command);
    ck_assert_ptr_nonnull(
        strstr(program_output, "6 begins of scopes and expectations had no room"));
    program_close(&opened);
}

/* The text of info's line on steps. */
static const char *info_steps(void)
{
    struct program_command command = {0};
    program_add_all(&command, TAPESCOPE_PROGRAM, "info", program_path("scopes.prof"), NULL);
    program_must(&command);
    const char *line = strstr(program_output, "\nsteps");
    return line ? line : "";
}

TEST(only_the_steps_that_were_asked_for_are_measured)
{
    struct program_profile opened = record("train", "steps=1:1");
    const struct read_profile *profile = opened.profile;
    struct analyze_scope_costs costs;
    analyze_scope_costs_make(&costs, profile, false);
    ck_assert_uint_eq(find(&costs, "train")->calls, 1);
    /* The tape reads the clock once more when it finds itself observed. */
    ck_assert_uint_eq(find(&costs, "train")->wall_ns, (1 + 3 + 5 + 1 + 8 + 5) * STEP);
    ck_assert_uint_eq(find(&costs, "layer index=1")->cost.backward_ns, 2 * STEP);
    ck_assert_uint_eq(opened.analysis->total.sweeps, 1);
    ck_assert_uint_eq(opened.analysis->total.records, 4);
    program_check_sums(opened.analysis);
    ck_assert(profile->has_steps && profile->steps_by_call);
    ck_assert_uint_eq(profile->first_step, 1);
    ck_assert_uint_eq(profile->last_step, 1);
    ck_assert_uint_eq(profile->seen_steps, 3);
    analyze_scope_costs_free(&costs);
    program_close(&opened);
}

/* Numbers of the steps whose scopes were begun while they were measured, a bit for each. */
static unsigned steps_seen(const struct read_profile *profile)
{
    unsigned seen = 0;
    for (size_t i = 0; i < profile->n_scopes; i++)
        if (strncmp(profile->scope[i].name, "step number=", 12) == 0 && profile->scope[i].calls)
            seen |= 1U << (profile->scope[i].name[12] - '0');
    return seen;
}

TEST(sweeps_are_steps_where_the_program_names_none)
{
    static const struct {
        const char *options;
        unsigned seen, sweeps;
    } want[] = {{"steps=1:2", 0x6, 2}, {"warmup=3", 0x18, 2}, {"warmup=1,steps=1:1", 0x4, 1},
                {"steps=:1", 0x3, 2},  {"steps=0:", 0x1f, 5}, {"steps=9:", 0, 0}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        struct program_profile opened = record("sweeps", want[i].options);
        ck_assert_uint_eq(steps_seen(opened.profile), want[i].seen);
        ck_assert_uint_eq(opened.analysis->total.sweeps, want[i].sweeps);
        program_check_sums(opened.analysis);
        program_close(&opened);
    }
    ck_assert_ptr_nonnull(
        strstr(info_steps(), "none measured: 5 ended (sweeps), the first wanted is 9"));
}

TEST(a_signal_that_was_asked_for_writes_what_is_known_so_far)
{
    struct program_profile opened = record("ask", "snapshot_signal=usr1");
    for (unsigned i = 1; i <= 2; i++) {
        char name[32];
        snprintf(name, sizeof name, "scopes.prof.%u", i);
        struct program_profile snapshot = program_open(program_path(name));
        ck_assert_str_eq(snapshot.profile->end_reason, "snapshot");
        /* of three ops each time, the first two */
        ck_assert_uint_eq(snapshot.analysis->total.records, 3 * i - 1);
        program_check_sums(snapshot.analysis);
        program_close(&snapshot);
    }
    ck_assert_uint_eq(opened.analysis->total.records, 6);
    ck_assert_int_ne(access(program_path("scopes.prof.3"), F_OK), 0);
    program_close(&opened);
}

TEST(without_being_asked_for_a_signal_keeps_its_meaning)
{
    program_build("scopes");
    ck_assert_int_eq(program_record(program_path("scopes.prof"), program_path("scopes"), "ask"),
                     (128 + SIGUSR1) << 8);
    ck_assert_ptr_nonnull(strstr(program_output, "was killed by SIGUSR1"));
}

TEST(a_signal_that_the_program_handles_is_left_to_it)
{
    program_build("scopes");
    struct program_command command = {0};
    ck_assert_int_eq(chdir(program_folder), 0);
    program_add_all(&command, program_path("scopes"), "handles", NULL);
    program_must(&command);
    ck_assert_str_eq(program_output, "tapescope: handles.prof: no snapshots: the program has a "
                                     "use of its own for the signal\n");
    struct program_profile opened = program_open(program_path("handles.prof"));
    ck_assert_uint_eq(opened.analysis->total.records, 6);
    ck_assert_int_ne(access(program_path("handles.prof.1"), F_OK), 0);
    program_close(&opened);
    ck_assert_int_eq(chdir("/"), 0);
}

/* What the timeline of `train` must be, as far as events tell of themselves. */
struct seen {
    unsigned forward, backward, sweeps, scopes, train;
    uint64_t tanh_record; /* of the newest forward tanh that had the first layer's scope */
    uint64_t tanh_backward;
    uint64_t last_end;
    bool sorted;
};

static void see(void *payload, const struct read_profile *profile, const struct read_event *event)
{
    struct seen *seen = payload;
    const uint64_t end = event->start_ticks + event->ticks;
    seen->sorted = seen->sorted && end >= seen->last_end;
    seen->last_end = end;
    seen->forward += event->kind == READ_EVENT_FORWARD;
    seen->backward += event->kind == READ_EVENT_BACKWARD;
    seen->sweeps += event->kind == READ_EVENT_SWEEP;
    seen->scopes += event->kind == READ_EVENT_SCOPE;
    ck_assert_uint_ne(event->scope, 0);
    const char *scope = profile->scope[event->scope - 1].name;
    if (event->kind == READ_EVENT_SCOPE) {
        ck_assert_str_eq(event->op, "");
        seen->train += strcmp(scope, "train") == 0;
        if (strcmp(scope, "train") == 0)
            ck_assert_uint_eq(event->ticks, (3 + 5 + 1 + 8 + 5) * STEP);
        return;
    }
    ck_assert_uint_eq(event->tape, 1);
    if (event->kind == READ_EVENT_SWEEP) {
        ck_assert_str_eq(event->op, "backward");
        ck_assert_str_eq(scope, "sweep");
        ck_assert_uint_eq(event->record, 0);
        ck_assert_uint_eq(event->ticks, 6 * STEP);
        return;
    }
    ck_assert_uint_eq(event->ticks, STEP);
    ck_assert_uint_ne(event->record, 0);
    if (strcmp(event->op, "tanh") != 0 || strcmp(scope, "layer index=0") != 0)
        return;
    if (event->kind == READ_EVENT_FORWARD) {
        seen->tanh_record = event->record;
    } else {
        ck_assert_uint_eq(event->record, seen->tanh_record);
        seen->tanh_backward++;
    }
}

TEST(a_timeline_has_every_event_and_leads_from_an_op_to_its_pullback)
{
    struct program_profile opened = record("train", "timeline=1MiB");
    ck_assert_uint_eq(opened.profile->n_events, 3 * (4 + 4 + 1 + 4));
    ck_assert_uint_eq(opened.profile->events_left_out, 0);
    program_close(&opened);
    struct seen seen = {.sorted = true};
    char error[1024];
    struct read_profile *profile =
        read_profile_events(program_path("scopes.prof"), see, &seen, error, sizeof error);
    ck_assert_msg(profile != NULL, "%s", error);
    ck_assert_uint_eq(seen.forward, 12);
    ck_assert_uint_eq(seen.backward, 12);
    ck_assert_uint_eq(seen.sweeps, 3);
    ck_assert_uint_eq(seen.scopes, 12);
    ck_assert_uint_eq(seen.train, 3);
    ck_assert_uint_eq(seen.tanh_backward, 3);
    ck_assert(seen.sorted);
    read_profile_free(profile);
}

static uint64_t file_size(const char *path)
{
    struct stat file;
    ck_assert_int_eq(stat(path, &file), 0);
    return (uint64_t)file.st_size;
}

TEST(a_timeline_keeps_to_its_bytes_and_counts_what_it_leaves_out)
{
    enum { EVENTS = 100 * (100 + 100 + 1), RECORDS = 100 * 100 };
    struct program_profile without = record("many", NULL);
    const uint64_t base = file_size(program_path("scopes.prof"));
    program_close(&without);
    struct program_profile whole = record("many", "timeline=1GiB");
    const uint64_t all = file_size(program_path("scopes.prof"));
    ck_assert_uint_eq(whole.profile->n_events, EVENTS);
    ck_assert_uint_lt(all - base, 32 * (uint64_t)RECORDS);
    program_close(&whole);
    struct program_profile cut = record("many", "timeline=64KiB");
    ck_assert_uint_gt(cut.profile->n_events, 0);
    ck_assert_uint_gt(cut.profile->events_left_out, 0);
    ck_assert_uint_eq(cut.profile->n_events + cut.profile->events_left_out, EVENTS);
    ck_assert_uint_le(file_size(program_path("scopes.prof")), base + (64 << 10) + 1024);
    struct program_command command = {0};
    program_add_all(&command, TAPESCOPE_PROGRAM, "info", program_path("scopes.prof"), NULL);
    program_must(&command);
    ck_assert_ptr_nonnull(strstr(program_output, " more were beyond its limit"));
    program_close(&cut);
}

RUN_TESTS(setup, teardown)
