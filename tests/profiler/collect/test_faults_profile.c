/* test_faults_profile.c: the profiler fails in every way that a file can, and the gradients are bit
 * for bit what they are without it.
 *
 * Each case is a process of its own, this program started again, because limits on files would
 * stop Check's messages as well. Cases run once for each way to take a profile.
 */
#include "exhaustive.h"
#include "fault_workloads.h"
#include "run_cases.h"

#include <check.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    /* Exit statuses of a case that went well: what the profiler said. */
    WROTE = 50,
    FAILED_AT_START,
    FAILED_AT_STOP,
    /* And of one that did not. */
    WRONG_GRADIENT = 70,
    WRONG_STATUS,
    WRONG_START,
    WRONG_STOP,
    WRONG_SIZE,
    NO_TEST
};

/* ---- in the process of a case ---- */

enum { MOST = 96, TURNS = 4 };
static struct fault_results expected[MOST];
static bool opens_none;     /* workloads that open files are left out, */
static bool grows_none;     /* or those whose files grow */
static int turn, turns = 1; /* of those left, one in `turns` is run */

static bool is_run(int i)
{
    const struct fault_workload *w = &fault_workloads[i];
    return (i + turn) % turns == 0 && !(opens_none && fault_opens_files(w)) &&
           !(grows_none && fault_grows_files(w));
}

/* Runs the workloads; 0, or the exit status. */
static int run_all(struct fault_results *results, const char *snapshot)
{
    ad_tape tape;
    if (fault_workload_count > MOST ||
        ad_tape_create(&tape, &(ad_tape_options){.reserve_bytes = 16 << 20}) != AD_OK)
        return NO_TEST;
    for (int i = 0; i < fault_workload_count; i++) {
        if (!is_run(i))
            continue;
        if (fault_run(&fault_workloads[i], tape, &results[i]) != AD_OK || fault_wrong[0])
            return WRONG_STATUS;
        if (snapshot && ad_profile_write(snapshot) == AD_OK)
            return WRONG_STATUS;
        if (ad_tape_status(tape) != AD_OK || ad_tape_reset(tape) != AD_OK)
            return WRONG_STATUS;
    }
    return ad_tape_destroy(tape) == AD_OK ? 0 : WRONG_STATUS;
}

static int run_and_compare(const char *snapshot)
{
    static struct fault_results got[MOST];
    int wrong = run_all(got, snapshot);
    if (wrong)
        return wrong;
    return memcmp(got, expected, sizeof got) == 0 ? 0 : WRONG_GRADIENT;
}

/* Takes a profile into path; what happened. */
static int profile(const char *path, const char *snapshot)
{
    const ad_tape thread = {0, 0};
    ad_status started = ad_profile_start(path);
    if (started != AD_OK && (started != AD_ERROR_PROFILE || !strstr(ad_tape_message(thread), ": ")))
        return WRONG_START;
    ad_tape_clear_error(thread);
    int wrong = run_and_compare(snapshot);
    if (!wrong)
        wrong = run_and_compare(snapshot);
    if (wrong)
        return wrong;
    ad_tape_clear_error(thread);
    ad_status stopped = ad_profile_stop();
    if (started != AD_OK)
        return stopped == AD_ERROR_STATE ? FAILED_AT_START : WRONG_STOP;
    if (stopped == AD_OK)
        return WROTE;
    return stopped == AD_ERROR_PROFILE && strstr(ad_tape_message(thread), "cannot write")
               ? FAILED_AT_STOP
               : WRONG_STOP;
}

static int limit(int what, rlim_t most)
{
    struct rlimit now;
    if (getrlimit((__rlimit_resource_t)what, &now) != 0)
        return -1;
    now.rlim_cur = most;
    return setrlimit((__rlimit_resource_t)what, &now);
}

static int child(const char *how, const char *path, const char *number, const char *shift)
{
    struct stat st;
    alarm(60); /* where it hangs */
    opens_none = strcmp(how, "files") == 0;
    grows_none = strcmp(how, "size") == 0;
    turn = atoi(shift);
    turns = exhaustive_is_asked() ? 1 : TURNS;
    int wrong = run_all(expected, NULL);
    if (wrong)
        return wrong;
    if (strcmp(how, "snapshot") == 0)
        return profile(path, number);
    if (strcmp(how, "size") == 0 && limit(RLIMIT_FSIZE, (rlim_t)atol(number)) != 0)
        return NO_TEST;
    struct rlimit files, size = {RLIM_INFINITY, RLIM_INFINITY};
    getrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_FSIZE, &size);
    if (strcmp(how, "files") == 0 && limit(RLIMIT_NOFILE, (rlim_t)atol(number)) != 0)
        return NO_TEST;
    int happened = profile(path, NULL);
    /* What looks for leaks in the end opens files, what counts lines writes them. */
    setrlimit(RLIMIT_NOFILE, &files);
    size.rlim_cur = size.rlim_max;
    setrlimit(RLIMIT_FSIZE, &size);
    if (strcmp(how, "size") == 0 && stat(path, &st) == 0 && st.st_size > atol(number))
        return WRONG_SIZE;
    return happened;
}

