/* test_select.c: lines left out, files under other names, and what flops and bytes let expect, on
 * an analysis made by hand.
 */
#include "analyze_map.h"
#include "report.h"
#include "run_cases.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8 };

static struct read_profile profile = {.ticks_per_ns = 1};
static struct analyze_line line[MOST];
static struct analyze_result *analysis;

static struct analyze_line *add(const char *file, uint32_t number, const char *op, uint64_t forward,
                                uint64_t backward)
{
    struct analyze_line *to = &analysis->line[analysis->n_lines++];
    ck_assert_uint_le(analysis->n_lines, MOST);
    *to = (struct analyze_line){.file = file, .line = number, .function = "f", .own = !file};
    to->ops = (struct analyze_names){.name = {op}, .n = 1};
    to->cost = (struct analyze_cost){
        .calls = 1, .forward_ns = forward, .backward_ns = backward, .value_bytes = 10};
    analyze_cost_add(&analysis->sum, &to->cost);
    analysis->total.forward_ns += forward;
    analysis->total.backward_ns += backward;
    analysis->total.handed_out_bytes += 10;
    return to;
}

static void setup(void)
{
    static struct analyze_result made;
    made = (struct analyze_result){.profile = &profile, .line = line};
    analysis = &made;
}

static void teardown(void)
{
    analyze_map_free(analysis->map);
}

static char *text;
static size_t n_text;

static struct report_style style_of(unsigned width)
{
    return (struct report_style){.out = open_memstream(&text, &n_text), .width = width};
}

TEST(files_below_a_folder_move_and_others_stay)
{
    add("/build/a.c", 1, "exp", 1, 1);
    add("/build/sub/b.c", 2, "exp", 1, 1);
    add("/builder/c.c", 3, "exp", 1, 1);
    analyze_map(analysis, "/build/", "/home/me");
    ck_assert_uint_eq(analysis->n_lines, 3);
    ck_assert_str_eq(line[0].file, "/builder/c.c");
    ck_assert_str_eq(line[1].file, "/home/me/a.c");
    ck_assert_str_eq(line[2].file, "/home/me/sub/b.c");
}

TEST(lines_that_become_one_are_one)
{
    add("/a/x.c", 1, "exp", 1, 2);
    add("/b/x.c", 1, "exp", 10, 20);
    add("/b/x.c", 2, "exp", 5, 5);
    analyze_map(analysis, "/a", "/b/");
    ck_assert_uint_eq(analysis->n_lines, 2);
    ck_assert_uint_eq(line[0].cost.forward_ns, 11);
    ck_assert_uint_eq(line[0].cost.backward_ns, 22);
    ck_assert_ptr_eq(line[0].file, line[1].file);
    ck_assert_uint_eq(analyze_files(analysis, "x.c", NULL, 0), 1);
}

static bool is_exp(void *payload, const struct analyze_line *candidate)
{
    (void)payload;
    return strcmp(candidate->ops.name[0], "exp") == 0;
}

TEST(what_is_left_out_stays_in_the_sum)
{
    add("/a.c", 1, "exp", 1, 2);
    add("/a.c", 2, "tanh", 10, 20);
    add(NULL, 0, "padding", 0, 0);
    analyze_select(analysis, is_exp, NULL);
    ck_assert_uint_eq(analysis->n_lines, 1);
    ck_assert_uint_eq(analysis->n_left_out, 2);
    ck_assert_uint_eq(analysis->left_out.backward_ns, 20);
    ck_assert_uint_eq(analysis->left_out.value_bytes, 20);
    ck_assert_uint_eq(analysis->sum.value_bytes, 30);
    struct report_style style = style_of(0);
    report_top(analysis, ANALYZE_BY_LINE, REPORT_SORT_TOTAL, 0, &style);
    fclose(style.out);
    ck_assert_ptr_nonnull(strstr(text, " (left out)\n"));
    ck_assert_ptr_null(strstr(text, "tanh"));
    free(text);
}

