/* test_faults_disk_tensors.c: a tape whose tensors go to a file has the values and gradients of one
 * in memory, bit for bit: with views, checkpoints, loops, releases, rewinds and second derivatives.
 * Its memory stays within the budget. Calls to the system that it makes fail in every way they may:
 * either that is hidden, or there is one error that names the folder and the reason, and the tape
 * serves.
 */
#include <tapescope/ad_checkpoint.h>
#include <tapescope/ad_real.h>

#include "disk_folder.h"
#include "exhaustive.h"
#include "run_cases.h"
#include "shim.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>

/* A layer's results are four times 64 KiB, so a tape of 40 layers is ten MiB. */
enum { ROWS = 64, COLS = 128, LAYERS = 40, BUDGET = 2 << 20 };

static double start[ROWS * COLS], weight[COLS * COLS];

static void setup(void)
{
    folder_make();
    for (int i = 0; i < ROWS * COLS; i++)
        start[i] = (double)(i % 97) / 97 - 0.5;
    for (int i = 0; i < COLS * COLS; i++)
        weight[i] = ((double)(i % 31) / 31 - 0.5) / 4;
}

static void begin(bool disk, uint64_t budget)
{
    tape_begin(&(ad_tape_options){.budget_bytes = budget, .spill = disk ? folder : NULL});
}

static ad_tensor leaf(int rows, const double *data)
{
    return ad_leaf(tape, AD_F64, 2, (const int64_t[]){rows, COLS}, data);
}

static ad_tensor layer(ad_tensor h, ad_tensor w)
{
    return ad_tanh(ad_add(ad_mul(h, ad_slice(w, 0, 0, ROWS, 1)), ad_scale(h, 0.5)));
}

static ad_tensor layers(int n, ad_tensor h, ad_tensor w)
{
    for (int k = 0; k < n; k++)
        h = layer(h, w);
    return h;
}

struct found {
    double value, x[ROWS * COLS], w[COLS * COLS];
};

static ad_status find(ad_tensor y, ad_tensor x, ad_tensor w, struct found *f)
{
    f->value = ad_item(y);
    ad_status status = ad_tape_zero_gradients(tape);
    if (status == AD_OK)
        status = ad_backward(y);
    if (status == AD_OK)
        status = ad_gradient(x, f->x, ROWS * COLS);
    return status == AD_OK ? ad_gradient(w, f->w, COLS * COLS) : status;
}

static void check_alike(const struct found *f, const struct found *expected)
{
    ck_assert_mem_eq(f, expected, sizeof *f);
}

/* One of the ways to record that are compared below. */
typedef ad_tensor recording(ad_tensor x, ad_tensor w);

static ad_tensor recording_plain(ad_tensor x, ad_tensor w)
{
    return ad_sum(ad_matmul(layers(LAYERS, x, w), w));
}

/* Halves, transposed halves, and a sum over what is old. */
static ad_tensor recording_views(ad_tensor x, ad_tensor w)
{
    ad_tensor h = x, kept[LAYERS], sum;
    for (int k = 0; k < LAYERS; k++) {
        kept[k] = h = layer(h, w);
        h = ad_add(ad_reshape(ad_transpose(h), (const int64_t[]){ROWS, COLS}, 2),
                   ad_slice(h, 0, 0, ROWS, 1));
    }
    sum = ad_sum(h);
    for (int k = 0; k < LAYERS; k += 7)
        sum = ad_add(sum, ad_sum(ad_mul(ad_slice(kept[k], 1, 3, COLS - 3, 2),
                                        ad_slice(kept[k], 1, 4, COLS - 2, 2))));
    return sum;
}

static void block(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                  void *payload)
{
    (void)on, (void)n_in, (void)n_out, (void)payload;
    out[0] = layers(LAYERS / 4, in[0], in[1]);
}

static ad_tensor recording_checkpoints(ad_tensor x, ad_tensor w)
{
    ad_tensor h = x;
    for (int k = 0; k < 4; k++) {
        const ad_tensor in[] = {h, w};
        ad_checkpoint(tape, block, NULL, 2, in, 1, &h);
        h = layers(3, h, w);
    }
    return ad_sum(h);
}

