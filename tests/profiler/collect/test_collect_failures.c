/* test_collect_failures.c: the collector where the file, the system or the program stand in its
 * way.
 */
#include "collect_support.h"
#include "run_cases.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(a_path_that_cannot_be_written_gives_path_and_reason)
{
    char missing[PATH_MAX], expected[2 * PATH_MAX];
    snprintf(missing, sizeof missing, "%.100s/no/a.prof", collect_folder);
    const char *const at[] = {collect_folder, missing, "/dev/full"};
    const char *const why[] = {"Is a directory", "No such file or directory",
                               "No space left on device"};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_ptr_null(collect_try_open(at[i]));
        snprintf(expected, sizeof expected, "cannot write %s: %s", at[i], why[i]);
        ck_assert_str_eq(collect_error, expected);
    }
}

/* Sends standard error to `to`; returns what restores it. */
static int capture_errors(const char *to)
{
    int old = dup(STDERR_FILENO);
    int fd = open(to, O_RDWR | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(dup2(fd, STDERR_FILENO), 0);
    close(fd);
    return old;
}

static void restore_errors(int old)
{
    dup2(old, STDERR_FILENO);
    close(old);
}

TEST(a_file_that_may_not_grow_warns_once_and_stays_readable)
{
    char line[1024], expected[PATH_MAX + 100];
    struct stat st;
    struct rlimit limit, old;
    collect_start();
    collect_flush(collect_make_tape(0, 1), false);
    ck_assert_int_eq(stat(collect_path, &st), 0);
    int standard_error = capture_errors(collect_other_path);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = old;
    limit.rlim_cur = (rlim_t)st.st_size + 20;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    collect_flush(collect_make_tape(1, 1), false); /* SIGXFSZ would end this test */
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    collect_flush(collect_make_tape(2, 1), false);
    collect_flush(&collect_tapes[0], true);
    sigset_t pending;
    sigpending(&pending);
    ck_assert(!sigismember(&pending, SIGXFSZ));
    ck_assert_int_eq(collect->close(collect, collect_error, sizeof collect_error), -1);
    restore_errors(standard_error);

    snprintf(expected, sizeof expected, "cannot write %s: File too large", collect_path);
    ck_assert_str_eq(collect_error, expected);
    FILE *warning = fopen(collect_other_path, "r");
    ck_assert_ptr_nonnull(fgets(line, sizeof line, warning));
    snprintf(expected, sizeof expected,
             "tapescope: cannot write %s: File too large; the profile ends here\n", collect_path);
    ck_assert_str_eq(line, expected);
    ck_assert_ptr_null(fgets(line, sizeof line, warning));
    fclose(warning);
    collect_read(collect_path);
    ck_assert_uint_eq(collect_profile.bytes, (size_t)st.st_size);
    ck_assert_uint_eq(collect_count_ledgers(1), 1);
    ck_assert_str_eq(collect_end_reason(), "none");
}

TEST(a_forked_child_writes_nothing)
{
    collect_start();
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        collect_flush(collect_make_tape(0, 1), false);
        collect_flush(&collect_tapes[0], true);
        bool refused = collect->snapshot(collect, collect_other_path, collect_error,
                                         sizeof collect_error) == -1;
        _exit(refused && collect->close(collect, collect_error, sizeof collect_error) == 0 ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    collect_flush(collect_make_tape(1, 1), false);
    collect_stop();
    collect_read(collect_path);
    ck_assert_uint_eq(collect_count_ledgers(0) + collect_count_ledgers(1), 0);
    ck_assert_uint_eq(collect_count_ledgers(2), 1);
    ck_assert_str_eq(collect_end_reason(), "stop");
}

TEST(a_second_collector_does_not_take_the_file_of_a_running_one)
{
    collect_start();
    ck_assert_ptr_null(collect_try_open(collect_path));
    ck_assert_ptr_nonnull(strstr(collect_error, "a running program writes its profile there"));
    collect_stop();
    collect_start();
    collect_stop();
    collect_read(collect_path);
    ck_assert_str_eq(collect_end_reason(), "stop");
}

TEST(a_descriptor_that_the_program_reused_is_left_alone)
{
    char target[PATH_MAX], link[64];
    collect_start();
    int victim = -1;
    for (int fd = 3; fd < 256 && victim < 0; fd++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, target, sizeof target - 1);
        if (n > 0 && (size_t)n == strlen(collect_path) &&
            memcmp(target, collect_path, (size_t)n) == 0)
            victim = fd;
    }
    ck_assert_int_ge(victim, 3);
    int standard_error = capture_errors("/dev/null");
    int own = open(collect_other_path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_eq(dup2(own, victim), victim);
    errno = EDOM;
    collect_flush(collect_make_tape(0, 1), false);
    ck_assert_int_eq(errno, EDOM);
    ck_assert_int_eq(collect->close(collect, collect_error, sizeof collect_error), -1);
    restore_errors(standard_error);
    struct stat st;
    ck_assert_int_eq(fstat(victim, &st), 0); /* still open, and empty */
    ck_assert_int_eq(st.st_size, 0);
    close(own);
    close(victim);
}

TEST(a_pipe_whose_reader_goes_ends_the_profile_and_nothing_else)
{
    ck_assert_int_eq(mkfifo(collect_path, 0600), 0);
    int reader = open(collect_path, O_RDONLY | O_NONBLOCK);
    ck_assert_int_ge(reader, 0);
    collect_start();
    close(reader);
    int standard_error = capture_errors("/dev/null");
    collect_flush(collect_make_tape(0, 1), false); /* SIGPIPE would end this test */
    ck_assert_int_eq(collect->close(collect, collect_error, sizeof collect_error), -1);
    restore_errors(standard_error);
    sigset_t pending;
    sigpending(&pending);
    ck_assert(!sigismember(&pending, SIGPIPE));
    ck_assert_ptr_nonnull(strstr(collect_error, "Broken pipe"));
}

TEST(standard_input_that_the_program_closed_stays_the_programs_to_open)
{
    int input = dup(STDIN_FILENO);
    close(STDIN_FILENO);
    collect_start();
    collect_flush(collect_make_tape(0, 1), false);
    ck_assert_int_eq(open("/dev/null", O_RDONLY), STDIN_FILENO);
    collect_stop();
    if (input >= 0)
        ck_assert_int_eq(dup2(input, STDIN_FILENO), STDIN_FILENO);
    collect_read(collect_path);
    ck_assert_str_eq(collect_end_reason(), "stop");
}

TEST(a_killed_program_leaves_what_was_flushed)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        collect_start();
        collect_flush(collect_make_tape(0, 1), false);
        collect_flush(&collect_tapes[0], true);
        (void)kill(getpid(), SIGKILL);
        _exit(1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    collect_read(collect_path);
    ck_assert_uint_eq(collect_nth_ledger(0, 0)->tapes, 1);
    ck_assert_uint_eq(collect_nth_ledger(0, 0)->n_row, 2);
    ck_assert_str_eq(collect_end_reason(), "none");
}

RUN_TESTS(collect_setup, collect_teardown)
