/* test_real_functions.c: every function on ad_real: its value against long double, its derivatives
 * against central differences in long double, and what ad_real_functions.h says of the edges.
 */
#include <tapescope/ad_real.h>

#include "run_cases.h"

#include <float.h>

#include "tape_fixture.h"

static void setup(void)
{
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
}

/* ---- one operand ---- */

static long double squarel(long double x)
{
    return x * x;
}

static long double negl(long double x)
{
    return -x;
}

static long double reciprocall(long double x)
{
    return 1 / x;
}

/* Name, and the interval in which derivatives are compared. */
#define FUNCTIONS(X)                                                                               \
    X(neg, -2, 2)                                                                                  \
    X(square, -2, 2)                                                                               \
    X(reciprocal, 0.3, 3)                                                                          \
    X(sqrt, 0.1, 5)                                                                                \
    X(cbrt, -4, -0.1)                                                                              \
    X(exp, -3, 3)                                                                                  \
    X(exp2, -3, 3)                                                                                 \
    X(exp10, -3, 3)                                                                                \
    X(expm1, -30, 2)                                                                               \
    X(log, 0.1, 9)                                                                                 \
    X(log2, 0.1, 9)                                                                                \
    X(log10, 0.1, 9)                                                                               \
    X(log1p, -0.9, 9)                                                                              \
    X(sin, -7, 7)                                                                                  \
    X(cos, -7, 7)                                                                                  \
    X(tan, -1.4, 1.4)                                                                              \
    X(asin, -0.99, 0.99)                                                                           \
    X(acos, -0.99, 0.99)                                                                           \
    X(atan, -9, 9)                                                                                 \
    X(sinh, -4, 4)                                                                                 \
    X(cosh, -4, 4)                                                                                 \
    X(tanh, -4, 4)                                                                                 \
    X(asinh, -9, 9)                                                                                \
    X(acosh, 1.05, 9)                                                                              \
    X(atanh, -0.95, 0.95)                                                                          \
    X(erf, -3, 3)                                                                                  \
    X(erfc, -3, 3)                                                                                 \
    X(lgamma, 0.2, 20)                                                                             \
    X(tgamma, 0.2, 8)                                                                              \
    X(fabs, 0.1, 3)

#define X(name, low, high)                                                                         \
    static ad_expr real_##name(ad_real x)                                                          \
    {                                                                                              \
        return ad_real_##name(x);                                                                  \
    }
FUNCTIONS(X)
#undef X

struct function {
    const char *name;
    ad_expr (*real)(ad_real x);
    long double (*exact)(long double x);
    double low, high;
};

static const struct function functions[] = {
#define X(name, low, high) {#name, real_##name, name##l, low, high},
    FUNCTIONS(X)
#undef X
};
enum { N_FUNCTIONS = sizeof functions / sizeof functions[0], POINTS = 60 };

/* Fourth order; the error is about 1e-15 of the function's scale. */
static long double slope(long double (*f)(long double), long double x)
{
    const long double h = 1e-4L * (fabsl(x) > 1 ? fabsl(x) : 1) / 4;
    return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h);
}

static void check_derivative(const char *name, double x, double got, long double want)
{
    ck_assert_msg(fabsl((long double)got - want) <= 2e-12L * (1 + fabsl(want)),
                  "%s'(%.17g) = %.17g, not %.17Lg", name, x, got, want);
}

TEST_EACH(a_function_has_libms_value_and_its_derivative, N_FUNCTIONS)
{
    const struct function *f = &functions[_i];
    for (int k = 0; k < POINTS; k++) {
        const double at = f->low + (f->high - f->low) * (k + 0.37) / POINTS;
        ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
        ad_real x = ad_real_leaf(tape, at), y;
        ad_set(&y, f->real(x));
        const long double want = f->exact(at);
        ck_assert_msg(fabsl((long double)y.value - want) <= 8 * DBL_EPSILON * (1e-3L + fabsl(want)),
                      "%s(%.17g) = %.17g, not %.17Lg", f->name, at, y.value, want);
        ck_assert_msg(ad_real_backward(tape, y) == AD_OK, "%s", ad_tape_message(tape));
        check_derivative(f->name, at, ad_real_gradient(tape, x), slope(f->exact, at));
        /* A constant gives the same value and no record. */
        ad_set(&y, f->real(ad_real_of(at)));
        ck_assert_msg(y.index == 0, "%s of a constant is recorded", f->name);
    }
}

/* ---- two operands ---- */

static long double addl(long double x, long double y)
{
    return x + y;
}

static long double subl(long double x, long double y)
{
    return x - y;
}

static long double mull(long double x, long double y)
{
    return x * y;
}

static long double divl(long double x, long double y)
{
    return x / y;
}

