/* test_interface.c: what the public functions share: flags, options, several gradients at once,
 * the line of a no_grad that stays open, status and message of one handle. */
#include <tapescope/ad.h>
#include <tapescope/ad_real.h>

#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})

/* Programs that are compiled have these numbers in them. */
_Static_assert(AD_KEEPDIM == 2 && AD_CAUSAL == 4 && AD_KEEP_WEIGHTS == 8 && AD_UPPER == 16 &&
                   AD_TRANSPOSED == 32 && AD_UNIT_DIAGONAL == 64 && AD_DESCENDING == 128 &&
                   AD_REVERSE == 256 && AD_SKIP_PADDING == 512 && AD_SMALLEST == 1024,
               "a flag never moves");

static const ad_tape none;
static ad_tape tape;
static double numbers[144];

static void setup(void)
{
    setenv("TAPESCOPE_MODULE_DIR", TAPESCOPE_LIB_DIR "/tapescope", 1);
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    for (int i = 0; i < 144; i++)
        numbers[i] = (i * 37 % 101 - 50) / 16.0;
}

static void teardown(void)
{
    ad_tape_clear_error(none);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

/* ---- buffers of calls that failed ---- */

TEST(a_call_that_failed_leaves_nan_in_the_buffer)
{
    double buffer[5] = {7, 7, 7, 7, 7}, out[4] = {7, 7, 7, 7};
    float single[2] = {7, 7};
    int64_t whole[2] = {7, 7};
    const ad_tensor x = ad_leaf(tape, AD_F64, 1, SHAPE(3), numbers);
    const ad_tensor f = ad_leaf(tape, AD_F32, 1, SHAPE(2), (float[]){1, 2});
    const ad_tensor i = ad_constant(tape, AD_I64, 1, SHAPE(2), SHAPE(1, 2));
    ck_assert_int_eq(ad_gradient(x, buffer, 3), AD_ERROR_STATE); /* no sweep */
    ck_assert(isnan(buffer[0]) && isnan(buffer[1]) && isnan(buffer[2]) && buffer[3] == 7);
    /* The sticky error is one too. */
    buffer[0] = single[1] = 7;
    ck_assert_int_eq(ad_gradient(x, buffer, 3), AD_ERROR_STATE);
    ck_assert_int_eq(ad_gradient(f, single, 2), AD_ERROR_STATE);
    ck_assert(isnan(buffer[0]) && isnan(single[0]) && isnan(single[1]));
    ad_tape_clear_error(tape);
    /* Neither beyond the buffer nor beyond the tensor. */
    buffer[0] = buffer[1] = buffer[2] = 7;
    ck_assert_int_eq(ad_value(x, buffer, 2), AD_ERROR_ARGUMENT);
    ck_assert(isnan(buffer[0]) && isnan(buffer[1]) && buffer[2] == 7);
    ck_assert_int_eq(ad_value(x, buffer, 5), AD_ERROR_ARGUMENT);
    ck_assert(isnan(buffer[2]) && buffer[3] == 7 && buffer[4] == 7);
    ck_assert_int_eq(ad_value(x, buffer, -1), AD_ERROR_ARGUMENT);
    ck_assert_int_eq(ad_value(x, NULL, 3), AD_ERROR_ARGUMENT);
    ck_assert_int_eq(ad_value(i, whole, 3), AD_ERROR_ARGUMENT);
    ck_assert(whole[0] == INT64_MIN && whole[1] == INT64_MIN);
    ad_tape_clear_error(tape);
    /* What sweeps add to is the user's. */
    buffer[0] = buffer[1] = buffer[2] = 7;
    ck_assert_int_eq(ad_gradient_buffer(x, buffer, 3), AD_OK);
    ad_tanh((ad_tensor){x.tape, x.tape_generation, 0, 0});
    ck_assert_int_ne(ad_gradient(x, buffer, 3), AD_OK);
    ck_assert(buffer[0] == 7 && buffer[1] == 7 && buffer[2] == 7);
    ad_tape_clear_error(tape);
    /* Numbers. */
    ad_real r[2];
    ck_assert_int_eq(ad_real_leaves(tape, 2, numbers, r), AD_OK);
    ck_assert_int_eq(ad_real_gradients(tape, 2, r, out), AD_ERROR_STATE);
    ck_assert(isnan(out[0]) && isnan(out[1]) && out[2] == 7);
    out[0] = out[1] = 7;
    ck_assert_int_eq(ad_real_jacobian(tape, 2, r, 2, r, out), AD_ERROR_STATE);
    ck_assert(isnan(out[0]) && isnan(out[1]) && isnan(out[2]) && isnan(out[3]));
    ck_assert_int_eq(ad_real_gradients(tape, -1, r, out), AD_ERROR_STATE);
    ck_assert_int_eq(ad_real_gradients(tape, INT64_MAX, r, out), AD_ERROR_STATE);
    ck_assert_int_eq(ad_real_jacobian(tape, INT64_MAX, r, INT64_MAX, r, out), AD_ERROR_STATE);
    ad_tape_clear_error(tape);
}

/* ---- options ---- */

/* Both were computed and are the same, bit for bit. */
static void check_same(ad_tensor a, ad_tensor b)
{
    double of_a[256], of_b[256];
    int64_t shape_a[AD_MAX_RANK], shape_b[AD_MAX_RANK];
    ck_assert_msg(ad_tape_status(tape) == AD_OK, "%s", ad_tape_message(tape));
    const int rank = ad_rank(a);
    const int64_t n = ad_size(a);
    ck_assert_int_eq(rank, ad_rank(b));
    ck_assert_int_eq(ad_shape(a, shape_a), AD_OK);
    ck_assert_int_eq(ad_shape(b, shape_b), AD_OK);
    ck_assert(memcmp(shape_a, shape_b, (size_t)rank * sizeof *shape_a) == 0);
    ck_assert_int_gt(n, 0);
    ck_assert_int_eq(ad_value(a, of_a, n), AD_OK);
    ck_assert_int_eq(ad_value(b, of_b, n), AD_OK);
    ck_assert(memcmp(of_a, of_b, (size_t)n * sizeof *of_a) == 0);
}

TEST(a_field_of_a_convolution_that_is_zero_has_its_default)
{
    const ad_tensor x = ad_leaf(tape, AD_F64, 4, SHAPE(1, 2, 6, 6), numbers);
    const ad_tensor w = ad_leaf(tape, AD_F64, 4, SHAPE(2, 2, 3, 3), numbers + 72);
    const ad_tensor line = ad_select(x, 2, 1), window = ad_select(w, 2, 1);
    const ad_conv2d_options one2 = {1, 1, 0, 0, 1, 1, 1}, zeros2 = {0};
    const ad_conv1d_options one1 = {1, 0, 1, 1}, zeros1 = {0};
    const ad_conv_transpose2d_options back = {1, 1, 0, 0, 1, 1, 1, 0, 0}, zeros = {0};
    const ad_tensor plain = ad_conv2d(x, w, &one2);
    check_same(ad_conv2d(x, w, NULL), plain);
    check_same(ad_conv2d(x, w, &zeros2), plain);
    check_same(ad_conv1d(line, window, NULL), ad_conv1d(line, window, &one1));
    check_same(ad_conv1d(line, window, &zeros1), ad_conv1d(line, window, &one1));
    check_same(ad_conv_transpose2d(plain, w, NULL), ad_conv_transpose2d(plain, w, &back));
    check_same(ad_conv_transpose2d(plain, w, &zeros), ad_conv_transpose2d(plain, w, &back));
    check_same(ad_conv2d(x, w, &(ad_conv2d_options){.stride_w = 2, .padding_h = 1}),
               ad_conv2d(x, w, &(ad_conv2d_options){1, 2, 1, 0, 1, 1, 1}));
    check_same(ad_conv2d(x, w, &(ad_conv2d_options){.dilation_h = 2, .padding_w = 2}),
               ad_conv2d(x, w, &(ad_conv2d_options){1, 1, 0, 2, 2, 1, 1}));
}

TEST(a_pool_strides_by_its_kernel_unless_told_otherwise)
{
    const ad_tensor x = ad_leaf(tape, AD_F64, 3, SHAPE(2, 6, 6), numbers);
    check_same(ad_max_pool2d(x, 2, 3, NULL),
               ad_max_pool2d(x, 2, 3, &(ad_max_pool2d_options){2, 3, 0, 0}));
    check_same(ad_max_pool2d(x, 2, 3, &(ad_max_pool2d_options){.stride_w = 1, .padding_h = 1}),
               ad_max_pool2d(x, 2, 3, &(ad_max_pool2d_options){2, 1, 1, 0}));
    check_same(ad_max_pool1d(x, 3, NULL), ad_max_pool1d(x, 3, &(ad_max_pool1d_options){3, 0}));
    check_same(ad_avg_pool2d(x, 2, 3, NULL),
               ad_avg_pool2d(x, 2, 3, &(ad_avg_pool2d_options){2, 3, 0, 0, 0}));
    check_same(ad_avg_pool1d(x, 2, NULL), ad_avg_pool1d(x, 2, &(ad_avg_pool1d_options){2, 0, 0}));
}

/* ---- several gradients ---- */

TEST(several_gradients_are_read_by_one_call)
{
    double of_x[3], of_y[2], alone[3];
    const ad_tensor x = ad_leaf(tape, AD_F64, 1, SHAPE(3), numbers);
    const ad_tensor y = ad_leaf(tape, AD_F64, 1, SHAPE(2), numbers + 3);
    const ad_tensor z = ad_leaf(tape, AD_F64, 1, SHAPE(0), NULL), all[] = {y, z, x};
    ck_assert_int_eq(ad_backward(ad_mul(ad_sum(ad_exp(x)), ad_sum(ad_square(y)))), AD_OK);
    ck_assert_int_eq(ad_gradients(3, all, (void *[]){of_y, NULL, of_x}, SHAPE(2, 0, 3)), AD_OK);
    ck_assert_int_eq(ad_gradient(x, alone, 3), AD_OK);
    ck_assert_mem_eq(alone, of_x, sizeof of_x);
    ck_assert_int_eq(ad_gradient(y, alone, 2), AD_OK);
    ck_assert_mem_eq(alone, of_y, sizeof of_y);
    ck_assert_int_eq(ad_gradients(0, NULL, NULL, NULL), AD_OK);
}

/* The second of two is refused by `wanted`, on this line, and the first is NaN. */
static void check_none(ad_tensor first, ad_tensor second, void *buffer, int64_t count,
                       ad_status status, const char *wanted)
{
    double kept[3] = {7, 8, 9};
    const ad_tensor pair[] = {first, second};
    char where[64];
    const int line = __LINE__ + 1;
    const ad_status got = ad_gradients(2, pair, (void *[]){kept, buffer}, SHAPE(3, count));
    snprintf(where, sizeof where, " at test_interface.c:%d in check_none", line);
    ck_assert_int_eq(got, status);
    ck_assert_int_eq(ad_tape_status(tape), status);
    ck_assert_msg(strstr(ad_tape_message(tape), wanted) && strstr(ad_tape_message(tape), where),
                  "%s", ad_tape_message(tape));
    if (!strstr(wanted, "x[0]")) /* else it is no tensor */
        ck_assert(isnan(kept[0]) && isnan(kept[1]) && isnan(kept[2]));
    ad_tape_clear_error(tape);
}

TEST(of_several_gradients_all_are_read_or_all_are_nan)
{
    double room[3];
    ad_tape other;
    const ad_tensor x = ad_leaf(tape, AD_F64, 1, SHAPE(3), numbers), zero = {0};
    const ad_tensor c = ad_constant(tape, AD_F64, 1, SHAPE(2), numbers);
    ck_assert_int_eq(ad_tape_create(&other, NULL), AD_OK);
    const ad_tensor foreign = ad_leaf(other, AD_F64, 1, SHAPE(3), numbers);
    const ad_tensor h = ad_exp(x), stale = ad_exp(h);
    ck_assert_int_eq(ad_backward(ad_sum(h)), AD_OK);
    ck_assert_int_eq(ad_release(stale), AD_OK);
    check_none(x, c, room, 2, AD_ERROR_STATE, "gradients: x[1]: a constant has none");
    check_none(x, h, room, 3, AD_ERROR_STATE,
               "gradients: x[1]: an intermediate's gradient is kept only after ad_retain_gradient");
    check_none(x, x, room, 2, AD_ERROR_ARGUMENT,
               "gradients: x[1]: the buffer has 2 elements, f64 [3] has 3");
    check_none(x, x, NULL, 3, AD_ERROR_ARGUMENT, "gradients: x[1]: buffer is a null pointer");
    check_none(x, foreign, room, 3, AD_ERROR_TAPE, "gradients: x[1] is of another tape");
    check_none(x, zero, room, 3, AD_ERROR_HANDLE, "gradients: x[1] is a handle of zeros");
    check_none(x, stale, room, 3, AD_ERROR_HANDLE, "gradients: x[1] was released");
    check_none(stale, x, room, 3, AD_ERROR_HANDLE, "gradients: x[0]");
    const ad_tensor late = ad_exp(x);
    ck_assert_int_eq(ad_retain_gradient(late), AD_OK);
    check_none(x, late, room, 3, AD_ERROR_STATE, "gradients: x[1]: no sweep since ad_retain");
    ck_assert_int_eq(ad_gradients(1, &x, NULL, SHAPE(3)), AD_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "gradients: buffers is a null pointer"));
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_gradients(1, &x, (void *[]){room}, NULL), AD_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "gradients: counts is a null pointer"));
    /* An error of the tape is the answer, as of every call. */
    ck_assert_int_eq(ad_gradients(1, &x, (void *[]){room}, SHAPE(3)), AD_ERROR_ARGUMENT);
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_tape_status(none), AD_OK);
    ck_assert_int_eq(ad_gradients(-1, &x, (void *[]){room}, SHAPE(3)), AD_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(none), "gradients: n is negative at "));
    ck_assert_int_eq(ad_gradients(1, NULL, (void *[]){room}, SHAPE(3)), AD_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(none), "gradients: x is a null pointer at "));
    ck_assert_int_eq(ad_tape_status(tape), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(other), AD_OK);
}

