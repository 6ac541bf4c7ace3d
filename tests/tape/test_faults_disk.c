/* test_faults_disk.c: a tape whose statements go to a file has the gradients of one in memory, bit
 * for bit: after rewinds, with sections, forks, checkpoints and several sweeps. Calls to the system
 * that it makes fail in every way they may: either that is hidden, or there is one error that names
 * the folder and the reason, and the tape serves.
 */
#include <tapescope/ad_real.h>

#include "disk_folder.h"
#include "exhaustive.h"
#include "run_cases.h"
#include "shim.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 4, STEPS = 60000, BUDGET = 1 << 20 };

static const double start[N] = {0.5, -0.25, 0.75, 0.125};
static ad_real x[N];

static void begin(bool disk, uint64_t budget)
{
    tape_begin(&(ad_tape_options){.budget_bytes = budget, .spill = disk ? folder : NULL});
    check_ok(ad_tape_record_begin(tape));
    check_ok(ad_real_leaves(tape, N, start, x));
}

static void end(void)
{
    check_ok(ad_tape_record_end(tape));
    teardown_fine();
}

/* u[N] goes some steps on. */
static void steps(int from, int to, ad_real *u)
{
    for (int i = from; i < to && ad_tape_status(tape) == AD_OK; i++) {
        const int k = i % N;
        ad_set(&u[k], ad_real_sin(ad_real_add(ad_real_mul(u[k], u[(k + 1) % N]), x[(k + 2) % N])));
    }
}

static ad_status sweep(ad_real y, double *g)
{
    ad_status status = ad_tape_zero_gradients(tape);
    if (status == AD_OK)
        status = ad_real_backward(tape, y);
    return status == AD_OK ? ad_real_gradients(tape, N, x, g) : status;
}

static void plain(double *g)
{
    ad_real u[N];
    begin(false, 0);
    memcpy(u, x, sizeof x);
    steps(0, STEPS, u);
    check_ok(sweep(u[0], g));
    end();
}

TEST(gradients_are_those_of_memory_bit_for_bit)
{
    double expected[N], g[N];
    ad_real u[N];
    plain(expected);
    begin(true, BUDGET);
    for (int round = 0; round < 2; round++) {
        memcpy(u, x, sizeof x);
        steps(0, STEPS, u);
        check_ok(ad_tape_status(tape));
        ck_assert_uint_gt(stats().live_bytes, (uint64_t)(2 * BUDGET));
        const struct unnamed_files files = unnamed_files_of(folder);
        ck_assert_int_gt(files.allocated, (int64_t)(stats().live_bytes - BUDGET) * 9 / 10);
        ck_assert_int_eq(files.n, 1);
        ck_assert_uint_eq(stats().budget_bytes, BUDGET);
        for (int k = 0; k < 2; k++) {
            check_ok(sweep(u[0], g));
            ck_assert_mem_eq(g, expected, sizeof g);
        }
        check_ok(ad_tape_record_end(tape));
        check_ok(ad_tape_reset(tape));
        check_ok(ad_tape_record_begin(tape));
        check_ok(ad_real_leaves(tape, N, start, x));
    }
    end();
    check_gone();
}

/* A rewind to a place in the file, and recording on from there. */
TEST(a_rewind_takes_back_the_block_that_it_comes_to)
{
    double expected[N], g[N];
    ad_real u[N], at[3][N];
    ad_mark mark[3];
    plain(expected);
    begin(true, BUDGET);
    memcpy(u, x, sizeof x);
    for (int k = 0; k < 3; k++) {
        mark[k] = ad_tape_mark(tape);
        memcpy(at[k], u, sizeof u);
        steps(k * (STEPS / 3), (k + 1) * (STEPS / 3), u);
    }
    for (int k = 3; k-- > 0;) {
        check_ok(ad_tape_rewind(tape, mark[k]));
        memcpy(u, at[k], sizeof u);
        steps(0, 777, u); /* something else for a time */
        check_ok(sweep(u[0], g));
        check_ok(ad_tape_rewind(tape, mark[k]));
        memcpy(u, at[k], sizeof u);
        steps(k * (STEPS / 3), STEPS, u);
        check_ok(sweep(u[0], g));
        ck_assert_mem_eq(g, expected, sizeof g);
    }
    end();
    check_gone();
}

static void some_steps(ad_tape on, int64_t n_in, const ad_real *in, int64_t n_out, ad_real *out,
                       void *payload)
{
    (void)on, (void)n_in, (void)payload;
    ad_real u[N];
    memcpy(u, in, sizeof u);
    for (int i = 0; i < 20000; i++)
        ad_set(&u[i % N], ad_real_sin(ad_real_mul(u[i % N], in[(i + 1) % N])));
    memcpy(out, u, (size_t)n_out * sizeof *out);
}

