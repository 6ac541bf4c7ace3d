/* test_checkpoint_errors.c: checkpoints that fail: at their call, in their function, in a sweep.
 *
 * After each the tape is as it was and serves again.
 */
#include "run_cases.h"

#include <tapescope/ad.h>
#include <tapescope/ad_real.h>

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

enum { N = 6, MANY = 65536 };

static const int64_t shape[1] = {N}, halves[2] = {2, 3};
static double data[N], other[N], inner[N];
static ad_tensor x;

static void setup(void)
{
    for (int i = 0; i < N; i++) {
        data[i] = (i * 5 % N + 0.5) / 4;
        other[i] = inner[i] = (i * 7 % N - 2.25) / 3;
    }
    static const ad_tape_options small = {
        .budget_bytes = 64 << 20, .reserve_bytes = 256 << 20, .check = AD_CHECK_ALL};
    tape_begin(&small);
    x = ad_leaf(tape, AD_F64, 1, shape, data);
}

static void check_same(ad_stats before)
{
    const ad_stats after = stats();
    ck_assert_uint_eq(after.values, before.values);
    ck_assert_uint_eq(after.records, before.records);
    ck_assert_uint_eq(after.live_bytes, before.live_bytes);
}

static void check_serves(void)
{
    double gradient[N];
    ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
    ck_assert_int_eq(ad_backward(ad_sum(ad_square(x))), AD_OK);
    ck_assert_int_eq(ad_gradient(x, gradient, N), AD_OK);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq(gradient[i], 2 * data[i]);
}

/* A function that begins to do otherwise at its call number `from`. */
struct fickle {
    const char *what;
    int call, from;
    ad_tensor older[2], made, foreign;
};

static void fickle(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                   void *payload)
{
    struct fickle *f = payload;
    const bool now = ++f->call >= f->from;
    const char *what = now ? f->what : "";
    (void)n_in;
    (void)n_out;
    ad_tensor h = ad_scale(in[0], strcmp(what, "an attribute") == 0 ? 3 : 2);
    if (strcmp(what, "one op more") == 0)
        ad_neg(h);
    h = strcmp(what, "another op") == 0 ? ad_sin(h) : ad_cos(h);
    if (strcmp(what, "under no_grad") == 0)
        ad_tape_no_grad_begin(on);
    h = ad_mul(h, f->older[strcmp(what, "an older operand") == 0]);
    const double last = inner[N - 1];
    if (strcmp(what, "a constant's numbers") == 0)
        inner[N - 1] = 1.125;
    ad_tensor constant = ad_constant(on, AD_F64, 1, shape, inner);
    inner[N - 1] = last;
    h = ad_mul(h, constant);
    h = ad_mul(h, ad_scalar_f64(on, strcmp(what, "a number") == 0 ? 1.5 : 2.5));
    ad_tensor next = ad_mul(h, strcmp(what, "an operand") == 0 ? in[0] : h);
    out[0] = strcmp(what, "a result") == 0 ? h : next;
    if (strcmp(what, "a shape") == 0)
        out[0] = ad_reshape(out[0], halves, 2);
    if (strcmp(what, "a failure") == 0)
        out[0] = ad_matmul(out[0], ad_scalar_f32(on, 1));
    if (strcmp(what, "no result") == 0)
        out[0] = (ad_tensor){0, 0, 0, 0};
    if (strcmp(what, "another tape's result") == 0)
        out[0] = f->foreign;
    if (strcmp(what, "an old result") == 0)
        out[0] = f->made;
    if (strcmp(what, "a released result") == 0)
        ad_release(out[0]);
    f->made = next;
}

static struct fickle fickle_of(const char *what, int from)
{
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    x = ad_leaf(tape, AD_F64, 1, shape, data);
    ad_tensor leaf = ad_leaf(tape, AD_F64, 1, shape, other);
    return (struct fickle){.what = what, .from = from, .older = {leaf, ad_scale(leaf, 1)}};
}

