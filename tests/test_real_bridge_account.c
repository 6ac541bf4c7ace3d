/* test_real_bridge_account.c: what a profile says of bridges: their rows, bytes, calls and ticks.
 *
 * May include: ad_real.h, observe_support.h, Check.
 */
#include <tapescope/ad_real.h>

#include "observe_support.h"
#include "run_cases.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})

static ad_tape tape;
static ad_real a;
static ad_tensor w;
static const double data[3] = {0.5, -2, 3};

static void setup(void)
{
    setenv("TAPESCOPE_MODULE_DIR", TAPESCOPE_LIB_DIR "/tapescope", 1);
    tape = observe_tape();
    a = ad_real_leaf(tape, 2);
    w = ad_leaf(tape, AD_F64, 1, SHAPE(3), data);
}

static void teardown(void)
{
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

/* Each function of the bridges on one line. */
static void elements_of(ad_tensor x, ad_real *u)
{
    ck_assert_int_eq(ad_reals_of_tensor(x, 3, u), AD_OK);
}

static ad_tensor tensor_of(const ad_real *u)
{
    return ad_tensor_of_reals(tape, 1, SHAPE(3), u);
}

static ad_tensor forth_and_back(ad_tensor x)
{
    ad_real u[3];
    elements_of(x, u);
    for (int i = 0; i < 3; i++)
        ad_set(&u[i], ad_real_mul(u[i], a));
    return tensor_of(u);
}

static void check_all(void)
{
    const struct tape_ledger *ledger = observe_ledger();
    observe_check_sums(ledger);
    observe_check_live(ledger, tape);
}

START_TEST(bridges_have_rows_with_their_bytes_calls_and_ticks)
{
    observe_begin(UINT64_MAX);
    ad_tensor t = forth_and_back(ad_square(w));
    const struct tape_ledger *ledger = observe_ledger();
    const struct tape_row *from = observe_row(ledger, "reals_of_tensor");
    const struct tape_row *to = observe_row(ledger, "tensor_of_reals");
    ck_assert_uint_eq(from->calls, 1);
    ck_assert_uint_eq(from->record_bytes, 40);
    ck_assert_uint_eq(from->value_bytes, 0);
    ck_assert_uint_eq(from->forward_moved, 3 * (8 + 16));
    ck_assert_uint_gt(from->forward_ticks, 0);
    ck_assert_uint_eq(from->backward_calls, 0);
    ck_assert_uint_eq(to->calls, 1);
    /* Entry, shape and strides; the record's head, output and three indices. */
    ck_assert_uint_eq(to->record_bytes, 72 + 16 + 40);
    ck_assert_uint_eq(to->value_bytes, 24);
    ck_assert_uint_eq(to->forward_moved, 3 * (16 + 8));
    ck_assert_uint_gt(to->forward_ticks, 0);
    check_all();
    ck_assert_int_eq(ad_backward(ad_sum(t)), AD_OK);
    ck_assert_uint_eq(from->backward_calls, 1);
    ck_assert_uint_eq(to->backward_calls, 1);
    ck_assert_uint_gt(from->backward_ticks, 0);
    ck_assert_uint_gt(to->backward_ticks, 0);
    ck_assert_uint_eq(to->adjoint_bytes, 24);
    /* The sweep has the adjoints of all scalars: the constants', a, three elements and results. */
    ck_assert_uint_eq(observe_row(observe_ledger(), "backward")->adjoint_bytes, 8 * 8);
    check_all();
    tape_observe_end();
}
END_TEST

START_TEST(a_tape_without_a_tensor_of_reals_has_no_adjoints_of_scalars)
{
    ad_real u[3];
    observe_begin(UINT64_MAX);
    ad_tensor h = ad_square(w);
    elements_of(h, u);
    ck_assert_int_eq(ad_backward(ad_sum(h)), AD_OK);
    ck_assert_uint_eq(observe_row(observe_ledger(), "backward")->adjoint_bytes, 0);
    /* Nothing has come to the elements, but the sweep has passed them. */
    ck_assert_uint_eq(observe_row(observe_ledger(), "reals_of_tensor")->backward_calls, 0);
    check_all();
    tape_observe_end();
}
END_TEST

START_TEST(a_profile_begun_later_has_the_bytes_of_bridges)
{
    ad_tensor t = forth_and_back(forth_and_back(ad_square(w)));
    observe_begin(UINT64_MAX);
    ck_assert_int_eq(ad_backward(ad_sum(t)), AD_OK);
    const struct tape_ledger *ledger = observe_ledger();
    ck_assert_uint_eq(observe_row(ledger, "reals_of_tensor")->record_bytes, 2 * 40);
    ck_assert_uint_eq(observe_row(ledger, "reals_of_tensor")->calls, 0);
    ck_assert_uint_eq(observe_row(ledger, "tensor_of_reals")->backward_calls, 2);
    check_all();
    tape_observe_end();
}
END_TEST

START_TEST(rewinds_releases_and_every_sweep_leave_the_sums_right)
{
    double jacobian[3];
    observe_begin(UINT64_MAX);
    const ad_mark mark = ad_tape_mark(tape);
    for (int round = 0; round < 4; round++) {
        ad_tensor t = forth_and_back(ad_exp(forth_and_back(ad_square(w))));
        ad_real u[3];
        elements_of(t, u);
        ck_assert_int_eq(ad_real_jacobian(tape, 3, u, 1, &a, jacobian), AD_OK);
        check_all();
        ck_assert_int_eq(round % 2 ? ad_backward_release(ad_sum(t)) : ad_real_backward(tape, u[1]),
                         AD_OK);
        check_all();
        if (round < 3)
            ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
        check_all();
    }
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ck_assert_uint_eq(observe_ledger()->live_bytes, 0);
    observe_check_sums(observe_ledger());
    tape_observe_end();
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("rows");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, bridges_have_rows_with_their_bytes_calls_and_ticks);
    tcase_add_test(tcase, a_tape_without_a_tensor_of_reals_has_no_adjoints_of_scalars);
    tcase_add_test(tcase, a_profile_begun_later_has_the_bytes_of_bridges);
    tcase_add_test(tcase, rewinds_releases_and_every_sweep_leave_the_sums_right);
    return run_cases("real_bridge_account", tcase);
}
