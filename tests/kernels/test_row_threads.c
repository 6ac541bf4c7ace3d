/* test_row_threads.c: reductions, softmax and what is broadcast along rows give the same bits for
 * any number of threads; softmax's gradient agrees with its definition along either axis.
 *
 * Arrays are large enough for threads, and no extent is a multiple of a vector.
 */
#include "kernel.h"
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

static const int numbers_of_threads[] = {2, 3, 5, KERNEL_MAX_THREADS};
enum { NUMBERS = sizeof numbers_of_threads / sizeof *numbers_of_threads };

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
    for (int k = 0; k < NUMBERS; k++) {
        threads_ask(numbers_of_threads[k]);
        compute((ad_dtype)_i, 1);
        ck_assert_mem_eq(value[1], value[0], sizeof value[0]);
        ck_assert_mem_eq(gradient[1], gradient[0], sizeof gradient[0]);
    }
}

/* y = x w + b and its gradients: products of all kinds, in pieces of columns, rows, and both. */
static const struct product_sizes {
    int64_t m, k, n;
} product_sizes[] = {{16, 128, 256}, {64, 100, 99}, {500, 33, 40}, {200, 17, 150}, {3, 400, 401}};
enum { PRODUCTS = sizeof product_sizes / sizeof *product_sizes };

static void multiply(ad_dtype dtype, const struct product_sizes *s, double *y, double *g)
{
    ad_tape tape;
    check_ok((ad_tape){0}, ad_tape_create(&tape, NULL));
    const ad_tensor x = ad_leaf(tape, AD_F64, 2, (int64_t[]){s->m, s->k}, numbers),
                    w = ad_leaf(tape, AD_F64, 2, (int64_t[]){s->k, s->n}, numbers + 5),
                    b = ad_leaf(tape, AD_F64, 1, &s->n, numbers + 3);
    const ad_tensor z = ad_linear(ad_cast(x, dtype), ad_cast(w, dtype), ad_cast(b, dtype));
    const ad_tensor twice = ad_matmul(z, ad_transpose(ad_cast(w, dtype)));
    check_ok(tape, ad_backward_seed(ad_cast(twice, AD_F64),
                                    ad_constant(tape, AD_F64, 2, (int64_t[]){s->m, s->k}, seeds)));
    check_ok(tape, ad_value(ad_cast(z, AD_F64), y, s->m * s->n));
    check_ok(tape, ad_gradient(x, g, s->m * s->k));
    check_ok(tape, ad_gradient(w, g + s->m * s->k, s->k * s->n));
    check_ok(tape, ad_tape_destroy(tape));
}

/* Where BLAS multiplies, its order of summing is its own: there sums are exact. */
TEST_RANGE(products_do_not_depend_on_the_number_of_threads, AD_F32, AD_F64 + 1)
{
    const bool exact = strcmp(kernel_isa_name(), "avx2") != 0;
    fill();
    for (int i = 0; i < SIZE && exact; i++) {
        numbers[i] = i % 7 - 3;
        seeds[i] = i % 5 - 2;
    }
    for (int p = 0; p < PRODUCTS; p++) {
        const struct product_sizes *const s = &product_sizes[p];
        const size_t values = (size_t)(s->m * s->n), gradients = (size_t)((s->m + s->n) * s->k);
        ck_assert_uint_le(gradients, SIZE);
        threads_ask(1);
        multiply((ad_dtype)_i, s, value[0], gradient[0]);
        for (int k = 1; k < NUMBERS; k += 2) {
            threads_ask(numbers_of_threads[k]);
            memset(value[1], 0, sizeof value[1]);
            memset(gradient[1], 0, sizeof gradient[1]);
            multiply((ad_dtype)_i, s, value[1], gradient[1]);
            ck_assert_mem_eq(value[1], value[0], values * sizeof(double));
            ck_assert_mem_eq(gradient[1], gradient[0], gradients * sizeof(double));
        }
    }
}

/* Means and maxima of windows that overlap, and their adjoints on top of each other. */
static void pool(ad_dtype dtype, double *y, double *g)
{
    enum { PLANES = 12, HEIGHT = 70, WIDTH = 83, ALL = PLANES * HEIGHT * WIDTH };
    const int64_t shape[] = {PLANES, HEIGHT, WIDTH};
    ad_tape tape;
    check_ok((ad_tape){0}, ad_tape_create(&tape, NULL));
    const ad_tensor x = ad_leaf(tape, AD_F64, 3, shape, numbers), z = ad_cast(x, dtype);
    const ad_tensor means =
        ad_avg_pool2d(z, 3, 3, &(ad_avg_pool2d_options){1, 1, 1, 1, AD_SKIP_PADDING});
    const ad_tensor most = ad_max_pool2d(z, 3, 3, &(ad_max_pool2d_options){1, 1, 1, 1});
    const ad_tensor sum = ad_cast(ad_add(means, most), AD_F64);
    check_ok(tape, ad_backward_seed(sum, ad_constant(tape, AD_F64, 3, shape, seeds)));
    check_ok(tape, ad_value(sum, y, ALL));
    check_ok(tape, ad_gradient(x, g, ALL));
    check_ok(tape, ad_tape_destroy(tape));
}

TEST_RANGE(pools_do_not_depend_on_the_number_of_threads, AD_F32, AD_F64 + 1)
{
    fill();
    threads_ask(1);
    pool((ad_dtype)_i, value[0], gradient[0]);
    for (int k = 0; k < NUMBERS; k++) {
        threads_ask(numbers_of_threads[k]);
        pool((ad_dtype)_i, value[1], gradient[1]);
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