/* ---- no_grad left open ---- */

/* The tape's error ends with the begin of this line, and the call's line behind it; 0: it speaks of
 * none. */
static void check_open(int begun)
{
    char text[96];
    const char *message = ad_tape_message(tape), *open = strstr(message, "; no_grad");
    ck_assert_int_ne(ad_tape_status(tape), AD_OK);
    snprintf(text, sizeof text, "; no_grad begun at test_interface.c:%d in ", begun);
    if (begun)
        ck_assert_msg(open && strncmp(open, text, strlen(text)) == 0 &&
                          strstr(open, " is still open at test_interface.c:"),
                      "%d: %s", begun, message);
    else
        ck_assert_msg(!open, "%s", message);
    ad_tape_clear_error(tape);
}

static int begin(void)
{
    ck_assert_int_eq(ad_tape_no_grad_begin(tape), AD_OK);
    return __LINE__ - 1;
}

static ad_tensor energy(ad_tape on, const ad_tensor *v, int n, void *payload)
{
    (void)on, (void)n, (void)payload;
    return ad_sum(ad_square(v[0]));
}

TEST(what_fails_under_an_open_no_grad_names_the_line_of_its_begin)
{
    double g[3];
    ad_tensor of[1];
    const ad_tensor x = ad_leaf(tape, AD_F64, 1, SHAPE(3), numbers), zero = {0};
    const ad_tensor before = ad_sum(ad_exp(x));
    ck_assert_int_eq(ad_tape_no_grad_begin(tape), AD_OK);
    const int line = __LINE__ - 1;
    const ad_tensor h = ad_exp(x), y = ad_sum(h);
    ck_assert_int_eq(ad_backward(y), AD_ERROR_STATE);
    check_open(line);
    ck_assert_int_eq(ad_backward_seed(h, x), AD_ERROR_STATE);
    check_open(line);
    ck_assert_int_eq(ad_backward_release(y), AD_ERROR_STATE);
    check_open(line);
    ck_assert_int_eq(ad_gradient(h, g, 3), AD_ERROR_STATE);
    check_open(line);
    ck_assert_int_eq(ad_gradients(1, &h, (void *[]){g}, SHAPE(3)), AD_ERROR_STATE);
    check_open(line);
    ck_assert_int_eq(ad_retain_gradient(h), AD_ERROR_STATE);
    check_open(line);
    ck_assert_int_eq(ad_create_graph(before, zero, 1, &x, of), AD_ERROR_STATE);
    check_open(line);
    ck_assert_int_eq(ad_create_graph(y, zero, 1, &x, of), AD_ERROR_STATE);
    check_open(line);
    ck_assert_int_eq(ad_check_gradient(tape, energy, 1, &x, 1e-6, NULL, NULL), AD_ERROR_STATE);
    check_open(line);
    ad_real r = ad_real_leaf(tape, 2), s = ad_real_of(ad_real_square(r));
    ck_assert_int_eq(ad_real_backward(tape, s), AD_ERROR_STATE);
    check_open(line);
    ck_assert_int_eq(ad_real_gradients(tape, 1, &s, g), AD_ERROR_HANDLE);
    check_open(line);
    ck_assert_int_eq(ad_tape_no_grad_end(tape), AD_OK);
    /* Ended, it is not spoken of. */
    ck_assert_int_eq(ad_backward(y), AD_ERROR_STATE);
    check_open(0);
    ck_assert_int_eq(ad_gradient(h, g, 3), AD_ERROR_STATE);
    check_open(0);
    ck_assert_int_eq(ad_create_graph(before, zero, 1, &h, of), AD_ERROR_STATE);
    check_open(0);
    ck_assert_int_eq(ad_backward(before), AD_OK);
}

