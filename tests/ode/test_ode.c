/* test_ode.c: solutions of differential equations: values and gradients by y0, by operands and by
 * the times against closed forms, differences, and CVODES' own forward sensitivities; and who is
 * charged.
 */
#include "observe_support.h"
#include "run_cases.h"

#include <tapescope/ad_functional.h>
#include <tapescope/ad_ode.h>
#include <tapescope/ad_real.h>
#include <tapescope/ad_tensor_program.h>

#include <check.h>
#include <cvodes/cvodes.h>
#include <math.h>
#include <nvector/nvector_serial.h>
#include <stdlib.h>
#include <string.h>
#include <sunlinsol/sunlinsol_dense.h>
#include <sunmatrix/sunmatrix_dense.h>

#include "tape_fixture.h"

static void setup(void)
{
    tape_begin(&(ad_tape_options){.budget_bytes = 64 << 20, .reserve_bytes = 64 << 20});
}

static ad_tensor vector(int64_t n, const double *numbers)
{
    return ad_leaf_copy(tape, AD_F64, 1, &n, numbers);
}

static void gradient(ad_tensor of, double *g, int64_t n)
{
    ck_assert_msg(ad_gradient(of, g, n) == AD_OK, "%s", ad_tape_message(tape));
}

static void sweep(ad_tensor y)
{
    ck_assert_msg(ad_backward(y) == AD_OK, "%s", ad_tape_message(tape));
}

static void near(double got, double want, double relative)
{
    ck_assert_msg(fabs(got - want) <= relative * (fabs(want) + relative), "%.15g, not %.15g", got,
                  want);
}

static const ad_ode_options tight = {.relative = 1e-11, .absolute = 1e-13},
                            tight_stiff = {.relative = 1e-12, .absolute = 1e-14, .stiff = true};

/* ---- y' = -k y ---- */

static ad_tensor decay(ad_tape on, ad_tensor t, ad_tensor y, int n, const ad_tensor *x,
                       void *payload)
{
    (void)on;
    (void)t;
    (void)n;
    (void)payload;
    return ad_mul(ad_neg(x[0]), y);
}

enum { TIMES = 4, SIZE = 2 };

/* sum_ij w_ij y_i(t_j), y = y0 exp(-k (t - t0)). */
static void check_decay(const ad_ode_options *options, const double *t, double tolerance)
{
    static const double w[TIMES * SIZE] = {0.5, -1, 2, 1.5, -0.25, 3, 1, 0.75};
    double begin[SIZE] = {2, -0.5}, k[SIZE] = {0.7, 1.3};
    double y[TIMES * SIZE], gy[SIZE], gk[SIZE], gt[TIMES];
    double wy[SIZE] = {0}, wk[SIZE] = {0}, wt[TIMES] = {0};
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    const ad_tensor y0 = vector(SIZE, begin), rate = vector(SIZE, k), times = vector(TIMES, t);
    const ad_tensor out = ad_ode(tape, decay, NULL, y0, times, 1, &rate, options);
    ck_assert_msg(ad_value(out, y, TIMES * SIZE) == AD_OK, "%s", ad_tape_message(tape));
    const ad_tensor weight = ad_constant(tape, AD_F64, 2, (int64_t[]){TIMES, SIZE}, w);
    sweep(ad_sum(ad_mul(out, weight)));
    gradient(y0, gy, SIZE);
    gradient(rate, gk, SIZE);
    gradient(times, gt, TIMES);
    for (int j = 0; j < TIMES; j++)
        for (int i = 0; i < SIZE; i++) {
            const double e = exp(-k[i] * (t[j] - t[0])), of = w[j * SIZE + i];
            near(y[j * SIZE + i], begin[i] * e, tolerance);
            wy[i] += of * e;
            wk[i] -= of * begin[i] * e * (t[j] - t[0]);
            wt[j] -= of * begin[i] * e * k[i] * (j > 0);
            wt[0] += of * begin[i] * e * k[i] * (j > 0);
        }
    for (int i = 0; i < SIZE; i++) {
        near(gy[i], wy[i], tolerance);
        near(gk[i], wk[i], tolerance);
    }
    for (int j = 0; j < TIMES; j++)
        near(gt[j], wt[j], tolerance);
}

TEST(a_decay_has_the_gradients_of_its_closed_form)
{
    static const double ahead[TIMES] = {0.25, 0.75, 1, 3}, back[TIMES] = {1, 0.5, 0.25, -1};
    for (int interval = 0; interval <= 3; interval += 3) {
        ad_ode_options options = tight, stiff = tight_stiff;
        options.interval = stiff.interval = interval;
        check_decay(&options, ahead, 1e-8);
        check_decay(&options, back, 1e-8);
        check_decay(&stiff, ahead, 1e-7);
        check_decay(&stiff, back, 1e-7);
    }
    check_decay(NULL, ahead, 2e-5);
}

/* ---- two systems in plain C with their derivatives, for forward sensitivities ---- */

enum { MOST = 4, STATES = 32 };

/* f [n], df/dy [n,n], df/dp [n,n_p]. */
struct plain_system {
    int n, n_p;
    void (*f)(const double *y, const double *p, double *f, double *by_y, double *by_p);
    const double *y0, *p;
};

