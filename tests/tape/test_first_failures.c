/* test_first_failures.c: of a chain of failures the first is told, with its line, also where what
 * failed has no tape to keep it.
 */
#include <tapescope/ad.h>

#include "run_cases.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tape_fixture.h"

static const ad_tape none;
static const ad_tensor zero;
static const int64_t shape[] = {3};
static double data[3] = {1, 2, 3}, got[3];
static ad_tensor x;

static void setup(void)
{
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    x = ad_leaf(tape, AD_F64, 1, shape, data);
}

/* The message begins so, and names this line. */
static void check_text(const char *message, const char *text, int line)
{
    char where[64];
    snprintf(where, sizeof where, "test_first_failures.c:%d", line);
    ck_assert_msg(strncmp(message, text, strlen(text)) == 0 && strstr(message, where), "%s",
                  message);
}

TEST(a_chain_of_unary_ops_on_zeros_names_the_first)
{
    ad_tensor h = ad_relu(zero);
    int line = __LINE__ - 1;
    ad_tensor y = ad_sum(ad_exp(h));
    ck_assert_int_eq(ad_backward(y), AD_ERROR_HANDLE);
    ck_assert_int_eq(ad_tape_status(tape), AD_OK);
    ck_assert_str_eq(ad_tape_message(tape), "");
    ck_assert_int_eq(ad_tape_status(none), AD_ERROR_HANDLE);
    check_text(ad_tape_message(none), "relu: operand 1 is a handle of zeros: no tensor", line);
    ad_tape_clear_error(none);
    ck_assert_int_eq(ad_tape_status(none), AD_OK);
    ck_assert_str_eq(ad_tape_message(none), "");
}

TEST(where_such_a_chain_meets_a_tape_its_error_has_the_first_as_well)
{
    ad_tensor h = ad_relu(zero);
    int line = __LINE__ - 1;
    ad_tensor y = ad_mul(x, ad_exp(h));
    ck_assert_int_eq(ad_backward(ad_sum(y)), AD_ERROR_HANDLE);
    const char *message = ad_tape_message(tape);
    check_text(message,
               "mul: operand 2 (b) is a handle of zeros: no tensor; before that, relu: ", line);
    check_text(message, "mul: ", line + 2);
    ck_assert_ptr_nonnull(strstr(message, "; the call is at test_first_failures.c:"));
    ad_tape_clear_error(tape);
    /* It has been told. */
    ad_mul(x, zero);
    check_text(ad_tape_message(tape), "mul: operand 2 (b) is a handle of zeros: no tensor at ",
               __LINE__ - 2);
}

TEST(an_operand_that_is_none_says_why)
{
    ad_tape other;
    ck_assert_int_eq(ad_tape_create(&other, NULL), AD_OK);
    ad_tensor foreign = ad_leaf(other, AD_F64, 1, shape, data), stale = ad_exp(foreign);
    ck_assert_int_eq(ad_release(stale), AD_OK);
    const struct {
        ad_tensor operand;
        const char *text;
        ad_status status;
    } cases[] = {
        {zero, "mul: operand 2 (b) is a handle of zeros: no tensor at ", AD_ERROR_HANDLE},
        {foreign, "mul: operand 2 is of another tape than operand 1 at ", AD_ERROR_TAPE},
        {stale, "mul: operand 2 is of another tape than operand 1 at ", AD_ERROR_TAPE},
        {{70000, 1, 1, 1}, "mul: operand 2 (b): not a handle of a tape at ", AD_ERROR_HANDLE},
        {{other.slot, other.generation + 5, 1, 1},
         "mul: operand 2 (b): the tape was destroyed at ",
         AD_ERROR_HANDLE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_uint_eq(ad_mul(x, cases[i].operand).value, 0);
        ck_assert_int_eq(ad_tape_status(tape), cases[i].status);
        check_text(ad_tape_message(tape), cases[i].text, __LINE__ - 2);
        ad_tape_clear_error(tape);
    }
    /* What is wrong with the operand is nothing to the tape that it is on, or to the thread. */
    ck_assert_int_eq(ad_tape_status(other), AD_OK);
    ck_assert_int_eq(ad_tape_status(none), AD_OK);
    ad_mul(zero, x);
    check_text(ad_tape_message(tape), "mul: operand 1 (a) is a handle of zeros", __LINE__ - 1);
    ck_assert_int_eq(ad_tape_destroy(other), AD_OK);
}

TEST(a_threads_first_failure_stays_until_it_is_read)
{
    ad_tape_create(NULL, NULL);
    int line = __LINE__ - 1;
    /* What each call returns is its own failure. */
    ck_assert_int_eq(ad_set_threads(0), AD_ERROR_ARGUMENT);
    ck_assert_int_eq(ad_tape_reset(none), AD_ERROR_HANDLE);
    ck_assert_int_eq(ad_value(zero, got, 3), AD_ERROR_HANDLE);
    check_text(ad_tape_message(none), "tape_create: tape is a null pointer", line);
    check_text(ad_tape_message(none), "tape_create: tape is a null pointer", line);
    /* Read, it gives way to the next. */
    ck_assert_int_eq(ad_set_threads(0), AD_ERROR_ARGUMENT);
    check_text(ad_tape_message(none), "set_threads: 0 threads", __LINE__ - 1);
    ck_assert_int_eq(ad_tape_reset(none), AD_ERROR_HANDLE);
    ck_assert_int_eq(ad_tape_status(none), AD_ERROR_HANDLE);
    ad_tape_clear_error(none);
}

TEST(looking_at_the_errors_of_a_destroyed_tape_makes_none)
{
    ad_tape gone;
    ck_assert_int_eq(ad_tape_create(&gone, NULL), AD_OK);
    ad_tensor v = ad_leaf(gone, AD_F64, 1, shape, data);
    ck_assert_int_eq(ad_tape_destroy(gone), AD_OK);
    ad_sum(ad_exp(v));
    int line = __LINE__ - 1;
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(ad_tape_status(gone), AD_ERROR_HANDLE);
        check_text(ad_tape_message(gone), "exp: operand 1: the tape was destroyed", line);
        ad_tape_clear_error(gone);
    }
    check_text(ad_tape_message(none), "exp: operand 1: the tape was destroyed", line);
    ad_tape_clear_error(none);
    /* Where nothing has failed before, they are the first. */
    ck_assert_int_eq(ad_tape_status(gone), AD_ERROR_HANDLE);
    ck_assert_str_eq(ad_tape_message(gone), "tape_status: the tape was destroyed");
    ad_tape_clear_error(none);
}

TEST(functions_that_only_look_name_their_line)
{
    ck_assert_int_eq(ad_tape_stats(tape, NULL), AD_ERROR_ARGUMENT);
    check_text(ad_tape_message(tape), "tape_stats: stats is a null pointer at ", __LINE__ - 1);
    ad_tape_clear_error(tape);
    ad_tensor h = ad_exp(x);
    ck_assert_int_eq(ad_release(h), AD_OK);
    ck_assert_uint_eq(ad_tape_of(h).slot, tape.slot);
    check_text(ad_tape_message(tape), "tape_of: the tensor was released at ", __LINE__ - 1);
}

RUN_TESTS(setup, teardown)
