/* test_cast.c: numbers in another float dtype, and gradients across the change. */
#include <tapescope/ad.h>

#include "run_cases.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "tape_fixture.h"

enum { N = 35 };
#define SHAPE(...) ((int64_t[]){__VA_ARGS__})
#define OK(call) ck_assert_msg((call) == AD_OK, "%s", ad_tape_message(tape))

static double wide[N];
static float narrow[N];
static int64_t whole[N];

static void setup(void)
{
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    for (int i = 0; i < N; i++) {
        wide[i] = (i - 17) / 3.0;
        narrow[i] = (float)wide[i] * 5;
        whole[i] = ((int64_t)i - 17) * 987654321987;
    }
}

TEST(values_are_rounded_to_nearest)
{
    const ad_tensor from_wide = ad_constant(tape, AD_F64, 2, SHAPE(5, 7), wide);
    const ad_tensor from_narrow = ad_constant(tape, AD_F32, 2, SHAPE(5, 7), narrow);
    const ad_tensor from_whole = ad_constant(tape, AD_I64, 2, SHAPE(5, 7), whole);
    float f[3][N];
    double d[3][N];
    OK(ad_value(ad_cast(from_wide, AD_F32), f[0], N));
    OK(ad_value(ad_cast(from_narrow, AD_F32), f[1], N));
    OK(ad_value(ad_cast(from_whole, AD_F32), f[2], N));
    OK(ad_value(ad_cast(from_wide, AD_F64), d[0], N));
    OK(ad_value(ad_cast(from_narrow, AD_F64), d[1], N));
    OK(ad_value(ad_cast(from_whole, AD_F64), d[2], N));
    for (int i = 0; i < N; i++) {
        ck_assert(f[0][i] == (float)wide[i] && d[0][i] == wide[i]);
        ck_assert(f[1][i] == narrow[i] && d[1][i] == (double)narrow[i]);
        ck_assert(f[2][i] == (float)whole[i] && d[2][i] == (double)whole[i]);
    }
    ck_assert_int_eq(ad_dtype_of(ad_cast(from_wide, AD_F32)), AD_F32);
    ck_assert_int_eq(ad_dtype_of(ad_cast(from_whole, AD_F64)), AD_F64);
}

TEST(values_of_views_are_rounded_to_nearest)
{
    const ad_tensor x = ad_constant(tape, AD_F64, 3, SHAPE(5, 1, 7), wide);
    const ad_tensor y = ad_cast(ad_permute(x, SHAPE(2, 1, 0), 3), AD_F32);
    const ad_tensor k = ad_constant(tape, AD_I64, 2, SHAPE(5, 7), whole);
    const ad_tensor part = ad_cast(ad_slice(k, 1, 1, 7, 2), AD_F64);
    float f[N];
    double d[15];
    OK(ad_value(y, f, N));
    OK(ad_value(part, d, 15));
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 7; j++) {
            ck_assert(f[j * 5 + i] == (float)wide[i * 7 + j]);
            if (j % 2 == 1)
                ck_assert(d[i * 3 + j / 2] == (double)whole[i * 7 + j]);
        }
}

TEST(edges_are_those_of_ieee_754)
{
    static const double edges[] = {0.0,     -0.0,   INFINITY, -INFINITY, NAN,
                                   DBL_MAX, -1e300, 1e-320,   0x1p-149,  1 + 0x1p-25};
    static const float want[] = {0.0F,     -0.0F,     INFINITY, -INFINITY, NAN,
                                 INFINITY, -INFINITY, 0.0F,     0x1p-149F, 1.0F};
    const ad_tensor x = ad_constant(tape, AD_F64, 1, SHAPE(10), edges);
    float f[10];
    OK(ad_value(ad_cast(x, AD_F32), f, 10));
    for (int i = 0; i < 10; i++) {
        ck_assert(f[i] == want[i] || (isnan(f[i]) && isnan(want[i])));
        ck_assert(signbit(f[i]) == signbit(want[i]) || isnan(want[i]));
    }
    static const int64_t odd[] = {INT64_C(9007199254740993), INT64_MAX, INT64_MIN};
    double d[3];
    OK(ad_value(ad_cast(ad_constant(tape, AD_I64, 1, SHAPE(3), odd), AD_F64), d, 3));
    ck_assert(d[0] == 0x1p53 && d[1] == 0x1p63 && d[2] == -0x1p63);
}

