/* test_frames.c: what the end of a frame releases, what stays, and what the tape still computes.
 *
 * Every computation is compared bit for bit with the same one without frames.
 */
#include <tapescope/ad.h>

#include "run_cases.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

enum { N = 64, BYTES = N * sizeof(double) };

static const ad_tensor zero;
static const int64_t shape[1] = {N}, square_shape[2] = {8, 8};
static double data[N], other[N], got[N], want[N];
static ad_tensor x;

static void open_tape(ad_tape *t)
{
    static const ad_tape_options small = {.budget_bytes = 16 << 20, .reserve_bytes = 16 << 20};
    ck_assert_int_eq(ad_tape_create(t, &small), AD_OK);
}

static void setup(void)
{
    modules_find();
    for (int i = 0; i < N; i++) {
        data[i] = (i * 37 % N - 31.5) / 40;
        other[i] = (i * 29 % N + 3) / 50.0;
    }
    open_tape(&tape);
    x = ad_leaf(tape, AD_F64, 1, shape, data);
}

static uint64_t live(void)
{
    ad_stats stats;
    ck_assert_int_eq(ad_tape_stats(tape, &stats), AD_OK);
    return stats.live_bytes;
}

static void check_fine(void)
{
    ck_assert_msg(ad_tape_status(tape) == AD_OK, "%s", ad_tape_message(tape));
}

/* The handle is refused, by a message that holds all of the words. */
static void check_gone(ad_tensor v, const char *how)
{
    ck_assert_int_eq(ad_size(v), -1);
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_HANDLE);
    ck_assert_msg(strstr(ad_tape_message(tape), how) &&
                      strstr(ad_tape_message(tape), "test_frames.c"),
                  "%s", ad_tape_message(tape));
    ad_tape_clear_error(tape);
}

static void check_gradient(ad_tensor y, const double *expected)
{
    ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
    ck_assert_msg(ad_backward(y) == AD_OK, "%s", ad_tape_message(tape));
    ck_assert_int_eq(ad_gradient(x, got, N), AD_OK);
    ck_assert_mem_eq(got, expected, BYTES);
}

/* y = sum(exp(x) x + tanh(x) 0.5); exp's and tanh's results are read by their pullbacks, the
 * products and the sum are not. */
struct parts {
    ad_tensor exp, product, tanh, half, sum, y;
};

static struct parts compute(void)
{
    struct parts p;
    p.exp = ad_exp(x);
    p.product = ad_mul(p.exp, x);
    p.tanh = ad_tanh(x);
    p.half = ad_scale(p.tanh, 0.5);
    p.sum = ad_add(p.product, p.half);
    p.y = ad_sum(p.sum);
    return p;
}

/* The gradient without a frame. */
static void compute_want(void)
{
    ad_mark mark = ad_tape_mark(tape);
    ck_assert_int_eq(ad_backward(compute().y), AD_OK);
    ck_assert_int_eq(ad_gradient(x, want, N), AD_OK);
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
}

TEST(a_frame_frees_what_no_pullback_reads_and_the_gradient_stays)
{
    compute_want();
    uint64_t before = live();
    struct parts p = compute();
    uint64_t all = live() - before;
    ad_tape_reset(tape);
    x = ad_leaf(tape, AD_F64, 1, shape, data);
    ck_assert_uint_eq(live(), before);
    ad_frame frame = ad_frame_begin(tape);
    p = compute();
    double value = ad_item(p.y);
    ck_assert_int_eq(ad_frame_end(frame, &p.y, 1), AD_OK);
    /* The product, its half and the sum. */
    ck_assert_uint_eq(live() - before, all - (uint64_t)3 * BYTES);
    ck_assert_double_eq(ad_item(p.y), value);
    check_fine();
    check_gone(p.exp, "size: the tensor was released at the end of its frame at ");
    check_gone(p.product, "; the call is at ");
    check_gone(p.tanh, "was released at the end of its frame at ");
    check_gone(p.half, "was released at the end of its frame at ");
    check_gone(p.sum, "was released at the end of its frame at ");
    check_gradient(p.y, want);
    check_gradient(p.y, want); /* a frame takes nothing that a second sweep needs */
}

TEST(an_op_on_a_released_operand_names_it_and_the_frame)
{
    ad_frame frame = ad_frame_begin(tape);
    ad_tensor h = ad_exp(x);
    ck_assert_int_eq(ad_frame_end(frame, NULL, 0), AD_OK);
    ad_mul(x, h);
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_HANDLE);
    const char *message = ad_tape_message(tape);
    ck_assert_msg(
        strstr(message, "mul: operand 2 was released at the end of its frame at test_fra"), "%s",
        message);
    ck_assert_msg(strstr(message, "; the call is at test_frames.c:"), "%s", message);
}

