/* test_diff_runs.c: several runs a side, made by hand: what chance makes is no change, neither in
 * `diff` nor for `check`.
 */
#include "report_gates.h"
#include "report_many.h"
#include "run_cases.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 3, LINES = 2, SIDES = 2 };

static struct read_profile profile;
static struct analyze_line line[SIDES][RUNS][LINES];
static struct analyze_result run[SIDES][RUNS];
static const struct analyze_result *list[SIDES][RUNS];
static struct analyze_runs runs[SIDES];
static char *text;

/* Forward times in ms of the two lines of each run. */
static void make(const uint64_t ms[SIDES][RUNS][LINES], size_t n_base, size_t n_new)
{
    static struct read_row none;
    static struct read_tape tape;
    static char path[] = "x";
    tape = (struct read_tape){.row = &none, .handed_out_bytes = 1};
    profile = (struct read_profile){.ticks_per_ns = 1, .path = path, .tape = &tape, .n_tapes = 1};
    for (int side = 0; side < SIDES; side++) {
        for (int i = 0; i < RUNS; i++) {
            run[side][i] = (struct analyze_result){
                .profile = &profile, .line = line[side][i], .n_lines = LINES};
            list[side][i] = &run[side][i];
            for (uint32_t k = 0; k < LINES; k++) {
                struct analyze_line *to = &line[side][i][k];
                *to = (struct analyze_line){.file = "/a.c", .line = k + 1, .function = "f"};
                to->ops = (struct analyze_names){.name = {k ? "tanh" : "exp"}, .n = 1};
                to->cost.forward_ns = ms[side][i][k] * 1000000;
                to->cost.calls = 1;
                run[side][i].total.forward_ns += to->cost.forward_ns;
                analyze_cost_add(&run[side][i].sum, &to->cost);
            }
        }
    }
    analyze_runs_make(&runs[0], list[0], n_base);
    analyze_runs_make(&runs[1], list[1], n_new);
}

static const char *diffed(void)
{
    size_t n = 0;
    const struct report_style style = {.out = open_memstream(&text, &n)};
    report_diff(&runs[0], &runs[1], ANALYZE_BY_LINE, REPORT_SORT_TOTAL, false, 0, &style);
    fclose(style.out);
    return text;
}

static void teardown(void)
{
    analyze_runs_free(&runs[0]);
    analyze_runs_free(&runs[1]);
    free(text);
    text = NULL;
}

/* exp varies by 10 ms and has 5 ms more; tanh varies by 1 ms and has 5 ms more. */
static const uint64_t varied[SIDES][RUNS][LINES] = {{{90, 49}, {100, 50}, {110, 51}},
                                                    {{95, 54}, {105, 55}, {115, 56}}};

TEST(a_change_that_chance_makes_is_counted_and_not_shown)
{
    make(varied, RUNS, RUNS);
    const char *said = diffed();
    ck_assert_msg(strstr(said, "+5.00ms  816us +10.0% 50.0ms 55.0ms"), "%s", said);
    ck_assert_msg(strstr(said, " a.c:2 tanh f\n"), "%s", said);
    ck_assert_msg(!strstr(said, "a.c:1"), "%s", said);
    ck_assert_msg(strstr(said, "\n      ~ 8.98ms      ~  150ms  160ms"), "%s", said);
    ck_assert_msg(strstr(said, "\n1 line within chance.\n"), "%s", said);
    ck_assert_msg(strstr(said, "Means of 3 runs against 3. ~: less than 2.8 standard errors"), "%s",
                  said);
}

/* As the runs of the other side vary. */
TEST(one_run_is_compared_with_what_several_say_of_chance)
{
    make(varied, RUNS, 1);
    const char *said = diffed();
    ck_assert_msg(!strstr(said, "a.c:1"), "%s", said);
    ck_assert_msg(strstr(said, "Means of 1 run against 3. ~: less than 4.3 standard errors"), "%s",
                  said);
}

