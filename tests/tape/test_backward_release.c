/* test_backward_release.c: sweeps that release what they pass: gradients, memory, what is refused.
 */
#include "observe_support.h"
#include "run_cases.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

enum { N = 64, BYTES = N * sizeof(double), DEPTH = 40 };

static const ad_tensor zero;
static const int64_t shape[1] = {N}, square_shape[2] = {8, 8};
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

static void check_gone(ad_tensor v)
{
    ck_assert_int_eq(ad_size(v), -1);
    check_error(AD_ERROR_HANDLE, "was released by the sweep at test_backward_release.c:");
}

/* tanh reads its own result, so every one of them is saved. Neither inlined nor unrolled, so that
 * all calls have one site. */
__attribute__((noinline)) static ad_tensor saved_result(ad_tensor h)
{
    return ad_tanh(h);
}

static ad_tensor chain(ad_tensor h, int n)
{
    for (int i = 0; i < n; i++)
        h = saved_result(h);
    return h;
}

static void gradient_of(ad_tensor leaf, double *to)
{
    ck_assert_msg(ad_gradient(leaf, to, N) == AD_OK, "%s", ad_tape_message(tape));
}

TEST(the_gradient_is_the_same_and_what_was_passed_is_gone)
{
    ad_mark mark = ad_tape_mark(tape);
    ck_assert_int_eq(ad_backward(ad_sum(chain(x, DEPTH))), AD_OK);
    gradient_of(x, want);
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    ad_tensor h = chain(x, DEPTH / 2), last = chain(h, DEPTH / 2), y = ad_sum(last);
    uint64_t before = stats().live_bytes;
    double loss = ad_item(y);
    ck_assert_msg(ad_backward_release(y) == AD_OK, "%s", ad_tape_message(tape));
    ck_assert_uint_eq(before - stats().live_bytes, (uint64_t)DEPTH * BYTES);
    gradient_of(x, got);
    ck_assert_mem_eq(got, want, BYTES);
    ck_assert_double_eq(ad_item(y), loss);
    check_gone(h);
    check_gone(last);
    ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
}

TEST(a_seeded_sweep_releases_as_well)
{
    ad_tensor seed = ad_constant(tape, AD_F64, 1, shape, data);
    ad_mark mark = ad_tape_mark(tape);
    ck_assert_int_eq(ad_backward_seed(chain(x, 3), seed), AD_OK);
    gradient_of(x, want);
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    ad_tensor h = chain(x, 2), y = chain(h, 1);
    ck_assert_int_eq(ad_value(y, data + 0, 0), AD_ERROR_ARGUMENT);
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_backward_seed_release(y, seed), AD_OK);
    gradient_of(x, got);
    ck_assert_mem_eq(got, want, BYTES);
    check_gone(h);
    ck_assert_int_eq(ad_size(y), N);
    ck_assert_int_eq(ad_size(seed), N);
}

/* The sweep needs most for itself where it comes to the wide beginning. */
TEST(the_peak_of_a_deep_chain_that_narrows_falls)
{
    enum { LEAST = 64 }; /* bytes of the smallest buffer */
    uint64_t more[2];    /* than the recording */
    for (int release = 0; release < 2; release++) {
        ad_tape deep = observe_tape();
        ad_tensor w = ad_leaf(deep, AD_F64, 1, shape, data), h = ad_tanh(ad_sin(w));
        ad_tensor y = chain(ad_sum(h), DEPTH);
        ad_stats s;
        ck_assert_int_eq(ad_tape_stats(deep, &s), AD_OK);
        uint64_t recorded = s.peak_bytes;
        ck_assert_int_eq(release ? ad_backward_release(y) : ad_backward(y), AD_OK);
        ck_assert_int_eq(ad_tape_stats(deep, &s), AD_OK);
        more[release] = s.peak_bytes - recorded;
        ck_assert_int_eq(ad_tape_destroy(deep), AD_OK);
    }
    /* The adjoints of the wide values come when the narrow values are gone. */
    ck_assert_uint_ge(more[0], BYTES);
    ck_assert_uint_le(more[1], 3 * LEAST);
}

