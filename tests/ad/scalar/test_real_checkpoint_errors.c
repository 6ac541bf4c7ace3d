/* test_real_checkpoint_errors.c: checkpoints of scalars that are refused, that do otherwise in a
 * sweep, or whose functions fail: named errors, and a tape that serves again.
 */
#include <tapescope/ad_real.h>
#include <tapescope/ad_real_tensor.h>

#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loop_checks.h"

enum { N = 2 };

static const double start[N] = {0.75, -0.5};
static const int64_t shape[1] = {N};
static ad_real x[N];

static void setup(void)
{
    tape_begin(NULL);
    ck_assert_int_eq(ad_real_leaves(tape, N, start, x), AD_OK);
}

#define CHECK_ERROR(status, words)                                                                 \
    check_error_in(tape, status, words, "test_real_checkpoint_errors.c:")

/* Statements and sweeps go on. */
static void check_serves(void)
{
    ad_real y;
    const ad_mark mark = ad_tape_mark(tape);
    ad_set(&y, ad_real_mul(x[0], x[1]));
    ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x[0]), start[1]);
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
}

/* A function that begins to do otherwise at its call number `from`. */
struct fickle {
    const char *what;
    int call, from;
    ad_real variable;
    ad_tensor tensor;
    ad_tape other;
};

static bool is(const char *what, const char *name)
{
    return strcmp(what, name) == 0;
}

static void fickle(ad_tape on, int64_t n_in, const ad_real *in, int64_t n_out, ad_real *out,
                   void *payload)
{
    struct fickle *f = payload;
    const char *what = ++f->call >= f->from ? f->what : "";
    ad_real y, elements[N];
    ad_tape fork;
    (void)n_in;
    (void)n_out;
    ad_set(&y, ad_real_mul(ad_real_sin(in[0]), in[1]));
    if (is(what, "another number"))
        ad_set(&y, ad_real_mul(y, 1 + 1e-15));
    if (is(what, "a variable"))
        ad_set(&y, ad_real_add(y, ad_real_mul(0, f->variable)));
    if (is(what, "a fused loop of a variable"))
        ad_set(&y, ad_real_add(y, ad_real_dot(1, &f->variable, &f->variable)));
    if (is(what, "a leaf"))
        y = ad_real_leaf(on, 1);
    if (is(what, "a fork"))
        ad_tape_fork(on, 1, &fork);
    if (is(what, "a section"))
        ad_preaccumulate_begin(on);
    if (is(what, "a sweep"))
        (void)!ad_real_backward(on, f->variable);
    if (is(what, "a gradient"))
        (void)!(ad_real_gradient(on, f->variable) > 0);
    if (is(what, "a reset"))
        ad_tape_reset(on);
    if (is(what, "a destroy"))
        ad_tape_destroy(on);
    if (is(what, "elements"))
        ad_reals_of_tensor(f->tensor, N, elements);
    if (is(what, "a tensor"))
        ad_tensor_of_reals(on, 1, shape, in);
    if (is(what, "an end too many"))
        ad_tape_record_end(on);
    if (is(what, "a begin too many"))
        ad_tape_record_begin(on);
    if (is(what, "another tape"))
        ad_tape_record_begin(f->other);
    out[0] = is(what, "another result") ? f->variable : y;
    if (!is(what, "no result"))
        out[1] = is(what, "a dropped result") ? f->variable : in[0];
}

static const struct {
    const char *what;
    ad_status status;
    const char *words;
} wrong[] = {
    {"a variable", AD_ERROR_STATE, "statement: the function of a checkpoint depends on a variable"},
    {"a fused loop of a variable", AD_ERROR_STATE, "depends on a variable that it is not given"},
    {"another result", AD_ERROR_STATE, "out[0] of its function is a variable"},
    {"a leaf", AD_ERROR_STATE, "not while a checkpoint's function runs"},
    {"a fork", AD_ERROR_STATE, "tape_fork: not while a checkpoint's"},
    {"a section", AD_ERROR_STATE, "preaccumulate_begin: not while a checkpoint's"},
    {"a sweep", AD_ERROR_STATE, "real_backward: not while a checkpoint's"},
    {"a gradient", AD_ERROR_STATE, "real_gradient: not while a checkpoint's"},
    {"a reset", AD_ERROR_STATE, "not while a checkpoint's"},
    {"a destroy", AD_ERROR_STATE, "tape_destroy: not while a checkpoint's"},
    {"elements", AD_ERROR_STATE, "reals_of_tensor: not while a checkpoint's"},
    {"a tensor", AD_ERROR_STATE, "tensor_of_reals: not while a checkpoint's"},
    {"an end too many", AD_ERROR_STATE, "has ended with another tape recorded on"},
    {"a begin too many", AD_ERROR_STATE, "has ended with another tape recorded on"},
    {"another tape", AD_ERROR_STATE, "has ended with another tape recorded on"},
    {"no result", AD_ERROR_ARGUMENT, "real_checkpoint: its function has not set out[1]"},
    {"another number", AD_ERROR_STATE, "real_checkpoint: its function did not do the same again"},
};
enum { WRONG = sizeof wrong / sizeof *wrong };

