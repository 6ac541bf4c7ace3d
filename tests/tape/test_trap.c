/* test_trap.c: numbers of scalar statements that are not finite are named where they arose. */
#include <tapescope/ad_real.h>

#include "ad_internal.h"
#include "observe_support.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

/* What calls return is dropped: the error that stays in the tape is looked at. */
#pragma GCC diagnostic ignored "-Wunused-result"

static ad_real x[2];
static unsigned line; /* of the last statement in HERE() */
#define HERE(...) (line = __LINE__, __VA_ARGS__)

static void setup(void)
{
    tape_begin(NULL);
    ck_assert_int_eq(ad_tape_trap(tape, AD_TRAP_ALL), AD_OK);
    ck_assert_int_eq(ad_real_leaves(tape, 2, (double[]){0.5, 2}, x), AD_OK);
}

/* The error begins with these words, names the line of HERE(), and is cleared. */
static void check_found(const char *words)
{
    char place[64];
    snprintf(place, sizeof place, "test_trap.c:%u in ", line);
    const char *message = ad_tape_message(tape);
    ck_assert_msg(ad_tape_status(tape) == AD_ERROR_NONFINITE, "%s", message);
    ck_assert_msg(strncmp(message, words, strlen(words)) == 0, "%s", message);
    ck_assert_msg(strstr(message, place) != NULL, "%s, not %s", message, place);
    ad_tape_clear_error(tape);
}

TEST(a_value_is_named_at_its_statement_which_is_not_recorded)
{
    static const struct {
        double a;
        const char *words;
    } cases[] = {{0, "statement: value -inf at "}, {-1, "statement: value nan at "}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ad_real a = ad_real_leaf(tape, cases[i].a), y, z;
        HERE(ad_set(&y, ad_real_log(a)));
        ck_assert_uint_eq(y.index, 0);
        ad_set(&z, ad_real_mul(y, x[0])); /* what follows is not the first */
        ck_assert_int_eq(ad_real_backward(tape, z), AD_ERROR_NONFINITE);
        check_found(cases[i].words);
    }
    ad_real y;
    HERE(ad_set(&y, ad_real_mul(x[0], INFINITY)));
    check_found("statement: value inf at ");
}

TEST(a_partial_derivative_is_named_by_whatever_looks_next)
{
    ad_real a = ad_real_leaf(tape, 0), y, z;
    HERE(ad_set(&y, ad_real_add(x[0], ad_real_sqrt(a))));
    ad_set(&z, ad_real_mul(y, y));
    ck_assert_uint_eq(z.index, 0); /* it was refused */
    check_found("statement: partial derivative inf by operand 2 at ");
    HERE(ad_set(&y, ad_real_sqrt(a))); /* the last one, and a sweep */
    ck_assert_int_eq(ad_real_backward(tape, y), AD_ERROR_NONFINITE);
    check_found("statement: partial derivative inf by operand 1 at ");
    HERE(ad_set(&y, ad_real_hypot(a, a))); /* a Jacobian */
    double j[1];
    ck_assert_int_eq(ad_real_jacobian(tape, 1, &y, 1, &a, j), AD_ERROR_NONFINITE);
    check_found("statement: partial derivative nan by operand 1 at ");
    HERE(ad_set(&y, ad_real_sqrt(a))); /* the message alone */
    check_found("statement: partial derivative inf by operand 1 at ");
    HERE(ad_set(&y, ad_real_sqrt(a))); /* a tensor op */
    ad_tensor t = ad_scalar_f64(tape, 1);
    t = ad_exp(t);
    check_found("statement: partial derivative inf by operand 1 at ");
    ad_set(&y, ad_real_sqrt(a)); /* or nothing: a reset clears it, a rewind and a new leaf do not */
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ck_assert_int_eq(ad_tape_status(tape), AD_OK);
}

