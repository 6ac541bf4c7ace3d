/* test_faults_states.c: loops of checkpoints whose states are in a file: every call to the system
 * that they make fails once, in every way it may. Either it is hidden, and results are the same bit
 * for bit, or there is one error that names the folder and the reason. Then the tape is as it was,
 * nothing is left open or beside it, and it serves.
 */
#include <tapescope/ad_real.h>

#include "loop_checks.h"
#include "run_cases.h"
#include "shim.h"
#include "unnamed_files.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

enum { N = 3, STEPS = 7, MOST_CALLS = 400 };

static char folder[] = "states-XXXXXX";
static const double start[N] = {0.5, -0.25, 0.75};
static ad_real x[N];
static ad_tensor leaf;

static void setup(void)
{
    memcpy(folder, "states-XXXXXX", sizeof folder);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    tape_begin(NULL);
    check_ok(ad_tape_record_begin(tape));
    check_ok(ad_real_leaves(tape, N, start, x));
    leaf = ad_leaf(tape, AD_F64, 1, (int64_t[]){N}, start);
}

static int files_open(void)
{
    return unnamed_files_of(folder).n;
}

static void end(void)
{
    check_ok(ad_tape_record_end(tape));
    teardown_fine();
    ck_assert_int_eq(folder_entries(folder), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}

static bool numbers(ad_tape on, int64_t i, int64_t n_in, const ad_real *in, int64_t n_out,
                    ad_real *out, void *payload)
{
    (void)on, (void)n_in, (void)payload;
    for (int64_t k = 0; k < n_out; k++)
        ad_set(&out[k], ad_real_sin(ad_real_add(in[(k + 1) % n_out], in[N - 1])));
    return i != STEPS - 1;
}

static bool tensors(ad_tape on, int64_t i, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                    void *payload)
{
    (void)on, (void)n_in, (void)n_out, (void)payload;
    out[0] = ad_sin(ad_add(in[0], ad_mul(in[0], in[1])));
    return i != STEPS - 1;
}

/* Four ways: of tensors or of numbers, of a known number of steps or not. */
struct disk_loop {
    bool of_tensors, until;
    ad_checkpoint_budget budget;
    ad_real u[N];
    ad_tensor y;
};

static ad_status record(struct disk_loop *l)
{
    const int64_t n = l->until ? AD_UNTIL_LAST : STEPS;
    const ad_tensor in[2] = {leaf, leaf};
    memcpy(l->u, x, sizeof x);
    if (l->of_tensors) {
        const ad_status status =
            ad_checkpoint_loop(tape, n, tensors, NULL, 2, in, 1, &l->y, &l->budget);
        if (status == AD_OK)
            l->y = ad_sum(l->y);
        return status;
    }
    return ad_real_checkpoint_loop(tape, n, numbers, NULL, N, l->u, N - 1, l->u, &l->budget);
}

static ad_status sweep(const struct disk_loop *l, double *g)
{
    ad_status status = ad_tape_zero_gradients(tape);
    if (l->of_tensors && status == AD_OK)
        status = ad_backward(l->y);
    if (!l->of_tensors && status == AD_OK)
        status = ad_real_backward(tape, l->u[0]);
    if (status != AD_OK)
        return status;
    return l->of_tensors ? ad_gradient(leaf, g, N) : ad_real_gradients(tape, N, x, g);
}

static struct disk_loop loop_of(int way, const char *directory)
{
    return (struct disk_loop){
        .of_tensors = way % 2, .until = way / 2, .budget = {.states = 3, .directory = directory}};
}

/* The gradient as without a file. */
static void expect(int way, double *g)
{
    struct disk_loop plain = loop_of(way, NULL);
    const ad_mark mark = ad_tape_mark(tape);
    check_ok(record(&plain));
    check_ok(sweep(&plain, g));
    check_ok(ad_tape_rewind(tape, mark));
}

/* One error, with the folder and a reason. */
static void check_told(ad_status status, int way, enum shim_kind kind, int at)
{
    ck_assert_msg(status == AD_ERROR_FILE && ad_tape_status(tape) == AD_ERROR_FILE &&
                      strstr(ad_tape_message(tape), way % 2 ? "checkpoint_loop: cannot "
                                                            : "real_checkpoint_loop: cannot ") &&
                      strstr(ad_tape_message(tape), folder) &&
                      strstr(ad_tape_message(tape), "test_faults_states.c:"),
                  "way %d, %s %d: %s", way, shim_kind_name[kind], at, ad_tape_message(tape));
    ad_tape_clear_error(tape);
}

/* Recording, and two sweeps, with the n-th call failing. Returns whether there were so many. */
static bool try_one(int way, enum shim_kind kind, int at, bool sticky, const double *expected)
{
    double g[N];
    struct disk_loop l = loop_of(way, folder);
    const ad_mark mark = ad_tape_mark(tape);
    const ad_stats before = stats_but_peak();
    int failed = 0;
    shim_arm(kind, at, sticky);
    ad_status status = record(&l);
    if (status != AD_OK) {
        shim_disarm();
        failed++;
        check_told(status, way, kind, at);
        check_same(before);
        ck_assert_int_eq(files_open(), 0);
        check_ok(record(&l));
        shim_arm(kind, 0, false);
    }
    const ad_stats recorded = stats_but_peak();
    for (int k = 0; k < 2; k++) {
        status = sweep(&l, g);
        if (status == AD_OK)
            continue;
        shim_disarm();
        failed++;
        check_told(status, way, kind, at);
        check_same(recorded);
        shim_arm(kind, 0, false);
    }
    const int calls = shim_disarm();
    check_ok(sweep(&l, g));
    ck_assert_mem_eq(g, expected, N * sizeof *g);
    ck_assert_int_eq(files_open(), 1);
    check_ok(ad_tape_rewind(tape, mark));
    check_same(before);
    ck_assert_int_eq(files_open(), 0);
    ck_assert_int_eq(folder_entries(folder), 0);
    ck_assert_msg(failed == 0 || !shim_is_harmless(kind), "%s was not hidden",
                  shim_kind_name[kind]);
    return failed > 0 || (at > 0 && calls >= at);
}

TEST_EACH(each_call_may_fail, 4)
{
    static const enum shim_kind kinds[] = {SHIM_EIO,   SHIM_ENOSPC,   SHIM_EMFILE, SHIM_NAMED,
                                           SHIM_EINTR, SHIM_ONE_BYTE, SHIM_HALF};
    double expected[N];
    expect(_i, expected);
    ck_assert(shim_watch(""));
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int sticky = 0; sticky < 2; sticky++) {
            int at = 1;
            while (at < MOST_CALLS && try_one(_i, kinds[k], at, sticky, expected))
                at++;
            ck_assert_int_gt(at, 1);
            ck_assert_int_lt(at, MOST_CALLS);
        }
}

