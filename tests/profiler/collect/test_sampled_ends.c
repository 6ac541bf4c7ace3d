/* test_sampled_ends.c: processes that are sampled and fork, end in every way, or cannot write.
 *
 * A process that ends is a child of the test.
 */
#include "profile_frame.h"
#include "run_cases.h"
#include "sampled_support.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum end { EXIT, EXIT_AT_ONCE, ABORT, EXEC, KILLED, N_ENDS };

static void end_by(enum end end)
{
    char *const argv[] = {(char *)"true", NULL};
    switch (end) {
    case EXIT:
        exit(0);
    case EXIT_AT_ONCE:
        _exit(0);
    case ABORT:
        signal(SIGABRT, SIG_DFL);
        abort();
    case EXEC:
        execvp("true", argv);
        _exit(1);
    default:
        for (;;)
            sampled_compute(0.1);
    }
}

/* A child that is sampled at 10 kHz and ends. Returns the status of wait. */
static int run_child(enum end end, int round)
{
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        if (ad_profile_start_with(sampled_path, "time=sampled,tape=on,freq=10000") != AD_OK)
            _exit(9);
        sampled_compute(0.03);
        end_by(end);
        _exit(9);
    }
    int status;
    if (end == KILLED) {
        struct timespec left = {.tv_nsec = 1000000L * (7 * round % 97)};
        while (nanosleep(&left, &left) != 0) {
        }
        kill(child, SIGKILL);
    }
    while (waitpid(child, &status, 0) < 0)
        ck_assert_int_eq(errno, EINTR);
    return status;
}

TEST(however_the_process_ends_the_file_is_absent_complete_or_a_prefix)
{
    struct stat st;
    for (int round = 0; round < 40; round++) {
        const enum end end = round < 20 ? (enum end)(round % N_ENDS) : KILLED;
        unlink(sampled_path);
        const int status = run_child(end, round);
        if (end == EXIT || end == EXIT_AT_ONCE || end == EXEC)
            ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d: %x", end, status);
        else
            ck_assert_int_eq(WTERMSIG(status), end == ABORT ? SIGABRT : SIGKILL);
        if (stat(sampled_path, &st) != 0 || st.st_size == 0) {
            ck_assert_int_eq(end, KILLED);
            continue;
        }
        struct read_profile *profile = sampled_read(sampled_path);
        ck_assert(end != EXIT || profile->complete);
        read_profile_free(profile);
    }
}

/* As when the process was killed while it wrote. */
TEST(a_file_that_ends_between_any_two_frames_has_the_samples_of_its_threads)
{
    enum { MOST = 4096 };
    static long boundary[MOST];
    uint8_t head[PROFILE_FRAME_BYTES];
    int n = 0;
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,tape=on,freq=10000"), AD_OK);
    sampled_compute_until_sampled();
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    FILE *file = fopen(sampled_path, "rb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, PROFILE_MAGIC_BYTES, SEEK_SET), 0);
    while (n < MOST && fread(head, 1, sizeof head, file) == sizeof head) {
        uint32_t bytes, crc;
        ck_assert(profile_frame_get(head, &bytes, &crc));
        ck_assert_int_eq(fseek(file, (long)bytes, SEEK_CUR), 0);
        boundary[n++] = ftell(file);
    }
    fclose(file);
    ck_assert_int_lt(n, MOST);
    uint64_t samples = 0;
    int different = 0;
    for (int i = n; i-- > 0;) {
        ck_assert_int_eq(truncate(sampled_path, boundary[i]), 0);
        const uint64_t now = sampled_count(sampled_path);
        different += now != samples;
        samples = now;
    }
    ck_assert_int_gt(different, 0);
    ck_assert_uint_eq(samples, 0); /* of the header alone */
}

TEST(the_child_of_a_fork_is_not_sampled_and_computes_the_same)
{
    const double expected = sampled_compute(0);
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,freq=10000"), AD_OK);
    sampled_compute_until_sampled();
    const pid_t child = fork();
    if (child == 0) {
        struct sigaction now;
        const bool same = sampled_compute(0.1) == expected;
        const bool given = sigaction(SIGPROF, NULL, &now) == 0 && now.sa_handler == SIG_DFL;
        _exit(same && given ? 0 : 1);
    }
    int status;
    while (waitpid(child, &status, 0) < 0)
        ck_assert_int_eq(errno, EINTR);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    ck_assert_uint_gt(sampled_count(sampled_path), 0);
}

TEST(a_child_that_is_followed_has_a_profile_of_its_own)
{
    char name[200];
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,freq=2000,follow_fork=on"),
                     AD_OK);
    sampled_compute_until_sampled();
    const pid_t child = fork();
    if (child == 0) {
        sampled_compute_until_sampled();
        const pid_t grandchild = fork();
        if (grandchild == 0) {
            sampled_compute(0.02);
            _exit(ad_profile_stop() == AD_OK ? 0 : 1);
        }
        int status;
        while (waitpid(grandchild, &status, 0) < 0) {
        }
        snprintf(name, sizeof name, "%s.%ld", sampled_path, (long)grandchild);
        _exit(ad_profile_stop() == AD_OK && status == 0 && access(name, F_OK) == 0 ? 0 : 1);
    }
    int status;
    while (waitpid(child, &status, 0) < 0)
        ck_assert_int_eq(errno, EINTR);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    snprintf(name, sizeof name, "%s.%ld", sampled_path, (long)child);
    struct read_profile *profile = sampled_read(name);
    ck_assert(profile->complete);
    ck_assert_uint_eq(profile->pid, (uint64_t)child);
    ck_assert_uint_gt(profile->n_samples, 0);
    read_profile_free(profile);
    ck_assert_uint_gt(sampled_count(sampled_path), 0);
}

