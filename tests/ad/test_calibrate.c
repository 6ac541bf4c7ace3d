/* test_calibrate.c: what times have too much is measured by ops of a tape that nobody sees.
 *
 * The clock is the test's: a tick each time that it is read. So an op that is observed takes one
 * tick, and a hundred that nobody observes take one together.
 */
#include "ad_internal.h"
#include "observe_support.h"
#include "run_cases.h"

#include <check.h>

static uint64_t ticks;

static uint64_t count_readings(void)
{
    return ++ticks;
}

TEST(times_that_are_observed_are_compared_with_those_that_are_not)
{
    double forward = -1, backward = -1;
    ad_calibrate(count_readings, &forward, &backward);
    ck_assert_double_eq_tol(forward, (100 - 1) / 100., 1e-12);
    /* The sweep's own begin and end are two, so that it would be more than one reading a call. */
    ck_assert_double_eq_tol(backward, 1, 1e-12);
}

/* The number of a new tape, which is observed. */
static uint64_t next_number(void)
{
    static const double data[1] = {1};
    ad_tape tape = observe_tape();
    ad_leaf(tape, AD_F64, 1, (int64_t[]){1}, data);
    const uint64_t number = observe_ledger()->tape;
    ad_tape_destroy(tape);
    return number;
}

TEST(nobody_sees_the_tape)
{
    double forward, backward;
    observe_begin(UINT64_MAX);
    const uint64_t number = next_number(), before = observe_ticks;
    const int flushed = observe_n_flushed, events = observe_n_events;
    ad_calibrate(count_readings, &forward, &backward);
    tape_observe_flush();
    ck_assert_uint_eq(observe_ticks, before);
    ck_assert_int_eq(observe_n_flushed, flushed);
    ck_assert_int_eq(observe_n_events, events);
    ck_assert_uint_eq(next_number(), number + 1);
    tape_observe_end();
}

RUN_TESTS(NULL, NULL)
