/* test_real_together.c: tensors, statements, fused loops and forks in one computation.
 *
 * Differences are the oracle (ad_check_gradient), and so is the same computation without forks.
 */
#include <tapescope/ad_real.h>

#include "check_quietly.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <string.h>

#include "tape_fixture.h"

enum { N = 6, PARTS = 2 };

static double data[N] = {0.5, -0.25, 0.75, 1.5, -1.0, 0.125};

static void setup(void)
{
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
}

/* By a fused loop with consecutive operands and one with any, and statements between. */
static ad_real part_of(const ad_real *u, int part)
{
    ad_real turned[N], y;
    for (int i = 0; i < N; i++)
        turned[i] = u[(i * 5 + part) % N];
    y = ad_real_dot(N, turned, u);
    ad_set(&y, ad_real_add(ad_real_sin(y), u[part]));
    turned[0] = y;
    return ad_real_log_sum_exp(N, turned);
}

/* A tensor of x's elements' statements; forked: two parts by forks. */
static ad_tensor network(ad_tape t, const ad_tensor *x, int n, void *forked)
{
    ad_real u[N], y[PARTS];
    ad_tape fork[PARTS];
    (void)n;
    ad_reals_of_tensor(ad_tanh(x[0]), N, u);
    if (forked)
        ad_tape_fork(t, PARTS, fork);
    for (int k = 0; k < PARTS; k++) {
        if (forked)
            ad_tape_record_begin(fork[k]);
        y[k] = part_of(u, k);
        if (forked)
            ad_tape_record_end(fork[k]);
    }
    for (int k = 0; k < PARTS && forked; k++)
        ad_tape_join(t, fork[k], 1, &y[k]);
    return ad_sum(ad_exp(ad_tensor_of_reals(t, 1, (int64_t[]){PARTS}, y)));
}

TEST(its_gradient_is_that_of_differences_with_forks_and_without)
{
    double g[2][N];
    ad_tensor x = ad_leaf(tape, AD_F64, 1, (int64_t[]){N}, data);
    for (int forked = 0; forked < 2; forked++) {
        void *const payload = forked ? &data : NULL;
        ck_assert_msg(ad_check_gradient(tape, network, 1, &x, 1e-7, payload, NULL) == AD_OK, "%s",
                      ad_tape_message(tape));
        ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
        ck_assert_int_eq(ad_backward(network(tape, &x, 1, payload)), AD_OK);
        ck_assert_int_eq(ad_gradient(x, g[forked], N), AD_OK);
    }
    for (int i = 0; i < N; i++)
        CHECK_NEAR(g[1][i], g[0][i], 1e-14 * (1 + fabs(g[0][i])));
}

/* What the sweep reads is found through fused loops and joins as well: a leaf that has changed. */
TEST(a_changed_leaf_is_seen_through_fused_loops_and_forks)
{
    for (int forked = 0; forked < 2; forked++) {
        ad_real u[N], y;
        ad_tape fork[1];
        double w[N], older[N] = {1, 2, 3, 4, 5, 6};
        memcpy(w, data, sizeof w);
        ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
        ad_tensor a = ad_leaf(tape, AD_F64, 1, (int64_t[]){N}, w);
        ad_tensor b = ad_leaf(tape, AD_F64, 1, (int64_t[]){N}, older);
        ad_tensor product = ad_mul(a, b); /* its pullback reads both */
        ck_assert_int_eq(ad_reals_of_tensor(product, N, u), AD_OK);
        if (forked) {
            ck_assert_int_eq(ad_tape_fork(tape, 1, fork), AD_OK);
            ck_assert_int_eq(ad_tape_record_begin(fork[0]), AD_OK);
        }
        y = part_of(u, 1);
        if (forked) {
            ck_assert_int_eq(ad_tape_record_end(fork[0]), AD_OK);
            ck_assert_int_eq(ad_tape_join(tape, fork[0], 1, &y), AD_OK);
        }
        ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
        w[2] += 1;
        ck_assert_int_ne(ad_real_backward(tape, y), AD_OK);
        ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "changed"));
        ad_tape_clear_error(tape);
    }
}

