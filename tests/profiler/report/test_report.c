/* test_report.c: reports of costs made by hand, compared with what they must say to the letter. */
#include "report.h"
#include "report_table.h"
#include "run_cases.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 12 };

static char folder[64], source[128];
static struct read_profile profile;
static struct analyze_line line[MOST];
static struct analyze_result analysis;

/* The totals are the sums, unless a test makes them differ. */
static struct analyze_line *add(const char *file, uint32_t number, const char *function,
                                const char *op, uint64_t ns)
{
    struct analyze_line *to = &line[analysis.n_lines++];
    ck_assert_uint_le(analysis.n_lines, MOST);
    *to = (struct analyze_line){.file = file, .line = number, .function = function};
    to->ops = (struct analyze_names){.name = {op}, .n = 1};
    to->cost = (struct analyze_cost){
        .calls = 1, .forward_ns = ns, .backward_ns = 2 * ns, .record_bytes = 10, .peak_bytes = ns};
    analyze_cost_add(&analysis.sum, &to->cost);
    analysis.total.forward_ns += ns;
    analysis.total.backward_ns += 2 * ns;
    analysis.total.handed_out_bytes += 10;
    return to;
}

static void setup(void)
{
    strcpy(folder, "/tmp/tapescope-report-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(source, sizeof source, "%s/a.c", folder);
    FILE *file = fopen(source, "w");
    ck_assert_ptr_nonnull(file);
    fputs("int f(void)\n{\n    one;\n    two;\n}\n\nint g(void)\n{\n    three;\n}", file);
    fclose(file);
    profile = (struct read_profile){.ticks_per_ns = 1};
    analysis = (struct analyze_result){.profile = &profile, .line = line};
}

static void teardown(void)
{
    unlink(source);
    ck_assert_int_eq(rmdir(folder), 0);
}

static char *text;
static size_t text_bytes;

static struct report_style style_of(bool exact)
{
    return (struct report_style){.out = open_memstream(&text, &text_bytes), .exact = exact};
}

/* What was reported, with the folder's name cut out. */
static void expect(struct report_style *style, const char *expected)
{
    fclose(style->out);
    for (char *at; (at = strstr(text, folder));)
        memmove(at, at + strlen(folder), strlen(at + strlen(folder)) + 1);
    ck_assert_str_eq(text, expected);
    free(text);
    text = NULL;
}

static void make_two_functions(void)
{
    add(source, 3, "f", "tanh", 100)->function_line = 1;
    add(source, 4, "f", "exp", 1)->kept_by =
        (struct analyze_names){.name = {"a", "b", "c", "d"}, .n = 4, .more = true};
    struct analyze_line *more = add(source, 4, "f2", "mul", 2);
    more->kept_by = (struct analyze_names){.name = {"b", "e"}, .n = 2};
    add(source, 9, "g", "sum", 4)->function_line = 7;
    add("/other/b.c", 5, "h", "sum", 8);
    add(NULL, 0, NULL, "add", 16);
    add(NULL, 0, NULL, "padding", 32)->own = true;
}

TEST(a_source_has_its_costs_beside_it_and_the_rest_below)
{
    make_two_functions();
    struct report_style style = style_of(true);
    ck_assert_int_eq(report_annotate(&analysis, source, NULL, &style), 0);
    expect(&style,
           "share calls forward per call backward  b/f tape at peak kept by  line /a.c\n"
           "                                                                    1 int f(void)\n"
           "                                                                    2 {\n"
           "61.3%     1     100      100      200 2.00   10     100             3     one;\n"
           " 1.8%     2       3        2        6 2.00   20       3 a,b,c,d+    4     two;\n"
           "                                                                    5 }\n"
           "                                                                    6\n"
           "                                                                    7 int g(void)\n"
           "                                                                    8 {\n"
           " 2.5%     1       4        4        8 2.00   10       4             9     three;\n"
           "                                                                   10 }\n"
           "65.6%     4     107       27      214 2.00   40     107               a.c\n"
           " 4.9%     1       8        8       16 2.00   10       8               elsewhere: other "
           "files\n"
           " 9.8%     1      16       16       32 2.00   10      16               elsewhere: sites "
           "without line information\n"
           "19.6%     1      32       32       64 2.00   10      32               elsewhere: the "
           "tape's own (padding, room in blocks)\n"
           " 100%     7     163       23      326 2.00   70       0               total\n");
}

/* From the declaration, if it is known, to the brace at the margin. */
TEST(a_function_is_shown_alone)
{
    make_two_functions();
    struct report_style style = style_of(true);
    analysis.n_lines = 2; /* f alone */
    ck_assert_int_eq(report_annotate(&analysis, source, "f", &style), 0);
    fclose(style.out);
    ck_assert_ptr_nonnull(strstr(text, " 1 int f(void)\n"));
    ck_assert_ptr_nonnull(strstr(text, " 5 }\n"));
    ck_assert_ptr_null(strstr(text, " 6"));
    ck_assert_ptr_nonnull(strstr(text, "a.c:f\n"));
    free(text);
    analysis.n_lines = 4;
    line[3].function_line = 0;
    style = style_of(true);
    ck_assert_int_eq(report_annotate(&analysis, source, "g", &style), 0);
    fclose(style.out);
    ck_assert_ptr_null(strstr(text, "8 {"));
    ck_assert_ptr_nonnull(strstr(text, " 9     three;\n"));
    ck_assert_ptr_nonnull(strstr(text, "10 }\n"));
    ck_assert_ptr_nonnull(strstr(text, "elsewhere: the rest of the file\n"));
    free(text);
    style = style_of(true);
    ck_assert_int_eq(report_annotate(&analysis, source, "nothing", &style), 0);
    fclose(style.out);
    ck_assert_ptr_nonnull(strstr(text, "10 }\n"));
    free(text);
}

/* Three optional columns and a name; "calls" is of little use. */
static void print_optional(unsigned width, const char *ratio)
{
    struct report_style style = style_of(false);
    struct report_table *table = report_table_new();
    report_table_column(table, REPORT_TABLE_RIGHT, "share");
    report_table_column(table, REPORT_TABLE_RIGHT, "total");
    report_table_optional(table, 1);
    report_table_column(table, REPORT_TABLE_RIGHT, "b/f");
    report_table_optional(table, 2);
    report_table_column(table, REPORT_TABLE_RIGHT, "calls");
    report_table_optional(table, 7);
    report_table_column(table, REPORT_TABLE_LEFT, "line");
    for (int i = 0; i < 2; i++) {
        report_table_row(table);
        report_table_cell(table, "50%");
        report_table_cell(table, "12s");
        report_table_cell(table, i == 0 ? "-" : ratio);
        report_table_cell(table, "3");
        report_table_cell(table, i == 0 ? "a_long_name_of_a_function_in_a_line.c:12" : "(all)");
    }
    report_table_print(table, style.out, width, false);
    report_table_free(table);
    fclose(style.out);
}

TEST(columns_without_a_figure_go_before_others_and_calls_before_a_long_name_is_cut)
{
    print_optional(80, "0");
    ck_assert_str_eq(text, "share total b/f calls line\n"
                           "  50%   12s   -     3 a_long_name_of_a_function_in_a_line.c:12\n"
                           "  50%   12s   0     3 (all)\n");
    free(text);
    print_optional(58, "0");
    ck_assert_str_eq(text, "share total calls line\n"
                           "  50%   12s     3 a_long_name_of_a_function_in_a_line.c:12\n"
                           "  50%   12s     3 (all)\n");
    free(text);
    print_optional(57, "1.5");
    ck_assert_str_eq(text, "share total b/f line\n"
                           "  50%   12s   - a_long_name_of_a_function_in_a_line.c:12\n"
                           "  50%   12s 1.5 (all)\n");
    free(text);
    print_optional(45, "-");
    ck_assert_str_eq(text, "share total line\n"
                           "  50%   12s a_long_name_of_a_function_in_a_l~\n"
                           "  50%   12s (all)\n");
    free(text);
}

/* forward, zeros, backward and a name, at a width that has no room for all. */
static void print_table(unsigned width, bool zero, bool colored)
{
    struct report_style style = style_of(false);
    struct report_table *table = report_table_new();
    report_table_column(table, REPORT_TABLE_RIGHT, "~forward");
    report_table_column(table, REPORT_TABLE_RIGHT, "other");
    report_table_column(table, REPORT_TABLE_RIGHT, "backward");
    report_table_column(table, REPORT_TABLE_LEFT, "line");
    report_table_row(table);
    report_table_cell(table, "12s");
    report_table_cell(table, zero ? "0.0%" : "1.0%");
    report_table_cell(table, "-");
    report_table_cell(table, "a_long_name_of_a_line.c:12");
    report_table_phases(table, colored);
    report_table_print(table, style.out, width, false);
    report_table_free(table);
    fclose(style.out);
}

TEST(columns_of_zeros_go_before_a_name_is_cut)
{
    print_table(80, true, false);
    ck_assert_str_eq(
        text, "~forward other backward line\n     12s  0.0%        - a_long_name_of_a_line.c:12\n");
    free(text);
    print_table(45, true, false);
    ck_assert_str_eq(text,
                     "~forward backward line\n     12s        - a_long_name_of_a_line.c:12\n");
    free(text);
    print_table(49, false, false); /* what was not measured is shown */
    ck_assert_str_eq(text, "~forward other backward line\n"
                           "     12s  1.0%        - a_long_name_of_a_line.c:~\n");
    free(text);
}

TEST(times_have_the_colour_of_their_phase)
{
    print_table(80, true, true);
    ck_assert_str_eq(text,
                     "\033[38;5;32m~forward\033[0m other \033[38;5;172mbackward\033[0m line\n"
                     "     \033[38;5;32m12s\033[0m  0.0%        - a_long_name_of_a_line.c:12\n");
    free(text);
}

TEST(costly_lines_have_a_colour_and_gaps_a_row)
{
    add(source, 3, "f", "tanh", 1000);
    add(source, 4, "f", "exp", 20);
    add(source, 5, "f", "exp", 1);
    add(source, 10, "g", "exp", 0);
    struct report_style style = style_of(true);
    style.color = style.utf8 = true;
    style.around = 2;
    ck_assert_int_eq(report_annotate(&analysis, source, NULL, &style), 0);
    fclose(style.out);
    ck_assert_ptr_nonnull(strstr(
        text,
        "\033[1m97.9%     1    \033[38;5;32m1000\033[0;1m     1000     \033[38;5;172m2000\033[0;1m "
        "2.00   10    1000            3     one;"));
    ck_assert_ptr_nonnull(strstr(text, "\n 2.0%     1      \033[38;5;32m20\033[0m       20       "
                                       "\033[38;5;172m40\033[0m 2.00   10      20 "
                                       "           4     two;"));
    ck_assert_ptr_nonnull(
        strstr(text, "\033[38;5;32m1\033[0m        1        \033[38;5;172m2\033[0m 2.00   10"));
    ck_assert_ptr_nonnull(strstr(text, " \u22ee\n"));
    ck_assert_ptr_null(strstr(text, "int g"));
    ck_assert_ptr_nonnull(strstr(text, "three"));
    free(text);
}

TEST(lines_that_the_source_has_no_more_keep_their_costs)
{
    add(source, 0, "f", "tanh", 1);
    add(source, 3, "f", "tanh", 2);
    add(source, 40, "f", "exp", 3);
    struct report_style style = style_of(true);
    ck_assert_int_eq(report_annotate(&analysis, source, NULL, &style), 0);
    fclose(style.out);
    ck_assert_ptr_nonnull(
        strstr(text, "16.7%     1       1        1        2 2.00   10       1            0\n"));
    ck_assert_ptr_nonnull(
        strstr(text, "50.0%     1       3        3        6 2.00   10       3           40\n"));
    free(text);
    char gone[160];
    snprintf(gone, sizeof gone, "%s/gone.c", folder);
    for (size_t i = 0; i < 3; i++)
        line[i].file = gone;
    style = style_of(true);
    ck_assert_int_eq(report_annotate(&analysis, gone, NULL, &style), ENOENT);
    expect(&style, "share calls forward per call backward  b/f tape at peak kept by line /gone.c\n"
                   "16.7%     1       1        1        2 2.00   10       1            0\n"
                   "33.3%     1       2        2        4 2.00   10       2            3\n"
                   "50.0%     1       3        3        6 2.00   10       3           40\n"
                   " 100%     3       6        2       12 2.00   30       6              gone.c\n"
                   " 100%     3       6        2       12 2.00   30       0              total\n");
}

/* A living tape that was read while an op was under way may have more in its lines than in all. */
TEST(what_no_line_accounts_for_has_a_row_of_its_own)
{
    add(source, 3, "f", "tanh", 10);
    analysis.total.forward_ns += 5;
    analysis.total.backward_ns -= 1;
    struct report_style style = style_of(true);
    ck_assert_int_eq(report_annotate(&analysis, source, "f", &style), 0);
    fclose(style.out);
    ck_assert_ptr_nonnull(strstr(text, "    0       5        -       -1    -    0"));
    ck_assert_ptr_nonnull(strstr(text, "elsewhere: unattributed\n"));
    ck_assert_ptr_nonnull(strstr(text, "    1      15       15       19 1.27   10"));
    free(text);
}

/* Of a line: so often, so long. */
static void recompute(struct analyze_line *to, uint64_t calls, uint64_t ns)
{
    to->cost.recompute_calls += calls;
    to->cost.recompute_ns += ns;
    analysis.sum.recompute_calls += calls;
    analysis.sum.recompute_ns += ns;
    analysis.total.recompute_ns += ns;
}

TEST(recomputation_has_a_column_where_there_is_any_and_is_in_the_total)
{
    struct analyze_line *tanh = add(source, 3, "f", "tanh", 10);
    add(source, 4, "f", "exp", 11);
    recompute(tanh, 1, 7);
    struct report_style style = style_of(true);
    report_top(&analysis, ANALYZE_BY_LINE, REPORT_SORT_TOTAL, 0, &style);
    expect(&style,
           "share total forward backward recompute  b/f expect tape at peak calls line, op, "
           "function\n"
           "52.9%    37      10       20         7 2.00      -   10      10     1 a.c:3 tanh "
           "f\n"
           "47.1%    33      11       22         0 2.00      -   10      11     1 a.c:4 exp "
           "f\n"
           " 100%    70      21       42         7 2.00      -   20       0     2 (all)\n");
    style = style_of(true);
    style.phases = REPORT_RECOMPUTE;
    report_top(&analysis, ANALYZE_BY_LINE, REPORT_SORT_TOTAL, 1, &style);
    fclose(style.out);
    ck_assert_ptr_nonnull(strstr(text, "share recompute tape at peak calls line, op, function\n"
                                       " 100%         7   10      10     1 a.c:3 tanh f\n"));
    free(text);
    style = style_of(true);
    style.around = 1;
    ck_assert_int_eq(report_annotate(&analysis, source, NULL, &style), 0);
    analysis.total.recompute_ns += 2;
    expect(
        &style,
        "share calls forward per call backward recompute  b/f tape at peak kept by line /a.c\n"
        "                                                                             :\n"
        "52.9%     1      10       10       20         7 2.00   10      10            3     one;\n"
        "47.1%     1      11       11       22         0 2.00   10      11            4     two;\n"
        "                                                                             :\n"
        " 100%     2      21       11       42         7 2.00   20      21              a.c\n"
        " 100%     2      21       11       42         7 2.00   20       0              total\n");
    style = style_of(true);
    ck_assert_int_eq(report_annotate(&analysis, source, NULL, &style), 0);
    fclose(style.out);
    ck_assert_msg(strstr(text, " 2    -    0       0 ") && strstr(text, "elsewhere: unattributed"),
                  "%s", text);
    free(text);
    style = style_of(true);
    report_summary(&analysis, &style);
    expect(&style, "2 lines, 0 tapes, forward 21ns, backward 42ns, recompute 9ns, 20B on tape");
}

TEST(the_costliest_line_comes_first_by_every_key)
{
    static const struct {
        enum report_sort sort;
        const char *op;
    } cases[] = {
        {REPORT_SORT_TOTAL, "total"},       {REPORT_SORT_FORWARD, "forward"},
        {REPORT_SORT_BACKWARD, "backward"}, {REPORT_SORT_TAPE, "tape"},
        {REPORT_SORT_PEAK, "peak"},         {REPORT_SORT_CALLS, "calls"},
    };
    add(source, 1, "f", "total", 50);
    add(source, 2, "f", "forward", 1)->cost.forward_ns = 60;
    add(source, 3, "f", "backward", 1)->cost.backward_ns = 120;
    add(source, 4, "f", "tape", 1)->cost.value_bytes = 1000;
    add(source, 5, "f", "peak", 1)->cost.peak_bytes = 1000;
    add(source, 6, "f", "calls", 1)->cost.calls = 1000;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct report_style style = style_of(true);
        char row[64];
        report_top(&analysis, ANALYZE_BY_LINE, cases[i].sort, 1, &style);
        fclose(style.out);
        snprintf(row, sizeof row, " a.c:%zu %s f\n", i + 1, cases[i].op);
        ck_assert_msg(strstr(text, row) != NULL, "%s in\n%s", row, text);
        ck_assert_ptr_nonnull(strstr(text, "... 5 more lines with "));
        free(text);
    }
}

