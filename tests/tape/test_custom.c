/* test_custom.c: ops of the user's own: values, gradients and second derivatives against ops that
 * compute the same, whatever surrounds them; what they save; and each way to be wrong.
 */
#include "run_cases.h"

#include <tapescope/ad.h>
#include <tapescope/ad_real.h>

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

enum { ROWS = 3, COLUMNS = 4, SIZE = ROWS * COLUMNS };

static const int64_t shape[2] = {ROWS, COLUMNS};
static const ad_tensor ones = {0, 0, 0, 0};
static double data[2][SIZE];
static ad_tensor leaf[2];

static void setup(void)
{
    static const ad_tape_options small = {.budget_bytes = 64 << 20, .reserve_bytes = 64 << 20};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < SIZE; i++)
            data[k][i] = (i * (7 - 2 * k) % SIZE + 1.5) / 9 - 0.5 * k;
    tape_begin(&small);
    for (int k = 0; k < 2; k++)
        leaf[k] = ad_leaf(tape, AD_F64, 2, shape, data[k]);
}

/* ---- y = x^3, of any shape ---- */

static int pullbacks; /* that ran */

static ad_status cube(ad_custom_call *c, void *payload)
{
    (void)payload;
    ck_assert_ptr_null(c->own);
    ck_assert_ptr_null(c->in_adjoint);
    for (int64_t i = 0; i < c->in[0].size; i++) {
        const double x = ((const double *)c->in[0].data)[i];
        ((double *)c->out[0].data)[i] = x * x * x;
    }
    return AD_OK;
}

static ad_status cube_pullback(ad_custom_call *c, void *payload)
{
    (void)payload;
    pullbacks++;
    ck_assert_ptr_null(c->out[0].data);
    for (int64_t i = 0; i < c->in[0].size; i++) {
        const double x = ((const double *)c->in[0].data)[i];
        ((double *)c->in_adjoint[0].data)[i] +=
            3 * x * x * ((const double *)c->out_adjoint[0].data)[i];
    }
    return AD_OK;
}

static ad_status cube_graph(ad_custom_graph_call *c, void *payload)
{
    (void)payload;
    ck_assert_uint_eq(c->out[0].value, 0);
    c->in_adjoint[0] = ad_mul(c->out_adjoint[0], ad_scale(ad_square(c->in[0]), 3));
    return AD_OK;
}

static const ad_custom_rule cube_rule = {.name = "cube",
                                         .forward = cube,
                                         .pullback = cube_pullback,
                                         .graph = cube_graph,
                                         .saves = AD_SAVES_OPERANDS};

static ad_tensor cubed(ad_tensor x)
{
    ad_tensor y;
    ad_custom(tape, &cube_rule, NULL, 1, &x, 1, &y);
    return y;
}

static ad_tensor cubed_by_ops(ad_tensor x)
{
    return ad_mul(ad_mul(x, x), x);
}

/* ---- u = a b, v = sum of exp a, i = the sign of b: several results, of other shapes ---- */

static ad_status several_shape(ad_custom_call *c, void *payload)
{
    (void)payload;
    ck_assert_ptr_null(c->in[0].data);
    ck_assert_int_eq(c->out[1].rank, 2); /* as in[0] so far */
    c->out[1].rank = 0;
    c->out[2].dtype = AD_I64;
    c->own_bytes = (size_t)c->in[0].size * sizeof(double);
    return AD_OK;
}

static ad_status several(ad_custom_call *c, void *payload)
{
    (void)payload;
    const double *a = c->in[0].data, *b = c->in[1].data;
    double sum = 0, *u = c->out[0].data, *kept = c->own;
    ck_assert_uint_eq(c->own_bytes, (size_t)c->in[0].size * sizeof(double));
    ck_assert_uint_eq((uintptr_t)c->own % 64, 0);
    for (int64_t i = 0; i < c->in[0].size; i++) {
        u[i] = a[i] * b[i];
        sum += kept[i] = exp(a[i]);
        ((int64_t *)c->out[2].data)[i] = b[i] > 0 ? 1 : -1;
    }
    *(double *)c->out[1].data = sum;
    return AD_OK;
}

static ad_status several_pullback(ad_custom_call *c, void *payload)
{
    (void)payload;
    const double *a = c->in[0].data, *b = c->in[1].data, *kept = c->own;
    const double *u = c->out_adjoint[0].data, *v = c->out_adjoint[1].data;
    double *da = c->in_adjoint[0].data, *db = c->in_adjoint[1].data;
    ck_assert_ptr_null(c->out_adjoint[2].data);
    for (int64_t i = 0; i < c->in[0].size; i++) {
        if (da)
            da[i] += (u ? u[i] * b[i] : 0) + (v ? *v * kept[i] : 0);
        if (db && u)
            db[i] += u[i] * a[i];
    }
    return AD_OK;
}

static ad_status several_graph(ad_custom_graph_call *c, void *payload)
{
    (void)payload;
    const bool u = c->out_adjoint[0].tape != 0, v = c->out_adjoint[1].tape != 0;
    ad_tensor da = {0, 0, 0, 0};
    if (u) {
        da = ad_mul(c->out_adjoint[0], c->in[1]);
        c->in_adjoint[1] = ad_mul(c->out_adjoint[0], c->in[0]);
    }
    if (v) {
        const ad_tensor by_v = ad_mul(ad_exp(c->in[0]), c->out_adjoint[1]);
        da = u ? ad_add(da, by_v) : by_v;
    }
    c->in_adjoint[0] = da;
    return AD_OK;
}

