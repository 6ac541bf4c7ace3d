/* test_tensor_write.c: ad_tensor_write_c: what it writes is compiled, by two compilers without a
 * warning, and gives what replays and sweeps give, bit for bit; what is refused.
 */
#include <tapescope/ad.h>
#include <tapescope/ad_kernel.h>
#include <tapescope/ad_tensor_program.h>

#include "run_cases.h"
#include "written_support.h"

#include <check.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

/* ---- networks ---- */

enum { BATCH = 6, WIDTH = 5, N = BATCH * WIDTH, BATCHES = 4, STEPS = 12 };

static const int64_t square[2] = {WIDTH, WIDTH}, row[1] = {WIDTH}, batch_shape[2] = {BATCH, WIDTH},
                     labels_shape[1] = {BATCH}, gates[2] = {4 * WIDTH, WIDTH};
static double batch[BATCHES][N], w_data[4 * WIDTH * WIDTH], b_data[WIDTH];
static int64_t labels[BATCHES][BATCH];

static void numbers_set(void)
{
    for (int k = 0; k < BATCHES; k++)
        for (int i = 0; i < N; i++)
            batch[k][i] = ((i * 37 + k * 11) % 61 - 30) / 25.0;
    for (int k = 0; k < BATCHES; k++)
        for (int i = 0; i < BATCH; i++)
            labels[k][i] = (i * 3 + k) % WIDTH;
    for (int i = 0; i < 4 * WIDTH * WIDTH; i++)
        w_data[i] = (i * 7 % 13 - 6) / 10.0;
    for (int i = 0; i < WIDTH; i++)
        b_data[i] = (i - 2) / 8.0;
}

static int count_of(const char *name, const char *words)
{
    char path[PATH_MAX + WRITTEN_NAME];
    int n = 0;
    snprintf(path, sizeof path, "%s/%s.c", program_folder, name);
    char *text = program_text(path);
    for (const char *found = text; (found = strstr(found, words)) != NULL; found++)
        n++;
    free(text);
    return n;
}

struct model {
    ad_tensor w, b, x, labels, loss, turned;
};

static void model_begin(struct model *m)
{
    m->w = ad_leaf(tape, AD_F64, 2, square, w_data);
    m->b = ad_leaf(tape, AD_F64, 1, row, b_data);
    m->x = ad_constant(tape, AD_F64, 2, batch_shape, batch[0]);
    m->labels = ad_constant(tape, AD_I64, 1, labels_shape, labels[0]);
}

/* Frames, a view as a result, a number, and a number per class that is no input. */
static void model_record(struct model *m)
{
    static const double bias[WIDTH] = {0.25, -0.5, 1e-300, 0, 0.1};
    ad_frame frame = ad_frame_begin(tape);
    ad_tensor z = ad_linear(ad_tanh(ad_linear(m->x, m->w, m->b)), m->w, m->b);
    z = ad_add(z, ad_mul(ad_scalar_f64(tape, -3), ad_constant(tape, AD_F64, 1, row, bias)));
    m->turned = ad_transpose(z);
    m->loss =
        ad_add(ad_softmax_cross_entropy(z, m->labels), ad_mean(ad_square(ad_transpose(m->x))));
    ad_frame_end(frame, (ad_tensor[]){m->loss, m->turned}, 2);
}