static struct fickle fickle_of(int k, int from)
{
    struct fickle f = {.what = wrong[k].what, .from = from, .variable = x[0]};
    f.tensor = ad_leaf(tape, AD_F64, 1, shape, start);
    ck_assert_int_eq(ad_tape_create(&f.other, NULL), AD_OK);
    return f;
}

TEST(what_is_wrong_at_once_is_told_at_once)
{
    const ad_mark mark = ad_tape_mark(tape);
    for (int k = 0; k < WRONG; k++) {
        struct fickle f = fickle_of(k, 1);
        if (is(wrong[k].what, "another number"))
            continue;
        ad_real y[N] = {x[0], x[0]};
        const ad_stats before = stats_but_peak();
        const ad_status status = ad_real_checkpoint(tape, fickle, &f, N, x, N, y);
        ck_assert_msg(status == wrong[k].status, "%s: %s", wrong[k].what, ad_tape_message(tape));
        CHECK_ERROR(wrong[k].status, wrong[k].words);
        for (int i = 0; i < N; i++)
            ck_assert(y[i].index == 0 && isnan(y[i].value));
        check_same(before);
        check_serves();
        ck_assert_int_eq(ad_tape_destroy(f.other), AD_OK);
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    }
}

TEST(what_becomes_wrong_is_told_in_the_sweep)
{
    const ad_mark mark = ad_tape_mark(tape);
    for (int k = 0; k < WRONG; k++) {
        struct fickle f = fickle_of(k, 2);
        ad_real y[N];
        ck_assert_int_eq(ad_real_checkpoint(tape, fickle, &f, N, x, N, y), AD_OK);
        ad_set(&y[0], ad_real_add(y[0], y[1]));
        const ad_stats before = stats_but_peak();
        /* An older variable that is nothing to the results is no other number. */
        const bool same = is(wrong[k].what, "a variable");
        const ad_status status = ad_real_backward(tape, y[0]);
        if (same) {
            ck_assert_msg(status == AD_OK, "%s", ad_tape_message(tape));
        } else {
            ck_assert_msg(status == wrong[k].status ||
                              (is(wrong[k].what, "another result") && status == AD_ERROR_STATE) ||
                              is(wrong[k].what, "a fused loop of a variable"),
                          "%s: %s", wrong[k].what, ad_tape_message(tape));
            ck_assert_int_ne(status, AD_OK);
            ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "test_real_checkpoint_errors.c:"));
            ad_tape_clear_error(tape);
        }
        check_same(before);
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
        check_serves();
        ck_assert_int_eq(ad_tape_destroy(f.other), AD_OK);
    }
}

TEST(a_result_that_was_dropped_is_no_result)
{
    struct fickle f = {.what = "a dropped result", .from = 1};
    ad_real y[N];
    const ad_mark mark = ad_tape_mark(tape);
    ad_set(&f.variable, ad_real_mul(x[0], x[1]));
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    ck_assert_int_eq(ad_real_checkpoint(tape, fickle, &f, N, x, N, y), AD_ERROR_HANDLE);
    CHECK_ERROR(AD_ERROR_HANDLE,
                "real_checkpoint: out[1] of its function is no value of this tape");
    y[0] = f.variable;
    y[1] = x[1];
    f.what = "";
    ck_assert_int_eq(ad_real_checkpoint(tape, fickle, &f, N, y, N, y), AD_ERROR_HANDLE);
    CHECK_ERROR(AD_ERROR_HANDLE, "real_checkpoint: in[0] is no value of this tape");
    check_serves();
}

TEST(arguments_that_cannot_be_are_refused)
{
    struct fickle f = {.what = "", .from = 1};
    ad_real y[N];
    ck_assert_int_eq(ad_real_checkpoint(tape, NULL, &f, N, x, N, y), AD_ERROR_ARGUMENT);
    CHECK_ERROR(AD_ERROR_ARGUMENT, "real_checkpoint: function is a null pointer");
    ck_assert_int_eq(ad_real_checkpoint(tape, fickle, &f, N, NULL, N, y), AD_ERROR_ARGUMENT);
    CHECK_ERROR(AD_ERROR_ARGUMENT, "real_checkpoint: in is a null pointer");
    ck_assert_int_eq(ad_real_checkpoint(tape, fickle, &f, N, x, N, NULL), AD_ERROR_ARGUMENT);
    CHECK_ERROR(AD_ERROR_ARGUMENT, "real_checkpoint: out is a null pointer");
    ck_assert_int_eq(ad_real_checkpoint(tape, fickle, &f, -1, x, N, y), AD_ERROR_ARGUMENT);
    CHECK_ERROR(AD_ERROR_ARGUMENT, "real_checkpoint: n_in is negative");
    ck_assert_int_eq(ad_real_checkpoint(tape, fickle, &f, N, x, -1, y), AD_ERROR_ARGUMENT);
    CHECK_ERROR(AD_ERROR_ARGUMENT, "real_checkpoint: n_out is negative");
    ck_assert_int_eq(ad_real_checkpoint(tape, fickle, &f, N, x, INT64_MAX, y), AD_ERROR_LIMIT);
    CHECK_ERROR(AD_ERROR_LIMIT, "real_checkpoint: 2 numbers in and");
    ck_assert_int_eq(f.call, 0);
    ck_assert_int_eq(ad_real_checkpoint((ad_tape){0, 0}, fickle, &f, N, x, N, y), AD_ERROR_HANDLE);
    ad_tape_clear_error((ad_tape){0, 0});
}

