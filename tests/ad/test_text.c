/* test_text.c: quantities, cells, paths and sources as text, at the ends of what they take. */
#include "report_source_text.h"
#include "report_table.h"
#include "report_units.h"
#include "run_cases.h"
#include "symbols_path.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TEST(quantities_take_three_digits_and_a_unit)
{
    char buf[REPORT_UNITS_ROOM];
    ck_assert_str_eq(report_units_time(buf, 0, false), "0");
    ck_assert_str_eq(report_units_time(buf, 999, false), "999ns");
    ck_assert_str_eq(report_units_time(buf, 1000, false), "1.00us");
    ck_assert_str_eq(report_units_time(buf, 1000, true), "1.00\u00b5s");
    ck_assert_str_eq(report_units_time(buf, 12340, false), "12.3us");
    ck_assert_str_eq(report_units_time(buf, 999499, false), "999us");
    ck_assert_str_eq(report_units_time(buf, 999500, false), "1.00ms");
    ck_assert_str_eq(report_units_time(buf, 4000000000000, false), "4000s");
    ck_assert_str_eq(report_units_bytes(buf, 0), "0");
    ck_assert_str_eq(report_units_bytes(buf, 999), "999B");
    ck_assert_str_eq(report_units_bytes(buf, 1000), "0.98KiB");
    ck_assert_str_eq(report_units_bytes(buf, 1 << 20), "1.00MiB");
    ck_assert_str_eq(report_units_bytes(buf, UINT64_MAX), "16.0EiB");
    ck_assert_str_eq(report_units_count(buf, 9999), "9999");
    ck_assert_str_eq(report_units_count(buf, 10000), "10.0k");
    ck_assert_str_eq(report_units_count(buf, UINT64_MAX), "18.4E");
    ck_assert_str_eq(report_units_share(buf, 1, 3), "33.3%");
    ck_assert_str_eq(report_units_share(buf, 2, 2), "100%");
    ck_assert_str_eq(report_units_share(buf, 0, 0), "-");
    ck_assert_str_eq(report_units_ratio(buf, 213, 100), "2.13");
    ck_assert_str_eq(report_units_ratio(buf, 1, 0), "-");
    ck_assert_str_eq(report_units_exact(buf, UINT64_MAX), "18446744073709551615");
}

TEST(what_is_held_against_a_bound_shows_on_which_side_it_is)
{
    char buf[REPORT_UNITS_ROOM];
    ck_assert_str_eq(report_units_against(buf, 0.09412, 0.5), "0.0941");
    ck_assert_str_eq(report_units_against(buf, 3.0004, 3), "3.0004");
    ck_assert_str_eq(report_units_against(buf, 2.9996, 3), "3");
    ck_assert_str_eq(report_units_against(buf, 3, 3), "3");
    ck_assert_str_eq(report_units_against(buf, 1e300, 1), "1e+300");
    ck_assert_str_eq(report_units_against(buf, 1.0 / 3, 0.333), "0.3333");
}