TEST(sites_without_lines_that_are_left_out_are_not_counted)
{
    struct analyze_line *site = add("", 0, "exp", 1, 2), *other = add("", 0, "tanh", 1, 2),
                        *code = add("", 0, "", 1, 2);
    site->file = other->file = code->file = NULL;
    code->ops.n = 0;
    analysis->n_unlined = 2;
    analyze_select(analysis, is_exp, NULL);
    ck_assert_uint_eq(analysis->n_lines, 1);
    ck_assert_uint_eq(analysis->n_unlined, 1);
}

/* Counts: a product of 1000 flops forward and 2000 backward, and a map of 100 bytes either way;
 * the roof is 10 flops and 10 bytes a nanosecond. */
static struct analyze_line *add_product(uint32_t number, uint64_t forward, uint64_t backward)
{
    struct analyze_line *to = add("/a.c", number, "matmul", forward, backward);
    to->cost.steady_backward_ns = backward;
    to->cost.forward_flops = 1000;
    to->cost.backward_flops = 2000;
    return to;
}

static void add_two_of_known_ratio(void)
{
    add_product(1, 100, 200);
    struct analyze_line *map = add("/a.c", 2, "exp", 10, 10);
    map->cost.forward_moved = map->cost.backward_moved = 100;
}

TEST(the_roof_is_what_was_reached_and_ratios_follow_from_counts)
{
    add_two_of_known_ratio();
    struct analyze_roof roof = analyze_roof(analysis);
    ck_assert_double_eq_tol(roof.flops_per_ns, 10, 1e-12);
    ck_assert_double_eq_tol(roof.bytes_per_ns, 10, 1e-12);
    ck_assert_double_eq_tol(analyze_cost_expected_ratio(&line[0].cost, &roof), 2, 1e-12);
    ck_assert_double_eq_tol(analyze_cost_expected_ratio(&line[1].cost, &roof), 1, 1e-12);
    ck_assert(analyze_cost_expected_ratio(&analysis->left_out, &roof) == 0);
}

TEST(a_slow_pullback_is_marked_and_comes_first_by_ratio)
{
    add_two_of_known_ratio();
    add_product(3, 100, 401);
    struct analyze_line *sweep = add_product(4, 100, 900);
    sweep->ops.name[sweep->ops.n++] = "backward";
    add("/a.c", 5, "leaf", 0, 3000);
    struct analyze_roof roof = analyze_roof(analysis);
    ck_assert(!analyze_line_is_slow_backward(&line[0], analysis, &roof));
    ck_assert(!analyze_line_is_slow_backward(&line[2], analysis, &roof)); /* not 1 % beyond */
    ck_assert(!analyze_line_is_slow_backward(&line[3], analysis, &roof));
    line[2].cost.backward_ns = line[2].cost.steady_backward_ns = 600;
    line[2].cost.backward_calls = 1;
    ck_assert(!analyze_line_is_slow_backward(&line[2], analysis, &roof));
    line[2].cost.backward_calls = 2;
    ck_assert(analyze_line_is_slow_backward(&line[2], analysis, &roof));
    line[2].ops.name[line[2].ops.n++] = "exp"; /* one call of each */
    ck_assert(!analyze_line_is_slow_backward(&line[2], analysis, &roof));
    line[2].ops.n--;
    line[2].cost.steady_backward_ns = 400; /* one of the calls was interrupted */
    ck_assert(!analyze_line_is_slow_backward(&line[2], analysis, &roof));
    line[2].cost.steady_backward_ns = 600;
    analysis->n_lines = 3;
    struct report_style style = style_of(80);
    report_top(analysis, ANALYZE_BY_LINE, REPORT_SORT_RATIO, 1, &style);
    fclose(style.out);
    ck_assert_ptr_nonnull(strstr(text, " 6.00! "));
    ck_assert_ptr_nonnull(strstr(text, " a.c:3 matmul f\n"));
    ck_assert_ptr_nonnull(strstr(text, "! backward takes over twice what"));
    free(text);
}

