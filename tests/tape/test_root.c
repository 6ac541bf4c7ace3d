/* test_root.c: results of equations: values and derivatives of the first and second order against
 * closed forms, differences, and ops that solve the same; what can go wrong; and who is charged.
 */
#include "observe_support.h"
#include "run_cases.h"

#include <tapescope/ad.h>
#include <tapescope/ad_functional.h>
#include <tapescope/ad_real.h>

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

enum { N = 3, MANY = 70 };

static const int64_t shape[1] = {N}, square[2] = {N, N};
static const ad_tensor ones = {0, 0, 0, 0};
static double data[N] = {0.5, 2, 7}, other[N] = {1, -2, 0.25}, start[N] = {1, 1, 1};
static double matrix[N * N] = {4, 1, 0, -1, 5, 2, 0.5, 1, 6};
static ad_tensor x, b, guess;

static void setup(void)
{
    tape_begin(&(ad_tape_options){.budget_bytes = 64 << 20, .reserve_bytes = 64 << 20});
    x = ad_leaf(tape, AD_F64, 1, shape, data);
    b = ad_leaf(tape, AD_F64, 1, shape, other);
    guess = ad_constant(tape, AD_F64, 1, shape, start);
}

static void gradient(ad_tensor of, double *g, int n)
{
    ck_assert_msg(ad_gradient(of, g, n) == AD_OK, "%s", ad_tape_message(tape));
}

/* ---- y e^y = x ---- */

static int calls;

static ad_tensor lambert(ad_tape on, ad_tensor y, int n, const ad_tensor *in, void *payload)
{
    (void)on;
    (void)payload;
    ck_assert_int_eq(n, 1);
    calls++;
    return ad_sub(ad_mul(y, ad_exp(y)), in[0]);
}

static ad_tensor lambert_of(ad_tensor of)
{
    return ad_root(tape, lambert, NULL, guess, 1, &of, NULL);
}

TEST(a_root_has_the_derivatives_of_the_implicit_function)
{
    double w[N], g[N], h[N];
    ad_root_report report;
    const ad_tensor y = ad_root(tape, lambert, NULL, guess, 1, &x,
                                &(ad_root_options){.tolerance = 1e-14, .report = &report});
    ck_assert_msg(ad_value(y, w, N) == AD_OK, "%s", ad_tape_message(tape));
    ck_assert_int_ge(report.steps, 3);
    ck_assert_int_le(report.steps, 12);
    ck_assert(report.residual <= 1e-14);
    ad_tensor d;
    const ad_tensor loss = ad_sum(y);
    ck_assert_int_eq(ad_backward(loss), AD_OK);
    gradient(x, g, N);
    ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
    ck_assert_msg(ad_create_graph(loss, ones, 1, &x, &d) == AD_OK, "%s", ad_tape_message(tape));
    ck_assert_int_eq(ad_value(d, h, N), AD_OK);
    for (int i = 0; i < N; i++) {
        const double first = w[i] / (data[i] * (1 + w[i]));
        ck_assert_double_eq_tol(w[i] * exp(w[i]), data[i], 1e-10);
        ck_assert_double_eq_tol(g[i], first, 1e-12);
        ck_assert_double_eq_tol(h[i], first, 1e-12);
    }
    ck_assert_msg(ad_backward(ad_sum(d)) == AD_OK, "%s", ad_tape_message(tape));
    gradient(x, g, N);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq_tol(g[i], -exp(-2 * w[i]) * (w[i] + 2) / pow(1 + w[i], 3), 1e-11);
}

/* ---- A y = b: as ad_solve ---- */

static ad_tensor linear(ad_tape on, ad_tensor y, int n, const ad_tensor *in, void *payload)
{
    (void)on;
    (void)n;
    (void)payload;
    const int64_t column[2] = {N, 1}, row[2] = {1, N}; /* another shape than y's */
    return ad_sub(ad_reshape(ad_matmul(in[0], ad_reshape(y, column, 2)), row, 2),
                  ad_reshape(in[1], row, 2));
}

