/* test_misuse.c: each public function with a tape or a tensor that is none, is no more, or may not
 * be used now; and the errors of arguments that test_errors.c does not make.
 */
#include <tapescope/ad.h>
#include <tapescope/ad_file.h>
#include <tapescope/ad_tensor_program.h>
#include <tapescope/ad_tensor_sparse.h>

#include "run_cases.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

enum { MIB = 1 << 20 };

static const ad_tape no_tape;
static const ad_tensor zero;
static double data[4] = {0.25, 0.5, 0.75, 1}, buffer[4];
static ad_tensor x;

static void open_tape(ad_tape *t)
{
    const ad_tape_options options = {.reserve_bytes = 16 * MIB, .budget_bytes = 16 * MIB};
    ck_assert_int_eq(ad_tape_create(t, &options), AD_OK);
}

static void setup(void)
{
    modules_find();
    open_tape(&tape);
    x = ad_leaf(tape, AD_F64, 1, (int64_t[]){4}, data);
}

static ad_tensor same(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    (void)t, (void)n, (void)payload;
    return v[0];
}

static void visit_nothing(void *model, ad_visitor *visitor)
{
    (void)model, (void)visitor;
}

/* ---- handles ---- */

/* Each function once. Those without a status leave it in the error that `asked` looks at; the
 * result of those is in `wrong` if it is not the one that stands for an error. */
enum { CALLS = 64 };

struct answers {
    ad_status status[CALLS];
    int n, wrong;
    ad_tape asked; /* whose error it is */
};

static void answer(struct answers *a, ad_status status)
{
    a->status[a->n++] = status;
}

static void kept(struct answers *a, bool is_error)
{
    a->status[a->n++] = ad_tape_status(a->asked);
    a->wrong += !is_error;
    ad_tape_clear_error(a->asked);
}