/* 700 ns of n samples have an error of 700 / sqrt(n): 200 ns beyond twice the expected time are two
 * errors of that difference from 154 samples on. */
TEST(a_pullback_is_slow_only_beyond_two_standard_errors_of_its_samples)
{
    add_two_of_known_ratio();
    struct analyze_cost *cost = &add_product(3, 100, 600)->cost;
    struct analyze_roof roof = analyze_roof(analysis);
    cost->cpu_samples = 153;
    ck_assert(!analyze_line_is_slow_backward(&line[2], analysis, &roof));
    cost->cpu_samples = 155;
    ck_assert(analyze_line_is_slow_backward(&line[2], analysis, &roof));
    /* No sample forward is no proof that it takes no time. */
    cost->forward_ns = 0;
    cost->backward_ns = 700;
    cost->cpu_samples = 7;
    ck_assert(!analyze_line_is_slow_backward(&line[2], analysis, &roof));
    ck_assert_double_eq_tol(analyze_cost_error(cost, 700), 700 / sqrt(7), 1e-9);
    ck_assert_double_eq_tol(analyze_cost_error(cost, 100), 100, 1e-9);
}

TEST(what_hardly_takes_time_is_no_slow_pullback)
{
    add("/a.c", 1, "exp", 1000, 3000);
    add("/a.c", 2, "tanh", 1, 20);
    add("/a.c", 3, "seed", 0, 500);
    struct report_style style = style_of(0);
    style.exact = true;
    report_top(analysis, ANALYZE_BY_LINE, REPORT_SORT_RATIO, 0, &style);
    fclose(style.out);
    const char *exp = strstr(text, " exp "), *tanh = strstr(text, " tanh ");
    ck_assert(exp && tanh && exp < tanh && tanh < strstr(text, " seed "));
    free(text);
}

TEST(one_phase_alone_has_its_own_columns_and_shares)
{
    add("/a.c", 1, "exp", 30, 1);
    add("/a.c", 2, "tanh", 10, 99);
    struct report_style style = style_of(0);
    style.phases = REPORT_FORWARD;
    report_top(analysis, ANALYZE_BY_LINE, REPORT_SORT_TOTAL, 1, &style);
    fclose(style.out);
    ck_assert_str_eq(text, "share forward tape at peak calls line, op, function\n"
                           "75.0%    30ns  10B       0     1 a.c:1 exp f\n"
                           " 100%    40ns  20B       0     2 (all)\n"
                           "... 1 more line with 25.0% in all; -n 0 shows everything.\n");
    free(text);
}

TEST(a_roofline_says_what_limits_each_direction)
{
    add_two_of_known_ratio();
    struct report_style style = style_of(0);
    report_roofline(analysis, ANALYZE_BY_LINE, REPORT_SORT_TOTAL, 0, &style);
    fclose(style.out);
    ck_assert_str_eq(text, " time Gflop/s GB/s flop/B roof limit phase    line, op, function\n"
                           "100ns    10.0    -      - 100% flops forward  a.c:1 matmul f\n"
                           "200ns    10.0    -      - 100% flops backward a.c:1 matmul f\n"
                           " 10ns       - 10.0      - 100% bytes forward  a.c:2 exp f\n"
                           " 10ns       - 10.0      - 100% bytes backward a.c:2 exp f\n"
                           "roof: part of what 10 Gflop/s and 10 GB/s allow, "
                           "the highest rates in this profile.\n");
    free(text);
}