#define FUNCTIONS2(X)                                                                              \
    X(add)                                                                                         \
    X(sub)                                                                                         \
    X(mul)                                                                                         \
    X(div)                                                                                         \
    X(pow)                                                                                         \
    X(hypot)                                                                                       \
    X(atan2)                                                                                       \
    X(fmod)                                                                                        \
    X(remainder)                                                                                   \
    X(fmax)                                                                                        \
    X(fmin)                                                                                        \
    X(fdim)                                                                                        \
    X(copysign)

#define X(name)                                                                                    \
    static ad_expr2 real_##name(ad_real x, ad_real y)                                              \
    {                                                                                              \
        return ad_real_##name(x, y);                                                               \
    }
FUNCTIONS2(X)
#undef X

struct function2 {
    const char *name;
    ad_expr2 (*real)(ad_real x, ad_real y);
    long double (*exact)(long double x, long double y);
};

static const struct function2 functions2[] = {
#define X(name) {#name, real_##name, name##l},
    FUNCTIONS2(X)
#undef X
};
enum { N_FUNCTIONS2 = sizeof functions2 / sizeof functions2[0] };

static const struct function2 *two;
static long double other;

static long double of_first(long double x)
{
    return two->exact(x, other);
}

static long double of_second(long double y)
{
    return two->exact(other, y);
}

TEST_EACH(a_function_of_two_has_both_derivatives_also_with_one_constant, N_FUNCTIONS2)
{
    static const double at[][2] = {{2.3, 0.7}, {0.45, 1.9}, {5.2, 3.1}, {1.3, 1.7}, {7.9, 2.2}};
    two = &functions2[_i];
    for (size_t k = 0; k < sizeof at / sizeof at[0]; k++) {
        for (int active = 1; active <= 3; active++) {
            ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
            ad_real x[2], z;
            ad_real_leaves(tape, 2, at[k], x);
            const ad_real a = active & 1 ? x[0] : ad_real_of(at[k][0]);
            const ad_real b = active & 2 ? x[1] : ad_real_of(at[k][1]);
            ad_set(&z, two->real(a, b));
            const long double want = two->exact(at[k][0], at[k][1]);
            ck_assert_msg(fabsl((long double)z.value - want) <= 8 * DBL_EPSILON * fabsl(want),
                          "%s(%.17g, %.17g) = %.17g, not %.17Lg", two->name, at[k][0], at[k][1],
                          z.value, want);
            double g[2];
            ck_assert_msg(ad_real_backward(tape, z) == AD_OK, "%s", ad_tape_message(tape));
            ck_assert_int_eq(ad_real_gradients(tape, 2, x, g), AD_OK);
            other = at[k][1];
            check_derivative(two->name, at[k][0], g[0], active & 1 ? slope(of_first, at[k][0]) : 0);
            other = at[k][0];
            check_derivative(two->name, at[k][1], g[1],
                             active & 2 ? slope(of_second, at[k][1]) : 0);
        }
    }
}

TEST(what_is_left_of_math_h_has_its_value_and_derivative)
{
    ad_real x[3], y;
    double g[3];
    ad_real_leaves(tape, 3, (double[]){1.25, -3.5, 0.75}, x);
    ad_set(&y, ad_real_fma(x[0], x[1], x[2]));
    ck_assert_double_eq(y.value, 1.25 * -3.5 + 0.75);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_int_eq(ad_real_gradients(tape, 3, x, g), AD_OK);
    ck_assert(g[0] == -3.5 && g[1] == 1.25 && g[2] == 1);
    ad_set(&y, ad_real_add(ad_real_ldexp(x[0], 5), ad_real_scalbn(x[1], -1)));
    ck_assert_double_eq(y.value, 1.25 * 32 - 1.75);
    ad_tape_zero_gradients(tape);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_int_eq(ad_real_gradients(tape, 3, x, g), AD_OK);
    ck_assert(g[0] == 32 && g[1] == 0.5 && g[2] == 0);
    const double whole[] = {ad_real_floor(x[1]), ad_real_round(x[1]), ad_real_rint(x[1]),
                            ad_real_ceil(x[1]), ad_real_trunc(x[1])};
    for (int i = 0; i < 5; i++)
        ck_assert_double_eq(whole[i], i < 3 ? -4 : -3);
    const double doubled = ad_real_nearbyint(ad_real_mul(x[2], 2));
    ck_assert_double_eq(doubled, 2);
}

/* ---- edges ---- */

#define NO NAN