TEST(a_site_is_named_by_what_is_known_of_it)
{
    add(source, 3, "f", "whole", 60);
    add(NULL, 7, "f", "numbered", 50)->module = "/lib/m.so";
    add(NULL, 0, "f", "in_function", 40)->module = "/lib/m.so";
    line[2].offset = 16;
    add(NULL, 0, NULL, "in_module", 30)->module = "/lib/m.so";
    line[3].offset = 32;
    add(NULL, 0, NULL, "unknown", 20)->offset = 48;
    add(NULL, 0, NULL, "padding", 10)->own = true;
    analysis.n_unlined = 4;
    struct report_style style = style_of(false);
    report_top(&analysis, ANALYZE_BY_LINE, REPORT_SORT_TOTAL, 0, &style);
    fclose(style.out);
    ck_assert_ptr_nonnull(strstr(text, " a.c:3 whole f\n"));
    ck_assert_ptr_nonnull(strstr(text, " m.so line 7 numbered f\n"));
    ck_assert_ptr_nonnull(strstr(text, " m.so +0x10 in_function f\n"));
    ck_assert_ptr_nonnull(strstr(text, " m.so+0x20 in_module"));
    ck_assert_ptr_nonnull(strstr(text, " ?+0x30 unknown"));
    ck_assert_ptr_nonnull(strstr(text, " (tape) padding\n"));
    ck_assert_ptr_nonnull(strstr(text, "4 sites are without line information: compile with -g"));
    free(text);
    style = style_of(false);
    style.utf8 = true;
    report_top(&analysis, ANALYZE_BY_FUNCTION, REPORT_SORT_TOTAL, 5, &style);
    fclose(style.out);
    ck_assert_ptr_nonnull(strstr(text, " f a.c whole\n"));
    ck_assert_ptr_nonnull(strstr(text, " f m.so numbered,in_function\n"));
    ck_assert_ptr_nonnull(strstr(text, " m.so+0x20 in_module\n"));
    ck_assert_ptr_nonnull(strstr(text, " ?+0x30 unknown\n"));
    ck_assert_ptr_nonnull(strstr(text, " (tape) padding\n"));
    free(text);
    style = style_of(false);
    style.utf8 = true;
    report_top(&analysis, ANALYZE_BY_OP, REPORT_SORT_TOTAL, 5, &style);
    fclose(style.out);
    ck_assert_ptr_nonnull(
        strstr(text, "\u2026 1 more op with 4.8% in all; -n 0 shows everything."));
    free(text);
}