TEST(a_roofline_has_recomputation_as_a_third_phase)
{
    struct analyze_cost *cost = &add_product(1, 100, 200)->cost;
    cost->recompute_calls = 1;
    cost->recompute_ns = analysis->sum.recompute_ns = analysis->total.recompute_ns = 50;
    cost->recompute_flops = 1000;
    cost->recompute_moved = 200;
    struct report_style style = style_of(0);
    report_roofline(analysis, ANALYZE_BY_LINE, REPORT_SORT_TOTAL, 0, &style);
    fclose(style.out);
    ck_assert_str_eq(text, " time Gflop/s GB/s flop/B  roof limit phase     line, op, function\n"
                           "100ns    10.0    -      - 50.0% flops forward   a.c:1 matmul f\n"
                           "200ns    10.0    -      - 50.0% flops backward  a.c:1 matmul f\n"
                           " 50ns    20.0 4.00   5.00  100% flops recompute a.c:1 matmul f\n"
                           "roof: part of what 20 Gflop/s and 4 GB/s allow, "
                           "the highest rates in this profile.\n");
    free(text);
    style = style_of(0);
    style.phases = REPORT_RECOMPUTE;
    report_roofline(analysis, ANALYZE_BY_LINE, REPORT_SORT_TOTAL, 0, &style);
    fclose(style.out);
    ck_assert_ptr_nonnull(strstr(text, " recompute a.c:1"));
    ck_assert_ptr_null(strstr(text, " backward a.c:1"));
    free(text);
}

TEST(a_roofline_of_samples_is_marked_as_an_estimate)
{
    struct read_profile sampled = {
        .ticks_per_ns = 1, .is_sampled = true, .n_tapes = 1, .sample_period_ns = 4000000};
    analysis->profile = &sampled;
    add_two_of_known_ratio();
    analysis->total.fired = analysis->total.recorded = 5;
    struct report_style style = style_of(0);
    report_roofline(analysis, ANALYZE_BY_LINE, REPORT_SORT_TOTAL, 0, &style);
    fclose(style.out);
    static const char head[] =
        "~time ~Gflop/s ~GB/s flop/B ~roof limit phase    line, op, function\n"
        "100ns     10.0     -      -  100% flops forward  a.c:1 matmul f\n";
    ck_assert_msg(strncmp(text, head, sizeof head - 1) == 0, "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "\n~ sampled, 250 a second and thread: 5 signals = 5 rec"));
    free(text);
}

/* No table without rows, but the reason. */
static void check_no_roofline(const struct read_profile *of, const char *why)
{
    char wanted[200];
    struct report_style style = style_of(200);
    analysis->profile = of;
    report_roofline(analysis, ANALYZE_BY_LINE, REPORT_SORT_TOTAL, 0, &style);
    fclose(style.out);
    snprintf(wanted, sizeof wanted, "No rates are known: %s.\n", why);
    ck_assert_str_eq(text, wanted);
    free(text);
}

TEST(a_roofline_of_nothing_says_why)
{
    const struct read_profile samples = {.ticks_per_ns = 1, .is_sampled = true};
    static char off[] = "time=off", defaults[] = "";
    struct read_profile untimed = {
        .ticks_per_ns = 1, .without_times = true, .n_tapes = 1, .options = off};
    add("/a.c", 1, "exp", 30, 1);
    check_no_roofline(&samples, "without --tape on, samples have no flops or bytes moved");
    check_no_roofline(&untimed, "no times were taken (--time off)");
    untimed.options = defaults;
    check_no_roofline(&untimed, "no times were taken: nothing was swept, and no op timed");
    check_no_roofline(&profile, "no row has a time with flops or bytes moved");
}

static bool keeps_second(void *payload, const struct analyze_line *of)
{
    (void)payload;
    return of->line == 2;
}

/* What is shown has the roof of the whole program. */
TEST(a_line_left_out_counts_for_the_roof)
{
    add("a.c", 1, "matmul", 1000, 1000)->cost.forward_flops = 50000;
    add("a.c", 2, "exp", 1000, 1000)->cost.forward_flops = 2000;
    analysis->line[0].cost.forward_moved = 3000;
    analyze_select(analysis, keeps_second, NULL);
    ck_assert_uint_eq(analysis->n_lines, 1);
    ck_assert_double_eq(analyze_roof(analysis).flops_per_ns, 50);
    ck_assert_double_eq(analyze_roof(analysis).bytes_per_ns, 3);
}

RUN_TESTS(setup, teardown)
