/* test_real_bridge_checks.c: gradient checks of functions that go from tensors to real numbers and
 * back, and mistakes with the bridges, one a case: named, with the line, and without a trace.
 */
#include <tapescope/ad_real.h>

#include "ad_internal.h"
#include "poison_check.h"
#include "run_cases.h"
#include "tape_statement.h"

#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})

#if AD_LINE_MACROS
#define ad_gradient(...) ad_gradient_at(__VA_ARGS__, __LINE__)
#define ad_backward(...) ad_backward_at(__VA_ARGS__, __LINE__)
#define ad_item(...) ad_item_at(__VA_ARGS__, __LINE__)
#endif

static ad_tensor w;
static double data[3];

static const ad_tape none;

static void setup(void)
{
    static const ad_tape_options small = {.budget_bytes = 1 << 20, .reserve_bytes = 256 << 20};
    tape_begin(&small);
    memcpy(data, (const double[3]){0.5, -2, 3}, sizeof data);
    w = ad_leaf(tape, AD_F64, 1, SHAPE(3), data);
}

static void check_fine(void)
{
    ck_assert_msg(ad_tape_status(tape) == AD_OK, "%s", ad_tape_message(tape));
}

#define CHECK_ERROR(where, status, words)                                                          \
    check_error_in(where, status, words, "test_real_bridge_checks.c")

/* ---- gradient checks ---- */

/* What is older than the check, for functions to use. */
static ad_real older_leaf, older_element;
static ad_tensor older_tensor;

/* What the function does besides. */
enum { PLAIN, CUT, BESIDE, OLDER, SWEEP, JACOBIAN, RELEASE, LEAVES };

/* A loss with branches: Huber's of the differences of neighbours, over a tanh of a square. */
static ad_tensor huber(ad_tape on, const ad_tensor *in, int n, void *payload)
{
    const int way = *(const int *)payload;
    ad_real u[3], out[2], older = ad_real_of(1), j[3];
    ck_assert_int_eq(n, 1);
    ad_tensor h = way == CUT ? ad_detach(ad_square(in[0])) : ad_square(in[0]);
    if (ad_reals_of_tensor(ad_tanh(h), 3, u) != AD_OK)
        return h;
    if (way == OLDER)
        ad_set(&older, ad_real_mul(older_leaf, older_element));
    if (way == LEAVES)
        older = ad_real_leaf(on, 1.5);
    for (int i = 0; i < 2; i++) {
        ad_real d;
        ad_set(&d, ad_real_mul(ad_real_sub(u[i + 1], u[i]), older));
        if (d.value * d.value < 0.01)
            ad_set(&out[i], ad_real_mul(0.5, ad_real_square(d)));
        else
            ad_set(&out[i], ad_real_mul(0.1, ad_real_sub(ad_real_fabs(d), 0.05)));
    }
    ad_tensor y = ad_tensor_of_reals(on, 1, SHAPE(2), out);
    if (way == OLDER)
        y = ad_mul(y, older_tensor);
    ad_tensor result = ad_sum(ad_mul(y, ad_exp(y)));
    if (way == BESIDE)
        result = ad_add(result, ad_sum(ad_detach(h)));
    if (way == SWEEP)
        ck_assert_int_eq(ad_backward(result), AD_OK);
    if (way == RELEASE)
        (void)!ad_backward_release(ad_sum(ad_tensor_of_reals(on, 1, SHAPE(2), out)));
    if (way == JACOBIAN) {
        double jacobian[3];
        ck_assert_int_eq(ad_reals_of_tensor(ad_exp(y), 2, j), AD_OK);
        ck_assert_int_eq(ad_real_jacobian(on, 1, j, 3, u, jacobian), AD_ERROR_STATE);
    }
    return result;
}

static ad_status check(int way, ad_gradient_report *report)
{
    return ad_check_gradient(tape, huber, 1, &w, 1e-6, &way, report);
}