static void second_of(ad_tensor y, const ad_tensor *in, double *first, double *second)
{
    ad_tensor d[2];
    const ad_tensor loss = ad_sum(ad_square(ad_sin(y)));
    ck_assert_msg(ad_create_graph(loss, ones, 2, in, d) == AD_OK, "%s", ad_tape_message(tape));
    ck_assert_int_eq(ad_value(d[0], first, N * N), AD_OK);
    ck_assert_int_eq(ad_value(d[1], first + N * N, N), AD_OK);
    const ad_tensor mixed = ad_add(ad_sum(ad_square(d[0])), ad_sum(ad_tanh(d[1])));
    ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
    ck_assert_msg(ad_backward(mixed) == AD_OK, "%s", ad_tape_message(tape));
    gradient(in[0], second, N * N);
    gradient(in[1], second + N * N, N);
}

TEST(a_linear_system_has_the_derivatives_of_solve)
{
    double got[2][N * N + N], want[2][N * N + N];
    const ad_tensor in[2] = {ad_leaf(tape, AD_F64, 2, square, matrix), b};
    second_of(ad_root(tape, linear, NULL, guess, 2, in, NULL), in, got[0], got[1]);
    second_of(ad_solve(in[0], in[1]), in, want[0], want[1]);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < N * N + N; i++)
            ck_assert_double_eq_tol(got[k][i], want[k][i], 1e-12);
}

/* ---- y = cos(x + y) / 2 ---- */

static ad_tensor half_cosine(ad_tape on, ad_tensor y, int n, const ad_tensor *in, void *payload)
{
    (void)on;
    (void)n;
    (void)payload;
    return ad_scale(ad_cos(ad_add(in[0], y)), 0.5);
}

TEST(a_fixed_point_has_them_too)
{
    double y[N], g[N], h[N];
    ad_root_report report;
    const ad_tensor point = ad_fixed_point(tape, half_cosine, NULL, guess, 1, &x,
                                           &(ad_root_options){.report = &report});
    ck_assert_msg(ad_value(point, y, N) == AD_OK, "%s", ad_tape_message(tape));
    ck_assert_int_gt(report.steps, 5);
    ad_tensor d;
    ck_assert_int_eq(ad_backward(ad_sum(point)), AD_OK);
    gradient(x, g, N);
    ck_assert_int_eq(ad_create_graph(ad_sum(point), ones, 1, &x, &d), AD_OK);
    ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
    ck_assert_int_eq(ad_backward(ad_sum(d)), AD_OK);
    gradient(x, h, N);
    for (int i = 0; i < N; i++) {
        const double s = sin(data[i] + y[i]) / 2, c = cos(data[i] + y[i]) / 2;
        ck_assert_double_eq_tol(y[i], c, 1e-10);
        ck_assert_double_eq_tol(g[i], -s / (1 + s), 1e-9);
        ck_assert_double_eq_tol(h[i], -c / pow(1 + s, 3), 1e-8);
    }
}

/* ---- differences, and what surrounds it ---- */

static ad_tensor function(ad_tape on, const ad_tensor *in, int n, void *payload)
{
    (void)on;
    (void)n;
    (void)payload;
    const ad_tensor y = lambert_of(ad_exp(ad_sin(in[0])));
    return ad_mul(y, ad_fixed_point(tape, half_cosine, NULL, guess, 1, &in[1],
                                    &(ad_root_options){.tolerance = 1e-14}));
}

static ad_tensor derivative(ad_tape on, const ad_tensor *in, int n, void *payload)
{
    ad_tensor d[2];
    if (ad_create_graph(ad_sum(function(on, in, n, payload)), ones, n, in, d) != AD_OK)
        return in[0];
    return ad_add(d[0], ad_exp(d[1]));
}

TEST(derivatives_first_and_second_are_those_of_differences)
{
    const ad_tensor in[2] = {x, b};
    ad_gradient_report report;
    ck_assert_msg(ad_check_gradient(tape, function, 2, in, 1e-6, NULL, &report) == AD_OK, "%s",
                  report.message);
    ck_assert_msg(ad_check_gradient(tape, derivative, 2, in, 1e-6, NULL, &report) == AD_OK, "%s%s",
                  report.message, ad_tape_message(tape));
    ck_assert_int_eq(report.compared, 2 * N);
}

TEST(a_recorded_derivative_goes_on_to_what_x_was_made_of)
{
    double g[N], h[N];
    ad_tensor d;
    const ad_tensor h0 = ad_exp(ad_sin(x)), loss = ad_sum(ad_mul(lambert_of(h0), ad_square(h0)));
    ck_assert_int_eq(ad_backward(loss), AD_OK);
    gradient(x, g, N);
    ck_assert_int_eq(ad_create_graph(loss, ones, 1, &x, &d), AD_OK);
    ck_assert_int_eq(ad_value(d, h, N), AD_OK);
    for (int i = 0; i < N; i++) {
        ck_assert_double_ne(g[i], 0);
        ck_assert_double_eq_tol(h[i], g[i], 1e-12 * (1 + fabs(g[i])));
    }
}

