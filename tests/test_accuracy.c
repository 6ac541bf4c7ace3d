/* test_accuracy.c: how near every elementwise op comes to the exact value, over its whole domain.
 *
 * May include: elementwise.h (which chooses the set), kernel_ops.h, row_exact.h, Check. Arguments:
 * random bit patterns, random numbers of a range where something happens, and special ones with
 * their neighbours; the seed is fixed. docs/ACCURACY.md has the bounds, and this test compares it.
 */
#include "check_quietly.h"
#include "elementwise.h"
#include "kernel_ops.h"
#include "row_exact.h"
#include "run_cases.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATTERNS = 60000, DENSE = 60000, COUNT = PATTERNS + DENSE };

/* By what a bound is multiplied at an argument, where the exact value is y. */
typedef double factor(double x, double y, int dtype);

static double plain(double x, double y, int dtype)
{
    (void)x, (void)y, (void)dtype;
    return 1;
}

/* A rounding of x^2 in an exponent. */
static double by_square(double x, double y, int dtype)
{
    (void)y, (void)dtype;
    return 1 + x * x;
}

static double by_square_below(double x, double y, int dtype)
{
    return x < 0 ? by_square(x, y, dtype) : 1;
}

/* A rounding of the cubic in gelu_tanh's exponent. */
static double by_cubic(double x, double y, int dtype)
{
    (void)y, (void)dtype;
    return 1 + 1.6 * fabs(x) * (1 + 0.044715 * x * x);
}

static double by_cubic_below(double x, double y, int dtype)
{
    return x < 0 ? by_cubic(x, y, dtype) : 1;
}

/* x times a subnormal number. */
static double by_underflow(double x, double y, int dtype)
{
    (void)y;
    return fabs(x) > (dtype == KERNEL_F32 ? 87 : 708) ? 1 + fabs(x) : 1;
}

/* 0 where x^2 overflows: the value is subnormal. */
static double but_overflow(double x, double y, int dtype)
{
    (void)y;
    return fabs(x) > (dtype == KERNEL_F32 ? 0x1p63 : 0x1p511) ? (double)INFINITY : 1;
}

/* The size of the terms that cancel near a root; below 0 one is pi / tan(pi x). */
static double by_terms(double x, double y, int dtype)
{
    const double pi = 3.14159265358979323846;
    (void)dtype;
    return 2 + (1 + (x < 0 ? fabs(pi / tan(pi * (x - rint(x)))) : 0)) / fabs(y);
}

#define EXACT 0.51