TEST(a_function_by_way_of_reals_passes)
{
    ad_gradient_report report;
    ad_real first = ad_real_leaf(tape, 2), y;
    ad_set(&y, ad_real_square(first));
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_int_eq(check(PLAIN, &report), AD_OK);
    ck_assert(report.compared == 3 && report.wrong == 0 && report.swept != 0);
    ck_assert_int_eq(check(SWEEP, &report), AD_OK);
    ck_assert_int_eq(check(LEAVES, &report), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, first), 4);
    ad_set(&y, ad_real_mul(y, first)); /* values from before the check are valid */
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, first), 16);
    check_fine();
}

TEST(a_function_that_cuts_the_way_is_told)
{
    ad_gradient_report report;
    for (int way = CUT; way <= BESIDE; way++) {
        ck_assert_int_eq(check(way, &report), AD_ERROR_GRADIENT);
        ck_assert_int_gt(report.wrong, 0);
        ck_assert_ptr_null(report.op);
        ck_assert_ptr_nonnull(strstr(report.message, "no op alone is wrong"));
        ad_tape_clear_error(none);
    }
    check_fine();
}

TEST(what_is_older_than_a_check_is_constant_by_either_way)
{
    ad_gradient_report report;
    ad_real x[3];
    older_leaf = ad_real_leaf(tape, 0.75);
    ck_assert_int_eq(ad_reals_of_tensor(w, 3, x), AD_OK);
    ad_set(&older_element, ad_real_mul(x[0], 3));
    older_tensor = ad_tensor_of_reals(tape, 1, SHAPE(2), (ad_real[]){older_element, older_leaf});
    ck_assert_int_eq(ad_backward(ad_sum(older_tensor)), AD_OK);
    ck_assert_int_eq(check(OLDER, &report), AD_OK);
    ck_assert_int_eq(report.compared, 3);
    double g[3];
    ck_assert_double_eq(ad_real_gradient(tape, older_leaf), 1);
    ck_assert_int_eq(ad_gradient(w, g, 3), AD_OK);
    ck_assert(g[0] == 3 && g[1] == 0 && g[2] == 0);
    check_fine();
}

TEST(a_check_has_no_jacobian_through_tensors)
{
    ad_gradient_report report;
    ck_assert_int_eq(check(JACOBIAN, &report), AD_ERROR_STATE);
    CHECK_ERROR(tape, AD_ERROR_STATE, "real_jacobian: not through tensors while a gradient check");
}

TEST(a_function_that_releases_what_it_gives_is_refused)
{
    ad_gradient_report report;
    ck_assert_int_eq(check(RELEASE, &report), AD_ERROR_STATE);
    CHECK_ERROR(tape, AD_ERROR_STATE, "a sweep that releases has passed tanh at");
}

/* x^2 times what was computed before the check, from x as well: by derivatives as ops. */
static ad_tensor slope(ad_tape on, const ad_tensor *in, int n, void *payload)
{
    ad_tensor t = ad_tensor_of_reals(on, 0, NULL, &older_element), g;
    ad_tensor y = ad_sum(ad_mul(ad_square(in[0]), t));
    (void)payload;
    ck_assert_int_eq(n, 1);
    ck_assert_int_eq(ad_create_graph(y, (ad_tensor){0}, 1, in, &g), AD_OK);
    return ad_mul(g, in[0]);
}

TEST(derivatives_within_a_check_stop_at_what_is_older)
{
    ad_gradient_report report;
    ad_real x[3];
    ck_assert_int_eq(ad_reals_of_tensor(w, 3, x), AD_OK);
    ad_set(&older_element, ad_real_mul(x[0], 3));
    ck_assert_int_eq(ad_check_gradient(tape, slope, 1, &w, 1e-6, NULL, &report), AD_OK);
    ck_assert_int_eq(report.compared, 3);
    check_fine();
}

/* ---- mistakes: from a tensor ---- */