TEST(training_by_a_file_is_training_by_replays)
{
    struct model m;
    double loss[2], turned[2][N], w_bar[2][WIDTH * WIDTH], b_bar[2][WIDTH];
    const double one = 1;
    numbers_set();
    model_begin(&m);
    check_ok(ad_tensor_program_begin(tape));
    model_record(&m);
    check_ok(ad_tensor_program_end(tape));
    /* What is on the tape stays as it is. */
    check_ok(ad_backward(m.loss));
    const ad_stats before = stats();
    FILE *file = written_open("mlp");
    check_ok(ad_tensor_write_c(file, tape, "mlp", 1, &m.loss, 4,
                               (ad_tensor[]){m.w, m.x, m.b, m.labels}));
    check_ok(ad_tensor_write_c(file, tape, "both", 2, (ad_tensor[]){m.loss, m.turned}, 4,
                               (ad_tensor[]){m.w, m.x, m.b, m.labels}));
    const ad_stats after = stats();
    ck_assert_uint_eq(after.live_bytes, before.live_bytes);
    ck_assert_uint_eq(after.peak_bytes, before.peak_bytes);
    fprintf(file, "const long mlp_room = mlp_work;\n");
    written_close(file, "both");
    ck_assert_int_gt(count_of("mlp", "test_tensor_write.c:"), 10);
    ck_assert_int_eq(count_of("mlp", "y[1]: f64 [5,6]"), 1);
    void *module = written_module("mlp");
    const struct written f = written_of(module, "mlp"), both = written_of(module, "both");
    for (int k = 0; k < BATCHES; k++) {
        const void *const x[4] = {w_data, batch[k], b_data, labels[k]};
        check_ok(ad_tape_zero_gradients(tape));
        check_ok(ad_tensor_replay(tape, 2, (ad_tensor[]){m.x, m.labels},
                                  (const void *const[]){batch[k], labels[k]}));
        check_ok(ad_backward(m.loss));
        check_ok(ad_value(m.turned, turned[0], N));
        check_ok(ad_gradient(m.w, w_bar[0], WIDTH * WIDTH));
        check_ok(ad_gradient(m.b, b_bar[0], WIDTH));
        loss[0] = ad_item(m.loss);
        ck_assert_ptr_null(f.adjoint(x, (void *const[]){&loss[1]}, (const void *const[]){&one},
                                     (void *const[]){w_bar[1], NULL, b_bar[1], NULL}, f.work));
        ck_assert_ptr_null(both.values(x, (void *const[]){&loss[1], turned[1]}, both.work));
        ck_assert(memcmp(&loss[0], &loss[1], sizeof loss[0]) == 0 &&
                  memcmp(turned[0], turned[1], sizeof turned[0]) == 0 &&
                  memcmp(w_bar[0], w_bar[1], sizeof w_bar[0]) == 0 &&
                  memcmp(b_bar[0], b_bar[1], sizeof b_bar[0]) == 0);
        for (int i = 0; i < WIDTH * WIDTH; i++)
            w_data[i] -= 0.5 * w_bar[0][i];
    }
    /* A label that is none: the line, and NaN; the reason is the thread's error. */
    labels[0][3] = WIDTH;
    const char *why = f.adjoint((const void *const[]){w_data, batch[0], b_data, labels[0]}, NULL,
                                (const void *const[]){&one},
                                (void *const[]){w_bar[1], NULL, b_bar[1], NULL}, f.work);
    ck_assert_msg(why && strstr(why, "softmax_cross_entropy at test_tensor_write.c:"), "%s", why);
    ck_assert(isnan(w_bar[1][0]) && isnan(b_bar[1][WIDTH - 1]));
    check_error_of((ad_tape){0}, AD_ERROR_VALUE, "label 5 of row 3 is not in 0..4");
    why =
        f.adjoint((const void *const[]){w_data, batch[1], b_data, labels[1]}, NULL,
                  (const void *const[]){&one}, (void *const[]){w_bar[1], NULL, NULL, NULL}, f.work);
    ck_assert_pstr_eq(why, "x_bar[2] is NULL");
    free(f.work);
    free(both.work);
    dlclose(module);
}

/* The cell's steps are a loop forward and one back, however many there are. */
static void lstm_write(int steps, const char *name, ad_tensor *w, ad_tensor *x, ad_tensor *y)
{
    FILE *file = written_open(name);
    check_ok(ad_tape_reset(tape));
    *w = ad_leaf(tape, AD_F64, 2, gates, w_data);
    *x = ad_constant(tape, AD_F64, 2, batch_shape, batch[0]);
    ad_tensor c = ad_constant(tape, AD_F64, 2, batch_shape, batch[1]);
    check_ok(ad_tensor_program_begin(tape));
    ad_tensor h = *x;
    for (int i = 0; i < steps; i++)
        h = ad_lstm_cell(ad_matmul(h, ad_transpose(*w)), c, &c);
    *y = ad_sum(ad_mul(h, c));
    check_ok(ad_tensor_program_end(tape));
    check_ok(ad_tensor_write_c(file, tape, "lstm", 1, y, 2, (ad_tensor[]){*w, *x}));
    written_close(file, "lstm");
}

TEST(steps_of_a_network_are_a_loop)
{
    ad_tensor w, x, y;
    double value[2], w_bar[2][4 * WIDTH * WIDTH];
    const double one = 1;
    numbers_set();
    lstm_write(STEPS, "short", &w, &x, &y);
    lstm_write(8 * STEPS, "long", &w, &x, &y);
    ck_assert_int_eq(count_of("long", "\n"), count_of("short", "\n"));
    ck_assert_int_eq(count_of("long", "for (long i = 0"), 2);
    void *module = written_module("long");
    const struct written f = written_of(module, "lstm");
    check_ok(ad_tensor_replay(tape, 1, &x, (const void *const[]){batch[2]}));
    check_ok(ad_backward(y));
    check_ok(ad_gradient(w, w_bar[0], 4 * WIDTH * WIDTH));
    value[0] = ad_item(y);
    ck_assert_ptr_null(f.adjoint((const void *const[]){w_data, batch[2]},
                                 (void *const[]){&value[1]}, (const void *const[]){&one},
                                 (void *const[]){w_bar[1], NULL}, f.work));
    ck_assert(memcmp(&value[0], &value[1], sizeof value[0]) == 0 &&
              memcmp(w_bar[0], w_bar[1], sizeof w_bar[0]) == 0 && w_bar[0][0] != 0);
    free(f.work);
    dlclose(module);
}