static ad_tensor sum_of_roots(ad_tape on, const ad_tensor *in, int n, void *payload)
{
    (void)on;
    (void)n;
    (void)payload;
    return ad_sum(lambert_of(in[0]));
}

static ad_tensor roots(ad_tape on, const ad_tensor *in, int n, void *payload)
{
    (void)on;
    (void)n;
    (void)payload;
    return lambert_of(in[0]);
}

TEST(functions_of_functions_go_through_it)
{
    double w[N], along[N], hessian[N * N], jacobian[N * N], product[N], v[N] = {1, -2, 0.5};
    const void *const direction[1] = {v};
    void *const into_jacobian[1] = {jacobian}, *const into_product[1] = {product};
    const int64_t n[1] = {N}, n_n[1] = {N * N};
    ck_assert_int_eq(ad_jvp(tape, roots, 1, &x, NULL, direction, n, w, along, N), AD_OK);
    ck_assert_int_eq(ad_jacobian(tape, roots, 1, &x, NULL, AD_JACOBIAN_COLUMNS, into_jacobian, n_n),
                     AD_OK);
    ck_assert_int_eq(ad_hessian(tape, sum_of_roots, 1, &x, NULL, hessian, N * N), AD_OK);
    ck_assert_int_eq(ad_hvp(tape, sum_of_roots, 1, &x, NULL, direction, into_product, n), AD_OK);
    for (int i = 0; i < N; i++) {
        const double first = w[i] / (data[i] * (1 + w[i]));
        const double second = -exp(-2 * w[i]) * (w[i] + 2) / pow(1 + w[i], 3);
        ck_assert_double_eq_tol(along[i], first * v[i], 1e-9);
        ck_assert_double_eq_tol(product[i], second * v[i], 1e-9);
        for (int k = 0; k < N; k++) {
            ck_assert_double_eq_tol(jacobian[i * N + k], i == k ? first : 0, 1e-9);
            ck_assert_double_eq_tol(hessian[i * N + k], i == k ? second : 0, 1e-9);
        }
    }
}

static void part(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                 void *payload)
{
    (void)on;
    (void)n_in;
    (void)n_out;
    (void)payload;
    out[0] = ad_square(lambert_of(in[0]));
}

TEST(checkpoints_frames_and_releasing_sweeps_change_nothing)
{
    double want[N], got[N];
    ad_tensor y;
    ck_assert_int_eq(ad_backward(ad_sum(ad_square(lambert_of(x)))), AD_OK);
    gradient(x, want, N);
    for (int way = 0; way < 3; way++) {
        ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
        const ad_frame frame = ad_frame_begin(tape);
        if (way == 0)
            ck_assert_int_eq(ad_checkpoint(tape, part, NULL, 1, &x, 1, &y), AD_OK);
        else
            y = ad_square(lambert_of(x));
        y = ad_sum(y);
        ck_assert_int_eq(ad_frame_end(frame, &y, 1), AD_OK);
        ck_assert_int_eq(way == 2 ? ad_backward_release(y) : ad_backward(y), AD_OK);
        gradient(x, got, N);
        ck_assert_mem_eq(got, want, sizeof got);
    }
}

TEST(nothing_is_recorded_where_nothing_needs_it)
{
    const ad_stats before = stats();
    ck_assert_uint_ne(lambert_of(ad_detach(x)).value, 0);
    ck_assert_int_eq(ad_tape_no_grad_begin(tape), AD_OK);
    ck_assert_uint_ne(lambert_of(x).value, 0);
    ck_assert_int_eq(ad_tape_no_grad_end(tape), AD_OK);
    ck_assert_uint_eq(stats().records, before.records);
    ad_saved saved;
    ck_assert_int_eq(ad_tape_saved_for_backward(tape, &saved), AD_OK);
    ck_assert_uint_eq(saved.buffer_bytes, 0);
    calls = 0;
    const ad_tensor y = ad_sum(lambert_of(x));
    const int forward = calls;
    ck_assert_int_eq(ad_backward(y), AD_OK);
    ck_assert_int_eq(calls, forward + 1); /* one look at the residual, one solution */
}