/* ---- folders ---- */

TEST_EACH(a_folder_that_is_none_is_told, 4)
{
    static const char *const none[] = {"/nowhere/at/all", "/dev/null", ""};
    static const int why[] = {ENOENT, ENOTDIR, ENOENT};
    for (int k = 0; k < 3; k++) {
        struct disk_loop l = loop_of(_i, none[k]);
        const ad_stats before = stats_but_peak();
        ck_assert_int_eq(record(&l), AD_ERROR_FILE);
        check_error_in(tape, AD_ERROR_FILE, strerror(why[k]), "test_faults_states.c:");
        check_same(before);
    }
}

/* Where files may not grow, a write would be a signal. */
TEST_EACH(a_limit_on_files_is_an_error_and_no_signal, 4)
{
    double expected[N], g[N];
    struct rlimit limit, few;
    expect(_i, expected);
    struct disk_loop l = loop_of(_i, folder);
    const ad_stats before = stats_but_peak();
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    few = limit;
    few.rlim_cur = 20;
    /* No assertion in between: Check writes to a file as well. */
    const int set = setrlimit(RLIMIT_FSIZE, &few);
    const ad_status status = record(&l);
    const int back = setrlimit(RLIMIT_FSIZE, &limit);
    ck_assert(set == 0 && back == 0);
    ck_assert_int_eq(status, AD_ERROR_FILE);
    check_error_in(tape, AD_ERROR_FILE, strerror(EFBIG), "test_faults_states.c:");
    check_same(before);
    check_ok(record(&l));
    check_ok(sweep(&l, g));
    ck_assert_mem_eq(g, expected, sizeof g);
}