static const ad_custom_rule several_rule = {.name = "several",
                                            .shape = several_shape,
                                            .forward = several,
                                            .pullback = several_pullback,
                                            .graph = several_graph,
                                            .saves = AD_SAVES_OPERANDS};

/* A function of both results: by the rule, or by ops. */
static ad_tensor mixed(const ad_tensor *x, bool by_ops)
{
    ad_tensor y[3];
    if (by_ops) {
        y[0] = ad_mul(x[0], x[1]);
        y[1] = ad_sum(ad_exp(x[0]));
    } else
        ad_custom(tape, &several_rule, NULL, 2, x, 3, y);
    return ad_mul(ad_sum(ad_square(y[0])), ad_log(y[1]));
}

static void gradients_of(ad_tensor y, double g[2][SIZE])
{
    ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
    ck_assert_msg(ad_backward(y) == AD_OK, "%s", ad_tape_message(tape));
    for (int k = 0; k < 2; k++)
        ck_assert_int_eq(ad_gradient(leaf[k], g[k], SIZE), AD_OK);
}

static void check_near(double got[2][SIZE], double want[2][SIZE])
{
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < SIZE; i++)
            ck_assert_double_eq_tol(got[k][i], want[k][i], 1e-13 * (1 + fabs(want[k][i])));
}

/* ---- values and first derivatives ---- */

TEST(values_and_gradients_are_those_of_ops)
{
    double got[2][SIZE], want[2][SIZE], value[SIZE];
    ad_tensor y[3];
    ck_assert_int_eq(ad_custom(tape, &several_rule, NULL, 2, leaf, 3, y), AD_OK);
    ck_assert_int_eq(ad_rank(y[1]), 0);
    ck_assert_int_eq(ad_dtype_of(y[2]), AD_I64);
    ck_assert_int_eq(ad_value(y[0], value, SIZE), AD_OK);
    double sum = 0;
    for (int i = 0; i < SIZE; i++) {
        ck_assert_double_eq(value[i], data[0][i] * data[1][i]);
        sum += exp(data[0][i]);
    }
    ck_assert_double_eq(ad_item(y[1]), sum);
    for (int k = 0; k < 2; k++) { /* one result alone, then both */
        const ad_tensor s = ad_sum(y[k]);
        gradients_of(s, got);
        for (int i = 0; i < SIZE; i++) {
            ck_assert_double_eq(got[0][i], k ? exp(data[0][i]) : data[1][i]);
            ck_assert_double_eq(got[1][i], k ? 0 : data[0][i]);
        }
    }
    gradients_of(mixed(leaf, false), got);
    gradients_of(mixed(leaf, true), want);
    check_near(got, want);
}

TEST(adjoints_are_added_to_what_other_uses_gave_and_one_tensor_may_be_two_operands)
{
    double got[2][SIZE];
    ad_tensor both[2] = {leaf[0], leaf[0]}, y[3];
    ck_assert_int_eq(ad_custom(tape, &several_rule, NULL, 2, both, 3, y), AD_OK);
    const ad_tensor loss = ad_sum(ad_add(ad_add(ad_square(leaf[0]), y[0]), ad_scale(leaf[0], 5)));
    gradients_of(loss, got);
    for (int i = 0; i < SIZE; i++)
        ck_assert_double_eq_tol(got[0][i], 4 * data[0][i] + 5, 1e-14);
    ck_assert_int_eq(ad_backward(loss), AD_OK); /* and to a gradient that is there */
    ck_assert_int_eq(ad_gradient(leaf[0], got[0], SIZE), AD_OK);
    for (int i = 0; i < SIZE; i++)
        ck_assert_double_eq_tol(got[0][i], 2 * (4 * data[0][i] + 5), 1e-14);
}

TEST(views_with_gaps_come_without_gaps)
{
    double got[2][SIZE], want[2][SIZE];
    const ad_tensor weights = ad_transpose(leaf[1]);
    gradients_of(ad_sum(ad_mul(cubed(ad_transpose(leaf[0])), weights)), got);
    gradients_of(ad_sum(ad_mul(cubed_by_ops(ad_transpose(leaf[0])), weights)), want);
    check_near(got, want);
}

static ad_status pick(ad_custom_call *c, void *payload)
{
    (void)payload;
    for (int64_t i = 0; i < c->in[0].size; i++)
        ((double *)c->out[0].data)[i] = (double)((const int64_t *)c->in[1].data)[i];
    return AD_OK;
}

TEST(views_of_integers_come_without_gaps)
{
    static const int64_t numbers[SIZE] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    const ad_custom_rule rule = {.name = "pick", .forward = pick, .pullback = cube_pullback};
    double got[SIZE];
    const ad_tensor in[2] = {
        ad_transpose(leaf[0]),
        ad_permute(ad_constant(tape, AD_I64, 2, shape, numbers), (int64_t[]){1, 0}, 2)};
    ad_tensor y;
    ck_assert_msg(ad_custom(tape, &rule, NULL, 2, in, 1, &y) == AD_OK, "%s", ad_tape_message(tape));
    ck_assert_int_eq(ad_value(y, got, SIZE), AD_OK);
    for (int i = 0; i < SIZE; i++) {
        const int from = i % ROWS * COLUMNS + i / ROWS;
        ck_assert_double_eq(got[i], (double)numbers[from]);
    }
}

