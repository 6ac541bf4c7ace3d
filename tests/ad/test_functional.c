/* test_functional.c: value and gradients of a function in one call, and pullbacks: what they give,
 * and that they leave the tape and the user's gradients as they were.
 */
#include <tapescope/ad.h>
#include <tapescope/ad_functional.h>

#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <string.h>

#include "tape_fixture.h"

enum { N = 3 };

static const int64_t shape[] = {N};
static double a_data[N] = {0.5, -1.25, 2}, b_data[N] = {3, 0.25, -0.75};
static double ga[N], gb[N], value;
static void *const both[] = {ga, gb};
static const int64_t counts[] = {N, N};
static ad_tensor x[2];

static void setup(void)
{
    tape_begin(NULL);
    x[0] = ad_leaf(tape, AD_F64, 1, shape, a_data);
    x[1] = ad_leaf(tape, AD_F64, 1, shape, b_data);
}

/* sum(a^2 b) + sum(b) */
static ad_tensor cubic(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    (void)t, (void)n, (void)payload;
    return ad_add(ad_sum(ad_mul(ad_square(v[0]), v[1])), ad_sum(v[1]));
}

/* [a^2 b, exp(a)], of 2 N elements */
static ad_tensor several(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    (void)t, (void)n, (void)payload;
    const ad_tensor parts[] = {ad_mul(ad_square(v[0]), v[1]), ad_exp(v[0])};
    return ad_concat(parts, 2, 0);
}

static void check_cubic(void)
{
    double expected = 0;
    for (int i = 0; i < N; i++) {
        expected += a_data[i] * a_data[i] * b_data[i] + b_data[i];
        ck_assert_double_eq_tol(ga[i], 2 * a_data[i] * b_data[i], 1e-14);
        ck_assert_double_eq_tol(gb[i], a_data[i] * a_data[i] + 1, 1e-14);
    }
    ck_assert_double_eq_tol(value, expected, 1e-14);
}

static void check_same(const ad_stats *before)
{
    const ad_stats after = stats();
    ck_assert_uint_eq(after.values, before->values);
    ck_assert_uint_eq(after.records, before->records);
    ck_assert_uint_eq(after.live_bytes, before->live_bytes);
}

static void forget(void)
{
    value = 77;
    for (int i = 0; i < N; i++)
        ga[i] = gb[i] = 77;
}

static void check_nan(void)
{
    for (int i = 0; i < N; i++)
        ck_assert(isnan(ga[i]) && isnan(gb[i]));
}

/* ---- value and gradients ---- */

TEST(value_and_gradients_come_from_one_call_that_leaves_nothing)
{
    const ad_stats before = stats();
    ck_assert_int_eq(ad_value_and_gradient(tape, cubic, 2, x, NULL, &value, both, counts), AD_OK);
    check_cubic();
    check_same(&before);
    forget();
    ck_assert_int_eq(ad_value_and_gradient(tape, cubic, 2, x, NULL, NULL, both, counts), AD_OK);
    ck_assert_double_eq(value, 77);
    check_same(&before);
}

/* What the tape holds, and what a buffer of the user's holds, is neither added to nor lost. */
TEST(gradients_of_the_user_are_not_touched)
{
    double kept[N] = {1, 2, 3}, held[N];
    const ad_tensor y = ad_sum(ad_exp(ad_mul(x[0], x[1])));
    ck_assert_int_eq(ad_gradient_buffer(x[0], kept, N), AD_OK);
    ck_assert_int_eq(ad_backward(y), AD_OK);
    double was[N];
    memcpy(was, kept, sizeof was);
    ck_assert_int_eq(ad_gradient(x[1], held, N), AD_OK);
    ck_assert_int_eq(ad_value_and_gradient(tape, cubic, 2, x, NULL, &value, both, counts), AD_OK);
    check_cubic();
    ck_assert_mem_eq(kept, was, sizeof was);
    ck_assert_int_eq(ad_gradient(x[1], gb, N), AD_OK);
    ck_assert_mem_eq(gb, held, sizeof held);
    ck_assert_int_eq(ad_backward(y), AD_OK);
    ck_assert_int_eq(ad_gradient(x[1], gb, N), AD_OK);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq(gb[i], 2 * held[i]);
}

