/* test_measured.c: the time and the bytes of one expression, and a limit stated in the source.
 *
 * While something is observed the clock is the observer's: a tick each time that it is read.
 */
#include "observe_support.h"
#include "run_cases.h"
#include "statement_bytes.h"

#include <tapescope/ad_real.h>

#include <check.h>
#include <string.h>

static const double data[4] = {1, 2, 3, 4};
static const int64_t shape[1] = {4};

TEST(the_value_of_a_measured_expression_is_kept)
{
    ad_tape tape = observe_tape();
    ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data);
    double seconds = -1, inner = -1;
    observe_begin(UINT64_MAX);
    ad_tensor y = AD_TIME(&seconds, ad_mul(x, AD_TIME(&inner, ad_neg(x))));
    double value[4];
    AD_TIME(&seconds, (void)ad_value(y, value, 4));
    ck_assert_double_eq(value[3], -16);
    y = AD_TIME(&seconds, ad_mul(x, AD_TIME(&inner, ad_neg(x))));
    ck_assert_double_eq_tol(inner, 3e-9,
                            1e-15); /* two readings of the op's and the end's, 1 ns each */
    ck_assert_double_eq_tol(seconds, 7e-9, 1e-15);
    tape_observe_end();
    seconds = -1;
    ck_assert_int_eq(AD_TIME(&seconds, 41 + 1), 42);
    ck_assert_double_ge(seconds, 0);
    ck_assert_double_lt(seconds, 60);
    ad_tape_destroy(tape);
}

TEST(the_bytes_of_an_expression_are_what_the_tapes_grew_by)
{
    ad_tape tape = observe_tape(), other = observe_tape();
    ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data);
    ad_stats before, after;
    ad_tape_stats(tape, &before);
    int64_t bytes = 0, none = -1;
    ad_tensor y = AD_TAPE_BYTES(&bytes, ad_exp(ad_leaf(other, AD_F64, 1, shape, data)));
    ck_assert_int_gt(bytes, 0);
    int64_t one = bytes;
    AD_TAPE_BYTES(&bytes, ad_exp(x));
    ad_tape_stats(tape, &after);
    ck_assert_int_eq(bytes, (int64_t)(after.live_bytes - before.live_bytes));
    ck_assert_int_gt(one, bytes); /* a leaf as well */
    ck_assert_int_eq(AD_TAPE_BYTES(&none, (int)ad_rank(y)), 1);
    ck_assert_int_eq(none, 0);
    AD_TAPE_BYTES(&bytes, ad_tape_reset(other));
    ck_assert_int_eq(bytes, -one);
    ad_tape_destroy(other);
    ad_tape_destroy(tape);
}

TEST(statements_count_by_their_own_bytes)
{
    ad_tape tape = observe_tape();
    ad_tape_record_begin(tape);
    ad_real x[4];
    ad_real_leaves(tape, 4, data, x);
    ad_real y = x[0];
    ad_set(&y, ad_real_mul(y, x[1])); /* a run is open and has its block */
    int64_t bytes = -1;
    AD_TAPE_BYTES(&bytes, ad_set(&y, ad_real_mul(y, x[2])));
    ck_assert_int_eq(bytes, STATEMENT(2, 0));
    AD_TAPE_BYTES(&bytes, ad_set(&y, ad_real_sin(y)));
    ck_assert_int_eq(bytes, STATEMENT(1, 0));
    ad_tape_record_end(tape);
    ad_tape_destroy(tape);
}

TEST(a_tape_that_holds_more_than_asserted_is_a_sticky_error_on_the_line)
{
    ad_tape tape = observe_tape();
    ad_leaf(tape, AD_F64, 1, shape, data);
    ad_stats stats;
    ad_tape_stats(tape, &stats);
    ck_assert_int_eq(AD_ASSERT_TAPE_BYTES(tape, stats.live_bytes), AD_OK);
    ck_assert_int_eq(AD_ASSERT_TAPE_BYTES(tape, stats.live_bytes - 1), AD_ERROR_LIMIT);
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_LIMIT);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "tape_assert_bytes: the tape holds"));
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "at test_measured.c:"));
    ad_tape_destroy(tape);
    ck_assert_int_eq(AD_ASSERT_TAPE_BYTES(tape, 1), AD_ERROR_HANDLE);
}

TEST(expectations_are_known_by_place_and_scope)
{
    observe_begin(UINT64_MAX);
    ad_profiling_ = 1;
    const uint32_t n = observe_scopes->n_expectations;
    volatile int three = 3; /* a loop that is not unrolled has each place once */
    for (int i = 0; i < three; i++) {
        AD_SCOPE("expects")
        {
            AD_EXPECT_RATIO(2.5);
            AD_EXPECT_TAPE_BYTES(1 << 20);
        }
    }
    ck_assert_uint_eq(observe_scopes->n_expectations - n, 2);
    const struct tape_expectation *e = observe_scopes->expectation + n;
    ck_assert_uint_eq(e[0].kind, TAPE_EXPECT_RATIO);
    ck_assert_double_eq(e[0].bound, 2.5);
    ck_assert_uint_eq(e[0].times, 3);
    ck_assert_uint_eq(e[0].scope, observe_scopes->n - 1);
    ck_assert_uint_ne(e[0].pc, e[1].pc);
    ck_assert_uint_eq(e[1].kind, TAPE_EXPECT_BYTES);
    ck_assert_double_eq(e[1].bound, 1 << 20);
    tape_observe_end();
    ad_profiling_ = 0;
}

RUN_TESTS(NULL, NULL)
