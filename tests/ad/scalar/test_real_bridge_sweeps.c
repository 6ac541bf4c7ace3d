/* test_real_bridge_sweeps.c: what else there is of sweeps, where tensors and real numbers lie on
 * one tape: Jacobians, user's buffers, retained gradients, releases, frames, marks, guards, checks.
 */
#include <tapescope/ad_real.h>

#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})

static ad_tensor w, h; /* h = w^2 */
static ad_real a, u[3];

static const double data[3] = {0.5, -2, 3};

/* u = h a, element by element. */
static void setup(void)
{
    static const ad_tape_options small = {.budget_bytes = 64 << 20, .reserve_bytes = 256 << 20};
    tape_begin(&small);
    a = ad_real_leaf(tape, 2);
    w = ad_leaf(tape, AD_F64, 1, SHAPE(3), data);
    h = ad_square(w);
    ck_assert_int_eq(ad_reals_of_tensor(h, 3, u), AD_OK);
    for (int i = 0; i < 3; i++)
        ad_set(&u[i], ad_real_mul(u[i], a));
}

static void check_fine(void)
{
    ck_assert_msg(ad_tape_status(tape) == AD_OK, "%s", ad_tape_message(tape));
}

static void check_gradient(ad_tensor x, double g0, double g1, double g2)
{
    double g[3];
    ck_assert_int_eq(ad_gradient(x, g, 3), AD_OK);
    ck_assert_double_eq_tol(g[0], g0, 1e-14);
    ck_assert_double_eq_tol(g[1], g1, 1e-14);
    ck_assert_double_eq_tol(g[2], g2, 1e-14);
}

static ad_tensor tensor(void)
{
    return ad_tensor_of_reals(tape, 1, SHAPE(3), u);
}

/* ---- Jacobians ---- */

TEST(a_jacobian_leads_through_tensors_and_changes_no_gradient)
{
    double jacobian[4 * 5], mine[3] = {1, 1, 1};
    ad_tensor t = tensor(), q = ad_mul(ad_square(t), w);
    ad_real y[4], x[5] = {a, u[0], u[1], u[2], ad_real_leaf(tape, 1)};
    ck_assert_int_eq(ad_gradient_buffer(w, mine, 3), AD_OK);
    ck_assert_int_eq(ad_retain_gradient(q), AD_OK);
    ck_assert_int_eq(ad_backward(ad_sum(q)), AD_OK);
    const double before = ad_real_gradient(tape, a), mine_before = mine[1];
    ck_assert_int_eq(ad_reals_of_tensor(q, 3, y), AD_OK);
    ad_set(&y[3], ad_real_mul(y[0], ad_real_mul(y[1], a)));
    const int64_t m = 4, n = 5;
    for (int round = 0; round < 2; round++) {
        memset(jacobian, 0xff, sizeof jacobian);
        ck_assert_int_eq(ad_real_jacobian(tape, m, y, n, x, jacobian), AD_OK);
        for (int i = 0; i < 3; i++) {
            /* q[i] = u[i]^2 w[i], u[i] = w[i]^2 a. */
            ck_assert_double_eq_tol(jacobian[i * n], 2 * u[i].value * data[i] * data[i] * data[i],
                                    1e-12);
            for (int k = 0; k < 3; k++)
                ck_assert_double_eq_tol(jacobian[i * n + 1 + k],
                                        i == k ? 2 * u[i].value * data[i] : 0, 1e-12);
            ck_assert_double_eq(jacobian[i * n + 4], 0);
        }
        ck_assert_double_eq_tol(jacobian[3 * n],
                                y[0].value * y[1].value +
                                    2 * (y[0].value * jacobian[n] + y[1].value * jacobian[0]),
                                1e-11);
    }
    ck_assert_double_eq(ad_real_gradient(tape, a), before);
    ck_assert_double_eq(mine[1], mine_before);
    check_gradient(q, 1, 1, 1);
    /* Leaves and retained values are what they were: the next sweep adds as ever. */
    ck_assert_int_eq(ad_backward(ad_sum(q)), AD_OK);
    check_gradient(q, 2, 2, 2);
    ck_assert_double_eq_tol(mine[1] - mine_before, mine_before - 1, 1e-10);
    ck_assert_double_eq_tol(ad_real_gradient(tape, a), 2 * before, 1e-10);
    check_fine();
}

