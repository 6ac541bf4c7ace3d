/* test_user_checks.c: a user's gradient against finite differences. */
#include "ad_internal.h"

#include "kernel_ops.h"
#include "run_cases.h"
#include "tape_memory.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MIB = 1 << 20 };

static ad_tape tape;
static double p[3], q[2];
static ad_tensor x[2];
static ad_gradient_report report;

static void setup(void)
{
    setenv("TAPESCOPE_MODULE_DIR", TAPESCOPE_LIB_DIR "/tapescope", 1);
    ad_tape_options options = {.reserve_bytes = 64 * MIB, .budget_bytes = 64 * MIB};
    ck_assert_int_eq(ad_tape_create(&tape, &options), AD_OK);
    memcpy(p, (double[]){0.5, -1.25, 2}, sizeof p);
    memcpy(q, (double[]){1.5, -0.75}, sizeof q);
    x[0] = ad_leaf(tape, AD_F64, 1, (int64_t[]){3}, p);
    x[1] = ad_leaf(tape, AD_F64, 2, (int64_t[]){2, 1}, q);
    memset(&report, 0x5a, sizeof report);
}

static void teardown(void)
{
    ad_tape_clear_error((ad_tape){0, 0});
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

/* ---- functions to be checked ---- */

/* [2,3]: broadcasting, an alias, a leaf of its own, a value used twice. */
static ad_tensor smooth(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    static const double c[3] = {0.1, 0.2, 0.3};
    (void)n;
    (void)payload;
    ad_tensor own = ad_leaf(t, AD_F64, 1, (int64_t[]){3}, c);
    ad_tensor h = ad_mul(ad_exp(v[0]), ad_add(v[1], own));
    return ad_add(ad_mul(h, h), ad_tanh(h));
}

static void wrong_pullback(struct kernel_rule *rule)
{
    /* exp' = exp; this one says 1. */
    kernel_accumulate(rule, 0, &kernel_op_copy, 1, &rule->adjoint[0], 0, NULL);
}

static __attribute__((noinline)) ad_tensor wrong_exp(ad_tensor v, unsigned line)
{
    static struct kernel_op op;
    op = kernel_op_exp;
    op.pullback = wrong_pullback;
    struct tape_site site = {(uintptr_t)__builtin_return_address(0), line};
    return ad_apply(&op, 1, &v, 0, NULL, site);
}

static int wrong_line;
static ad_tensor with_wrong_op(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    ad_tensor h = ad_square(v[0]);
    wrong_line = __LINE__ + 1;
    h = wrong_exp(h, __LINE__);
    (void)t, (void)n, (void)payload;
    return ad_sum(ad_tanh(h));
}

/* Before the wrong op: one operand twice, f32, integers and two results, and a leaf by itself. */
static ad_tensor with_wrong_op_at_the_end(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    static const int64_t label = 2;
    static const double none;
    ad_tensor h = ad_mul(v[0], v[0]), narrow = ad_cast(ad_exp(ad_cast(v[0], AD_F32)), AD_F64);
    ad_tensor row = ad_reshape(h, (int64_t[]){1, 3}, 2);
    ad_tensor loss =
        ad_softmax_cross_entropy(row, ad_constant(t, AD_I64, 1, (int64_t[]){1}, &label));
    ad_tensor empty = ad_sum(ad_exp(ad_leaf(t, AD_F64, 1, (int64_t[]){0}, &none)));
    h = ad_add(ad_add(h, ad_scale(narrow, 1e-30)), ad_add(loss, empty));
    (void)n, (void)payload;
    wrong_line = __LINE__ + 1;
    return ad_sum(wrong_exp(h, __LINE__));
}

static ad_tensor with_kink(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    (void)t, (void)n, (void)payload;
    return ad_sum(ad_relu(v[0]));
}

static ad_tensor detached(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    (void)t, (void)n, (void)payload;
    return ad_sum(ad_mul(v[0], ad_detach(v[0])));
}

/* Changes an operand between the op and the sweep. */
static ad_tensor meddling(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    static double c[3];
    (void)n, (void)payload;
    c[0] = c[1] = c[2] = 1;
    ad_tensor y = ad_sum(ad_mul(v[0], ad_constant(t, AD_F64, 1, (int64_t[]){3}, c)));
    c[1] = 5;
    return y;
}

/* Values from before the call are constants, whatever they were computed from. */
static ad_tensor with_older_value(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    (void)t, (void)n;
    return ad_mul(v[0], *(ad_tensor *)payload);
}

static ad_tensor mistaken(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    (void)t, (void)n, (void)payload;
    return ad_matmul(v[1], v[1]);
}

static ad_tensor resetting(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    (void)v, (void)n, (void)payload;
    ad_tape_reset(t);
    return ad_scalar_f64(t, 1);
}

static ad_tensor destroying(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    (void)n, (void)payload;
    ad_tape_destroy(t);
    return v[0];
}

static ad_tensor marking(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    (void)n, (void)payload;
    ad_mark mark = ad_tape_mark(t);
    ad_exp(v[0]);
    ad_tape_rewind(t, mark);
    return ad_square(v[0]);
}

static ad_tensor growing(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    (void)t, (void)n;
    int *calls = payload;
    return (*calls)++ ? v[0] : ad_sum(v[0]);
}

/* A derivative of a derivative. */
static ad_tensor second(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    ad_tensor g = {0, 0, 0, 0};
    (void)t, (void)n, (void)payload;
    ck_assert_int_eq(ad_create_graph(ad_sum(ad_exp(v[0])), (ad_tensor){0, 0, 0, 0}, 1, v, &g),
                     AD_OK);
    return g;
}

/* ---- gradients ---- */

TEST(a_right_gradient_agrees_and_leaves_no_trace)
{
    double before[3], after[3], buffer[2] = {7, 8}, kept[3], keep[3];
    ad_tensor h = ad_square(x[0]);
    ck_assert_int_eq(ad_retain_gradient(h), AD_OK);
    ck_assert_int_eq(ad_backward(ad_sum(h)), AD_OK);
    ck_assert_int_eq(ad_gradient_buffer(x[1], buffer, 2), AD_OK);
    ad_mark mark = ad_tape_mark(tape);
    ad_stats was, is;
    ad_tape_stats(tape, &was);
    ck_assert_int_eq(ad_gradient(x[0], before, 3), AD_OK);
    ck_assert_int_eq(ad_gradient(h, kept, 3), AD_OK);
    ck_assert_msg(ad_check_gradient(tape, smooth, 2, x, 1e-8, NULL, &report) == AD_OK, "%s",
                  report.message);
    ck_assert_int_eq(report.compared, 5);
    ck_assert_int_eq(report.wrong, 0);
    ck_assert_str_eq(report.message, "");
    ck_assert_ptr_null(report.op);
    ck_assert(report.difference > 0 && report.difference < 1e-8);
    ad_tape_stats(tape, &is);
    ck_assert_uint_eq(is.values, was.values);
    ck_assert_uint_eq(is.records, was.records);
    ck_assert_uint_eq(is.live_bytes, was.live_bytes);
    ck_assert_double_eq(p[1], -1.25);
    ck_assert_int_eq(ad_gradient(x[0], after, 3), AD_OK);
    ck_assert_int_eq(ad_gradient(h, keep, 3), AD_OK);
    ck_assert_mem_eq(before, after, sizeof before);
    ck_assert_mem_eq(kept, keep, sizeof kept);
    ck_assert(buffer[0] == 7 && buffer[1] == 8);
    /* The recording from before still sweeps, into the gradients and buffers it did. */
    ck_assert_int_eq(ad_backward(ad_sum(ad_mul(x[1], ad_sum(h)))), AD_OK);
    ck_assert_int_eq(ad_gradient(x[0], after, 3), AD_OK);
    ck_assert_double_eq_tol(after[2], 2 * p[2] + 2 * p[2] * (q[0] + q[1]), 1e-14);
    ck_assert_double_eq_tol(buffer[0], 7 + 0.25 + 1.5625 + 4, 1e-14);
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
}

TEST(a_wrong_pullback_is_named_with_its_line)
{
    char where[64];
    p[2] = 0.75; /* where tanh is not flat */
    ck_assert_int_eq(ad_check_gradient(tape, with_wrong_op, 2, x, 1e-6, NULL, &report),
                     AD_ERROR_GRADIENT);
    ck_assert_int_eq(report.compared, 5);
    ck_assert_int_eq(report.wrong, 3);
    ck_assert_int_eq(report.leaf, 0);
    ck_assert_str_eq(report.op, "exp");
    snprintf(where, sizeof where, "test_user_checks.c:%d in with_wrong_op", wrong_line);
    ck_assert_msg(strstr(report.where, where) != NULL, "%s", report.where);
    ck_assert_msg(strstr(report.message, where) != NULL, "%s", report.message);
    ck_assert_str_eq(ad_tape_message((ad_tape){0, 0}), report.message);
    ck_assert_int_eq(ad_tape_status(tape), AD_OK);
    double h = p[report.element] * p[report.element], c = cosh(exp(h));
    ck_assert_double_eq_tol(report.measured, 2 * p[report.element] * exp(h) / (c * c), 1e-6);
    ck_assert_double_eq_tol(report.swept, 2 * p[report.element] / (c * c), 1e-12);
}

TEST(ops_that_are_right_or_of_f32_are_passed_over)
{
    char where[80];
    ck_assert_int_eq(ad_check_gradient(tape, with_wrong_op_at_the_end, 1, x, 1e-6, NULL, &report),
                     AD_ERROR_GRADIENT);
    ck_assert_int_eq(report.wrong, 3);
    ck_assert_str_eq(report.op, "exp");
    snprintf(where, sizeof where, "test_user_checks.c:%d in with_wrong_op_at_the_end", wrong_line);
    ck_assert_msg(strstr(report.where, where) != NULL, "%s", report.message);
    ck_assert_ptr_nonnull(strstr(report.message, "its pullback to operand 1"));
    ck_assert_ptr_null(strstr(report.message, "kink"));
}

TEST(a_kink_within_the_step_is_a_disagreement_of_its_op)
{
    p[1] = 1e-7;
    ck_assert_int_eq(ad_check_gradient(tape, with_kink, 1, x, 1e-6, NULL, &report),
                     AD_ERROR_GRADIENT);
    ck_assert_int_eq(report.wrong, 1);
    ck_assert_int_eq(report.element, 1);
    ck_assert_str_eq(report.op, "relu");
    ck_assert(p[1] == 1e-7);
    /* Of the function and of the op. */
    const char *hint = " from above: a kink lies within the step";
    const char *first = strstr(report.message, hint);
    ck_assert_msg(first && strstr(first + 1, hint), "%s", report.message);
    ck_assert_msg(strstr(report.message, "(0.016514 from below, 1 from above: a kink"), "%s",
                  report.message);
}

TEST(a_detached_part_is_a_disagreement_of_no_op)
{
    ck_assert_int_eq(ad_check_gradient(tape, detached, 1, x, 1e-6, NULL, &report),
                     AD_ERROR_GRADIENT);
    ck_assert_int_eq(report.wrong, 3);
    ck_assert_int_eq(report.element, 2);
    ck_assert_double_eq(report.swept, 2);
    ck_assert_double_eq_tol(report.measured, 4, 1e-8);
    ck_assert_ptr_null(report.op);
    ck_assert_str_eq(report.where, "");
    ck_assert_ptr_nonnull(strstr(report.message, "no op alone is wrong"));
    ck_assert_ptr_null(strstr(report.message, "kink"));
}

TEST(an_operand_changed_after_its_op_is_found)
{
    ck_assert_int_eq(ad_check_gradient(tape, meddling, 1, x, 1e-6, NULL, &report),
                     AD_ERROR_GRADIENT);
    ck_assert_int_eq(report.wrong, 1);
    ck_assert_int_eq(report.element, 1);
    ck_assert_str_eq(report.op, "mul");
    ck_assert_ptr_nonnull(strstr(report.message, "was changed after the op"));
}

TEST(values_from_before_are_constants)
{
    ad_tensor older = ad_square(x[0]);
    ck_assert_msg(ad_check_gradient(tape, with_older_value, 1, x, 1e-8, &older, &report) == AD_OK,
                  "%s", report.message);
    ck_assert_int_eq(ad_check_gradient(tape, marking, 1, x, 1e-8, NULL, NULL), AD_OK);
    ck_assert_int_eq(ad_check_gradient(tape, second, 1, x, 1e-8, NULL, NULL), AD_OK);
    double g[3];
    /* The check's own sweeps are not the user's. */
    ck_assert_int_eq(ad_gradient(x[0], g, 3), AD_ERROR_STATE);
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_backward(ad_sum(older)), AD_OK);
    ck_assert_int_eq(ad_gradient(x[0], g, 3), AD_OK);
    ck_assert_double_eq(g[0], 1);
}