static void call_all(struct answers *a, ad_tape t, ad_tensor v, FILE *file)
{
    int64_t shape[AD_MAX_RANK];
    ad_stats stats;
    ad_saved saved;
    ad_tensor gradient;
    ad_tape_clear_error(a->asked);
    answer(a, ad_tape_reset(t));
    kept(a, ad_tape_mark(t).tape == 0);
    answer(a, ad_tape_rewind(t, (ad_mark){t.slot, t.generation, 0, 1}));
    kept(a, ad_frame_begin(t).number == 0);
    answer(a, ad_frame_end((ad_frame){t.slot, t.generation, 0, 1}, NULL, 0));
    answer(a, ad_tape_on_error(t, NULL, NULL));
    answer(a, ad_tape_stats(t, &stats));
    answer(a, ad_tape_reset_peak(t));
    answer(a, ad_tape_saved_for_backward(t, &saved));
    kept(a, ad_leaf(t, AD_F64, 0, NULL, data).value == 0);
    kept(a, ad_constant(t, AD_F64, 0, NULL, data).value == 0);
    kept(a, ad_scalar_f64(t, 1).value == 0);
    kept(a, ad_scalar_f32(t, 1).value == 0);
    kept(a, ad_scalar_i64(t, 1).value == 0);
    answer(a, ad_tape_no_grad_begin(t));
    answer(a, ad_tape_no_grad_end(t));
    answer(a, ad_tape_zero_gradients(t));
    answer(a, ad_check_gradient(t, same, 1, &v, 1, NULL, NULL));
    answer(a,
           ad_value_and_gradient(t, same, 1, &v, NULL, NULL, (void *[]){buffer}, (int64_t[]){4}));
    const ad_pullback pullback = {t.slot, t.generation, 0, 1};
    kept(a, ad_pullback_begin(t, same, 1, &v, NULL).generation == 0);
    kept(a, ad_pullback_result(pullback).value == 0);
    answer(a, ad_pullback_call(pullback, buffer, 4, (void *[]){buffer}, (int64_t[]){4}));
    answer(a, ad_pullback_end(pullback));
    const void *const along[] = {data};
    void *const to[] = {buffer};
    const int64_t counts[] = {4};
    answer(a, ad_jvp(t, same, 1, &v, NULL, along, counts, NULL, buffer, 4));
    answer(a, ad_hvp(t, same, 1, &v, NULL, along, to, counts));
    answer(a, ad_jacobian(t, same, 1, &v, NULL, AD_JACOBIAN_ROWS, to, counts));
    answer(a, ad_hessian(t, same, 1, &v, NULL, buffer, 4));
    answer(a, ad_hessian_diagonal(t, same, 1, &v, NULL, to, counts));
    ad_sparse_pattern sparse;
    answer(a, ad_jacobian_pattern(t, same, 1, &v, NULL, &sparse));
    answer(a, ad_jacobian_sparse(t, same, 1, &v, NULL, NULL, buffer, 4));
    answer(a, ad_hessian_pattern(t, same, 1, &v, NULL, &sparse));
    answer(a, ad_hessian_sparse(t, same, 1, &v, NULL, NULL, buffer, 4));
    answer(a, ad_tensor_program_begin(t));
    answer(a, ad_tensor_program_end(t));
    answer(a, ad_tensor_replay(t, 1, &v, along));
    answer(a, ad_visit_leaves(t, visit_nothing, data));
    answer(a, ad_visit_gradients(t, visit_nothing, data, buffer));
    answer(a, ad_save(t, "/dev/null", 1, (const char *const[]){"v"}, &v));
    answer(a, ad_load(t, "/dev/null", 1, (const char *const[]){"v"}, &gradient));
    answer(a, ad_visit_save(t, "/dev/null", visit_nothing, data));
    answer(a, ad_visit_load(t, "/dev/null", visit_nothing, data));
    kept(a, ad_tape_of(v).slot == 0);
    kept(a, ad_detach(v).value == 0);
    kept(a, ad_rank(v) == -1);
    kept(a, ad_size(v) == -1);
    answer(a, ad_shape(v, shape));
    kept(a, ad_dtype_of(v) == -1);
    answer(a, ad_value(v, buffer, 4));
    kept(a, isnan(ad_item(v)));
    answer(a, ad_backward(v));
    answer(a, ad_backward_seed(v, v));
    answer(a, ad_backward_release(v));
    answer(a, ad_backward_seed_release(v, v));
    answer(a, ad_release(v));
    answer(a, ad_gradient(v, buffer, 4));
    answer(a, ad_gradients(1, &v, (void *[]){buffer}, (int64_t[]){4}));
    answer(a, ad_gradient_buffer(v, buffer, 4));
    answer(a, ad_retain_gradient(v));
    answer(a, ad_create_graph(v, zero, 1, &v, &gradient));
    answer(a, ad_tensor_print(file, v));
    kept(a, ad_exp(v).value == 0);
    kept(a, ad_concat(&v, 1, 0).value == 0);
    kept(a, ad_sum_axes(v, (int64_t[]){0}, 1, 0).value == 0);
    answer(a, ad_tape_destroy(t));
}

static void check_refused(const struct answers *a, ad_status status)
{
    ck_assert_int_eq(a->n, CALLS);
    for (int i = 0; i < CALLS; i++)
        ck_assert_msg(a->status[i] == status, "call %d: %s, not %s", i,
                      ad_status_name(a->status[i]), ad_status_name(status));
    ck_assert_int_eq(a->wrong, 0);
}

TEST(every_function_refuses_a_handle_of_zeros)
{
    struct answers a = {0};
    call_all(&a, no_tape, zero, stdout);
    check_refused(&a, AD_ERROR_HANDLE);
}

TEST(every_function_refuses_what_was_destroyed)
{
    struct answers a = {0};
    ad_tape gone;
    open_tape(&gone);
    ad_tensor v = ad_leaf(gone, AD_F64, 1, (int64_t[]){4}, data);
    ck_assert_int_eq(ad_tape_destroy(gone), AD_OK);
    call_all(&a, gone, v, stdout);
    check_refused(&a, AD_ERROR_HANDLE);
    ck_assert_int_eq(ad_tape_status(gone), AD_ERROR_HANDLE);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(gone), "the tape was destroyed"));
    ad_tape_clear_error(gone); /* no tape of that name: the thread keeps that it was asked */
    ck_assert_int_eq(ad_tape_status(no_tape), AD_ERROR_HANDLE);
    ad_tape_clear_error(no_tape);
}

