/* preaccumulate_support.h: a tape with three leaves, and sections on it, for tests.
 *
 * Compiled with checks of operands, whatever the build. Invariant: one test program includes it
 * once.
 */
#ifndef PREACCUMULATE_SUPPORT_H
#define PREACCUMULATE_SUPPORT_H

#include "check_quietly.h"

#include <tapescope/ad_real.h>

#include <stdlib.h>
#include <string.h>

static ad_tape tape;
static ad_real x[3];
static ad_preaccumulated saved;

static inline void setup(void)
{
    setenv("TAPESCOPE_MODULE_DIR", TAPESCOPE_LIB_DIR "/tapescope", 1);
    static const ad_tape_options small = {.budget_bytes = 512 << 20, .reserve_bytes = 1 << 30};
    ck_assert_int_eq(ad_tape_create(&tape, &small), AD_OK);
    ad_real_leaves(tape, 3, (double[]){0.5, 0.75, 0.25}, x);
}

static inline void teardown(void)
{
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

static inline ad_stats stats(void)
{
    ad_stats s;
    ck_assert_int_eq(ad_tape_stats(tape, &s), AD_OK);
    return s;
}

static inline void begin(void)
{
    ck_assert_msg(ad_preaccumulate_begin(tape) == AD_OK, "%s", ad_tape_message(tape));
}

static inline void end(int64_t m, ad_real *y)
{
    const ad_stats before = stats();
    ck_assert_msg(ad_preaccumulate_end(tape, m, y, &saved) == AD_OK, "%s", ad_tape_message(tape));
    const ad_stats after = stats();
    ck_assert_uint_eq(saved.replaced, saved.kept == NULL);
    ck_assert_uint_eq(before.statements - after.statements,
                      saved.statements_before - saved.statements_after);
    ck_assert_uint_eq(before.statement_bytes - after.statement_bytes,
                      saved.bytes_before - saved.bytes_after);
    ck_assert_uint_eq(saved.replaced, saved.bytes_after < saved.bytes_before);
    if (saved.replaced)
        ck_assert_uint_eq(saved.bytes_after, saved.jacobian_bytes);
    ck_assert_uint_le(after.live_bytes, before.live_bytes);
}

static inline void kept(const char *why)
{
    ck_assert(!saved.replaced);
    ck_assert_msg(strstr(saved.kept, why) != NULL, "%s", saved.kept);
    ck_assert_uint_eq(saved.statements_after, saved.statements_before);
}

static inline double derivative(ad_real y, ad_real by)
{
    double d = 7;
    ck_assert_msg(ad_real_jacobian(tape, 1, &y, 1, &by, &d) == AD_OK, "%s", ad_tape_message(tape));
    return d;
}

/* n statements of 32 bytes that give x[0] * x[1]^n. */
static inline ad_real powers(int n)
{
    ad_real y = x[0];
    for (int i = 0; i < n; i++)
        ad_set(&y, ad_real_mul(y, x[1]));
    return y;
}

#endif