/* A counter times the sum: slopes that the swept one may lie between, and yet no kink alone. */
static ad_tensor counting(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    (void)t, (void)n;
    return ad_sum(ad_scale(v[0], ++*(int *)payload));
}

TEST(a_function_that_is_not_the_same_at_every_call_is_suspected)
{
    int calls = 0;
    ck_assert_int_eq(ad_check_gradient(tape, counting, 1, x, 1e-6, &calls, &report),
                     AD_ERROR_GRADIENT);
    ck_assert_msg(strstr(report.message, "or the function is not the same at every call"), "%s",
                  report.message);
}

TEST(nan_never_agrees)
{
    ck_assert_int_eq(ad_check_gradient(tape, marking, 1, x, -NAN, NULL, &report),
                     AD_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "the tolerance nan is not positive"));
    ad_tape_clear_error(tape);
    p[2] = NAN;
    ck_assert_int_eq(ad_check_gradient(tape, marking, 1, x, 1e-6, NULL, &report),
                     AD_ERROR_GRADIENT);
    /* The NaN is in every result, so that no derivative can be measured. */
    ck_assert_int_eq(report.wrong, 3);
    ck_assert(isinf(report.difference) && isnan(p[2]));
    p[2] = -p[2]; /* one of the two NaNs has a sign */
    ck_assert_ptr_null(strstr(report.message, "-nan"));
    ck_assert_int_eq(ad_check_gradient(tape, marking, 1, x, 1e-6, NULL, &report),
                     AD_ERROR_GRADIENT);
    ck_assert_ptr_nonnull(strstr(report.message, "differences give nan"));
    ck_assert_ptr_null(strstr(report.message, "-nan"));
}

