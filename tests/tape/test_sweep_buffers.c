/* test_sweep_buffers.c: what a sweep need not copy: a seed that is the adjoint itself, and adjoints
 * that an op writes where they stay.
 */
#include <tapescope/ad.h>

#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <string.h>

#include "tape_fixture.h"

#define OK(call) ck_assert_msg((call) == AD_OK, "%s", ad_tape_message(tape))

enum { ROWS = 64, COLUMNS = 512, SIZE = ROWS * COLUMNS, BYTES = 8 * SIZE };

static const int64_t shape[] = {ROWS, COLUMNS};
static double x[SIZE], w[COLUMNS], b[COLUMNS], seed[SIZE], kept[SIZE], found[2][SIZE];

static void setup(void)
{
    for (int i = 0; i < SIZE; i++) {
        x[i] = sin(0.3 * i);
        seed[i] = kept[i] = cos(0.7 * i);
    }
    for (int i = 0; i < COLUMNS; i++) {
        w[i] = 1 + 0.01 * (i % 13);
        b[i] = 0.1 * (i % 5);
    }
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
}

static uint64_t bytes_swept(ad_tensor y, ad_tensor s)
{
    ad_stats before, after;
    OK(ad_tape_reset_peak(tape));
    OK(ad_tape_stats(tape, &before));
    OK(ad_backward_seed(y, s));
    OK(ad_tape_stats(tape, &after));
    return after.peak_bytes - before.peak_bytes;
}

TEST(a_seed_and_the_adjoints_of_leaves_take_no_second_buffer)
{
    const int64_t columns = COLUMNS;
    const ad_tensor leaf = ad_leaf(tape, AD_F64, 2, shape, x),
                    s = ad_constant(tape, AD_F64, 2, shape, seed);
    const ad_tensor y = ad_layer_norm(leaf, ad_leaf(tape, AD_F64, 1, &columns, w),
                                      ad_leaf(tape, AD_F64, 1, &columns, b), 1e-5);
    /* The leaf's gradient has its buffer already. */
    const uint64_t first = bytes_swept(y, s);
    ck_assert_msg(first < BYTES / 4, "%d bytes", (int)first);
    OK(ad_gradient(leaf, found[0], SIZE));
    /* What is there already is added to, by a buffer of its own. */
    const uint64_t again = bytes_swept(y, s);
    ck_assert_msg(again >= BYTES && again < BYTES + BYTES / 4, "%d bytes", (int)again);
    OK(ad_gradient(leaf, found[1], SIZE));
    for (int i = 0; i < SIZE; i++)
        ck_assert(found[1][i] == 2 * found[0][i]);
    ck_assert_mem_eq(seed, kept, sizeof seed);
}

TEST(a_seed_stays_as_it_is)
{
    const ad_tensor leaf = ad_leaf(tape, AD_F64, 2, shape, x),
                    s = ad_constant(tape, AD_F64, 2, shape, seed);
    const ad_tensor z = ad_mul(leaf, leaf);
    /* The adjoint of the sum becomes z's, to which more is added. */
    OK(ad_backward_seed(ad_add(z, z), s));
    OK(ad_gradient(leaf, found[0], SIZE));
    ck_assert_mem_eq(seed, kept, sizeof seed);
    for (int i = 0; i < SIZE; i++)
        ck_assert(found[0][i] == 4 * x[i] * seed[i]);
    OK(ad_tape_zero_gradients(tape));
    OK(ad_backward_seed(ad_reshape(z, (int64_t[]){COLUMNS, ROWS}, 2),
                        ad_reshape(s, (int64_t[]){COLUMNS, ROWS}, 2)));
    OK(ad_gradient(leaf, found[0], SIZE));
    ck_assert_mem_eq(seed, kept, sizeof seed);
    for (int i = 0; i < SIZE; i++)
        ck_assert(found[0][i] == 2 * x[i] * seed[i]);
}

TEST(one_leaf_as_two_operands_gets_both_adjoints)
{
    const int64_t columns = COLUMNS;
    const ad_tensor leaf = ad_leaf(tape, AD_F64, 2, shape, x),
                    s = ad_constant(tape, AD_F64, 2, shape, seed);
    const ad_tensor both = ad_leaf(tape, AD_F64, 1, &columns, w),
                    first = ad_leaf(tape, AD_F64, 1, &columns, w),
                    second = ad_leaf(tape, AD_F64, 1, &columns, w);
    OK(ad_backward_seed(ad_layer_norm(leaf, both, both, 1e-5), s));
    OK(ad_backward_seed(ad_layer_norm(leaf, first, second, 1e-5), s));
    double got[COLUMNS], one[COLUMNS], other[COLUMNS];
    OK(ad_gradient(both, got, COLUMNS));
    OK(ad_gradient(first, one, COLUMNS));
    OK(ad_gradient(second, other, COLUMNS));
    for (int i = 0; i < COLUMNS; i++)
        ck_assert(fabs(got[i] - (one[i] + other[i])) <= 1e-14 * (fabs(one[i]) + fabs(other[i])));
}

RUN_TESTS(setup, teardown)
