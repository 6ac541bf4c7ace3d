/* test_on_adjoint.c: functions that see adjoints: when they are called and with what, what they
 * change, and where their time is charged.
 */
#include "observe_support.h"
#include "run_cases.h"

#include <tapescope/ad.h>
#include <tapescope/ad_real.h>

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

enum { N = 4 };

static const int64_t shape[1] = {N};
static const double data[N] = {1, -2, 3, 0.5};
static ad_tensor x;

/* What a function saw, and what it does. */
struct seen {
    int calls;
    double adjoint[N];
    double scale, clip; /* 0: as it is */
    ad_status status;
    bool uses_tape;
};

static ad_status look(const ad_custom_array *a, void *payload)
{
    struct seen *s = payload;
    double *of = a->data;
    ck_assert_int_eq(a->size, N);
    ck_assert_int_eq(a->rank, 1);
    ck_assert_int_eq(a->shape[0], N);
    ck_assert_int_eq(a->dtype, AD_F64);
    memcpy(s->adjoint, of, sizeof s->adjoint);
    s->calls++;
    for (int i = 0; i < N; i++) {
        of[i] *= s->scale != 0 ? s->scale : 1;
        of[i] = s->clip != 0 ? fmax(-s->clip, fmin(s->clip, of[i])) : of[i];
    }
    if (s->uses_tape) {
        ck_assert_int_eq(ad_backward(x), AD_ERROR_STATE);
        ad_tape_clear_error((ad_tape){0});
    }
    return s->status;
}

static void setup(void)
{
    tape_begin(&(ad_tape_options){.budget_bytes = 64 << 20, .reserve_bytes = 64 << 20});
    x = ad_leaf(tape, AD_F64, 1, shape, data);
}

static void gradient(double *g)
{
    ck_assert_msg(ad_gradient(x, g, N) == AD_OK, "%s", ad_tape_message(tape));
}

TEST(an_intermediate_adjoint_is_seen_when_it_is_complete_and_what_is_made_of_it_goes_on)
{
    double g[N], kept[N];
    struct seen s = {.scale = 10};
    const ad_tensor h = ad_scale(x, 2);
    ck_assert_int_eq(ad_on_adjoint(h, look, &s), AD_OK);
    ck_assert_int_eq(ad_retain_gradient(h), AD_OK);
    const ad_tensor y = ad_add(ad_sum(ad_square(h)), ad_sum(ad_scale(h, 3)));
    ck_assert_int_eq(ad_backward(y), AD_OK);
    ck_assert_int_eq(s.calls, 1);
    gradient(g);
    ck_assert_int_eq(ad_gradient(h, kept, N), AD_OK);
    for (int i = 0; i < N; i++) {
        ck_assert_double_eq(s.adjoint[i], 4 * data[i] + 3);
        ck_assert_double_eq(kept[i], 10 * s.adjoint[i]);
        ck_assert_double_eq(g[i], 20 * s.adjoint[i]);
    }
    ck_assert_int_eq(ad_backward(ad_sum(x)), AD_OK); /* does not come to it */
    ck_assert_int_eq(s.calls, 1);
    ck_assert_int_eq(ad_on_adjoint(h, NULL, NULL), AD_OK);
    ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
    ck_assert_int_eq(ad_backward(y), AD_OK);
    ck_assert_int_eq(s.calls, 1);
    gradient(g);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq(g[i], 2 * s.adjoint[i]);
}

TEST(a_leaf_s_function_sees_what_this_sweep_brings_and_earlier_gradients_stay)
{
    double g[N], buffer[N] = {100, 100, 100, 100};
    struct seen s = {.clip = 2}, other = {0};
    const ad_tensor y = ad_sum(ad_square(x));
    ck_assert_int_eq(ad_backward(y), AD_OK); /* before there was a function */
    ck_assert_int_eq(ad_on_adjoint(x, look, &other), AD_OK);
    ck_assert_int_eq(ad_on_adjoint(x, look, &s), AD_OK); /* in place of it */
    const ad_stats before = stats();
    for (int k = 1; k <= 2; k++) {
        ck_assert_int_eq(ad_backward(y), AD_OK);
        gradient(g);
        ck_assert_int_eq(s.calls, k);
        for (int i = 0; i < N; i++) {
            ck_assert_double_eq(s.adjoint[i], 2 * data[i]);
            ck_assert_double_eq(g[i], 2 * data[i] + k * fmax(-2, fmin(2, 2 * data[i])));
        }
    }
    ck_assert_int_eq(other.calls, 0);
    ck_assert_uint_eq(stats().live_bytes, before.live_bytes);
    const ad_tensor z = ad_leaf_copy(tape, AD_F64, 1, shape, data);
    ck_assert_int_eq(ad_backward(ad_sum(z)), AD_OK); /* brings x nothing, and takes nothing */
    ck_assert_int_eq(s.calls, 2);
    double same[N];
    gradient(same);
    ck_assert_mem_eq(same, g, sizeof g);
    ck_assert_int_eq(ad_gradient_buffer(x, buffer, N), AD_OK);
    ck_assert_int_eq(ad_backward(y), AD_OK);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq(buffer[i], 100 + fmax(-2, fmin(2, 2 * data[i])));
    ck_assert_int_eq(ad_backward_release(y), AD_OK);
    ck_assert_int_eq(s.calls, 4);
}