static int overflow_line;

static ad_tensor overflowing(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    (void)t, (void)n;
    const ad_tensor h = ad_scale(v[0], *(const double *)payload);
    overflow_line = __LINE__ + 1;
    const ad_tensor e = ad_exp(h);
    return ad_sum(e);
}

TEST(what_is_not_finite_is_said_and_no_pullback_is_at_fault)
{
    char where[64];
    double by = 1000;
    ck_assert_int_eq(ad_check_gradient(tape, overflowing, 1, x, 1e-6, &by, &report),
                     AD_ERROR_GRADIENT);
    (void)snprintf(where, sizeof where, "exp at test_user_checks.c:%d ", overflow_line);
    ck_assert_msg(strstr(report.message, where) &&
                      strstr(report.message, "has a result that is not finite"),
                  "%s", report.message);
    ck_assert_ptr_null(strstr(report.message, "its pullback"));
    /* Finite where it is, and not a step further. */
    p[0] = 709.782712893384 / by;
    p[1] = p[2] = 0;
    ck_assert_int_eq(ad_check_gradient(tape, overflowing, 1, x, 1e-6, &by, &report),
                     AD_ERROR_GRADIENT);
    ck_assert_ptr_null(report.op);
    ck_assert_msg(strstr(report.message, "a value of the function within the step is not finite"),
                  "%s", report.message);
    ck_assert_ptr_null(strstr(report.message, "its pullback"));
}

