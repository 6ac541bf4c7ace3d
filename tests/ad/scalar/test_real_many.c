/* test_real_many.c: millions of statements, recorded and swept on one tape in bounded memory: cost
 * and bytes grow with their number alone.
 *
 * TAPESCOPE_STATEMENTS is their number (default 20 000 000; a hundredth under a sanitizer),
 * TAPESCOPE_STATEMENTS_AT_ONCE that of one recording.
 */
#undef AD_REAL_CHECKED
#define AD_REAL_CHECKED 0 /* as users do for whom it matters */
#include <tapescope/ad_real.h>

#include "run_cases.h"
#include "sanitizers.h"
#include "statement_bytes.h"

#include <check.h>
#include <stdlib.h>

enum { SHARE = SANITIZED_ADDRESS || SANITIZED_THREAD ? 100 : 1 };

/* Of one recording: 200 MB, and 80 MB for the adjoints. */
enum { AT_ONCE = 10000000 };

static int64_t setting(const char *name, int64_t other)
{
    const char *text = getenv(name);
    return text && *text ? strtoll(text, NULL, 10) : other;
}

/* y_i = 1 - y_(i-1), in a tight function, as users have. */
static ad_real fold(ad_real y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        ad_set(&y, ad_real_sub(1, y));
    return y;
}

TEST(millions_of_statements_are_recorded_and_swept)
{
    const int64_t statements = setting("TAPESCOPE_STATEMENTS", 20000000 / SHARE);
    const int64_t at_once = setting("TAPESCOPE_STATEMENTS_AT_ONCE", AT_ONCE);
    const ad_tape_options bounded = {.budget_bytes = (uint64_t)at_once * 32 + (64 << 20)};
    ad_tape tape;
    ck_assert_int_eq(ad_tape_create(&tape, &bounded), AD_OK);
    int64_t left = statements, done = 0;
    while (left > 0) {
        const int64_t n = left < at_once ? left : at_once;
        const ad_real x = ad_real_leaf(tape, 0.25);
        const ad_real y = fold(x, n);
        ad_stats stats;
        ck_assert_int_eq(ad_tape_stats(tape, &stats), AD_OK);
        ck_assert_uint_eq(stats.statements, (uint64_t)n);
        ck_assert_uint_eq(stats.statement_bytes, (uint64_t)n * STATEMENT(0, 1));
        ck_assert_uint_le(stats.records, 48 + (uint64_t)n / 200000); /* runs: one for each 4 MiB */
        ck_assert_uint_le(stats.live_bytes, (uint64_t)n * STATEMENT(0, 1) + (8 << 20));
        ck_assert_msg(ad_real_backward(tape, y) == AD_OK, "%s", ad_tape_message(tape));
        ck_assert_double_eq(ad_real_gradient(tape, x), n % 2 ? -1 : 1);
        ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
        left -= n;
        done += n;
    }
    ck_assert_int_eq(done, statements);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

RUN_TESTS(NULL, NULL)