static void check_nan(const ad_real *y, int n)
{
    for (int i = 0; i < n; i++)
        check_poisoned(y[i]);
}

TEST(a_wrong_number_of_elements_is_refused)
{
    ad_real y[4];
    ad_stats before, after;
    ad_tape_stats(tape, &before);
    ck_assert_int_eq(ad_reals_of_tensor(w, 4, y), AD_ERROR_ARGUMENT);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "reals_of_tensor: n is 4, f64 [3] has 3 elements");
    check_nan(y, 4);
    ck_assert_int_eq(ad_reals_of_tensor(w, -1, y), AD_ERROR_ARGUMENT);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "n is -1");
    ck_assert_int_eq(ad_reals_of_tensor(w, INT64_MAX, y), AD_ERROR_ARGUMENT);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "n is 9223372036854775807");
    ck_assert_int_eq(ad_reals_of_tensor(w, 3, NULL), AD_ERROR_ARGUMENT);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "reals_of_tensor: y is a null pointer");
    ad_tape_stats(tape, &after);
    ck_assert_uint_eq(after.records, before.records);
    ck_assert_uint_eq(after.live_bytes, before.live_bytes);
}

TEST(tensors_that_are_none_have_no_elements)
{
    ad_real y[3];
    ck_assert_int_eq(ad_reals_of_tensor((ad_tensor){0}, 3, y), AD_ERROR_HANDLE);
    CHECK_ERROR(none, AD_ERROR_HANDLE, "reals_of_tensor: the tensor is a handle of zeros");
    check_nan(y, 3);
    ad_tensor failed = ad_matmul(w, ad_reshape(w, SHAPE(1, 3), 2));
    memset(y, 0, sizeof y);
    ck_assert_int_eq(ad_reals_of_tensor(failed, 3, y), AD_ERROR_SHAPE); /* the first error */
    check_nan(y, 3);
    CHECK_ERROR(tape, AD_ERROR_SHAPE, "matmul");
    ck_assert_int_eq(ad_reals_of_tensor(failed, 3, y), AD_ERROR_HANDLE);
    CHECK_ERROR(tape, AD_ERROR_HANDLE, "is the result of an op that failed");
    ad_tensor t = ad_square(w);
    ck_assert_int_eq(ad_release(t), AD_OK);
    ck_assert_int_eq(ad_reals_of_tensor(t, 3, y), AD_ERROR_HANDLE);
    CHECK_ERROR(tape, AD_ERROR_HANDLE, "was released at");
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ck_assert_int_eq(ad_reals_of_tensor(w, 3, y), AD_ERROR_HANDLE);
    CHECK_ERROR(tape, AD_ERROR_HANDLE, "dropped by a reset or a rewind");
    check_nan(y, 3);
}

TEST(after_an_error_nothing_crosses)
{
    ad_real y[3], x = ad_real_leaf(tape, 1);
    ad_leaf(tape, AD_I64, 0, NULL, NULL);
    ck_assert_int_eq(ad_reals_of_tensor(w, 3, y), AD_ERROR_DTYPE);
    check_nan(y, 3);
    ad_tensor t = ad_tensor_of_reals(tape, 0, NULL, &x);
    ck_assert_uint_eq(t.value, 0);
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_reals_of_tensor(w, 3, y), AD_OK);
}