TEST(of_nested_levels_the_innermost_that_is_open_is_named)
{
    const ad_tensor x = ad_leaf(tape, AD_F64, 0, NULL, numbers);
    ck_assert_int_eq(ad_tape_no_grad_begin(tape), AD_OK);
    const int outer = __LINE__ - 1, inner = begin();
    const ad_tensor y = ad_exp(x);
    (void)!ad_backward(y);
    check_open(inner);
    ck_assert_int_eq(ad_tape_no_grad_end(tape), AD_OK);
    (void)!ad_backward(y);
    check_open(outer);
    /* Deeper than the tape keeps lines for: one that is open. */
    for (int i = 0; i < 40; i++)
        (void)begin();
    (void)!ad_backward(y);
    check_open(inner);
    for (int i = 0; i < 40; i++)
        ck_assert_int_eq(ad_tape_no_grad_end(tape), AD_OK);
    (void)!ad_backward(y);
    check_open(outer);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    (void)!ad_backward(ad_exp(ad_constant(tape, AD_F64, 0, NULL, numbers)));
    check_open(0);
}

TEST(a_rewind_opens_and_closes_levels_with_their_lines)
{
    const ad_tensor x = ad_leaf(tape, AD_F64, 0, NULL, numbers);
    const ad_mark outside = ad_tape_mark(tape);
    ck_assert_int_eq(ad_tape_no_grad_begin(tape), AD_OK);
    const int line = __LINE__ - 1;
    const ad_mark within = ad_tape_mark(tape);
    (void)begin();
    ck_assert_int_eq(ad_tape_rewind(tape, within), AD_OK);
    (void)!ad_backward(ad_exp(x));
    check_open(line);
    ck_assert_int_eq(ad_tape_no_grad_end(tape), AD_OK);
    ck_assert_int_eq(ad_tape_rewind(tape, within), AD_OK);
    (void)!ad_backward(ad_exp(x));
    check_open(line);
    /* Another level took the place of the one that is open again: its line is not made up. */
    ck_assert_int_eq(ad_tape_no_grad_end(tape), AD_OK);
    (void)begin();
    ck_assert_int_eq(ad_tape_rewind(tape, within), AD_OK);
    (void)!ad_backward(ad_exp(x));
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "; no_grad is still open at "));
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_tape_rewind(tape, outside), AD_OK);
    ck_assert_int_eq(ad_backward(ad_exp(x)), AD_OK);
}