TEST(no_handle_of_a_later_value_is_mistaken_for_a_released_one)
{
    ad_mark mark = ad_tape_mark(tape);
    ad_tensor old = ad_exp(x);
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    ad_tensor new = ad_exp(x);
    ck_assert_uint_eq(old.value, new.value);
    ck_assert_int_eq(ad_release(new), AD_OK);
    ck_assert_int_eq(ad_size(old), -1);
    ck_assert_msg(strstr(ad_tape_message(tape), "was dropped by a reset or a rewind"), "%s",
                  ad_tape_message(tape));
    ad_tape_clear_error(tape);
    check_gone(new, "size: the tensor was released at test_frames.c:");
}

TEST(frames_nest_and_an_outer_end_ends_the_inner_ones)
{
    compute_want();
    ad_frame outer = ad_frame_begin(tape);
    ad_tensor e = ad_exp(x);
    ad_frame inner = ad_frame_begin(tape);
    ad_tensor product = ad_mul(e, x);
    ad_tensor lost = ad_neg(product);
    ck_assert_int_eq(ad_frame_end(inner, &product, 1), AD_OK);
    check_gone(lost, "was released at the end of its frame");
    ad_tensor half = ad_scale(ad_tanh(x), 0.5);
    ad_frame open = ad_frame_begin(tape);
    ad_tensor y = ad_sum(ad_add(product, half));
    uint64_t before = live();
    ck_assert_int_eq(ad_frame_end(outer, &y, 1), AD_OK);
    ck_assert_uint_eq(before - live(), (uint64_t)3 * BYTES); /* product, half and their sum */
    check_gone(product, "was released at the end of its frame");
    check_gradient(y, want);
    ck_assert_int_eq(ad_frame_end(open, NULL, 0), AD_ERROR_STATE);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "frame_end: the frame is not open"));
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_frame_end(inner, NULL, 0), AD_ERROR_STATE);
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_frame_end(outer, NULL, 0), AD_ERROR_STATE);
}

TEST(a_kept_view_keeps_its_buffer_and_a_released_view_gives_it_up)
{
    uint64_t before = live();
    ad_tape_no_grad_begin(tape);
    ad_frame frame = ad_frame_begin(tape);
    ad_tensor h = ad_square(x);
    ad_tensor view = ad_transpose(ad_reshape(h, square_shape, 2));
    ck_assert_int_eq(ad_value(view, want, N), AD_OK);
    ck_assert_int_eq(ad_frame_end(frame, &view, 1), AD_OK);
    check_gone(h, "was released at the end of its frame");
    ck_assert_int_eq(ad_value(view, got, N), AD_OK);
    ck_assert_mem_eq(got, want, BYTES);
    ad_tensor copy = ad_neg(view); /* a buffer of the same class, were it free */
    ck_assert_int_eq(ad_value(view, got, N), AD_OK);
    ck_assert_mem_eq(got, want, BYTES);
    uint64_t with = live();
    ck_assert_int_eq(ad_release(view), AD_OK);
    ck_assert_uint_eq(with - live(), BYTES);
    ck_assert_int_eq(ad_release(copy), AD_OK);
    ck_assert_uint_eq(with - live(), (uint64_t)2 * BYTES);
    check_gone(view, "was released at test_frames.c:");
    ad_tape_no_grad_end(tape);
    ck_assert_uint_gt(live(), before); /* entries and shapes stay */
    ck_assert_uint_lt(live() - before, 800);
}

TEST(a_buffer_that_a_pullback_reads_through_a_view_stays)
{
    ad_tensor w = ad_leaf(tape, AD_F64, 2, square_shape, other);
    double of_x[2][N], of_w[2][N];
    for (int framed = 0; framed < 2; framed++) {
        ad_mark mark = ad_tape_mark(tape);
        ad_frame frame = ad_frame_begin(tape);
        ad_tensor h = ad_reshape(ad_scale(ad_tanh(x), 2), square_shape, 2);
        ad_tensor y = ad_sum(ad_matmul(ad_transpose(h), w));
        if (framed)
            ck_assert_int_eq(ad_frame_end(frame, &y, 1), AD_OK);
        ad_neg(w); /* would take a buffer that was freed by mistake */
        ck_assert_int_eq(ad_backward(y), AD_OK);
        ck_assert_int_eq(ad_gradient(w, of_w[framed], N), AD_OK);
        ck_assert_int_eq(ad_gradient(x, of_x[framed], N), AD_OK);
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    }
    ck_assert_mem_eq(of_x[1], of_x[0], BYTES);
    ck_assert_mem_eq(of_w[1], of_w[0], BYTES);
}