TEST(a_function_that_does_otherwise_in_a_sweep_fails_it)
{
    static const struct {
        const char *what, *words;
    } ways[] = {{"", NULL},
                {"an attribute", "on other operands, attributes or constants"},
                {"one op more", "checkpoint: its function did not do the same again: 7 ops in the "
                                "sweep, 6 before; the call is at test_checkpoint_errors.c:"},
                {"another op", "other operands"},
                {"an older operand", "other operands"},
                {"a constant's numbers", "constants"},
                {"a number", "constants"},
                {"an operand", "other operands"},
                {"a result", "other operands"},
                {"a shape", "7 ops in the sweep, 6 before"},
                {"under no_grad", "other operands"}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct fickle f = fickle_of(ways[i].what, 2);
        ad_tensor y;
        ck_assert_msg(ad_checkpoint(tape, fickle, &f, 1, &x, 1, &y) == AD_OK, "%s",
                      ad_tape_message(tape));
        ad_tensor loss = ad_sum(ad_square(y));
        const ad_stats before = stats();
        const ad_status status = ad_backward(loss);
        ck_assert_int_eq(f.call, 2);
        ck_assert_msg(status == (ways[i].words ? AD_ERROR_STATE : AD_OK), "%s: %s", ways[i].what,
                      ad_status_name(status));
        if (ways[i].words)
            check_error(AD_ERROR_STATE, ways[i].words);
        check_same(before);
        f.from = 100;
        ck_assert_int_eq(ad_backward(loss), AD_OK);
        check_serves();
    }
}

TEST(a_failure_within_the_function_is_told_by_its_own_line)
{
    static const struct {
        const char *what, *words;
        ad_status status;
    } ways[] = {
        {"a failure", "matmul: ", AD_ERROR_DTYPE},
        {"no result", "checkpoint: out[0] of its function is a handle of zeros", AD_ERROR_HANDLE},
        {"another tape's result", "checkpoint: out[0] of its function is of another tape",
         AD_ERROR_TAPE},
        {"an old result", "checkpoint: out[0] of its function was dropped", AD_ERROR_HANDLE},
        {"a released result", "checkpoint: out[0] of its function was released at",
         AD_ERROR_HANDLE}};
    ad_tape foreign;
    ck_assert_int_eq(ad_tape_create(&foreign, NULL), AD_OK);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        for (int from = 1; from <= 3; from++) {
            struct fickle f = fickle_of(ways[i].what, from);
            f.foreign = ad_scalar_f64(foreign, 1);
            ad_tensor y, first;
            if (strcmp(ways[i].what, "an old result") == 0) { /* one that there was */
                f.from = 10;
                ck_assert_int_eq(ad_checkpoint(tape, fickle, &f, 1, &x, 1, &first), AD_OK);
                f.call = 0;
                f.from = from;
            }
            ad_stats before = stats();
            ad_status status = ad_checkpoint(tape, fickle, &f, 1, &x, 1, &y);
            if (from > 1) {
                ck_assert_msg(status == AD_OK, "%s", ad_tape_message(tape));
                ad_tensor loss = ad_sum(y);
                before = stats();
                status = ad_backward(loss);
                if (from > 2) {
                    ck_assert_int_eq(status, AD_OK);
                    status = ad_backward(loss);
                }
            } else {
                ck_assert_uint_eq(y.value, 0);
            }
            ck_assert_msg(status == ways[i].status, "%s: %s", ways[i].what, ad_status_name(status));
            ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "test_checkpoint_errors.c:"));
            check_error(ways[i].status, ways[i].words);
            check_same(before);
            check_serves();
        }
    }
    ck_assert_int_eq(ad_tape_destroy(foreign), AD_OK);
}

static void sets_one(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                     void *payload)
{
    (void)on, (void)n_in, (void)n_out, (void)payload;
    out[0] = ad_square(in[0]);
}

static bool sets_none(ad_tape on, int64_t i, int n_in, const ad_tensor *in, int n_out,
                      ad_tensor *out, void *payload)
{
    (void)on, (void)i, (void)n_in, (void)in, (void)n_out, (void)out, (void)payload;
    return true;
}