/* Row, bounds in f64 and f32, what multiplies them, range of dense numbers for a, for b. */
#define ROWS(ROW)                                                                                  \
    ROW(neg, EXACT, EXACT, plain, -2, 2, -2, 2)                                                    \
    ROW(exp, 4, 4, plain, -750, 715, -750, 715)                                                    \
    ROW(log, 4, 4, plain, 0, 4, 0, 4)                                                              \
    ROW(tanh, 4, 4, plain, -25, 25, -25, 25)                                                       \
    ROW(sigmoid, 5, 5, plain, -750, 50, -750, 50)                                                  \
    ROW(relu, EXACT, EXACT, plain, -2, 2, -2, 2)                                                   \
    ROW(square, EXACT, EXACT, plain, -2, 2, -2, 2)                                                 \
    ROW(sqrt, EXACT, EXACT, plain, 0, 4, 0, 4)                                                     \
    ROW(scale, EXACT, EXACT, plain, -2, 2, -2, 2)                                                  \
    ROW(offset, EXACT, EXACT, plain, -4, 4, -4, 4)                                                 \
    ROW(copy, EXACT, EXACT, plain, -2, 2, -2, 2)                                                   \
    ROW(add, EXACT, EXACT, plain, -2, 2, -2, 2)                                                    \
    ROW(sub, EXACT, EXACT, plain, -2, 2, -2, 2)                                                    \
    ROW(mul, EXACT, EXACT, plain, -2, 2, -2, 2)                                                    \
    ROW(div, EXACT, EXACT, plain, -2, 2, -2, 2)                                                    \
    ROW(gate, EXACT, EXACT, plain, -2, 2, -2, 2)                                                   \
    ROW(tie, EXACT, EXACT, plain, -2, 2, -2, 2)                                                    \
    ROW(abs, EXACT, EXACT, plain, -2, 2, -2, 2)                                                    \
    ROW(sign, EXACT, EXACT, plain, -2, 2, -2, 2)                                                   \
    ROW(floor, EXACT, EXACT, plain, -20, 20, -20, 20)                                              \
    ROW(log1p, 4, 4, plain, -1, 4, -1, 4)                                                          \
    ROW(expm1, 4, 4, plain, -40, 715, -40, 715)                                                    \
    ROW(rsqrt, 2, 2, plain, 0, 4, 0, 4)                                                            \
    ROW(reciprocal, EXACT, EXACT, plain, -4, 4, -4, 4)                                             \
    ROW(sin, 4, 4, plain, -30, 30, -30, 30)                                                        \
    ROW(cos, 4, 4, plain, -30, 30, -30, 30)                                                        \
    ROW(tan, 4, 4, plain, -30, 30, -30, 30)                                                        \
    ROW(asin, 4, 4, plain, -1, 1, -1, 1)                                                           \
    ROW(acos, 4, 4, plain, -1, 1, -1, 1)                                                           \
    ROW(atan, 4, 4, plain, -20, 20, -20, 20)                                                       \
    ROW(sinh, 4, 4, plain, -715, 715, -715, 715)                                                   \
    ROW(cosh, 4, 4, plain, -715, 715, -715, 715)                                                   \
    ROW(asinh, 4, 4, plain, -20, 20, -20, 20)                                                      \
    ROW(acosh, 4, 4, plain, 1, 20, 1, 20)                                                          \
    ROW(atanh, 4, 4, plain, -1, 1, -1, 1)                                                          \
    ROW(softplus, 5, 5, plain, -750, 50, -750, 50)                                                 \
    ROW(leaky_relu, EXACT, EXACT, plain, -2, 2, -2, 2)                                             \
    ROW(elu, 5, 5, plain, -40, 5, -40, 5)                                                          \
    ROW(gelu, 4, 4, by_square_below, -39, 10, -39, 10)                                             \
    ROW(gelu_tanh, 4, 4, by_cubic_below, -22, 10, -22, 10)                                         \
    ROW(silu, 5, 5, by_underflow, -750, 50, -750, 50)                                              \
    ROW(erf, 4, 4, plain, -7, 7, -7, 7)                                                            \
    ROW(erfc, 4, 4, plain, -7, 28, -7, 28)                                                         \
    ROW(lgamma, 6, 1, plain, -20, 20, -20, 20)                                                     \
    ROW(digamma, 8, 1, by_terms, -20, 20, -20, 20)                                                 \
    ROW(polygamma, 8, 1, plain, -20, 20, -20, 20)                                                  \
    ROW(clamp, EXACT, EXACT, plain, -4, 4, -4, 4)                                                  \
    ROW(inside, EXACT, EXACT, plain, -4, 4, -4, 4)                                                 \
    ROW(pow, 4, 4, plain, 0, 100, -160, 160)                                                       \
    ROW(atan2, 4, 4, plain, -2, 2, -2, 2)                                                          \
    ROW(hypot, 4, 4, plain, -2, 2, -2, 2)                                                          \
    ROW(fmod, EXACT, EXACT, plain, -100, 100, -4, 4)                                               \
    ROW(maximum, EXACT, EXACT, plain, -2, 2, -2, 2)                                                \
    ROW(minimum, EXACT, EXACT, plain, -2, 2, -2, 2)                                                \
    ROW(less, EXACT, EXACT, plain, -2, 2, -2, 2)                                                   \
    ROW(less_equal, EXACT, EXACT, plain, -2, 2, -2, 2)                                             \
    ROW(greater, EXACT, EXACT, plain, -2, 2, -2, 2)                                                \
    ROW(greater_equal, EXACT, EXACT, plain, -2, 2, -2, 2)                                          \
    ROW(equal, EXACT, EXACT, plain, -2, 2, -2, 2)                                                  \
    ROW(not_equal, EXACT, EXACT, plain, -2, 2, -2, 2)                                              \
    ROW(block, EXACT, EXACT, plain, -2, 2, -2, 2)                                                  \
    ROW(pick, EXACT, EXACT, plain, -2, 2, -2, 2)                                                   \
    ROW(omit, EXACT, EXACT, plain, -2, 2, -2, 2)                                                   \
    ROW(where, EXACT, EXACT, plain, -2, 2, -2, 2)                                                  \
    ROW(vanish, EXACT, EXACT, plain, -2, 2, -2, 2)                                                 \
    ROW(xlogy, 4, 5, plain, -2, 2, 0, 4)                                                           \
    ROW(rhypot1, 4, 4, plain, -20, 20, -20, 20)                                                    \
    ROW(lorentz, 4, 4, but_overflow, -20, 20, -20, 20)                                             \
    ROW(gauss, 4, 4, by_square, -28, 28, -28, 28)                                                  \
    ROW(normal_cdf, 4, 4, by_square_below, -39, 10, -39, 10)                                       \
    ROW(normal_pdf, 4, 4, by_square, -39, 39, -39, 39)                                             \
    ROW(normal_moment, 4, 4, by_square, -39, 39, -39, 39)                                          \
    ROW(sigmoid_moment, 8, 8, by_underflow, -750, 750, -750, 750)                                  \
    ROW(tanh_cdf, 4, 4, by_cubic_below, -22, 10, -22, 10)                                          \
    ROW(tanh_pdf, 6, 6, by_cubic, -22, 22, -22, 22)                                                \
    ROW(tanh_moment, 6, 6, by_cubic, -22, 22, -22, 22)