TEST(code_in_no_file_is_named_alone)
{
    add(NULL, 0, NULL, "", 30)->module = "[vdso]";
    line[0].ops.n = 0;
    for (int by = ANALYZE_BY_LINE; by <= ANALYZE_BY_FUNCTION; by++) {
        struct report_style style = style_of(false);
        report_top(&analysis, (enum analyze_by)by, REPORT_SORT_TOTAL, 0, &style);
        fclose(style.out);
        ck_assert_ptr_nonnull(strstr(text, " [vdso]\n"));
        free(text);
    }
}

/* Numbers as wide as those of a real run. */
static void check_names(unsigned width, bool calls, const char *row)
{
    struct report_style style = style_of(false);
    style.width = width;
    report_top(&analysis, ANALYZE_BY_LINE, REPORT_SORT_TOTAL, 0, &style);
    fclose(style.out);
    ck_assert_msg(strstr(text, row) != NULL, "no %s at %u columns:\n%s", row, width, text);
    ck_assert_msg((strstr(text, " calls ") != NULL) == calls, "%u columns:\n%s", width, text);
    ck_assert_msg((strstr(text, " at peak ") != NULL) == (width >= 80), "%u columns:\n%s", width,
                  text);
    free(text);
}

TEST(names_are_whole_before_columns_of_little_use_are_there)
{
    struct analyze_line *network = add("network.c", 62, "network", "linear", 123456789),
                        *loss = add("loss.c", 7, "loss", "softmax_cross_entropy", 1234567);
    network->cost.record_bytes = loss->cost.record_bytes = 123456789;
    network->cost.calls = loss->cost.calls = 12345;
    check_names(140, true, " loss.c:7 softmax_cross_entropy loss\n");
    check_names(80, false, " network.c:62 linear network\n");
    check_names(60, false, " network.c:62 linea");
}