/* Two inputs that were one array when they were recorded are two. */
TEST(inputs_that_were_one_array_are_two)
{
    double x_bar[2], y_bar[2], value;
    const double a[2] = {2, 3}, b[2] = {5, 7}, one = 1;
    double shared[2] = {0.5, 0.25};
    ad_tensor x = ad_leaf(tape, AD_F64, 1, (int64_t[]){2}, shared);
    ad_tensor y = ad_leaf(tape, AD_F64, 1, (int64_t[]){2}, shared);
    check_ok(ad_tensor_program_begin(tape));
    ad_tensor z = ad_sum(ad_mul(ad_mul(x, y), y));
    check_ok(ad_tensor_program_end(tape));
    FILE *file = written_open("two");
    check_ok(ad_tensor_write_c(file, tape, "two", 1, &z, 2, (ad_tensor[]){x, y}));
    written_close(file, "two");
    void *module = written_module("two");
    const struct written f = written_of(module, "two");
    ck_assert_ptr_null(f.adjoint((const void *const[]){a, b}, (void *const[]){&value},
                                 (const void *const[]){&one}, (void *const[]){x_bar, y_bar},
                                 f.work));
    ck_assert(value == 197 && x_bar[0] == 25 && x_bar[1] == 49 && y_bar[0] == 20 && y_bar[1] == 42);
    free(f.work);
    dlclose(module);
}

/* ---- what is refused ---- */

/* What a file of another version, or of another library, would call. */
TEST(calls_of_other_kernels_are_refused)
{
    static const ad_kernel_array one = {.size = 1, .dense = 1, .dtype = AD_F64};
    double x = 4, y = 0;
    const ad_kernel_array *const arrays[] = {&one, &one, &one};
    ad_kernel_call call = {"no such op", 0, 1, 1, 0, 0, 0, arrays, NULL};
    ck_assert_ptr_nonnull(strstr(ad_kernels_ready(AD_KERNELS_VERSION + 1), "another version"));
    ck_assert_ptr_null(ad_kernels_ready(AD_KERNELS_VERSION));
    ck_assert_int_eq(ad_kernel_run(&call, (void *const[]){&y}, (const void *const[]){&x}, NULL),
                     -1);
    check_error_of((ad_tape){0}, AD_ERROR_ARGUMENT, "kernel_run: there is no no such op");
    call.op = "add";
    ck_assert_int_eq(ad_kernel_run(&call, (void *const[]){&y}, (const void *const[]){&x}, NULL),
                     -1);
    check_error_of((ad_tape){0}, AD_ERROR_ARGUMENT, "there is no add of 1 operands");
    call.op = "sqrt"; /* elsewhere in the table than the call says */
    ck_assert_int_eq(ad_kernel_run(&call, (void *const[]){&y}, (const void *const[]){&x}, NULL), 0);
    ck_assert_double_eq(y, 2);
}

static ad_status own_forward(ad_custom_call *c, void *payload)
{
    (void)payload;
    memcpy(c->out[0].data, c->in[0].data, N * sizeof(double));
    return AD_OK;
}

static ad_status own_pullback(ad_custom_call *c, void *payload)
{
    (void)payload;
    (void)c;
    return AD_OK;
}

static ad_status adjoint_seen(const ad_custom_array *adjoint, void *payload)
{
    (void)adjoint;
    (void)payload;
    return AD_OK;
}

static void program_begin(ad_tensor *x)
{
    check_ok(ad_tape_reset(tape));
    *x = ad_leaf(tape, AD_F64, 2, batch_shape, batch[0]);
    check_ok(ad_tensor_program_begin(tape));
}

#define REFUSED(...) check_call_refused(ad_tensor_write_c(__VA_ARGS__)

