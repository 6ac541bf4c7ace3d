/* test_adbench_files.c: what is read of ADBench's files, and what is refused.
 *
 * Files are written by the test itself.
 */
#include "bundle.h"
#include "gmm.h"
#include "lstm.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const struct problem_kind *kind;
    const char *text;
    size_t n_variables;
    double first, last; /* of x, or of its copies to half a percent */
} files[] = {
    {&gmm_kind, "2 1 3\n0.5\n1 2\n0.1 0.2 0.3\n1 1\n2 2\n3 3\n1.5 2\n", 6, 0.5, 0.3},
    {&lstm_kind, "1 2 1\n\n1 2 3 4 \n5 6 7 8\n\n9\n10\n11\n\n0.25\n0.75\n\n1\n0\n", 11, 1.0, 11.0},
    {&bundle_kind, "2 2 3\n1 2 3 4 5 6 7 8 9 10 11\n1 2 3\n0.5\n100 200\n", 31, 1.0, 0.5},
};

enum { FILES = sizeof files / sizeof *files };

static char folder[] = TEST_BINARY_DIR "/adbench.XXXXXX";
static char path[sizeof folder + 16];

static void make_folder(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file.txt", folder);
}

static void drop_folder(void)
{
    unlink(path);
    rmdir(folder);
}

static bool open_text(struct problem *problem, struct problem_case *spec,
                      const struct problem_kind *kind, const char *text, size_t length)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, length, file), length);
    ck_assert_int_eq(fclose(file), 0);
    *spec = (struct problem_case){.name = "file", .kind = kind, .file = "file.txt"};
    return problem_open(problem, spec, folder);
}

TEST_EACH(a_file_is_read_to_its_last_number, FILES)
{
    struct problem p;
    struct problem_case spec;
    ck_assert(open_text(&p, &spec, files[_i].kind, files[_i].text, strlen(files[_i].text)));
    ck_assert_uint_eq(p.n_variables, files[_i].n_variables);
    const double near = files[_i].kind == &bundle_kind ? 0.0051 : 0.0;
    ck_assert_double_le(fabs(p.x[0] - files[_i].first), near * files[_i].first);
    ck_assert_double_le(fabs(p.x[p.n_variables - 1] - files[_i].last), near * files[_i].last);
    problem_close(&p);
}

TEST(a_mixture_keeps_its_points_and_its_prior)
{
    struct problem p;
    struct problem_case spec;
    ck_assert(open_text(&p, &spec, files[0].kind, files[0].text, strlen(files[0].text)));
    const struct gmm *g = p.input;
    ck_assert_int_eq(g->n, 3);
    ck_assert_double_eq(g->points[5], 3.0);
    ck_assert_double_eq(g->gamma, 1.5);
    ck_assert_int_eq(g->m, 2);
    problem_close(&p);
}

/* What is told of such a file is of no interest here. */
static void be_quiet(void)
{
    if (!freopen("/dev/null", "w", stderr))
        ck_abort_msg("/dev/null");
}

static void refused(const struct problem_kind *kind, const char *text, size_t length)
{
    struct problem p;
    struct problem_case spec;
    ck_assert_msg(!open_text(&p, &spec, kind, text, length), "%.*s", (int)length, text);
    ck_assert_ptr_null(p.input);
    ck_assert_ptr_null(p.x);
}

TEST_EACH(a_file_that_lacks_numbers_is_refused, FILES)
{
    be_quiet();
    const char *text = files[_i].text, *space = " \n";
    for (size_t n = 0; text[n + strspn(text + n, space)] != '\0';) {
        refused(files[_i].kind, text, n);
        n += strspn(text + n, space);
        n += strcspn(text + n, space);
    }
}

TEST_EACH(words_are_no_numbers, FILES)
{
    be_quiet();
    const char *text = files[_i].text;
    char *wrong = strdup(text);
    ck_assert_ptr_nonnull(wrong);
    for (size_t n = 0; text[n] != '\0'; n++) {
        if (strchr(" \n", text[n]) || (n > 0 && !strchr(" \n", text[n - 1])))
            continue;
        wrong[n] = 'x';
        refused(files[_i].kind, wrong, strlen(wrong));
        wrong[n] = text[n];
    }
    free(wrong);
}

TEST_EACH(sizes_that_mean_nothing_are_refused, FILES)
{
    static const char *const sizes[] = {"0 1 3 ",         "1 0 3 ",          "1 1 0 ",
                                        "-1 1 3 ",        "2000000000 1 3 ", "1 2000000000 3 ",
                                        "1 1 2000000000 "};
    be_quiet();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
        refused(files[_i].kind, sizes[i], strlen(sizes[i]));
}

TEST(a_file_that_is_not_there_is_refused)
{
    be_quiet();
    for (const struct problem_case *c = problem_cases; c->name; ++c) {
        struct problem p;
        if (!c->file)
            continue;
        ck_assert_msg(!problem_open(&p, c, folder), "%s", c->name);
        ck_assert_ptr_null(p.input);
    }
}

RUN_TESTS(make_folder, drop_folder)
