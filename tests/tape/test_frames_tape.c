/* test_frames_tape.c: frames together with marks, resets, failures, checks and wrong calls. */
#include "observe_support.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

enum { N = 64, BYTES = N * sizeof(double) };

static const ad_tensor zero;
static const int64_t shape[1] = {N};
static double data[N], got[N], want[N];
static ad_tensor x;

static void setup(void)
{
    modules_find();
    for (int i = 0; i < N; i++)
        data[i] = (i * 37 % N - 31.5) / 40;
    tape = observe_tape();
    x = ad_leaf(tape, AD_F64, 1, shape, data);
}

static uint64_t live(void)
{
    return stats().live_bytes;
}

static ad_tensor chain(ad_tensor h, int n)
{
    for (int i = 0; i < n; i++)
        h = ad_tanh(ad_scale(h, 1.25));
    return h;
}

TEST(a_rewind_inside_a_frame_leaves_the_frame_open)
{
    uint64_t start = live();
    ad_frame frame = ad_frame_begin(tape);
    ad_tensor h = ad_neg(x);
    ad_mark mark = ad_tape_mark(tape);
    chain(h, 3);
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    ad_tensor y = ad_neg(h);
    uint64_t before = live();
    ck_assert_int_eq(ad_frame_end(frame, &y, 1), AD_OK);
    ck_assert_uint_eq(before - live(), BYTES); /* h, from before the mark */
    ck_assert_int_eq(ad_size(y), N);
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    /* h's entry and record; its buffer is gone for good. */
    ck_assert_uint_lt(live() - start, 256);
    ck_assert_int_eq(ad_size(h), -1);
    check_error(AD_ERROR_HANDLE, "was released at the end of its frame");
}

TEST(a_rewind_to_before_a_frame_drops_it)
{
    ad_mark mark = ad_tape_mark(tape);
    ad_frame frame = ad_frame_begin(tape);
    chain(x, 2);
    ad_frame inner = ad_frame_begin(tape);
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    ck_assert_int_eq(ad_frame_end(frame, NULL, 0), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "frame_end: the frame is not open");
    /* A new frame of the same level is not taken for it. */
    ad_frame again = ad_frame_begin(tape);
    ck_assert_uint_eq(again.level, frame.level);
    ck_assert_int_eq(ad_frame_end(inner, NULL, 0), AD_ERROR_STATE);
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_frame_end(frame, NULL, 0), AD_ERROR_STATE);
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_frame_end(again, NULL, 0), AD_OK);
}

TEST(a_frame_that_ended_behind_a_mark_stays_ended_after_the_rewind)
{
    ad_frame first = ad_frame_begin(tape);
    ad_tensor h = ad_neg(x);
    ad_mark mark = ad_tape_mark(tape);
    ck_assert_int_eq(ad_frame_end(first, &h, 1), AD_OK);
    ad_frame second = ad_frame_begin(tape);
    chain(h, 1);
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    ck_assert_int_eq(ad_frame_end(second, NULL, 0), AD_ERROR_STATE);
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_frame_end(first, NULL, 0), AD_ERROR_STATE);
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_size(h), N);
}

TEST(what_was_freed_before_a_mark_is_counted_right_after_the_rewind)
{
    ad_tape_no_grad_begin(tape);
    ad_tensor h[4];
    for (int i = 0; i < 4; i++)
        h[i] = ad_neg(x);
    ad_mark outer = ad_tape_mark(tape);
    ad_tensor k = ad_neg(x);
    uint64_t at_outer = live();
    ad_mark inner = ad_tape_mark(tape);
    ck_assert_int_eq(ad_release(h[1]), AD_OK); /* older than both marks */
    ck_assert_int_eq(ad_release(k), AD_OK);    /* older than the inner one */
    ad_tensor reused[3];
    for (int i = 0; i < 3; i++)
        reused[i] = ad_neg(x); /* two of them in the freed blocks */
    ck_assert_int_eq(ad_tape_rewind(tape, inner), AD_OK);
    ck_assert_uint_eq(live(), at_outer - (uint64_t)2 * BYTES);
    ck_assert_int_eq(ad_size(reused[0]), -1);
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_tape_rewind(tape, outer), AD_OK);
    uint64_t last = live();
    ck_assert_int_eq(ad_release(h[0]), AD_OK);
    ck_assert_uint_eq(last - live(), BYTES);
    for (int i = 2; i < 4; i++) {
        ck_assert_int_eq(ad_value(h[i], got, N), AD_OK);
        for (int j = 0; j < N; j++)
            ck_assert_double_eq(got[j], -data[j]);
    }
}

