/* test_real_fork_fused_loops.c: fused loops on forks: loops as one record that name the parent's
 * values.
 *
 * The same loops on one tape are the oracle.
 */
#include <tapescope/ad_real.h>

#include "check_quietly.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "tape_fixture.h"

enum { N = 9, PARTS = 3 };

static ad_real x[N];

static void setup(void)
{
    double start[N];
    for (int i = 0; i < N; i++)
        start[i] = 0.25 * i - 0.875;
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    ck_assert_int_eq(ad_real_leaves(tape, N, start, x), AD_OK);
}

/* Operands that are the parent's, the fork's own, both in one list, and constants in a list. */
static void compute(int part, ad_real *y)
{
    ad_real own[N], mixed[N];
    for (int i = 0; i < N; i++)
        ad_set(&own[i], ad_real_mul(ad_real_sin(x[(i + part) % N]), 1 + part));
    for (int i = 0; i < N; i++)
        mixed[i] = i % 3 == 0 ? x[N - 1 - i] : i % 3 == 1 ? own[i] : ad_real_of(0.5 * i);
    y[0] = ad_real_dot(N, x, own);
    y[1] = ad_real_sum_of_squares(N, mixed);
    ad_set(&y[1], ad_real_add(y[1], ad_real_log_sum_exp(N, x)));
    ad_real_axpy(N, y[0], mixed, own);
    ad_set(&y[0], ad_real_add(ad_real_sum(N, own), ad_real_dot(N, mixed, mixed)));
}

static ad_real total(ad_real (*y)[2])
{
    ad_real sum = ad_real_of(1.0);
    for (int k = 0; k < PARTS; k++)
        ad_set(&sum, ad_real_add(ad_real_mul(sum, 0.5), ad_real_mul(y[k][0], y[k][1])));
    return sum;
}

static void forked(ad_real (*y)[2])
{
    ad_tape fork[PARTS];
    ck_assert_int_eq(ad_tape_fork(tape, PARTS, fork), AD_OK);
    for (int k = 0; k < PARTS; k++) {
        ck_assert_int_eq(ad_tape_record_begin(fork[k]), AD_OK);
        compute(k, y[k]);
        ck_assert_int_eq(ad_tape_record_end(fork[k]), AD_OK);
    }
    for (int k = 0; k < PARTS; k++)
        ck_assert_int_eq(ad_tape_join(tape, fork[k], 2, y[k]), AD_OK);
}

TEST(gradients_and_jacobians_through_fused_loops_of_forks_are_those_of_one_tape)
{
    ad_real y[PARTS][2], sum;
    double one[N], right[N], jacobian[2 * N], rows[2 * N], value;
    for (int k = 0; k < PARTS; k++)
        compute(k, y[k]);
    sum = total(y);
    value = sum.value;
    ck_assert_int_eq(ad_real_backward(tape, sum), AD_OK);
    ck_assert_int_eq(ad_real_gradients(tape, N, x, right), AD_OK);
    ck_assert_int_eq(ad_real_jacobian(tape, 2, y[1], N, x, rows), AD_OK);
    forked(y);
    sum = total(y);
    ck_assert(sum.value == value);
    ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
    ck_assert_int_eq(ad_real_backward(tape, sum), AD_OK);
    ck_assert_int_eq(ad_real_gradients(tape, N, x, one), AD_OK);
    ck_assert_int_eq(ad_real_jacobian(tape, 2, y[1], N, x, jacobian), AD_OK);
    for (int i = 0; i < N; i++)
        CHECK_NEAR(one[i], right[i], 1e-13 * (1 + fabs(right[i])));
    for (int i = 0; i < 2 * N; i++)
        CHECK_NEAR(jacobian[i], rows[i], 1e-13 * (1 + fabs(rows[i])));
}

RUN_TESTS(setup, teardown_fine)
