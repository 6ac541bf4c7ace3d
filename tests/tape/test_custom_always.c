/* test_custom_always.c: ops that something outside the tape depends on: each sweep that passes them
 * runs them, in their turn, and what would run them at other times is refused.
 */
#include "run_cases.h"

#include <tapescope/ad.h>
#include <tapescope/ad_real.h>
#include <tapescope/ad_tensor_program.h>

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tape_fixture.h"

static double data[2] = {3, 4};
static ad_tensor leaf;
static char trail[64]; /* names of the pullbacks that ran, in order */

static void setup(void)
{
    tape_begin(&(ad_tape_options){.budget_bytes = 64 << 20, .reserve_bytes = 64 << 20});
    leaf = ad_leaf(tape, AD_F64, 1, (int64_t[]){2}, data);
    trail[0] = 0;
}

static ad_status forward(ad_custom_call *c, void *payload)
{
    (void)payload;
    for (int64_t i = 0; i < c->out[0].size; i++)
        ((double *)c->out[0].data)[i] = c->n_in > 0 ? ((const double *)c->in[0].data)[i] : 7;
    return AD_OK;
}

/* Adds 10 to the adjoint of its operand, as from outside, and what came to its result. */
static ad_status pullback(ad_custom_call *c, void *payload)
{
    const double *from = c->out_adjoint[0].data;
    strcat(trail, payload);
    strcat(trail, from ? "+" : "-");
    if (c->n_in > 0 && c->in_adjoint[0].data)
        for (int64_t i = 0; i < c->in[0].size; i++)
            ((double *)c->in_adjoint[0].data)[i] += 10 + (from ? from[i] : 0);
    return AD_OK;
}

static const ad_custom_rule rule = {
    .name = "told", .forward = forward, .pullback = pullback, .saves = AD_SWEPT_ALWAYS};

static ad_tensor told(int n, ad_tensor x, char *name)
{
    ad_tensor y;
    check_ok(ad_custom(tape, &rule, name, n, &x, 1, &y));
    return y;
}

static void check_gradient_is(double a, double b)
{
    double g[2];
    check_ok(ad_gradient(leaf, g, 2));
    ck_assert_msg(g[0] == a && g[1] == b, "%g %g", g[0], g[1]);
}

TEST(a_sweep_runs_it_in_its_turn_whether_an_adjoint_has_come_or_not)
{
    told(1, leaf, "a");
    const ad_tensor loss = ad_sum(told(1, leaf, "b"));
    told(1, ad_scale(leaf, 2), "c");
    check_ok(ad_backward(loss));
    ck_assert_str_eq(trail, "c-b+a-");
    check_gradient_is(41, 41);
    ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
    check_ok(ad_backward(loss));
    ck_assert_str_eq(trail, "c-b+a-c-b+a-");
    check_gradient_is(41, 41);
}

TEST(it_is_recorded_without_operands_and_of_constants_and_its_result_needs_a_gradient)
{
    const ad_tensor none = told(0, (ad_tensor){0, 0, 0, 0}, "n");
    ck_assert_int_eq(ad_rank(none), 0);
    ck_assert_int_eq(ad_dtype_of(none), AD_F64);
    ck_assert(ad_item(none) == 7);
    const ad_tensor constant = told(1, ad_scalar_f64(tape, 5), "k");
    check_ok(ad_backward(ad_mul(none, constant)));
    ck_assert_str_eq(trail, "k+n+");
    ck_assert_int_eq(ad_tape_no_grad_begin(tape), AD_OK);
    told(1, leaf, "not recorded");
    ck_assert_int_eq(ad_tape_no_grad_end(tape), AD_OK);
    check_ok(ad_backward(constant));
    ck_assert_str_eq(trail, "k+n+k+n-");
}

TEST(frames_leave_it_and_a_sweep_that_releases_passes_it_once)
{
    const ad_frame frame = ad_frame_begin(tape);
    told(1, ad_exp(leaf), "f");
    ck_assert_int_eq(ad_frame_end(frame, NULL, 0), AD_OK);
    const ad_tensor loss = ad_sum(leaf);
    check_ok(ad_backward(loss));
    ck_assert_str_eq(trail, "f-");
    check_ok(ad_backward_release(loss));
    ck_assert_str_eq(trail, "f-f-");
    check_call_refused(ad_backward(ad_sum(leaf)), AD_ERROR_STATE,
                       "a sweep that releases has passed told at test_custom_always.c");
}

/* ---- when adjoints are complete ---- */

