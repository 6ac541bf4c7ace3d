/* test_custom_account.c: ops of the user's own in a profile: calls, times and bytes are on the line
 * of ad_custom; what their `graph` records is on its own lines; sums add up.
 *
 * The clock gives the number of its reading.
 */
#include "observe_support.h"
#include "run_cases.h"

#include <check.h>
#include <string.h>

enum { N = 16, BYTES = N * sizeof(double), OWN = 4096 };

static const int64_t shape[1] = {N};
static double data[N];
static ad_tape tape;
static ad_tensor x;

static void setup(void)
{
    for (int i = 0; i < N; i++)
        data[i] = (i * 5 % N - 7.5) / 20;
    tape = observe_tape();
}

static void teardown(void)
{
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

static ad_status forward(ad_custom_call *c, void *payload)
{
    (void)payload;
    memset(c->own, 1, c->own_bytes);
    for (int64_t i = 0; i < c->in[0].size; i++) {
        const double a = ((const double *)c->in[0].data)[i];
        ((double *)c->out[0].data)[i] = a * a;
        ((double *)c->out[1].data)[i] = 2 * a;
    }
    return AD_OK;
}

static ad_status pullback(ad_custom_call *c, void *payload)
{
    (void)payload;
    const double *u = c->out_adjoint[0].data, *v = c->out_adjoint[1].data;
    for (int64_t i = 0; i < c->in[0].size; i++)
        ((double *)c->in_adjoint[0].data)[i] +=
            (u ? 2 * ((const double *)c->in[0].data)[i] * u[i] : 0) + (v ? 2 * v[i] : 0);
    return AD_OK;
}

__attribute__((noinline)) static ad_tensor do_scale(ad_tensor h)
{
    return ad_scale(h, 2);
}

__attribute__((noinline)) static ad_tensor do_mul(ad_tensor a, ad_tensor b)
{
    return ad_mul(a, b);
}

static ad_status graph(ad_custom_graph_call *c, void *payload)
{
    (void)payload;
    c->in_adjoint[0] = do_mul(c->out_adjoint[0], do_scale(c->in[0]));
    return AD_OK;
}

static const ad_custom_rule rule = {.name = "square_and_twice",
                                    .forward = forward,
                                    .pullback = pullback,
                                    .graph = graph,
                                    .saves = AD_SAVES_OPERANDS,
                                    .own_bytes = OWN};

__attribute__((noinline)) static ad_status custom(ad_tensor in, ad_tensor *out)
{
    const ad_custom_array results[2] = {{.dtype = AD_F64, .rank = 1, .shape = {N}},
                                        {.dtype = AD_F64, .rank = 1, .shape = {N}}};
    ad_custom_rule of = rule;
    of.results = results;
    return ad_custom(tape, &of, NULL, 1, &in, 2, out);
}

__attribute__((noinline)) static ad_tensor do_exp(ad_tensor h)
{
    return ad_exp(h);
}

__attribute__((noinline)) static ad_tensor do_sum(ad_tensor h)
{
    return ad_sum(h);
}

__attribute__((noinline)) static ad_status sweep(ad_tensor y)
{
    return ad_backward(y);
}

TEST(calls_times_and_bytes_are_on_the_line_of_the_call)
{
    ad_tensor y[2];
    observe_begin(UINT64_MAX);
    x = ad_leaf(tape, AD_F64, 1, shape, data);
    const ad_tensor h = do_exp(x);
    const uint64_t before = observe_ticks;
    ck_assert_int_eq(custom(h, y), AD_OK);
    ck_assert_uint_eq(observe_ticks - before, 2);
    const ad_tensor loss = do_sum(y[0]);
    const struct tape_ledger *l = observe_ledger();
    const struct tape_row *c = observe_row(l, "square_and_twice"), *e = observe_row(l, "exp");
    ck_assert_uint_eq(c->calls, 1);
    ck_assert_uint_eq(c->forward_ticks, 1);
    ck_assert_uint_eq(c->forward_moved, 3 * BYTES + OWN);
    ck_assert_uint_eq(c->value_bytes, 2 * BYTES + OWN);
    ck_assert_uint_eq(c->kept_bytes, OWN);
    ck_assert_uint_eq(e->kept_bytes, BYTES);
    ck_assert_ptr_eq(tape_ledger_row(l, e->kept_by - 1), e); /* its own pullback reads it first */
    ck_assert_uint_eq(e->kept_others, 1);
    ck_assert_uint_gt(c->record_bytes, 0);
    observe_check_sums(l);
    observe_check_live(l, tape);
    for (unsigned k = 1; k <= 2; k++) {
        ck_assert_int_eq(sweep(loss), AD_OK);
        l = observe_ledger();
        ck_assert_uint_eq(c->backward_calls, k);
        ck_assert_uint_eq(c->backward_ticks, k);
        /* The operand, its adjoint, and that of one of the results. */
        ck_assert_uint_eq(c->backward_moved, k * 3 * BYTES);
        ck_assert_uint_eq(c->adjoint_bytes, k * BYTES);
        observe_check_sums(l);
        observe_check_live(l, tape);
    }
    observe_check_pairs();
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    l = observe_ledger();
    ck_assert_uint_eq(l->live_bytes, 0);
    tape_observe_end();
}

TEST(what_is_not_recorded_keeps_no_bytes_of_its_own)
{
    ad_tensor y[2];
    observe_begin(UINT64_MAX);
    x = ad_constant(tape, AD_F64, 1, shape, data);
    ck_assert_int_eq(custom(x, y), AD_OK);
    const struct tape_ledger *l = observe_ledger();
    const struct tape_row *c = observe_row(l, "square_and_twice");
    ck_assert_uint_eq(c->value_bytes, 2 * BYTES + OWN);
    ck_assert_uint_ge(c->live_bytes, 2 * BYTES);
    ck_assert_uint_lt(c->live_bytes, OWN);
    ck_assert_uint_eq(c->kept_bytes, 0);
    observe_check_sums(l);
    observe_check_live(l, tape);
    tape_observe_end();
}

TEST(a_recorded_derivative_is_on_the_lines_of_graph)
{
    const ad_tensor ones = {0, 0, 0, 0};
    ad_tensor y[2], g;
    observe_begin(UINT64_MAX);
    x = ad_leaf(tape, AD_F64, 1, shape, data);
    ck_assert_int_eq(custom(x, y), AD_OK);
    const ad_tensor loss = do_sum(y[0]);
    ck_assert_int_eq(ad_create_graph(loss, ones, 1, &x, &g), AD_OK);
    const struct tape_ledger *l = observe_ledger();
    ck_assert_uint_eq(observe_row(l, "square_and_twice")->backward_calls, 0);
    ck_assert_uint_eq(observe_row(l, "scale")->calls, 1);
    ck_assert_uint_eq(observe_row(l, "scale")->value_bytes, BYTES);
    ck_assert_uint_eq(observe_row(l, "mul")->value_bytes, BYTES);
    ck_assert_uint_eq(observe_row(l, "mul")->forward_ticks, 0); /* the time is the call's */
    ck_assert_uint_gt(observe_row(l, "create_graph")->forward_ticks, 0);
    observe_check_sums(l);
    observe_check_live(l, tape);
    ck_assert_int_eq(sweep(do_sum(g)), AD_OK);
    ck_assert_uint_eq(observe_row(observe_ledger(), "scale")->backward_calls, 1);
    observe_check_sums(l);
    tape_observe_end();
}

static ad_status failing(ad_custom_call *c, void *payload)
{
    (void)c;
    (void)payload;
    return AD_ERROR_VALUE;
}

TEST(a_call_that_fails_keeps_the_sums)
{
    ad_tensor y[2];
    ad_custom_rule wrong = rule;
    observe_begin(UINT64_MAX);
    x = ad_leaf(tape, AD_F64, 1, shape, data);
    wrong.forward = failing;
    ck_assert_int_eq(ad_custom(tape, &wrong, NULL, 1, &x, 2, y), AD_ERROR_VALUE);
    ad_tape_clear_error(tape);
    wrong = rule;
    wrong.shape = failing;
    ck_assert_int_eq(ad_custom(tape, &wrong, NULL, 1, &x, 2, y), AD_ERROR_VALUE);
    ad_tape_clear_error(tape);
    observe_check_sums(observe_ledger());
    observe_check_live(observe_ledger(), tape);
    wrong = rule;
    wrong.pullback = failing;
    ck_assert_int_eq(ad_custom(tape, &wrong, NULL, 1, &x, 2, y), AD_OK);
    ck_assert_int_eq(sweep(do_sum(y[1])), AD_ERROR_VALUE);
    ad_tape_clear_error(tape);
    observe_check_sums(observe_ledger());
    observe_check_live(observe_ledger(), tape);
    tape_observe_end();
}

/* ---- memory outside the tape ---- */

enum { HELD = 100000 };

/* What the account has for it while the sweep goes on. */
static uint64_t held_at_exp;

static ad_status exp_passed(const ad_custom_array *adjoint, void *payload)
{
    (void)adjoint;
    (void)payload;
    held_at_exp = observe_row(observe_ledger(), "holds")->live_bytes;
    return AD_OK;
}

static ad_status holds_forward(ad_custom_call *c, void *payload)
{
    (void)payload;
    for (int64_t i = 0; i < c->out[0].size; i++)
        ((double *)c->out[0].data)[i] = 0;
    return AD_OK;
}

static ad_status holds_pullback(ad_custom_call *c, void *payload)
{
    c->held_bytes = *(size_t *)payload;
    return AD_OK;
}

static const ad_custom_rule holds = {.name = "holds",
                                     .forward = holds_forward,
                                     .pullback = holds_pullback,
                                     .saves = AD_SWEPT_ALWAYS | AD_SWEPT_COMPLETE};

__attribute__((noinline)) static ad_status hold(ad_tensor of, size_t *bytes)
{
    ad_tensor y;
    return ad_custom(tape, &holds, bytes, 1, &of, 1, &y);
}

TEST(memory_that_an_op_holds_outside_the_tape_is_an_adjoint_of_its_line_until_the_sweep_ends)
{
    size_t bytes = HELD;
    ad_stats stats;
    observe_begin(UINT64_MAX);
    x = ad_leaf(tape, AD_F64, 1, shape, data);
    const ad_tensor late = ad_leaf(tape, AD_F64, 1, shape, data);
    ck_assert_int_eq(hold(late, &bytes), AD_OK);
    const ad_tensor e = do_exp(x);
    ck_assert_int_eq(ad_on_adjoint(e, exp_passed, NULL), AD_OK);
    const ad_tensor loss = do_sum(ad_add(e, late)); /* late is complete behind it */
    const uint64_t before = observe_row(observe_ledger(), "holds")->live_bytes;
    for (unsigned k = 1; k <= 3; k++) {
        if (k == 3)
            ad_on_adjoint(e, NULL, NULL);
        ck_assert_int_eq(k < 3 ? sweep(loss) : ad_backward_release(loss), AD_OK);
        const struct tape_ledger *l = observe_ledger();
        ck_assert_uint_eq(held_at_exp, before + HELD);
        ck_assert_uint_eq(observe_row(l, "holds")->adjoint_bytes, k * HELD);
        if (k < 3)
            ck_assert_uint_eq(observe_row(l, "holds")->live_bytes, before);
        ck_assert_uint_eq(tape_row_at_peak(l, observe_row(l, "holds")), before + HELD);
        ck_assert_uint_ge(l->peak_bytes, HELD);
        observe_check_sums(l);
        observe_check_live(l, tape);
    }
    ad_tape_stats(tape, &stats);
    ck_assert_uint_ge(stats.peak_bytes, HELD);
    tape_observe_end();
}

TEST(what_an_op_holds_is_within_the_budget_and_let_go_when_a_sweep_fails)
{
    size_t bytes = (size_t)1 << 40;
    ad_tensor y;
    observe_begin(UINT64_MAX);
    x = ad_leaf(tape, AD_F64, 1, shape, data);
    ck_assert_int_eq(hold(x, &bytes), AD_OK);
    const ad_tensor loss = do_sum(do_exp(x));
    ck_assert_int_eq(sweep(loss), AD_ERROR_MEMORY);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "holds: "));
    ad_tape_clear_error(tape);
    observe_check_live(observe_ledger(), tape);
    bytes = HELD;
    ad_custom_rule wrong = holds; /* recorded first, so it comes behind the other */
    wrong.pullback = failing;
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    x = ad_leaf(tape, AD_F64, 1, shape, data);
    ck_assert_int_eq(ad_custom(tape, &wrong, NULL, 1, &x, 1, &y), AD_OK);
    ck_assert_int_eq(hold(x, &bytes), AD_OK);
    ck_assert_int_eq(sweep(do_sum(do_exp(x))), AD_ERROR_VALUE);
    ad_tape_clear_error(tape);
    const struct tape_ledger *l = observe_ledger();
    ck_assert_uint_eq(observe_row(l, "holds")->adjoint_bytes, HELD);
    observe_check_sums(l);
    observe_check_live(l, tape);
    tape_observe_end();
}

RUN_TESTS(setup, teardown)