TEST(a_second_sweep_over_a_released_record_is_refused)
{
    ad_tensor c = ad_constant(tape, AD_F64, 1, shape, data), gradient;
    ad_tensor h = ad_add(x, c), y = ad_sum(h); /* neither reads anything */
    ck_assert_int_eq(ad_backward_release(y), AD_OK);
    gradient_of(x, want);
    ck_assert_int_eq(ad_backward(y), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "backward: a sweep that releases has passed sum at ");
    ck_assert_int_eq(ad_backward_release(y), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "backward_release: a sweep that releases has passed sum at ");
    ck_assert_int_eq(ad_create_graph(y, zero, 1, &x, &gradient), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "create_graph: a sweep that releases has passed sum at ");
    /* On top of y as well: the op whose result it is can only be passed once. */
    ad_tensor z = ad_scale(y, 2);
    ck_assert_int_eq(ad_backward(z), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "has passed sum at test_backward_release.c:");
    gradient_of(x, got); /* refused before anything was added */
    ck_assert_mem_eq(got, want, BYTES);
    /* The leaf itself is as it was. */
    ck_assert_int_eq(ad_backward(ad_sum(ad_square(x))), AD_OK);
}

TEST(another_branch_that_reads_a_released_value_is_refused)
{
    ad_tensor h = ad_tanh(x), a = ad_sum(h), product = ad_mul(h, x), b = ad_sum(product);
    ad_tensor apart = ad_sum(ad_exp(x));
    ck_assert_int_eq(ad_backward_release(a), AD_OK);
    gradient_of(x, want);
    check_gone(h);
    ck_assert_int_eq(ad_size(product), N); /* the sweep did not come to it */
    ck_assert_int_eq(ad_backward(b), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "backward: the f64 [64] that mul at test_backward_release.c:");
    ck_assert_int_eq(ad_backward(b), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "was released by the sweep at test_backward_release.c:");
    gradient_of(x, got);
    ck_assert_mem_eq(got, want, BYTES);
    ck_assert_int_eq(ad_backward(apart), AD_OK);
}

TEST(views_that_stay_hold_the_buffer_and_no_others_do)
{
    ad_tensor h = ad_tanh(x), held = ad_tanh(ad_scale(x, 2));
    ad_tensor view = ad_transpose(ad_reshape(h, square_shape, 2)), cut = ad_detach(held);
    ck_assert_int_eq(ad_value(cut, want, N), AD_OK);
    ad_tensor y = ad_sum(ad_matmul(view, ad_reshape(held, square_shape, 2)));
    uint64_t before = stats().live_bytes;
    ck_assert_int_eq(ad_backward_release(y), AD_OK);
    /* tanh(x), 2x and the product; not what is behind the detached tensor. */
    ck_assert_uint_eq(before - stats().live_bytes, (uint64_t)3 * BYTES);
    check_gone(view);
    check_gone(held);
    ck_assert_int_eq(ad_value(cut, got, N), AD_OK);
    ck_assert_mem_eq(got, want, BYTES);
    before = stats().live_bytes;
    ck_assert_int_eq(ad_release(cut), AD_OK);
    ck_assert_uint_eq(before - stats().live_bytes, BYTES);
}

TEST(retained_values_constants_and_what_has_no_record_stay)
{
    ad_tensor s = ad_scalar_f64(tape, 3), h = ad_mul(ad_tanh(x), s);
    ck_assert_int_eq(ad_retain_gradient(h), AD_OK);
    ad_tape_no_grad_begin(tape);
    ad_tensor apart = ad_exp(h);
    ad_tape_no_grad_end(tape);
    ad_tensor y = ad_sum(ad_mul(h, apart));
    ck_assert_int_eq(ad_value(h, want, N), AD_OK);
    ck_assert_int_eq(ad_backward_release(y), AD_OK);
    ck_assert_int_eq(ad_value(h, got, N), AD_OK);
    ck_assert_mem_eq(got, want, BYTES);
    ck_assert_double_eq(ad_item(s), 3);
    ck_assert_int_eq(ad_value(apart, want, N), AD_OK);
    ck_assert_int_eq(ad_gradient(h, got, N), AD_OK);
    ck_assert_mem_eq(got, want, BYTES);
}

