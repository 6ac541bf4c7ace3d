/* test_elements.c: an array whose elements are of another type than its tensor's is refused by the
 * calls that fill or read it, and nothing is written beyond its end.
 */
#include <tapescope/ad_functional.h>
#include <tapescope/ad_tensor_sparse.h>

#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

enum { N = 3 };
#ifdef __clang__
enum { CLANG = true }; /* which judges less: see ad_value */
#else
enum { CLANG = false };
#endif
static double data[N] = {1, 2, 3};
static float data_f32[N] = {1, 2, 3};
static const int64_t integers[N] = {4, 5, 6}, counts[] = {N};
static ad_tensor x, x_f32, k;

static void setup(void)
{
    tape_begin(NULL);
    x = ad_leaf(tape, AD_F64, 1, (int64_t[]){N}, data);
    x_f32 = ad_leaf(tape, AD_F32, 1, (int64_t[]){N}, data_f32);
    k = ad_constant(tape, AD_I64, 1, (int64_t[]){N}, integers);
}

/* What a call has answered, and in which line; the message names both types and the line. */
static void check_differs(ad_status status, int line, const char *words)
{
    static const char file[] = " at test_elements.c:";
    ck_assert_int_eq(status, AD_ERROR_DTYPE);
    const char *where = strstr(ad_tape_message(tape), file);
    ck_assert_msg(where, "%s", ad_tape_message(tape));
    /* Of a call over two lines compilers take the first or the last. */
    ck_assert_int_le(abs(atoi(where + sizeof file - 1) - line), 1);
    check_error_of(tape, AD_ERROR_DTYPE, words);
}
#define DIFFERS(call, words) check_differs(call, __LINE__, words)

/* Room for N floats, and what lies behind them. */
struct narrow {
    float room[N];
    unsigned char behind[N * sizeof(double)];
};

static struct narrow narrow(void)
{
    struct narrow n;
    memset(&n, 0x5a, sizeof n);
    return n;
}

static void check_narrow(const struct narrow *n, bool filled)
{
    for (size_t i = 0; i < sizeof n->behind; i++)
        ck_assert_uint_eq(n->behind[i], 0x5a);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(isnan(n->room[i]) != 0, filled);
}

TEST(values_and_gradients_go_to_arrays_of_the_tensors_type_alone)
{
    double wide[N];
    int64_t whole[N];
    int small[N];
    struct narrow n = narrow();
    ck_assert_int_eq(ad_backward(ad_sum(ad_square(x))), AD_OK);
    DIFFERS(ad_value(x, n.room, N), "value: x is f64 [3]: the elements of the buffer must be "
                                    "double, not float");
    check_narrow(&n, true);
    n = narrow();
    DIFFERS(ad_gradient(x, n.room, N), "gradient: x is f64 [3]: the elements of the buffer must be "
                                       "double, not float");
    check_narrow(&n, true);
    n = narrow();
    DIFFERS(ad_gradient_buffer(x, n.room, N), "gradient_buffer: x is f64 [3]: ");
    check_narrow(&n, false);
    if (!CLANG) {
        DIFFERS(ad_value(x_f32, wide, N), "must be float, not double");
        ck_assert(isnan(wide[0]) && isnan(wide[N - 1]));
    }
    DIFFERS(ad_value(x, whole, N), "must be double, not long");
    ck_assert(whole[0] == INT64_MIN && whole[N - 1] == INT64_MIN);
    DIFFERS(ad_value(k, small, N), "must be int64_t, not int");
    /* A failure from before stays, and the array as small as it is. */
    ad_matmul(x, x_f32);
    n = narrow();
    ck_assert_int_eq(ad_value(x, n.room, N), AD_ERROR_DTYPE);
    check_narrow(&n, true);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "matmul"));
    ad_tape_clear_error(tape);
}

TEST(rows_are_arrays_too)
{
    double rows[1][N];
    float narrow_rows[1][N];
    ck_assert_int_eq(ad_value(x, rows, N), AD_OK);
    ck_assert_double_eq(rows[0][2], 3);
    if (CLANG)
        return;
    DIFFERS(ad_value(x, narrow_rows, N), "must be double, not float");
    ck_assert(isnan(narrow_rows[0][2]));
}