/* A sweep that was none of the user's gives him no gradients to read. */
TEST(the_calls_sweep_is_none_of_the_users)
{
    ck_assert_int_eq(ad_value_and_gradient(tape, cubic, 2, x, NULL, &value, both, counts), AD_OK);
    ck_assert_int_eq(ad_gradient(x[0], ga, N), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "gradient: ");
}

static ad_tensor older;

static ad_tensor by_older(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    (void)t, (void)n, (void)payload;
    const double one[N] = {1, 1, 1};
    const ad_tensor made = ad_leaf_copy(t, AD_F64, 1, shape, one);
    return ad_sum(ad_mul(ad_mul(v[0], older), ad_mul(x[1], made)));
}

TEST(all_but_x_is_constant)
{
    older = ad_square(x[0]);
    void *const one[] = {ga};
    ck_assert_int_eq(ad_value_and_gradient(tape, by_older, 1, x, NULL, NULL, one, counts), AD_OK);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq_tol(ga[i], a_data[i] * a_data[i] * b_data[i], 1e-14);
    /* and is what it was before */
    ck_assert_int_eq(ad_backward(ad_sum(older)), AD_OK);
    ck_assert_int_eq(ad_gradient(x[0], ga, N), AD_OK);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq_tol(ga[i], 2 * a_data[i], 1e-14);
}

static ad_tensor in_f32(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    (void)t, (void)n, (void)payload;
    return ad_sum(ad_mul(v[0], v[0]));
}

TEST(f32_has_gradients_of_f32)
{
    const float data[2] = {1.5F, -3};
    float g[2];
    const ad_tensor leaf = ad_leaf(tape, AD_F32, 1, (int64_t[]){2}, data);
    ck_assert_int_eq(
        ad_value_and_gradient(tape, in_f32, 1, &leaf, NULL, &value, (void *[]){g}, (int64_t[]){2}),
        AD_OK);
    ck_assert_double_eq(value, 11.25);
    ck_assert(g[0] == 3 && g[1] == -6);
}

static ad_tensor first_alone(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    (void)t, (void)n, (void)payload;
    return ad_sum(v[0]);
}

TEST(what_the_result_does_not_depend_on_has_zeros)
{
    forget();
    ck_assert_int_eq(ad_value_and_gradient(tape, first_alone, 2, x, NULL, NULL, both, counts),
                     AD_OK);
    for (int i = 0; i < N; i++)
        ck_assert(ga[i] == 1 && gb[i] == 0);
}

/* A function that differentiates, and sweeps, by itself. */
static ad_tensor nested(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    (void)payload;
    double inner[N], unused[N], sum = 0;
    void *const to[] = {inner, unused};
    const ad_status swept = ad_backward(ad_sum(ad_exp(v[0])));
    const ad_status status = ad_value_and_gradient(t, cubic, n, v, NULL, NULL, to, counts);
    for (int i = 0; i < N && status == AD_OK && swept == AD_OK; i++)
        sum += inner[i];
    return ad_scale(cubic(t, v, n, NULL), sum);
}

TEST(a_function_may_differentiate_by_itself)
{
    double factor = 0;
    for (int i = 0; i < N; i++)
        factor += 2 * a_data[i] * b_data[i];
    ck_assert_int_eq(ad_value_and_gradient(tape, nested, 2, x, NULL, &value, both, counts), AD_OK);
    for (int i = 0; i < N; i++) {
        ck_assert_double_eq_tol(ga[i], factor * 2 * a_data[i] * b_data[i], 1e-13);
        ck_assert_double_eq_tol(gb[i], factor * (a_data[i] * a_data[i] + 1), 1e-13);
    }
}

/* ---- errors ---- */

enum wrong { SHAPE, INTEGERS, INDEPENDENT, STALE, FAILS, RESETS, DESTROYS, LEAVES_NO_GRAD };

static ad_tensor stale;