static bool loop_step(ad_tape on, int64_t k, int n_in, const ad_tensor *in, int n_out,
                      ad_tensor *out, void *payload)
{
    (void)on, (void)k, (void)n_in, (void)n_out, (void)payload;
    out[0] = layer(in[0], in[1]);
    return true;
}

static ad_tensor recording_loop(ad_tensor x, ad_tensor w)
{
    const ad_tensor in[] = {layers(LAYERS / 2, x, w), w};
    ad_tensor h;
    ad_checkpoint_loop(tape, LAYERS, loop_step, NULL, 2, in, 1, &h,
                       &(ad_checkpoint_budget){.states = 5});
    return ad_sum(layers(3, h, w));
}

/* What no handle names is given back, some of it while it lies in the file. */
static ad_tensor recording_frames(ad_tensor x, ad_tensor w)
{
    ad_tensor h = x;
    for (int k = 0; k < LAYERS / 4; k++) {
        const ad_frame frame = ad_frame_begin(tape);
        h = layers(4, h, w);
        ad_frame_end(frame, &h, 1);
        h = ad_add(h, x);
    }
    return ad_sum(h);
}

/* From an array to numbers and back, with statements that go to the file as well. */
static ad_tensor recording_numbers(ad_tensor x, ad_tensor w)
{
    enum { N = 64 };
    ad_tensor h = layers(LAYERS / 4, x, w);
    ad_real u[N];
    check_ok(ad_tape_record_begin(tape));
    check_ok(ad_reals_of_tensor(
        ad_slice(ad_reshape(h, (const int64_t[]){ROWS * COLS}, 1), 0, 0, N, 1), N, u));
    for (int i = 0; i < 100000; i++)
        ad_set(&u[i % N], ad_real_sin(ad_real_mul(u[i % N], u[(i + 1) % N])));
    const ad_tensor back = ad_tensor_of_reals(tape, 1, (const int64_t[]){N}, u);
    check_ok(ad_tape_record_end(tape));
    return ad_add(ad_sum(back), ad_sum(layers(LAYERS / 4, h, w)));
}

static recording *const recordings[] = {recording_plain, recording_views,  recording_checkpoints,
                                        recording_loop,  recording_frames, recording_numbers};
enum { RECORDINGS = sizeof recordings / sizeof *recordings };

static struct found expected, f;

static void find_in_memory(recording *r)
{
    begin(false, 0);
    const ad_tensor x = leaf(ROWS, start), w = leaf(COLS, weight);
    check_ok(find(r(x, w), x, w, &expected));
    teardown_fine();
}

TEST_EACH(gradients_are_those_of_memory_bit_for_bit, RECORDINGS)
{
    find_in_memory(recordings[_i]);
    begin(true, BUDGET);
    for (int round = 0; round < 2; round++) {
        const ad_tensor x = leaf(ROWS, start), w = leaf(COLS, weight), y = recordings[_i](x, w);
        check_ok(ad_tape_status(tape));
        const ad_stats s = stats();
        const struct unnamed_files files = unnamed_files_of(folder);
        ck_assert_int_eq(files.n, 1);
        ck_assert_uint_gt(s.live_bytes, s.budget_bytes);
        ck_assert_int_ge(files.allocated, (int64_t)(s.live_bytes - s.budget_bytes));
        for (int k = 0; k < 2; k++) {
            check_ok(find(y, x, w, &f));
            check_alike(&f, &expected);
        }
        check_ok(ad_tape_reset(tape));
    }
    teardown_fine();
    check_gone();
}

/* A sweep that gives back what it has passed, while that lies in the file. */
TEST(a_sweep_may_release)
{
    find_in_memory(recording_views);
    begin(true, BUDGET);
    const ad_tensor x = leaf(ROWS, start), w = leaf(COLS, weight), y = recording_views(x, w);
    f.value = ad_item(y);
    check_ok(ad_backward_release(y));
    check_ok(ad_gradient(x, f.x, ROWS * COLS));
    check_ok(ad_gradient(w, f.w, COLS * COLS));
    check_alike(&f, &expected);
    ck_assert_uint_lt(stats().live_bytes, BUDGET);
    teardown_fine();
    check_gone();
}

/* To before what lies in the file, and into the middle of it: what is recorded then takes the same
 * places. */