static void count_logged(ad_log_level level, const char *message, void *payload)
{
    (void)level, (void)message;
    ++*(int *)payload;
}

TEST(a_check_that_cannot_be_made_says_why_in_its_report)
{
    int logged = 0;
    ck_assert_int_eq(ad_check_gradient(tape, NULL, 1, x, 1e-6, NULL, &report), AD_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(
        strstr(report.message, "check_gradient: function or x is a null pointer"));
    /* Who has the words in a report is not told of them again. */
    ad_on_log(count_logged, &logged);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
    ck_assert_int_eq(logged, 0);
    ck_assert_int_eq(ad_check_gradient(tape, smooth, 2, x, 1e-6, NULL, &report), AD_ERROR_HANDLE);
    ck_assert_ptr_nonnull(strstr(report.message, "the tape was destroyed"));
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    x[0] = ad_leaf(tape, AD_F64, 1, (int64_t[]){3}, p);
    ck_assert_int_eq(ad_check_gradient(tape, mistaken, 1, x, 1e-6, NULL, NULL), AD_ERROR_HANDLE);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
    ck_assert_int_eq(logged, 1);
    ad_on_log(NULL, NULL);
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
}

TEST(mistakes_of_the_function_stay_on_the_tape_with_their_line)
{
    ck_assert_int_eq(ad_check_gradient(tape, mistaken, 2, x, 1e-6, NULL, &report), AD_ERROR_SHAPE);
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_SHAPE);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "in mistaken"));
    ck_assert_str_eq(report.message, ad_tape_message(tape));
    ck_assert_int_eq(report.leaf, -1);
    ad_tape_clear_error(tape);
    int calls = 0;
    ck_assert_int_eq(ad_check_gradient(tape, growing, 1, x, 1e-6, &calls, NULL), AD_ERROR_STATE);
    ck_assert_double_eq(p[0], 0.5);
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_check_gradient(tape, smooth, 2, x, 1e-8, NULL, NULL), AD_OK);
    ck_assert_int_eq(ad_check_gradient(tape, resetting, 1, x, 1e-6, NULL, NULL), AD_ERROR_STATE);
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_rank(x[0]), 1);
}