/* x, value and derivative; NaN agrees with NaN. As ad_real_functions.h has it. */
static const struct edge {
    const char *name;
    ad_expr (*real)(ad_real x);
    double x, value, derivative;
} edges[] = {
    {"reciprocal", real_reciprocal, 0.0, INFINITY, -INFINITY},
    {"reciprocal", real_reciprocal, -0.0, -INFINITY, -INFINITY},
    {"reciprocal", real_reciprocal, INFINITY, 0, 0},
    {"sqrt", real_sqrt, 0.0, 0, INFINITY},
    {"sqrt", real_sqrt, -0.0, -0.0, -INFINITY},
    {"sqrt", real_sqrt, INFINITY, INFINITY, 0},
    {"sqrt", real_sqrt, -1, NO, NO},
    {"cbrt", real_cbrt, 0.0, 0, INFINITY},
    {"cbrt", real_cbrt, -0.0, -0.0, INFINITY},
    {"cbrt", real_cbrt, -INFINITY, -INFINITY, 0},
    {"exp", real_exp, -INFINITY, 0, 0},
    {"exp", real_exp, INFINITY, INFINITY, INFINITY},
    {"exp2", real_exp2, -INFINITY, 0, 0},
    {"exp10", real_exp10, -INFINITY, 0, 0},
    {"exp10", real_exp10, INFINITY, INFINITY, INFINITY},
    {"expm1", real_expm1, -INFINITY, -1, 0},
    {"log", real_log, 0.0, -INFINITY, INFINITY},
    {"log", real_log, -0.0, -INFINITY, -INFINITY},
    {"log", real_log, INFINITY, INFINITY, 0},
    {"log", real_log, -1, NO, -1},
    {"log2", real_log2, 0.0, -INFINITY, INFINITY},
    {"log10", real_log10, 0.0, -INFINITY, INFINITY},
    {"log1p", real_log1p, -1, -INFINITY, INFINITY},
    {"sin", real_sin, INFINITY, NO, NO},
    {"cos", real_cos, -INFINITY, NO, NO},
    {"tan", real_tan, INFINITY, NO, NO},
    {"asin", real_asin, 1, 1.5707963267948966, INFINITY},
    {"asin", real_asin, 2, NO, NO},
    {"acos", real_acos, -1, 3.1415926535897931, -INFINITY},
    {"atan", real_atan, INFINITY, 1.5707963267948966, 0},
    {"atan", real_atan, 1e300, 1.5707963267948966, 0},
    {"sinh", real_sinh, INFINITY, INFINITY, INFINITY},
    {"cosh", real_cosh, -INFINITY, INFINITY, -INFINITY},
    {"tanh", real_tanh, INFINITY, 1, 0},
    {"tanh", real_tanh, -0.0, -0.0, 1},
    {"asinh", real_asinh, -INFINITY, -INFINITY, 0},
    {"acosh", real_acosh, 1, 0, INFINITY},
    {"acosh", real_acosh, INFINITY, INFINITY, 0},
    {"acosh", real_acosh, 0.5, NO, NO},
    {"atanh", real_atanh, 1, INFINITY, INFINITY},
    {"atanh", real_atanh, -1, -INFINITY, INFINITY},
    {"erf", real_erf, -INFINITY, -1, 0},
    {"erfc", real_erfc, INFINITY, 0, 0},
    {"lgamma", real_lgamma, 0.0, INFINITY, -INFINITY},
    {"lgamma", real_lgamma, -1, INFINITY, NO},
    {"lgamma", real_lgamma, INFINITY, INFINITY, INFINITY},
    {"tgamma", real_tgamma, 0.0, INFINITY, -INFINITY},
    {"fabs", real_fabs, 0.0, 0, 0},
    {"fabs", real_fabs, -0.0, 0, 0},
    {"fabs", real_fabs, -INFINITY, INFINITY, -1},
    {"fabs", real_fabs, NO, NO, 0},
    {"square", real_square, INFINITY, INFINITY, INFINITY},
    {"neg", real_neg, 0.0, -0.0, -1},
    {"neg", real_neg, NO, NO, -1},
};

/* The same number, with the sign of a zero. */
static bool same(double x, double y)
{
    return isnan(x) ? isnan(y) : x == y && signbit(x) == signbit(y);
}

TEST_EACH(at_an_edge_value_and_derivative_are_what_the_table_says, sizeof edges / sizeof edges[0])
{
    const struct edge *e = &edges[_i];
    ad_real x = ad_real_leaf(tape, e->x), y;
    ad_set(&y, e->real(x));
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    const double g = ad_real_gradient(tape, x);
    ck_assert_msg(same(y.value, e->value), "%s(%g) = %g, not %g", e->name, e->x, y.value, e->value);
    ck_assert_msg(isnan(g) ? isnan(e->derivative) : g == e->derivative, "%s'(%g) = %g, not %g",
                  e->name, e->x, g, e->derivative);
}

