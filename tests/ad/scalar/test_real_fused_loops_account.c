/* test_real_fused_loops_account.c: what a profile says of fused loops: every call and byte on the
 * line that recorded it, under its own name. */
#include <tapescope/ad_real.h>

#include "observe_support.h"
#include "run_cases.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

enum { N = 20, STEPS = 3000 };

/* A head, operands, what is kept, as docs/reference/scalars.md has it; kept once. */
enum { HEAD = 32, OPERAND = 12, SHARED = 8 };

static ad_real x[N], w[N];

static void setup(void)
{
    modules_find();
    double v[N];
    tape = observe_tape();
    for (int i = 0; i < N; i++)
        v[i] = 1 + i / 64.0;
    ad_real_leaves(tape, N, v, x);
    ad_real_leaves(tape, N, v, w);
}

static void pullback(const void *data, int64_t m, const double *dy, int64_t n, double *dx)
{
    (void)data;
    (void)m;
    dx[n - 1] += dy[0];
}

/* Five lines: two of one kind, one of another, one of statements, one of the user's own. */
static ad_real record_once(ad_real y, int n)
{
    static const double value = 1;
    for (int i = 0; i < n; i++) {
        const ad_real a = ad_real_dot(N, x, w);
        const ad_real b = ad_real_dot(N, w, w);
        ad_set(&y, ad_real_add(ad_real_mul(y, 0.5), a));
        ad_real pair[3] = {y, ad_real_of(1), b}; /* with a constant it is no statement */
        if (i % 3 == 0)
            y = ad_real_sum(3, pair);
        if (i % 5 == 0)
            ad_real_custom(N, x, 1, &value, &y, "my own", pullback, NULL, 0);
    }
    return y;
}

static ad_real (*volatile record)(ad_real y, int n) = record_once;

/* The rows with that name have so many calls, and bytes each. */
static void check_row(const struct tape_ledger *ledger, const char *op, uint64_t calls,
                      uint64_t bytes)
{
    for (uint32_t i = 0; i < ledger->n_rows; i++) {
        const struct tape_row *row = tape_ledger_row(ledger, i);
        if (strcmp(row->op, op) == 0 && row->calls == calls && row->live_bytes == bytes)
            return;
    }
    ck_abort_msg("no row of %s has %lu calls and %lu bytes", op, (unsigned long)calls,
                 (unsigned long)bytes);
}

static void check_rows(const struct tape_ledger *ledger, uint64_t calls, uint64_t live)
{
    const uint64_t kept = 2 * 8 * N; /* of x and w, by the first dot */
    const uint64_t thirds = (live + 2) / 3, fifths = (live + 4) / 5;
    check_row(ledger, "dot", calls, live * (HEAD + 2 * OPERAND + 2 * SHARED) + kept);
    check_row(ledger, "dot", calls, live * (HEAD + 2 * OPERAND + 2 * SHARED));
    check_row(ledger, "sum", (calls + 2) / 3, thirds * (HEAD + OPERAND + 3 * 4));
    check_row(ledger, "my own", (calls + 4) / 5, fifths * (HEAD + OPERAND + 16));
    observe_check_sums(ledger);
}

TEST(calls_and_bytes_stand_on_the_line_of_each_fused_loop)
{
    observe_begin(UINT64_MAX);
    ad_real y = record(x[0], STEPS);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    const struct tape_ledger *ledger = observe_ledger();
    check_rows(ledger, STEPS, STEPS);
    observe_check_live(ledger, tape);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ck_assert_uint_eq(observe_ledger()->live_bytes, 0);
    tape_observe_end();
}

TEST(what_a_rewind_drops_is_live_no_more)
{
    observe_begin(UINT64_MAX);
    ad_real y = record(x[0], STEPS);
    const ad_mark mark = ad_tape_mark(tape);
    y = record(y, 3 * STEPS);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    observe_check_live(observe_ledger(), tape);
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    check_rows(observe_ledger(), 4 * STEPS, STEPS);
    observe_check_live(observe_ledger(), tape);
    tape_observe_end();
}

TEST(a_profile_begun_in_mid_recording_has_the_bytes_but_not_the_calls)
{
    record(x[0], STEPS);
    observe_begin(UINT64_MAX);
    ad_real y = ad_real_sum(2, w);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    check_rows(observe_ledger(), 0, STEPS);
    observe_check_live(observe_ledger(), tape);
    tape_observe_end();
}

TEST(what_fused_loops_need_beside_adjoints_is_counted_too)
{
    ad_real any[N], y, z[3];
    double jacobian[3 * N];
    observe_begin(UINT64_MAX);
    for (int i = 0; i < N; i++)
        any[i] = x[N - 1 - i];
    y = ad_real_sum_of_squares(N, any);
    ad_real_gemv(3, 4, any, w, z);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    observe_check_live(observe_ledger(), tape);
    ck_assert_int_eq(ad_real_jacobian(tape, 3, z, N, x, jacobian), AD_OK);
    observe_check_live(observe_ledger(), tape);
    observe_check_sums(observe_ledger());
    tape_observe_end();
}

RUN_TESTS(setup, teardown)