TEST(every_function_refuses_what_never_was_a_handle)
{
    struct answers a = {0};
    call_all(&a, (ad_tape){70000, 1}, (ad_tensor){70000, 1, 1, 1}, stdout);
    check_refused(&a, AD_ERROR_HANDLE);
}

static ad_tensor told_about;

static void use_the_tape(ad_tape t, ad_status status, const char *message, void *payload)
{
    (void)status, (void)message;
    call_all(payload, t, told_about, stdout);
}

TEST(every_function_refuses_the_tape_whose_error_is_being_told)
{
    struct answers a = {0};
    told_about = x;
    ck_assert_int_eq(ad_tape_on_error(tape, use_the_tape, &a), AD_OK);
    ck_assert_int_eq(ad_tape_no_grad_end(tape), AD_ERROR_STATE);
    check_refused(&a, AD_ERROR_STATE);
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_backward(ad_sum(x)), AD_OK);
}

TEST(the_result_of_a_failed_op_is_no_tensor)
{
    ad_tensor failed = ad_matmul(x, ad_sum(x));
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_rank(failed), -1);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "is the result of an op that failed"));
    ad_tape_clear_error(tape);
    ck_assert_uint_eq(ad_concat((ad_tensor[]){failed}, 99, 0).value, 0);
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_HANDLE);
}

TEST(a_dropped_tensor_names_the_newest_rewind_and_the_call)
{
    char at[64], call[64];
    const ad_mark mark = ad_tape_mark(tape);
    const ad_tensor late = ad_square(x);
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    (void)snprintf(at, sizeof at, "a rewind (the newest is at test_misuse.c:%d ", __LINE__ - 1);
    ck_assert_uint_eq(ad_add(x, late).value, 0);
    (void)snprintf(call, sizeof call, "; the call is at test_misuse.c:%d ", __LINE__ - 1);
    ck_assert_msg(strstr(ad_tape_message(tape), at) && strstr(ad_tape_message(tape), call), "%s",
                  ad_tape_message(tape));
    ad_tape_clear_error(tape);
}

/* ---- arguments ---- */

static void expect(ad_status status, const char *text)
{
    const char *message = ad_tape_message(tape);
    ck_assert_msg(ad_tape_status(tape) == status, "%s: %s", ad_status_name(ad_tape_status(tape)),
                  message);
    ck_assert_msg(strstr(message, text) != NULL, "\"%s\" is not in \"%s\"", text, message);
    ck_assert_msg(strstr(message, "test_misuse.c") != NULL || strstr(message, "stats") != NULL,
                  "%s", message);
    ad_tape_clear_error(tape);
}

TEST(a_scalar_keeps_every_bit_of_its_number)
{
    const int64_t whole[] = {0, -1, INT64_MIN, INT64_MAX, (INT64_C(1) << 53) + 1, 7};
    const double wide[] = {0.1, -0.0, DBL_MIN, DBL_MAX, 0x1p-1074, INFINITY};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        const ad_tensor of_i64 = ad_scalar_i64(tape, whole[i]);
        const ad_tensor of_f64 = ad_scalar_f64(tape, wide[i]);
        const ad_tensor of_f32 = ad_scalar_f32(tape, (float)wide[i]);
        const float narrow = (float)wide[i];
        int64_t integer;
        double number;
        float small;
        ck_assert_int_eq(ad_dtype_of(of_i64), AD_I64);
        ck_assert_int_eq(ad_dtype_of(of_f64), AD_F64);
        ck_assert_int_eq(ad_dtype_of(of_f32), AD_F32);
        ck_assert_int_eq(ad_value(of_i64, &integer, 1), AD_OK);
        ck_assert_int_eq(ad_value(of_f64, &number, 1), AD_OK);
        ck_assert_int_eq(ad_value(of_f32, &small, 1), AD_OK);
        ck_assert_int_eq(integer, whole[i]);
        ck_assert(memcmp(&number, &wide[i], sizeof number) == 0);
        ck_assert(memcmp(&small, &narrow, sizeof small) == 0);
    }
}