/* Sections that are replaced, checkpoints that are computed again, and forks, behind what is on
 * disk. */
static void mixed(double *g)
{
    ad_real u[N], parts[2][N];
    ad_tape fork[2];
    memcpy(u, x, sizeof x);
    steps(0, STEPS / 2, u);
    check_ok(ad_real_checkpoint(tape, some_steps, NULL, N, u, N, u));
    steps(0, STEPS / 4, u);
    check_ok(ad_preaccumulate_begin(tape));
    steps(0, 200, u);
    check_ok(ad_preaccumulate_end(tape, N, u, NULL));
    steps(0, STEPS / 4, u);
    check_ok(ad_tape_fork(tape, 2, fork));
    for (int k = 0; k < 2; k++) {
        check_ok(ad_tape_record_begin(fork[k]));
        memcpy(parts[k], u, sizeof u);
        for (int i = 0; i < 500; i++)
            ad_set(&parts[k][i % N], ad_real_cos(ad_real_mul(parts[k][i % N], x[(i + k) % N])));
        check_ok(ad_tape_record_end(fork[k]));
    }
    for (int k = 0; k < 2; k++) {
        check_ok(ad_tape_join(tape, fork[k], N, parts[k]));
        ad_set(&u[k], ad_real_add(parts[k][0], parts[k][1]));
    }
    steps(0, STEPS / 4, u);
    for (int k = 0; k < 2; k++)
        check_ok(sweep(u[0], g));
}

TEST(sections_checkpoints_and_forks)
{
    double expected[N], g[N];
    begin(false, 0);
    mixed(expected);
    end();
    begin(true, 2 * BUDGET);
    mixed(g);
    ck_assert_mem_eq(g, expected, sizeof g);
    end();
    check_gone();
}

/* ---- the thread ---- */

/* How many threads of this process write to a tape's file; and the signals that each blocks. */
static int threads_that_write(uint64_t *blocked)
{
    DIR *tasks = opendir("/proc/self/task");
    int n = 0;
    const struct dirent *entry;
    while (tasks && (entry = readdir(tasks)) != NULL) {
        char path[320], line[256];
        bool writes = false;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *status = fopen(path, "r");
        while (status && fgets(line, sizeof line, status)) {
            writes = writes || strcmp(line, "Name:\ttapescope-disk\n") == 0;
            if (writes && strncmp(line, "SigBlk:", 7) == 0)
                *blocked = strtoull(line + 7, NULL, 16);
        }
        if (status)
            fclose(status);
        n += writes;
    }
    if (tasks)
        closedir(tasks);
    return n;
}

TEST(a_thread_writes_from_the_first_block_to_the_tapes_end)
{
    ad_real u[N];
    uint64_t blocked = 0;
    begin(true, BUDGET);
    ck_assert_int_eq(threads_that_write(&blocked), 0);
    memcpy(u, x, sizeof x);
    steps(0, STEPS, u);
    ck_assert_int_eq(threads_that_write(&blocked), 1);
    for (int k = 1; k < 32; k++)
        ck_assert(k == SIGKILL || k == SIGSTOP || blocked >> (k - 1) & 1);
    end();
    ck_assert_int_eq(threads_that_write(&blocked), 0);
    check_gone();
}

/* ---- faults ---- */

static void check_told(ad_status status)
{
    check_told_at(status, "test_faults_disk.c:");
}

/* Errors of failing calls that the tape told of. */
static int told;

/* Recording and two sweeps with the n-th call failing. Returns whether there were so many. */
static bool try_one(enum shim_kind kind, int at, bool sticky, const double *expected)
{
    double g[N];
    ad_real u[N];
    int failed = 0;
    const ad_mark mark = ad_tape_mark(tape);
    shim_arm(kind, at, sticky);
    memcpy(u, x, sizeof x);
    steps(0, STEPS, u);
    if (ad_tape_status(tape) != AD_OK) {
        shim_disarm();
        failed++;
        check_told(ad_tape_status(tape));
        check_ok(ad_tape_rewind(tape, mark));
        memcpy(u, x, sizeof x);
        steps(0, STEPS, u);
        shim_arm(kind, 0, false);
    }
    for (int k = 0; k < 2; k++) {
        const ad_status status = sweep(u[0], g);
        if (status == AD_OK) {
            ck_assert_mem_eq(g, expected, sizeof g);
            continue;
        }
        shim_disarm();
        failed++;
        check_told(status);
        shim_arm(kind, 0, false);
    }
    const int calls = shim_disarm();
    check_ok(sweep(u[0], g));
    ck_assert_mem_eq(g, expected, sizeof g);
    check_ok(ad_tape_rewind(tape, mark));
    told += failed;
    ck_assert_msg(failed == 0 || !shim_is_harmless(kind), "%s was not hidden",
                  shim_kind_name[kind]);
    return failed > 0 || (at > 0 && calls >= at);
}