/* What has no elements, and a constant, which is recorded nowhere. */
TEST(nothing_is_recorded_without_a_gradient_and_empty_tensors_pass)
{
    const ad_tensor none = ad_leaf(tape, AD_F64, 1, (int64_t[]){0}, NULL);
    ck_assert_int_eq(ad_backward(ad_sum(cubed(none))), AD_OK);
    const ad_stats before = stats();
    ad_tensor y[3], in[2] = {ad_detach(leaf[0]), ad_detach(leaf[1])};
    ck_assert_int_eq(ad_custom(tape, &several_rule, NULL, 2, in, 3, y), AD_OK);
    ck_assert_uint_eq(stats().records, before.records);
    ck_assert_int_eq(ad_tape_no_grad_begin(tape), AD_OK);
    ck_assert_int_eq(ad_custom(tape, &several_rule, NULL, 2, leaf, 3, y), AD_OK);
    ck_assert_int_eq(ad_tape_no_grad_end(tape), AD_OK);
    ck_assert_uint_eq(stats().records, before.records);
    ad_saved saved;
    ck_assert_int_eq(ad_tape_saved_for_backward(tape, &saved), AD_OK);
    ck_assert_uint_eq(saved.buffer_bytes, 0); /* own bytes are gone, too */
    ck_assert_int_eq(ad_backward(ad_sum(y[0])), AD_ERROR_STATE);
    ad_tape_clear_error(tape);
}

/* ---- what is saved ---- */

static const ad_custom_rule saves_nothing = {
    .name = "saves_nothing", .forward = cube, .pullback = cube_pullback};

static ad_status exp_forward(ad_custom_call *c, void *payload)
{
    (void)payload;
    for (int64_t i = 0; i < c->in[0].size; i++)
        ((double *)c->out[0].data)[i] = exp(((const double *)c->in[0].data)[i]);
    return AD_OK;
}

static ad_status exp_pullback(ad_custom_call *c, void *payload)
{
    (void)payload;
    ck_assert_ptr_null(c->in[0].data);
    for (int64_t i = 0; i < c->in[0].size; i++)
        ((double *)c->in_adjoint[0].data)[i] +=
            ((const double *)c->out[0].data)[i] * ((const double *)c->out_adjoint[0].data)[i];
    return AD_OK;
}

static ad_status exp_graph(ad_custom_graph_call *c, void *payload)
{
    (void)payload;
    c->in_adjoint[0] = ad_mul(c->out[0], c->out_adjoint[0]);
    return AD_OK;
}

static const ad_custom_rule exp_rule = {.name = "own_exp",
                                        .forward = exp_forward,
                                        .pullback = exp_pullback,
                                        .graph = exp_graph,
                                        .saves = AD_SAVES_RESULTS};

static uint64_t saved_bytes(void)
{
    ad_saved saved;
    ck_assert_int_eq(ad_tape_saved_for_backward(tape, &saved), AD_OK);
    return saved.buffer_bytes;
}

TEST(what_a_rule_saves_stays_and_nothing_else)
{
    const uint64_t n = SIZE * sizeof(double);
    const ad_mark mark = ad_tape_mark(tape);
    ad_tensor h, y[3];
    ad_frame frame = ad_frame_begin(tape);
    h = ad_scale(leaf[0], 2);
    ck_assert_int_eq(ad_custom(tape, &saves_nothing, NULL, 1, &h, 1, &h), AD_OK);
    ck_assert_int_eq(ad_frame_end(frame, NULL, 0), AD_OK);
    ck_assert_uint_eq(saved_bytes(), 0);
    frame = ad_frame_begin(tape);
    h = cubed(ad_scale(leaf[0], 2));
    ck_assert_int_eq(ad_frame_end(frame, NULL, 0), AD_OK);
    ck_assert_uint_eq(saved_bytes(), n); /* the operand */
    frame = ad_frame_begin(tape);
    h = ad_scale(leaf[0], 2);
    ck_assert_int_eq(ad_custom(tape, &exp_rule, NULL, 1, &h, 1, &h), AD_OK);
    ck_assert_int_eq(ad_frame_end(frame, NULL, 0), AD_OK);
    ck_assert_uint_eq(saved_bytes(), 2 * n); /* and the result */
    frame = ad_frame_begin(tape);
    ck_assert_int_eq(ad_custom(tape, &several_rule, NULL, 2, leaf, 3, y), AD_OK);
    ck_assert_int_eq(ad_frame_end(frame, NULL, 0), AD_OK);
    ck_assert_uint_eq(saved_bytes(), 3 * n); /* and bytes of its own; leaves are the user's */
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    ck_assert_uint_eq(saved_bytes(), 0);
}

static ad_tensor chain(ad_tensor x, bool by_ops)
{
    ad_tensor h = ad_tanh(by_ops ? cubed_by_ops(x) : cubed(x));
    if (by_ops)
        h = ad_exp(h);
    else
        ad_custom(tape, &exp_rule, NULL, 1, &h, 1, &h);
    ad_tensor in[2] = {h, ad_sin(leaf[1])};
    return mixed(in, by_ops);
}