TEST(it_stays_through_frames_and_goes_with_its_tensor)
{
    struct seen s = {0}, other = {0};
    const ad_mark mark = ad_tape_mark(tape);
    const ad_frame frame = ad_frame_begin(tape);
    const ad_tensor h = ad_exp(x);
    ad_tensor y = ad_sum(ad_square(h));
    ck_assert_int_eq(ad_on_adjoint(h, look, &s), AD_OK);
    ck_assert_int_eq(ad_on_adjoint(x, look, &other), AD_OK);
    ck_assert_int_eq(ad_frame_end(frame, &y, 1), AD_OK);
    ck_assert_int_eq(ad_backward(y), AD_OK);
    ck_assert_int_eq(s.calls, 1);
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    y = ad_sum(ad_sin(x)); /* where h was, there is another value */
    ck_assert_int_eq(ad_backward(y), AD_OK);
    ck_assert_int_eq(s.calls, 1);
    ck_assert_int_eq(other.calls, 2); /* x is older than the mark */
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    x = ad_leaf(tape, AD_F64, 1, shape, data);
    ck_assert_int_eq(ad_backward(ad_sum(ad_exp(x))), AD_OK);
    ck_assert_int_eq(s.calls + other.calls, 3);
}

static void within(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                   void *payload)
{
    (void)on;
    (void)n_in;
    (void)n_out;
    const ad_tensor h = ad_sin(in[0]);
    ad_on_adjoint(h, look, payload);
    out[0] = ad_square(h);
}

TEST(within_a_checkpoint_it_is_given_each_time_anew)
{
    double g[N];
    struct seen s = {.scale = 3};
    ad_tensor y, in = x;
    for (int k = 0; k < 3; k++)
        ck_assert_int_eq(ad_checkpoint(tape, within, &s, 1, &in, 1, &y), AD_OK);
    const ad_tensor loss = ad_sum(y);
    for (int k = 1; k <= 3; k++) {
        ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
        ck_assert_int_eq(ad_backward(loss), AD_OK);
        ck_assert_int_eq(s.calls, k);
        gradient(g);
        for (int i = 0; i < N; i++)
            ck_assert_double_eq_tol(g[i], 3 * sin(2 * data[i]), 1e-14);
    }
}

static ad_tensor checked(ad_tape on, const ad_tensor *in, int n, void *payload)
{
    (void)on;
    (void)n;
    const ad_tensor h = ad_sin(in[0]);
    if (payload)
        ad_on_adjoint(h, look, payload);
    return ad_sum(ad_square(h));
}

TEST(a_gradient_check_calls_those_of_its_function_alone)
{
    double own[N];
    struct seen outer = {.scale = 3}, inner = {.scale = 3};
    ad_gradient_report report;
    memcpy(own, data, sizeof own);
    x = ad_leaf(tape, AD_F64, 1, shape, own);
    ck_assert_int_eq(ad_on_adjoint(x, look, &outer), AD_OK);
    ck_assert_int_eq(ad_check_gradient(tape, checked, 1, &x, 1e-6, NULL, &report), AD_OK);
    ck_assert_int_eq(outer.calls, 0);
    ck_assert_int_eq(ad_check_gradient(tape, checked, 1, &x, 1e-6, &inner, &report),
                     AD_ERROR_GRADIENT); /* it makes another gradient of it */
    ad_tape_clear_error((ad_tape){0});
    ck_assert_int_gt(inner.calls, 0);
}