TEST(a_jacobian_that_no_tensor_lies_in_between_changes_no_gradient_either)
{
    double jacobian[3];
    ck_assert_int_eq(ad_real_backward(tape, u[1]), AD_OK);
    ck_assert_int_eq(ad_real_jacobian(tape, 3, u, 1, &a, jacobian), AD_OK);
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq(jacobian[i], data[i] * data[i]);
    ck_assert_double_eq(ad_real_gradient(tape, a), 4);
    check_gradient(w, 0, 2 * data[1] * 2, 0);
    ck_assert_int_eq(ad_real_jacobian(tape, 1, u, 1, &a, jacobian), AD_OK); /* a width of one */
    check_gradient(w, 0, 2 * data[1] * 2, 0);
    check_fine();
}

/* ---- gradients ---- */

TEST(a_users_buffer_gets_what_comes_through_reals)
{
    double mine[3] = {10, 20, 30};
    ck_assert_int_eq(ad_gradient_buffer(w, mine, 3), AD_OK);
    ck_assert_int_eq(ad_real_backward(tape, u[1]), AD_OK);
    ck_assert(mine[0] == 10 && mine[1] == 20 + 2 * data[1] * 2 && mine[2] == 30);
    ck_assert_int_eq(ad_backward(ad_sum(tensor())), AD_OK);
    ck_assert(mine[0] == 10 + 2 * data[0] * 2 && mine[1] == 20 + 8 * data[1]);
    check_fine();
}

TEST(gradients_are_retained_on_both_sides_of_a_bridge)
{
    ad_tensor t = tensor();
    ck_assert_int_eq(ad_retain_gradient(h), AD_OK);
    ck_assert_int_eq(ad_retain_gradient(t), AD_OK);
    ck_assert_int_eq(ad_backward(ad_sum(ad_square(t))), AD_OK);
    check_gradient(t, 2 * u[0].value, 2 * u[1].value, 2 * u[2].value);
    check_gradient(h, 4 * u[0].value, 4 * u[1].value, 4 * u[2].value);
    ck_assert_int_eq(ad_real_backward(tape, u[2]), AD_OK);
    check_gradient(t, 2 * u[0].value, 2 * u[1].value, 2 * u[2].value);
    check_gradient(h, 4 * u[0].value, 4 * u[1].value, 4 * u[2].value + 2);
    check_fine();
}

TEST(an_element_is_no_leaf_of_its_own)
{
    ad_real x[3];
    ck_assert_int_eq(ad_reals_of_tensor(w, 3, x), AD_OK);
    ck_assert_int_eq(ad_real_backward(tape, x[0]), AD_OK);
    check_gradient(w, 1, 0, 0);
    ck_assert(isnan(ad_real_gradient(tape, x[0])));
    check_error(AD_ERROR_STATE, "x[0] is no leaf");
}

/* ---- derivatives as ops ---- */

TEST(derivatives_of_statements_cannot_be_recorded)
{
    ad_tensor y = ad_sum(ad_mul(tensor(), w)), g;
    ck_assert_int_eq(ad_create_graph(y, (ad_tensor){0}, 1, &w, &g), AD_ERROR_STATE);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "test_real_bridge_sweeps.c"));
    check_error(AD_ERROR_STATE, "y depends on x through statements over ad_real, from "
                                "reals_of_tensor at");
    ck_assert_int_eq(ad_create_graph(y, (ad_tensor){0}, 1, &h, &g), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "through statements");
    ck_assert_int_eq(ad_backward(y), AD_OK);
    check_gradient(w, 3 * 2 * data[0] * data[0], 3 * 2 * data[1] * data[1],
                   3 * 2 * data[2] * data[2]);
}

TEST(derivatives_beside_statements_are_recorded)
{
    double other = 3;
    ad_tensor t = tensor(), v = ad_leaf(tape, AD_F64, 0, NULL, &other), g[2];
    ad_tensor y = ad_sum(ad_mul(t, ad_square(v))), in[2] = {v, t};
    ck_assert_int_eq(ad_create_graph(y, (ad_tensor){0}, 2, in, g), AD_OK);
    ck_assert_double_eq(ad_item(g[0]), 2 * 3 * (u[0].value + u[1].value + u[2].value));
    /* What was recorded is swept, through the statements too. */
    ck_assert_int_eq(ad_backward(g[0]), AD_OK);
    check_gradient(w, 6 * 4 * data[0], 6 * 4 * data[1], 6 * 4 * data[2]);
    /* A later bridge from x is none that y depends on. */
    ad_real late[3];
    ck_assert_int_eq(ad_reals_of_tensor(ad_broadcast_to(v, SHAPE(3), 1), 3, late), AD_OK);
    ck_assert_int_eq(ad_create_graph(y, (ad_tensor){0}, 2, in, g), AD_OK);
    check_fine();
}