struct row {
    const struct kernel_op *op;
    double bound[2]; /* by dtype, in ulp */
    factor *grows;
    double low[2], high[2];
};

#define ENTRY(id, f64, f32, grows, low_a, high_a, low_b, high_b)                                   \
    {&kernel_op_##id, {f32, f64}, grows, {low_a, low_b}, {high_a, high_b}},
static const struct row rows[] = {ROWS(ENTRY)};

/* Not compared: an integer as large as a / b, of which no dtype has all digits; and sums
 * whose error depends on their cancellation. */
static const struct kernel_op *const without[] = {
    &kernel_op_quotient,       &kernel_op_squared_difference, &kernel_op_huber,
    &kernel_op_bernoulli_loss, &kernel_op_logistic_loss,      &kernel_op_standardize,
    &kernel_op_multiply_add};

/* Parameters: exact in f32; of polygamma the order. */
static const double parameters[2] = {-1.75, 0.5};
static const double first_order[2] = {1, 0};

static double a[COUNT], b[COUNT], got[COUNT];
static long double want[COUNT];
static float narrow[4][COUNT];

static uint64_t state;

static uint64_t next(void)
{
    uint64_t z = (state += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

static double pattern(int dtype)
{
    union {
        uint64_t wide;
        uint32_t narrow;
        double d;
        float f;
    } u = {.wide = next()};
    return dtype == KERNEL_F32 ? (double)u.f : u.d;
}

static double rounded(double x, int dtype)
{
    return dtype == KERNEL_F32 ? (double)(float)x : x;
}

/* Special numbers and their neighbours, then patterns, then the range. */
static void fill(double *x, double low, double high, int dtype, int stride)
{
    const double special[] = {0, 0.5, 1, 2, 3, 10, low, high, INFINITY, NAN};
    enum { SPECIALS = sizeof special / sizeof *special, NEAR = 20 };
    for (int i = 0; i < COUNT; i++) {
        const int k = i / stride;
        if (i < PATTERNS && k < SPECIALS * NEAR) {
            double at = rounded(special[k / NEAR], dtype);
            for (int step = k % NEAR; step > 1; step -= 2)
                at = dtype == KERNEL_F32
                         ? (double)nextafterf((float)at, step % 4 < 2 ? INFINITY : -INFINITY)
                         : nextafter(at, step % 4 < 2 ? INFINITY : -INFINITY);
            x[i] = k % 2 ? -at : at;
        } else if (i < PATTERNS) {
            x[i] = pattern(dtype);
        } else {
            x[i] = rounded(low + (high - low) * (double)(next() >> 11) * 0x1p-53, dtype);
        }
    }
}

/* Distance of y and the exact value in units in the last place of the dtype at that value. A result
 * beyond the largest number counts as the power of two after it. */
static double distance(double y, long double exact, int dtype)
{
    const int digits = dtype == KERNEL_F32 ? FLT_MANT_DIG : DBL_MANT_DIG;
    const int least = dtype == KERNEL_F32 ? FLT_MIN_EXP : DBL_MIN_EXP;
    const long double most = ldexpl(1, dtype == KERNEL_F32 ? FLT_MAX_EXP : DBL_MAX_EXP);
    int exponent;
    if (isnan(exact) || isnan(y))
        return isnan(exact) && isnan(y) ? 0 : (double)INFINITY;
    if (fabsl(exact) > most)
        exact = copysignl(most, exact);
    const long double value = isinf(y) ? copysignl(most, y) : y;
    (void)frexpl(exact == most || exact == -most ? exact / 2 : exact, &exponent);
    exponent = (exact == 0 || exponent < least ? least : exponent) - digits;
    return (double)ldexpl(fabsl(value - exact), -exponent);
}

/* The loop of the row on a, b and a, into got. */
static void run(const struct row *r, int dtype, const double *p)
{
    const void *in[3] = {a, b, a};
    kernel_loop *loop = kernel_isa_get()->loop[r->op->row->loop][dtype][0];
    if (dtype == KERNEL_F64) {
        loop(COUNT, got, in, p);
        return;
    }
    for (int i = 0; i < COUNT; i++) {
        narrow[0][i] = (float)a[i];
        narrow[1][i] = (float)b[i];
    }
    in[0] = in[2] = narrow[0];
    in[1] = narrow[1];
    loop(COUNT, narrow[2], in, p);
    for (int i = 0; i < COUNT; i++)
        got[i] = (double)narrow[2][i];
}

static void check_row(const struct row *r, int dtype)
{
    static const char *const names[] = {"portable", "avx2", "avx512"};
    const double *p = r->op == &kernel_op_polygamma ? first_order : parameters;
    row_exact_value *exact = row_exact(r->op->name);
    CHECK_QUIETLY(exact != NULL, "row %s has no value in row_exact.c", r->op->name);
    state = 20240607;
    fill(a, r->low[0], r->high[0], dtype, 1);
    fill(b, r->low[1], r->high[1], dtype, 7);
    for (int i = 0; i < COUNT; i++)
        want[i] = exact(a[i], b[i], a[i], p);
    for (int k = 0; k < 3; k++) {
        double most = 0;
        int at = 0;
        if (!kernel_isa_use(names[k]))
            continue;
        run(r, dtype, p);
        for (int i = 0; i < COUNT; i++) {
            const double far =
                distance(got[i], want[i], dtype) / r->grows(a[i], (double)want[i], dtype);
            if (far > most) {
                most = far;
                at = i;
            }
        }
        CHECK_QUIETLY(most <= r->bound[dtype],
                      "%s %s on %s at (%.17g, %.17g): %.17g, not %.20Lg: %g ulp, bound %g",
                      r->op->name, kernel_dtype_name(dtype), names[k], a[at], b[at], got[at],
                      want[at], most, r->bound[dtype]);
    }
    kernel_isa_use(NULL);
}

START_TEST(values_in_f64_are_within_their_bounds)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_row(&rows[i], KERNEL_F64);
}
END_TEST

START_TEST(values_in_f32_are_within_their_bounds)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_row(&rows[i], KERNEL_F32);
}
END_TEST

START_TEST(every_row_has_a_bound_or_a_reason)
{
    int n_ops;
    const struct kernel_op *const *ops = kernel_ops(&n_ops);
    for (int k = 0; k < n_ops && ops[k]->elementwise; k++) {
        int found = 0;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            found += rows[i].op == ops[k];
        for (size_t i = 0; i < sizeof without / sizeof *without; i++)
            found += without[i] == ops[k];
        CHECK_QUIETLY(found == 1, "%s is in the tables %d times", ops[k]->name, found);
    }
}
END_TEST

/* What multiplies a bound, in words. */
static const char *words(factor *grows)
{
    static const struct {
        factor *grows;
        const char *words;
    } list[] = {{plain, ""},
                {by_square_below, "times 1 + x^2 where x < 0"},
                {by_cubic_below, "times 1 + 1.6 \\|x\\| (1 + 0.044715 x^2) where x < 0"},
                {by_underflow, "times 1 + \\|x\\| where e^x is subnormal"},
                {by_terms, "times 2 + (1 + \\|pi / tan(pi x)\\|, where x < 0) / \\|y\\|"}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i].grows == grows)
            return list[i].words;
    return NULL;
}