TEST(a_fork_made_under_no_grad_names_its_parents_line)
{
    ad_tape fork;
    ad_real y;
    ad_real_leaf(tape, 1);
    const int line = begin();
    ck_assert_int_eq(ad_tape_fork(tape, 1, &fork), AD_OK);
    ck_assert_int_eq(ad_tape_record_begin(fork), AD_OK);
    for (int i = 0; i < 2; i++) {
        ad_set(&y, ad_real_square(2.0));
        char text[96];
        snprintf(text, sizeof text, "; no_grad begun at test_interface.c:%d in begin", line);
        (void)ad_check_gradient(fork, energy, 1, &(ad_tensor){0}, 1e-6, NULL, NULL);
        ck_assert_msg(strstr(ad_tape_message(fork), text) != NULL, "%s", ad_tape_message(fork));
        ad_tape_clear_error(fork);
        ck_assert_int_eq(ad_tape_no_grad_end(fork), AD_OK);
        (void)ad_tape_no_grad_begin(fork);
        ck_assert_int_eq(ad_tape_reset(fork), AD_OK); /* as it was made */
    }
    ck_assert_int_eq(ad_tape_record_end(fork), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(fork), AD_OK);
}

/* ---- status and message ---- */

static void check_agree(ad_tape handle, ad_status status, const char *text)
{
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ad_tape_status(handle), status);
        const char *message = ad_tape_message(handle);
        ck_assert_msg(strncmp(message, text, strlen(text)) == 0, "%s", message);
        ck_assert_msg((message[0] == 0) == (status == AD_OK), "%s", message);
        ck_assert_int_eq(ad_tape_status(handle), status);
    }
}