TEST(statistics_need_a_place)
{
    ck_assert_int_eq(ad_tape_stats(tape, NULL), AD_ERROR_ARGUMENT);
    expect(AD_ERROR_ARGUMENT, "tape_stats: stats is a null pointer");
}

TEST(lists_are_counted_before_they_are_read)
{
    const ad_tensor *none = NULL;
    ck_assert_uint_eq(ad_concat(&x, 65, 0).value, 0);
    expect(AD_ERROR_ARGUMENT, "concat: 65 operands, from 1 to 64 are possible");
    ck_assert_uint_eq(ad_stack(&x, 0, 0).value, 0);
    ck_assert_int_eq(ad_tape_status(no_tape), AD_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(no_tape), "stack: 0 operands, from 1 to 64"));
    ck_assert_uint_eq(ad_stack(none, 2, 0).value, 0);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(no_tape), "is a null pointer"));
    ad_tape_clear_error(no_tape);
    /* With an error on the tape the first one stays. */
    ck_assert_int_eq(ad_tape_no_grad_end(tape), AD_ERROR_STATE);
    ck_assert_uint_eq(ad_concat(&x, 65, 0).value, 0);
    ck_assert_uint_eq(ad_sum_axes(x, NULL, 1, 0).value, 0);
    expect(AD_ERROR_STATE, "there was no begin");
}

TEST(a_recorded_gradient_is_refused_where_it_makes_no_sense)
{
    ad_tensor g, y = ad_sum(ad_square(x)),
                 seed = ad_constant(tape, AD_F64, 1, (int64_t[]){2}, data);
    ck_assert_int_eq(ad_tape_no_grad_begin(tape), AD_OK);
    ck_assert_int_eq(ad_create_graph(y, zero, 1, &x, &g), AD_ERROR_STATE);
    ck_assert_uint_eq(g.value, 0);
    expect(AD_ERROR_STATE, "create_graph: not under no_grad");
    ck_assert_int_eq(ad_tape_no_grad_end(tape), AD_OK);
    ck_assert_int_eq(ad_create_graph(y, zero, 1, &zero, &g), AD_ERROR_HANDLE);
    expect(AD_ERROR_HANDLE, "create_graph: x[0] is a handle of zeros: no tensor");
    ck_assert_int_eq(ad_create_graph(y, zero, 1, &x, NULL), AD_ERROR_ARGUMENT);
    expect(AD_ERROR_ARGUMENT, "create_graph: x or gradient is a null pointer");
    ck_assert_int_eq(ad_create_graph(x, seed, 1, &x, &g), AD_ERROR_SHAPE);
    expect(AD_ERROR_SHAPE, "create_graph: the seed is f64 [2], y is f64 [4]");
    ck_assert_int_eq(ad_create_graph(seed, zero, 1, &x, &g), AD_ERROR_STATE);
    expect(AD_ERROR_STATE, "create_graph: y does not depend on a leaf");
    ck_assert_int_eq(ad_create_graph(y, zero, 0, NULL, NULL), AD_OK);
    /* With an error on the tape nothing is recorded, and the gradients are no tensors. */
    ck_assert_int_eq(ad_tape_no_grad_end(tape), AD_ERROR_STATE);
    g = x;
    ck_assert_int_eq(ad_create_graph(y, zero, 1, &x, &g), AD_ERROR_STATE);
    ck_assert_uint_eq(g.value, 0);
    ad_tape_clear_error(tape);
}

TEST(a_mark_of_a_tape_that_had_the_same_slot_is_of_another_tape)
{
    ad_tape first;
    open_tape(&first);
    ad_mark mark = ad_tape_mark(first);
    ck_assert_int_eq(ad_tape_destroy(first), AD_OK);
    open_tape(&first);
    ck_assert_uint_eq(first.slot, mark.tape);
    ck_assert_int_eq(ad_tape_rewind(first, mark), AD_ERROR_TAPE);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(first), "the mark is of another tape"));
    ck_assert_int_eq(ad_tape_destroy(first), AD_OK);
}