/* ---- values that are given up ---- */

TEST(a_sweep_that_releases_gives_up_the_tensors_on_both_sides)
{
    ad_tensor t = tensor(), y = ad_sum(ad_square(t));
    ad_tensor aside = ad_exp(w);
    ad_real s;
    ad_set(&s, ad_real_mul(u[0], u[1]));
    ck_assert_int_eq(ad_backward_release(y), AD_OK);
    check_gradient(w, 8 * u[0].value * data[0], 8 * u[1].value * data[1], 8 * u[2].value * data[2]);
    ck_assert_int_eq(ad_size(t), -1);
    check_error(AD_ERROR_HANDLE, "was released by the sweep at");
    ck_assert_int_eq(ad_size(h), -1);
    check_error(AD_ERROR_HANDLE, "was released by the sweep at");
    ck_assert_int_eq(ad_size(aside), 3);
    ck_assert_int_eq(ad_backward(y), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "a sweep that releases has passed");
    /* Statements are there still, but what they come from is not. */
    ck_assert_int_eq(ad_real_backward(tape, s), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "real_backward: a sweep that releases has passed square at");
    ad_real z;
    ad_set(&z, ad_real_square(a));
    ck_assert_int_eq(ad_real_backward(tape, z), AD_OK);
    ck_assert_double_eq_tol(
        ad_real_gradient(tape, a),
        4 + 2 * (pow(u[0].value, 2) + pow(u[1].value, 2) + pow(u[2].value, 2)) / 2, 1e-12);
}

TEST(what_a_sweep_does_not_come_to_through_statements_is_not_released)
{
    ad_real x[3], z = ad_real_of(0);
    ad_tensor other = ad_exp(w);
    ck_assert_int_eq(ad_reals_of_tensor(other, 3, x), AD_OK);
    for (int i = 0; i < 3; i++)
        ad_set(&z, ad_real_add(z, x[i]));
    ad_tensor y = ad_sum(tensor());
    ck_assert_int_eq(ad_backward_release(y), AD_OK);
    ck_assert_int_eq(ad_size(other), 3);
    ck_assert_int_eq(ad_real_backward(tape, z), AD_OK);
    check_gradient(w, 4 * data[0] + exp(data[0]), 4 * data[1] + exp(data[1]),
                   4 * data[2] + exp(data[2]));
    check_fine();
}

TEST(a_sweep_refuses_what_was_freed_behind_statements)
{
    ad_tensor e = ad_exp(w);
    ad_real x[3], z;
    double jacobian[1];
    ck_assert_int_eq(ad_reals_of_tensor(ad_neg(e), 3, x), AD_OK);
    ad_set(&z, ad_real_add(x[0], a));
    ad_tensor t = ad_tensor_of_reals(tape, 0, NULL, &z);
    ck_assert_int_eq(ad_reals_of_tensor(t, 1, &z), AD_OK);
    ck_assert_int_eq(ad_backward_release(ad_sum(e)), AD_OK);
    ck_assert_int_eq(ad_backward(t), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "backward: a sweep that releases has passed exp at");
    ck_assert_int_eq(ad_real_backward(tape, z), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "real_backward: a sweep that releases has passed exp at");
    ck_assert_int_eq(ad_real_jacobian(tape, 1, &z, 1, &a, jacobian), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "real_jacobian: a sweep that releases has passed exp at");
    check_gradient(w, exp(data[0]), exp(data[1]), exp(data[2]));
}