TEST(a_function_that_destroys_the_tape_is_survived)
{
    ck_assert_int_eq(ad_check_gradient(tape, destroying, 1, x, 1e-6, NULL, NULL), AD_ERROR_HANDLE);
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
}

/* ---- memory that is refused ---- */

static int refusals_left = -1; /* calls before the one that is refused */

static void *refuse(void *old, size_t n, void *payload)
{
    return refusals_left-- == 0 ? NULL : tape_memory_system.resize(old, n, payload);
}

TEST(the_gradient_check_survives_each_refused_allocation)
{
    struct tape_memory memory = tape_memory_system;
    memory.resize = refuse;
    ad_slots[tape.slot].tape->memory = &memory;
    p[2] = 0.75;
    ck_assert_int_eq(ad_backward(ad_sum(ad_square(x[0]))), AD_OK);
    int refused = 0, left = -1;
    for (int n = 0; left < 0; n++) {
        double g[3];
        ad_stats was, is;
        ad_tape_stats(tape, &was);
        refusals_left = n;
        ad_status status = ad_check_gradient(tape, with_wrong_op, 2, x, 1e-6, NULL, &report);
        left = refusals_left;
        refusals_left = -1;
        /* Rows of the account do without their memory. */
        ck_assert(status == AD_ERROR_MEMORY || status == AD_ERROR_GRADIENT);
        refused += status == AD_ERROR_MEMORY;
        ck_assert_int_eq(ad_tape_status(tape), status == AD_ERROR_MEMORY ? status : AD_OK);
        ad_tape_clear_error(tape);
        ad_tape_stats(tape, &is);
        ck_assert_uint_eq(is.values, was.values);
        ck_assert_uint_eq(is.records, was.records);
        ck_assert_uint_eq(is.live_bytes, was.live_bytes);
        ck_assert_int_eq(ad_gradient(x[0], g, 3), AD_OK);
        ck_assert(g[0] == 2 * p[0] && p[0] == 0.5);
    }
    /* Values kept, both gradients, three vectors, the order of the records, and for each record up
     * to the wrong one an operand, its gradient, and three vectors. */
    ck_assert_int_ge(refused, 1 + 2 + 3 + 1 + 2 * 5);
    ad_slots[tape.slot].tape->memory = &tape_memory_system;
}