TEST(frames_and_a_sweep_that_releases_change_no_gradient)
{
    double got[2][SIZE], want[2][SIZE];
    gradients_of(chain(leaf[0], true), want);
    const ad_frame frame = ad_frame_begin(tape);
    ad_tensor y = chain(leaf[0], false);
    ck_assert_int_eq(ad_frame_end(frame, &y, 1), AD_OK);
    gradients_of(y, got);
    check_near(got, want);
    gradients_of(y, got);
    check_near(got, want);
    ad_tensor g[2]; /* its handles were released, for the graph they are there */
    ck_assert_msg(ad_create_graph(y, ones, 2, leaf, g) == AD_OK, "%s", ad_tape_message(tape));
    for (int k = 0; k < 2; k++)
        ck_assert_int_eq(ad_value(g[k], got[k], SIZE), AD_OK);
    check_near(got, want);
    ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
    ck_assert_int_eq(ad_backward_release(y), AD_OK);
    for (int k = 0; k < 2; k++)
        ck_assert_int_eq(ad_gradient(leaf[k], got[k], SIZE), AD_OK);
    check_near(got, want);
    ck_assert_int_eq(ad_backward(y), AD_ERROR_STATE);
    ad_tape_clear_error(tape);
}

TEST(a_released_tape_names_the_op)
{
    const ad_tensor y = cubed(ad_exp(leaf[0]));
    ck_assert_int_eq(ad_backward_release(ad_sum(y)), AD_OK);
    ck_assert_int_eq(ad_create_graph(ad_sum(ad_square(leaf[0])), ones, 1, leaf, &leaf[1]), AD_OK);
    const ad_tensor again = cubed(ad_exp(leaf[0])), s = ad_sum(again);
    ck_assert_int_eq(ad_backward_release(s), AD_OK);
    ck_assert_int_eq(ad_backward(s), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "has passed");
}

static ad_tensor leaked;

static ad_status leaking_graph(ad_custom_graph_call *c, void *payload)
{
    leaked = c->in[0];
    return cube_graph(c, payload);
}

TEST(a_released_operand_is_there_for_graph_and_afterwards_no_more)
{
    ad_custom_rule rule = cube_rule;
    ad_tensor y, g;
    rule.graph = leaking_graph;
    const ad_frame frame = ad_frame_begin(tape);
    ad_tensor h = ad_exp(leaf[0]);
    ck_assert_int_eq(ad_custom(tape, &rule, NULL, 1, &h, 1, &y), AD_OK);
    y = ad_sum(y);
    ck_assert_int_eq(ad_frame_end(frame, &y, 1), AD_OK);
    ck_assert_int_eq(ad_create_graph(y, ones, 1, leaf, &g), AD_OK);
    ck_assert_uint_eq(leaked.value, h.value);
    ck_assert_uint_eq(ad_sum(leaked).value, 0);
    check_error_in(tape, AD_ERROR_HANDLE, "was released at the end of its frame", "test_custom.c");
}

/* ---- checkpoints ---- */

static void part(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                 void *payload)
{
    (void)on;
    (void)n_in;
    (void)n_out;
    (void)payload;
    out[0] = chain(in[0], false);
}

TEST(within_a_checkpoint_it_is_computed_again)
{
    double got[2][SIZE], want[2][SIZE];
    ad_tensor y, in = leaf[0], g[2];
    gradients_of(chain(leaf[0], true), want);
    ck_assert_int_eq(ad_checkpoint(tape, part, NULL, 1, &in, 1, &y), AD_OK);
    gradients_of(y, got);
    check_near(got, want);
    ck_assert_int_eq(ad_create_graph(y, ones, 2, leaf, g), AD_OK);
    for (int k = 0; k < 2; k++)
        ck_assert_int_eq(ad_value(g[k], got[k], SIZE), AD_OK);
    check_near(got, want);
}

static void fickle(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                   void *payload)
{
    int *calls = payload;
    (void)n_out;
    ad_custom(on, ++*calls > 1 ? &exp_rule : &cube_rule, NULL, n_in, in, 1, out);
}

TEST(a_checkpoint_whose_op_is_another_the_second_time_is_told)
{
    int calls = 0;
    ad_tensor y;
    ck_assert_int_eq(ad_checkpoint(tape, fickle, &calls, 1, leaf, 1, &y), AD_OK);
    ck_assert_int_eq(ad_backward(ad_sum(y)), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "did not do the same");
}

/* ---- differences, and second derivatives ---- */

static ad_tensor function(ad_tape on, const ad_tensor *x, int n, void *payload)
{
    (void)on;
    (void)n;
    (void)payload;
    return ad_add(chain(x[0], false), ad_mul(mixed(x, false), ad_sum(cubed(ad_transpose(x[1])))));
}

static ad_tensor derivative(ad_tape on, const ad_tensor *x, int n, void *payload)
{
    ad_tensor g[2];
    if (ad_create_graph(function(on, x, n, payload), ones, n, x, g) != AD_OK)
        return x[0];
    return ad_add(g[0], ad_sin(g[1]));
}

TEST(derivatives_first_and_second_are_those_of_differences)
{
    ad_gradient_report report;
    ck_assert_msg(ad_check_gradient(tape, function, 2, leaf, 1e-6, NULL, &report) == AD_OK, "%s",
                  report.message);
    ck_assert_msg(ad_check_gradient(tape, derivative, 2, leaf, 1e-6, NULL, &report) == AD_OK,
                  "%s%s", report.message, ad_tape_message(tape));
    ck_assert_int_eq(report.compared, 2 * SIZE);
}

TEST(rules_are_checked)
{
    ad_gradient_report report;
    const struct {
        const ad_custom_rule *rule;
        int n, n_out;
    } of[] = {{&cube_rule, 1, 1}, {&several_rule, 2, 3}, {&exp_rule, 1, 1}};
    const ad_stats before = stats();
    for (int k = 0; k < 3; k++) {
        const ad_status status =
            ad_check_custom(tape, of[k].rule, NULL, of[k].n, leaf, of[k].n_out, 1e-6, &report);
        ck_assert_msg(status == AD_OK, "%d: %s%s", k, report.message, ad_tape_message(tape));
        ck_assert_int_eq(report.compared, of[k].n * SIZE);
        ck_assert_int_eq(report.wrong, 0);
    }
    ck_assert_uint_eq(stats().records, before.records);
    ck_assert_uint_eq(stats().values, before.values);
}

