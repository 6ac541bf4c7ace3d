/* test_leaf_copy.c: leaves over copies: their arrays may be changed and freed at once, and the copy
 * lives and dies with the leaf.
 */
#include <tapescope/ad.h>

#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})

enum { MANY = 100000 };

static void setup(void)
{
    modules_find();
    ck_assert_int_eq(ad_tape_create(&tape, &(ad_tape_options){.reserve_bytes = 64 << 20}), AD_OK);
}

TEST(the_array_may_be_freed_or_changed_at_once)
{
    double *p = malloc(MANY * sizeof *p), *g = malloc(MANY * sizeof *g);
    ck_assert(p && g);
    for (int i = 0; i < MANY; i++)
        p[i] = i;
    const ad_tensor x = ad_leaf_copy(tape, AD_F64, 1, SHAPE(MANY), p);
    const ad_tensor y = ad_sum(ad_square(x));
    memset(p, 0xff, MANY * sizeof *p);
    ck_assert(!ad_leaf_changed(x));
    free(p);
    ck_assert_int_eq(ad_backward(y), AD_OK);
    ck_assert_int_eq(ad_gradient(x, g, MANY), AD_OK);
    for (int i = 0; i < MANY; i += 999)
        ck_assert_double_eq(g[i], 2.0 * i);
    free(g);
}

TEST(a_copy_is_on_the_tape_and_leaves_with_a_rewind)
{
    ad_stats before, copied, after;
    float data[64] = {1};
    const ad_mark mark = ad_tape_mark(tape);
    ad_tape_stats(tape, &before);
    ad_leaf(tape, AD_F32, 1, SHAPE(64), data);
    ad_tape_stats(tape, &after);
    const uint64_t borrowed = after.live_bytes - before.live_bytes;
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
        ad_leaf_copy(tape, AD_F32, 1, SHAPE(64), data);
        ad_tape_stats(tape, &copied);
        ck_assert_uint_eq(copied.live_bytes - before.live_bytes, borrowed + sizeof data);
    }
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    ad_tape_stats(tape, &after);
    ck_assert_uint_eq(after.live_bytes, before.live_bytes);
}

TEST(a_copy_stays_over_frames_and_releasing_sweeps)
{
    double data[3] = {1, 2, 3}, g[3];
    ad_tensor x, y;
    ad_frame frame = ad_frame_begin(tape);
    x = ad_leaf_copy(tape, AD_F64, 1, SHAPE(3), data);
    y = ad_sum(ad_mul(x, ad_square(x)));
    ck_assert_int_eq(ad_frame_end(frame, &y, 1), AD_OK);
    ck_assert_int_eq(ad_release(x), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "release: a leaf stays until a reset or a rewind");
    ck_assert_int_eq(ad_backward_release(y), AD_OK);
    ck_assert_int_eq(ad_gradient(x, g, 3), AD_OK);
    ck_assert(g[0] == 3 && g[1] == 12 && g[2] == 27);
    ck_assert_int_eq(ad_value(x, g, 3), AD_OK);
    ck_assert_mem_eq(g, data, sizeof g);
}

static ad_tensor cubes(ad_tape on, const ad_tensor *x, int n, void *payload)
{
    (void)on, (void)n, (void)payload;
    return ad_mul(x[0], ad_square(x[0]));
}

TEST(gradient_buffers_and_checks_take_copies)
{
    double data[3] = {0.5, -1, 2}, sum[3] = {1, 1, 1};
    const ad_tensor x = ad_leaf_copy(tape, AD_F64, 1, SHAPE(3), data);
    ck_assert_int_eq(ad_check_gradient(tape, cubes, 1, &x, 1e-6, NULL, NULL), AD_OK);
    ck_assert_int_eq(ad_gradient_buffer(x, sum, 3), AD_OK);
    ck_assert_int_eq(ad_backward(ad_sum(ad_square(x))), AD_OK);
    ck_assert(sum[0] == 2 && sum[1] == -1 && sum[2] == 5);
}

TEST(mistakes_are_named_and_leave_nothing)
{
    ad_stats before, after;
    const double data[2] = {1, 2};
    ad_tape_stats(tape, &before);
    ad_leaf_copy(tape, AD_I64, 1, SHAPE(2), SHAPE(1, 2));
    check_error(AD_ERROR_DTYPE,
                "leaf_copy: i64 has no gradient, use ad_constant at test_leaf_copy");
    ad_leaf_copy(tape, AD_F64, 1, SHAPE(2), NULL);
    check_error(AD_ERROR_ARGUMENT, "leaf_copy: data is a null pointer");
    ad_leaf_copy(tape, AD_F64, 1, SHAPE(-2), data);
    check_error(AD_ERROR_SHAPE, "leaf_copy: extent 0 is negative");
    ad_leaf_copy(tape, AD_F64, 1, SHAPE(INT64_C(1) << 40), data);
    check_error(AD_ERROR_MEMORY, "leaf_copy: out of memory");
    ad_tape_stats(tape, &after);
    ck_assert_uint_eq(after.live_bytes, before.live_bytes);
    ck_assert_uint_eq(after.values, before.values);
    ck_assert_int_eq(ad_size(ad_leaf_copy(tape, AD_F64, 1, SHAPE(0), NULL)), 0);
    /* The trap looks at what is copied as at what is borrowed. */
    ck_assert_int_eq(ad_tape_trap(tape, AD_TRAP_NAN), AD_OK);
    ad_exp(ad_leaf_copy(tape, AD_F64, 1, SHAPE(2), ((double[]){1, NAN})));
    check_error(AD_ERROR_NONFINITE, "leaf_copy: value nan");
}

RUN_TESTS(setup, teardown_fine)