/* y, and dy/d(y0, p) column by column: an equation of its own. */
static int sensitivities(realtype t, N_Vector state, N_Vector to, void *payload)
{
    const struct plain_system *s = payload;
    const double *y = N_VGetArrayPointer(state), *column = y + s->n;
    double *d = N_VGetArrayPointer(to), by_y[MOST * MOST] = {0}, by_p[MOST * MOST] = {0};
    (void)t;
    s->f(y, s->p, d, by_y, by_p);
    for (int c = 0; c < s->n + s->n_p; c++, column += s->n)
        for (int i = 0; i < s->n; i++) {
            double sum = c < s->n ? 0 : by_p[i * s->n_p + c - s->n];
            for (int k = 0; k < s->n; k++)
                sum += by_y[i * s->n + k] * column[k];
            d[s->n + c * s->n + i] = sum;
        }
    return 0;
}

/* state at each of times[m] into out [m, n + n (n + n_p)]. */
static void reference(const struct plain_system *s, int m, const double *t, double *out)
{
    const int size = s->n + s->n * (s->n + s->n_p);
    SUNContext context;
    ck_assert_int_eq(SUNContext_Create(NULL, &context), 0);
    N_Vector state = N_VNew_Serial(size, context);
    double *x = N_VGetArrayPointer(state), reached;
    N_VConst(0, state);
    for (int i = 0; i < s->n; i++) {
        x[i] = s->y0[i];
        x[s->n + i * s->n + i] = 1;
    }
    memcpy(out, x, (size_t)size * sizeof *x);
    void *cvode = CVodeCreate(CV_BDF, context);
    SUNMatrix matrix = SUNDenseMatrix(size, size, context);
    SUNLinearSolver solver = SUNLinSol_Dense(state, matrix, context);
    ck_assert_int_eq(CVodeInit(cvode, sensitivities, t[0], state), 0);
    ck_assert_int_eq(CVodeSStolerances(cvode, 1e-12, 1e-16), 0);
    ck_assert_int_eq(CVodeSetUserData(cvode, (void *)(uintptr_t)s), 0);
    ck_assert_int_eq(CVodeSetMaxNumSteps(cvode, 100000), 0);
    ck_assert_int_eq(CVodeSetLinearSolver(cvode, solver, matrix), 0);
    for (int i = 1; i < m; i++) {
        ck_assert_int_ge(CVode(cvode, t[i], state, &reached, CV_NORMAL), 0);
        memcpy(out + (ptrdiff_t)i * size, x, (size_t)size * sizeof *x);
    }
    CVodeFree(&cvode);
    SUNLinSolFree(solver);
    SUNMatDestroy(matrix);
    N_VDestroy(state);
    SUNContext_Free(&context);
}

/* The gradients of sum_j w_j . y(t_j) are those of the sensitivities. */
static void check_system(const struct plain_system *s, ad_ode_function *f, int m, const double *t,
                         const double *w, const ad_ode_options *options, double tolerance)
{
    const int n = s->n, n_p = s->n_p, size = n + n * (n + n_p);
    double *want = calloc((size_t)m * (size_t)size, sizeof *want), g[2 * MOST], gt[STATES],
           y[STATES * MOST];
    double by_y[MOST * MOST], by_p[MOST * MOST], d[MOST], to_first = 0;
    ck_assert_ptr_nonnull(want);
    reference(s, m, t, want);
    const ad_tensor y0 = vector(n, s->y0), p = vector(n_p, s->p), times = vector(m, t);
    const ad_tensor out = ad_ode(tape, f, NULL, y0, times, 1, &p, options);
    ck_assert_msg(ad_value(out, y, m * n) == AD_OK, "%s", ad_tape_message(tape));
    sweep(ad_sum(ad_mul(out, ad_constant(tape, AD_F64, 2, (int64_t[]){m, n}, w))));
    gradient(y0, g, n);
    gradient(p, g + n, n_p);
    gradient(times, gt, m);
    for (int c = 0; c < n + n_p; c++) {
        double sum = 0;
        for (int j = 0; j < m; j++)
            for (int i = 0; i < n; i++)
                sum += w[j * n + i] * want[j * size + n + c * n + i];
        near(g[c], sum, tolerance);
    }
    for (int j = 0; j < m; j++) {
        double sum = 0;
        s->f(want + (ptrdiff_t)j * size, s->p, d, by_y, by_p);
        for (int i = 0; i < n; i++) {
            near(y[j * n + i], want[j * size + i], tolerance);
            sum += w[j * n + i] * d[i];
        }
        if (j > 0) {
            near(gt[j], sum, tolerance);
            to_first -= sum; /* nothing depends on t alone: all times later are the first earlier */
        }
    }
    near(gt[0], to_first, tolerance);
    free(want);
}

/* ---- Lotka and Volterra ---- */

static void lotka_plain(const double *y, const double *p, double *f, double *by_y, double *by_p)
{
    f[0] = p[0] * y[0] - p[1] * y[0] * y[1];
    f[1] = p[2] * y[0] * y[1] - p[3] * y[1];
    by_y[0] = p[0] - p[1] * y[1];
    by_y[1] = -p[1] * y[0];
    by_y[2] = p[2] * y[1];
    by_y[3] = p[2] * y[0] - p[3];
    memset(by_p, 0, 8 * sizeof *by_p);
    by_p[0] = y[0];
    by_p[1] = -y[0] * y[1];
    by_p[6] = y[0] * y[1];
    by_p[7] = -y[1];
}