/* More rows of the matrix than an op takes operands, and an x of another dtype. */
static ad_tensor squares(ad_tape on, ad_tensor y, int n, const ad_tensor *in, void *payload)
{
    (void)on;
    (void)n;
    (void)payload;
    return ad_sub(ad_square(y), ad_cast(in[0], AD_F64));
}

TEST(many_elements_and_operands_of_single_precision)
{
    float many[MANY], g[MANY];
    double begin[MANY];
    ad_tensor d;
    for (int i = 0; i < MANY; i++) {
        many[i] = 1 + (float)i / 8;
        begin[i] = 2;
    }
    const ad_tensor z = ad_leaf(tape, AD_F32, 1, (int64_t[]){MANY}, many);
    const ad_tensor from = ad_constant(tape, AD_F64, 1, (int64_t[]){MANY}, begin);
    const ad_tensor y = ad_root(tape, squares, NULL, from, 1, &z, NULL);
    ck_assert_msg(ad_create_graph(ad_sum(y), ones, 1, &z, &d) == AD_OK, "%s",
                  ad_tape_message(tape));
    ck_assert_msg(ad_backward(ad_sum(d)) == AD_OK, "%s", ad_tape_message(tape));
    ck_assert_int_eq(ad_gradient(z, g, MANY), AD_OK);
    for (int i = 0; i < MANY; i++)
        ck_assert_double_eq_tol(g[i], -0.25 * pow(many[i], -1.5), 1e-6);
    const ad_tensor none = ad_constant(tape, AD_F64, 1, (int64_t[]){0}, NULL);
    const ad_tensor nothing = ad_leaf(tape, AD_F32, 1, (int64_t[]){0}, NULL);
    const ad_tensor empty = ad_sum(ad_root(tape, squares, NULL, none, 1, &nothing, NULL));
    ck_assert_msg(ad_backward(empty) == AD_OK, "%s", ad_tape_message(tape));
    ck_assert_msg(ad_create_graph(empty, ones, 1, &nothing, &d) == AD_OK, "%s",
                  ad_tape_message(tape));
}

/* Integers choose, and pass no derivative. */
static ad_tensor chosen(ad_tape on, ad_tensor y, int n, const ad_tensor *in, void *payload)
{
    (void)on;
    (void)payload;
    ck_assert_int_eq(n, 3);
    return ad_sub(ad_square(y), ad_mul(ad_add(in[1], in[2]), ad_cast(in[0], AD_F64)));
}

TEST(integers_and_constants_are_operands_too)
{
    static const int64_t factor[N] = {1, 2, 3};
    double g[N], y[N];
    ad_tensor d;
    const ad_tensor in[3] = {ad_constant(tape, AD_I64, 1, shape, factor), ad_detach(x), x};
    const ad_tensor root = ad_root(tape, chosen, NULL, guess, 3, in, NULL);
    ck_assert_msg(ad_value(root, y, N) == AD_OK, "%s", ad_tape_message(tape));
    ck_assert_int_eq(ad_backward(ad_sum(root)), AD_OK);
    gradient(x, g, N);
    for (int i = 0; i < N; i++) /* y^2 = 2 f x, of which one half counts */
        ck_assert_double_eq_tol(g[i], (double)factor[i] / (2 * y[i]), 1e-9);
    ck_assert_msg(ad_create_graph(ad_sum(root), ones, 1, &x, &d) == AD_OK, "%s",
                  ad_tape_message(tape));
    ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
    ck_assert_int_eq(ad_backward(ad_sum(d)), AD_OK);
    gradient(x, g, N);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq_tol(g[i], -pow((double)factor[i], 2) / (4 * pow(y[i], 3)), 1e-9);
}

/* ---- the caller's own solver ---- */

static ad_status bisect(const ad_custom_array *y, int n, const ad_custom_array *in, void *payload)
{
    double *of = y->data;
    ck_assert_int_eq(n, 1);
    ck_assert_double_eq(of[0], start[0]);
    if (payload && *(int *)payload == 1)
        return AD_ERROR_LIMIT;
    for (int64_t i = 0; i < y->size; i++) {
        double low = 0, high = 10;
        for (int k = 0; k < 60; k++) {
            of[i] = (low + high) / 2;
            *(of[i] * exp(of[i]) < ((const double *)in[0].data)[i] ? &low : &high) = of[i];
        }
        of[i] += payload ? 1e-3 : 0;
    }
    return AD_OK;
}

