/* test_patterns.c: patterns of sparse derivatives from a program to its profile and its reports. */
#include "program_support.h"

#include "base_strings.h"

#include "run_cases.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The pattern found at the line with this label of patterns.c. */
static const struct analyze_pattern *find(const struct analyze_pattern *list, size_t n,
                                          const char *label)
{
    char *text = program_text(program_source("patterns.c"));
    const unsigned line = program_line(text, label);
    const struct analyze_pattern *found = NULL;
    free(text);
    for (size_t i = 0; i < n; i++)
        if (list[i].line.line == line)
            found = &list[i];
    if (!found)
        ck_abort_msg("no pattern of line %u, @%s", line, label);
    ck_assert_str_eq(base_file_name(found->line.file), "patterns.c");
    return found;
}

static void check_size(const struct analyze_pattern *p, enum read_pattern_kind kind, uint64_t rows,
                       uint64_t columns, uint64_t values, uint64_t calls)
{
    const struct read_pattern *f = p->found;
    if (f->kind != kind || f->rows != rows || f->columns != columns || f->values != values ||
        p->calls != calls)
        ck_abort_msg("kind %d, %llu x %llu with %llu, %llu calls", (int)f->kind,
                     (unsigned long long)f->rows, (unsigned long long)f->columns,
                     (unsigned long long)f->values, (unsigned long long)p->calls);
}

/* Cells of a picture whose values are those of which `is` says so. */
static void check_picture(const struct read_pattern *f, bool (*is)(uint64_t i, uint64_t j))
{
    uint64_t *want = calloc((size_t)f->height * f->width, sizeof *want);
    for (uint64_t i = 0; i < f->rows; i++)
        for (uint64_t j = 0; j < f->columns; j++)
            want[i * f->height / f->rows * f->width + j * f->width / f->columns] += is(i, j);
    ck_assert_mem_eq(f->cell, want, (size_t)f->height * f->width * sizeof *want);
    free(want);
}

static bool is_pair(uint64_t i, uint64_t j)
{
    return j == i || j == i + 1;
}

static bool is_diagonal(uint64_t i, uint64_t j)
{
    return i == j;
}

static bool is_arrow(uint64_t i, uint64_t j)
{
    return j == 0 || i == j;
}

static void check_patterns(const char *path)
{
    struct program_profile opened = program_open(path);
    size_t n;
    struct analyze_pattern *list = analyze_patterns(opened.analysis, &n);
    ck_assert_uint_eq(n, 3);
    ck_assert_uint_eq(opened.profile->patterns_left_out, 0);
    const struct analyze_pattern *p = find(list, n, "tensor_jacobian");
    check_size(p, READ_PATTERN_JACOBIAN, 95, 96, 2 * 95, 3);
    ck_assert(p->found->coloured && p->found->colours == 2);
    ck_assert(p->found->height == 64 && p->found->width == 64);
    check_picture(p->found, is_pair);
    p = find(list, n, "tensor_hessian");
    check_size(p, READ_PATTERN_HESSIAN, 96, 96, 96, 1);
    ck_assert(p->found->coloured && p->found->colours == 1);
    check_picture(p->found, is_diagonal);
    p = find(list, n, "real_jacobian"); /* the newest */
    check_size(p, READ_PATTERN_JACOBIAN, 5, 5, 9, 2);
    ck_assert(!p->found->coloured && p->found->height == 5 && p->found->width == 5);
    check_picture(p->found, is_arrow);
    free(list);
    program_close(&opened);
}

static void run(const char *verb, const char *option, const char *to, const char *from,
                const char *more)
{
    struct program_command command = {0};
    program_add_all(&command, TAPESCOPE_PROGRAM, verb, option, to, from, more, NULL);
    program_must(&command);
}

static void check_sum(const char *path)
{
    struct program_profile opened = program_open(path);
    size_t n;
    struct analyze_pattern *list = analyze_patterns(opened.analysis, &n);
    ck_assert_uint_eq(n, 3);
    const struct analyze_pattern *p = find(list, n, "tensor_jacobian");
    check_size(p, READ_PATTERN_JACOBIAN, 95, 96, 2 * 95, 6);
    check_picture(p->found, is_pair);
    free(list);
    program_close(&opened);
}

TEST(patterns_are_those_of_the_program_and_stay_in_packed_profiles_and_sums)
{
    program_build("patterns");
    const char *path = program_path("patterns.prof"), *other = program_path("other.prof");
    ck_assert_int_eq(program_record(path, program_path("patterns"), NULL), 0);
    check_patterns(path);
    run("merge", "-o", other, path, NULL);
    check_patterns(other);
    run("merge", "-o", other, path, path);
    check_sum(other);
    run("top", "--patterns", path, NULL, NULL);
    ck_assert_ptr_nonnull(strstr(program_output, "95 x 96      190 2.08       2     3 patterns.c"));
    run("top", "--patterns", "--json", path, NULL);
    ck_assert_ptr_nonnull(strstr(program_output, "\"colours\": null"));
    setenv("TAPESCOPE_OPTIONS", "time=sampled", 1); /* which has no account */
    ck_assert_int_eq(program_record(path, program_path("patterns"), NULL), 0);
    unsetenv("TAPESCOPE_OPTIONS");
    check_patterns(path);
}

RUN_TESTS(program_setup, program_teardown)