TEST(a_result_that_was_not_set_is_said_to_be)
{
    ad_tensor y[2];
    ck_assert_int_eq(ad_checkpoint(tape, sets_one, NULL, 1, &x, 2, y), AD_ERROR_HANDLE);
    check_error(AD_ERROR_HANDLE, "checkpoint: out[1] of its function was not set; the call is at "
                                 "test_checkpoint_errors.c:");
    ck_assert_int_eq(ad_checkpoint_loop(tape, 3, sets_none, NULL, 1, &x, 1, y, NULL),
                     AD_ERROR_HANDLE);
    check_error(AD_ERROR_HANDLE, "checkpoint_loop: out[0] of step 0 was not set; the call is at ");
}

TEST(handles_of_what_the_function_computed_are_refused_afterwards)
{
    struct fickle f = fickle_of("", 100);
    ad_tensor y;
    ck_assert_int_eq(ad_checkpoint(tape, fickle, &f, 1, &x, 1, &y), AD_OK);
    ck_assert_int_eq(ad_size(f.made), -1);
    check_error(AD_ERROR_HANDLE, "), or was computed within a checkpoint; the call is at ");
    ck_assert_int_eq(ad_size(y), N);
    ck_assert_int_eq(ad_backward(ad_sum(y)), AD_OK);
    for (int i = 0; i < 8; i++) /* nor when there are others in their places */
        ad_neg(y);
    ck_assert_int_eq(ad_size(f.made), -1);
    check_error(AD_ERROR_HANDLE, "computed within a checkpoint");
}

TEST(arguments_are_looked_at_before_the_function_is_called)
{
    struct fickle f = fickle_of("", 100);
    ad_tensor in[65], out[65];
    for (int i = 0; i < 65; i++)
        in[i] = x;
    const ad_tensor none = {0, 0, 0, 0};
    const ad_stats before = stats();
    ck_assert_int_eq(ad_checkpoint(tape, NULL, &f, 1, in, 1, out), AD_ERROR_ARGUMENT);
    check_error(AD_ERROR_ARGUMENT, "checkpoint: function is a null pointer");
    ck_assert_int_eq(ad_checkpoint(tape, fickle, &f, 1, NULL, 1, out), AD_ERROR_ARGUMENT);
    check_error(AD_ERROR_ARGUMENT, "checkpoint: in is a null pointer");
    ck_assert_int_eq(ad_checkpoint(tape, fickle, &f, 1, in, 1, NULL), AD_ERROR_ARGUMENT);
    check_error(AD_ERROR_ARGUMENT, "checkpoint: out is a null pointer");
    ck_assert_int_eq(ad_checkpoint(tape, fickle, &f, 65, in, 1, out), AD_ERROR_ARGUMENT);
    check_error(AD_ERROR_ARGUMENT, "checkpoint: 65 tensors in and 1 out, from 0 to 64");
    ck_assert_int_eq(ad_checkpoint(tape, fickle, &f, 1, in, 65, out), AD_ERROR_ARGUMENT);
    check_error(AD_ERROR_ARGUMENT, "1 tensors in and 65 out");
    ck_assert_int_eq(ad_checkpoint(tape, fickle, &f, -1, in, 1, out), AD_ERROR_ARGUMENT);
    check_error(AD_ERROR_ARGUMENT, "-1 tensors in");
    ck_assert_int_eq(ad_checkpoint(tape, fickle, &f, 1, &none, 1, out), AD_ERROR_HANDLE);
    check_error(AD_ERROR_HANDLE, "checkpoint: in[0] is a handle of zeros");
    ad_reshape(x, halves, 1);
    ck_assert_int_eq(ad_checkpoint(tape, fickle, &f, 1, in, 1, out), AD_ERROR_SHAPE);
    ck_assert_uint_eq(out[0].value, 0);
    check_error(AD_ERROR_SHAPE, "reshape");
    ck_assert_int_eq(f.call, 0);
    check_same(before);
    out[0] = x;
    ck_assert_int_eq(ad_checkpoint((ad_tape){0, 0}, fickle, &f, 1, in, 1, out), AD_ERROR_HANDLE);
    ck_assert_uint_eq(out[0].tape, 0);
    ad_tape_clear_error((ad_tape){0, 0});
    ad_tape fork;
    ad_real leaf;
    ck_assert_int_eq(ad_tape_record_begin(tape), AD_OK);
    ck_assert_int_eq(ad_real_leaves(tape, 1, data, &leaf), AD_OK);
    ck_assert_int_eq(ad_tape_record_end(tape), AD_OK);
    ck_assert_int_eq(ad_tape_fork(tape, 1, &fork), AD_OK);
    ck_assert_int_eq(ad_tape_record_begin(fork), AD_OK);
    ck_assert_int_eq(ad_checkpoint(fork, fickle, &f, 0, NULL, 0, NULL), AD_ERROR_STATE);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(fork), "checkpoint: a fork records statements"));
    ck_assert_int_eq(ad_tape_destroy(fork), AD_OK);
}