TEST(what_no_kernel_computes_is_refused_with_its_line)
{
    const ad_custom_array like = {.dtype = AD_F64, .rank = 2, .shape = {BATCH, WIDTH}};
    const ad_custom_rule rule = {.name = "own",
                                 .forward = own_forward,
                                 .pullback = own_pullback,
                                 .results = (ad_custom_array[]){like}};
    ad_tensor x, y;
    FILE *file = fopen("/dev/null", "w");
    ck_assert_ptr_nonnull(file);
    program_begin(&x);
    const unsigned line = __LINE__ + 1;
    check_ok(ad_custom(tape, &rule, NULL, 1, &x, 1, &y));
    check_ok(ad_tensor_program_end(tape));
    char words[120];
    snprintf(words, sizeof words, "tensor_write_c: own at test_tensor_write.c:%u", line);
    REFUSED(file, tape, "f", 1, &y, 1, &x), AD_ERROR_STATE, words);
    program_begin(&x);
    y = ad_exp(x);
    check_ok(ad_on_adjoint(y, adjoint_seen, NULL));
    check_ok(ad_tensor_program_end(tape));
    REFUSED(file, tape, "f", 1, &y, 1, &x), AD_ERROR_STATE, "has an ad_on_adjoint");
    program_begin(&x);
    y = ad_dropout(x, 0.5, 1);
    check_call_refused(ad_tensor_program_end(tape), AD_ERROR_STATE, "dropout");
    REFUSED(file, tape, "f", 1, &y, 1, &x), AD_ERROR_STATE, "tensor_write_c: the tape has no");
    fclose(file);
}

TEST(mistakes_are_one_error)
{
    static double many[(1 << 20) + 1];
    static const char *const bad[] = {"", "3d", "a-b", "name*/", NULL};
    ad_tensor x, y;
    FILE *file = fopen("/dev/null", "w"), *unwritable = fopen("/dev/null", "r"),
         *full = fopen("/dev/full", "w");
    ck_assert(file && unwritable && full);
    program_begin(&x);
    y = ad_exp(x);
    REFUSED(file, tape, "f", 1, &y, 1, &x), AD_ERROR_STATE, "the tape has no program");
    check_ok(ad_tensor_program_end(tape));
    REFUSED(NULL, tape, "f", 1, &y, 1, &x), AD_ERROR_ARGUMENT, "file is a null pointer");
    REFUSED(file, tape, NULL, 1, &y, 1, &x), AD_ERROR_ARGUMENT, "name is a null pointer");
    for (int k = 0; bad[k]; k++)
        REFUSED(file, tape, bad[k], 1, &y, 1, &x), AD_ERROR_ARGUMENT, "name is no identifier");
    REFUSED(file, tape, "f", -1, &y, 1, &x), AD_ERROR_ARGUMENT, "is negative");
    REFUSED(file, tape, "f", 1, NULL, 1, &x), AD_ERROR_ARGUMENT, "y or x is a null pointer");
    REFUSED(file, tape, "f", 1, &y, 1, &y), AD_ERROR_HANDLE, "x[0] is neither a leaf");
    REFUSED(file, tape, "f", 1, &y, 1, &(ad_tensor){0}), AD_ERROR_HANDLE, "x[0]");
    REFUSED(file, tape, "f", 1, &y, 2, ((ad_tensor[]){x, x})), AD_ERROR_ARGUMENT, "x[1] is named");
    REFUSED(file, tape, "f", 2, ((ad_tensor[]){y, y}), 1, &x), AD_ERROR_ARGUMENT, "y[1] is named");
    ck_assert_int_eq(ad_tensor_write_c(file, (ad_tape){0}, "f", 1, &y, 1, &x), AD_ERROR_HANDLE);
    check_error_of((ad_tape){0}, AD_ERROR_HANDLE, "tensor_write_c: the handle is zero");
    ck_assert_int_eq(ad_tensor_write_c(unwritable, tape, "f", 1, &y, 1, &x), AD_ERROR_STATE);
    check_error_of((ad_tape){0}, AD_ERROR_STATE, "tensor_write_c: ");
    ck_assert_int_eq(ad_tensor_write_c(full, tape, "f", 1, &y, 1, &x), AD_ERROR_STATE);
    check_error_of((ad_tape){0}, AD_ERROR_STATE, "tensor_write_c: No space left on device");
    check_ok(ad_tensor_write_c(file, tape, "f", 1, &y, 1, &x));
    ad_tensor later = ad_exp(y);
    REFUSED(file, tape, "f", 1, &later, 1, &x), AD_ERROR_STATE, "tensor_write_c: exp at");
    program_begin(&x);
    y = ad_sum(ad_constant(tape, AD_F64, 1, (int64_t[]){(1 << 20) + 1}, many));
    check_ok(ad_tensor_program_end(tape));
    REFUSED(file, tape, "f", 1, &y, 1, &x), AD_ERROR_LIMIT, "1048577 numbers");
    program_begin(&x);
    y = x;
    for (int k = 0; k < 33000; k++) /* and as many back, no two alike */
        y = ad_scale(y, 1 + k * 1e-9);
    check_ok(ad_tensor_program_end(tape));
    REFUSED(file, tape, "f", 1, &y, 1, &x), AD_ERROR_LIMIT, "calls are left after loops");
    fclose(file);
    fclose(unwritable);
    fclose(full);
}

static void begin(void)
{
    program_setup();
    tape_begin(NULL);
}

static void end(void)
{
    teardown_fine();
    program_teardown();
}

RUN_TESTS(begin, end)
