/* test_lifetimes.c: bytes times the time that they lived, as a key of tables: also where the
 * product is beyond 64 bits of bytes and ns, as a GiB over ten seconds is.
 */
#include "analyze_space.h"
#include "report_many.h"
#include "run_cases.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 3 };

static struct read_profile profile;
static struct analyze_line line[LINES];
static struct analyze_result analysis;
static char *text;
static size_t n_text;

/* Two lines of 3 and 1 times 2^65 bytes and ns, and one of next to nothing. */
static void setup(void)
{
    static const double byte_ns[LINES] = {0x1p65, 0x3p65, 1};
    static const char *const ops[LINES] = {"exp", "tanh", "add"};
    profile = (struct read_profile){.ticks_per_ns = 1};
    analysis = (struct analyze_result){.profile = &profile, .line = line, .n_lines = LINES};
    for (uint32_t i = 0; i < LINES; i++) {
        line[i] = (struct analyze_line){.file = "/a.c", .line = i + 1};
        line[i].ops = (struct analyze_names){.name = {ops[i]}, .n = 1};
        line[i].cost = (struct analyze_cost){.calls = 1, .value_bytes = 10, .byte_ns = byte_ns[i]};
        analyze_cost_add(&analysis.sum, &line[i].cost);
    }
}

static struct report_style style_of(bool exact)
{
    return (struct report_style){.out = open_memstream(&text, &n_text), .exact = exact};
}

/* What was printed, from `from` on, begins with this. */
static void expect(struct report_style *style, const char *from, const char *wanted)
{
    fclose(style->out);
    const char *at = strstr(text, from);
    ck_assert_msg(at && strncmp(at, wanted, strlen(wanted)) == 0, "%s", text);
    free(text);
}

TEST(lines_are_in_the_order_of_their_bytes_times_time)
{
    struct report_style style = style_of(true);
    report_top(&analysis, ANALYZE_BY_LINE, REPORT_SORT_LIFETIME, 0, &style);
    expect(&style, "B*ns",
           "B*ns calls line, op, function\n"
           "75.0%     0       0        0   -      -   10       0 110680464442257309696     1 a.c:2 "
           "tanh\n"
           "25.0%     0       0        0   -      -   10       0  36893488147419103232     1 a.c:1 "
           "exp\n"
           " 0.0%     0       0        0   -      -   10       0                     1     1 a.c:3 "
           "add\n");
    style = style_of(false);
    report_top(&analysis, ANALYZE_BY_LINE, REPORT_SORT_LIFETIME, 1, &style);
    expect(&style, "... ", "... 2 more lines with 25.0% in all; -n 0 shows everything.\n");
}

TEST(other_orders_have_no_column_of_it)
{
    struct report_style style = style_of(true);
    report_top(&analysis, ANALYZE_BY_LINE, REPORT_SORT_PEAK, 0, &style);
    fclose(style.out);
    ck_assert_ptr_null(strstr(text, "B*ns"));
    free(text);
}

/* Samples and --time off have no clock that says how long bytes live: bytes stand for it. */
TEST(where_it_is_not_known_bytes_are_the_order)
{
    struct read_profile unknown[] = {profile, profile};
    unknown[0].without_times = true;
    unknown[1].is_sampled = true;
    unknown[1].n_tapes = 1;
    line[2].cost.value_bytes = 80;
    for (int i = 0; i < 2; i++) {
        struct report_style style = style_of(false);
        analysis.profile = &unknown[i];
        report_top(&analysis, ANALYZE_BY_OP, REPORT_SORT_LIFETIME, 1, &style);
        fclose(style.out);
        ck_assert_ptr_nonnull(strstr(text, " add\n"));
        ck_assert_ptr_null(strstr(text, "B*ms"));
        free(text);
    }
}

TEST(holders_are_in_the_order_of_their_bytes_times_time)
{
    struct analyze_holder holder[LINES] = {{.line = line[0], .byte_ns = line[0].cost.byte_ns},
                                           {.line = line[1], .byte_ns = line[1].cost.byte_ns},
                                           {.line = line[2], .byte_ns = line[2].cost.byte_ns}};
    const struct analyze_space space = {.holder = holder, .n = LINES};
    const struct report_space_options options = {.what = REPORT_LIFETIME, .limit = 2};
    struct report_style style = style_of(true);
    report_space(&analysis, &space, &options, &style);
    expect(&style, " ",
           " times the time that they lived, all tapes (exact).\n"
           "                 B*ns share life bytes freed by line op -> read by\n"
           "110680464442257309696 75.0%    0     0        - a.c:2 tanh\n"
           " 36893488147419103232 25.0%    0     0        - a.c:1 exp\n"
           "... 1 more with 0.0% in all; -n 0 shows everything.\n");
}

TEST(a_difference_of_it_is_a_change)
{
    static struct analyze_line other[LINES];
    struct analyze_result now = analysis;
    memcpy(other, line, sizeof other);
    now.line = other;
    line[2].cost.byte_ns = 5e9;
    other[2].cost.byte_ns = 7e9;
    struct report_style style = style_of(false);
    struct analyze_runs base, changed;
    analyze_runs_make(&base, (const struct analyze_result *const[]){&analysis}, 1);
    analyze_runs_make(&changed, (const struct analyze_result *const[]){&now}, 1);
    report_diff(&base, &changed, ANALYZE_BY_LINE, REPORT_SORT_LIFETIME, false, 0, &style);
    expect(&style, "B*ms", "B*ms change");
    style = style_of(true);
    report_diff(&base, &changed, ANALYZE_BY_LINE, REPORT_SORT_LIFETIME, false, 0, &style);
    expect(&style, "+2000000 ", "+2000000 +40.0% ");
}

RUN_TESTS(setup, NULL)
