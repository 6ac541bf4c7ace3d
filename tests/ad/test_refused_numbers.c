/* test_refused_numbers.c: numbers given to ops that no shape would make fit are refused as
 * arguments, at the call.
 */
#include <tapescope/ad.h>

#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <string.h>

#include "tape_fixture.h"

static const ad_tensor zero;
static const int64_t shape[] = {3};
static const double nan_ = (double)NAN, inf = (double)INFINITY;
static double data[3] = {-5, 0.5, 7};
static float narrow[3] = {-5, 0.5F, 7};
static ad_tensor x, w;

static void setup(void)
{
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    x = ad_leaf(tape, AD_F64, 1, shape, data);
    w = ad_leaf(tape, AD_F32, 1, shape, narrow);
}

static void check_refused(ad_tensor y, const char *text)
{
    ck_assert_uint_eq(y.value, 0);
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_ARGUMENT);
    ck_assert_msg(strncmp(ad_tape_message(tape), text, strlen(text)) == 0, "%s",
                  ad_tape_message(tape));
    ad_tape_clear_error(tape);
}

TEST(an_interval_has_bounds)
{
    check_refused(ad_clamp(x, nan_, 1), "clamp: low is nan: a number is wanted at ");
    check_refused(ad_clamp(x, 0, nan_), "clamp: high is nan: a number is wanted at ");
    check_refused(ad_clamp(w, -nan_, nan_), "clamp: low is nan: a number is wanted at ");
    double y[3];
    ck_assert_int_eq(ad_value(ad_clamp(x, -inf, inf), y, 3), AD_OK);
    ck_assert_mem_eq(y, data, sizeof y);
    ck_assert_int_eq(ad_value(ad_clamp(x, 2, 1), y, 3), AD_OK);
    ck_assert(y[0] == 1 && y[1] == 1 && y[2] == 1);
}

TEST(what_is_out_of_its_range_is_an_argument_and_no_shape)
{
    check_refused(ad_norm(x, 0.5), "norm: p is 0.5: a number of at least 1 is wanted at ");
    check_refused(ad_norm(x, -nan_), "norm: p is nan: a number of at least 1 is wanted at ");
    check_refused(ad_dropout(x, 1.5, 1), "dropout: p is 1.5: a number in [0, 1] is wanted at ");
    check_refused(ad_huber_loss(x, x, -inf), "huber_loss: delta is -inf: a positive number is ");
    check_refused(ad_rms_norm(x, x, -1), "rms_norm: eps is -1: a number of at least 0 is wanted");
    check_refused(ad_layer_norm(x, x, x, nan_), "layer_norm: eps is nan: a number of at least 0");
    ad_tensor image = ad_reshape(x, (int64_t[]){3, 1}, 2), one = ad_slice(x, 0, 0, 1, 1), m, v;
    check_refused(ad_batch_norm(image, one, one, -1, &m, &v), "batch_norm: eps is -1: a number of");
}

/* printf shows the sign of NaN, which differs between machines. */
TEST(nan_is_told_without_its_sign)
{
    for (int i = 0; i < 2; i++) {
        const double either = i ? nan_ : -nan_;
        check_refused(ad_norm(x, either), "norm: p is nan: ");
        ck_assert_int_eq(ad_check_gradient(tape, NULL, 1, &x, either, NULL, NULL),
                         AD_ERROR_ARGUMENT);
        ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "function or x is a null pointer"));
        ad_tape_clear_error(tape);
    }
}

/* What is wrong with an operand is told first: the number may be right for another. */
TEST(an_operand_that_does_not_fit_comes_before_the_number)
{
    ad_norm(ad_constant(tape, AD_I64, 1, shape, (int64_t[]){1, 2, 3}), 0.5);
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_DTYPE);
    ad_tape_clear_error(tape);
    ad_rms_norm(x, ad_scalar_f64(tape, 1), -1);
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_SHAPE);
    ad_tape_clear_error(tape);
    ck_assert_uint_eq(ad_norm(zero, 0.5).value, 0);
    ck_assert_int_eq(ad_tape_status((ad_tape){0, 0}), AD_ERROR_HANDLE);
}

/* The shape that was wanted is in the message, beside the one that there is. */
TEST(a_shape_that_is_not_to_be_had_is_named)
{
    ad_reshape(x, (int64_t[]){2, 2}, 2);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tape),
                                 "reshape: f64 [3]: 3 elements do not fill the new shape [2,2] "));
    ad_tape_clear_error(tape);
    ad_reshape(x, NULL, 0);
    ck_assert_ptr_nonnull(
        strstr(ad_tape_message(tape), "3 elements do not fill the new shape [] "));
    ad_tape_clear_error(tape);
    ad_broadcast_to(x, (int64_t[]){2, 4}, 2);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tape),
                                 "broadcast_to: f64 [3]: extent 3 does not become 4 of [2,4] "));
    ad_tape_clear_error(tape);
    ad_broadcast_to(x, NULL, 0);
    ck_assert_ptr_nonnull(
        strstr(ad_tape_message(tape), "f64 [3]: 1 axes do not become the 0 of []"));
    ad_tape_clear_error(tape);
    ad_broadcast_to(x, (int64_t[]){-2, 3}, 2);
    ck_assert_ptr_nonnull(
        strstr(ad_tape_message(tape), "f64 [3]: an extent of [-2,3] is negative"));
    ad_tape_clear_error(tape);
}

RUN_TESTS(setup, teardown)