TEST(leaves_and_constants_made_in_a_frame_stay)
{
    ad_frame frame = ad_frame_begin(tape);
    ad_tensor w = ad_leaf(tape, AD_F64, 1, shape, other);
    ad_tensor c = ad_constant(tape, AD_F64, 1, shape, other);
    ad_tensor s = ad_scalar_f64(tape, 3);
    ad_tensor d = ad_detach(w);
    ad_tensor y = ad_sum(ad_mul(ad_mul(w, c), s));
    ck_assert_int_eq(ad_frame_end(frame, &y, 1), AD_OK);
    ck_assert_int_eq(ad_size(w), N);
    ck_assert_int_eq(ad_size(c), N);
    check_gone(s, "was released at the end of its frame"); /* its value is the tape's */
    check_gone(d, "was released at the end of its frame");
    ck_assert_int_eq(ad_backward(y), AD_OK);
    ck_assert_int_eq(ad_gradient(w, got, N), AD_OK);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq(got[i], other[i] * 3);
    ck_assert_int_eq(ad_release(w), AD_ERROR_STATE);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "release: a leaf stays until a reset"));
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_release(c), AD_ERROR_STATE);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "release: a constant stays until a reset"));
}

TEST(a_retained_value_stays_with_its_gradient)
{
    compute_want();
    ad_frame frame = ad_frame_begin(tape);
    struct parts p = compute();
    ck_assert_int_eq(ad_retain_gradient(p.sum), AD_OK);
    ck_assert_int_eq(ad_frame_end(frame, &p.y, 1), AD_OK);
    ck_assert_int_eq(ad_release(p.sum), AD_ERROR_STATE);
    ck_assert_ptr_nonnull(
        strstr(ad_tape_message(tape), "release: the tensor's gradient is retain"));
    ad_tape_clear_error(tape);
    check_gradient(p.y, want);
    ck_assert_int_eq(ad_gradient(p.sum, got, N), AD_OK);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq(got[i], 1);
}

TEST(without_records_all_that_is_not_kept_is_freed)
{
    ad_tensor c = ad_constant(tape, AD_F64, 1, shape, other);
    for (int no_grad = 0; no_grad < 2; no_grad++) {
        uint64_t before = 0, after = 0;
        for (int rounds = 1; rounds <= 2; rounds++) {
            ad_mark mark = ad_tape_mark(tape);
            uint64_t start = live();
            if (no_grad)
                ad_tape_no_grad_begin(tape);
            ad_frame frame = ad_frame_begin(tape);
            ad_tensor h = no_grad ? x : c;
            for (int i = 0; i < 10; i++)
                h = ad_tanh(ad_mul(h, c));
            before = live() - start;
            ck_assert_int_eq(ad_frame_end(frame, &h, rounds - 1), AD_OK);
            after = live() - start;
            ck_assert_uint_eq(before - after, (uint64_t)(21 - rounds) * BYTES);
            ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
            ck_assert_uint_eq(live(), start);
        }
    }
}

TEST(an_op_without_a_record_keeps_no_hidden_output)
{
    static const int64_t labels[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    ad_tensor l = ad_constant(tape, AD_I64, 1, (int64_t[]){8}, labels);
    ad_tensor logits = ad_reshape(x, square_shape, 2);
    uint64_t before = live();
    ad_softmax_cross_entropy(logits, l);
    uint64_t recorded = live() - before;
    ad_tape_no_grad_begin(tape);
    before = live();
    ad_softmax_cross_entropy(logits, l);
    uint64_t unrecorded = live() - before;
    ad_tape_no_grad_end(tape);
    check_fine();
    ck_assert_uint_gt(recorded, unrecorded + BYTES - 1);
}

TEST(second_derivatives_pass_frames)
{
    ad_tensor gradient = zero, second = zero;
    double first[N];
    for (int framed = 0; framed < 3; framed++) {
        ad_mark mark = ad_tape_mark(tape);
        ad_frame frame = ad_frame_begin(tape);
        ad_tensor y = compute().y;
        if (framed)
            ck_assert_int_eq(ad_frame_end(frame, &y, 1), AD_OK);
        frame = ad_frame_begin(tape);
        ck_assert_msg(ad_create_graph(y, zero, 1, &x, &gradient) == AD_OK, "%s",
                      ad_tape_message(tape));
        ad_tensor z = ad_sum(ad_square(gradient));
        if (framed == 2) {
            ck_assert_int_eq(ad_frame_end(frame, &z, 1), AD_OK);
            check_gone(gradient, "was released at the end of its frame");
        }
        ck_assert_msg(ad_create_graph(z, zero, 1, &x, &second) == AD_OK, "%s",
                      ad_tape_message(tape));
        ck_assert_int_eq(ad_backward(z), AD_OK);
        ck_assert_int_eq(ad_gradient(x, got, N), AD_OK);
        ck_assert_int_eq(ad_value(second, want, N), AD_OK);
        ck_assert_mem_eq(got, want, BYTES);
        if (!framed)
            memcpy(first, got, BYTES);
        ck_assert_mem_eq(got, first, BYTES);
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    }
}

RUN_TESTS(setup, teardown)