TEST(frames_release_tensors_and_leave_reals)
{
    ad_frame frame = ad_frame_begin(tape);
    ad_real x[3], z;
    ad_tensor e = ad_exp(w), n = ad_neg(e);
    ck_assert_int_eq(ad_reals_of_tensor(n, 3, x), AD_OK);
    ad_tensor t = ad_tensor_of_reals(tape, 1, SHAPE(3), x),
              p = ad_tensor_of_reals(tape, 1, SHAPE(3), u);
    ad_tensor y = ad_sum(ad_mul(ad_mul(t, p), p));
    ck_assert_int_eq(ad_frame_end(frame, &y, 1), AD_OK);
    ck_assert_int_eq(ad_size(t), -1);
    check_error(AD_ERROR_HANDLE, "was released at the end of its frame");
    ad_set(&z, ad_real_mul(x[1], u[1]));
    ck_assert_int_eq(ad_real_backward(tape, z), AD_OK);
    const double e1 = exp(data[1]), u1 = u[1].value, slope = -e1 * u1 - e1 * 4 * data[1];
    check_gradient(w, 0, slope, 0);
    ck_assert_int_eq(ad_release(h), AD_OK);
    ck_assert_int_eq(ad_backward(y), AD_OK);
    double g[3];
    ck_assert_int_eq(ad_gradient(w, g, 3), AD_OK);
    ck_assert_double_eq_tol(g[1], slope - e1 * u1 * u1 - 2 * e1 * u1 * 4 * data[1], 1e-12);
    check_fine();
}

/* ---- marks ---- */

TEST(a_rewind_drops_bridges_and_what_they_cost)
{
    ad_tensor y = ad_sum(ad_square(w));
    const ad_mark mark = ad_tape_mark(tape);
    ad_stats before, after;
    double jacobian[3];
    ad_tape_stats(tape, &before);
    for (int round = 0; round < 3; round++) {
        ad_real x[3], s;
        ad_tensor t = tensor();
        ck_assert_int_eq(ad_reals_of_tensor(ad_exp(t), 3, x), AD_OK);
        ad_set(&s, ad_real_add(x[0], x[round]));
        ck_assert_int_eq(ad_real_backward(tape, s), AD_OK);
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
        ad_tape_stats(tape, &after);
        ck_assert_uint_eq(after.live_bytes, before.live_bytes);
        ck_assert_uint_eq(after.records, before.records);
        ad_real z;
        ad_set(&z, ad_real_add(x[0], a));
        check_error(AD_ERROR_HANDLE, "dropped by a reset or a rewind");
        ck_assert_int_eq(ad_size(ad_tensor_of_reals(tape, 0, NULL, &s)), -1);
        check_error(AD_ERROR_HANDLE, "x[0] is no value of this tape");
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    }
    /* Sweeps of tensors have no adjoints of scalars any more, and Jacobians several rows. */
    ck_assert_int_eq(ad_tape_reset_peak(tape), AD_OK);
    ad_tape_stats(tape, &before);
    ck_assert_int_eq(ad_backward(y), AD_OK);
    ad_tape_stats(tape, &after);
    ck_assert_uint_le(after.peak_bytes - before.peak_bytes, 2 * 64);
    ck_assert_int_eq(ad_real_jacobian(tape, 3, u, 1, &a, jacobian), AD_OK);
    ck_assert_double_eq(jacobian[2], data[2] * data[2]);
    check_fine();
}

TEST(a_tensor_may_have_elements_from_before_and_after_a_rewind)
{
    const ad_mark mark = ad_tape_mark(tape);
    ad_real x[5] = {u[0], ad_real_of(1), u[2]}, late;
    ad_set(&late, ad_real_mul(a, a));
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    ad_set(&x[1], ad_real_mul(a, 3));
    x[3] = x[1];
    x[4] = a;
    ck_assert_uint_ne(x[1].tag, a.tag);
    ck_assert_int_eq(ad_backward(ad_sum(ad_tensor_of_reals(tape, 1, SHAPE(5), x))), AD_OK);
    check_gradient(w, 4 * data[0], 0, 4 * data[2]);
    ck_assert_double_eq(ad_real_gradient(tape, a), data[0] * data[0] + data[2] * data[2] + 7);
    x[2] = late; /* its index is x[1]'s */
    ad_tensor_of_reals(tape, 1, SHAPE(5), x);
    check_error(AD_ERROR_HANDLE, "x[2] is no value of this tape");
    x[2].tag = x[1].tag;
    x[2].index = u[2].index; /* an older index under a newer tag, then one that is not yet there */
    ad_tensor_of_reals(tape, 1, SHAPE(5), x);
    check_error(AD_ERROR_HANDLE, "x[2] is no value of this tape");
    x[2].index = x[1].index + 1;
    ad_tensor_of_reals(tape, 1, SHAPE(5), x);
    check_error(AD_ERROR_HANDLE, "x[2] is no value of this tape");
}