TEST(files_of_one_name_are_told_apart_by_their_folders)
{
    add("/one/src/f.c", 1, "f", "exp", 2);
    add("/two/src/f.c", 1, "f", "exp", 1);
    add("/f.c", 1, "f", "exp", 1);
    add("/one/src/f.c", 2, "g", "exp", 1); /* as among lines that hold what they called */
    struct report_style style = style_of(true);
    report_top(&analysis, ANALYZE_BY_LINE, REPORT_SORT_TOTAL, 0, &style);
    fclose(style.out);
    ck_assert_ptr_nonnull(strstr(text, " one/src/f.c:1 exp f\n"));
    ck_assert_ptr_nonnull(strstr(text, " two/src/f.c:1 exp f\n"));
    ck_assert_ptr_nonnull(strstr(text, " /f.c:1 exp f\n"));
    free(text);
    const char *file[4];
    ck_assert_uint_eq(analyze_files(&analysis, "f.c", file, 4), 3);
    ck_assert_uint_eq(analyze_files(&analysis, "/f.c", file, 4), 1); /* the whole name */
    ck_assert_uint_eq(analyze_files(&analysis, "src/f.c", file, 1), 2);
    ck_assert_uint_eq(analyze_files(&analysis, "/src/f.c", file, 4), 2);
    ck_assert_uint_eq(analyze_files(&analysis, "rc/f.c", file, 4), 0);
    ck_assert_uint_eq(analyze_files(&analysis, "", file, 4), 0);
    ck_assert_uint_eq(analyze_files(&analysis, NULL, file, 4), 3);
}