/* What it finds in its operand's adjoint, which it doubles. */
static ad_status doubled(ad_custom_call *c, void *payload)
{
    char found[16];
    double *x = c->in_adjoint[0].data;
    (void)snprintf(found, sizeof found, "%s%g ", (const char *)payload, x[0]);
    strcat(trail, found);
    for (int64_t i = 0; i < c->in_adjoint[0].size; i++)
        x[i] *= 2;
    return AD_OK;
}

static const ad_custom_rule complete_rule = {.name = "complete",
                                             .forward = forward,
                                             .pullback = doubled,
                                             .saves = AD_SWEPT_ALWAYS | AD_SWEPT_COMPLETE};

static void completed(ad_tensor x, char *name)
{
    ad_tensor y;
    check_ok(ad_custom(tape, &complete_rule, name, 1, &x, 1, &y));
}

static ad_tensor leaf_like(double *of)
{
    return ad_leaf(tape, AD_F64, 1, (int64_t[]){2}, of);
}

TEST(it_runs_as_soon_as_the_oldest_reader_has_been_passed_wherever_it_was_recorded)
{
    double other[2] = {5, 6};
    const ad_tensor late = leaf_like(other);
    completed(leaf, "leaf");
    completed(late, "late");
    const ad_tensor h = told(1, ad_scale(leaf, 3), "h");
    told(1, ad_add(ad_mul(late, late), h), "g");
    const ad_tensor loss = ad_sum(ad_add(ad_add(h, late), leaf));
    check_ok(ad_backward(loss));
    /* `late` is added to for the last time between the two that are told of; leaf behind both. */
    ck_assert_str_eq(trail, "g-late101 h+leaf64 ");
    check_gradient_is(128, 128);
    /* Behind its readers it is the same. */
    check_ok(ad_tape_reset(tape));
    trail[0] = 0;
    leaf = leaf_like(data);
    const ad_tensor y = ad_sum(ad_add(told(1, ad_scale(leaf, 3), "h"), leaf));
    completed(leaf, "leaf");
    check_ok(ad_backward(y));
    ck_assert_str_eq(trail, "h+leaf34 ");
    check_gradient_is(68, 68);
}

TEST(they_run_in_the_reversed_order_of_their_calls_and_without_a_reader_too)
{
    double other[3][2] = {{0, 0}, {0, 0}, {0, 0}};
    ad_tensor x[3];
    for (int k = 0; k < 3; k++)
        x[k] = leaf_like(other[k]);
    completed(x[0], "a");
    completed(x[1], "b");
    completed(x[2], "c");
    const ad_tensor first = told(1, x[2], "1"), loss = ad_sum(ad_add(first, told(1, x[0], "2")));
    check_ok(ad_backward(loss));
    ck_assert_str_eq(trail, "2+1+c11 b0 a11 ");
    trail[0] = 0;
    check_ok(ad_backward(loss)); /* with what has been left */
    ck_assert_str_eq(trail, "2+1+c33 b0 a33 ");
}

static void squared(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                    void *payload)
{
    (void)on;
    (void)n_in;
    (void)n_out;
    (void)payload;
    *out = ad_square(in[0]);
}

TEST(what_a_checkpoint_reads_is_complete_behind_it)
{
    ad_tensor y;
    completed(leaf, "leaf");
    ad_checkpoint(tape, squared, NULL, 1, &leaf, 1, &y);
    const ad_tensor loss = ad_sum(told(1, y, "y"));
    check_ok(ad_backward(loss));
    ck_assert_str_eq(trail, "y+leaf66 ");
    check_gradient_is(132, 176);
}

TEST(it_is_of_leaves_alone_and_swept_always)
{
    ad_tensor y, x = ad_exp(leaf);
    ad_custom_rule wrong = complete_rule;
    check_call_refused(ad_custom(tape, &complete_rule, "x", 1, &x, 1, &y), AD_ERROR_ARGUMENT,
                       "complete: in[0] is no leaf, whose gradient it waits for");
    check_call_refused(ad_custom(tape, &complete_rule, "x", 0, NULL, 1, &y), AD_ERROR_ARGUMENT,
                       "complete: 0 operands and 1 results");
    wrong.saves = AD_SWEPT_COMPLETE;
    check_call_refused(ad_custom(tape, &wrong, "x", 1, &leaf, 1, &y), AD_ERROR_ARGUMENT,
                       "complete: AD_SWEPT_COMPLETE in `saves` goes with AD_SWEPT_ALWAYS");
}

static void checkpointed(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                         void *payload)
{
    ad_custom(on, &rule, payload, n_in, in, n_out, out);
}