TEST(rewinds)
{
    ad_tensor h[4];
    ad_mark mark[4];
    find_in_memory(recording_plain);
    begin(true, BUDGET);
    const ad_tensor x = leaf(ROWS, start), w = leaf(COLS, weight);
    h[0] = x;
    for (int k = 0; k < 3; k++) {
        mark[k] = ad_tape_mark(tape);
        h[k + 1] = layers(10, h[k], w);
    }
    for (int k = 3; k-- > 0;) {
        check_ok(ad_tape_rewind(tape, mark[k]));
        check_ok(
            find(ad_sum(layers(17, ad_neg(h[k]), w)), x, w, &f)); /* something else for a time */
        check_ok(ad_tape_rewind(tape, mark[k]));
        check_ok(find(ad_sum(ad_matmul(layers(LAYERS - 10 * k, h[k], w), w)), x, w, &f));
        check_alike(&f, &expected);
    }
    teardown_fine();
    check_gone();
}

/* Steps of a training whose rewinds drop what lies in the file take no more of anything. */
TEST(steps_do_not_grow)
{
    begin(true, BUDGET);
    const ad_tensor x = leaf(ROWS, start), w = leaf(COLS, weight);
    const ad_mark mark = ad_tape_mark(tape);
    uint64_t live = 0;
    for (int step = 0; step < 12; step++) {
        check_ok(find(recording_views(x, w), x, w, &f));
        const uint64_t most = stats().live_bytes;
        check_ok(ad_tape_rewind(tape, mark));
        ck_assert_int_le(unnamed_files_of(folder).allocated, (int64_t)most);
        if (step == 1)
            live = stats().live_bytes;
        if (step > 1)
            ck_assert_uint_eq(stats().live_bytes, live);
    }
    teardown_fine();
    check_gone();
}

/* What was recorded before the rewind has moved on what a sweep takes for complete. */
TEST(a_sweep_that_writes_all_after_a_rewind_keeps_none_from_going)
{
    enum { FILL = 1536 << 10 };
    static double fill[FILL / 8];
    begin(true, 4 << 20);
    ad_leaf_copy(tape, AD_F64, 1, (const int64_t[]){FILL / 8}, fill);
    const ad_tensor x = ad_leaf(tape, AD_F64, 2, (const int64_t[]){COLS, COLS}, weight);
    ad_tensor h = x;
    for (int k = 0; k < 6; k++)
        h = ad_tanh(h);
    const ad_tensor y = ad_sum(h);
    const ad_mark mark = ad_tape_mark(tape);
    for (int k = 0; k < 100; k++)
        ad_sum(ad_slice(x, 0, 0, 1, 1));
    check_ok(ad_tape_rewind(tape, mark));
    check_ok(ad_backward(y));
    for (int k = 0; k < 90; k++)
        h = ad_tanh(h);
    teardown_fine();
    check_gone();
}

/* The derivative is recorded as well, and goes to the file too. */
TEST(second_derivatives)
{
    static double g[2][ROWS * COLS];
    for (int disk = 0; disk < 2; disk++) {
        ad_tensor dx;
        begin(disk, disk ? BUDGET : 0);
        const ad_tensor x = leaf(ROWS, start), w = leaf(COLS, weight),
                        y = ad_sum(layers(LAYERS / 4, x, w));
        check_ok(ad_create_graph(y, (ad_tensor){0}, 1, &x, &dx));
        check_ok(ad_backward(ad_sum(ad_square(dx))));
        check_ok(ad_gradient(x, g[disk], ROWS * COLS));
        if (disk)
            ck_assert_uint_gt(stats().live_bytes, BUDGET);
        teardown_fine();
    }
    ck_assert_mem_eq(g[1], g[0], sizeof g[0]);
    check_gone();
}

/* What is too little for a mapping of its own stays in memory, and so do leaves: then the budget is
 * a bound as without a file. */
TEST(what_stays_in_memory_is_refused_as_ever)
{
    begin(true, BUDGET);
    ad_tensor h = ad_leaf(tape, AD_F64, 1, (const int64_t[]){1000}, start);
    for (int k = 0; k < 1000 && ad_tape_status(tape) == AD_OK; k++)
        h = ad_tanh(h);
    check_error(AD_ERROR_MEMORY, "budget");
    ck_assert_int_eq(unnamed_files_of(folder).allocated, 0);
    teardown_fine();
    check_gone();
}