/* What the function reads may not have changed, whether it was given or read by it. */
TEST(an_array_that_was_changed_is_told_before_the_sweep)
{
    for (int which = 0; which < 3; which++) {
        struct fickle f = fickle_of("", 100);
        ad_tensor y;
        ck_assert_int_eq(ad_checkpoint(tape, fickle, &f, 1, &x, 1, &y), AD_OK);
        ad_tensor loss = ad_sum(y);
        double *array = which == 0 ? data : which == 1 ? other : inner;
        const double before = array[1];
        array[1] += 0.25;
        ck_assert_int_eq(ad_leaf_changed(x), which == 0);
        ck_assert_int_eq(ad_backward(loss), AD_ERROR_STATE);
        ck_assert_int_eq(f.call, which < 2 ? 1 : 2);
        check_error(AD_ERROR_STATE, which < 2 ? "changed after checkpoint at "
                                              : "on other operands, attributes or constants");
        array[1] = before;
        ck_assert_int_eq(ad_backward(loss), AD_OK);
    }
}

static void failing_inside(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                           void *payload)
{
    ad_checkpoint(on, fickle, payload, n_in, in, n_out, out);
}

TEST(a_failure_of_a_checkpoint_within_a_checkpoint_is_that_of_the_outer)
{
    for (int from = 1; from <= 4; from++) {
        struct fickle f = fickle_of("a failure", from);
        ad_tensor y;
        ad_stats before = stats();
        ad_status status = ad_checkpoint(tape, failing_inside, &f, 1, &x, 1, &y);
        if (from > 1) {
            ck_assert_int_eq(status, AD_OK);
            ad_tensor loss = ad_sum(y);
            before = stats();
            status = ad_backward(loss);
        }
        ck_assert_int_eq(f.call, from < 3 ? from : 3);
        ck_assert_int_eq(status, from < 4 ? AD_ERROR_DTYPE : AD_OK);
        check_same(before);
        if (from < 4)
            check_error(AD_ERROR_DTYPE, "matmul");
        check_serves();
    }
}

static void reads_many(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                       void *payload)
{
    const ad_tensor *older = payload;
    (void)on;
    (void)n_in;
    (void)n_out;
    out[0] = in[0];
    for (int i = 0; older[i].value; i++) {
        ad_frame frame = ad_frame_begin(on);
        out[0] = ad_add(out[0], older[i]);
        ad_frame_end(frame, out, 1);
    }
}

TEST(more_older_tensors_than_a_record_can_name_are_refused)
{
    static ad_tensor older[MANY + 1];
    memset(older, 0, sizeof older);
    ad_tensor y;
    for (int i = 0; i < MANY; i++)
        older[i] = ad_scale(x, 1 + i % 2);
    ad_stats before = stats();
    ck_assert_int_eq(ad_checkpoint(tape, reads_many, older, 1, &x, 1, &y), AD_ERROR_LIMIT);
    check_error(AD_ERROR_LIMIT, "checkpoint: its function reads 65537 tensors from before it");
    check_same(before);
    older[100] = (ad_tensor){0, 0, 0, 0}; /* more than operands of an op */
    ck_assert_int_eq(ad_checkpoint(tape, reads_many, older, 1, &x, 1, &y), AD_OK);
    ck_assert_int_eq(ad_backward(ad_sum(y)), AD_OK);
    double gradient[N];
    ck_assert_int_eq(ad_gradient(x, gradient, N), AD_OK);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq(gradient[i], 1 + 50 * 1 + 50 * 2);
}

RUN_TESTS(setup, teardown_fine)
