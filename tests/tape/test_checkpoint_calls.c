/* test_checkpoint_calls.c: what the function of a checkpoint may do, and what it may not.
 *
 * A function does one thing, which its payload says.
 */
#include "run_cases.h"

#include <tapescope/ad.h>
#include <tapescope/ad_real.h>

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

enum { N = 6 };

static const int64_t shape[1] = {N};
static double data[N], other[N], want[N], got[N];
static ad_tensor x;

static void setup(void)
{
    for (int i = 0; i < N; i++) {
        data[i] = (i * 5 % N + 0.5) / 4;
        other[i] = (i * 7 % N - 2.25) / 3;
    }
    static const ad_tape_options small = {.budget_bytes = 64 << 20, .reserve_bytes = 64 << 20};
    tape_begin(&small);
    x = ad_leaf(tape, AD_F64, 1, shape, data);
}

/* What a function computes from in[0], by a way that `what` names. */
struct way {
    const char *what;
    int call; /* number of the call, from 1 */
    int from; /* the call that begins to do otherwise */
    ad_tensor w;
    ad_mark mark;
    ad_frame frame;
    ad_tape tape;
    ad_tensor made; /* of the last call */
};

static ad_tensor exp_sin(ad_tensor h)
{
    return ad_mul(ad_exp(ad_scale(h, 0.5)), ad_sin(h));
}

static bool is(const struct way *w, const char *what)
{
    return strcmp(w->what, what) == 0;
}

static void allowed(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                    void *payload)
{
    struct way *w = payload;
    ad_tensor h = in[0];
    (void)n_in;
    (void)n_out;
    w->call++;
    if (is(w, "frames")) {
        ad_frame frame = ad_frame_begin(on);
        h = exp_sin(h);
        ck_assert_int_eq(ad_frame_end(frame, (ad_tensor[]){h, in[0]}, 2), AD_OK);
        ad_frame_begin(on); /* left open */
        out[0] = exp_sin(h);
        ck_assert_int_eq(ad_release(h), AD_OK);
        return;
    }
    if (is(w, "marks")) {
        ad_mark mark = ad_tape_mark(on);
        exp_sin(h);
        ck_assert_int_eq(ad_tape_rewind(on, mark), AD_OK);
        h = exp_sin(h);
        ad_tape_mark(on); /* left behind */
    } else if (is(w, "no_grad")) {
        ad_tape_no_grad_begin(on); /* left open */
        h = ad_mul(h, exp_sin(h));
        ad_tape_no_grad_end(on);
        h = ad_mul(in[0], h);
        ad_tape_no_grad_begin(on);
    } else if (is(w, "numbers")) {
        double value[N];
        ck_assert_int_eq(ad_value(w->w, value, N), AD_OK);
        h = ad_mul(h, ad_add(ad_constant(on, AD_F64, 1, shape, other),
                             ad_scalar_f64(on, value[2] + ad_item(ad_sum(w->w)))));
    } else if (is(w, "dropout")) {
        h = ad_dropout(exp_sin(h), 0.5, 77);
    } else if (is(w, "detached")) {
        h = ad_mul(ad_detach(w->w), ad_mul(h, ad_detach(h)));
    } else if (is(w, "another tape")) {
        double value[N];
        ad_tape apart;
        ck_assert_int_eq(ad_tape_create(&apart, NULL), AD_OK);
        ad_tensor z = ad_leaf(apart, AD_F64, 1, shape, other);
        ck_assert_int_eq(ad_backward(ad_sum(ad_square(z))), AD_OK);
        ck_assert_int_eq(ad_gradient(z, value, N), AD_OK);
        ck_assert_int_eq(ad_tape_destroy(apart), AD_OK);
        h = ad_scale(h, value[1]);
    } else if (is(w, "views")) {
        h = ad_reshape(ad_transpose(ad_reshape(exp_sin(h), (int64_t[]){2, 3}, 2)), shape, 1);
    }
    out[0] = h;
}