TEST(a_reset_within_a_frame_ends_it)
{
    ad_frame frame = ad_frame_begin(tape);
    chain(x, 2);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ck_assert_int_eq(ad_frame_end(frame, NULL, 0), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "dropped by a reset or a rewind (the newest is at ");
    ck_assert_uint_eq(stats().values, 0);
}

TEST(a_failed_op_in_a_frame_leaves_the_frame_to_be_ended)
{
    uint64_t start = live();
    ad_frame frame = ad_frame_begin(tape);
    ad_tensor h = ad_neg(x), kept = ad_exp(x);
    ad_tensor bad = ad_matmul(h, ad_sum(h));
    ad_tensor y = ad_sum(bad);
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_SHAPE);
    ck_assert_int_eq(ad_frame_end(frame, (ad_tensor[]){y, kept, bad, zero}, 4), AD_OK);
    check_error(AD_ERROR_SHAPE, "matmul: ");
    ck_assert_int_eq(ad_size(kept), N);
    ck_assert_int_eq(ad_size(h), -1);
    check_error(AD_ERROR_HANDLE, "was released at the end of its frame");
    ck_assert_uint_lt(live() - start, BYTES + 512); /* what is kept, entries and records */
    ck_assert_int_eq(ad_backward(ad_sum(kept)), AD_OK);
}

TEST(an_end_that_is_refused_releases_nothing)
{
    ad_tape foreign = observe_tape();
    ad_tensor strange = ad_leaf(foreign, AD_F64, 1, shape, data);
    ad_frame frame = ad_frame_begin(tape);
    ad_tensor h = ad_neg(x), gone = ad_neg(x);
    ck_assert_int_eq(ad_release(gone), AD_OK);
    uint64_t before = live();
    ck_assert_int_eq(ad_frame_end(frame, NULL, 1), AD_ERROR_ARGUMENT);
    check_error(AD_ERROR_ARGUMENT, "frame_end: keep is a null pointer");
    ck_assert_int_eq(ad_frame_end(frame, &h, -1), AD_ERROR_ARGUMENT);
    check_error(AD_ERROR_ARGUMENT, "frame_end: n is negative");
    ck_assert_int_eq(ad_frame_end(frame, (ad_tensor[]){h, strange}, 2), AD_ERROR_TAPE);
    check_error(AD_ERROR_TAPE, "frame_end: keep[1] is of another tape");
    ck_assert_int_eq(ad_frame_end(frame, (ad_tensor[]){h, zero}, 2), AD_ERROR_HANDLE);
    check_error(AD_ERROR_HANDLE, "frame_end: keep[1] is a handle of zeros: no tensor");
    ck_assert_int_eq(ad_frame_end(frame, &gone, 1), AD_ERROR_HANDLE);
    check_error(AD_ERROR_HANDLE, "frame_end: keep[0] was released at ");
    ck_assert_int_eq(ad_frame_end((ad_frame){frame.tape, frame.tape_generation, 0, 0}, NULL, 0),
                     AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "frame_end: the frame's begin failed");
    ck_assert_uint_eq(live(), before);
    ck_assert_int_eq(ad_size(h), N);
    ck_assert_int_eq(ad_frame_end(frame, &h, 1), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(foreign), AD_OK);
}

/* ---- the gradient check ---- */

static ad_tensor older;
static ad_frame older_frame;

/* sum(tanh(x)^2 x), its parts released; payload: what else it does. */
static ad_tensor framed(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    (void)n;
    const int misuse = *(int *)payload;
    ad_frame frame = ad_frame_begin(t);
    ad_tensor h = ad_tanh(v[0]);
    ad_tensor cut = ad_square(h), product = ad_mul(misuse == 3 ? ad_detach(cut) : cut, v[0]);
    ad_tensor y = ad_sum(product);
    ad_frame_end(frame, &y, 1);
    if (misuse == 1)
        ad_release(older);
    if (misuse == 2)
        ad_frame_end(older_frame, NULL, 0);
    return y;
}