TEST(status_and_message_of_a_handle_are_of_one_error)
{
    ad_tape gone;
    ck_assert_int_eq(ad_tape_create(&gone, NULL), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(gone), AD_OK);
    check_agree(none, AD_OK, "");
    check_agree(tape, AD_OK, "");
    /* What belongs to no tape is nothing to this one. */
    ck_assert_int_eq(ad_set_threads(0), AD_ERROR_ARGUMENT);
    check_agree(tape, AD_OK, "");
    check_agree(none, AD_ERROR_ARGUMENT, "set_threads: ");
    ad_tape_clear_error(none);
    /* A destroyed tape has the thread's error, be it an older one that was not read. */
    ck_assert_int_eq(ad_set_threads(0), AD_ERROR_ARGUMENT);
    check_agree(gone, AD_ERROR_ARGUMENT, "set_threads: ");
    ck_assert_int_eq(ad_tape_stats(gone, NULL), AD_ERROR_HANDLE);
    check_agree(gone, AD_ERROR_HANDLE, "tape_stats: the tape was destroyed");
    ad_tape_clear_error(none);
    check_agree(gone, AD_ERROR_HANDLE, "tape_status: the tape was destroyed");
    /* Of a tape with an error both are its own, whatever the thread's is. */
    ck_assert_int_eq(ad_tape_no_grad_end(tape), AD_ERROR_STATE);
    check_agree(tape, AD_ERROR_STATE, "tape_no_grad_end: there was no begin");
    ad_tape_clear_error(tape);
    check_agree(tape, AD_OK, "");
}

static ad_tensor detached(ad_tape on, const ad_tensor *v, int n, void *payload)
{
    (void)on, (void)n, (void)payload;
    return ad_sum(ad_mul(v[0], ad_detach(v[0])));
}

TEST(failures_that_are_not_kept_in_the_tape_are_the_threads)
{
    ad_gradient_report report;
    const ad_tensor x = ad_leaf(tape, AD_F64, 1, SHAPE(3), numbers);
    ck_assert_int_eq(ad_check_gradient(tape, detached, 1, &x, 1e-6, NULL, &report),
                     AD_ERROR_GRADIENT);
    check_agree(tape, AD_OK, "");
    check_agree(none, AD_ERROR_GRADIENT, report.message);
    ad_tape_clear_error(none);
    FILE *full = fopen("/dev/full", "w");
    ck_assert_ptr_nonnull(full);
    setvbuf(full, NULL, _IONBF, 0);
    ck_assert_int_eq(ad_tensor_print(full, x), AD_ERROR_STATE);
    fclose(full);
    check_agree(tape, AD_OK, "");
    check_agree(none, AD_ERROR_STATE, "tensor_print: ");
}

RUN_TESTS(setup, teardown)