TEST(a_fork_makes_no_tensor_of_what_it_records)
{
    ad_tape fork[1];
    ad_real x = ad_real_leaf(tape, 2), y;
    ck_assert_int_eq(ad_tape_fork(tape, 1, fork), AD_OK);
    ck_assert_int_eq(ad_tape_record_begin(fork[0]), AD_OK);
    ad_set(&y, ad_real_mul(x, 3));
    const ad_tensor t = ad_tensor_of_reals(fork[0], 0, NULL, &y);
    (void)t;
    ck_assert_int_eq(ad_tape_status(fork[0]), AD_ERROR_STATE);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(fork[0]), "a fork records statements alone"));
    ad_tape_clear_error(fork[0]);
    ck_assert_int_eq(ad_tape_record_end(fork[0]), AD_OK);
    ck_assert_int_eq(ad_tape_join(tape, fork[0], 1, &y), AD_OK);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x), 3);
}

/* The first number that is not finite is named where it arose, in a loop as one record too, on a
 * fork too. */
TEST(a_trap_names_values_and_adjoints_of_fused_loops_and_forks)
{
    for (int forked = 0; forked < 2; forked++) {
        ad_real x[3], y;
        const double by[3] = {1, 1e200, 1e300};
        ad_tape fork[1] = {tape};
        ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
        ck_assert_int_eq(ad_tape_trap(tape, AD_TRAP_NAN | AD_TRAP_INF), AD_OK);
        ck_assert_int_eq(ad_real_leaves(tape, 3, (double[]){1e200, 2, 3}, x), AD_OK);
        if (forked)
            ck_assert_int_eq(ad_tape_fork(tape, 1, fork), AD_OK);
        ck_assert_int_eq(ad_tape_record_begin(fork[0]), AD_OK);
        y = ad_real_dot(3, x, by);
        ck_assert_int_eq(ad_tape_status(fork[0]), AD_OK);
        if (!forked) {
            y = ad_real_dot(3, x, x); /* 1e400 */
            ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_NONFINITE);
            ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "dot: value inf of result 0 at "));
            ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "test_real_together.c"));
            ad_tape_clear_error(tape);
            y = ad_real_dot(3, x, by);
        }
        ck_assert_int_eq(ad_tape_record_end(fork[0]), AD_OK);
        if (forked)
            ck_assert_int_eq(ad_tape_join(tape, fork[0], 1, &y), AD_OK);
        ck_assert_int_eq(ad_real_backward_seeds(tape, 1, &y, (double[]){1e200}),
                         AD_ERROR_NONFINITE);
        ck_assert_ptr_nonnull(strstr(ad_tape_message(tape),
                                     "dot: adjoint inf of element 1 of operand 1, backward, at "));
        ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "test_real_together.c"));
        ad_tape_clear_error(tape);
        ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
        ck_assert_int_eq(ad_real_backward_seeds(tape, 1, &y, (double[]){1}), AD_OK);
        ck_assert_double_eq(ad_real_gradient(tape, x[1]), 1e200);
        ck_assert_int_eq(ad_tape_trap(tape, 0), AD_OK);
    }
}

/* Values that lie apart on the tape have an index each, behind those of the operand before. */
TEST(a_trap_names_an_element_of_the_second_operand)
{
    ad_real x[6], y;
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ck_assert_int_eq(ad_tape_trap(tape, AD_TRAP_INF), AD_OK);
    ck_assert_int_eq(ad_real_leaves(tape, 6, (double[]){1e200, 2, 3, 1, 1, 1}, x), AD_OK);
    ck_assert_int_eq(ad_tape_record_begin(tape), AD_OK);
    const ad_real a[] = {x[2], x[0], x[1]}, b[] = {x[5], x[3], x[4]};
    y = ad_real_dot(3, a, b);
    ck_assert_int_eq(ad_tape_record_end(tape), AD_OK);
    ck_assert_int_eq(ad_real_backward_seeds(tape, 1, &y, (double[]){1e200}), AD_ERROR_NONFINITE);
    ck_assert_ptr_nonnull(
        strstr(ad_tape_message(tape), "dot: adjoint inf of element 1 of operand 2, backward, at "));
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_tape_trap(tape, 0), AD_OK);
}

RUN_TESTS(setup, teardown)