/* sum of (cast x)^2 * w in the other dtype; twice used, as a view and densely. */
TEST_EACH(gradients_flow_between_the_float_dtypes, 2)
{
    const bool down = _i == 0; /* from f64 to f32, or up */
    const ad_dtype from = down ? AD_F64 : AD_F32, to = down ? AD_F32 : AD_F64;
    const ad_tensor x = ad_leaf(tape, from, 2, SHAPE(5, 7), down ? (void *)wide : (void *)narrow);
    const ad_tensor dense = ad_square(ad_cast(x, to));
    const ad_tensor view = ad_square(ad_cast(ad_transpose(x), to));
    const ad_tensor loss = ad_add(ad_sum(dense), ad_scale(ad_sum(view), 3));
    ck_assert_int_eq(ad_dtype_of(loss), (int)to);
    OK(ad_backward(loss));
    double g[N] = {0};
    float h[N] = {0};
    OK(ad_gradient(x, down ? (void *)g : (void *)h, N));
    for (int i = 0; i < N; i++) {
        const double at = down ? (double)(float)wide[i] : (double)narrow[i];
        const double want = 8 * at, got = down ? g[i] : (double)h[i];
        ck_assert_msg(fabs(got - want) <= 4e-7 * fabs(want), "%d: %g, not %g", i, got, want);
    }
}

TEST(second_derivatives_flow_between_the_float_dtypes)
{
    const ad_tensor x = ad_leaf(tape, AD_F64, 1, SHAPE(N), wide);
    const ad_tensor y = ad_cast(x, AD_F32);
    const ad_tensor loss = ad_sum(ad_mul(ad_square(y), y));
    ad_tensor slope;
    double g[N];
    OK(ad_create_graph(loss, (ad_tensor){0}, 1, &x, &slope));
    ck_assert_int_eq(ad_dtype_of(slope), AD_F64);
    OK(ad_value(slope, g, N));
    for (int i = 0; i < N; i++)
        ck_assert(fabs(g[i] - 3 * wide[i] * wide[i]) <= 1e-6 * (1 + fabs(g[i])));
    OK(ad_backward(ad_sum(slope)));
    OK(ad_gradient(x, g, N));
    for (int i = 0; i < N; i++)
        ck_assert(fabs(g[i] - 6 * wide[i]) <= 1e-6 * (1 + fabs(g[i])));
}

TEST(integers_become_constants)
{
    const ad_tensor k = ad_constant(tape, AD_I64, 1, SHAPE(N), whole);
    const ad_tensor x = ad_leaf(tape, AD_F64, 1, SHAPE(N), wide);
    OK(ad_backward(ad_sum(ad_mul(x, ad_cast(k, AD_F64)))));
    double g[N];
    OK(ad_gradient(x, g, N));
    for (int i = 0; i < N; i++)
        ck_assert(g[i] == (double)whole[i]);
    ck_assert_int_eq(ad_backward(ad_sum(ad_cast(k, AD_F64))), AD_ERROR_STATE);
    ad_tape_clear_error(tape);
}

static void refused(ad_tensor y, const char *text)
{
    ck_assert_int_eq(ad_size(y), -1);
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_DTYPE);
    ck_assert_msg(strstr(ad_tape_message(tape), text), "%s", ad_tape_message(tape));
    ad_tape_clear_error(tape);
}

TEST(other_dtypes_are_refused)
{
    const ad_tensor x = ad_leaf(tape, AD_F64, 1, SHAPE(N), wide);
    const ad_tensor k = ad_constant(tape, AD_I64, 1, SHAPE(N), whole);
    refused(ad_cast(x, AD_I64), "cast: the result must be f32 or f64, not i64");
    refused(ad_cast(k, AD_I64), "cast: the result must be f32 or f64, not i64");
    refused(ad_cast(x, (ad_dtype)7), "cast: 7 is no dtype");
    refused(ad_cast(x, (ad_dtype)-1), "cast: -1 is no dtype");
}

RUN_TESTS(setup, teardown_fine)
