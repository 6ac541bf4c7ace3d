/* test_real_bridge_account.c: what a profile says of bridges: their rows, bytes, calls and ticks;
 * and what is left where there is no memory to look at the statements behind them.
 */
#include <tapescope/ad_real.h>

#include "observe_support.h"
#include "run_cases.h"
#include "tape_memory.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})

static ad_real a;
static ad_tensor w;
static const double data[3] = {0.5, -2, 3};

static void setup(void)
{
    modules_find();
    tape = observe_tape();
    a = ad_real_leaf(tape, 2);
    w = ad_leaf(tape, AD_F64, 1, SHAPE(3), data);
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

TEST(bridges_have_rows_with_their_bytes_calls_and_ticks)
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

TEST(a_tape_without_a_tensor_of_reals_has_no_adjoints_of_scalars)
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

TEST(a_profile_begun_later_has_the_bytes_of_bridges)
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

TEST(rewinds_releases_and_every_sweep_leave_the_sums_right)
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

/* ---- no memory ---- */

static int until_refused; /* allocations; 0: none is refused */

static void *resize(void *p, size_t bytes, void *payload)
{
    if (!p && until_refused && --until_refused == 0)
        return NULL;
    return tape_memory_system.resize(p, bytes, payload);
}

TEST(without_memory_to_look_a_sweep_has_failed_and_another_call_has_not)
{
    const ad_allocator allocator = {tape_memory_system.reserve, tape_memory_system.unreserve,
                                    resize, tape_memory_system.release, NULL};
    const ad_tape_options options = {.reserve_bytes = 4 << 20, .allocator = &allocator};
    ad_tape kept = tape;
    ad_real u[3];
    double g[3], jacobian[1];
    ck_assert_int_eq(ad_tape_create(&tape, &options), AD_OK);
    ck_assert_int_eq(ad_tape_record_begin(tape), AD_OK);
    a = ad_real_leaf(tape, 2);
    w = ad_leaf(tape, AD_F64, 1, SHAPE(3), data);
    ad_tensor t = ad_sum(forth_and_back(ad_square(w)));
    ad_tensor h = ad_neg(w);
    elements_of(forth_and_back(h), u);
    ck_assert_int_eq(ad_release(h), AD_OK); /* from now on sweeps look at what they come to */
    for (int k = 0; k < 4; k++) {
        ck_assert_int_eq(ad_real_backward(tape, u[0]), AD_OK);
        until_refused = 1;
        ad_status status;
        if (k == 0)
            status = ad_backward(t);
        else if (k == 1)
            status = ad_backward_release(t);
        else if (k == 2)
            status = ad_real_backward(tape, u[1]);
        else
            status = ad_real_jacobian(tape, 1, u, 1, &a, jacobian);
        ck_assert_int_eq(until_refused, 0);
        ck_assert_int_eq(status, AD_ERROR_MEMORY);
        ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "out of memory"));
        ad_tape_clear_error(tape);
        /* A sweep that fails clears gradients; a Jacobian has none to do with. */
        ck_assert_msg(ad_gradient(w, g, 3) == (k < 3 ? AD_ERROR_STATE : AD_OK), "%d", k);
        ad_tape_clear_error(tape);
        ck_assert_double_ne(ad_item(t), 0);
    }
    ck_assert_int_eq(ad_real_jacobian(tape, 1, u, 1, &a, jacobian), AD_OK);
    ck_assert_double_eq(jacobian[0], -data[0]);
    ck_assert_int_eq(ad_backward_release(t), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
    tape = kept;
}

TEST(a_jacobian_is_right_or_has_no_memory)
{
    enum { N = 64 };
    ad_tape kept = tape;
    static double many[N], was[2];
    int failed = 0, done = 0;
    for (uint64_t budget = 8 << 10; done == 0; budget += 64) {
        const ad_tape_options options = {.reserve_bytes = 4 << 20, .budget_bytes = budget};
        ad_real y[2], s = ad_real_of(0);
        static ad_real u[N];
        double jacobian[2] = {0, 0};
        ad_stats before, after;
        ck_assert_int_eq(ad_tape_create(&tape, &options), AD_OK);
        ck_assert_int_eq(ad_tape_record_begin(tape), AD_OK);
        a = ad_real_leaf(tape, 2);
        ad_tensor x = ad_leaf(tape, AD_F64, 1, SHAPE(N), many);
        ad_reals_of_tensor(ad_exp(x), N, u);
        for (int i = 0; i < N; i++)
            ad_set(&u[i], ad_real_mul(u[i], a));
        ad_tensor t = ad_square(ad_tensor_of_reals(tape, 1, SHAPE(N), u));
        ad_reals_of_tensor(ad_exp(ad_neg(t)), N, u);
        for (int i = 0; i < N; i++)
            ad_set(&s, ad_real_add(s, u[i]));
        y[0] = s;
        y[1] = u[1];
        if (ad_tape_status(tape) == AD_OK) {
            ad_tape_stats(tape, &before);
            const ad_status status = ad_real_jacobian(tape, 2, y, 1, &a, jacobian);
            ad_tape_stats(tape, &after);
            ck_assert_uint_eq(after.live_bytes, before.live_bytes);
            failed += status == AD_ERROR_MEMORY;
            done += status == AD_OK;
            ck_assert(status == AD_OK || status == AD_ERROR_MEMORY);
            memcpy(was, jacobian, sizeof was);
        }
        ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
    }
    ck_assert_int_gt(failed, 8); /* the adjoints of scalars, then those of tensors */
    /* exp(-(a e^0)^2) by a. */
    ck_assert_double_eq_tol(was[1], -4 * exp(-4), 1e-15);
    ck_assert_double_eq_tol(was[0], -4 * N * exp(-4), 1e-13);
    tape = kept;
}

RUN_TESTS(setup, teardown)
