/* test_row_sums.c: sums of rows are near the exact ones whatever the rows hold, and the same on all
 * instruction sets; so is a row of softmax.
 */
#include "elementwise.h"
#include "kernel_ops.h"
#include "run_cases.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <string.h>

enum { MOST = 100003, ROWS = 3, LONG = 70 };

static const int64_t lengths[] = {0,   1,   31,  32,   33,   63,   64,   65,  97,
                                  127, 511, 512, 1000, 2048, 2049, 5000, MOST};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static float narrow[MOST];
static double wide[MOST];

/* Growing sums of one sign, large numbers that cancel, and ones that a large number swallows. */
static double number(int kind, int64_t i, int64_t n)
{
    if (kind == 0)
        return 1 + 0.37 * (double)(i % 7);
    if (kind == 1)
        return (i % 2 ? -1e7 : 1e7) + sin(0.7 * (double)i);
    return i == 0 ? 0x1p24 : i == n - 1 ? -0x1p24 : 1;
}

static void check_sum(int dtype, int kind, int64_t n)
{
    static const char *const names[] = {"portable", "avx2", "avx512"};
    long double exact = 0, size = 0;
    double first = 0;
    for (int64_t i = 0; i < n; i++) {
        narrow[i] = (float)number(kind, i, n);
        wide[i] = number(kind, i, n);
        const long double x = dtype == KERNEL_F32 ? (long double)narrow[i] : (long double)wide[i];
        exact += x;
        size += fabsl(x);
    }
    /* 32 numbers are added one after the other, and what is behind them in double. */
    const long double unit = dtype == KERNEL_F32 ? FLT_EPSILON / 2 : DBL_EPSILON / 2;
    const long double bound = (31 * unit + 8 * DBL_EPSILON) * size;
    for (int k = 0; k < 3; k++) {
        if (!kernel_isa_use(names[k]))
            continue;
        const void *x = dtype == KERNEL_F32 ? (const void *)narrow : wide;
        const double sum = kernel_isa_get()->sum[dtype](n, x);
        first = k == 0 ? sum : first;
        ck_assert_msg(sum == first, "%s: %.17g and %.17g", names[k], sum, first);
        ck_assert_msg(fabsl((long double)sum - exact) <= bound,
                      "%s %s of %d, kind %d: %.17g, not %.20Lg, bound %Lg", names[k],
                      kernel_dtype_name(dtype), (int)n, kind, sum, exact, bound);
    }
    (void)kernel_isa_use(NULL);
}

TEST_RANGE(sums_of_long_rows_are_near_the_exact_ones, KERNEL_F32, KERNEL_F64 + 1)
{
    for (int kind = 0; kind < 3; kind++)
        for (int i = 0; i < LENGTHS; i++)
            check_sum(_i, kind, lengths[i]);
}

TEST_RANGE(what_is_no_number_is_the_sum, KERNEL_F32, KERNEL_F64 + 1)
{
    const double special[] = {(double)INFINITY, -(double)INFINITY, (double)NAN};
    for (int k = 0; k < 3; k++)
        for (int64_t at = 0; at < 131; at += 13) {
            for (int64_t i = 0; i < 131; i++) {
                wide[i] = i == at ? special[k] : 1;
                narrow[i] = (float)wide[i];
            }
            const void *x = _i == KERNEL_F32 ? (const void *)narrow : wide;
            const double sum = kernel_isa_get()->sum[_i](131, x);
            ck_assert(k == 2 ? isnan(sum) : sum == special[k]);
        }
}

/* Rows of a softmax, dense and long enough to be passed one by one. */
static void softmax(int dtype, void *x, void *y)
{
    struct kernel_array in = {.data = x,
                              .shape = (int64_t[]){ROWS, LONG},
                              .strides = (int64_t[]){LONG, 1},
                              .size = ROWS * LONG,
                              .dtype = (uint8_t)dtype,
                              .rank = 2,
                              .contiguous = true},
                        out = in;
    char error[KERNEL_ERROR_BYTES];
    const kernel_ref operand[] = {&in};
    struct kernel_array *result[] = {&out};
    const int64_t attr[] = {-1};
    out.data = y;
    struct kernel_call call = {.op = &kernel_op_softmax,
                               .in = operand,
                               .out = result,
                               .attr = attr,
                               .n_in = 1,
                               .n_out = 1,
                               .n_attr = 1,
                               .workspace = narrow,
                               .error = error};
    ck_assert_int_eq(kernel_run(&call), 0);
}

TEST(softmax_of_long_rows_is_near_the_exact_one)
{
    static double x[ROWS * LONG], y[ROWS * LONG];
    static float xf[ROWS * LONG], yf[ROWS * LONG];
    for (int i = 0; i < ROWS * LONG; i++) {
        const int row = i / LONG;
        xf[i] = (float)(i % 11 == 3 ? -INFINITY : 40 * sin(0.9 * i) + 1000 * row);
        x[i] = (double)xf[i];
    }
    softmax(KERNEL_F64, x, y);
    softmax(KERNEL_F32, xf, yf);
    for (int r = 0; r < ROWS; r++) {
        long double total = 0, most = -INFINITY;
        for (int c = 0; c < LONG; c++)
            most = fmaxl(most, (long double)x[r * LONG + c]);
        for (int c = 0; c < LONG; c++)
            total += expl((long double)x[r * LONG + c] - most);
        for (int c = 0; c < LONG; c++) {
            const int i = r * LONG + c;
            const long double want = expl((long double)x[i] - most) / total;
            /* The difference to the maximum is rounded: |x - most| <= 80. */
            ck_assert(fabsl((long double)y[i] - want) <= 100 * DBL_EPSILON * want + 1e-300L);
            ck_assert(fabsl((long double)yf[i] - want) <= 100 * FLT_EPSILON * want + 1e-37L);
        }
    }
}

TEST(what_is_no_number_stays_in_its_long_row)
{
    static double x[ROWS * LONG], y[ROWS * LONG];
    const double special[] = {(double)NAN, (double)INFINITY};
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < ROWS * LONG; i++)
            x[i] = i < LONG ? 0 : i < 2 * LONG ? 0.1 * i : -(double)INFINITY;
        x[LONG + 69] = special[k];
        softmax(KERNEL_F64, x, y);
        for (int c = 0; c < LONG; c++) {
            ck_assert(y[c] == 1.0 / LONG);
            ck_assert(isnan(y[LONG + c]) && isnan(y[2 * LONG + c]));
        }
    }
}

RUN_TESTS(NULL, NULL)