TEST(a_gradient_check_passes_frames_and_names_no_op_for_them)
{
    ad_gradient_report report;
    int plain = 0, cut = 3;
    uint64_t before = live();
    ck_assert_msg(ad_check_gradient(tape, framed, 1, &x, 1e-6, &plain, &report) == AD_OK, "%s",
                  report.message);
    ck_assert_int_eq(report.compared, N);
    ck_assert_int_eq(ad_check_gradient(tape, framed, 1, &x, 1e-6, &cut, &report),
                     AD_ERROR_GRADIENT);
    /* The parts that the frame released are looked at all the same, and each is right. */
    ck_assert_msg(report.op == NULL && strstr(report.message, "no op alone is wrong"), "%s",
                  report.message);
    ck_assert_uint_eq(live(), before);
    ad_tensor h = ad_neg(x);
    before = live();
    ck_assert_int_eq(ad_frame_end(ad_frame_begin(tape), NULL, 0), AD_OK);
    ad_tape_no_grad_begin(tape);
    ad_frame frame = ad_frame_begin(tape);
    ad_neg(h);
    ck_assert_int_eq(ad_frame_end(frame, NULL, 0), AD_OK);
    ck_assert_uint_lt(live() - before, BYTES); /* buffers are freed again after the check */
}

TEST(nothing_older_than_a_gradient_check_can_be_released_in_it)
{
    ad_gradient_report report;
    int release = 1, end = 2;
    older_frame = ad_frame_begin(tape);
    older = ad_exp(x);
    ad_tensor y = ad_sum(older);
    ck_assert_int_eq(ad_check_gradient(tape, framed, 1, &x, 1e-6, &release, &report),
                     AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "release: the tensor is older than the gradient check that runs");
    ck_assert_int_eq(ad_check_gradient(tape, framed, 1, &x, 1e-6, &end, &report), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "frame_end: the frame is older than the gradient check that runs");
    ck_assert_int_eq(ad_backward(y), AD_OK);
    ck_assert_int_eq(ad_gradient(x, got, N), AD_OK);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq_tol(got[i], exp(data[i]), 1e-15 * exp(data[i]));
    ck_assert_int_eq(ad_frame_end(older_frame, NULL, 0), AD_OK);
}

/* ---- memory ---- */

TEST(a_long_loop_with_frames_holds_its_peak)
{
    ad_tape_no_grad_begin(tape);
    ad_tensor h = chain(x, 1);
    uint64_t peak = 0;
    for (int i = 0; i < 200; i++) {
        ad_frame frame = ad_frame_begin(tape);
        ad_tensor next = chain(h, 5);
        ck_assert_int_eq(ad_frame_end(frame, &next, 1), AD_OK);
        ck_assert_int_eq(ad_release(h), AD_OK);
        h = next;
        if (i == 0)
            peak = stats().peak_bytes;
    }
    /* 200 entries of values a step of 10 ops, and no more buffers than in the first step. */
    uint64_t entry = sizeof(struct tape_value);
    ck_assert_uint_le(stats().peak_bytes - peak, (uint64_t)200 * 10 * entry + BYTES);
    ck_assert_int_eq(ad_value(h, want, N), AD_OK);
}

TEST(what_a_frame_frees_is_credited_to_the_line_that_made_it)
{
    observe_begin(UINT64_MAX);
    ad_frame frame = ad_frame_begin(tape);
    ad_tensor h = ad_exp(x); /* read by its own pullback */
    ad_tensor k = ad_scale(h, 3);
    ad_tensor y = ad_sum(k);
    const struct tape_ledger *ledger = observe_ledger();
    uint64_t exp_bytes = observe_row(ledger, "exp")->live_bytes;
    uint64_t scale_bytes = observe_row(ledger, "scale")->live_bytes;
    uint64_t handed_out = ledger->handed_out_bytes, peak = ledger->peak_bytes;
    ck_assert_int_eq(ad_frame_end(frame, &y, 1), AD_OK);
    ck_assert_uint_eq(observe_row(ledger, "exp")->live_bytes, exp_bytes);
    ck_assert_uint_eq(scale_bytes - observe_row(ledger, "scale")->live_bytes, BYTES);
    ck_assert_uint_eq(ledger->handed_out_bytes, handed_out);
    ck_assert_uint_eq(ledger->peak_bytes, peak);
    ck_assert_uint_eq(observe_row(ledger, "frame_end")->calls, 1);
    observe_check_sums(ledger);
    observe_check_live(ledger, tape);
    ck_assert_int_eq(ad_release(y), AD_OK);
    ck_assert_uint_eq(observe_row(ledger, "release")->calls, 1);
    observe_check_live(ledger, tape);
    tape_observe_end();
    /* An observation that begins now counts what is left. */
    observe_begin(UINT64_MAX);
    ad_tape_rewind(tape, ad_tape_mark(tape));
    ledger = observe_ledger();
    observe_check_sums(ledger);
    observe_check_live(ledger, tape);
    tape_observe_end();
}

RUN_TESTS(setup, teardown)