TEST(an_adjoint_is_named_where_finite_factors_overflowed)
{
    ad_real y, z;
    HERE(ad_set(&y, ad_real_mul(x[1], 1e200)));
    ad_set(&z, ad_real_add(ad_real_mul(y, 1e-180), x[0]));
    ck_assert_int_eq(ad_real_backward_seeds(tape, 1, &z, (double[]){1e300}), AD_ERROR_NONFINITE);
    check_found("statement: adjoint inf of operand 1, whose partial derivative is 1e+200, from "
                "adjoint 1e+120, backward, at ");
    /* Half a sweep is in no gradient. */
    (void)!(ad_real_gradient(tape, x[0]) > 0);
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_STATE);
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_real_backward(tape, z), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x[1]), 1e200 * 1e-180);
    /* A sum that overflows, in one of several lanes. */
    ad_real w[3], a;
    double j[3];
    HERE(ad_set(&a, ad_real_mul(x[0], 1.5e308)));
    ad_set(&w[0], a);
    ad_set(&w[1], ad_real_sub(ad_real_mul(a, 1.75), 1));
    ad_set(&w[2], ad_real_add(a, x[0]));
    ck_assert_int_eq(ad_real_jacobian(tape, 3, w, 1, x, j), AD_ERROR_NONFINITE);
    check_found("statement: adjoint inf of operand 1, whose partial derivative is 1.5e+308");
}

TEST(a_seed_is_named_by_its_index)
{
    ad_real y[2];
    ad_set(&y[0], ad_real_mul(x[0], x[1]));
    ad_set(&y[1], ad_real_mul(x[0], x[0]));
    HERE(ad_real_backward_seeds(tape, 2, y, (double[]){1, NAN}));
    check_found("real_backward: value nan of seed[1] at ");
}

TEST(a_leaf_is_named_with_its_index)
{
    ad_real bad[3];
    HERE(ad_real_leaves(tape, 3, (double[]){0, 1, -NAN}, bad));
    ck_assert_uint_eq(bad[0].index, 0);
    check_found("real_leaves: value nan of x[2] at ");
}

TEST(nan_alone_lets_infinities_pass_and_the_other_way_round)
{
    ad_real a = ad_real_leaf(tape, 0), y;
    ck_assert_int_eq(ad_tape_trap(tape, AD_TRAP_NAN), AD_OK);
    ad_set(&y, ad_real_log(a));
    ad_set(&y, ad_real_mul(y, x[0]));
    ck_assert_int_eq(ad_tape_status(tape), AD_OK);
    ck_assert_double_eq(y.value, -INFINITY);
    HERE(ad_set(&y, ad_real_sub(y, y)));
    check_found("statement: value nan at ");
    ck_assert_int_eq(ad_tape_trap(tape, AD_TRAP_INF), AD_OK);
    ad_set(&y, ad_real_log(ad_real_neg(x[0])));
    ck_assert_int_eq(ad_tape_status(tape), AD_OK);
    HERE(ad_set(&y, ad_real_log(a)));
    check_found("statement: value -inf at ");
}

TEST(it_is_switched_at_any_time_and_statements_from_before_are_swept_one_by_one)
{
    ad_real y, z;
    ck_assert_int_eq(ad_tape_trap(tape, AD_TRAP_OFF), AD_OK);
    ad_real a = ad_real_leaf(tape, 0);
    ad_set(&y, ad_real_add(x[0], 1));
    HERE(ad_set(&z, ad_real_sqrt(a)));
    ad_set(&y, ad_real_add(y, z));
    ck_assert_int_eq(ad_tape_status(tape), AD_OK);
    ck_assert_int_eq(ad_tape_trap(tape, AD_TRAP_ALL), AD_OK);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_ERROR_NONFINITE);
    check_found("statement: adjoint inf of operand 1, whose partial derivative is inf, from "
                "adjoint 1, backward, at ");
    ck_assert_int_eq(ad_tape_trap(tape, AD_TRAP_OFF), AD_OK);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, a), INFINITY);
    /* Which is there when the next sweep begins. */
    ck_assert_int_eq(ad_tape_trap(tape, AD_TRAP_ALL), AD_OK);
    ad_set(&y, ad_real_add(x[0], 1));
    ck_assert_int_eq(ad_real_backward(tape, y), AD_ERROR_NONFINITE);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tape),
                                 "real_backward: gradient inf of element [0],"
                                 " from an earlier sweep, of the leaf at "));
    ad_tape_clear_error(tape);
}

TEST(a_partial_derivative_passed_over_by_sweeps_is_found_when_it_is_recorded)
{
    ad_real a = ad_real_leaf(tape, 0), y, z;
    ck_assert_int_eq(ad_tape_trap(tape, AD_TRAP_OFF), AD_OK);
    ad_set(&y, ad_real_sqrt(a));
    ad_set(&z, ad_real_add(ad_real_mul(y, 0), x[0]));
    ck_assert_int_eq(ad_tape_trap(tape, AD_TRAP_ALL), AD_OK);
    ck_assert_int_eq(ad_real_backward(tape, z), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, a), 0);
    HERE(ad_set(&y, ad_real_sqrt(a)));
    check_found("statement: partial derivative inf by operand 1 at ");
}