/* All calls are alike, so the first and last ones, and some. */
TEST(calls_may_fail)
{
    static const enum shim_kind kinds[] = {SHIM_EIO, SHIM_ENOSPC, SHIM_EINTR, SHIM_HALF};
    static const int at[] = {1, 2, 3, 17, 40, 100};
    double expected[N];
    int reached = 0;
    plain(expected);
    begin(true, BUDGET);
    ck_assert(shim_watch(""));
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (int sticky = 0; sticky < 2; sticky++) {
            told = 0;
            for (size_t i = 0; i < sizeof at / sizeof *at && (i == 0 || !sticky); i++)
                reached += try_one(kinds[k], at[i], sticky, expected);
            for (int each = 1; exhaustive_is_asked() && try_one(kinds[k], each, sticky, expected);)
                each++;
            /* What fails once is tried again: a write with other blocks meanwhile. */
            const bool error = sticky && (kinds[k] == SHIM_EIO || kinds[k] == SHIM_ENOSPC);
            ck_assert_msg((told > 0) == error, "%s%s: told %d times", shim_kind_name[kinds[k]],
                          sticky ? " from then on" : "", told);
        }
    }
    ck_assert_int_gt(reached, 16);
    end();
    check_gone();
}

/* What is handed over and not written is memory: all of it together is within the budget. */
TEST(what_a_full_disk_leaves_in_memory_is_within_the_budget)
{
    ad_real u[N];
    begin(true, BUDGET);
    ck_assert(shim_watch(""));
    shim_arm(SHIM_ENOSPC, 1, true);
    memcpy(u, x, sizeof x);
    steps(0, STEPS, u);
    ck_assert_uint_le(stats().live_bytes, BUDGET);
    ck_assert_uint_gt(stats().live_bytes, BUDGET * 3 / 4);
    shim_disarm();
    check_told(ad_tape_status(tape));
    end();
    check_gone();
}

TEST(a_folder_that_is_none_is_told)
{
    static const char *const none[] = {"/nowhere/at/all", "/dev/null", ""};
    static const int why[] = {ENOENT, ENOTDIR, ENOENT};
    modules_find();
    for (int k = 0; k < 3; k++) {
        ck_assert_int_eq(ad_tape_create(&tape, &(ad_tape_options){.spill = none[k]}),
                         AD_ERROR_FILE);
        ck_assert_uint_eq(tape.slot, 0);
        ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), strerror(why[k])));
    }
    check_gone();
}

TEST(a_folder_may_be_removed)
{
    double expected[N], g[N];
    ad_real u[N];
    plain(expected);
    begin(true, BUDGET);
    ck_assert_int_eq(rmdir(folder), 0);
    memcpy(u, x, sizeof x);
    steps(0, STEPS, u);
    check_ok(sweep(u[0], g));
    ck_assert_mem_eq(g, expected, sizeof g);
    end();
}

/* Where files may not grow, a write would be a signal. */
TEST(a_limit_on_files_is_an_error_and_no_signal)
{
    ad_real u[N];
    tape_begin_limited(BUDGET, 20);
    check_ok(ad_tape_record_begin(tape));
    check_ok(ad_real_leaves(tape, N, start, x));
    memcpy(u, x, sizeof x);
    steps(0, STEPS, u);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), strerror(EFBIG)));
    check_told(ad_tape_status(tape));
    end();
    check_gone();
}

/* The child of fork(2) has the parent's file, and says so. */
TEST(a_forked_process_is_told)
{
    double expected[N], g[N];
    ad_real u[N];
    plain(expected);
    begin(true, BUDGET);
    memcpy(u, x, sizeof x);
    steps(0, STEPS, u);
    const pid_t child = fork();
    if (child == 0)
        _exit(sweep(u[0], g) == AD_ERROR_STATE && strstr(ad_tape_message(tape), "forked from") ? 0
                                                                                               : 1);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    check_ok(sweep(u[0], g));
    ck_assert_mem_eq(g, expected, sizeof g);
    end();
    check_gone();
}

/* A Jacobian reads its adjoints last: they stay, within the budget or not at all. */
TEST(a_jacobian_whose_adjoints_do_not_fit_says_so)
{
    double entry[N];
    ad_real u[N];
    begin(true, BUDGET / 4);
    memcpy(u, x, sizeof x);
    steps(0, STEPS, u);
    ck_assert_int_eq(ad_real_jacobian(tape, 1, u, N, x, entry), AD_ERROR_MEMORY);
    check_error_of(tape, AD_ERROR_MEMORY, "out of memory");
    end();
    check_gone();
}

RUN_TESTS(folder_make, NULL)