/* ---- the tests ---- */

/* A case runs one workload in TURNS, the next case the next (exhaustive.h). */
static int n_runs;

static char folder[64], path[128];

/* This program; asked before a test enters a name space of its own, where a changed root shows. */
static char program[PATH_MAX];

static void setup(void)
{
    strcpy(folder, "/tmp/tapescope-faults-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.prof", folder);
    /* The clock moves 1 ms at each reading: the collector writes many times. */
    setenv("TAPESCOPE_CLOCK", "step:1000000", 1);
}

static void teardown(void)
{
    remove(path);
    ck_assert_int_eq(rmdir(folder), 0);
}

/* TAPESCOPE_OPTIONS of the cases. */
static const char *const way[] = {"", "timeline=1MiB,depth=3", "time=off",
                                  "time=sampled,tape=on,freq=10000", "time=sampled,freq=10000"};
enum { WAYS = sizeof way / sizeof *way };

/* Whether the tests take this case in this way: one of three (exhaustive.h). */
static bool is_taken(int number, size_t i)
{
    return ((size_t)number + i) % (exhaustive_is_asked() ? 1 : 3) == 0;
}

static void take_by(int number)
{
    setenv("TAPESCOPE_OPTIONS", way[number], 1);
    n_runs = number;
}

/* How often what is read there until its end warns that the profile ends. */
static int count_warnings(int fd)
{
    char line[PATH_MAX + 200];
    int n = 0;
    FILE *said = fdopen(fd, "r");
    ck_assert_ptr_nonnull(said);
    while (fgets(line, sizeof line, said))
        n += strstr(line, "the profile ends here") != NULL;
    fclose(said);
    return n;
}

/* Runs a case; returns its exit status. A profile that breaks off is said once, and no other is. */
static int run(const char *how, const char *file, const char *number)
{
    int status, said[2];
    char shift[12];
    snprintf(shift, sizeof shift, "%d", n_runs++);
    ck_assert_int_eq(pipe(said), 0); /* which no limit on files stops */
    fflush(NULL);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        if (dup2(said[1], STDERR_FILENO) < 0)
            _exit(NO_TEST);
        close(said[0]);
        close(said[1]);
        execl(program, program, how, file, number, shift, (char *)NULL);
        _exit(NO_TEST);
    }
    close(said[1]);
    const int warnings = count_warnings(said[0]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status), "%s %s %s: ended by signal %d", how, file, number,
                  WTERMSIG(status));
    const int happened = WEXITSTATUS(status);
    ck_assert_msg(happened >= WROTE && happened <= FAILED_AT_STOP, "%s %s %s: %d", how, file,
                  number, happened);
    ck_assert_msg(warnings == (happened == FAILED_AT_STOP), "%s %s %s: %d warnings", how, file,
                  number, warnings);
    return happened;
}

TEST_EACH(with_a_profile_that_can_be_written_gradients_are_the_same, WAYS)
{
    take_by(_i);
    ck_assert_int_eq(run("path", path, ""), WROTE);
}

TEST_EACH(with_a_path_that_cannot_be_written_gradients_are_the_same, WAYS)
{
    take_by(_i);
    char missing[160], long_name[PATH_MAX + 100];
    snprintf(missing, sizeof missing, "%s/no/a.prof", folder);
    memset(long_name, 'x', sizeof long_name);
    long_name[0] = '/';
    long_name[sizeof long_name - 1] = 0;
    const char *const paths[] = {missing, folder, "/dev/full", "/proc/version", "", long_name};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (is_taken(_i, i))
            ck_assert_msg(run("path", paths[i], "") == FAILED_AT_START, "%.100s", paths[i]);
}