static ad_tensor wrongly(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    (void)n;
    switch (*(const enum wrong *)payload) {
    case SHAPE:
        return ad_square(v[0]);
    case INTEGERS:
        return ad_scalar_i64(t, 1);
    case INDEPENDENT:
        return ad_scalar_f64(t, 1);
    case STALE:
        return stale;
    case FAILS:
        return ad_matmul(v[0], ad_reshape(v[1], (int64_t[]){1, N}, 2));
    case RESETS:
        ad_tape_reset(t);
        break;
    case DESTROYS:
        ad_tape_destroy(t);
        break;
    case LEAVES_NO_GRAD:
        ad_tape_no_grad_begin(t);
        break;
    }
    return ad_sum(v[0]);
}

static const struct {
    enum wrong wrong;
    ad_status status;
    const char *words, *named;
} mistakes[] = {
    {SHAPE, AD_ERROR_SHAPE, "value_and_gradient: the result is f64 [3], it must be of size 1",
     "in call_wrongly"},
    {INTEGERS, AD_ERROR_DTYPE, "the result is i64 [], integers have no gradient",
     "in call_wrongly"},
    {INDEPENDENT, AD_ERROR_STATE, "the result does not depend on x", "in call_wrongly"},
    {STALE, AD_ERROR_HANDLE, "value_and_gradient: the result was dropped", "in call_wrongly"},
    {FAILS, AD_ERROR_SHAPE, "matmul: f64 [3] x f64 [1,3]", "in wrongly"},
    {RESETS, AD_ERROR_STATE, "tape_reset: not while a value_and_gradient runs", "in wrongly"},
    {LEAVES_NO_GRAD, AD_ERROR_STATE, "computed under no_grad; no_grad begun at", "in call_wrongly"},
};

static __attribute__((noinline)) ad_status call_wrongly(enum wrong wrong)
{
    return ad_value_and_gradient(tape, wrongly, 2, x, &wrong, &value, both, counts);
}

TEST_EACH(a_wrong_function_is_said_and_leaves_nothing, sizeof mistakes / sizeof *mistakes)
{
    const ad_mark mark = ad_tape_mark(tape);
    stale = ad_exp(x[0]);
    ad_tape_rewind(tape, mark);
    const ad_stats before = stats();
    forget();
    ck_assert_int_eq(call_wrongly(mistakes[_i].wrong), mistakes[_i].status);
    check_nan();
    ck_assert(isnan(value));
    check_same(&before);
    check_error_in(tape, mistakes[_i].status, mistakes[_i].words, mistakes[_i].named);
    ck_assert_int_eq(ad_value_and_gradient(tape, cubic, 2, x, NULL, &value, both, counts), AD_OK);
    check_cubic();
}

TEST(a_function_that_destroys_the_tape_is_survived)
{
    ck_assert_int_eq(call_wrongly(DESTROYS), AD_ERROR_HANDLE);
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_HANDLE);
    tape_begin(NULL);
}

static void check_refused(ad_status status, ad_status expected, const char *words)
{
    ck_assert_int_eq(status, expected);
    check_error(expected, words);
}