/* ---- faults ---- */

static void check_told(ad_status status)
{
    check_told_at(status, "test_faults_disk_tensors.c:");
}

static ad_status last(ad_status status)
{
    return status == AD_OK ? ad_tape_status(tape) : status;
}

/* Recording and two sweeps with the n-th call failing. Returns whether there were so many. */
static bool try_one(enum shim_kind kind, int at, bool sticky, ad_tensor x, ad_tensor w, int *told)
{
    const ad_mark mark = ad_tape_mark(tape);
    int failed = 0;
    shim_arm(kind, at, sticky);
    ad_tensor y = recording_views(x, w);
    if (ad_tape_status(tape) != AD_OK) {
        shim_disarm();
        failed++;
        check_told(ad_tape_status(tape));
        check_ok(ad_tape_rewind(tape, mark));
        y = recording_views(x, w);
        check_ok(ad_tape_status(tape));
        shim_arm(kind, 0, false);
    }
    for (int k = 0; k < 2; k++) {
        const ad_status status = last(find(y, x, w, &f));
        if (status == AD_OK) {
            check_alike(&f, &expected);
            continue;
        }
        shim_disarm();
        failed++;
        check_told(status);
        shim_arm(kind, 0, false);
    }
    const int calls = shim_disarm();
    check_ok(find(y, x, w, &f));
    check_alike(&f, &expected);
    check_ok(ad_tape_rewind(tape, mark));
    *told += failed;
    ck_assert_msg(failed == 0 || !shim_is_harmless(kind), "%s was not hidden",
                  shim_kind_name[kind]);
    return failed > 0 || calls >= at;
}

/* A call alone, and it and all that follow. The first of them, and some; or each. */
TEST(calls_may_fail)
{
    static const enum shim_kind kinds[] = {SHIM_EIO, SHIM_ENOSPC, SHIM_EINTR, SHIM_HALF,
                                           SHIM_MEMORY};
    int reached = 0;
    find_in_memory(recording_views);
    begin(true, BUDGET);
    const ad_tensor x = leaf(ROWS, start), w = leaf(COLS, weight);
    ck_assert(shim_watch(""));
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        int told = 0;
        bool more = true;
        for (int at = 1; more; at += (int)exhaustive_step((unsigned)at)) {
            more = try_one(kinds[k], at, false, x, w, &told);
            more = try_one(kinds[k], at, true, x, w, &told) || more;
            reached += more;
        }
        bool harmless = shim_is_harmless(kinds[k]);
#ifdef __SANITIZE_THREAD__
        harmless = harmless || kinds[k] == SHIM_MEMORY; /* its mappings are no calls of mmap */
#endif
        ck_assert_msg((told == 0) == harmless, "%s: told %d times", shim_kind_name[kinds[k]], told);
    }
    ck_assert_int_gt(reached, 30);
    teardown_fine();
    check_gone();
}

/* Where files may not grow, a write would be a signal. */
TEST(a_limit_on_files_is_an_error_and_no_signal)
{
    tape_begin_limited(BUDGET, 20);
    recording_plain(leaf(ROWS, start), leaf(COLS, weight));
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), strerror(EFBIG)));
    check_told(ad_tape_status(tape));
    teardown_fine();
    check_gone();
}

/* The child of fork(2) has the parent's file, and says so. */
TEST(a_forked_process_is_told)
{
    find_in_memory(recording_plain);
    begin(true, BUDGET);
    const ad_tensor x = leaf(ROWS, start), w = leaf(COLS, weight), y = recording_plain(x, w);
    const pid_t child = fork();
    if (child == 0) {
        bool fine =
            find(y, x, w, &f) == AD_ERROR_STATE && strstr(ad_tape_message(tape), "forked from");
        ad_tape_clear_error(tape);
        fine = fine && ad_tape_reset(tape) == AD_OK;
        const ad_tensor z = ad_sum(ad_square(leaf(ROWS, start)));
        fine = fine && ad_backward(z) == AD_OK;
        ad_tape_destroy(tape);
        _exit(fine ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    check_ok(find(y, x, w, &f));
    check_alike(&f, &expected);
    teardown_fine();
    check_gone();
}

RUN_TESTS(setup, NULL)
