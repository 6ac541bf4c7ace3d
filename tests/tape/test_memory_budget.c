/* test_memory_budget.c: the default budget, from made-up folders /proc and /sys. */
#include "run_cases.h"
#include "tape_memory.h"

#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define GIB ((uint64_t)1 << 30)
#define NO_FILE NULL

static char root[64], path[PATH_MAX];

static const char *under(const char *name)
{
    snprintf(path, sizeof path, "%s%s", root, name);
    return path;
}

static const char *const folders[] = {"",        "/proc",          "/proc/self",        "/sys",
                                      "/sys/fs", "/sys/fs/cgroup", "/sys/fs/cgroup/box"};
static const char *const files[] = {"/proc/meminfo", "/proc/self/cgroup",
                                    "/sys/fs/cgroup/box/memory.max",
                                    "/sys/fs/cgroup/box/memory.current"};
enum {
    FOLDERS = sizeof folders / sizeof *folders,
    FILES = sizeof files / sizeof *files,
};

static void setup(void)
{
    strcpy(root, "/tmp/tapescope-budget-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    for (int i = 1; i < FOLDERS; i++)
        ck_assert_int_eq(mkdir(under(folders[i]), 0700), 0);
}

static void teardown(void)
{
    for (int i = 0; i < FILES; i++)
        remove(under(files[i]));
    for (int i = FOLDERS; i-- > 0;)
        ck_assert_int_eq(remove(under(folders[i])), 0);
}

/* Writes the files that are not NULL, in the order of `files`; returns the budget. */
static uint64_t budget(const char *const text[FILES])
{
    for (int i = 0; i < FILES; i++) {
        remove(under(files[i]));
        if (!text[i])
            continue;
        FILE *f = fopen(under(files[i]), "w");
        ck_assert_ptr_nonnull(f);
        fputs(text[i], f);
        ck_assert_int_eq(fclose(f), 0);
    }
    return tape_memory_budget_under(root);
}

#define EIGHT_GIB "MemTotal:       16777216 kB\nMemAvailable:    8388608 kB\nBuffers: 7 kB\n"
#define BOX "12:cpuset:/elsewhere\n0::/box\n"

TEST(the_budget_is_nine_tenths_of_the_least_that_is_known)
{
    const struct {
        const char *text[FILES];
        uint64_t least; /* 0: 64 GiB stands for "not known" */
    } cases[] = {
        {{NO_FILE, NO_FILE, NO_FILE, NO_FILE}, 0},
        {{"MemTotal: 5 kB\n", NO_FILE, NO_FILE, NO_FILE}, 0},
        {{EIGHT_GIB, NO_FILE, NO_FILE, NO_FILE}, 8 * GIB},
        {{EIGHT_GIB, BOX, NO_FILE, NO_FILE}, 8 * GIB},
        {{EIGHT_GIB, BOX, "max\n", "1073741824\n"}, 8 * GIB},
        {{EIGHT_GIB, BOX, "", "1073741824\n"}, 8 * GIB},
        {{EIGHT_GIB, BOX, ":\n", "1073741824\n"}, 8 * GIB},
        {{EIGHT_GIB, BOX, "4294967296\n", NO_FILE}, 8 * GIB},
        {{EIGHT_GIB, BOX, "4294967296\n", "1073741824\n"}, 3 * GIB},
        {{EIGHT_GIB, BOX, "42949672960\n", "1073741824\n"}, 8 * GIB},
        {{EIGHT_GIB, "1:name=systemd:/box\n", "4294967296\n", "1073741824\n"}, 8 * GIB},
        {{NO_FILE, BOX, "4294967296\n", "1073741824\n"}, 3 * GIB},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint64_t right = cases[i].least ? cases[i].least / 10 * 9 : 64 * GIB;
        const uint64_t is = budget(cases[i].text);
        ck_assert_msg(is == right, "case %zu: %llu, not %llu", i, (unsigned long long)is,
                      (unsigned long long)right);
    }
}

TEST(a_control_group_that_is_full_leaves_one_huge_page)
{
    const char *const equal[FILES] = {EIGHT_GIB, BOX, "1073741824\n", "1073741824\n"};
    const char *const over[FILES] = {EIGHT_GIB, BOX, "1073741824\n", "2073741824\n"};
    const char *const nearly[FILES] = {EIGHT_GIB, BOX, "1073741824\n", "1073741820\n"};
    ck_assert_uint_eq(budget(equal), TAPE_HUGE_PAGE);
    ck_assert_uint_eq(budget(over), TAPE_HUGE_PAGE);
    ck_assert_uint_eq(budget(nearly), TAPE_HUGE_PAGE);
}

TEST(this_machine_has_a_budget)
{
    ck_assert_uint_ge(tape_memory_default_budget(), TAPE_HUGE_PAGE);
}

RUN_TESTS(setup, teardown)