TEST(of_one_run_a_side_it_is_said_that_chance_is_not_known)
{
    make(varied, 1, 1);
    const char *said = diffed();
    ck_assert_msg(strstr(said, "+5.00ms  +5.6% 90.0ms 95.0ms"), "%s", said);
    ck_assert_msg(strstr(said, "One run a side: what of a change of times is chance is not known"),
                  "%s", said);
}

/* One sample each, at another line on each side; only what many samples have is a change. */
TEST(of_samples_a_line_that_one_side_has_may_be_chance)
{
    make(varied, 1, 1);
    profile.is_sampled = true;
    for (int side = 0; side < SIDES; side++) {
        struct analyze_result *mean = &runs[side].mean;
        for (size_t k = 0; k < mean->n_lines; k++) {
            struct analyze_cost *cost = &mean->line[k].cost;
            cost->cpu_samples = cost->samples = k == 0 ? 1 : 100;
            if (k == 0)
                mean->line[k].ops.name[0] = side == 0 ? "sin" : "cos";
        }
    }
    const char *said = diffed();
    ck_assert_msg(!strstr(said, "new:") && !strstr(said, "gone:"), "%s", said);
    ck_assert_msg(strstr(said, "lines within chance."), "%s", said);
    teardown();
    make(varied, 1, 1);
    run[0][0].line[0].ops.name[0] = "sin";
    runs[0].mean.line[0].ops.name[0] = "sin";
    said = diffed();
    ck_assert_msg(strstr(said, "new: a.c:1 exp f") && strstr(said, "gone: a.c:1 sin f"), "%s",
                  said);
}

/* A line that never had bytes or time of AD is in no fit. */
TEST(lines_without_bytes_and_time_of_ad_do_not_grow)
{
    static const double size[] = {1, 2};
    make(varied, 1, 1);
    const struct analyze_result *both[] = {&run[0][0], &run[1][0]};
    const struct report_sizes sizes = {both, size, 2, "n"};
    struct report_growth growth;
    report_growth_make(&growth, &sizes, ANALYZE_BY_LINE, REPORT_BYTES_PEAK);
    ck_assert_uint_eq(growth.n, LINES);
    report_growth_free(&growth);
    for (int side = 0; side < SIDES; side++)
        line[side][0][1].cost = (struct analyze_cost){.other_ns = 5};
    report_growth_make(&growth, &sizes, ANALYZE_BY_LINE, REPORT_BYTES_PEAK);
    ck_assert_uint_eq(growth.n, 1);
    report_growth_free(&growth);
    line[1][0][1].cost.record_bytes = 8;
    report_growth_make(&growth, &sizes, ANALYZE_BY_LINE, REPORT_BYTES_PEAK);
    ck_assert_uint_eq(growth.n, 2);
    report_growth_free(&growth);
}

static size_t failed(void)
{
    struct report_gates gates = {.n = 0};
    report_gate_baseline(&gates, &runs[0], &run[1][2], 0, 0.01);
    const size_t n = report_gates_failed(&gates);
    for (size_t i = 0; i < gates.n; i++)
        if (gates.gate[i].failed)
            ck_assert_str_eq(gates.gate[i].name, "base-time");
    report_gates_free(&gates);
    return n;
}

/* The last new run has 15 ms more of exp, which varies by 10, and 6 more of tanh, which varies by
 * 1: the latter is more than chance, and neither is known of one run. */
TEST(a_gate_fails_by_more_than_chance_alone)
{
    make(varied, RUNS, RUNS);
    ck_assert_uint_eq(failed(), 1);
}

TEST(a_gate_of_one_run_fails_by_its_tolerance)
{
    make(varied, 1, 1);
    ck_assert_uint_eq(failed(), 3);
}

/* The middle run, for a page that shows one. */
TEST(the_middle_run_is_neither_the_fastest_nor_the_slowest)
{
    make(varied, RUNS, RUNS);
    ck_assert_uint_eq(runs[0].middle, 1);
    ck_assert_uint_eq(runs[0].mean.total.forward_ns, 150000000);
}

RUN_TESTS(NULL, teardown)