TEST(a_solver_of_the_caller_s_finds_it_and_is_held_to_the_tolerance)
{
    double got[N], want[N];
    ad_root_report report;
    ck_assert_int_eq(ad_backward(ad_sum(lambert_of(x))), AD_OK);
    gradient(x, want, N);
    ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
    const ad_root_options options = {.solver = bisect, .report = &report};
    const ad_tensor y = ad_root(tape, lambert, NULL, guess, 1, &x, &options);
    ck_assert_int_eq(report.steps, 0);
    ck_assert_msg(ad_backward(ad_sum(y)) == AD_OK, "%s", ad_tape_message(tape));
    gradient(x, got, N);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq_tol(got[i], want[i], 1e-9);
    int how = 2;
    const ad_stats before = stats();
    ck_assert_uint_eq(ad_root(tape, lambert, &how, guess, 1, &x, &options).value, 0);
    check_error_in(tape, AD_ERROR_VALUE, "root: its forward failed: the residual is 0.",
                   "test_root.c");
    ck_assert(report.residual > 1e-3);
    how = 1;
    ck_assert_uint_eq(ad_root(tape, lambert, &how, guess, 1, &x, &options).value, 0);
    check_error_in(tape, AD_ERROR_LIMIT, "root: its forward failed: the solver: a fixed limit",
                   "test_root.c");
    ck_assert_uint_eq(stats().values, before.values);
    ck_assert_uint_eq(stats().live_bytes, before.live_bytes);
}

/* ---- what goes wrong ---- */

static ad_tensor no_root(ad_tape on, ad_tensor y, int n, const ad_tensor *in, void *payload)
{
    (void)on;
    (void)n;
    (void)payload;
    return ad_add(ad_square(y), ad_exp(in[0]));
}

static ad_tensor without_y(ad_tape on, ad_tensor y, int n, const ad_tensor *in, void *payload)
{
    (void)on;
    (void)y;
    (void)n;
    (void)payload;
    return in[0];
}

static ad_tensor singular(ad_tape on, ad_tensor y, int n, const ad_tensor *in, void *payload)
{
    (void)on;
    (void)n;
    (void)payload;
    return ad_sub(ad_mul(ad_sum(y), in[0]), in[0]);
}

static ad_tensor of_another_size(ad_tape on, ad_tensor y, int n, const ad_tensor *in, void *payload)
{
    (void)on;
    (void)n;
    (void)in;
    (void)payload;
    return ad_sum(y);
}

static ad_tensor with_an_error(ad_tape on, ad_tensor y, int n, const ad_tensor *in, void *payload)
{
    (void)on;
    (void)n;
    (void)payload;
    return ad_mul(ad_reshape(y, (int64_t[]){2}, 1), in[0]);
}

static ad_tensor of_a_stranger(ad_tape on, ad_tensor y, int n, const ad_tensor *in, void *payload)
{
    (void)on;
    (void)n;
    (void)in;
    (void)payload;
    return ad_sub(y, b);
}

static ad_tensor in_f32(ad_tape on, ad_tensor y, int n, const ad_tensor *in, void *payload)
{
    (void)on;
    (void)n;
    (void)in;
    (void)payload;
    return ad_cast(y, AD_F32);
}

TEST(what_is_wrong_with_a_residual_is_told_and_leaves_nothing)
{
    static const struct {
        ad_residual *f;
        bool fixed;
        ad_status status;
        const char *words;
    } wrong[] = {
        {no_root, false, AD_ERROR_VALUE, "root: its forward failed: the residual is "},
        {no_root, true, AD_ERROR_VALUE, "fixed_point: its forward failed: the residual is "},
        {without_y, false, AD_ERROR_VALUE, "the residual does not depend on y"},
        {singular, false, AD_ERROR_VALUE, "solve:"},
        {of_another_size, false, AD_ERROR_SHAPE, "the residual is f64 [], y is f64 [3]"},
        {of_another_size, true, AD_ERROR_SHAPE, "g is f64 [], y is f64 [3]"},
        {in_f32, false, AD_ERROR_DTYPE, "the residual is f32 [3], y is f64 [3]"},
        {with_an_error, false, AD_ERROR_SHAPE, "reshape: "},
        {of_a_stranger, false, AD_ERROR_STATE, "not while a callback of one of its records runs"}};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        const ad_stats before = stats();
        const ad_tensor y = wrong[k].fixed
                                ? ad_fixed_point(tape, wrong[k].f, NULL, guess, 1, &x, NULL)
                                : ad_root(tape, wrong[k].f, NULL, guess, 1, &x, NULL);
        ck_assert_uint_eq(y.value, 0);
        ck_assert_msg(strstr(ad_tape_message(tape), "; the call is at test_root.c"), "%s",
                      ad_tape_message(tape));
        check_error(wrong[k].status, wrong[k].words);
        ad_tape_clear_error((ad_tape){0});
        ck_assert_uint_eq(stats().values, before.values);
        ck_assert_uint_eq(stats().records, before.records);
        ck_assert_uint_eq(stats().live_bytes, before.live_bytes);
    }
}