TEST(forks_sections_and_other_tapes_are_refused_by_name)
{
    struct fickle f = {.what = "", .from = 1};
    ad_real y[N];
    ad_tape fork, other;
    ck_assert_int_eq(ad_tape_fork(tape, 1, &fork), AD_OK);
    ck_assert_int_eq(ad_tape_record_begin(fork), AD_OK);
    ck_assert_int_eq(ad_real_checkpoint(fork, fickle, &f, N, x, N, y), AD_ERROR_STATE);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(fork), "real_checkpoint: a fork keeps"));
    ck_assert_int_eq(ad_tape_destroy(fork), AD_OK);
    ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
    ck_assert_int_eq(ad_real_checkpoint(tape, fickle, &f, N, x, N, y), AD_ERROR_STATE);
    CHECK_ERROR(AD_ERROR_STATE, "real_checkpoint: ");
    ck_assert_int_eq(ad_preaccumulate_end(tape, 0, NULL, NULL), AD_OK);
    ck_assert_int_eq(ad_tape_create(&other, NULL), AD_OK);
    ck_assert_int_eq(ad_tape_record_begin(other), AD_OK);
    ck_assert_int_eq(ad_real_checkpoint(tape, fickle, &f, N, x, N, y), AD_ERROR_STATE);
    CHECK_ERROR(AD_ERROR_STATE, "real_checkpoint: the thread records on another tape");
    ck_assert_int_eq(ad_tape_destroy(other), AD_OK);
    ck_assert_int_eq(f.call, 0);
    check_serves();
}

static void of_tensors(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                       void *payload)
{
    struct fickle *f = payload;
    ad_real y[N];
    (void)n_in;
    (void)n_out;
    ad_real_checkpoint(on, fickle, f, N, &f->variable, 1, y);
    out[0] = in[0];
}

TEST(within_a_checkpoint_of_tensors_it_takes_constants_alone)
{
    struct fickle f = {.what = "", .from = 100, .variable = x[0]};
    ad_tensor y, leaf = ad_leaf(tape, AD_F64, 1, shape, start);
    ck_assert_int_eq(ad_checkpoint(tape, of_tensors, &f, 1, &leaf, 1, &y), AD_ERROR_STATE);
    CHECK_ERROR(AD_ERROR_STATE, "real_checkpoint: not while a checkpoint's function runs");
    check_serves();
}

static void grows(ad_tape on, int64_t n_in, const ad_real *in, int64_t n_out, ad_real *out,
                  void *payload)
{
    (void)on;
    (void)n_in;
    (void)n_out;
    out[0] = in[0];
    for (int i = 0; i < *(const int *)payload; i++)
        ad_set(&out[0], ad_real_sin(ad_real_mul(out[0], in[0])));
}

TEST(a_sweep_without_memory_for_it_leaves_the_tape_as_it_was)
{
    static const ad_tape_options small = {.budget_bytes = 1 << 20, .reserve_bytes = 4 << 20};
    int many = 100000, few = 100;
    ad_tape tight;
    ad_real y, z, leaf;
    ck_assert_int_eq(ad_tape_create(&tight, &small), AD_OK);
    ck_assert_int_eq(ad_tape_record_begin(tight), AD_OK);
    leaf = ad_real_leaf(tight, 0.5);
    ck_assert_int_eq(ad_real_checkpoint(tight, grows, &many, 1, &leaf, 1, &y), AD_OK);
    ck_assert_int_eq(ad_real_checkpoint(tight, grows, &few, 1, &leaf, 1, &z), AD_OK);
    ad_stats before, after;
    ck_assert_int_eq(ad_tape_stats(tight, &before), AD_OK);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ad_real_backward(tight, y), AD_ERROR_MEMORY);
        ad_tape_clear_error(tight);
        ck_assert_int_eq(ad_tape_stats(tight, &after), AD_OK);
        after.peak_bytes = before.peak_bytes;
        ck_assert_mem_eq(&after, &before, sizeof after);
        ck_assert_int_eq(ad_real_backward(tight, z), AD_OK);
    }
    ck_assert_int_eq(ad_tape_record_end(tight), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(tight), AD_OK);
}

RUN_TESTS(setup, teardown_fine)