/* ---- the gradient check ---- */

static ad_tensor of_another_tape(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    (void)t, (void)v, (void)n;
    return *(ad_tensor *)payload;
}

static ad_tensor narrowed(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    (void)t, (void)n, (void)payload;
    return ad_cast(v[0], AD_F32);
}

static ad_tensor constant(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    (void)v, (void)n, (void)payload;
    return ad_scalar_f64(t, 3);
}

static ad_tensor rewinding(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    (void)n;
    ad_tape_rewind(t, *(ad_mark *)payload);
    return v[0];
}

static ad_tensor viewed(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    (void)t, (void)n, (void)payload;
    return ad_transpose(ad_reshape(v[0], (int64_t[]){2, 2}, 2));
}

static ad_status check(ad_function *function, void *payload)
{
    return ad_check_gradient(tape, function, 1, &x, 1e-6, payload, NULL);
}

TEST(the_gradient_check_refuses_what_is_not_its_tapes_or_not_f64)
{
    ad_tape other;
    open_tape(&other);
    ad_mark mark = ad_tape_mark(tape);
    ad_tensor foreign = ad_leaf(other, AD_F64, 1, (int64_t[]){4}, data);
    ad_tensor two[2] = {x, ad_leaf(tape, AD_F64, 1, (int64_t[]){1}, data + 3)};
    ck_assert_int_eq(ad_check_gradient(tape, same, 1, &foreign, 1, NULL, NULL), AD_ERROR_TAPE);
    expect(AD_ERROR_TAPE, "x[0] is of another tape");
    ck_assert_int_eq(ad_check_gradient(tape, same, 2, two, 1, NULL, NULL), AD_ERROR_ARGUMENT);
    expect(AD_ERROR_ARGUMENT, "x[0] and x[1] share memory");
    ck_assert_int_eq(ad_check_gradient(tape, same, 1, &x, INFINITY, NULL, NULL), AD_ERROR_ARGUMENT);
    expect(AD_ERROR_ARGUMENT, "the tolerance inf is not positive");
    ck_assert_int_eq(check(of_another_tape, &foreign), AD_ERROR_TAPE);
    expect(AD_ERROR_TAPE, "the result is of another tape");
    ad_tensor none = zero;
    ck_assert_int_eq(check(of_another_tape, &none), AD_ERROR_HANDLE);
    expect(AD_ERROR_HANDLE, "the result is a handle of zeros: no tensor");
    ck_assert_int_eq(check(narrowed, NULL), AD_ERROR_DTYPE);
    expect(AD_ERROR_DTYPE, "the result is f32, not f64");
    ck_assert_int_eq(check(constant, NULL), AD_OK);
    ck_assert_int_eq(ad_tape_no_grad_end(tape), AD_ERROR_STATE);
    ck_assert_int_eq(check(same, NULL), AD_ERROR_STATE);
    expect(AD_ERROR_STATE, "tape_no_grad_end");
    ck_assert_int_eq(check(same, NULL), AD_OK);
    ck_assert_int_eq(check(rewinding, &mark), AD_ERROR_STATE);
    expect(AD_ERROR_STATE, "the mark is older than the gradient check");
    ck_assert(data[0] == 0.25 && data[3] == 1);
    ck_assert_int_eq(ad_backward(ad_sum(x)), AD_OK);
    ck_assert_int_eq(ad_gradient(x, buffer, 4), AD_OK);
    ck_assert(buffer[0] == 1 && buffer[3] == 1);
    ck_assert_int_eq(ad_tape_destroy(other), AD_OK);
    ad_tape_clear_error(no_tape);
}

TEST(the_gradient_check_takes_functions_whose_result_is_a_leaf_or_a_view_of_one)
{
    ck_assert_int_eq(check(same, NULL), AD_OK);
    ck_assert_int_eq(check(viewed, NULL), AD_OK);
}

RUN_TESTS(setup, teardown)