TEST(what_the_type_says_nothing_of_is_taken_as_the_dtype_says)
{
    double wide[N];
    int64_t whole[N];
    void *any = wide;
    ck_assert_int_eq(ad_value(x, any, N), AD_OK);
    ck_assert_double_eq(wide[1], 2);
    ck_assert_int_eq(ad_value(k, whole, N), AD_OK);
    ck_assert_int_eq(ad_value(k, (unsigned long long *)any, N), AD_OK);
    ck_assert_int_eq(ad_value(k, (unsigned char *)any, N), AD_OK);
    ck_assert_int_eq(ad_value(x, (double[]){0, 0, 0}, N), AD_OK);
    ck_assert_int_eq(ad_gradient_buffer(x, NULL, N), AD_OK);
    /* Whatever its type, of no tensor nothing is written. */
    float untouched = 7;
    ck_assert_int_eq(ad_value((ad_tensor){0, 0, 0, 0}, &untouched, 1), AD_ERROR_HANDLE);
    ck_assert(untouched == 7);
    ad_tape_clear_error((ad_tape){0, 0});
}

static ad_tensor squares(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    (void)t, (void)n, (void)payload;
    return ad_sum(ad_square(v[0]));
}

TEST(derivatives_of_functions_go_to_arrays_of_the_variables_type_alone)
{
    const void *const along[] = {data};
    double y = 0, hessian[N * N], gradient[N];
    void *const to[] = {gradient};
    struct narrow n = narrow();
    float one = 1;
    if (CLANG)
        return;
    DIFFERS(ad_hessian(tape, squares, 1, &x, NULL, n.room, N * N),
            "hessian: x is f64 [3]: the elements of the buffer must be double, not float");
    DIFFERS(ad_jvp(tape, squares, 1, &x, NULL, along, counts, NULL, &one, 1), "jvp: x is f64 [3]");
    DIFFERS(ad_jvp(tape, squares, 1, &x, NULL, along, counts, &one, &y, 1), "jvp: x is f64 [3]");
    ck_assert(one == 1);
    check_ok(ad_jvp(tape, squares, 1, &x, NULL, along, counts, NULL, &y, 1));
    ck_assert_double_eq(y, 28);
    check_ok(ad_hessian(tape, squares, 1, &x, NULL, hessian, N * N));
    ck_assert_double_eq(hessian[0], 2);
    const ad_pullback p = ad_pullback_begin(tape, squares, 1, &x, NULL);
    DIFFERS(ad_pullback_call(p, &one, 1, to, counts),
            "pullback_call: the result is f64 []: the elements of the seed must be double");
    check_ok(ad_pullback_call(p, &y, 1, to, counts));
    ck_assert_double_eq(gradient[0], 2 * 28);
    check_ok(ad_pullback_end(p));
    ck_assert_int_eq(ad_pullback_call(p, &one, 1, to, counts), AD_ERROR_STATE);
    check_error_of(tape, AD_ERROR_STATE, "pullback_call: the pullback was ended");
    ad_sparse_pattern pattern;
    check_ok(ad_hessian_pattern(tape, squares, 1, &x, NULL, &pattern));
    DIFFERS(ad_hessian_sparse(tape, squares, 1, &x, NULL, &pattern, n.room, N), "hessian_sparse: ");
    check_ok(ad_hessian_sparse(tape, squares, 1, &x, NULL, &pattern, gradient, N));
    ck_assert_double_eq(gradient[0], 2);
    ad_sparse_free(&pattern);
    check_ok(ad_jacobian_pattern(tape, squares, 1, &x, NULL, &pattern));
    DIFFERS(ad_jacobian_sparse(tape, squares, 1, &x, NULL, &pattern, n.room, N),
            "jacobian_sparse: ");
    ad_sparse_free(&pattern);
    check_narrow(&n, false);
}

RUN_TESTS(setup, teardown_fine)