static ad_tensor element(ad_tensor of, int64_t i)
{
    return ad_slice(of, 0, i, i + 1, 1);
}

static ad_tensor lotka(ad_tape on, ad_tensor t, ad_tensor y, int n, const ad_tensor *x,
                       void *payload)
{
    (void)on;
    (void)t;
    (void)n;
    (void)payload;
    const ad_tensor p = x[0], hares = element(y, 0), lynxes = element(y, 1),
                    both = ad_mul(hares, lynxes);
    const ad_tensor d[2] = {ad_sub(ad_mul(element(p, 0), hares), ad_mul(element(p, 1), both)),
                            ad_sub(ad_mul(element(p, 2), both), ad_mul(element(p, 3), lynxes))};
    return ad_concat(d, 2, 0);
}

TEST(lotka_and_volterra_have_the_gradients_of_forward_sensitivities)
{
    static const double y0[2] = {1.2, 0.6}, p[4] = {1.1, 0.4, 0.1, 0.4};
    static const double w[12] = {0, 0, 1, -0.5, 0.3, 2, 0, 1, -1, 0.25, 0.5, 0.5};
    static const double t[6] = {0, 1.5, 4, 4.25, 9, 16};
    const struct plain_system s = {2, 4, lotka_plain, y0, p};
    for (int interval = 0; interval <= 30; interval += 15) {
        ad_ode_options options = tight, stiff = tight_stiff;
        options.interval = stiff.interval = interval;
        check_system(&s, lotka, 6, t, w, &options, 2e-8);
        check_system(&s, lotka, 6, t, w, &stiff, 1e-6);
    }
}

/* ---- Robertson ---- */

static void robertson_plain(const double *y, const double *p, double *f, double *by_y, double *by_p)
{
    const double a = p[0] * y[0], b = p[1] * y[1] * y[2], c = p[2] * y[1] * y[1];
    const double d[9] = {
        -p[0],        p[1] * y[2], p[1] * y[1],     p[0], -p[1] * y[2] - 2 * p[2] * y[1],
        -p[1] * y[1], 0,           2 * p[2] * y[1], 0};
    const double e[9] = {-y[0],        y[1] * y[2], 0, y[0],       -y[1] * y[2],
                         -y[1] * y[1], 0,           0, y[1] * y[1]};
    f[0] = -a + b;
    f[1] = a - b - c;
    f[2] = c;
    memcpy(by_y, d, sizeof d);
    memcpy(by_p, e, sizeof e);
}

static ad_tensor robertson(ad_tape on, ad_tensor t, ad_tensor y, int n, const ad_tensor *x,
                           void *payload)
{
    (void)on;
    (void)t;
    (void)n;
    (void)payload;
    const ad_tensor p = x[0], second = element(y, 1);
    const ad_tensor a = ad_mul(element(p, 0), element(y, 0)),
                    b = ad_mul(ad_mul(element(p, 1), second), element(y, 2)),
                    c = ad_mul(element(p, 2), ad_square(second));
    const ad_tensor d[3] = {ad_sub(b, a), ad_sub(ad_sub(a, b), c), c};
    return ad_concat(d, 3, 0);
}

TEST(robertson_s_stiff_problem_has_them_too)
{
    static const double y0[3] = {1, 0, 0}, p[3] = {0.04, 1e4, 3e7};
    static const double w[12] = {0, 0, 0, 1, 0, 0, 0, 1e4, 1, 1, 0, 2}, t[4] = {0, 0.4, 40, 4000};
    static const double each[3] = {1e-14, 1e-18, 1e-14};
    const struct plain_system s = {3, 3, robertson_plain, y0, p};
    for (int interval = 0; interval <= 40; interval += 40) {
        ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
        ad_ode_options options = {.relative = 1e-11, .adjoint_absolute = 1e-15, .stiff = true};
        options.interval = interval;
        options.absolute_each = ad_constant(tape, AD_F64, 1, (int64_t[]){3}, each);
        check_system(&s, robertson, 4, t, w, &options, 1e-5);
    }
}

/* ---- differences ---- */

/* y' = sin(t) a tanh(y) + b factor, y of any shape, the factor of integers. */
static ad_tensor forced(ad_tape on, ad_tensor t, ad_tensor y, int n, const ad_tensor *x,
                        void *payload)
{
    (void)on;
    (void)payload;
    ck_assert_int_eq(n, 3);
    const ad_tensor a = ad_mul(ad_mul(ad_sin(t), x[0]), ad_tanh(y));
    return ad_add(a, ad_mul(ad_cast(x[1], AD_F64), ad_cast(x[2], AD_F64)));
}

static const int64_t factor[3] = {1, -2, 1};

static ad_tensor of_differences(ad_tape on, const ad_tensor *in, int n, void *payload)
{
    ck_assert_int_eq(n, 4);
    const ad_tensor x[3] = {in[2], in[3], ad_constant(on, AD_I64, 1, (int64_t[]){3}, factor)};
    const ad_tensor y =
        ad_ode(on, forced, NULL, ad_reshape(in[0], (int64_t[]){2, 3}, 2), in[1], 3, x, payload);
    ck_assert_int_eq(ad_rank(y), 3);
    return ad_sin(y);
}