static ad_status cube_pullback_wrong(ad_custom_call *c, void *payload)
{
    const ad_status status = cube_pullback(c, payload);
    ((double *)c->in_adjoint[0].data)[5] += 0.125;
    return status;
}

static ad_status cube_graph_wrong(ad_custom_graph_call *c, void *payload)
{
    (void)payload;
    c->in_adjoint[0] = ad_mul(c->out_adjoint[0], ad_scale(ad_square(c->in[0]), 2));
    return AD_OK;
}

/* The value is right, its derivative is not. */
static ad_status cube_graph_detached(ad_custom_graph_call *c, void *payload)
{
    (void)payload;
    c->in_adjoint[0] = ad_mul(c->out_adjoint[0], ad_scale(ad_square(ad_detach(c->in[0])), 3));
    return AD_OK;
}

static ad_tensor wrong_function(ad_tape on, const ad_tensor *x, int n, void *payload)
{
    ad_tensor y = ad_tanh(x[0]);
    ad_custom(on, payload, NULL, n, &y, 1, &y);
    return ad_sum(ad_square(y));
}

static void check_told(ad_status status, const ad_gradient_report *report, const char *words)
{
    ck_assert_int_eq(status, AD_ERROR_GRADIENT);
    ck_assert_msg(strstr(report->message, words) != NULL, "%s", report->message);
    ck_assert_int_eq(ad_tape_status((ad_tape){0}), AD_ERROR_GRADIENT);
    ad_tape_clear_error((ad_tape){0});
}

TEST(a_wrong_rule_is_named)
{
    ad_gradient_report report;
    ad_custom_rule rule = cube_rule;
    rule.pullback = cube_pullback_wrong;
    check_told(ad_check_custom(tape, &rule, NULL, 1, leaf, 1, 1e-6, &report), &report,
               "check_custom: 1 of 12 derivatives disagree, the worst of x[0] element 5");
    ck_assert_str_eq(report.op, "cube");
    check_told(ad_check_gradient(tape, wrong_function, 1, leaf, 1e-6, &rule, &report), &report,
               "cube at test_custom.c");
    ck_assert_str_eq(report.op, "cube");
    rule = cube_rule;
    rule.graph = cube_graph_wrong;
    check_told(ad_check_custom(tape, &rule, NULL, 1, leaf, 1, 1e-6, &report), &report,
               "check_custom: graph of cube gives");
    ck_assert_int_eq(report.leaf, 0);
    rule.graph = cube_graph_detached;
    check_told(ad_check_custom(tape, &rule, NULL, 1, leaf, 1, 1e-6, &report), &report,
               "check_custom: graph: 12 of 12 derivatives disagree");
}

/* ---- what the rule's functions do wrong ---- */

static ad_status failing(ad_custom_call *c, void *payload)
{
    if (payload)
        strcpy(c->message, payload);
    return AD_ERROR_VALUE;
}

static ad_status failing_without_a_status(ad_custom_call *c, void *payload)
{
    (void)c;
    (void)payload;
    return (ad_status)77;
}

static ad_status shape_of_rank_9(ad_custom_call *c, void *payload)
{
    (void)payload;
    c->out[0].rank = 9;
    return AD_OK;
}

static ad_status shape_negative(ad_custom_call *c, void *payload)
{
    (void)payload;
    c->out[0].shape[1] = -2;
    return AD_OK;
}

static ad_status shape_huge(ad_custom_call *c, void *payload)
{
    (void)payload;
    c->out[0].shape[0] = c->out[0].shape[1] = INT64_C(1) << 40;
    return AD_OK;
}

static ad_status shape_of_no_dtype(ad_custom_call *c, void *payload)
{
    (void)payload;
    c->out[0].dtype = (ad_dtype)5;
    return AD_OK;
}

static ad_status uses_the_tape(ad_custom_call *c, void *payload)
{
    ck_assert_uint_eq(ad_sum(leaf[0]).value, 0);
    ck_assert_int_eq(ad_tape_reset(tape), AD_ERROR_STATE);
    check_error_of((ad_tape){0}, AD_ERROR_STATE, "not while a callback of one of its records runs");
    return cube(c, payload);
}

static ad_status nan_forward(ad_custom_call *c, void *payload)
{
    const ad_status status = cube(c, payload);
    ((double *)c->out[0].data)[7] = NAN;
    return status;
}

static ad_status inf_pullback(ad_custom_call *c, void *payload)
{
    const ad_status status = cube_pullback(c, payload);
    ((double *)c->in_adjoint[0].data)[2] = INFINITY;
    return status;
}

/* The call fails with this and leaves nothing. */
static void check_refused(const ad_custom_rule *rule, void *payload, ad_status status,
                          const char *words)
{
    const ad_stats before = stats();
    ad_tensor y;
    ck_assert_int_eq(ad_custom(tape, rule, payload, 1, leaf, 1, &y), status);
    ck_assert_uint_eq(y.value, 0);
    check_error_in(tape, status, words, "test_custom.c");
    ck_assert_uint_eq(stats().values, before.values);
    ck_assert_uint_eq(stats().records, before.records);
    ck_assert_uint_eq(stats().live_bytes, before.live_bytes);
}