TEST(a_thread_that_records_on_another_tape_gets_no_elements)
{
    ad_tape other;
    ad_real y[3];
    ck_assert_int_eq(ad_tape_create(&other, NULL), AD_OK);
    ck_assert_int_eq(ad_tape_record_begin(other), AD_OK);
    ck_assert_int_eq(ad_reals_of_tensor(w, 3, y), AD_ERROR_STATE);
    CHECK_ERROR(tape, AD_ERROR_STATE, "reals_of_tensor: the thread records on another tape");
    check_nan(y, 3);
    /* Constants need no recording. */
    ck_assert_int_eq(ad_reals_of_tensor(ad_detach(w), 3, y), AD_OK);
    ad_real x = ad_real_leaf(other, 1);
    ad_tensor t = ad_tensor_of_reals(tape, 1, SHAPE(1), &x);
    ck_assert_uint_eq(t.value, 0);
    CHECK_ERROR(tape, AD_ERROR_HANDLE, "tensor_of_reals: x[0] is no value of this tape");
    t = ad_tensor_of_reals(other, 1, SHAPE(1), &x);
    ad_add(w, t);
    CHECK_ERROR(tape, AD_ERROR_TAPE, "another tape");
    ck_assert_int_eq(ad_tape_record_end(other), AD_OK);
    ck_assert_int_eq(ad_reals_of_tensor(w, 3, y), AD_OK);
    /* A tensor may be made of what was recorded before. */
    ck_assert_int_eq(ad_tape_record_begin(other), AD_OK);
    ck_assert_int_eq(ad_backward(ad_prod(ad_tensor_of_reals(tape, 1, SHAPE(3), y))), AD_OK);
    double g[3];
    ck_assert_int_eq(ad_gradient(w, g, 3), AD_OK);
    ck_assert_double_eq(g[0], data[1] * data[2]);
    ck_assert_int_eq(ad_tape_destroy(other), AD_OK);
    check_fine();
}

static void *in_another_thread(void *payload)
{
    ad_real y[3];
    (void)payload;
    ck_assert_int_eq(ad_reals_of_tensor(w, 3, y), AD_ERROR_THREAD);
    CHECK_ERROR(none, AD_ERROR_THREAD, "reals_of_tensor: the tensor: the tape belongs to another");
    check_nan(y, 3);
    ck_assert_uint_eq(ad_tensor_of_reals(tape, 1, SHAPE(3), y).tape, 0);
    CHECK_ERROR(none, AD_ERROR_THREAD, "tensor_of_reals: the tape belongs to another thread");
    return NULL;
}

TEST(another_thread_crosses_nothing)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, in_another_thread, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    check_fine();
}

TEST(elements_beyond_the_last_index_are_refused)
{
    struct tape *t = ad_slots[tape.slot].tape;
    ad_real y[3];
    ck_assert_int_eq(ad_reals_of_tensor(w, 3, y), AD_OK);
    /* As if so many statements had been recorded. */
    ck_assert_int_eq(ad_tape_record_end(tape), AD_OK);
    t->statements->rest.result = (t->statements->rest.result >> 32) << 32 | (TAPE_INDEX_LIMIT - 2);
    ck_assert_int_eq(ad_tape_record_begin(tape), AD_OK);
    ck_assert_int_eq(ad_reals_of_tensor(w, 3, y), AD_ERROR_LIMIT);
    CHECK_ERROR(tape, AD_ERROR_LIMIT, "reals_of_tensor: 3, and 2 indices are left");
    check_nan(y, 3);
    ck_assert_int_eq(ad_reals_of_tensor(ad_slice(w, 0, 1, 3, 1), 2, y), AD_OK);
    ck_assert_uint_eq(y[1].index, TAPE_INDEX_LIMIT - 1);
}

/* ---- mistakes: to a tensor ---- */

