/* test_saved.c: what a tape says that it holds for sweeps, its peak, and what it lacks. */
#include "observe_support.h"
#include "run_cases.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

enum { N = 64, BYTES = N * sizeof(double) };

static const int64_t shape[1] = {N}, square_shape[2] = {8, 8};
static double data[N];
static ad_tensor x;

static void setup(void)
{
    modules_find();
    for (int i = 0; i < N; i++)
        data[i] = (i * 37 % N - 31.5) / 40;
    tape = observe_tape();
    x = ad_leaf(tape, AD_F64, 1, shape, data);
}

static void check_saved(uint64_t buffers, uint64_t bytes)
{
    ad_saved saved;
    ck_assert_int_eq(ad_tape_saved_for_backward(tape, &saved), AD_OK);
    ck_assert_uint_eq(saved.buffers, buffers);
    ck_assert_uint_eq(saved.buffer_bytes, bytes);
}

TEST(a_buffer_counts_once_if_a_pullback_reads_it)
{
    check_saved(0, 0);
    ad_tensor h = ad_tanh(x);     /* reads its result */
    ad_tensor k = ad_scale(h, 2); /* reads nothing */
    ad_tensor m = ad_add(h, k);   /* nothing either */
    ad_tensor c = ad_constant(tape, AD_F64, 1, shape, data);
    check_saved(1, BYTES);
    ad_tensor p = ad_mul(k, c); /* would read k for c, which is constant */
    check_saved(1, BYTES);
    ad_tensor q = ad_mul(h, x); /* reads both: h again, x is the user's */
    check_saved(1, BYTES);
    ad_mul(m, k);
    check_saved(3, (uint64_t)3 * BYTES);
    ad_tensor view = ad_transpose(ad_reshape(p, square_shape, 2));
    check_saved(3, (uint64_t)3 * BYTES);
    ad_matmul(view, view); /* two reads of a view of p */
    check_saved(4, (uint64_t)4 * BYTES);
    ad_tape_no_grad_begin(tape);
    ad_exp(q);
    ad_tape_no_grad_end(tape);
    check_saved(4, (uint64_t)4 * BYTES);
}

TEST(an_account_counts_as_kept_what_is_saved)
{
    ad_saved saved;
    observe_begin(UINT64_MAX);
    ad_tensor c = ad_constant(tape, AD_F64, 1, shape, data);
    ad_tensor h = ad_scale(x, 2);
    ad_mul(h, c); /* would read h for c, which is constant */
    ad_square(ad_neg(h));
    const struct tape_ledger *ledger = observe_ledger();
    ck_assert_uint_eq(observe_row(ledger, "scale")->kept_bytes, 0);
    ck_assert_uint_eq(observe_row(ledger, "neg")->kept_bytes, BYTES);
    ck_assert_int_eq(ad_tape_saved_for_backward(tape, &saved), AD_OK);
    ck_assert_uint_eq(saved.buffer_bytes, BYTES);
    tape_observe_end();
}

TEST(frames_change_nothing_and_a_releasing_sweep_all)
{
    ad_frame frame = ad_frame_begin(tape);
    ad_tensor y = ad_sum(ad_mul(ad_tanh(x), ad_sin(x)));
    check_saved(2, (uint64_t)2 * BYTES);
    ck_assert_int_eq(ad_frame_end(frame, &y, 1), AD_OK);
    check_saved(2, (uint64_t)2 * BYTES);
    ck_assert_int_eq(ad_backward_release(y), AD_OK);
    check_saved(0, 0);
}

TEST(record_bytes_are_all_that_is_not_a_buffer)
{
    ad_saved empty, saved;
    ad_stats stats;
    ad_tape other = observe_tape();
    ck_assert_int_eq(ad_tape_saved_for_backward(other, &empty), AD_OK);
    ck_assert_uint_eq(empty.record_bytes, 0);
    ad_tape_no_grad_begin(other); /* no guards */
    ad_tensor s = ad_scalar_f64(other, 1);
    for (int i = 0; i < 4; i++)
        s = ad_neg(s);
    ck_assert_int_eq(ad_tape_saved_for_backward(other, &saved), AD_OK);
    ck_assert_int_eq(ad_tape_stats(other, &stats), AD_OK);
    ck_assert_uint_eq(stats.live_bytes, saved.record_bytes + (uint64_t)5 * 64);
    ck_assert_int_eq(ad_tape_saved_for_backward(other, NULL), AD_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(
        strstr(ad_tape_message(other), "tape_saved_for_backward: saved is a null pointer at "));
    ck_assert_int_eq(ad_tape_destroy(other), AD_OK);
}

TEST(the_peak_begins_anew_when_it_is_asked_to)
{
    ad_stats stats;
    ad_mark mark = ad_tape_mark(tape);
    for (int i = 0; i < 10; i++)
        ad_neg(x);
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    ck_assert_int_eq(ad_tape_stats(tape, &stats), AD_OK);
    ck_assert_uint_gt(stats.peak_bytes, stats.live_bytes + (uint64_t)10 * BYTES);
    ck_assert_int_eq(ad_tape_reset_peak(tape), AD_OK);
    ck_assert_int_eq(ad_tape_stats(tape, &stats), AD_OK);
    ck_assert_uint_eq(stats.peak_bytes, stats.live_bytes);
    ad_neg(x);
    uint64_t before = stats.live_bytes;
    ck_assert_int_eq(ad_tape_stats(tape, &stats), AD_OK);
    ck_assert_uint_eq(stats.peak_bytes, stats.live_bytes);
    ck_assert_uint_gt(stats.peak_bytes, before);
}

TEST(an_error_of_the_budget_says_how_much_was_wanted)
{
    static double large[1 << 16];
    const ad_tape_options options = {.budget_bytes = 1 << 18, .reserve_bytes = 16 << 20};
    ad_tape tight;
    ck_assert_int_eq(ad_tape_create(&tight, &options), AD_OK);
    ad_tensor c = ad_constant(tight, AD_F64, 1, (int64_t[]){1 << 16}, large);
    ad_neg(c);
    ck_assert_int_eq(ad_tape_status(tight), AD_ERROR_MEMORY);
    const char *message = ad_tape_message(tight);
    ck_assert_msg(strstr(message, "neg: out of memory: 524288 bytes are wanted, "), "%s", message);
    ck_assert_msg(strstr(message, " bytes are on the tape, its budget is 262144 of "), "%s",
                  message);
    ck_assert_int_eq(ad_tape_destroy(tight), AD_OK);
}

RUN_TESTS(setup, teardown)