TEST(what_a_function_does_wrong_names_the_op_and_the_line)
{
    ad_custom_rule rule = cube_rule;
    rule.forward = failing;
    check_refused(&rule, "too cold", AD_ERROR_VALUE, "cube: its forward failed: too cold");
    check_refused(&rule, NULL, AD_ERROR_VALUE, "forward failed: an operand's value is refused");
    rule.forward = failing_without_a_status;
    check_refused(&rule, NULL, AD_ERROR_STATE, "cube: its forward failed");
    rule = cube_rule;
    rule.shape = failing;
    check_refused(&rule, "no shape", AD_ERROR_VALUE, "cube: its shape failed: no shape");
    rule.shape = shape_of_rank_9;
    check_refused(&rule, NULL, AD_ERROR_SHAPE, "cube: result 0: rank 9 is not in");
    rule.shape = shape_negative;
    check_refused(&rule, NULL, AD_ERROR_SHAPE, "cube: result 0: extent 1 is negative");
    rule.shape = shape_huge;
    check_refused(&rule, NULL, AD_ERROR_SHAPE, "cube: result 0: the size of the shape overflows");
    rule.shape = shape_of_no_dtype;
    check_refused(&rule, NULL, AD_ERROR_DTYPE, "cube: result 0: 5 is no dtype");
    rule = cube_rule;
    rule.own_bytes = 1 << 30;
    check_refused(&rule, NULL, AD_ERROR_MEMORY, "cube: out of memory");
    rule = cube_rule;
    rule.forward = uses_the_tape;
    ad_tensor y;
    ck_assert_int_eq(ad_custom(tape, &rule, NULL, 1, leaf, 1, &y), AD_OK);
}

TEST(numbers_that_are_trapped_name_the_op)
{
    ad_custom_rule rule = cube_rule;
    ad_tensor y;
    ck_assert_int_eq(ad_tape_trap(tape, AD_TRAP_ALL), AD_OK);
    rule.forward = nan_forward;
    check_refused(&rule, NULL, AD_ERROR_NONFINITE, "cube: value nan of element [1,3]");
    rule = cube_rule;
    rule.pullback = inf_pullback;
    ck_assert_int_eq(ad_custom(tape, &rule, NULL, 1, leaf, 1, &y), AD_OK);
    ck_assert_int_eq(ad_backward(ad_sum(y)), AD_ERROR_NONFINITE);
    check_error_in(tape, AD_ERROR_NONFINITE, "cube: adjoint inf of element [0,2] of operand 1",
                   "test_custom.c");
}

TEST(a_pullback_that_fails_fails_its_sweep)
{
    ad_custom_rule rule = cube_rule;
    double g[SIZE];
    ad_tensor y;
    rule.pullback = failing;
    ck_assert_int_eq(ad_custom(tape, &rule, "no way back", 1, leaf, 1, &y), AD_OK);
    ck_assert_int_eq(ad_backward(ad_sum(y)), AD_ERROR_VALUE);
    check_error_in(tape, AD_ERROR_VALUE, "cube: its pullback failed: no way back; the call is at",
                   "test_custom.c");
    ck_assert_int_eq(ad_gradient(leaf[0], g, SIZE), AD_ERROR_STATE);
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_backward(ad_sum(cubed(leaf[0]))), AD_OK);
}

static ad_status graph_of_another_shape(ad_custom_graph_call *c, void *payload)
{
    (void)payload;
    c->in_adjoint[0] = ad_sum(c->in[0]);
    return AD_OK;
}

static ad_status graph_of_another_dtype(ad_custom_graph_call *c, void *payload)
{
    (void)payload;
    c->in_adjoint[0] = ad_cast(c->in[0], AD_F32);
    return AD_OK;
}

static ad_status graph_that_fails(ad_custom_graph_call *c, void *payload)
{
    (void)payload;
    strcpy(c->message, "not today");
    return AD_ERROR_LIMIT;
}

static ad_status graph_whose_op_fails(ad_custom_graph_call *c, void *payload)
{
    (void)payload;
    c->in_adjoint[0] = ad_matmul(c->in[0], c->in[0]);
    return AD_OK;
}

static ad_status graph_that_sweeps(ad_custom_graph_call *c, void *payload)
{
    (void)payload;
    return ad_backward(ad_sum(c->in[0]));
}

static ad_status graph_that_resets(ad_custom_graph_call *c, void *payload)
{
    (void)payload;
    return ad_tape_reset(c->tape);
}

TEST(what_a_graph_does_wrong_is_told_and_leaves_nothing)
{
    static const struct {
        ad_custom_graph_function *graph;
        ad_status status;
        const char *words;
    } wrong[] = {
        {NULL, AD_ERROR_STATE, "create_graph: cube has a pullback but no rule"},
        {graph_of_another_shape, AD_ERROR_SHAPE,
         "cube: in_adjoint[0] of its graph is f64 [], the operand is f64 [3,4]"},
        {graph_of_another_dtype, AD_ERROR_DTYPE, "in_adjoint[0] of its graph is f32 [3,4]"},
        {graph_that_fails, AD_ERROR_LIMIT, "cube: its graph failed: not today"},
        {graph_whose_op_fails, AD_ERROR_SHAPE, "matmul: f64 [3,4] x f64 [3,4]"},
        {graph_that_sweeps, AD_ERROR_STATE,
         "backward: not while a custom op's graph function runs"},
        {graph_that_resets, AD_ERROR_STATE, "not while a custom op's graph function runs"}};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        ad_custom_rule rule = cube_rule;
        ad_tensor y, g;
        rule.graph = wrong[k].graph;
        ck_assert_int_eq(ad_custom(tape, &rule, NULL, 1, leaf, 1, &y), AD_OK);
        y = ad_sum(y);
        const ad_stats before = stats();
        ck_assert_int_eq(ad_create_graph(y, ones, 1, leaf, &g), wrong[k].status);
        ck_assert_uint_eq(g.value, 0);
        check_error_in(tape, wrong[k].status, wrong[k].words, "test_custom.c");
        ck_assert_uint_eq(stats().values, before.values);
        ck_assert_uint_eq(stats().records, before.records);
        ck_assert_int_eq(ad_backward(y), AD_OK);
    }
}

