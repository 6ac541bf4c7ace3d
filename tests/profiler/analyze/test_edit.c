/* test_edit.c: which line is which after an edit, of profiles made by hand. */
#include "analyze_join.h"
#include "read.h"
#include "run_cases.h"

#include <check.h>
#include <stdlib.h>

enum { MOST = 32, BASE, NOW };

static struct analyze_line lines[2][MOST];
static struct analyze_result result[2];
static struct read_profile profile[2];
static struct read_mapping mapping[2];
static uint8_t build[2];
static struct analyze_edit *edit;

/* A row of x.c. */
struct row {
    uint32_t line;
    const char *function, *op;
};

static void make(int side, const char *file, const struct row *row, size_t n)
{
    const int i = side - BASE;
    for (size_t k = 0; k < n; k++) {
        lines[i][k] = (struct analyze_line){.file = file,
                                            .function = row[k].function,
                                            .module = i ? "/b/program" : "/a/program",
                                            .line = row[k].line,
                                            .ops = {.name = {row[k].op}, .n = 1},
                                            .cost = {.calls = 1, .peak_bytes = row[k].line}};
    }
    mapping[i] = (struct read_mapping){
        .path = i ? "/b/program" : "/a/program", .build_id = &build[i], .build_id_bytes = 1};
    profile[i] = (struct read_profile){.mapping = &mapping[i], .n_mappings = 1};
    result[i] = (struct analyze_result){.profile = &profile[i], .line = lines[i], .n_lines = n};
}
#define MAKE(side, file, ...)                                                                      \
    make(side, file, (const struct row[]){__VA_ARGS__},                                            \
         sizeof((const struct row[]){__VA_ARGS__}) / sizeof(struct row))

static void setup(void)
{
    build[0] = 1;
    build[1] = 2;
}

static void teardown(void)
{
    analyze_edit_free(edit);
    edit = NULL;
}

/* What becomes of a line of x.c. */
static uint32_t becomes(uint32_t line)
{
    analyze_edit_free(edit);
    edit = analyze_edit_make(&result[0], &result[1]);
    return analyze_edit_line(edit, lines[0][0].file, line);
}

/* The pairs of the join: each base line's number, and what it was joined with; 0: nothing. */
static uint32_t joined(uint32_t line, bool *moved)
{
    struct analyze_join join;
    const struct analyze_result *both[] = {&result[0], &result[1]};
    uint32_t with = 0;
    size_t rows = 0;
    analyze_join_make(&join, both, 2, ANALYZE_BY_LINE, true);
    for (size_t i = 0; i < join.n_rows; i++) {
        const struct analyze_line *const *of = join.row[i].line;
        rows += of[0] && of[1] ? 2 : 1;
        if (of[0] && of[0]->line == line) {
            with = of[1] ? of[1]->line : 0;
            *moved = join.row[i].moved;
        }
    }
    ck_assert_uint_eq(rows, result[0].n_lines + result[1].n_lines);
    analyze_join_free(&join);
    return with;
}

/* Rows whose numbers are those of other rows in the other profile are not these. */
TEST(two_lines_put_above)
{
    MAKE(BASE, "x.c", {60, "f", "linear"}, {61, "f", "linear"}, {62, "f", "linear"});
    MAKE(NOW, "x.c", {62, "f", "linear"}, {63, "f", "linear"}, {64, "f", "linear"});
    bool moved = false;
    for (uint32_t line = 60; line <= 62; line++) {
        ck_assert_uint_eq(becomes(line), line + 2);
        ck_assert_uint_eq(joined(line, &moved), line + 2);
        ck_assert(moved);
    }
    MAKE(BASE, "x.c", {78, "main", "constant"}, {79, "main", "constant"});
    MAKE(NOW, "x.c", {79, "main", "constant"}, {80, "main", "constant"});
    ck_assert_uint_eq(becomes(78), 79);
    ck_assert_uint_eq(joined(79, &moved), 80);
}

TEST(a_line_put_between)
{
    MAKE(BASE, "x.c", {10, "f", "mul"}, {12, "f", "mul"}, {20, "f", "mul"}, {21, "f", "add"},
         {22, "f", "mul"});
    MAKE(NOW, "x.c", {10, "f", "mul"}, {12, "f", "mul"}, {22, "f", "mul"}, {23, "f", "add"},
         {24, "f", "mul"});
    bool moved = true;
    ck_assert_uint_eq(becomes(10), 10);
    ck_assert_uint_eq(becomes(12), 12);
    ck_assert_uint_eq(becomes(20), 22);
    ck_assert_uint_eq(becomes(22), 24);
    ck_assert_uint_eq(joined(12, &moved), 12);
    ck_assert(!moved);
    ck_assert_uint_eq(joined(20, &moved), 22);
    ck_assert(moved);
    /* Lines without a row of their own, as those of calls: as the rows around them. */
    ck_assert_uint_eq(becomes(11), 11);
    ck_assert_uint_eq(becomes(30), 32);
    ck_assert_uint_eq(becomes(5), 5);
    ck_assert_uint_eq(becomes(15), 0); /* above or below the new lines? */
}

TEST(a_line_that_is_gone_or_new)
{
    MAKE(BASE, "x.c", {10, "f", "exp"}, {11, "f", "log"}, {12, "f", "exp"}, {13, "f", "sin"});
    MAKE(NOW, "x.c", {10, "f", "exp"}, {11, "f", "exp"}, {12, "f", "sin"}, {13, "f", "tan"});
    bool moved = true;
    ck_assert_uint_eq(joined(10, &moved), 10);
    ck_assert_uint_eq(joined(11, &moved), 0);
    ck_assert_uint_eq(joined(12, &moved), 11);
    ck_assert_uint_eq(joined(13, &moved), 12);
}

/* Other lines ran, and no line has moved: one row that fits elsewhere is no edit. */
TEST(a_row_that_fits_by_chance)
{
    MAKE(BASE, "x.c", {10, "f", "mul"}, {20, "f", "mul"}, {30, "g", "add"}, {40, "g", "sub"});
    MAKE(NOW, "x.c", {20, "f", "mul"}, {25, "f", "mul"}, {30, "g", "add"}, {40, "g", "sub"});
    ck_assert_uint_eq(becomes(20), 20);
    ck_assert_uint_eq(becomes(30), 30);
}

TEST(one_build_has_not_moved)
{
    build[1] = build[0];
    MAKE(BASE, "x.c", {10, "f", "mul"}, {11, "f", "mul"});
    MAKE(NOW, "x.c", {11, "f", "mul"}, {12, "f", "mul"});
    bool moved = true;
    ck_assert_uint_eq(becomes(11), 11);
    ck_assert_ptr_null(edit);
    ck_assert_uint_eq(joined(11, &moved), 11);
    ck_assert(!moved);
}

TEST(sources_lie_elsewhere)
{
    MAKE(BASE, "/a/x.c", {10, "f", "mul"}, {11, "f", "mul"}, {12, "f", "mul"});
    MAKE(NOW, "/b/x.c", {11, "f", "mul"}, {12, "f", "mul"}, {13, "f", "mul"});
    bool moved = false;
    ck_assert_uint_eq(becomes(11), 12);
    ck_assert_uint_eq(joined(11, &moved), 12);
}

TEST(nothing_in_common)
{
    MAKE(BASE, "x.c", {10, "f", "mul"});
    MAKE(NOW, "x.c", {10, "g", "mul"});
    ck_assert_uint_eq(becomes(10), 10);
    result[0].n_lines = result[1].n_lines = 0;
    ck_assert_uint_eq(becomes(10), 10);
}

RUN_TESTS(setup, teardown)