/* Of 1000 ns 600 in ops and sweeps, and 200 more that the profiler took there. */
TEST_EACH(what_part_ad_was_of_the_run_is_said_and_of_what_parts_that_is, 8)
{
    static const struct {
        uint64_t untimed, estimated_ns;
        bool is_sampled, without_times, has_steps;
        uint64_t runs, duration_ns;
        const char *said;
    } is[] = {
        {0, 0, false, false, false, 1, 1000,
         "\nAD is 80.0% of the run (800ns of 1.00us): forward 20.0%, backward 40.0%, the profiler "
         "20.0%.\n"},
        {0, 5, false, false, false, 1, 1000, "\nAD is ~80.0% of the run (800ns"},
        {1, 5, false, false, false, 1, 1000, "\nAD is at least 80.0% of the run (800ns"},
        {1, 5, true, false, false, 1, 7,
         "\nAD is 30.0% of the process (600ns of 2.00us): forward 10.0%, backward 20.0%.\n"},
        {0, 0, false, true, false, 1, 1000, NULL},
        {0, 0, false, false, true, 1, 1000, NULL},
        {0, 0, false, false, false, 2, 1000, NULL},
        {0, 0, false, false, false, 1, 0, NULL},
    };
    add(source, 3, "f", "exp", 200);
    add(source, 4, "f", "statement", 0)->cost.untimed_calls = is[_i].untimed;
    analysis.sum.estimated_backward_ns = is[_i].estimated_ns;
    analysis.total.overhead_ns = 200;
    analysis.total.process_cpu_ns = 2000;
    profile.is_sampled = is[_i].is_sampled;
    profile.without_times = is[_i].without_times;
    profile.has_steps = is[_i].has_steps;
    profile.runs = is[_i].runs;
    profile.duration_ns = is[_i].duration_ns;
    struct report_style style = style_of(false);
    report_top(&analysis, ANALYZE_BY_LINE, REPORT_SORT_TOTAL, 0, &style);
    fclose(style.out);
    if (is[_i].said)
        ck_assert_msg(strstr(text, is[_i].said) != NULL, "%s", text);
    else
        ck_assert_msg(strstr(text, "AD is") == NULL, "%s", text);
    free(text);
}