TEST(arguments_are_looked_at)
{
    const int64_t few[] = {N, N - 1};
    const ad_tensor twice[] = {x[0], x[0]}, computed[] = {x[0], ad_exp(x[0])};
    const ad_stats before = stats();
    forget();
    check_refused(ad_value_and_gradient(tape, NULL, 2, x, NULL, &value, both, counts),
                  AD_ERROR_ARGUMENT, "value_and_gradient: function is a null pointer");
    check_nan();
    check_refused(ad_value_and_gradient(tape, cubic, 2, NULL, NULL, &value, both, counts),
                  AD_ERROR_ARGUMENT, "value_and_gradient: x is a null pointer");
    check_refused(ad_value_and_gradient(tape, cubic, 0, x, NULL, &value, both, counts),
                  AD_ERROR_ARGUMENT, "value_and_gradient: n is less than 1");
    check_refused(ad_value_and_gradient(tape, cubic, 2, x, NULL, &value, NULL, counts),
                  AD_ERROR_ARGUMENT, "value_and_gradient: gradients is a null pointer");
    check_refused(ad_value_and_gradient(tape, cubic, 2, x, NULL, &value, both, NULL),
                  AD_ERROR_ARGUMENT, "value_and_gradient: counts is a null pointer");
    check_refused(
        ad_value_and_gradient(tape, cubic, 2, x, NULL, &value, (void *[]){ga, NULL}, counts),
        AD_ERROR_ARGUMENT, "value_and_gradient: gradients[1] is a null pointer");
    forget();
    check_refused(ad_value_and_gradient(tape, cubic, 2, x, NULL, &value, both, few),
                  AD_ERROR_ARGUMENT, "gradients[1] has 2 elements, not 1 row of x[1], f64 [3]");
    ck_assert(isnan(gb[N - 2]) && gb[N - 1] == 77);
    check_refused(ad_value_and_gradient(tape, cubic, 2, twice, NULL, &value, both, counts),
                  AD_ERROR_ARGUMENT, "value_and_gradient: x[1] is a leaf that x has already");
    check_refused(ad_value_and_gradient(tape, cubic, 2, computed, NULL, &value, both, counts),
                  AD_ERROR_ARGUMENT, "value_and_gradient: x[1] is not a leaf");
    check_same(&before);
    ad_tape_no_grad_begin(tape);
    check_refused(ad_value_and_gradient(tape, cubic, 2, x, NULL, &value, both, counts),
                  AD_ERROR_STATE, "value_and_gradient: not under no_grad");
    ad_tape_no_grad_end(tape);
    ck_assert_int_eq(ad_value_and_gradient(tape, cubic, 2, x, NULL, &value, both, counts), AD_OK);
    check_cubic();
}

static ad_tensor changes(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    const ad_tensor y = cubic(t, v, n, payload);
    a_data[0] += 1;
    return y;
}

TEST(an_array_that_the_function_changes_is_refused)
{
    forget();
    check_refused(ad_value_and_gradient(tape, changes, 2, x, NULL, &value, both, counts),
                  AD_ERROR_STATE, "the leaf f64 [3]");
    a_data[0] -= 1;
    check_nan();
    ck_assert(isnan(value));
}

/* ---- pullbacks ---- */

static double seed[2 * N] = {1, 2, -3, 0.5, 0, 4};

static void check_several(double factor)
{
    for (int i = 0; i < N; i++) {
        ck_assert_double_eq_tol(
            ga[i], factor * (seed[i] * 2 * a_data[i] * b_data[i] + seed[N + i] * exp(a_data[i])),
            1e-13);
        ck_assert_double_eq_tol(gb[i], factor * seed[i] * a_data[i] * a_data[i], 1e-13);
    }
}

TEST(a_pullback_is_called_with_other_seeds)
{
    double y[2 * N];
    const ad_stats before = stats();
    const ad_pullback p = ad_pullback_begin(tape, several, 2, x, NULL);
    ck_assert_int_eq(ad_tape_status(tape), AD_OK);
    ck_assert_int_eq(ad_value(ad_pullback_result(p), y, 2 * N), AD_OK);
    ck_assert_double_eq(y[N], exp(a_data[0]));
    const ad_stats during = stats();
    for (int round = 1; round < 4; round++) {
        forget();
        ck_assert_int_eq(ad_pullback_call(p, seed, 2 * N, both, counts), AD_OK);
        check_several(1);
        check_same(&during);
        for (int i = 0; i < 2 * N; i++)
            seed[i] = seed[i] * -0.5 + round;
    }
    ck_assert_int_eq(ad_pullback_end(p), AD_OK);
    check_same(&before);
}