TEST(gradients_are_those_of_differences)
{
    const double y0[6] = {0.1, -0.4, 1, 0.3, -0.2, 0.7}, a = 0.9, b[3] = {0.25, 0.5, -1};
    const double ahead[3] = {0.5, 1.5, 2.75}, back[3] = {2, 1.25, 0.5};
    for (int stiff = 0; stiff < 2; stiff++) {
        ad_gradient_report report;
        ad_ode_options options = {.relative = 1e-12, .absolute = 1e-13, .stiff = stiff};
        ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
        const ad_tensor in[4] = {vector(6, y0), vector(3, stiff ? back : ahead),
                                 ad_leaf_copy(tape, AD_F64, 0, NULL, &a), vector(3, b)};
        const ad_status status =
            ad_check_gradient(tape, of_differences, 4, in, 2e-6, &options, &report);
        ck_assert_msg(status == AD_OK, "%s %s", report.message, ad_tape_message(tape));
        ck_assert_int_eq(report.compared, 13);
    }
}

/* ---- what surrounds it ---- */

static const double begin[2] = {1.2, 0.6}, rates[4] = {1.1, 0.4, 0.1, 0.4}, when[3] = {0, 1.5, 4};

/* The sum of the squares of a solution, by y0 and p. */
static ad_tensor loss_of(ad_tensor y0, ad_tensor p, const ad_ode_options *options)
{
    return ad_sum(ad_square(ad_ode(tape, lotka, NULL, y0, vector(3, when), 1, &p, options)));
}

static void part(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                 void *payload)
{
    (void)n_in;
    (void)n_out;
    out[0] = ad_square(ad_ode(on, lotka, NULL, in[0], in[1], 1, &in[2], payload));
}

TEST(checkpoints_frames_releases_and_second_sweeps_change_nothing)
{
    double want[4], got[4];
    const ad_tensor y0 = vector(2, begin), p = vector(4, rates);
    const ad_tensor in[3] = {y0, vector(3, when), p};
    const ad_ode_options options = {.stiff = true};
    sweep(loss_of(y0, p, &options));
    gradient(p, want, 4);
    for (int way = 0; way < 4; way++) {
        ad_tensor y;
        ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
        const ad_frame frame = ad_frame_begin(tape);
        if (way == 0)
            check_ok(ad_checkpoint(tape, part, (void *)(uintptr_t)&options, 3, in, 1, &y));
        y = way == 0 ? ad_sum(y) : loss_of(y0, p, &options);
        check_ok(ad_frame_end(frame, &y, 1));
        check_ok(way == 2 ? ad_backward_release(y) : ad_backward(y));
        if (way == 3)
            sweep(y);
        gradient(p, got, 4);
        for (int i = 0; i < 4; i++)
            ck_assert_double_eq(got[i], (way == 3 ? 2 : 1) * want[i]);
    }
}

TEST(wherever_checkpoints_lie_the_gradient_is_the_same)
{
    double want[4], got[4];
    const ad_tensor y0 = vector(2, begin), p = vector(4, rates);
    ad_ode_options options = tight;
    for (int interval = 0; interval < 48; interval += interval ? 1 : 26) {
        options.interval = interval;
        ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
        sweep(loss_of(y0, p, &options));
        gradient(p, interval ? got : want, 4);
        for (int i = 0; i < 4 && interval; i++)
            near(got[i], want[i], 1e-9);
    }
}

TEST(a_replay_integrates_again)
{
    double want[4], got[4], other[4] = {1, 0.5, 0.2, 0.5}, of[4];
    for (int replayed = 0; replayed < 2; replayed++) {
        ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
        memcpy(of, replayed ? rates : other, sizeof of);
        const ad_tensor y0 = vector(2, begin), p = ad_leaf(tape, AD_F64, 1, (int64_t[]){4}, of);
        const ad_tensor t = vector(3, when);
        check_ok(ad_tensor_program_begin(tape));
        ad_ode_report report;
        const ad_tensor loss =
            ad_sum(ad_ode(tape, lotka, NULL, y0, t, 1, &p, &(ad_ode_options){.report = &report}));
        check_ok(ad_tensor_program_end(tape));
        memcpy(of, other, sizeof of);
        if (replayed) {
            report.steps = -7; /* the report was of the call */
            check_ok(ad_tensor_replay(tape, 0, NULL, NULL));
            ck_assert_int_eq(report.steps, -7);
        }
        sweep(loss);
        gradient(p, replayed ? got : want, 4);
    }
    ck_assert_mem_eq(got, want, sizeof got);
}

TEST(a_small_loss_has_as_good_a_gradient)
{
    double want[4], got[4];
    for (int small = 0; small < 2; small++) {
        const ad_tensor p = vector(4, rates), y = loss_of(vector(2, begin), p, NULL);
        sweep(ad_scale(y, small ? 0x1p-60 : 1));
        gradient(p, small ? got : want, 4);
    }
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq(got[i], 0x1p-60 * want[i]);
}