/* One look at its statements makes forward an estimate; none, and it is not known. */
TEST_EACH(the_totals_tell_what_is_measured_from_what_is_not, 3)
{
    static const struct {
        uint64_t untimed, ns, estimated_ns;
        const char *summary, *info;
    } is[] = {
        {0, 7, 0, "1 line, 0 tapes, forward 7ns, backward 14ns, 10B on tape",
         "\nforward 7ns\nbackward 14ns\n"},
        {1, 7, 7, "1 line, 0 tapes, forward ~7ns, backward ~14ns, 10B on tape",
         "\nforward ~7ns\nbackward ~14ns\n"},
        {1, 0, 7, "1 line, 0 tapes, forward -, backward ~0, 10B on tape",
         "\nforward -\nbackward ~0\n"},
    };
    add(source, 4, "f", "statement", is[_i].ns);
    static char name[] = "name";
    profile.path = profile.program = profile.working_directory = profile.options = name;
    profile.clock = profile.library_version = profile.collector = profile.end_reason = name;
    analysis.sum.untimed_calls = is[_i].untimed;
    analysis.sum.estimated_forward_ns = is[_i].ns ? is[_i].estimated_ns : 0;
    analysis.sum.estimated_backward_ns = is[_i].estimated_ns;
    struct report_style style = style_of(false);
    report_summary(&analysis, &style);
    expect(&style, is[_i].summary);
    style = style_of(false);
    report_info(&analysis, &style);
    fclose(style.out);
    for (char *at; (at = strstr(text, "  "));)
        memmove(at, at + 1, strlen(at));
    ck_assert_msg(strstr(text, is[_i].info) != NULL, "%s", text);
    free(text);
    style = style_of(false);
    style.json = true;
    report_info(&analysis, &style);
    fclose(style.out);
    ck_assert_int_eq(strstr(text, "\"forward_ns\": null") != NULL, is[_i].ns == 0);
    free(text);
}