TEST(text_holds_no_control_characters_and_is_cut_to_its_limit)
{
    static const struct {
        const char *text;
        unsigned limit;
        bool utf8;
        const char *shown;
        unsigned width;
    } cases[] = {
        {"", 0, false, "", 0},
        {"a\tb", 0, false, "a       b", 9},
        {"\033[1m\177", 0, false, "?[1m?", 5},
        {"\u00e9\u20ac\U0001f600", 0, true, "\u00e9\u20ac\U0001f600", 3},
        {"\xc2\x85\u00a0", 0, true, "?\u00a0", 2}, /* a control character of ISO 8859, a space */
        {"\xff\xc3(", 0, true,
         "?"
         "?(",
         3},                           /* no characters, and one broken off */
        {"\xe2\x82", 0, true, "?", 1}, /* the end of the text in the middle of one */
        {"abcd", 4, false, "abcd", 4},
        {"abcdef", 4, false, "abc~", 4},
        {"abcdef", 4, true, "abc\u2026", 4},
        {"\tx", 3, false, "  ~", 3},
        {"abc", 1, false, "~", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *shown = NULL;
        size_t n;
        FILE *out = open_memstream(&shown, &n);
        unsigned width = report_table_put_text(out, cases[i].text, cases[i].limit, cases[i].utf8);
        fclose(out);
        ck_assert_str_eq(shown, cases[i].shown);
        ck_assert_uint_eq(width, cases[i].width);
        free(shown);
    }
}

TEST(a_table_aligns_its_columns_and_cuts_the_last)
{
    struct report_table *table = report_table_new();
    char *shown = NULL;
    size_t n;
    FILE *out = open_memstream(&shown, &n);
    report_table_cell(table, "before any row: dropped");
    report_table_column(table, REPORT_TABLE_RIGHT, "n");
    report_table_column(table, REPORT_TABLE_LEFT, NULL);
    report_table_column(table, REPORT_TABLE_LEFT, "text");
    for (int i = 0; i < REPORT_TABLE_MAX_COLUMNS; i++) /* more than there is room for */
        report_table_column(table, REPORT_TABLE_LEFT, NULL);
    report_table_row(table);
    report_table_cell(table, "12");
    report_table_cell(table, "a");
    report_table_cell(table, "long enough");
    report_table_row(table);
    report_table_cellf(table, "%d", 1);
    report_table_color(table, "33");
    report_table_row(table);
    for (int i = 0; i < REPORT_TABLE_MAX_COLUMNS + 3; i++)
        report_table_cell(table, i == 2 ? "x" : "");
    report_table_print(table, out, 0, false);
    fclose(out);
    report_table_free(table);
    ck_assert_str_eq(shown, " n   text\n"
                            "12 a long enough\n"
                            "\033[33m 1\033[0m\n"
                            "     x\n");
    free(shown);
}

TEST(columns_of_the_highest_rank_go_first_where_there_is_no_room)
{
    static const struct {
        unsigned width;
        const char *expected;
    } cases[] = {
        {0, "a bbbb cccc last, which is long\n1 22   33   4\n"},
        {31, "a bbbb cccc last, which is long\n1 22   33   4\n"},
        {30, "a bbbb last, which is long\n1 22   4\n"},
        {25, "a last, which is long\n1 4\n"},
        {10, "a last, w~\n1 4\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct report_table *table = report_table_new();
        char *shown = NULL;
        size_t n;
        FILE *out = open_memstream(&shown, &n);
        report_table_column(table, REPORT_TABLE_LEFT, "a");
        report_table_column(table, REPORT_TABLE_LEFT, "bbbb");
        report_table_optional(table, 1);
        report_table_column(table, REPORT_TABLE_LEFT, "cccc");
        report_table_optional(table, 2);
        report_table_column(table, REPORT_TABLE_LEFT, "last, which is long");
        report_table_row(table);
        report_table_cell(table, "1");
        report_table_cell(table, "22");
        report_table_cell(table, "33");
        report_table_cell(table, "4");
        report_table_print(table, out, cases[i].width, false);
        fclose(out);
        report_table_free(table);
        ck_assert_str_eq(shown, cases[i].expected);
        free(shown);
    }
}

TEST(a_table_without_headings_prints_rows_alone)
{
    struct report_table *table = report_table_new();
    char *shown = NULL;
    size_t n;
    FILE *out = open_memstream(&shown, &n);
    report_table_column(table, REPORT_TABLE_LEFT, NULL);
    report_table_color(table, "1"); /* of no row */
    for (int i = 0; i < 40; i++) {
        report_table_row(table);
        report_table_cell(table, "twelve bytes");
    }
    report_table_print(table, out, 4, false); /* eight columns are the least */
    fclose(out);
    report_table_free(table);
    report_table_free(NULL);
    ck_assert_uint_eq(n, 40 * strlen("twelve ~\n"));
    ck_assert_int_eq(strncmp(shown, "twelve ~\ntwelve ~\n", 18), 0);
    free(shown);
}

TEST(a_path_has_one_spelling_and_one_copy)
{
    static const struct {
        const char *directory, *path, *spelling;
    } cases[] = {
        {NULL, "/a/../b", "/b"},
        {"/x", "y/./z//w", "/x/y/z/w"},
        {"/x", "../../y", "/y"},
        {"/x", "/y", "/x/y"},
        {NULL, "/..", "/"},
        {NULL, "../a", "../a"},
        {NULL, "../../a", "../../a"},
        {NULL, "a/../..", ".."},
        {"a", "../../b", "../b"},
        {NULL, "a/..", "."},
        {NULL, "a/b/../c", "a/c"},
        {NULL, "b../c/..", "b.."},
        {NULL, "", "."},
    };
    struct base_strings pool = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = symbols_path_add(&pool, cases[i].directory, cases[i].path);
        ck_assert_str_eq(path, cases[i].spelling);
        ck_assert_ptr_eq(path, symbols_path_text(&pool, cases[i].spelling));
    }
    const char *kept[200];
    char text[16];
    for (int turn = 0; turn < 2; turn++) { /* the pool grows, and what it has stays in its place */
        for (int i = 0; i < 200; i++) {
            snprintf(text, sizeof text, "/f%d", i);
            const char *path = symbols_path_text(&pool, text);
            ck_assert_str_eq(path, text);
            ck_assert(turn == 0 || path == kept[i]);
            kept[i] = path;
        }
    }
    base_strings_free(&pool);
}

TEST(a_source_has_lines_however_they_end)
{
    static const char bytes[] = "one\r\n\0two\n\r\nlast";
    char path[] = "/tmp/tapescope-text-XXXXXX";
    struct report_source_text source;
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(report_source_text_read(&source, path), 0);
    ck_assert_uint_eq(source.n_lines, 0);
    ck_assert_ptr_null(report_source_text_line(&source, 1));
    report_source_text_free(&source);
    ck_assert_int_eq(write(fd, bytes, sizeof bytes - 1), sizeof bytes - 1);
    ck_assert_int_eq(report_source_text_read(&source, path), 0);
    ck_assert_uint_eq(source.n_lines, 4);
    ck_assert_ptr_null(report_source_text_line(&source, 0));
    ck_assert_str_eq(report_source_text_line(&source, 1), "one");
    ck_assert_str_eq(report_source_text_line(&source, 2), " two");
    ck_assert_str_eq(report_source_text_line(&source, 3), "");
    ck_assert_str_eq(report_source_text_line(&source, 4), "last");
    ck_assert_ptr_null(report_source_text_line(&source, 5));
    report_source_text_free(&source);
    ck_assert_int_eq(ftruncate(fd, ((off_t)64 << 20) + 1), 0); /* no source is that large */
    ck_assert_int_eq(report_source_text_read(&source, path), EINVAL);
    close(fd);
    unlink(path);
    ck_assert_int_eq(report_source_text_read(&source, path), ENOENT);
    ck_assert_int_eq(report_source_text_read(&source, "/tmp"), EINVAL);
    ck_assert_uint_eq(source.n_lines, 0);
}

RUN_TESTS(NULL, NULL)