/* The gradient of the sum of squares of what the function makes of x and w. */
static void gradient_of(const char *what, bool checkpoint, bool release, double *gradient)
{
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    x = ad_leaf(tape, AD_F64, 1, shape, data);
    ad_tensor leaf = ad_leaf(tape, AD_F64, 1, shape, other);
    struct way w = {.what = what, .w = ad_scale(leaf, 1.25)};
    ad_tensor h = ad_tanh(x), y;
    if (checkpoint)
        ck_assert_msg(ad_checkpoint(tape, allowed, &w, 1, &h, 1, &y) == AD_OK, "%s",
                      ad_tape_message(tape));
    else
        allowed(tape, 1, &h, 1, &y, &w);
    while (!checkpoint && is(&w, "no_grad") && w.call-- > 0)
        ck_assert_int_eq(ad_tape_no_grad_end(tape), AD_OK);
    ad_tensor loss = ad_sum(ad_square(ad_mul(y, w.w)));
    const ad_status status = release ? ad_backward_release(loss) : ad_backward(loss);
    ck_assert_msg(status == AD_OK, "%s: %s", what, ad_tape_message(tape));
    ck_assert_int_eq(ad_gradient(x, gradient, N), AD_OK);
    ck_assert_int_eq(ad_gradient(leaf, gradient + N, N), AD_OK);
}

TEST(a_function_may_use_frames_marks_no_grad_numbers_and_other_tapes)
{
    static const char *const way[] = {"ops",     "frames",   "marks",        "no_grad", "numbers",
                                      "dropout", "detached", "another tape", "views"};
    for (size_t i = 0; i < sizeof way / sizeof *way; i++) {
        double plain[2 * N], kept[2 * N];
        gradient_of(way[i], false, false, plain);
        for (int release = 0; release < 2; release++) {
            gradient_of(way[i], true, release, kept);
            ck_assert_msg(memcmp(kept, plain, sizeof plain) == 0, "%s", way[i]);
        }
        ck_assert_double_ne(plain[0], 0);
    }
}

static void product(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                    void *payload)
{
    const struct way *w = payload;
    (void)on;
    (void)n_in;
    (void)n_out;
    out[0] = ad_mul(exp_sin(in[0]), w->w);
}

TEST(what_was_released_is_there_for_the_function_and_for_nobody_else)
{
    ad_tensor leaf = ad_leaf(tape, AD_F64, 1, shape, other), y;
    for (int kept = 0; kept < 2; kept++) {
        ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
        ad_frame frame = ad_frame_begin(tape);
        ad_tensor h = ad_tanh(x);
        struct way w = {.w = ad_exp(leaf)};
        ck_assert_int_eq(ad_checkpoint(tape, product, &w, 1, &h, 1, &y), AD_OK);
        ck_assert_int_eq(ad_frame_end(frame, kept ? (ad_tensor[]){y, h, w.w} : &y, kept ? 3 : 1),
                         AD_OK);
        ck_assert_int_eq(ad_backward(ad_sum(y)), AD_OK);
        if (!kept) {
            ck_assert_int_eq(ad_size(h), -1);
            check_error(AD_ERROR_HANDLE, "was released at the end of its frame");
            ck_assert_int_eq(ad_size(w.w), -1);
            check_error(AD_ERROR_HANDLE, "was released at the end of its frame");
        }
        ck_assert_int_eq(ad_gradient(x, kept ? want : got, N), AD_OK);
    }
    ck_assert_mem_eq(got, want, sizeof got);
    ck_assert_double_ne(got[1], 0);
}

TEST(gradients_that_are_kept_are_those_without_a_checkpoint)
{
    double buffer[2][N] = {{0}, {0}}, of_h[2][N], of_y[2][N];
    for (int checkpoint = 0; checkpoint < 2; checkpoint++) {
        ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
        x = ad_leaf(tape, AD_F64, 1, shape, data);
        struct way w = {.w = ad_leaf(tape, AD_F64, 1, shape, other)};
        ad_tensor h = ad_tanh(x), y;
        ck_assert_int_eq(ad_retain_gradient(h), AD_OK);
        ck_assert_int_eq(ad_gradient_buffer(w.w, buffer[checkpoint], N), AD_OK);
        if (checkpoint)
            ck_assert_int_eq(ad_checkpoint(tape, product, &w, 1, &h, 1, &y), AD_OK);
        else
            product(tape, 1, &h, 1, &y, &w);
        ck_assert_int_eq(ad_retain_gradient(y), AD_OK);
        ck_assert_int_eq(ad_backward(ad_sum(ad_square(y))), AD_OK);
        ck_assert_int_eq(ad_gradient(h, of_h[checkpoint], N), AD_OK);
        ck_assert_int_eq(ad_gradient(y, of_y[checkpoint], N), AD_OK);
    }
    ck_assert_mem_eq(buffer[1], buffer[0], sizeof buffer[0]);
    ck_assert_mem_eq(of_h[1], of_h[0], sizeof of_h[0]);
    ck_assert_mem_eq(of_y[1], of_y[0], sizeof of_y[0]);
    ck_assert_double_ne(buffer[0][2], 0);
}