TEST(sweeps_from_numbers_call_it_and_jacobians_do_not)
{
    double jacobian[N], g[N];
    ad_real in[N], out[N];
    struct seen s = {.scale = 5};
    ck_assert_int_eq(ad_tape_record_begin(tape), AD_OK);
    ck_assert_int_eq(ad_real_leaves(tape, N, data, in), AD_OK);
    const ad_tensor h = ad_square(ad_tensor_of_reals(tape, 1, shape, in));
    ck_assert_int_eq(ad_on_adjoint(h, look, &s), AD_OK);
    ck_assert_int_eq(ad_reals_of_tensor(ad_scale(h, 2), N, out), AD_OK);
    const ad_real y = ad_real_sum(N, out);
    ck_assert_int_eq(ad_real_jacobian(tape, 1, &y, N, in, jacobian), AD_OK);
    ck_assert_int_eq(s.calls, 0);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_int_eq(ad_real_gradients(tape, N, in, g), AD_OK);
    ck_assert_int_eq(s.calls, 1);
    for (int i = 0; i < N; i++) {
        ck_assert_double_eq(jacobian[i], 4 * data[i]);
        ck_assert_double_eq(g[i], 5 * 4 * data[i]);
    }
    ck_assert_int_eq(ad_tape_record_end(tape), AD_OK);
}

static ad_status spoil(const ad_custom_array *a, void *payload)
{
    (void)payload;
    ((double *)a->data)[2] = NAN;
    return AD_OK;
}

TEST(what_goes_wrong_is_told_by_its_line)
{
    const ad_tensor ones = {0, 0, 0, 0}, h = ad_exp(x), y = ad_sum(h);
    double g[N];
    ad_tensor d;
    struct seen s = {.status = AD_ERROR_VALUE};
    ck_assert_int_eq(ad_on_adjoint(h, look, &s), AD_OK);
    ck_assert_int_eq(ad_backward(y), AD_ERROR_VALUE);
    check_error_in(tape, AD_ERROR_VALUE,
                   "on_adjoint: the callback of f64 [4] failed: an operand's value is refused",
                   "test_on_adjoint.c");
    ck_assert_int_eq(ad_gradient(x, g, N), AD_ERROR_STATE);
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_create_graph(y, ones, 1, &x, &d), AD_ERROR_STATE);
    check_error_in(tape, AD_ERROR_STATE, "create_graph: on the way an adjoint has a callback",
                   "test_on_adjoint.c");
    ck_assert_int_eq(ad_create_graph(ad_sum(ad_square(x)), ones, 1, &x, &d), AD_OK); /* beside */
    s = (struct seen){.uses_tape = true};
    ck_assert_int_eq(ad_backward(y), AD_OK);
    ck_assert_int_eq(ad_tape_trap(tape, AD_TRAP_NAN), AD_OK);
    ck_assert_int_eq(ad_on_adjoint(h, spoil, NULL), AD_OK);
    ck_assert_int_eq(ad_backward(y), AD_ERROR_NONFINITE);
    check_error_in(tape, AD_ERROR_NONFINITE, "on_adjoint: adjoint nan of element [2]",
                   "test_on_adjoint.c");
    ck_assert_int_eq(ad_on_adjoint(ad_detach(x), look, &s), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "on_adjoint: a constant has no adjoint");
    ck_assert_int_eq(ad_on_adjoint(ones, look, &s), AD_ERROR_HANDLE);
    check_error_of((ad_tape){0}, AD_ERROR_HANDLE, "on_adjoint: the tensor is a handle of zeros");
}

__attribute__((noinline)) static ad_status listen_to(ad_tensor h, struct seen *s)
{
    return ad_on_adjoint(h, look, s);
}

TEST(its_time_and_what_it_puts_aside_are_on_its_line)
{
    struct seen s = {0};
    teardown_fine();
    tape = observe_tape();
    observe_begin(UINT64_MAX);
    x = ad_leaf(tape, AD_F64, 1, shape, data);
    const ad_tensor h = ad_exp(x), y = ad_sum(h);
    ck_assert_int_eq(ad_backward(y), AD_OK);
    ck_assert_int_eq(listen_to(x, &s), AD_OK);
    ck_assert_int_eq(ad_backward(y), AD_OK);
    const struct tape_ledger *l = observe_ledger();
    const struct tape_row *row = observe_row(l, "on_adjoint");
    ck_assert_uint_eq(row->calls, 1);
    ck_assert_uint_eq(row->backward_calls, 1);
    ck_assert_uint_eq(row->backward_ticks, 1);
    ck_assert_uint_eq(row->adjoint_bytes, sizeof data);
    ck_assert_uint_eq(row->live_bytes, 0);
    observe_check_sums(l);
    observe_check_live(l, tape);
    tape_observe_end();
}

RUN_TESTS(setup, teardown_fine)