/* ---- what the caller does wrong ---- */

TEST(arguments_are_checked)
{
    ad_custom_rule rule = cube_rule;
    ad_tensor y;
    check_refused(NULL, NULL, AD_ERROR_ARGUMENT, "custom: rule is a null pointer");
    rule.name = NULL;
    check_refused(&rule, NULL, AD_ERROR_ARGUMENT, "custom: the rule's name is a null pointer");
    rule = cube_rule;
    rule.forward = NULL;
    check_refused(&rule, NULL, AD_ERROR_ARGUMENT, "cube: the rule's forward is a null pointer");
    rule = cube_rule;
    rule.pullback = NULL;
    check_refused(&rule, NULL, AD_ERROR_ARGUMENT, "cube: the rule's pullback is a null pointer");
    rule = cube_rule;
    rule.saves = 32 | AD_SAVES_OPERANDS;
    check_refused(&rule, NULL, AD_ERROR_ARGUMENT,
                  "cube: 0x20 in `saves` is no flag: those are AD_SAVES_OPERANDS, "
                  "AD_SAVES_RESULTS, AD_SWEPT_ALWAYS, AD_WRITES_FRESH and AD_SWEPT_COMPLETE");
    ck_assert_int_eq(ad_custom(tape, &cube_rule, NULL, 0, leaf, 1, &y), AD_ERROR_ARGUMENT);
    check_error(AD_ERROR_ARGUMENT, "cube: 0 operands and 1 results");
    ck_assert_int_eq(ad_custom(tape, &cube_rule, NULL, 1, leaf, 0, &y), AD_ERROR_ARGUMENT);
    check_error(AD_ERROR_ARGUMENT, "cube: 1 operands and 0 results");
    ck_assert_int_eq(ad_custom(tape, &cube_rule, NULL, 1, NULL, 1, &y), AD_ERROR_ARGUMENT);
    check_error(AD_ERROR_ARGUMENT, "cube: in is a null pointer");
    ck_assert_int_eq(ad_custom(tape, &cube_rule, NULL, 1, leaf, 1, NULL), AD_ERROR_ARGUMENT);
    check_error(AD_ERROR_ARGUMENT, "cube: out is a null pointer");
    const ad_tensor none = {0, 0, 0, 0};
    ck_assert_int_eq(ad_custom(tape, &cube_rule, NULL, 1, &none, 1, &y), AD_ERROR_HANDLE);
    check_error(AD_ERROR_HANDLE, "cube: in[0] is a handle of zeros");
    ck_assert_int_eq(ad_custom((ad_tape){0}, &cube_rule, NULL, 1, leaf, 1, &y), AD_ERROR_HANDLE);
    check_error_of((ad_tape){0}, AD_ERROR_HANDLE, "cube: the handle is zero");
    ad_tape other;
    ck_assert_int_eq(ad_tape_create(&other, NULL), AD_OK);
    ck_assert_int_eq(ad_custom(other, &cube_rule, NULL, 1, leaf, 1, &y), AD_ERROR_TAPE);
    check_error_of(other, AD_ERROR_TAPE, "cube: in[0] is of another tape");
    ck_assert_int_eq(ad_tape_destroy(other), AD_OK);
    ad_gradient_report report;
    ck_assert_int_eq(ad_check_custom(tape, NULL, NULL, 1, leaf, 1, 1e-6, &report),
                     AD_ERROR_ARGUMENT);
    check_error(AD_ERROR_ARGUMENT, "check_custom: rule is a null pointer");
    ck_assert_int_eq(ad_check_custom(tape, &cube_rule, NULL, 1, leaf, 0, 1e-6, &report),
                     AD_ERROR_ARGUMENT);
    check_error(AD_ERROR_ARGUMENT, "check_custom: n_out must be from 1 to 32");
}

TEST(a_changed_array_is_found)
{
    ad_tensor y = ad_sum(cubed(leaf[0]));
    const double kept = data[0][3];
    data[0][3] = 7;
    ck_assert_int_eq(ad_backward(y), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "cube");
    data[0][3] = kept;
    ck_assert_int_eq(ad_backward(y), AD_OK);
    ad_custom(tape, &exp_rule, NULL, 1, leaf, 1, &y); /* it does not read its operand again */
    y = ad_sum(y);
    data[0][3] = 7;
    ck_assert_int_eq(ad_backward(y), AD_OK);
}

TEST(a_fork_takes_none)
{
    ad_tape fork;
    ad_tensor y;
    ck_assert_int_eq(ad_tape_fork(tape, 1, &fork), AD_OK);
    ck_assert_int_eq(ad_tape_record_begin(fork), AD_OK);
    ck_assert_int_ne(ad_custom(fork, &cube_rule, NULL, 1, leaf, 1, &y), AD_OK);
    check_error_of(fork, AD_ERROR_STATE, "cube: a fork records statements alone");
    ck_assert_int_eq(ad_tape_record_end(fork), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(fork), AD_OK);
}