TEST_EACH(nan_comes_out_of_every_function, N_FUNCTIONS)
{
    const struct function *f = &functions[_i];
    ad_real x = ad_real_leaf(tape, (double)NAN), y;
    ad_set(&y, f->real(x));
    ck_assert_msg(isnan(y.value), "%s", f->name);
}

static const struct edge2 {
    const char *name;
    ad_expr2 (*real)(ad_real x, ad_real y);
    double x, y, value, dx, dy;
} edges2[] = {
    {"div", real_div, 1, 0, INFINITY, INFINITY, -INFINITY},
    {"div", real_div, 0, 0, NO, INFINITY, NO},
    {"div", real_div, 1, INFINITY, 0, 0, 0},
    {"mul", real_mul, 0, INFINITY, NO, INFINITY, 0},
    {"pow", real_pow, 0, 0, 1, 0, -INFINITY},
    {"pow", real_pow, 0, 2, 0, 0, 0},
    {"pow", real_pow, 0, 1, 0, 1, 0},
    {"pow", real_pow, 0, 0.5, 0, INFINITY, 0},
    {"pow", real_pow, -2, 3, -8, 12, NO},
    {"pow", real_pow, NO, 0, 1, 0, NO},
    {"pow", real_pow, INFINITY, -1, 0, -0.0, 0},
    {"hypot", real_hypot, 0, 0, 0, NO, NO},
    {"hypot", real_hypot, 3, INFINITY, INFINITY, 0, NO},
    {"hypot", real_hypot, 1e300, 1e300, 1.4142135623730951e300, 0.70710678118654746,
     0.70710678118654746},
    {"atan2", real_atan2, 0, 0, 0, NO, NO},
    {"atan2", real_atan2, 1e300, 1e300, 0.78539816339744828, 5e-301, -5e-301},
    {"atan2", real_atan2, 1, INFINITY, 0, 0, 0},
    {"atan2", real_atan2, INFINITY, 1, 1.5707963267948966, 0, 0},
    {"atan2", real_atan2, INFINITY, NO, NO, NO, NO},
    {"fmod", real_fmod, 1, 0, NO, 1, NO},
    {"fmod", real_fmod, 1, 0.1, 0.09999999999999995, 1, -9},
    {"fmod", real_fmod, -1, 0.1, -0.09999999999999995, 1, 9},
    {"fmod", real_fmod, 1, INFINITY, 1, 1, 0},
    {"fmod", real_fmod, 6, 3, 0, 1, -2},
    {"fmod", real_fmod, -7, 3, -1, 1, 2},
    {"remainder", real_remainder, 8, 3, -1, 1, -3},
    {"fmax", real_fmax, 2, 2, 2, 0.5, 0.5},
    {"fmax", real_fmax, NO, NO, NO, 1, 1},
    {"fmax", real_fmax, NO, 2, 2, 0, 1},
    {"fmax", real_fmax, 2, NO, 2, 1, 0},
    {"fmin", real_fmin, 2, 2, 2, 0.5, 0.5},
    {"fmin", real_fmin, 2, 3, 2, 1, 0},
    {"fmin", real_fmin, NO, 2, 2, 0, 1},
    {"fdim", real_fdim, 2, 2, 0, 0, 0},
    {"fdim", real_fdim, 3, 2, 1, 1, -1},
    {"fdim", real_fdim, NO, 2, NO, 0, 0},
    {"copysign", real_copysign, 0, -1, -0.0, 0, 0},
    {"copysign", real_copysign, -3, 2, 3, -1, 0},
    {"copysign", real_copysign, 3, 2, 3, 1, 0},
};

TEST_EACH(at_an_edge_of_two_operands_all_three_are_what_the_table_says,
          sizeof edges2 / sizeof edges2[0])
{
    const struct edge2 *e = &edges2[_i];
    ad_real x[2], z;
    double g[2];
    ad_real_leaves(tape, 2, (double[]){e->x, e->y}, x);
    ad_set(&z, e->real(x[0], x[1]));
    ck_assert_int_eq(ad_real_backward(tape, z), AD_OK);
    ck_assert_int_eq(ad_real_gradients(tape, 2, x, g), AD_OK);
    ck_assert_msg(same(z.value, e->value) || fabs(z.value / e->value - 1) < 1e-15,
                  "%s(%g, %g) = %.17g, not %.17g", e->name, e->x, e->y, z.value, e->value);
    const double want[2] = {e->dx, e->dy};
    for (int k = 0; k < 2; k++)
        ck_assert_msg(isnan(want[k]) ? isnan(g[k])
                                     : g[k] == want[k] || fabs(g[k] / want[k] - 1) < 1e-15,
                      "%s(%g, %g) by %d: %.17g, not %.17g", e->name, e->x, e->y, k, g[k], want[k]);
}

RUN_TESTS(setup, teardown)