/* y = 2 sum of what the function makes of the tensor of the scalars a. */
static ad_real through_scalars(bool checkpoint, struct way *w, ad_real *a)
{
    ad_tensor h, y;
    ck_assert_int_eq(ad_real_leaves(tape, N, data, a), AD_OK);
    h = ad_tensor_of_reals(tape, 1, shape, a);
    if (checkpoint)
        ck_assert_int_eq(ad_checkpoint(tape, product, w, 1, &h, 1, &y), AD_OK);
    else
        product(tape, 1, &h, 1, &y, w);
    ad_real s, out;
    ck_assert_int_eq(ad_reals_of_tensor(ad_sum(y), 1, &s), AD_OK);
    ad_set(&out, ad_real_mul(s, 2.0));
    return out;
}

TEST(sweeps_and_jacobians_of_scalars_go_through_a_checkpoint)
{
    double gradient[2][N], jacobian[2][N], of_w[2][N];
    for (int checkpoint = 0; checkpoint < 2; checkpoint++) {
        ad_real a[N];
        ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
        ck_assert_int_eq(ad_tape_record_begin(tape), AD_OK);
        struct way w = {.w = ad_leaf(tape, AD_F64, 1, shape, other)};
        ad_real y = through_scalars(checkpoint, &w, a);
        ck_assert_msg(ad_real_jacobian(tape, 1, &y, N, a, jacobian[checkpoint]) == AD_OK, "%s",
                      ad_tape_message(tape));
        ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
        ck_assert_int_eq(ad_real_gradients(tape, N, a, gradient[checkpoint]), AD_OK);
        ck_assert_int_eq(ad_gradient(w.w, of_w[checkpoint], N), AD_OK);
        ck_assert_int_eq(ad_tape_record_end(tape), AD_OK);
    }
    ck_assert_mem_eq(gradient[1], gradient[0], sizeof gradient[0]);
    ck_assert_mem_eq(jacobian[1], gradient[0], sizeof gradient[0]);
    ck_assert_mem_eq(of_w[1], of_w[0], sizeof of_w[0]);
    ck_assert_double_ne(gradient[0][3], 0);
}

static ad_tensor checked(ad_tape on, const ad_tensor *in, int n, void *payload)
{
    struct way *w = payload;
    ad_tensor y;
    ck_assert_int_eq(n, 2);
    w->w = in[1];
    ad_checkpoint(on, product, w, 1, in, 1, &y);
    return y;
}

TEST(a_gradient_check_looks_through_a_checkpoint)
{
    static double leaf[N];
    memcpy(leaf, other, sizeof leaf);
    const ad_tensor in[2] = {x, ad_leaf(tape, AD_F64, 1, shape, leaf)};
    struct way w = {.what = ""};
    ad_gradient_report report;
    ck_assert_msg(ad_check_gradient(tape, checked, 2, in, 1e-6, &w, &report) == AD_OK, "%s",
                  report.message);
    ck_assert_int_eq(report.compared, 2 * N);
}

/* ---- what is refused ---- */

static ad_tensor sum_of(ad_tape on, const ad_tensor *in, int n, void *payload)
{
    (void)on;
    (void)n;
    (void)payload;
    return ad_sum(in[0]);
}