TEST(what_is_recorded_beside_a_pullback_is_apart_from_it)
{
    double held[N];
    const ad_pullback p = ad_pullback_begin(tape, several, 2, x, NULL);
    const ad_tensor c = ad_leaf_copy(tape, AD_F64, 1, shape, b_data);
    const ad_tensor z = ad_sum(ad_mul(ad_mul(x[0], c), ad_sum(ad_pullback_result(p))));
    ck_assert_int_eq(ad_backward(z), AD_OK);
    ck_assert_int_eq(ad_gradient(c, held, N), AD_OK);
    ck_assert_int_eq(ad_pullback_call(p, seed, 2 * N, both, counts), AD_OK);
    check_several(1);
    ck_assert_int_eq(ad_gradient(c, ga, N), AD_OK);
    ck_assert_mem_eq(ga, held, sizeof held);
    ck_assert_int_eq(ad_gradient(x[1], gb, N), AD_OK);
    ck_assert_int_eq(ad_pullback_end(p), AD_OK);
    ck_assert_int_eq(ad_gradient(x[1], ga, N), AD_OK); /* its end is no rewind to gradients */
    ck_assert_mem_eq(ga, gb, sizeof gb);
    ck_assert_int_eq(ad_size(c), -1);
    check_error(AD_ERROR_HANDLE, "was dropped");
}

TEST(a_result_of_size_1_needs_no_seed)
{
    const ad_pullback p = ad_pullback_begin(tape, cubic, 2, x, NULL);
    value = ad_item(ad_pullback_result(p));
    ck_assert_int_eq(ad_pullback_call(p, NULL, 0, both, counts), AD_OK);
    check_cubic();
    ck_assert_int_eq(ad_pullback_end(p), AD_OK);
}

TEST(pullbacks_nest)
{
    const ad_pullback outer = ad_pullback_begin(tape, several, 2, x, NULL);
    const ad_pullback inner = ad_pullback_begin(tape, cubic, 2, x, NULL);
    ck_assert_int_eq(ad_pullback_call(outer, seed, 2 * N, both, counts), AD_OK);
    check_several(1);
    value = ad_item(ad_pullback_result(inner));
    ck_assert_int_eq(ad_pullback_call(inner, NULL, 0, both, counts), AD_OK);
    check_cubic();
    ck_assert_int_eq(ad_pullback_end(outer), AD_OK);
    check_refused(ad_pullback_end(inner), AD_ERROR_STATE,
                  "pullback_end: the pullback was ended, or dropped by a reset or a rewind");
}

static __attribute__((noinline)) void check_stale(ad_pullback p)
{
    forget();
    ck_assert_int_eq(ad_pullback_call(p, seed, 2 * N, both, counts), AD_ERROR_STATE);
    check_error_in(tape, AD_ERROR_STATE,
                   "pullback_call: the pullback was ended, or dropped by a reset or a rewind",
                   "in check_stale");
    ck_assert_double_eq(ga[0], 77); /* nothing is known of its leaves */
    ck_assert_uint_eq(ad_pullback_result(p).value, 0);
    check_error(AD_ERROR_STATE, "pullback_result: the pullback was ended");
    check_refused(ad_pullback_end(p), AD_ERROR_STATE, "pullback_end: the pullback was ended");
}

TEST(a_pullback_that_is_gone_is_refused)
{
    const ad_mark mark = ad_tape_mark(tape);
    ad_pullback p = ad_pullback_begin(tape, several, 2, x, NULL);
    ck_assert_int_eq(ad_pullback_end(p), AD_OK);
    check_stale(p);
    const ad_pullback next = ad_pullback_begin(tape, several, 2, x, NULL);
    check_stale(p);
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    check_stale(next);
    p = ad_pullback_begin(tape, several, 2, x, NULL);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    check_stale(p);
}

TEST(a_pullback_whose_result_or_frame_is_gone_is_refused)
{
    const ad_frame frame = ad_frame_begin(tape);
    const ad_pullback p = ad_pullback_begin(tape, several, 2, x, NULL);
    ck_assert_int_eq(ad_release(ad_pullback_result(p)), AD_OK);
    check_refused(ad_pullback_call(p, seed, 2 * N, both, counts), AD_ERROR_HANDLE,
                  "pullback_call: the result was released");
    check_nan();
    ck_assert_int_eq(ad_frame_end(frame, NULL, 0), AD_OK);
    check_refused(ad_pullback_call(p, seed, 2 * N, both, counts), AD_ERROR_STATE,
                  "pullback_call: the pullback was released by the end of a frame");
    ck_assert_int_eq(ad_pullback_end(p), AD_OK);
}