TEST(only_what_counts_is_integrated_back)
{
    double g[2], gp[4], gt[3];
    const ad_tensor y0 = vector(2, begin), p = vector(4, rates), t = vector(3, when);
    const ad_tensor y = ad_ode(tape, lotka, NULL, y0, t, 1, &p, NULL);
    sweep(ad_sum(ad_slice(y, 0, 0, 1, 1))); /* y0 itself */
    gradient(y0, g, 2);
    gradient(p, gp, 4);
    gradient(t, gt, 3);
    for (int i = 0; i < 2; i++)
        ck_assert_double_eq(g[i], 1);
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq(gp[i], 0);
    sweep(ad_sum(ad_slice(y, 0, 1, 2, 1)));
    gradient(t, gt, 3);
    ck_assert_double_ne(gt[1], 0);
    ck_assert_double_eq(gt[2], 0);
    /* One time, and no elements. */
    const ad_tensor one = ad_ode(tape, lotka, NULL, y0, vector(1, when), 1, &p, NULL);
    sweep(ad_sum(ad_square(one)));
    const ad_tensor none = ad_leaf(tape, AD_F64, 1, (int64_t[]){0}, NULL);
    sweep(ad_sum(ad_ode(tape, decay, NULL, none, t, 1, &none, NULL)));
}

TEST(nothing_is_recorded_where_nothing_needs_it)
{
    const ad_tensor y0 = vector(2, begin), p = vector(4, rates), t = ad_detach(vector(3, when));
    const ad_stats before = stats();
    ck_assert_uint_ne(ad_ode(tape, lotka, NULL, ad_detach(y0), t, 1, &(ad_tensor){0}, NULL).value,
                      1);
    check_error(AD_ERROR_HANDLE, "ode: in[2] is a handle of zeros");
    const ad_tensor fixed = ad_detach(p);
    ck_assert_uint_ne(ad_ode(tape, lotka, NULL, ad_detach(y0), t, 1, &fixed, NULL).value, 0);
    ck_assert_int_eq(ad_tape_no_grad_begin(tape), AD_OK);
    ck_assert_uint_ne(ad_ode(tape, lotka, NULL, y0, t, 1, &p, NULL).value, 0);
    ck_assert_int_eq(ad_tape_no_grad_end(tape), AD_OK);
    ck_assert_uint_eq(stats().records, before.records);
}

/* Nothing of y, and nothing of x. */
static ad_tensor of_time(ad_tape on, ad_tensor t, ad_tensor y, int n, const ad_tensor *x,
                         void *payload)
{
    (void)n;
    (void)x;
    (void)payload;
    return ad_mul(ad_square(t), ad_detach(ad_add(ad_scale(y, 0), ad_scalar_f64(on, 1))));
}

TEST(what_depends_on_nothing_has_gradients_of_its_own)
{
    double g[2], gp[4], gt[2];
    const ad_tensor y0 = vector(2, begin), p = vector(4, rates), t = vector(2, when + 1);
    for (int stiff = 0; stiff < 2; stiff++) {
        ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
        sweep(ad_sum(ad_ode(tape, of_time, NULL, y0, t, 1, &p, &(ad_ode_options){.stiff = stiff})));
        gradient(y0, g, 2);
        gradient(p, gp, 4);
        gradient(t, gt, 2);
        near(g[0], 2, 1e-12); /* of both times */
        ck_assert_double_eq(gp[3], 0);
        near(gt[0], -2 * when[1] * when[1], 1e-12);
        near(gt[1], 2 * when[2] * when[2], 1e-12);
    }
}

/* An equation whose right-hand side solves another: z' = -x z from y to time 1, f = -z(1). */
static ad_tensor nested(ad_tape on, ad_tensor t, ad_tensor y, int n, const ad_tensor *x,
                        void *payload)
{
    static const double to[2] = {0, 1};
    (void)t;
    ad_ode_options options = {.relative = 1e-12, .absolute = 1e-14};
    ad_ode_report report;
    options.report = &report;
    const ad_tensor times = ad_constant(on, AD_F64, 1, (int64_t[]){2}, to);
    const ad_tensor z = ad_ode(on, decay, NULL, y, times, n, x, &options);
    *(int64_t *)payload += report.steps > 0;
    return ad_neg(ad_select(z, 0, 1));
}

TEST(an_equation_within_an_equation)
{
    const double k[2] = {0.5, 1}, t[2] = {0, 1};
    double y[2], g[2];
    int64_t asked = 0;
    ad_ode_report report;
    ad_ode_options options = tight;
    options.report = &report;
    const ad_tensor rate = vector(2, k);
    const ad_tensor out =
        ad_ode(tape, nested, &asked, vector(2, begin), vector(2, t), 1, &rate, &options);
    const ad_tensor last = ad_select(out, 0, 1);
    ck_assert_msg(ad_value(last, y, 2) == AD_OK, "%s", ad_tape_message(tape));
    ck_assert_int_eq(asked, report.evaluations);
    sweep(ad_sum(last));
    gradient(rate, g, 2);
    for (int i = 0; i < 2; i++) { /* y(1) = y0 exp(-exp(-k)) */
        near(y[i], begin[i] * exp(-exp(-k[i])), 1e-8);
        near(g[i], begin[i] * exp(-exp(-k[i]) - k[i]), 1e-8);
    }
}