struct events {
    uint64_t thread, n, of_others;
};

static void count_event(void *payload, const struct read_profile *profile,
                        const struct read_event *event)
{
    struct events *events = payload;
    (void)profile;
    events->n++;
    events->of_others += event->thread != events->thread;
}

TEST(events_of_a_child_that_is_followed_are_of_its_own_thread)
{
    char name[200], error[400] = "";
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "timeline=1MiB,follow_fork=on"), AD_OK);
    sampled_compute(0);
    const pid_t child = fork();
    if (child == 0) {
        sampled_compute(0);
        _exit(ad_profile_stop() == AD_OK ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    snprintf(name, sizeof name, "%s.%ld", sampled_path, (long)child);
    struct events events = {.thread = (uint64_t)child};
    struct read_profile *profile =
        read_profile_events(name, count_event, &events, error, sizeof error);
    ck_assert_msg(profile != NULL, "%s", error);
    ck_assert_uint_gt(events.n, 0);
    ck_assert_uint_eq(events.of_others, 0);
    read_profile_free(profile);
}

/* ---- files that cannot be written ---- */

TEST(a_full_disk_is_one_warning_and_the_results_are_right)
{
    const double expected = sampled_compute(0);
    ck_assert_int_eq(ad_profile_start_with("/dev/full", "time=sampled,freq=5000"),
                     AD_ERROR_PROFILE);
    ck_assert_int_eq(symlink("/dev/null", sampled_path), 0); /* takes all, and is no file */
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,freq=5000"), AD_OK);
    ck_assert(sampled_compute(0.1) == expected);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
}

TEST(a_file_that_must_not_grow_is_one_warning_and_the_results_are_right)
{
    const double expected = sampled_compute(0);
    const struct rlimit small = {.rlim_cur = 8192, .rlim_max = RLIM_INFINITY};
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,freq=10000"), AD_OK);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    while (__atomic_load_n(&sampled_n_logged, __ATOMIC_ACQUIRE) == 0)
        ck_assert(sampled_compute(0.05) == expected);
    ck_assert_int_eq(ad_profile_stop(), AD_ERROR_PROFILE);
    ck_assert_int_eq(sampled_n_logged, 1);
    ck_assert_msg(strstr(sampled_logged, "the profile ends here"), "%s", sampled_logged);
    struct read_profile *profile = sampled_read(sampled_path);
    ck_assert(!profile->complete);
    read_profile_free(profile);
}

TEST(a_folder_that_is_not_there_is_an_error_and_the_signal_stays_the_programs)
{
    struct sigaction now;
    snprintf(sampled_path, sizeof sampled_path, "%s/none/a.prof", sampled_folder);
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled"), AD_ERROR_PROFILE);
    ck_assert_int_eq(sigaction(SIGPROF, NULL, &now), 0);
    ck_assert(now.sa_handler == SIG_DFL);
    sampled_compute(0.02);
}

RUN_TESTS(sampled_setup, sampled_teardown)