TEST(it_stays_over_resets_rewinds_and_frames_and_works_under_no_grad)
{
    ad_real a, y;
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    a = ad_real_leaf(tape, 0);
    HERE(ad_set(&y, ad_real_log(a)));
    check_found("statement: value -inf at ");
    const ad_mark mark = ad_tape_mark(tape);
    ad_set(&y, ad_real_add(a, 1));
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    const ad_frame frame = ad_frame_begin(tape);
    HERE(ad_set(&y, ad_real_log(a)));
    check_found("statement: value -inf at ");
    ck_assert_int_eq(ad_frame_end(frame, NULL, 0), AD_OK);
    ck_assert_int_eq(ad_tape_no_grad_begin(tape), AD_OK);
    HERE(ad_set(&y, ad_real_log(a)));
    check_found("statement: value -inf at ");
    ck_assert_int_eq(ad_tape_no_grad_end(tape), AD_OK);
}

TEST(what_is_no_ad_trap_is_refused_and_changes_nothing)
{
    ad_real y;
    HERE(ad_tape_trap(tape, 4));
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "tape_trap: 4 is no ad_trap"));
    ad_tape_clear_error(tape);
    HERE(ad_set(&y, ad_real_mul(x[0], NAN)));
    check_found("statement: value nan at ");
    ck_assert_int_eq(ad_tape_trap((ad_tape){0, 0}, AD_TRAP_ALL), AD_ERROR_HANDLE);
    ad_tape_clear_error((ad_tape){0, 0});
}

/* A computation with operands in every number, over more than a block. */
static void compute(double *g)
{
    ad_real y = x[0], z;
    for (int i = 0; i < 400; i++) {
        ad_set(&z, ad_real_sin(y));
        ad_set(&y, ad_real_add(ad_real_mul(z, x[1]), ad_real_mul(x[0], y)));
        ad_set(&y, ad_real_mul(y, 0.5));
    }
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_int_eq(ad_real_gradients(tape, 2, x, g), AD_OK);
    ck_assert_int_eq(ad_real_jacobian(tape, 1, &y, 2, x, g + 2), AD_OK);
}

TEST(gradients_and_counts_are_the_same_bit_by_bit)
{
    double g[2][4];
    ad_stats stats[2];
    for (int on = 0; on < 2; on++) {
        ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
        ck_assert_int_eq(ad_tape_trap(tape, on ? AD_TRAP_ALL : AD_TRAP_OFF), AD_OK);
        ck_assert_int_eq(ad_real_leaves(tape, 2, (double[]){0.5, 2}, x), AD_OK);
        compute(g[on]);
        ck_assert_int_eq(ad_tape_stats(tape, &stats[on]), AD_OK);
    }
    ck_assert_mem_eq(g[0], g[1], sizeof g[0]);
    ck_assert_uint_eq(stats[0].statements, 1200);
    ck_assert_uint_eq(stats[1].statements, 1200);
    ck_assert_uint_eq(stats[0].statement_bytes, stats[1].statement_bytes);
    /* A record of the tape for each statement, and the leaves'. */
    ck_assert_uint_eq(stats[1].records, 1201);
    ck_assert_uint_lt(stats[0].records, 20);
}

TEST(a_profile_counts_every_statement_and_its_sums_are_exact)
{
    double g[4];
    observe_begin(UINT64_MAX);
    for (int round = 0; round < 2; round++) {
        ad_tape_reset(tape);
        ck_assert_int_eq(ad_real_leaves(tape, 2, (double[]){0.5, 2}, x), AD_OK);
        compute(g);
        const ad_mark mark = ad_tape_mark(tape);
        ad_real y;
        for (int i = 0; i < 1000; i++) /* over the end of a block */
            ad_set(&y, ad_real_mul(x[0], x[1]));
        const struct tape_ledger *ledger = observe_ledger();
        observe_check_sums(ledger);
        observe_check_live(ledger, tape);
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
        observe_check_sums(observe_ledger());
        observe_check_live(observe_ledger(), tape);
    }
    uint64_t calls = 0;
    const struct tape_ledger *ledger = observe_ledger();
    for (uint32_t i = 0; i < ledger->n_rows; i++)
        if (strcmp(tape_ledger_row(ledger, i)->op, "statement") == 0)
            calls += tape_ledger_row(ledger, i)->calls;
    ck_assert_uint_eq(calls, 2 * (1200 + 1000));
    tape_observe_end();
}

RUN_TESTS(setup, teardown)