TEST(numbers_go_in_and_come_out_by_the_bridge)
{
    double g[3];
    ad_real in[3], out[4], loss;
    const double of[3] = {2, 0.7, 1.3}, t[2] = {0, 1};
    check_ok(ad_tape_record_begin(tape));
    for (int i = 0; i < 3; i++)
        in[i] = ad_real_leaf(tape, of[i]);
    const ad_real both[2] = {in[0], in[0]};
    const ad_tensor y0 = ad_tensor_of_reals(tape, 1, (int64_t[]){2}, both),
                    k = ad_tensor_of_reals(tape, 1, (int64_t[]){2}, in + 1);
    check_ok(
        ad_reals_of_tensor(ad_ode(tape, decay, NULL, y0, vector(2, t), 1, &k, &tight), 4, out));
    ad_set(&loss, ad_real_add(out[2], ad_real_mul(2, out[3])));
    check_ok(ad_real_backward(tape, loss));
    check_ok(ad_real_gradients(tape, 3, in, g));
    check_ok(ad_tape_record_end(tape));
    near(g[0], exp(-of[1]) + 2 * exp(-of[2]), 1e-8);
    near(g[1], -of[0] * exp(-of[1]), 1e-8);
    near(g[2], -2 * of[0] * exp(-of[2]), 1e-8);
}

TEST(a_report_says_what_it_took)
{
    ad_ode_report report;
    ad_ode_options options = {.report = &report};
    const ad_tensor y0 = vector(2, begin), p = vector(4, rates), t = vector(3, when);
    (void)ad_ode(tape, lotka, NULL, y0, t, 1, &p, &options);
    ck_assert_int_gt(report.steps, 10);
    ck_assert_int_gt(report.evaluations, report.steps);
    ck_assert_int_eq(report.jacobians, 0);
    ck_assert_double_eq(report.reached, when[2]);
    const int64_t steps = report.steps;
    options.stiff = true;
    (void)ad_ode(tape, lotka, NULL, y0, t, 1, &p, &options);
    ck_assert_int_gt(report.jacobians, 0);
    ck_assert_int_lt(report.jacobians, report.steps);
    options = (ad_ode_options){.report = &report, .most = steps / 3};
    (void)ad_ode(tape, lotka, NULL, y0, t, 1, &p, &options);
    check_error(AD_ERROR_VALUE, "CVODES, forward: At t = ");
    ck_assert_double_gt(report.reached, 0);
    ck_assert_double_lt(report.reached, when[2]);
    (void)ad_ode(tape, NULL, NULL, y0, t, 1, &p, &options);
    ck_assert(isnan(report.reached));
    ad_tape_clear_error(tape);
}

/* ---- what goes wrong ---- */

static ad_tensor blowing_up(ad_tape on, ad_tensor t, ad_tensor y, int n, const ad_tensor *x,
                            void *payload)
{
    (void)on;
    (void)t;
    (void)n;
    (void)x;
    (void)payload;
    return ad_square(y);
}

/* Finite until t = 1.5. */
static ad_tensor until(ad_tape on, ad_tensor t, ad_tensor y, int n, const ad_tensor *x,
                       void *payload)
{
    (void)n;
    (void)x;
    (void)payload;
    return ad_mul(y, ad_sqrt(ad_sub(ad_scalar_f64(on, 1.5), t)));
}

static ad_tensor of_another_size(ad_tape on, ad_tensor t, ad_tensor y, int n, const ad_tensor *x,
                                 void *payload)
{
    (void)on;
    (void)t;
    (void)n;
    (void)x;
    (void)payload;
    return ad_sum(y);
}

static ad_tensor in_f32(ad_tape on, ad_tensor t, ad_tensor y, int n, const ad_tensor *x,
                        void *payload)
{
    (void)on;
    (void)t;
    (void)n;
    (void)x;
    (void)payload;
    return ad_cast(y, AD_F32);
}

static ad_tensor with_an_error(ad_tape on, ad_tensor t, ad_tensor y, int n, const ad_tensor *x,
                               void *payload)
{
    (void)on;
    (void)t;
    (void)n;
    (void)x;
    (void)payload;
    return ad_reshape(y, (int64_t[]){3}, 1);
}

static ad_tensor stranger;

static ad_tensor of_a_stranger(ad_tape on, ad_tensor t, ad_tensor y, int n, const ad_tensor *x,
                               void *payload)
{
    (void)on;
    (void)t;
    (void)n;
    (void)x;
    return payload ? ad_square(stranger) : ad_mul(y, stranger);
}

static ad_tensor of_the_stranger(ad_tape on, ad_tensor t, ad_tensor y, int n, const ad_tensor *x,
                                 void *payload)
{
    (void)on;
    (void)t;
    (void)y;
    (void)n;
    (void)x;
    (void)payload;
    return stranger;
}

/* Well until *payload calls are over. */
static ad_tensor failing_later(ad_tape on, ad_tensor t, ad_tensor y, int n, const ad_tensor *x,
                               void *payload)
{
    if (--*(int *)payload < 0)
        return with_an_error(on, t, y, n, x, NULL);
    return lotka(on, t, y, n, x, NULL);
}

