/* test_trap_ops.c: numbers of tensors that are not finite are named where they arose. */
#include "run_cases.h"

#include <tapescope/ad.h>

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

/* What calls return is dropped: the error that stays in the tape is looked at. */
#pragma GCC diagnostic ignored "-Wunused-result"

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})

static unsigned line;
#define HERE(...) (line = __LINE__, __VA_ARGS__)

static void setup(void)
{
    tape_begin(NULL);
    ck_assert_int_eq(ad_tape_trap(tape, AD_TRAP_ALL), AD_OK);
}

/* The error begins with these words, ends with the line of HERE(), and is cleared. */
static void check_found(const char *words)
{
    char place[64];
    snprintf(place, sizeof place, " at test_trap_ops.c:%u in ", line);
    const char *message = ad_tape_message(tape), *at = strstr(message, place);
    ck_assert_msg(ad_tape_status(tape) == AD_ERROR_NONFINITE, "%s", message);
    ck_assert_msg(strncmp(message, words, strlen(words)) == 0, "%s", message);
    ck_assert_msg(at && !strstr(at + 1, " at "), "%s, not %s", message, place);
    ad_tape_clear_error(tape);
}

#define leaf64(n, ...) ad_leaf(tape, AD_F64, 1, SHAPE(n), __VA_ARGS__)

TEST(the_op_whose_operands_are_finite_is_named_with_the_element)
{
    ad_stats before, after;
    ad_tensor x = ad_leaf(tape, AD_F64, 2, SHAPE(2, 3), (double[]){1, 2, 3, 4, 0, -1}), y;
    ad_tensor f = ad_leaf(tape, AD_F32, 1, SHAPE(2), (float[]){-1, 0});
    ck_assert_int_eq(ad_tape_stats(tape, &before), AD_OK);
    HERE(y = ad_log(x));
    ad_exp(y); /* not the first */
    check_found("log: value -inf of element [1,1] at ");
    ck_assert_int_eq(ad_tape_stats(tape, &after), AD_OK);
    ck_assert_uint_eq(after.values, before.values); /* it left nothing */
    ck_assert_uint_eq(after.records, before.records);
    HERE(y = ad_sqrt(f));
    check_found("sqrt: value nan of element [0] at ");
    HERE(y = ad_log(ad_sum(ad_mul(x, ad_scalar_f64(tape, 0)))));
    check_found("log: value -inf at ");
    HERE(y = ad_reciprocal(ad_transpose(ad_mul(x, x))));
    check_found("reciprocal: value inf of element [1,1] at ");
}

TEST(a_result_other_than_the_first_is_said)
{
    ad_tensor logdet, sign;
    ad_tensor x = ad_leaf(tape, AD_F64, 2, SHAPE(2, 2), (double[]){1, 2, 2, 4});
    HERE(sign = ad_slogdet(x, &logdet));
    check_found("slogdet: value -inf of result 2 at ");
    (void)sign;
}

TEST(an_array_of_the_users_is_named_itself_at_first_use)
{
    double data[4] = {1, 2, NAN, 4}, mask[2] = {0, -INFINITY};
    ad_tensor x, m, y;
    HERE(x = leaf64(4, data));
    ck_assert_int_eq(ad_tape_status(tape), AD_OK); /* it may be filled until it is used */
    y = ad_relu(x);
    const char *message = ad_tape_message(tape);
    ck_assert_msg(strstr(message, "(seen in operand 1 of relu at test_trap_ops.c:") != NULL, "%s",
                  message);
    char place[64];
    snprintf(place, sizeof place, ") at test_trap_ops.c:%u in ", line);
    ck_assert_msg(strstr(message, "leaf: value nan of element [2] (") == message, "%s", message);
    ck_assert_msg(strstr(message, place) != NULL, "%s", message);
    ad_tape_clear_error(tape);
    /* Seen through a view too, and only what the view has. */
    y = ad_slice(x, 0, 0, 2, 1);
    ad_exp(y);
    ck_assert_int_eq(ad_tape_status(tape), AD_OK);
    HERE(m = ad_constant(tape, AD_F64, 1, SHAPE(2), mask));
    y = ad_add(y, m);
    message = ad_tape_message(tape);
    ck_assert_msg(strstr(message, "constant: value -inf of element [1] (seen in operand 2 of add "
                                  "at ") == message,
                  "%s", message);
    ad_tape_clear_error(tape);
    HERE(y = ad_scalar_f64(tape, INFINITY));
    check_found("scalar: value inf at ");
}

TEST(a_mask_of_infinities_passes_where_nan_alone_is_looked_for)
{
    ck_assert_int_eq(ad_tape_trap(tape, AD_TRAP_NAN), AD_OK);
    ad_tensor m = ad_constant(tape, AD_F64, 1, SHAPE(2), (double[]){0, -INFINITY});
    ad_tensor x = leaf64(2, (double[]){1, 2});
    ad_tensor y = ad_logsumexp(ad_add(x, m));
    ck_assert_int_eq(ad_backward(y), AD_OK);
    ad_tensor none;
    HERE(none = ad_sub(m, m));
    (void)none;
    check_found("sub: value nan of element [1] at ");
    ck_assert_int_eq(ad_tape_trap(tape, AD_TRAP_INF), AD_OK);
    y = ad_log(ad_neg(x));
    ck_assert_int_eq(ad_tape_status(tape), AD_OK);
}