TEST(arguments_are_checked)
{
    ad_root(tape, NULL, NULL, guess, 1, &x, NULL);
    check_error(AD_ERROR_ARGUMENT, "root: the function is a null pointer");
    ad_root(tape, lambert, NULL, guess, 1, NULL, NULL);
    check_error(AD_ERROR_ARGUMENT, "root: x is a null pointer");
    ad_fixed_point(tape, lambert, NULL, guess, 64, &x, NULL);
    check_error(AD_ERROR_ARGUMENT, "fixed_point: from 0 to 63 tensors x are possible");
    ad_root(tape, lambert, NULL, guess, 1, &x, &(ad_root_options){.tolerance = NAN});
    check_error(AD_ERROR_ARGUMENT, "root: the tolerance is negative or no number");
    ad_root(tape, lambert, NULL, guess, 1, &x, &(ad_root_options){.most = -1});
    check_error(AD_ERROR_ARGUMENT, "root: the number of steps is negative");
    ad_root(tape, lambert, NULL, ones, 1, &x, NULL);
    check_error(AD_ERROR_HANDLE, "root: the guess is a handle of zeros");
    ad_root(tape, lambert, NULL, ad_cast(guess, AD_F32), 1, &x, NULL);
    check_error(AD_ERROR_DTYPE, "root: its shape failed: the guess is not f64");
    ad_root(tape, lambert, NULL, guess, 1, &ones, NULL);
    check_error(AD_ERROR_HANDLE, "root: in[1] is a handle of zeros");
    ad_root((ad_tape){0}, lambert, NULL, guess, 1, &x, NULL);
    check_error_of((ad_tape){0}, AD_ERROR_HANDLE, "root: the handle is zero");
    const int64_t large[1] = {(1 << 15) + 1};
    ad_root(tape, lambert, NULL, ad_broadcast_to(ad_scalar_f64(tape, 1), large, 1), 1, &x, NULL);
    check_error(AD_ERROR_LIMIT, "root: its shape failed: y has 32769 elements");
}

/* ---- a profile ---- */

__attribute__((noinline)) static ad_tensor root_here(void)
{
    return ad_root(tape, lambert, NULL, guess, 1, &x, NULL);
}

TEST(its_cost_is_on_its_line)
{
    teardown_fine();
    tape = observe_tape();
    observe_begin(UINT64_MAX);
    x = ad_leaf(tape, AD_F64, 1, shape, data);
    guess = ad_constant(tape, AD_F64, 1, shape, start);
    const ad_tensor y = ad_sum(root_here());
    const struct tape_ledger *l = observe_ledger();
    const struct tape_row *row = observe_row(l, "root");
    ck_assert_uint_eq(row->calls, 1);
    ck_assert_uint_eq(row->forward_ticks, 1);
    ck_assert_uint_ge(row->value_bytes, (N + N * N) * sizeof(double));
    const uint32_t rows = l->n_rows;
    ck_assert_int_eq(ad_backward(y), AD_OK);
    l = observe_ledger();
    ck_assert_uint_eq(l->n_rows, rows + 1); /* that of the sweep: none of the residual's ops */
    ck_assert_uint_eq(row->backward_calls, 1);
    ck_assert_uint_eq(row->backward_ticks, 1);
    observe_check_sums(l);
    observe_check_live(l, tape);
    observe_check_pairs();
    ad_tensor d;
    ck_assert_int_eq(ad_create_graph(y, ones, 1, &x, &d), AD_OK);
    observe_check_sums(observe_ledger());
    observe_check_live(observe_ledger(), tape);
    ck_assert_int_eq(ad_backward(ad_sum(d)), AD_OK);
    observe_check_sums(observe_ledger());
    tape_observe_end();
}

RUN_TESTS(setup, teardown_fine)