START_TEST(the_page_of_bounds_says_what_is_tested)
{
    static char line[300], expected[300];
    FILE *page = fopen(TAPESCOPE_SOURCE_DIR "/docs/ACCURACY.md", "r");
    ck_assert_ptr_nonnull(page);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].op->hidden)
            continue;
        const char *times = words(rows[i].grows);
        ck_assert_ptr_nonnull(times);
        snprintf(expected, sizeof expected, "| `%s` | %g | %g | %s |\n", rows[i].op->name,
                 rows[i].bound[KERNEL_F64], rows[i].bound[KERNEL_F32], times);
        do
            CHECK_QUIETLY(fgets(line, sizeof line, page) != NULL, "missing or misplaced: %s",
                          expected);
        while (strcmp(line, expected) != 0);
    }
    while (fgets(line, sizeof line, page) != NULL)
        CHECK_QUIETLY(line[0] != '|', "not in the test: %s", line);
    (void)fclose(page);
}
END_TEST

/* One unit in the last place more than the bound, and a NaN, are seen. */
START_TEST(the_distance_counts_units_in_the_last_place)
{
    ck_assert_double_eq(distance(1 + 0x1p-52, 1, KERNEL_F64), 1);
    ck_assert_double_eq(distance(1 - 0x1p-53, 1, KERNEL_F64), 0.5);
    ck_assert_double_eq(distance(1 + 0x1p-22, 1, KERNEL_F32), 2);
    ck_assert_double_eq(distance(0x3p-1074, 0x1p-1074L, KERNEL_F64), 2);
    ck_assert_double_eq(distance(0, 0x1p-149L, KERNEL_F32), 1);
    ck_assert_double_eq(distance((double)INFINITY, (long double)DBL_MAX, KERNEL_F64), 1);
    ck_assert_double_eq(distance((double)INFINITY, 0x1p5000L, KERNEL_F64), 0);
    ck_assert(isinf(distance((double)NAN, 1, KERNEL_F64)) && isinf(distance(1, NAN, KERNEL_F32)));
    ck_assert(distance(DBL_MAX, (long double)INFINITY, KERNEL_F64) == 1);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("ulps");
    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, values_in_f64_are_within_their_bounds);
    tcase_add_test(tests, values_in_f32_are_within_their_bounds);
    tcase_add_test(tests, every_row_has_a_bound_or_a_reason);
    tcase_add_test(tests, the_page_of_bounds_says_what_is_tested);
    tcase_add_test(tests, the_distance_counts_units_in_the_last_place);
    return run_cases("accuracy", tests);
}