/* What was recorded has its file; what is recorded then has none. */
TEST_EACH(a_folder_may_be_removed, 4)
{
    double expected[N], g[N];
    expect(_i, expected);
    struct disk_loop l = loop_of(_i, folder), late = l;
    check_ok(record(&l));
    ck_assert_int_eq(rmdir(folder), 0);
    for (int k = 0; k < 2; k++) {
        check_ok(sweep(&l, g));
        ck_assert_mem_eq(g, expected, sizeof g);
    }
    ck_assert_int_eq(record(&late), AD_ERROR_FILE);
    check_error_in(tape, AD_ERROR_FILE, "No such file or directory", "test_faults_states.c:");
    ck_assert_int_eq(mkdir(folder, 0700), 0);
}

/* ---- how long files are, and how long they are there ---- */

TEST_EACH(no_more_bytes_than_are_allowed_are_on_disk, 4)
{
    double expected[N], g[N];
    expect(_i, expected);
    const int64_t state = _i % 2 ? N * 8 + 8 : (N - 1) * 8;
    for (int k = 0; k <= 3; k++) {
        struct disk_loop l = loop_of(_i, folder);
        const ad_mark mark = ad_tape_mark(tape);
        l.budget.disk_bytes = (uint64_t)(k * state + 1);
        check_ok(record(&l));
        for (int again = 0; again < 2; again++)
            check_ok(sweep(&l, g));
        ck_assert_mem_eq(g, expected, sizeof g);
        const struct unnamed_files files = unnamed_files_of(folder);
        ck_assert_int_eq(files.bytes, (k < 2 ? k : 2) * state);
        ck_assert_int_eq(files.n, k > 0);
        check_ok(ad_tape_rewind(tape, mark));
        ck_assert_int_eq(files_open(), 0);
    }
}

/* Of those within, the last one is recorded at once; sweeps record the others, with files that are
 * closed with them. */
static bool outer(ad_tape on, int64_t i, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                  void *payload)
{
    const ad_checkpoint_budget *budget = payload;
    (void)i;
    return ad_checkpoint_loop(on, STEPS, tensors, NULL, n_in, in, n_out, out, budget) == AD_OK;
}

TEST(loops_within_loops_have_files_of_their_own)
{
    double g[2][N];
    for (int disk = 0; disk < 2; disk++) {
        const ad_checkpoint_budget budget = {.states = 3, .directory = disk ? folder : NULL};
        const ad_tensor in[2] = {leaf, leaf};
        ad_tensor y[2];
        const ad_mark mark = ad_tape_mark(tape);
        for (int k = 0; k < 2; k++)
            check_ok(ad_checkpoint_loop(tape, 5, outer, (void *)(uintptr_t)&budget, 2, in, 1, &y[k],
                                        &budget));
        ck_assert_int_eq(files_open(), 4 * disk);
        check_ok(ad_tape_zero_gradients(tape));
        check_ok(ad_backward(ad_sum(ad_mul(y[0], y[1]))));
        check_ok(ad_gradient(leaf, g[disk], N));
        ck_assert_int_eq(files_open(), 4 * disk);
        if (disk)
            check_ok(ad_tape_reset(tape));
        else
            check_ok(ad_tape_rewind(tape, mark));
        ck_assert_int_eq(files_open(), 0);
    }
    ck_assert_mem_eq(g[0], g[1], sizeof g[0]);
}

RUN_TESTS(setup, end)
