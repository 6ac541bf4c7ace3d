/* test_row_threads.c: reductions, softmax and what is broadcast along rows give the same bits for
 * any number of threads; softmax's gradient agrees with its definition along either axis.
 *
 * Arrays are large enough for threads, and no extent is a multiple of a vector.
 */
#include "run_cases.h"
#include "threads.h"

#include <tapescope/ad.h>

#include <check.h>
#include <math.h>
#include <string.h>

enum { ROWS = 1030, COLUMNS = 259, SIZE = ROWS * COLUMNS };

static double numbers[SIZE], seeds[SIZE], value[2][SIZE], gradient[2][SIZE];

static void check_ok(ad_tape tape, ad_status status)
{
    ck_assert_msg(status == AD_OK, "%s", ad_tape_message(tape));
}

static void fill(void)
{
    for (int i = 0; i < SIZE; i++) {
        numbers[i] = 3 * sin(0.7 * i + i % 11);
        seeds[i] = cos(0.3 * i) - 0.25;
    }
}

/* Row sums, row maxima, sums over both axes of three, a softmax by rows and by columns. */
static ad_tensor combine(ad_tensor x)
{
    const int64_t last = 1, outer[] = {1};
    ad_tensor sums = ad_sum_axes(x, &last, 1, AD_KEEPDIM),
              most = ad_max_axes(x, &last, 1, AD_KEEPDIM);
    ad_tensor y = ad_mul(ad_sub(x, most), sums);
    y = ad_add(ad_softmax(y, -1), ad_softmax(x, 0));
    ad_tensor blocks = ad_reshape(y, (int64_t[]){10, ROWS / 10, COLUMNS}, 3);
    ad_tensor means = ad_mean_axes(ad_mul(blocks, blocks), outer, 1, AD_KEEPDIM);
    return ad_reshape(ad_add(blocks, means), (int64_t[]){ROWS, COLUMNS}, 2);
}

static void compute(ad_dtype dtype, int to)
{
    const int64_t shape[] = {ROWS, COLUMNS};
    ad_tape tape;
    check_ok((ad_tape){0}, ad_tape_create(&tape, NULL));
    const ad_tensor x = ad_leaf(tape, AD_F64, 2, shape, numbers);
    const ad_tensor y = ad_cast(combine(ad_cast(x, dtype)), AD_F64);
    check_ok(tape, ad_backward_seed(y, ad_constant(tape, AD_F64, 2, shape, seeds)));
    check_ok(tape, ad_value(y, value[to], SIZE));
    check_ok(tape, ad_gradient(x, gradient[to], SIZE));
    check_ok(tape, ad_tape_destroy(tape));
}

TEST_RANGE(results_do_not_depend_on_the_number_of_threads, AD_F32, AD_F64 + 1)
{
    fill();
    threads_ask(1);
    compute((ad_dtype)_i, 0);
    for (int n = 2; n <= 4; n++) {
        threads_ask(n);
        compute((ad_dtype)_i, 1);
        ck_assert_mem_eq(value[1], value[0], sizeof value[0]);
        ck_assert_mem_eq(gradient[1], gradient[0], sizeof gradient[0]);
    }
}

/* y (g - sum of g y), of rows of a matrix or of its transpose, by either name of the axis. */
static void check_softmax(ad_dtype dtype, int64_t rows, int64_t columns, bool turned, int64_t axis)
{
    const double bound = dtype == AD_F32 ? 1e-6 : 1e-15;
    const int64_t leaf[] = {turned ? columns : rows, turned ? rows : columns};
    const int64_t shape[] = {rows, columns};
    ad_tape tape;
    check_ok((ad_tape){0}, ad_tape_create(&tape, NULL));
    const ad_tensor base = ad_leaf(tape, AD_F64, 2, leaf, numbers);
    ad_tensor x = ad_cast(base, dtype);
    x = turned ? ad_transpose(x) : x;
    const ad_tensor y = ad_cast(ad_softmax(x, axis), AD_F64);
    check_ok(tape, ad_backward_seed(y, ad_constant(tape, AD_F64, 2, shape, seeds)));
    check_ok(tape, ad_gradient(base, gradient[0], rows * columns));
    for (int64_t r = 0; r < rows; r++) {
        long double total = 0, mean = 0;
        for (int64_t c = 0; c < columns; c++) {
            const double at = numbers[turned ? c * rows + r : r * columns + c];
            total += expl((long double)at);
            mean += expl((long double)at) * (long double)seeds[r * columns + c];
        }
        for (int64_t c = 0; c < columns; c++) {
            const int64_t i = turned ? c * rows + r : r * columns + c;
            const long double p = expl((long double)numbers[i]) / total;
            const long double want = p * ((long double)seeds[r * columns + c] - mean / total);
            if (!(fabsl((long double)gradient[0][i] - want) <= (long double)bound))
                ck_abort_msg("element %d of [%d,%d]: %.17g, not %.17Lg", (int)i, (int)rows,
                             (int)columns, gradient[0][i], want);
        }
    }
    check_ok(tape, ad_tape_destroy(tape));
}

TEST(the_gradient_of_softmax_agrees_with_plain_loops)
{
    fill();
    for (int dtype = AD_F32; dtype <= AD_F64; dtype++)
        for (int turned = 0; turned < 2; turned++) {
            check_softmax((ad_dtype)dtype, 3, 37, turned, -1);
            check_softmax((ad_dtype)dtype, 5, 1, turned, 1);
            check_softmax((ad_dtype)dtype, 2, 5000, turned, 1);
        }
}

/* What no row of finite numbers meets: a NaN or an infinity stays in its row. */
TEST(a_nan_stays_in_its_row)
{
    const double x[] = {1, 2, (double)NAN, 4, 0, 0, (double)INFINITY, 1},
                 one[] = {1, 0, 0, 0, 1, 0, 0, 0};
    double g[8];
    ad_tape tape;
    check_ok((ad_tape){0}, ad_tape_create(&tape, NULL));
    const ad_tensor leaf = ad_leaf(tape, AD_F64, 2, (int64_t[]){4, 2}, x);
    const ad_tensor seed = ad_constant(tape, AD_F64, 2, (int64_t[]){4, 2}, one);
    check_ok(tape, ad_backward_seed(ad_softmax(leaf, 1), seed));
    check_ok(tape, ad_gradient(leaf, g, 8));
    const double p = 1 / (1 + exp(1));
    ck_assert(fabs(g[0] - p * (1 - p)) < 1e-15 && fabs(g[1] + p * (1 - p)) < 1e-15);
    ck_assert(isnan(g[2]) && isnan(g[3]));
    ck_assert(g[4] == 0.25 && g[5] == -0.25);
    ck_assert(isnan(g[6]) && isnan(g[7]));
    check_ok(tape, ad_tape_destroy(tape));
}

RUN_TESTS(NULL, NULL)
