/* test_normalization_runs.c: normalization of long rows and channels gives the same bits on every
 * instruction set and for any number of threads, in both element types.
 *
 * Arrays are large enough for threads, and no extent is a multiple of a vector or of a group of
 * rows.
 */
#include "elementwise.h"
#include "run_cases.h"
#include "threads.h"

#include <tapescope/ad.h>

#include <check.h>
#include <math.h>
#include <string.h>

enum { ROWS = 2070, COLUMNS = 131, CHANNELS = 65, LENGTH = 1439, MOST = 290000 };
enum kind { LAYER, ROOT, BATCH, KINDS };

static double numbers[MOST], weights[COLUMNS];
static double value[2][MOST], to_x[2][MOST], to_w[2][COLUMNS], to_b[2][COLUMNS];

static void check_ok(ad_tape tape, ad_status status)
{
    ck_assert_msg(status == AD_OK, "%s", ad_tape_message(tape));
}

/* Value and gradients into place `to`. */
static void compute(enum kind kind, ad_dtype dtype, int to)
{
    const int64_t rows[] = {ROWS, COLUMNS}, images[] = {3, CHANNELS, LENGTH};
    const int64_t *shape = kind == BATCH ? images : rows;
    const int64_t count = kind == BATCH ? CHANNELS : COLUMNS;
    const int64_t size = kind == BATCH ? 3 * CHANNELS * LENGTH : ROWS * COLUMNS;
    ad_tape tape;
    ad_tensor mean, var, y;
    check_ok((ad_tape){0}, ad_tape_create(&tape, NULL));
    const ad_tensor x = ad_leaf(tape, AD_F64, kind == BATCH ? 3 : 2, shape, numbers);
    const ad_tensor w = ad_leaf(tape, AD_F64, 1, &count, weights);
    const ad_tensor b = ad_leaf(tape, AD_F64, 1, &count, weights);
    const ad_tensor cast[] = {ad_cast(x, dtype), ad_cast(w, dtype), ad_cast(b, dtype)};
    if (kind == LAYER)
        y = ad_layer_norm(cast[0], cast[1], cast[2], 0.25);
    else if (kind == ROOT)
        y = ad_add(ad_rms_norm(cast[0], cast[1], 0.25), cast[2]);
    else
        y = ad_batch_norm(cast[0], cast[1], cast[2], 0.25, &mean, &var);
    y = ad_cast(y, AD_F64);
    check_ok(tape, ad_backward(ad_sum(ad_square(y))));
    check_ok(tape, ad_value(y, value[to], size));
    check_ok(tape, ad_gradient(x, to_x[to], size));
    check_ok(tape, ad_gradient(w, to_w[to], count));
    check_ok(tape, ad_gradient(b, to_b[to], count));
    check_ok(tape, ad_tape_destroy(tape));
}

static void expect_the_same(void)
{
    ck_assert_mem_eq(value[1], value[0], sizeof value[0]);
    ck_assert_mem_eq(to_x[1], to_x[0], sizeof to_x[0]);
    ck_assert_mem_eq(to_w[1], to_w[0], sizeof to_w[0]);
    ck_assert_mem_eq(to_b[1], to_b[0], sizeof to_b[0]);
}

static void fill(void)
{
    for (int i = 0; i < MOST; i++)
        numbers[i] = sin(0.7 * i) + (double)(i * 37LL % 1009) / 300;
    for (int i = 0; i < COLUMNS; i++)
        weights[i] = 1 + 0.5 * cos(3.0 * i);
    memset(value, 0, sizeof value);
    memset(to_x, 0, sizeof to_x);
    memset(to_w, 0, sizeof to_w);
    memset(to_b, 0, sizeof to_b);
}

TEST_EACH(results_do_not_depend_on_the_number_of_threads, 2 * KINDS)
{
    const enum kind kind = (enum kind)(_i / 2);
    fill();
    threads_ask(1);
    compute(kind, (ad_dtype)(_i % 2), 0);
    ck_assert(to_x[0][0] != 0 && to_w[0][0] != 0 && to_b[0][0] != 0);
    for (int n = 2; n <= 4; n++) {
        threads_ask(n);
        compute(kind, (ad_dtype)(_i % 2), 1);
        expect_the_same();
    }
}

TEST_EACH(results_do_not_depend_on_the_instruction_set, 2 * KINDS)
{
    static const char *const names[] = {"portable", "avx2", "avx512"};
    const enum kind kind = (enum kind)(_i / 2);
    int first = 1;
    fill();
    threads_ask(1);
    for (int k = 0; k < 3; k++) {
        if (!kernel_isa_use(names[k]))
            continue;
        compute(kind, (ad_dtype)(_i % 2), first ? 0 : 1);
        if (!first)
            expect_the_same();
        first = 0;
    }
    kernel_isa_use(NULL);
    ck_assert(!first);
}

RUN_TESTS(NULL, NULL)