TEST(what_would_run_it_at_another_time_is_refused)
{
    ad_tensor y, d;
    ad_checkpoint(tape, checkpointed, "x", 1, &leaf, 1, &y);
    check_error(AD_ERROR_STATE, "told: not while a checkpoint's function runs");

    const ad_tensor loss = ad_sum(ad_square(told(1, leaf, "x")));
    check_call_refused(ad_create_graph(loss, (ad_tensor){0, 0, 0, 0}, 1, &leaf, &d), AD_ERROR_STATE,
                       "create_graph: told is swept always");
    /* Also where y does not depend on it, since its pullback would bring an adjoint. */
    check_call_refused(ad_create_graph(ad_sum(leaf), (ad_tensor){0, 0, 0, 0}, 1, &leaf, &d),
                       AD_ERROR_STATE, "create_graph: told is swept always");
    ck_assert_str_eq(trail, "");
}

TEST(between_numbers_it_is_swept_and_a_jacobian_of_numbers_alone_is_refused)
{
    ad_real x[2], y;
    double g[2], jacobian[2];
    check_ok(ad_tape_record_begin(tape));
    x[0] = ad_real_leaf(tape, 3);
    x[1] = ad_real_leaf(tape, 4);
    told(1, leaf, "t");
    ad_set(&y, ad_real_mul(x[0], x[1]));
    check_ok(ad_real_backward(tape, y));
    ck_assert_str_eq(trail, "t-");
    check_ok(ad_real_gradients(tape, 2, x, g));
    ck_assert(g[0] == 4 && g[1] == 3);
    check_gradient_is(10, 10);
    check_call_refused(ad_real_jacobian(tape, 1, &y, 2, x, jacobian), AD_ERROR_STATE,
                       "real_jacobian: told is swept always");
    /* Nor does a sweep of numbers look at what one that releases has left. */
    check_ok(ad_backward_release(ad_sum(leaf)));
    check_call_refused(ad_real_backward(tape, y), AD_ERROR_STATE,
                       "a sweep that releases has passed told already; it was called at "
                       "test_custom_always.c");
    check_ok(ad_tape_record_end(tape));
}

TEST(no_program_of_tensors_has_it)
{
    check_ok(ad_tensor_program_begin(tape));
    ad_sum(told(1, leaf, "p"));
    ad_tensor_program_end(tape);
    check_error(AD_ERROR_STATE, "is swept always: something outside the tape depends on it");
}

/* ---- adjoints that nobody has added to ---- */

static int n_fresh;

static ad_status overwriting(ad_custom_call *c, void *payload)
{
    const double *from = c->out_adjoint[0].data;
    (void)payload;
    for (int i = 0; i < c->n_in; i++) {
        double *to = c->in_adjoint[i].data;
        n_fresh += c->in_fresh[i];
        for (int64_t k = 0; to && k < c->in[i].size; k++)
            to[k] = (c->in_fresh[i] ? 0 : to[k]) + 3 * from[k];
    }
    return AD_OK;
}

TEST(an_adjoint_that_is_fresh_may_be_overwritten)
{
    static const ad_custom_rule fresh = {
        .name = "fresh", .forward = forward, .pullback = overwriting, .saves = AD_WRITES_FRESH};
    ad_tensor y, z;
    n_fresh = 0;
    check_ok(ad_custom(tape, &fresh, NULL, 1, &leaf, 1, &y));
    check_ok(ad_backward(ad_sum(y)));
    check_gradient_is(3, 3);
    ck_assert_int_eq(n_fresh, 1);
    check_ok(ad_backward(ad_sum(y))); /* a gradient is there */
    check_gradient_is(6, 6);
    ck_assert_int_eq(n_fresh, 1);
    ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
    /* One tensor twice: it is fresh once. A constant never is. */
    const ad_tensor in[3] = {leaf, leaf, ad_detach(leaf)};
    check_ok(ad_custom(tape, &fresh, NULL, 3, in, 1, &z));
    check_ok(ad_backward(ad_sum(z)));
    check_gradient_is(6, 6);
    ck_assert_int_eq(n_fresh, 2);
}

TEST(a_place_is_told_as_in_messages)
{
    char text[160];
    const void *here = __builtin_extract_return_addr(__builtin_return_address(0));
    ad_custom_where(here, 0, text, sizeof text);
    ck_assert_str_ne(text, "");
    ad_custom_where(here, 0, NULL, 0);
    ad_custom_where(here, 0, text, 1);
    ck_assert_str_eq(text, "");
}

RUN_TESTS(setup, teardown_fine)