TEST(a_pullbacks_arguments_are_looked_at)
{
    const ad_pullback p = ad_pullback_begin(tape, several, 2, x, NULL);
    check_refused(ad_pullback_call(p, NULL, 0, both, counts), AD_ERROR_ARGUMENT,
                  "pullback_call: seed is a null pointer, and the result is f64 [6]");
    check_nan();
    check_refused(ad_pullback_call(p, seed, N, both, counts), AD_ERROR_ARGUMENT,
                  "pullback_call: the seed has 3 elements, the result is f64 [6]");
    check_refused(ad_pullback_call(p, seed, 2 * N, NULL, counts), AD_ERROR_ARGUMENT,
                  "pullback_call: gradients is a null pointer");
    a_data[1] += 1;
    forget();
    check_refused(ad_pullback_call(p, seed, 2 * N, both, counts), AD_ERROR_STATE,
                  "the leaf f64 [3]");
    check_nan();
    a_data[1] -= 1;
    ck_assert_int_eq(ad_pullback_call(p, seed, 2 * N, both, counts), AD_OK);
    check_several(1);
    ck_assert_int_eq(ad_pullback_end(p), AD_OK);
    enum wrong wrong = INDEPENDENT;
    const ad_pullback none = ad_pullback_begin(tape, wrongly, 2, x, &wrong);
    check_error(AD_ERROR_STATE, "pullback_begin: the result does not depend on x");
    check_refused(ad_pullback_call(none, seed, 2 * N, both, counts), AD_ERROR_STATE,
                  "pullback_call: the pullback's begin failed");
    const ad_pullback nowhere = ad_pullback_begin((ad_tape){0, 0}, several, 2, x, NULL);
    check_error_of((ad_tape){0, 0}, AD_ERROR_HANDLE, "pullback_begin: the handle is zero");
    ck_assert_int_eq(ad_pullback_end(nowhere), AD_ERROR_HANDLE);
    check_error_of((ad_tape){0, 0}, AD_ERROR_HANDLE, "pullback_end: the handle is zero");
}

static ad_pullback outside;

static ad_tensor calls_outside(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    if (payload)
        ad_pullback_end(outside);
    else if (ad_pullback_call(outside, seed, 2 * N, both, counts) == AD_OK)
        value = 0;
    return cubic(t, v, n, NULL);
}

TEST(a_function_cannot_use_a_pullback_that_is_older)
{
    outside = ad_pullback_begin(tape, several, 2, x, NULL);
    check_refused(ad_value_and_gradient(tape, calls_outside, 2, x, NULL, &value, both, counts),
                  AD_ERROR_STATE, "pullback_call: the pullback is older than the function");
    check_refused(ad_value_and_gradient(tape, calls_outside, 2, x, x, &value, both, counts),
                  AD_ERROR_STATE, "pullback_end: the pullback is older than the function");
    ck_assert_int_eq(ad_pullback_call(outside, seed, 2 * N, both, counts), AD_OK);
    check_several(1);
}

/* Frames, marks and no_grad that the function left open are closed. */
static ad_tensor untidy(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    ad_tape_mark(t);
    ad_frame_begin(t);
    const ad_tensor y = several(t, v, n, payload);
    ad_tape_no_grad_begin(t);
    return y;
}

TEST(what_a_kept_function_leaves_open_is_closed)
{
    const ad_frame frame = ad_frame_begin(tape);
    const ad_pullback p = ad_pullback_begin(tape, untidy, 2, x, NULL);
    ck_assert_int_eq(ad_tape_no_grad_end(tape), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "tape_no_grad_end: there was no begin");
    const ad_mark mark = ad_tape_mark(tape);
    ck_assert_int_eq(ad_pullback_call(p, seed, 2 * N, both, counts), AD_OK);
    check_several(1);
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    ck_assert_int_eq(ad_pullback_end(p), AD_OK);
    check_refused(ad_tape_rewind(tape, mark), AD_ERROR_STATE, "has dropped the mark");
    ck_assert_int_eq(ad_frame_end(frame, NULL, 0), AD_OK);
}

RUN_TESTS(setup, teardown_fine)