TEST(a_profile_of_nothing_says_so)
{
    struct report_style style = style_of(false);
    report_top(&analysis, ANALYZE_BY_LINE, REPORT_SORT_TOTAL, 20, &style);
    expect(&style, "share total forward backward b/f expect tape at peak calls line, op, "
                   "function\n"
                   "    -     0       0        0   -      -    0       0     0 (all)\n"
                   "Nothing was measured.\n");
    style = style_of(false);
    ck_assert_int_eq(report_annotate(&analysis, source, "f", &style), 0);
    fclose(style.out);
    ck_assert_ptr_nonnull(strstr(text, " total\n"));
    free(text);
    style = style_of(false);
    report_summary(&analysis, &style);
    expect(&style, "0 lines, 0 tapes, forward 0, backward 0, 0 on tape");
    profile.is_sampled = true;
    for (int samples = 0; samples <= 2; samples++) {
        analysis.sum.samples = (uint64_t)samples;
        style = style_of(false);
        report_summary(&analysis, &style);
        expect(&style, samples == 1   ? "1 sample, 0 lines, forward 0, backward 0"
                       : samples == 0 ? "0 samples, 0 lines, forward 0, backward 0"
                                      : "2 samples, 0 lines, forward 0, backward 0");
    }
}

RUN_TESTS(setup, teardown)