TEST(frames_marks_and_releasing_sweeps_go_together)
{
    uint64_t at_mark = 0, after[3];
    for (int i = 0; i < 3; i++) {
        ad_mark mark = ad_tape_mark(tape);
        at_mark = stats().live_bytes;
        ad_frame frame = ad_frame_begin(tape);
        ad_tensor h = chain(x, 5), y = ad_sum(ad_scale(h, 2));
        ad_mark inside = ad_tape_mark(tape);
        ad_tensor z = ad_add(y, ad_sum(chain(h, 2)));
        ck_assert_int_eq(ad_frame_end(frame, &z, 1), AD_OK);
        ck_assert_int_eq(ad_backward_release(z), AD_OK);
        gradient_of(x, i ? got : want);
        ck_assert_int_eq(ad_tape_rewind(tape, inside), AD_OK); /* 7 buffers from before it went */
        after[i] = stats().live_bytes - at_mark;
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
        ck_assert_uint_eq(stats().live_bytes, at_mark);
    }
    ck_assert_mem_eq(got, want, BYTES);
    ck_assert_uint_eq(after[0], after[2]);
    ck_assert_uint_lt(after[0], 4096); /* entries, records and two scalars */
}

TEST(an_error_before_the_sweep_releases_nothing)
{
    static double changing[N];
    memcpy(changing, data, BYTES);
    ad_tensor w = ad_leaf(tape, AD_F64, 1, shape, changing);
    ad_tensor h = ad_mul(w, x), y = ad_sum(h);
    uint64_t before = stats().live_bytes;
    ck_assert_int_eq(ad_backward_release(h), AD_ERROR_SHAPE);
    check_error(AD_ERROR_SHAPE, "backward_release: y is f64 [64]");
    changing[3] += 1;
    ck_assert_int_eq(ad_backward_release(y), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "backward_release: the leaf f64 [64] of ");
    changing[3] = data[3];
    ck_assert_uint_eq(stats().live_bytes, before);
    ck_assert_int_eq(ad_size(h), N);
    ck_assert_int_eq(ad_backward_release(y), AD_OK);
    gradient_of(x, got);
    ck_assert_mem_eq(got, data, BYTES);
}

TEST(a_sweep_that_runs_out_of_memory_has_released_all_the_same)
{
    /* The budget lasts for the recording and no adjoint. */
    ad_tape tight;
    ad_tensor w, h, y;
    ad_stats s = {0};
    for (uint64_t budget = 4096;; budget += 64) {
        const ad_tape_options options = {.budget_bytes = budget, .reserve_bytes = 16 << 20};
        ck_assert_int_eq(ad_tape_create(&tight, &options), AD_OK);
        w = ad_leaf(tight, AD_F64, 1, shape, data);
        h = chain(w, 6);
        y = ad_sum(h);
        if (ad_tape_status(tight) == AD_OK)
            break;
        ck_assert_int_eq(ad_tape_destroy(tight), AD_OK);
    }
    ck_assert_int_eq(ad_tape_stats(tight, &s), AD_OK);
    uint64_t before = s.live_bytes;
    ck_assert_int_eq(ad_backward_release(y), AD_ERROR_MEMORY);
    ck_assert_int_eq(ad_tape_stats(tight, &s), AD_OK);
    ck_assert_uint_eq(before - s.live_bytes, (uint64_t)6 * BYTES);
    ad_tape_clear_error(tight);
    ck_assert_int_eq(ad_gradient(w, got, N), AD_ERROR_STATE);
    ad_tape_clear_error(tight);
    ck_assert_int_eq(ad_backward(y), AD_ERROR_STATE);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tight), "a sweep that releases has passed sum"));
    ad_tape_clear_error(tight);
    ck_assert_int_eq(ad_size(h), -1);
    ad_tape_clear_error(tight);
    ck_assert_int_eq(ad_backward_release(ad_sum(ad_tanh(w))), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(tight), AD_OK);
}

TEST(the_account_follows_a_releasing_sweep)
{
    observe_begin(UINT64_MAX);
    ad_tensor y = ad_sum(chain(x, 4));
    const struct tape_ledger *ledger = observe_ledger();
    uint64_t held = observe_row(ledger, "tanh")->live_bytes;
    ck_assert_int_eq(ad_backward_release(y), AD_OK);
    ck_assert_uint_eq(held - observe_row(ledger, "tanh")->live_bytes, (uint64_t)4 * BYTES);
    ck_assert_uint_eq(observe_row(ledger, "backward_release")->calls, 1);
    ck_assert_uint_eq(ledger->sweeps, 1);
    observe_check_sums(ledger);
    observe_check_live(ledger, tape);
    tape_observe_end();
}

RUN_TESTS(setup, teardown)