/* Refused with this, and nothing is left on the tape. */
static void check_refused(ad_ode_function *f, void *payload, ad_tensor y0, ad_tensor t, int n,
                          const ad_tensor *x, const ad_ode_options *options, ad_status status,
                          const char *words)
{
    const ad_stats before = stats();
    const ad_tensor y = ad_ode(tape, f, payload, y0, t, n, x, options);
    ck_assert_uint_eq(y.value, 0);
    ck_assert_msg(strstr(ad_tape_message(tape), "; the call is at test_ode.c") ||
                      status == AD_ERROR_HANDLE,
                  "%s", ad_tape_message(tape));
    check_error(status, words);
    ad_tape_clear_error((ad_tape){0});
    ck_assert_uint_eq(stats().values, before.values);
    ck_assert_uint_eq(stats().records, before.records);
    ck_assert_uint_eq(stats().live_bytes, before.live_bytes);
}

TEST(what_is_wrong_with_f_is_told_and_leaves_nothing)
{
    static const struct {
        ad_ode_function *f;
        ad_status status;
        const char *words;
    } wrong[] = {{blowing_up, AD_ERROR_VALUE, "CVODES, forward: At t = "},
                 {until, AD_ERROR_VALUE, "f or its derivative was not finite at t = 1.5"},
                 {of_another_size, AD_ERROR_SHAPE, "f's result is of rank 0 and 1 elements"},
                 {in_f32, AD_ERROR_DTYPE, "f's result is not f64"},
                 {with_an_error, AD_ERROR_SHAPE, "reshape: "},
                 {of_a_stranger, AD_ERROR_STATE, "not while a callback of one of its records runs"},
                 {of_the_stranger, AD_ERROR_TAPE, "f's result is not on the tape of the call"}};
    const ad_tensor y0 = vector(2, begin), p = vector(4, rates), t = vector(3, when);
    stranger = y0;
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        for (int stiff = 0; stiff < 2; stiff++)
            check_refused(wrong[k].f, NULL, y0, t, 1, &p,
                          &(ad_ode_options){.most = 2000, .stiff = stiff}, wrong[k].status,
                          wrong[k].words);
    int first = 1;
    check_refused(of_a_stranger, &first, y0, t, 1, &p, NULL, AD_ERROR_STATE,
                  "f's result is not on the tape of the call: ");
}

TEST(a_sweep_fails_with_what_f_says_and_another_is_right)
{
    double want[4], got[4];
    int left = 1 << 30;
    const ad_tensor y0 = vector(2, begin), p = vector(4, rates), t = vector(3, when);
    for (int stiff = 0; stiff < 2; stiff++) {
        ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
        left = 1 << 30;
        const ad_tensor y = ad_sum(
            ad_ode(tape, failing_later, &left, y0, t, 1, &p, &(ad_ode_options){.stiff = stiff}));
        sweep(y);
        gradient(p, want, 4);
        const int calls = (1 << 30) - left;
        for (int n = 0; n < 4; n++) { /* in the integration forward, and at places of that back */
            ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
            left = n * calls / 6;
            ck_assert_int_eq(ad_backward(y), AD_ERROR_SHAPE);
            check_error_in(tape, AD_ERROR_SHAPE,
                           "ode: its pullback failed: reshape: ", "test_ode.c");
        }
        left = 1 << 30;
        sweep(y);
        gradient(p, got, 4);
        ck_assert_mem_eq(got, want, sizeof got);
    }
}

