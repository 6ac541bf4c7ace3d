/* test_crash.c: programs that crash, are killed, fork or replace themselves while they are
 * recorded, with single events and without.
 *
 * The clock moves 1 ms at each reading, so that the collector writes several times within a
 * hundred ops, at most as far apart as the time until then.
 */
#include "program_support.h"
#include "run_cases.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OPS = 100 }; /* that crash.c runs before its end */

/* How they are recorded. */
static const char *const way[] = {"", "timeline=64KiB,depth=4"};
enum { WAYS = sizeof way / sizeof *way };

static void setup(void)
{
    program_setup();
    setenv("TAPESCOPE_CLOCK", "step:1000000", 1);
    /* A sanitizer would catch the signal and end the program by another. */
    setenv("ASAN_OPTIONS", "handle_segv=0:handle_abort=0:detect_leaks=0", 1);
    setenv("TSAN_OPTIONS", "handle_segv=0:handle_abort=0", 1);
    program_build("crash");
}

/* Records crash.c; its exit status must be passed on. */
static void record(const char *how, int expected)
{
    int status = program_record(program_path("crash.prof"), program_path("crash"), how);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == expected,
                  "%s: status %#x instead of exit status %d: %s", how, (unsigned)status, expected,
                  program_output);
}

/* One line: the program, the words, and the profile's name. */
static void check_message(const char *words)
{
    char start[2 * PATH_MAX];
    snprintf(start, sizeof start, "tapescope: %s%s", program_path("crash"), words);
    ck_assert_msg(strncmp(program_output, start, strlen(start)) == 0, "%s instead of %s",
                  program_output, start);
    ck_assert_ptr_nonnull(strstr(program_output, "crash.prof"));
    const char *end = strchr(program_output, '\n');
    ck_assert_msg(end && !end[1], "more than a line: %s", program_output);
}

static uint64_t tanh_calls(const struct analyze_result *analysis)
{
    char *text = program_text(program_source("crash.c"));
    const struct analyze_line *line =
        program_find(analysis, "crash.c", program_line(text, "tanh"), "tanh");
    free(text);
    return line ? line->cost.calls : 0;
}

/* The profile has what was known when it was last written: at least half of it all. */
static void check_prefix(void)
{
    struct program_profile opened = program_open(program_path("crash.prof"));
    uint64_t calls = tanh_calls(opened.analysis);
    ck_assert(!opened.profile->complete);
    ck_assert_uint_ge(calls, OPS / 2);
    ck_assert_uint_le(calls, OPS);
    program_check_sums(opened.analysis);
    program_close(&opened);
}

static void record_by(int number)
{
    setenv("TAPESCOPE_OPTIONS", way[number], 1);
}

TEST_EACH(a_program_that_dies_leaves_what_was_written_and_its_status, 4 * WAYS)
{
    static const struct {
        const char *how, *words;
        int status;
    } cases[] = {
        {"segv", " was killed by SIGSEGV; ", 128 + SIGSEGV},
        {"abort", " was killed by SIGABRT; ", 128 + SIGABRT},
        {"kill", " was killed by SIGKILL; ", 128 + SIGKILL},
        {"_exit", " exited with status 7; ", 7},
    };
    record_by(_i % WAYS);
    record(cases[_i / WAYS].how, cases[_i / WAYS].status);
    check_message(cases[_i / WAYS].words);
    check_prefix();
}

TEST_EACH(a_program_that_replaces_itself_leaves_its_profile_to_what_it_was, WAYS)
{
    record_by(_i);
    record("exec", 3);
    check_message(" exited with status 3; ");
    check_prefix();
}

TEST_EACH(a_program_that_returns_a_status_has_a_complete_profile, WAYS)
{
    record_by(_i);
    record("return", 3);
    check_message(" exited with status 3; wrote ");
    struct program_profile opened = program_open(program_path("crash.prof"));
    ck_assert(opened.profile->complete);
    ck_assert((opened.profile->n_events > OPS) == (_i > 0));
    ck_assert_uint_eq(tanh_calls(opened.analysis), OPS);
    program_check_sums(opened.analysis);
    program_close(&opened);
}

TEST_EACH(children_of_a_fork_write_nothing_and_the_parent_goes_on, WAYS)
{
    record_by(_i);
    record("fork", 0);
    struct program_profile opened = program_open(program_path("crash.prof"));
    ck_assert(opened.profile->complete);
    ck_assert_ptr_null(opened.profile->warning);
    ck_assert_uint_eq(tanh_calls(opened.analysis), 2 * OPS);
    ck_assert_uint_eq(opened.analysis->total.tapes, 1);
    program_check_sums(opened.analysis);
    program_close(&opened);
}

/* SIGKILL or SIGTERM from another process, in the middle of the program's work. */
TEST_EACH(a_busy_program_that_is_killed_leaves_a_readable_prefix, 2)
{
    int pid_pipe[2];
    char number[16];
    const int sent[] = {SIGKILL, SIGTERM};
    const char *const words[] = {" was killed by SIGKILL; ", " was killed by SIGTERM; "};
    ck_assert_int_eq(pipe(pid_pipe), 0);
    snprintf(number, sizeof number, "%d", pid_pipe[1]);
    setenv("CRASH_PIPE", number, 1);
    pid_t killer = fork();
    ck_assert_int_ge(killer, 0);
    if (killer == 0) { /* the program says its id once it has worked for a while */
        pid_t program = 0;
        if (read(pid_pipe[0], &program, sizeof program) != (ssize_t)sizeof program || program <= 1)
            _exit(1);
        _exit(kill(program, sent[_i]) == 0 ? 0 : 1);
    }
    record("run", 128 + sent[_i]);
    int status;
    ck_assert_int_eq(waitpid(killer, &status, 0), killer);
    ck_assert_int_eq(status, 0);
    check_message(words[_i]);
    struct program_profile opened = program_open(program_path("crash.prof"));
    ck_assert(!opened.profile->complete);
    ck_assert_uint_ge(tanh_calls(opened.analysis), OPS / 2);
    program_check_sums(opened.analysis);
    program_close(&opened);
}

RUN_TESTS(setup, program_teardown)
