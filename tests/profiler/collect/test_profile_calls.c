/* test_profile_calls.c: the calls that begin, write and end a profile, where they are not possible;
 * profiles by environment, and in the child of a fork.
 *
 * What the environment says is read before main(), so that those cases are this program once more,
 * with an argument.
 */
#include <tapescope/ad.h>

#include "run_cases.h"

#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MODULES TAPESCOPE_LIB_DIR "/tapescope"

static const ad_tape no_tape;
static char folder[64], path[PATH_MAX], program[PATH_MAX];

static const char *in_folder(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static off_t size_of(const char *name)
{
    struct stat st;
    return stat(in_folder(name), &st) == 0 ? st.st_size : -1;
}

static void setup(void)
{
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    ck_assert_int_gt(n, 0);
    program[n] = 0;
    strcpy(folder, "/tmp/tapescope-calls-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    setenv("TAPESCOPE_MODULE_DIR", MODULES, 1);
}

static void teardown(void)
{
    static const char *const names[] = {
        "a.prof", "b.prof", "tapescope.prof", "modules/tapescope-collect.so", "modules", "words"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        remove(in_folder(names[i]));
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}

static void expect(ad_status is, ad_status status, const char *text)
{
    ck_assert_int_eq(is, status);
    ck_assert_int_eq(ad_tape_status(no_tape), status);
    ck_assert_msg(strstr(ad_tape_message(no_tape), text) != NULL, "%s", ad_tape_message(no_tape));
    ad_tape_clear_error(no_tape);
}

TEST(without_a_profile_there_is_nothing_to_write_or_to_end)
{
    expect(ad_profile_stop(), AD_ERROR_STATE, "profile_stop: no profile is being taken");
    expect(ad_profile_write("b.prof"), AD_ERROR_STATE, "profile_write: no profile is being taken");
    expect(ad_profile_write(NULL), AD_ERROR_ARGUMENT, "profile_write: path is a null pointer");
    ck_assert_int_eq(size_of("b.prof"), -1);
}

TEST(a_second_profile_is_refused_and_the_first_goes_on)
{
    ck_assert_int_eq(ad_profile_start("a.prof"), AD_OK);
    expect(ad_profile_start("b.prof"), AD_ERROR_STATE, "a profile is being taken already");
    ck_assert_int_eq(size_of("b.prof"), -1);
    expect(ad_profile_write("/nowhere/b.prof"), AD_ERROR_PROFILE, "profile_write: ");
    ck_assert_int_eq(ad_profile_write("b.prof"), AD_OK);
    ck_assert_int_gt(size_of("b.prof"), 0);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    ck_assert_int_gt(size_of("a.prof"), 0);
    expect(ad_profile_stop(), AD_ERROR_STATE, "no profile is being taken");
}

TEST(without_a_name_the_profile_is_tapescope_prof)
{
    ck_assert_int_eq(ad_profile_start(NULL), AD_OK);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    ck_assert_int_gt(size_of("tapescope.prof"), 0);
}

TEST(a_child_has_no_profile_and_can_take_its_own)
{
    int status;
    ck_assert_int_eq(ad_profile_start("a.prof"), AD_OK);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        bool right = ad_profile_stop() == AD_ERROR_STATE && ad_profile_start("b.prof") == AD_OK &&
                     ad_profile_stop() == AD_OK;
        _exit(right ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_int_gt(size_of("b.prof"), 0);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    ck_assert_int_gt(size_of("a.prof"), 0);
}

TEST(a_collector_that_is_not_there_or_is_none_is_said)
{
    ck_assert_int_eq(mkdir(in_folder("modules"), 0700), 0);
    setenv("TAPESCOPE_MODULE_DIR", in_folder("modules"), 1);
    expect(ad_profile_start("a.prof"), AD_ERROR_PROFILE, "tapescope-collect.so");
    ck_assert_int_eq(symlink(MODULES "/tapescope-symbols.so", "modules/tapescope-collect.so"), 0);
    expect(ad_profile_start("a.prof"), AD_ERROR_PROFILE, "the collector module lacks");
    ck_assert_int_eq(size_of("a.prof"), -1);
}

/* ---- by environment ---- */

/* This program as a user's: one op, and whether the variable is gone for those it would start. */
static int child(void)
{
    double x = 2;
    ad_tape tape;
    const char *left = getenv("TAPESCOPE_PROFILE");
    if (left && *left)
        return 2;
    if (ad_tape_create(&tape, NULL) != AD_OK)
        return 3;
    ad_tensor y = ad_exp(ad_leaf(tape, AD_F64, 0, NULL, &x));
    return ad_backward(y) == AD_OK && ad_tape_destroy(tape) == AD_OK ? 0 : 4;
}

/* Runs it; what it says on standard error is read into `words`. */
static pid_t run(const char *profile, const char *record, char *words, size_t n)
{
    int status;
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        setenv("TAPESCOPE_PROFILE", profile, 1);
        if (record)
            setenv("TAPESCOPE_RECORD", record, 1);
        if (!freopen("words", "w", stderr))
            _exit(5);
        execl(program, program, "child", (char *)NULL);
        _exit(6);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
    FILE *f = fopen("words", "r");
    ck_assert_ptr_nonnull(f);
    words[fread(words, 1, n - 1, f)] = 0;
    fclose(f);
    return pid;
}

TEST(a_profile_by_environment_is_complete_when_the_program_ends)
{
    char words[1000], other[64];
    run("", NULL, words, sizeof words);
    ck_assert_str_eq(words, "");
    run("a.prof", NULL, words, sizeof words);
    ck_assert_str_eq(words, "");
    off_t size = size_of("a.prof");
    ck_assert_int_gt(size, 0);
    /* A recorded program's second process leaves the first one's file. */
    pid_t pid = run("a.prof", "1", words, sizeof words);
    ck_assert_msg(strstr(words, "a.prof holds another process") != NULL, "%s", words);
    snprintf(other, sizeof other, "a.prof.%ld", (long)pid);
    ck_assert_int_gt(size_of(other), 0);
    ck_assert_int_eq(size_of("a.prof"), size);
    remove(in_folder(other));
    /* What is no file is not in the way of another process. */
    run("/dev/null", "1", words, sizeof words);
    ck_assert_ptr_null(strstr(words, "another process"));
    run("b.prof", "1", words, sizeof words);
    ck_assert_str_eq(words, "");
    ck_assert_int_gt(size_of("b.prof"), 0);
}

TEST(a_program_whose_profile_cannot_be_taken_runs_all_the_same)
{
    char words[1000];
    run("/nowhere/a.prof", NULL, words, sizeof words);
    ck_assert_msg(strstr(words, "tapescope: no profile: ") != NULL, "%s", words);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "child") == 0)
        return child();
    return run_cases("profile calls", file_cases(&file_tests, setup, teardown));
}