/* Hands out more than the tape's budget when the leaf's element is not what it was. */
static ad_tensor greedy(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    (void)t, (void)n, (void)payload;
    ad_tensor y = v[0];
    if (p[1] != -1.25)
        y = ad_broadcast_to(v[0], (int64_t[]){10 * MIB, 3}, 2);
    return ad_sum(ad_exp(y));
}

TEST(a_budget_used_up_half_way_leaves_all_as_it_was)
{
    ad_stats was, is;
    ad_tape_stats(tape, &was);
    ck_assert_int_eq(ad_check_gradient(tape, greedy, 1, x, 1e-6, NULL, &report), AD_ERROR_MEMORY);
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_MEMORY);
    ad_tape_clear_error(tape);
    ad_tape_stats(tape, &is);
    ck_assert_uint_eq(is.live_bytes, was.live_bytes);
    ck_assert(p[0] == 0.5 && p[1] == -1.25);
    ck_assert_int_eq(ad_check_gradient(tape, smooth, 2, x, 1e-8, NULL, NULL), AD_OK);
}

TEST(arguments_of_the_gradient_check_are_checked)
{
    float single = 1;
    ad_tensor narrow = ad_leaf(tape, AD_F32, 0, NULL, &single);
    ad_tensor twice[2] = {x[0], ad_leaf(tape, AD_F64, 1, (int64_t[]){2}, p + 1)};
    ad_tensor inner = ad_exp(x[0]), none = {0, 0, 0, 0};
    const struct {
        ad_function *function;
        const ad_tensor *x;
        double tolerance;
        int n;
        ad_status status;
    } rows[] = {
        {NULL, x, 1e-6, 1, AD_ERROR_ARGUMENT},    {smooth, NULL, 1e-6, 1, AD_ERROR_ARGUMENT},
        {smooth, x, 1e-6, 0, AD_ERROR_ARGUMENT},  {smooth, x, 1e-6, 65, AD_ERROR_ARGUMENT},
        {smooth, x, 0, 2, AD_ERROR_ARGUMENT},     {smooth, x, NAN, 2, AD_ERROR_ARGUMENT},
        {smooth, twice, 1, 2, AD_ERROR_ARGUMENT}, {smooth, &inner, 1, 1, AD_ERROR_ARGUMENT},
        {smooth, &narrow, 1, 1, AD_ERROR_DTYPE},  {smooth, &none, 1, 1, AD_ERROR_HANDLE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_int_eq(ad_check_gradient(tape, rows[i].function, rows[i].n, rows[i].x,
                                           rows[i].tolerance, NULL, &report),
                         rows[i].status);
        ck_assert_int_eq(ad_tape_status(tape), rows[i].status);
        ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "test_user_checks.c"));
        ad_tape_clear_error(tape);
    }
    ad_tape_no_grad_begin(tape);
    ck_assert_int_eq(ad_check_gradient(tape, smooth, 2, x, 1e-6, NULL, NULL), AD_ERROR_STATE);
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_check_gradient((ad_tape){0, 0}, smooth, 2, x, 1e-6, NULL, NULL),
                     AD_ERROR_HANDLE);
}

RUN_TESTS(setup, teardown)