TEST(jacobians_are_of_several_rows_again_after_a_rewind)
{
    double jacobian[4];
    ad_stats before, after[2];
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    a = ad_real_leaf(tape, 2);
    ad_tensor t = ad_tensor_of_reals(tape, 0, NULL, &a);
    const ad_mark mark = ad_tape_mark(tape);
    ad_tape_stats(tape, &before);
    for (int round = 0; round < 2; round++) {
        ck_assert_int_eq(ad_reals_of_tensor(t, 1, u), AD_OK);
        if (round == 1)
            ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
        ad_real y[4] = {a, a, a, a};
        for (int i = 0; i < 100; i++)
            ad_set(&y[i % 4], ad_real_mul(y[i % 4], 1.01));
        ck_assert_int_eq(ad_tape_reset_peak(tape), AD_OK);
        ad_tape_stats(tape, &before);
        ck_assert_int_eq(ad_real_jacobian(tape, 4, y, 1, &a, jacobian), AD_OK);
        ad_tape_stats(tape, &after[round]);
        after[round].peak_bytes -= before.peak_bytes;
    }
    ck_assert_uint_ge(after[1].peak_bytes, 3 * after[0].peak_bytes);
    check_fine();
}

TEST(a_reset_leaves_nothing)
{
    tensor();
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ad_tensor x = ad_leaf(tape, AD_F64, 1, SHAPE(3), data);
    ck_assert_int_eq(ad_reals_of_tensor(x, 3, u), AD_OK);
    ck_assert_uint_eq(u[0].index, 1);
    ck_assert_int_eq(ad_backward(ad_prod(tensor())), AD_OK);
    check_gradient(x, data[1] * data[2], data[0] * data[2], data[0] * data[1]);
    check_fine();
}

/* ---- changed arrays ---- */

TEST(a_leaf_changed_behind_statements_is_noticed)
{
    double mutable[3] = {1, 2, 3}, apart[3] = {1, 1, 1}, jacobian[1];
    ad_tensor x = ad_leaf(tape, AD_F64, 1, SHAPE(3), mutable);
    ad_tensor other = ad_leaf(tape, AD_F64, 1, SHAPE(3), apart);
    ad_real v[3], z[3], s, r;
    ck_assert_int_eq(ad_reals_of_tensor(ad_square(x), 3, v), AD_OK);
    ck_assert_int_eq(ad_reals_of_tensor(ad_square(other), 3, z), AD_OK);
    ad_set(&s, ad_real_add(v[1], a));
    ad_set(&r, ad_real_add(z[1], a));
    ad_tensor t = ad_tensor_of_reals(tape, 0, NULL, &s), q = ad_tensor_of_reals(tape, 0, NULL, &r);
    ck_assert_int_eq(ad_reals_of_tensor(t, 1, &s), AD_OK);
    mutable[1] = 5;
    ck_assert(ad_leaf_changed(x));
    ck_assert_int_eq(ad_backward(t), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "changed after square at");
    ck_assert_int_eq(ad_real_backward(tape, s), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "real_backward: the leaf");
    ck_assert_int_eq(ad_real_jacobian(tape, 1, &s, 1, &a, jacobian), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "real_jacobian: the leaf");
    ck_assert_int_eq(ad_backward_release(t), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "backward_release: the leaf");
    /* What does not depend on it is swept all the same. */
    ck_assert_int_eq(ad_backward(q), AD_OK);
    ck_assert_int_eq(ad_real_backward(tape, r), AD_OK);
    check_gradient(other, 0, 4, 0);
    ck_assert_double_eq(ad_real_gradient(tape, a), 2);
    mutable[1] = 2;
    ck_assert_int_eq(ad_real_backward(tape, s), AD_OK);
    check_gradient(x, 0, 4, 0);
    check_fine();
}

TEST(the_elements_themselves_are_copies)
{
    double mutable[3] = {1, 2, 3};
    ad_tensor x = ad_leaf(tape, AD_F64, 1, SHAPE(3), mutable);
    ad_real v[3], s;
    ck_assert_int_eq(ad_reals_of_tensor(x, 3, v), AD_OK);
    ad_set(&s, ad_real_mul(v[0], v[1]));
    mutable[0] = 7; /* no pullback reads it */
    ck_assert_int_eq(ad_real_backward(tape, s), AD_OK);
    check_gradient(x, 2, 1, 0);
    check_fine();
}

RUN_TESTS(setup, teardown)