/* Numbers go in and come out; a sweep over statements comes to the op. */
TEST(between_numbers_it_is_swept)
{
    enum { N = 3 };
    ad_real x[N], z[N];
    double g[N];
    ck_assert_int_eq(ad_tape_record_begin(tape), AD_OK);
    ck_assert_int_eq(ad_real_leaves(tape, N, (double[]){0.5, -2, 3}, x), AD_OK);
    const ad_tensor y = cubed(ad_tensor_of_reals(tape, 1, (int64_t[]){N}, x));
    ck_assert_int_eq(ad_reals_of_tensor(y, N, z), AD_OK);
    const ad_real sum = ad_real_dot(N, z, z);
    ck_assert_int_eq(ad_real_backward(tape, sum), AD_OK);
    ck_assert_int_eq(ad_real_gradients(tape, N, x, g), AD_OK);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq_tol(g[i], 6 * pow(((double[]){0.5, -2, 3})[i], 5), 1e-9);
    ck_assert_int_eq(ad_tape_record_end(tape), AD_OK);
}

TEST(a_pullback_runs_once_for_each_sweep_that_comes_to_it)
{
    const ad_tensor y = ad_sum(cubed(leaf[0])), beside = ad_sum(leaf[1]);
    pullbacks = 0;
    ck_assert_int_eq(ad_backward(beside), AD_OK);
    ck_assert_int_eq(pullbacks, 0);
    ck_assert_int_eq(ad_backward(y), AD_OK);
    ck_assert_int_eq(ad_backward(y), AD_OK);
    ck_assert_int_eq(pullbacks, 2);
}

/* ---- a library of ops: e^x by ops on a tape within the call ---- */

static ad_status within(ad_custom_call *c, const ad_tape *home, bool back)
{
    ad_tape inner;
    const ad_custom_array *in = &c->in[0];
    ad_status status = ad_tape_within(*home, &inner);
    if (status != AD_OK)
        return status;
    const ad_tensor x = ad_leaf(inner, AD_F64, in->rank, in->shape, in->data);
    const ad_tensor y = ad_exp(x);
    if (back) {
        const ad_custom_array *g = &c->out_adjoint[0];
        double *sum = c->in_adjoint[0].data, term[SIZE];
        status = ad_backward_seed(y, ad_constant(inner, AD_F64, in->rank, in->shape, g->data));
        status = status == AD_OK ? ad_gradient(x, term, SIZE) : status;
        for (int i = 0; i < SIZE && status == AD_OK; i++)
            sum[i] += term[i];
    } else {
        status = ad_value(y, c->out[0].data, SIZE);
    }
    /* The tape of the call itself serves nobody meanwhile. */
    ck_assert_int_eq(ad_tape_reset(*home), AD_ERROR_STATE);
    ad_tape_clear_error((ad_tape){0});
    ck_assert_int_eq(ad_tape_destroy(inner), AD_OK);
    return status;
}

static ad_status exp_within(ad_custom_call *c, void *payload)
{
    return within(c, payload, false);
}

static ad_status exp_within_back(ad_custom_call *c, void *payload)
{
    return within(c, payload, true);
}

/* As a function of a library by AD_SITED: its caller is whose line counts. */
__attribute__((noinline)) static ad_tensor library_exp(ad_tensor x, unsigned line)
{
    static const ad_custom_rule rule = {.name = "library_exp",
                                        .forward = exp_within,
                                        .pullback = exp_within_back,
                                        .saves = AD_SAVES_OPERANDS};
    ad_tensor y;
    (void)ad_custom_from(tape, &rule, &tape, 1, &x, 1, &y,
                         __builtin_extract_return_addr(__builtin_return_address(0)), line);
    return y;
}

TEST(an_op_of_a_library_is_on_its_caller_s_line_and_has_a_tape_within)
{
    double got[SIZE];
    char words[64];
    const ad_tensor y = library_exp(leaf[0], 0);
    ck_assert_int_eq(ad_backward(ad_sum(y)), AD_OK);
    ck_assert_int_eq(ad_gradient(leaf[0], got, SIZE), AD_OK);
    for (int i = 0; i < SIZE; i++)
        ck_assert_double_eq_tol(got[i], exp(data[0][i]), 1e-14);
    const unsigned line = __LINE__ + 1;
    (void)library_exp(ones, __LINE__);
    (void)snprintf(words, sizeof words, "at test_custom.c:%u in an_op_of_a_library", line);
    ck_assert_msg(strstr(ad_tape_message(tape), words), "%s", ad_tape_message(tape));
    check_error(AD_ERROR_HANDLE, "library_exp: in[0] is a handle of zeros");
}

TEST(a_tape_within_is_for_functions_that_run)
{
    ad_tape inner = {7, 7};
    ck_assert_int_eq(ad_tape_within(tape, &inner), AD_ERROR_STATE);
    ck_assert_uint_eq(inner.slot, 0);
    ck_assert_int_eq(ad_tape_within((ad_tape){0}, &inner), AD_ERROR_HANDLE);
    ck_assert_int_eq(ad_tape_within((ad_tape){tape.slot, tape.generation + 1}, &inner),
                     AD_ERROR_HANDLE);
    ck_assert_int_eq(ad_tape_within((ad_tape){1 << 16, 1}, &inner), AD_ERROR_HANDLE);
}

RUN_TESTS(setup, teardown_fine)