TEST(shapes_that_are_none_are_refused)
{
    ad_real x[3];
    ad_stats before, after;
    ad_real_leaves(tape, 3, data, x);
    ad_tape_stats(tape, &before);
    ad_tensor_of_reals(tape, AD_MAX_RANK + 1, SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1), x);
    CHECK_ERROR(tape, AD_ERROR_SHAPE, "tensor_of_reals: rank 9 is not in");
    ad_tensor_of_reals(tape, -1, NULL, x);
    CHECK_ERROR(tape, AD_ERROR_SHAPE, "tensor_of_reals: rank -1 is not in");
    ad_tensor_of_reals(tape, 2, SHAPE(3, -1), x);
    CHECK_ERROR(tape, AD_ERROR_SHAPE, "tensor_of_reals: extent 1 is negative: -1");
    ad_tensor_of_reals(tape, 1, NULL, x);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "tensor_of_reals: shape is a null pointer");
    ad_tensor_of_reals(tape, 1, SHAPE(3), NULL);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "tensor_of_reals: x is a null pointer");
    ad_tensor_of_reals(tape, 3, SHAPE(INT64_MAX, INT64_MAX, 2), x);
    CHECK_ERROR(tape, AD_ERROR_SHAPE, "tensor_of_reals: the size of the shape overflows");
    ad_tensor_of_reals(tape, 2, SHAPE((1 << 29) + 1, 1), x);
    CHECK_ERROR(tape, AD_ERROR_LIMIT, "tensor_of_reals: 536870913 elements, at most 536870912");
    ad_tape_stats(tape, &after);
    ck_assert_uint_eq(after.values, before.values);
    ck_assert_uint_eq(after.live_bytes, before.live_bytes);
    ck_assert_uint_eq(ad_tensor_of_reals(none, 1, SHAPE(3), x).tape, 0);
    CHECK_ERROR(none, AD_ERROR_HANDLE, "tensor_of_reals: the handle is zero");
}

TEST(elements_that_are_no_values_are_refused)
{
    ad_real x[3];
    ad_real_leaves(tape, 3, data, x);
    memset(&x[1], 0xa5, sizeof x[1]);
    ad_tensor_of_reals(tape, 1, SHAPE(3), x);
    CHECK_ERROR(tape, AD_ERROR_HANDLE, "tensor_of_reals: x[1] is no value of this tape");
    ad_tape_reset(tape);
    ad_tensor_of_reals(tape, 0, NULL, x);
    CHECK_ERROR(tape, AD_ERROR_HANDLE, "tensor_of_reals: x[0] is no value of this tape");
}

TEST(a_full_budget_leaves_no_trace)
{
    enum { N = 100000 };
    static ad_real x[N];
    ad_stats before, after;
    ad_real y[3], one = ad_real_leaf(tape, 1), s;
    for (int i = 0; i < N; i++)
        x[i] = one;
    ck_assert_int_eq(ad_reals_of_tensor(w, 3, y), AD_OK);
    ad_tensor small = ad_tensor_of_reals(tape, 1, SHAPE(3), y);
    ad_tape_stats(tape, &before);
    ad_tensor t = ad_tensor_of_reals(tape, 1, SHAPE(N), x); /* 1.2 MB, and the budget is 1 MiB */
    ck_assert_uint_eq(t.value, 0);
    CHECK_ERROR(tape, AD_ERROR_MEMORY, "tensor_of_reals: out of memory");
    ad_tape_stats(tape, &after);
    ck_assert_uint_eq(after.values, before.values);
    ck_assert_uint_eq(after.records, before.records);
    ck_assert_uint_eq(after.live_bytes, before.live_bytes);
    /* 480 KB of leaves are there; then adjoints of as many do not fit. */
    static double many[60000];
    static ad_real leaf[60000];
    ck_assert_int_eq(ad_real_leaves(tape, 60000, many, leaf), AD_OK);
    s = leaf[0];
    for (int i = 0; i < 4000; i++)
        ad_set(&s, ad_real_add(s, leaf[i]));
    ad_tape_stats(tape, &before);
    ck_assert_int_eq(ad_backward(ad_sum(small)), AD_ERROR_MEMORY);
    CHECK_ERROR(tape, AD_ERROR_MEMORY, "backward: out of memory");
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    w = ad_leaf(tape, AD_F64, 1, SHAPE(3), data);
    ck_assert_int_eq(ad_reals_of_tensor(w, 3, y), AD_OK);
    ck_assert_int_eq(ad_backward(ad_prod(ad_tensor_of_reals(tape, 1, SHAPE(3), y))), AD_OK);
}

RUN_TESTS(setup, teardown)
