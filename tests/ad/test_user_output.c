/* test_user_output.c: what users are told: tensors printed, failures by the callback. */
#include <tapescope/ad.h>

#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MIB = 1 << 20 };

static ad_tape tape;
static double p[3], q[2];
static ad_tensor x[2];

static void setup(void)
{
    setenv("TAPESCOPE_MODULE_DIR", TAPESCOPE_LIB_DIR "/tapescope", 1);
    ad_tape_options options = {.reserve_bytes = 64 * MIB, .budget_bytes = 64 * MIB};
    ck_assert_int_eq(ad_tape_create(&tape, &options), AD_OK);
    memcpy(p, (double[]){0.5, -1.25, 2}, sizeof p);
    memcpy(q, (double[]){1.5, -0.75}, sizeof q);
    x[0] = ad_leaf(tape, AD_F64, 1, (int64_t[]){3}, p);
    x[1] = ad_leaf(tape, AD_F64, 2, (int64_t[]){2, 1}, q);
}

static void teardown(void)
{
    ad_tape_clear_error((ad_tape){0, 0});
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

/* ---- printing ---- */

static char printed[16384];

static ad_status print(ad_tensor v)
{
    memset(printed, 0, sizeof printed);
    FILE *file = fmemopen(printed, sizeof printed, "w");
    ck_assert_ptr_nonnull(file);
    ad_status status = ad_tensor_print(file, v);
    fclose(file);
    return status;
}

TEST(tensors_are_printed_as_numpy_does)
{
    static const double a[8] = {1, -2.5, 1e-9, INFINITY, -NAN, 100, 1.0 / 3, -0.0};
    static const int64_t whole[3] = {-1, 20, 3};
    ck_assert_int_eq(print(ad_scalar_f64(tape, 2)), AD_OK);
    ck_assert_str_eq(printed, "f64 []\n2.\n");
    print(ad_constant(tape, AD_I64, 1, (int64_t[]){3}, whole));
    ck_assert_str_eq(printed, "i64 [3]\n[-1 20  3]\n");
    print(ad_constant(tape, AD_F64, 2, (int64_t[]){0, 4}, NULL));
    ck_assert_str_eq(printed, "f64 [0,4]\n[]\n");
    print(ad_transpose(x[1]));
    ck_assert_str_eq(printed, "f64 [1,2]\n[[  1.5 -0.75]]\n");
    print(ad_constant(tape, AD_F64, 3, (int64_t[]){2, 2, 2}, a));
    ck_assert_str_eq(printed, "f64 [2,2,2]\n"
                              "[[[        1.       -2.5]\n"
                              "  [     1e-09        inf]]\n\n"
                              " [[       nan       100.]\n"
                              "  [0.33333333        -0.]]]\n");
}

TEST(large_tensors_are_printed_short_and_lines_stay_short)
{
    static double a[1200];
    static float single[1] = {0.1f};
    for (int i = 0; i < 1200; i++)
        a[i] = i;
    print(ad_constant(tape, AD_F64, 2, (int64_t[]){300, 4}, a));
    ck_assert_str_eq(printed, "f64 [300,4]\n"
                              "[[   0.    1.    2.    3.]\n"
                              " [   4.    5.    6.    7.]\n"
                              " [   8.    9.   10.   11.]\n"
                              " ...\n"
                              " [1188. 1189. 1190. 1191.]\n"
                              " [1192. 1193. 1194. 1195.]\n"
                              " [1196. 1197. 1198. 1199.]]\n");
    print(ad_constant(tape, AD_F64, 1, (int64_t[]){1200}, a));
    ck_assert_str_eq(printed, "f64 [1200]\n[   0.    1.    2. ... 1197. 1198. 1199.]\n");
    print(ad_constant(tape, AD_F32, 0, NULL, single));
    ck_assert_str_eq(printed, "f32 []\n0.1\n");
    print(ad_constant(tape, AD_F64, 1, (int64_t[]){1000}, a));
    ck_assert_ptr_nonnull(strstr(printed, " 500. "));
    for (char *line = strtok(printed, "\n"); line; line = strtok(NULL, "\n"))
        ck_assert_uint_le(strlen(line), 80);
}

TEST(printing_that_fails_says_why_and_spares_the_tape)
{
    FILE *full = fopen("/dev/full", "w");
    ck_assert_ptr_nonnull(full);
    setvbuf(full, NULL, _IONBF, 0);
    ck_assert_int_eq(ad_tensor_print(full, x[0]), AD_ERROR_STATE);
    fclose(full);
    ck_assert_ptr_nonnull(strstr(ad_tape_message((ad_tape){0, 0}), "No space left"));
    ck_assert_int_eq(ad_tape_status(tape), AD_OK);
    ck_assert_int_eq(ad_tensor_print(NULL, x[0]), AD_ERROR_ARGUMENT);
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_ARGUMENT);
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_tensor_print(stdout, (ad_tensor){0, 0, 0, 0}), AD_ERROR_HANDLE);
}

/* ---- the callback ---- */

static struct told {
    int calls;
    ad_status status, inside[5];
    ad_tape tape;
    char message[512];
} told;

static void listen(ad_tape t, ad_status status, const char *message, void *payload)
{
    struct told *to = payload;
    to->calls++;
    to->status = status;
    to->tape = t;
    snprintf(to->message, sizeof to->message, "%s", message);
    /* All of these are refused: the tape is in the middle of an op. */
    to->inside[0] = ad_tape_reset(t);
    to->inside[1] = ad_tape_destroy(t);
    ad_exp(x[0]);
    to->inside[2] = ad_tape_status((ad_tape){0, 0});
    ad_tape_clear_error(t);
    to->inside[3] = ad_tape_on_error(t, NULL, NULL);
    to->inside[4] = ad_tape_mark(t).tape ? AD_OK : ad_tape_status((ad_tape){0, 0});
}

TEST(the_callback_is_told_once_a_failure)
{
    memset(&told, 0, sizeof told);
    ck_assert_int_eq(ad_tape_on_error(tape, listen, &told), AD_OK);
    ad_exp(x[0]);
    ck_assert_int_eq(told.calls, 0);
    ad_tensor y = ad_matmul(x[1], x[1]);
    ck_assert_int_eq(told.calls, 1);
    ck_assert_int_eq(told.status, AD_ERROR_SHAPE);
    ck_assert_mem_eq(&told.tape, &tape, sizeof tape);
    ck_assert_str_eq(told.message, ad_tape_message(tape));
    ck_assert_ptr_nonnull(strstr(told.message, "test_user_output.c"));
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(told.inside[i], AD_ERROR_STATE);
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_SHAPE);
    ck_assert_int_eq(ad_backward(y), AD_ERROR_SHAPE);
    ad_matmul(x[1], x[1]);
    ck_assert_int_eq(told.calls, 1);
    ad_tape_clear_error(tape);
    ad_sum(y);
    ck_assert_int_eq(told.calls, 2);
    ck_assert_int_eq(told.status, AD_ERROR_HANDLE);
    ad_tape_reset(tape);
    ck_assert_int_eq(ad_tape_no_grad_end(tape), AD_ERROR_STATE);
    ck_assert_int_eq(told.calls, 3);
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_tape_on_error(tape, NULL, NULL), AD_OK);
    ck_assert_int_eq(ad_tape_no_grad_end(tape), AD_ERROR_STATE);
    ck_assert_int_eq(told.calls, 3);
    ck_assert_int_eq(ad_tape_on_error((ad_tape){0, 0}, listen, &told), AD_ERROR_HANDLE);
}

RUN_TESTS(setup, teardown)