TEST(what_arose_before_it_was_switched_on_is_followed_back)
{
    ad_tensor x, l, y;
    ck_assert_int_eq(ad_tape_trap(tape, AD_TRAP_OFF), AD_OK);
    x = leaf64(2, (double[]){1, 0});
    HERE(l = ad_log(x));
    y = ad_mul(ad_add(l, x), x);
    ck_assert_int_eq(ad_tape_trap(tape, AD_TRAP_ALL), AD_OK);
    y = ad_neg(y);
    const char *message = ad_tape_message(tape);
    char place[64];
    snprintf(place, sizeof place, ") at test_trap_ops.c:%u in ", line);
    ck_assert_msg(strstr(message, "log: value -inf of element [1] (seen in operand 1 of neg at ") ==
                      message,
                  "%s", message);
    ck_assert_msg(strstr(message, place) != NULL, "%s", message);
}

TEST(the_pullback_that_gives_an_adjoint_that_is_not_finite_is_named)
{
    double g[2] = {7, 7};
    ad_tensor x = leaf64(2, (double[]){1, 0}), y, z;
    HERE(y = ad_sqrt(x));
    z = ad_sum(ad_exp(y));
    ck_assert_int_eq(ad_backward(z), AD_ERROR_NONFINITE);
    check_found("sqrt: adjoint inf of element [1] of operand 1 (x), backward, at ");
    ck_assert_int_eq(ad_gradient(x, g, 2), AD_ERROR_STATE); /* half a gradient is none */
    ad_tape_clear_error(tape);
    /* The seed, and a gradient from before. */
    HERE(ad_backward_seed(z, ad_constant(tape, AD_F64, 0, NULL, (double[]){NAN})));
    check_found("backward: seed nan at ");
    ck_assert_int_eq(ad_tape_trap(tape, AD_TRAP_OFF), AD_OK);
    ad_tensor w;
    HERE(w = leaf64(2, (double[]){1, 0}));
    ck_assert_int_eq(ad_backward(ad_sum(ad_sqrt(w))), AD_OK);
    ck_assert_int_eq(ad_tape_trap(tape, AD_TRAP_ALL), AD_OK);
    ck_assert_int_eq(ad_backward(ad_sum(ad_exp(w))), AD_ERROR_NONFINITE);
    check_found("backward: gradient inf of element [1], from an earlier sweep, of the leaf at ");
}

TEST(a_sweep_that_releases_and_a_users_buffer_end_as_after_any_failure)
{
    double buffer[2] = {3, 4};
    ad_tensor x = leaf64(2, (double[]){1, 0}), y;
    ck_assert_int_eq(ad_gradient_buffer(x, buffer, 2), AD_OK);
    HERE(y = ad_sqrt(x));
    ck_assert_int_eq(ad_backward_release(ad_sum(ad_exp(y))), AD_ERROR_NONFINITE);
    check_found("sqrt: adjoint inf of element [1] of operand 1 (x), backward, at ");
    ck_assert_double_eq(buffer[0], 3);
    ck_assert_double_eq(buffer[1], 4);
    ck_assert_int_eq(ad_backward(ad_sum(ad_exp(x))), AD_OK); /* the tape serves on */
    ck_assert_double_eq(buffer[1], 5);
}

TEST(recorded_derivatives_are_named_at_the_line_of_their_op)
{
    ad_tensor x = leaf64(2, (double[]){1, 0}), y, g;
    HERE(y = ad_sqrt(x));
    ad_tensor s = ad_sum(y);
    ck_assert_int_eq(ad_create_graph(s, (ad_tensor){0, 0, 0, 0}, 1, &x, &g), AD_ERROR_NONFINITE);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), ": value inf of element [1]"));
    char place[64];
    snprintf(place, sizeof place, " at test_trap_ops.c:%u in ", line);
    ck_assert_msg(strstr(ad_tape_message(tape), place) != NULL, "%s", ad_tape_message(tape));
}

static ad_tensor root(ad_tape on, const ad_tensor *x, int n, void *payload)
{
    (void)on;
    (void)n;
    (void)payload;
    return ad_sqrt(x[0]);
}

TEST(a_gradient_check_ends_with_the_same_error)
{
    double data[1] = {1e-9}; /* a step of differences goes below 0 */
    ad_tensor x = leaf64(1, data);
    ck_assert_int_eq(ad_check_gradient(tape, root, 1, &x, 1e-6, NULL, NULL), AD_ERROR_NONFINITE);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "sqrt: value nan of element [0] at "));
    ck_assert_double_eq(data[0], 1e-9);
}

TEST(ops_under_no_grad_integers_and_arrays_without_elements_are_looked_at)
{
    ad_tensor y, x = leaf64(2, (double[]){1, 0});
    ad_tensor none = ad_leaf(tape, AD_F64, 2, SHAPE(0, 3), NULL);
    ck_assert_int_eq(ad_backward(ad_sum(ad_log(none))), AD_OK);
    ad_tensor i = ad_constant(tape, AD_I64, 1, SHAPE(1), (int64_t[]){INT64_MIN});
    y = ad_cast(ad_concat((ad_tensor[]){i, i}, 2, 0), AD_F64);
    (void)y;
    ck_assert_int_eq(ad_tape_no_grad_begin(tape), AD_OK);
    HERE(y = ad_log(x));
    check_found("log: value -inf of element [1] at ");
    ck_assert_int_eq(ad_tape_no_grad_end(tape), AD_OK);
}

static int told;

static void tell(ad_tape on, ad_status status, const char *message, void *payload)
{
    (void)on;
    (void)payload;
    told += status == AD_ERROR_NONFINITE && strstr(message, "log: value") != NULL;
}

TEST(the_error_callback_is_told_once)
{
    told = 0;
    ck_assert_int_eq(ad_tape_on_error(tape, tell, NULL), AD_OK);
    ad_exp(ad_log(ad_log(leaf64(1, (double[]){0}))));
    ck_assert_int_eq(told, 1);
}

RUN_TESTS(setup, teardown)