TEST(arguments_are_checked)
{
    const double late[3] = {0, 2, 1}, twice[3] = {0, 1, 1}, never[2] = {0, INFINITY},
                 unknown[2] = {1, NAN}, close[2] = {1, 1 + 0x1p-52}, below[2] = {1e-9, -1};
    const ad_tensor y0 = vector(2, begin), p = vector(4, rates), t = vector(3, when),
                    narrow = ad_cast(p, AD_F32), none = {0, 0, 0, 0};
    check_refused(NULL, NULL, y0, t, 1, &p, NULL, AD_ERROR_ARGUMENT,
                  "ode: its shape failed: the function is a null pointer");
    check_refused(lotka, NULL, y0, t, 1, NULL, NULL, AD_ERROR_ARGUMENT, "x is a null pointer");
    check_refused(lotka, NULL, y0, t, 62, &p, NULL, AD_ERROR_ARGUMENT,
                  "from 0 to 61 tensors x are possible");
    check_refused(lotka, NULL, y0, t, -1, &p, NULL, AD_ERROR_ARGUMENT, "from 0 to 61");
    check_refused(lotka, NULL, y0, t, 1, &p, &(ad_ode_options){.relative = NAN}, AD_ERROR_ARGUMENT,
                  "a tolerance is negative or not finite");
    check_refused(lotka, NULL, y0, t, 1, &p, &(ad_ode_options){.adjoint_absolute = -1},
                  AD_ERROR_ARGUMENT, "a tolerance is negative or not finite");
    check_refused(lotka, NULL, y0, t, 1, &p, &(ad_ode_options){.most = -1}, AD_ERROR_ARGUMENT,
                  "the number of steps is negative");
    check_refused(lotka, NULL, y0, t, 1, &p, &(ad_ode_options){.interval = -1}, AD_ERROR_ARGUMENT,
                  "the interval of checkpoints is negative");
    check_refused(lotka, NULL, none, t, 1, &p, NULL, AD_ERROR_HANDLE, "ode: in[0] is a handle");
    check_refused(lotka, NULL, y0, none, 1, &p, NULL, AD_ERROR_HANDLE, "ode: in[1] is a handle");
    check_refused(lotka, NULL, ad_cast(y0, AD_F32), t, 1, &p, NULL, AD_ERROR_DTYPE,
                  "y0 is not f64");
    check_refused(lotka, NULL, y0, ad_cast(t, AD_F32), 1, &p, NULL, AD_ERROR_DTYPE,
                  "the times are not f64");
    check_refused(lotka, NULL, y0, t, 1, &narrow, NULL, AD_ERROR_DTYPE,
                  "x[0] is f32: ad_cast makes it f64");
    check_refused(lotka, NULL, y0, ad_sum(t), 1, &p, NULL, AD_ERROR_SHAPE, "the times are not [m]");
    check_refused(lotka, NULL, ad_reshape(y0, (int64_t[]){1, 1, 1, 1, 1, 1, 1, 2}, 8), t, 1, &p,
                  NULL, AD_ERROR_SHAPE, "y0 is of rank 8");
    check_refused(lotka, NULL, y0, vector(3, late), 1, &p, NULL, AD_ERROR_VALUE,
                  "times[2] is 1 after 2: each must be later");
    check_refused(lotka, NULL, y0, vector(3, twice), 1, &p, NULL, AD_ERROR_VALUE,
                  "times[2] is 1 after 1");
    check_refused(lotka, NULL, y0, vector(2, never), 1, &p, NULL, AD_ERROR_VALUE,
                  "times[1] is not finite");
    check_refused(lotka, NULL, vector(2, unknown), t, 1, &p, NULL, AD_ERROR_VALUE,
                  "element 1 of y0 is not finite");
    check_refused(lotka, NULL, y0, vector(2, close), 1, &p, NULL, AD_ERROR_VALUE,
                  "CVODES, forward: tout too close to t0");
    check_refused(lotka, NULL, y0, t, 1, &p, &(ad_ode_options){.absolute_each = t}, AD_ERROR_SHAPE,
                  "absolute_each is not of y0's shape");
    check_refused(lotka, NULL, y0, t, 1, &p,
                  &(ad_ode_options){.absolute_each = ad_cast(y0, AD_F32)}, AD_ERROR_DTYPE,
                  "absolute_each is not f64");
    check_refused(lotka, NULL, y0, t, 1, &p, &(ad_ode_options){.absolute_each = vector(2, below)},
                  AD_ERROR_VALUE, "element 1 of absolute_each is -1");
    const int64_t large[1] = {AD_ODE_MOST_STIFF + 1};
    check_refused(lotka, NULL, ad_broadcast_to(ad_scalar_f64(tape, 1), large, 1), t, 1, &p,
                  &(ad_ode_options){.stiff = true}, AD_ERROR_LIMIT,
                  "y0 has 8193 elements, where stiff at most 8192");
    ad_ode((ad_tape){0}, lotka, NULL, y0, t, 1, &p, NULL);
    check_error_of((ad_tape){0}, AD_ERROR_HANDLE, "ode: the handle is zero");
}

TEST(an_adjoint_that_is_not_finite_and_second_derivatives_are_refused)
{
    ad_tensor d;
    const ad_tensor p = vector(4, rates);
    const ad_tensor y = loss_of(vector(2, begin), p, NULL);
    ck_assert_int_eq(ad_backward(ad_mul(y, ad_scalar_f64(tape, INFINITY))), AD_ERROR_VALUE);
    check_error(AD_ERROR_VALUE, "ode: its pullback failed: an adjoint of the result is not finite");
    ck_assert_int_eq(ad_create_graph(y, (ad_tensor){0}, 1, &p, &d), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "create_graph: ode has a pullback but no rule");
}

/* ---- a profile ---- */

__attribute__((noinline)) static ad_tensor ode_here(ad_tensor y0, ad_tensor t, ad_tensor p)
{
    return ad_ode(tape, lotka, NULL, y0, t, 1, &p, NULL);
}

TEST(its_cost_is_on_its_line)
{
    teardown_fine();
    tape = observe_tape();
    observe_begin(UINT64_MAX);
    const ad_tensor y0 = vector(2, begin), t = vector(3, when), p = vector(4, rates);
    const ad_tensor y = ad_sum(ode_here(y0, t, p));
    const struct tape_ledger *l = observe_ledger();
    const struct tape_row *row = observe_row(l, "ode");
    ck_assert_uint_eq(row->calls, 1);
    ck_assert_uint_eq(row->forward_ticks, 1); /* f's ops read no clock */
    ck_assert_uint_ge(row->value_bytes, 6 * sizeof(double));
    const uint32_t rows = l->n_rows;
    sweep(y);
    l = observe_ledger();
    ck_assert_uint_eq(l->n_rows, rows + 1); /* that of the sweep: none of f's ops */
    row = observe_row(l, "ode");
    ck_assert_uint_eq(row->backward_calls, 1);
    ck_assert_uint_eq(row->backward_ticks, 1);
    ck_assert_uint_gt(row->backward_moved, 0);
    observe_check_sums(l);
    observe_check_live(l, tape);
    observe_check_pairs();
    tape_observe_end();
}

RUN_TESTS(setup, teardown_fine)