TEST_EACH(with_a_file_that_may_not_grow_gradients_are_the_same, WAYS)
{
    take_by(_i);
    static const char *const sizes[] = {"0",    "1",    "8",    "63",    "64",    "200",
                                        "1000", "4095", "4096", "20000", "65536", "1000000"};
    int seen[3] = {0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (is_taken(_i, i))
            seen[run("size", path, sizes[i]) - WROTE]++;
    ck_assert_int_gt(seen[FAILED_AT_START - WROTE], 0);
    /* A profile of samples has no certain size: a little less than the last had. */
    while (seen[FAILED_AT_STOP - WROTE] == 0) {
        char size[24];
        struct stat whole;
        const int same = n_runs;
        ck_assert_int_eq(run("path", path, ""), WROTE);
        n_runs = same;
        ck_assert_int_eq(stat(path, &whole), 0);
        snprintf(size, sizeof size, "%lld", (long long)whole.st_size - 40);
        seen[run("size", path, size) - WROTE]++;
    }
    ck_assert_int_gt(seen[FAILED_AT_STOP - WROTE], 0);
}

TEST_EACH(with_no_descriptor_left_gradients_are_the_same, WAYS)
{
    take_by(_i);
    ck_assert_int_eq(run("files", path, "3"), FAILED_AT_START);
}

TEST_EACH(with_snapshots_that_cannot_be_written_the_profile_goes_on, WAYS)
{
    const char *const paths[] = {"/dev/full", folder};
    take_by(_i);
    for (int i = 0; i < 2; i++)
        if (i == _i % 2 || exhaustive_is_asked())
            ck_assert_int_eq(run("snapshot", path, paths[i]), WROTE);
}

/* Where a small disk is to be. In a name space of its own it goes with this test's process, however
 * that ends. */
static void make_disk(char *disk, size_t n)
{
    snprintf(disk, n, "%s/disk", folder);
    ck_assert_int_eq(mkdir(disk, 0700), 0);
    if (unshare(CLONE_NEWNS) == 0)
        (void)mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static bool mount_disk(const char *disk, const char *options)
{
    if (geteuid() == 0 && mount("none", disk, "tmpfs", 0, options) == 0)
        return true;
    printf("skipped: no small disk can be mounted: %s\n",
           geteuid() != 0 ? "not the superuser" : strerror(errno));
    return false;
}

TEST_EACH(on_a_disk_that_runs_full_gradients_are_the_same, WAYS)
{
    char disk[128], file[192];
    static const char *const sizes[] = {"size=4k", "size=8k", "size=32k"};
    int failed_at_stop = 0;
    take_by(_i);
    make_disk(disk, sizeof disk);
    snprintf(file, sizeof file, "%s/a.prof", disk);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (strstr(way[_i], "sampled") && !is_taken(_i, i)) /* they take most of the time */
            continue;
        if (!mount_disk(disk, sizes[i])) {
            failed_at_stop = -1;
            break;
        }
        int happened = run("path", file, "");
        failed_at_stop += happened == FAILED_AT_STOP;
        ck_assert_int_eq(umount(disk), 0);
    }
    /* Samples are as many as there is time for, and may fit into the page behind the header. */
    ck_assert(failed_at_stop != 0 || strstr(way[_i], "sampled"));
    ck_assert_int_eq(rmdir(disk), 0);
}

/* The superuser may write to any folder but on a disk that is read-only. */
TEST_EACH(in_a_folder_that_is_read_only_gradients_are_the_same, WAYS)
{
    char disk[128], file[192];
    take_by(_i);
    make_disk(disk, sizeof disk);
    snprintf(file, sizeof file, "%s/a.prof", disk);
    const bool mounted = geteuid() == 0 && mount_disk(disk, "size=64k");
    if (mounted)
        ck_assert_int_eq(mount("none", disk, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL), 0);
    else
        ck_assert_int_eq(chmod(disk, 0500), 0);
    if (mounted || geteuid() != 0)
        ck_assert_int_eq(run("path", file, ""), FAILED_AT_START);
    if (mounted)
        ck_assert_int_eq(umount(disk), 0);
    ck_assert_int_eq(rmdir(disk), 0);
}

TEST(without_the_modules_gradients_are_the_same)
{
    setenv("TAPESCOPE_MODULE_DIR", folder, 1);
    ck_assert_int_eq(run("path", path, ""), FAILED_AT_START);
    /* A profile that was asked for from outside: the program runs all the same. */
    setenv("TAPESCOPE_PROFILE", path, 1);
    ck_assert_int_eq(run("path", path, ""), FAILED_AT_START);
    unsetenv("TAPESCOPE_PROFILE");
}

TEST(with_a_module_that_is_none_gradients_are_the_same)
{
    char module[160];
    snprintf(module, sizeof module, "%s/tapescope-collect.so", folder);
    FILE *f = fopen(module, "w");
    ck_assert_ptr_nonnull(f);
    fputs("not an object", f);
    fclose(f);
    setenv("TAPESCOPE_MODULE_DIR", folder, 1);
    ck_assert_int_eq(run("path", path, ""), FAILED_AT_START);
    remove(module);
}

int main(int argc, char **argv)
{
    if (argc == 5)
        return child(argv[1], argv[2], argv[3], argv[4]);
    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0)
        return EXIT_FAILURE;
    return run_cases("faults_profile", file_cases(&file_tests, setup, teardown));
}