static void refused(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                    void *payload)
{
    struct way *w = payload;
    double buffer[N];
    ad_saved saved;
    ad_real s[N];
    ad_tensor y = ad_sum(ad_square(in[0])), g;
    (void)n_in;
    (void)n_out;
    out[0] = y;
    if (++w->call < w->from)
        return;
    if (is(w, "leaf"))
        ad_leaf(on, AD_F64, 1, shape, other);
    else if (is(w, "backward"))
        (void)!ad_backward(y);
    else if (is(w, "backward_release"))
        (void)!ad_backward_release(y);
    else if (is(w, "create_graph"))
        (void)!ad_create_graph(y, (ad_tensor){0, 0, 0, 0}, 1, in, &g);
    else if (is(w, "check_gradient"))
        ad_check_gradient(on, sum_of, 1, &w->w, 1e-6, NULL, NULL);
    else if (is(w, "gradient"))
        (void)!ad_gradient(w->w, buffer, N);
    else if (is(w, "gradient_buffer"))
        ad_gradient_buffer(w->w, other, N);
    else if (is(w, "retain_gradient"))
        ad_retain_gradient(y);
    else if (is(w, "tape_zero_gradients"))
        ad_tape_zero_gradients(on);
    else if (is(w, "tape_saved_for_backward"))
        ad_tape_saved_for_backward(on, &saved);
    else if (is(w, "tape_reset"))
        ad_tape_reset(on);
    else if (is(w, "tape_destroy"))
        ad_tape_destroy(on);
    else if (is(w, "tape_rewind"))
        ad_tape_rewind(on, w->mark);
    else if (is(w, "frame_end"))
        ad_frame_end(w->frame, NULL, 0);
    else if (is(w, "release"))
        ad_release(in[0]);
    else if (is(w, "reals_of_tensor"))
        ad_reals_of_tensor(in[0], N, s);
    else if (is(w, "real_leaves"))
        ad_real_leaves(on, N, data, s);
    else if (is(w, "real_backward"))
        (void)!ad_real_backward(on, s[0] = (ad_real){0, 0, 0});
    else if (is(w, "tape_fork"))
        ad_tape_fork(on, 1, &w->tape);
    else if (is(w, "preaccumulate_begin"))
        ad_preaccumulate_begin(on);
}

static const char *const refusals[] = {"leaf",
                                       "backward",
                                       "backward_release",
                                       "create_graph",
                                       "check_gradient",
                                       "gradient",
                                       "gradient_buffer",
                                       "retain_gradient",
                                       "tape_zero_gradients",
                                       "tape_saved_for_backward",
                                       "tape_reset",
                                       "tape_destroy",
                                       "tape_rewind",
                                       "frame_end",
                                       "release",
                                       "reals_of_tensor",
                                       "real_leaves",
                                       "real_backward",
                                       "tape_fork",
                                       "preaccumulate_begin"};

/* from: the call of the function that does what is refused. */
static void check_refused(const char *what, int from)
{
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ck_assert_int_eq(ad_tape_record_begin(tape), AD_OK);
    x = ad_leaf(tape, AD_F64, 1, shape, data);
    struct way w = {.what = what, .from = from, .w = x, .mark = ad_tape_mark(tape)};
    w.frame = ad_frame_begin(tape);
    ad_tensor h = ad_tanh(x), y;
    const ad_stats before = stats();
    ad_status status = ad_checkpoint(tape, refused, &w, 1, &h, 1, &y);
    if (from > 1) {
        ck_assert_msg(status == AD_OK, "%s: %s", what, ad_tape_message(tape));
        const ad_stats recorded = stats();
        status = ad_backward(y);
        ck_assert_uint_eq(stats().live_bytes, recorded.live_bytes);
        ck_assert_uint_eq(stats().values, recorded.values);
    } else {
        ck_assert_uint_eq(y.value, 0);
        ck_assert_uint_eq(stats().live_bytes, before.live_bytes);
        ck_assert_uint_eq(stats().values, before.values);
    }
    ck_assert_msg(status == AD_ERROR_STATE, "%s: %s", what, ad_status_name(status));
    ck_assert_int_eq(w.call, from);
    ck_assert_msg(strstr(ad_tape_message(tape), "checkpoint's function") &&
                      strstr(ad_tape_message(tape), "test_checkpoint_calls.c:"),
                  "%s: %s", what, ad_tape_message(tape));
    ad_tape_clear_error(tape);
    /* The tape serves again. */
    double gradient[N];
    ck_assert_int_eq(ad_backward(ad_sum(ad_square(h))), AD_OK);
    ck_assert_int_eq(ad_gradient(x, gradient, N), AD_OK);
    ck_assert_int_eq(ad_frame_end(w.frame, NULL, 0), AD_OK);
    ck_assert_int_eq(ad_tape_rewind(tape, w.mark), AD_OK);
    ck_assert_int_eq(ad_tape_record_end(tape), AD_OK);
}

TEST_EACH(what_would_touch_older_values_or_sweep_is_refused_in_the_first_call,
          sizeof refusals / sizeof *refusals)
{
    check_refused(refusals[_i], 1);
}

TEST_EACH(what_would_touch_older_values_or_sweep_is_refused_in_a_sweep,
          sizeof refusals / sizeof *refusals)
{
    check_refused(refusals[_i], 2);
}

RUN_TESTS(setup, teardown_fine)
