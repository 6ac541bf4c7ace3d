/* test_real_loop_errors.c: loops of checkpoints over scalars that are refused, or whose steps fail
 * or do otherwise: named errors, and a tape that serves again.
 */
#include <tapescope/ad_real.h>

#include "run_cases.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "loop_checks.h"

enum { N = 2, STEPS = 9 };

static const double start[N + 1] = {0.75, -0.5, 1.25};
static ad_real x[N + 1];

static void setup(void)
{
    tape_begin(NULL);
    ck_assert_int_eq(ad_real_leaves(tape, N + 1, start, x), AD_OK);
}

#define CHECK_ERROR(status, words) check_error_in(tape, status, words, "test_real_loop_errors.c:")

/* Does otherwise at one step, from a call of it on. */
struct fickle {
    const char *what;
    int64_t at;
    int from, seen;
    ad_real variable;
    bool until; /* the loop does not know how many steps it has, */
    int64_t n;  /* which are so many */
};

static bool is(const char *what, const char *name)
{
    return strcmp(what, name) == 0;
}

static bool fickle(ad_tape on, int64_t i, int64_t n_in, const ad_real *in, int64_t n_out,
                   ad_real *out, void *payload)
{
    struct fickle *f = payload;
    const char *what = i == f->at && ++f->seen >= f->from ? f->what : "";
    ad_real y;
    (void)n_in, (void)n_out;
    ad_set(&y, ad_real_add(ad_real_mul(ad_real_sin(in[0]), in[2]), in[1]));
    if (is(what, "another number"))
        ad_set(&y, ad_real_mul(y, 1 + 1e-15));
    if (is(what, "a variable"))
        ad_set(&y, ad_real_add(y, f->variable));
    if (is(what, "a leaf"))
        y = ad_real_leaf(on, 1);
    if (is(what, "a sweep"))
        (void)!ad_real_backward(on, in[0]);
    if (is(what, "a reset"))
        ad_tape_reset(on);
    if (is(what, "an end too many"))
        ad_tape_record_end(on);
    if (is(what, "no_grad"))
        ad_tape_no_grad_begin(on);
    out[0] = y;
    if (!is(what, "no result"))
        out[1] = in[0];
    return !is(what, "the end") && !(f->until && i == f->n - 1);
}

static const struct {
    const char *what;
    ad_status status;
    const char *words;
} wrong[] = {
    {"a variable", AD_ERROR_STATE, "depends on a variable that it is not given"},
    {"a leaf", AD_ERROR_STATE, "not while a checkpoint's function runs"},
    {"a sweep", AD_ERROR_STATE, "real_backward: not while a checkpoint's"},
    {"a reset", AD_ERROR_STATE, "not while a checkpoint's"},
    {"an end too many", AD_ERROR_STATE, "has ended with another tape recorded on"},
    {"no result", AD_ERROR_ARGUMENT, "real_checkpoint_loop: its function has not set out[1]"},
    {"no_grad", AD_ERROR_STATE, "real_checkpoint_loop: step 4 has begun or ended a no_grad"},
    {"the end", AD_ERROR_STATE, "real_checkpoint_loop: step 4 of 9 says that it is the last"},
    {"another number", AD_ERROR_STATE, "did not do the same again: other results of step"},
};
enum { WRONG = sizeof wrong / sizeof *wrong };

static ad_status record(struct fickle *f, int64_t n, int64_t states, ad_real *y)
{
    const ad_checkpoint_budget budget = {.states = states};
    memcpy(y, x, sizeof x);
    f->n = n;
    return ad_real_checkpoint_loop(tape, f->until ? AD_UNTIL_LAST : n, fickle, f, N + 1, y, N, y,
                                   &budget);
}

static void gradient_of(const ad_real *y, double *g)
{
    ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
    ck_assert_int_eq(ad_real_backward(tape, y[0]), AD_OK);
    ck_assert_int_eq(ad_real_gradients(tape, N + 1, x, g), AD_OK);
}

/* The tape serves, with the same gradient. */
static void check_serves(void)
{
    struct fickle fine = {.what = ""};
    double g[N + 1], h[N + 1];
    ad_real y[N + 1];
    const ad_mark mark = ad_tape_mark(tape);
    ck_assert_int_eq(record(&fine, STEPS, 3, y), AD_OK);
    gradient_of(y, g);
    ck_assert_int_eq(record(&fine, STEPS, 100, y), AD_OK);
    gradient_of(y, h);
    ck_assert_mem_eq(g, h, sizeof g);
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
}

TEST(a_step_that_fails_leaves_the_tape_as_it_was)
{
    for (int k = 0; k < WRONG - 1; k++) {
        for (int way = 0; way < 4; way++) {
            const bool last = way % 2, until = way / 2;
            struct fickle f = {
                .what = wrong[k].what, .at = 4, .from = 1, .variable = x[0], .until = until};
            ad_real y[N + 1];
            const ad_stats before = stats_but_peak();
            /* What the last step may do that is recorded at once is right anyway. */
            if (last && !until && (is(f.what, "a variable") || is(f.what, "the end")))
                continue;
            if (until && is(f.what, "the end"))
                continue;
            ck_assert_int_eq(record(&f, last ? 5 : STEPS, last ? 2 : 0, y), wrong[k].status);
            ck_assert_msg(y[0].value != y[0].value && y[1].value != y[1].value, "%s", f.what);
            CHECK_ERROR(wrong[k].status, wrong[k].words);
            check_same(before);
            check_serves();
            check_same(before);
        }
    }
}

TEST(a_sweep_in_which_a_step_fails_leaves_the_tape_as_it_was)
{
    for (int k = 0; k < WRONG; k++) {
        /* Recorded, and where it is computed on the way to another one. */
        for (int way = 0; way < 4; way++) {
            struct fickle f = {.what = wrong[k].what,
                               .at = 4,
                               .from = 2 + way % 2,
                               .variable = x[0],
                               .until = way / 2};
            const ad_mark mark = ad_tape_mark(tape);
            double g[2][N + 1];
            ad_real y[N + 1];
            /* Without states step 4 is computed three times on the way, and then recorded. */
            ck_assert_int_eq(record(&f, STEPS, 1, y), AD_OK);
            const ad_stats before = stats_but_peak();
            for (int again = 0; again < 2; again++) {
                ck_assert_int_eq(ad_real_backward(tape, y[0]), wrong[k].status);
                CHECK_ERROR(wrong[k].status, wrong[k].words);
                check_same(before);
            }
            f.what = "";
            gradient_of(y, g[0]);
            ck_assert_int_eq(record(&f, STEPS, 4, y), AD_OK);
            gradient_of(y, g[1]);
            ck_assert_mem_eq(g[0], g[1], sizeof g[0]);
            ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
            check_serves();
        }
    }
}

/* A sweep stores what it computes again; what was other once is not used by the next one. */
TEST(states_that_a_failed_sweep_has_stored_are_not_used)
{
    struct fickle f = {.what = "another number", .at = 0, .from = 2};
    double g[2][N + 1];
    ad_real y[N + 1];
    ck_assert_int_eq(record(&f, 40, 2, y), AD_OK);
    ck_assert_int_eq(ad_real_backward(tape, y[0]), AD_ERROR_STATE);
    CHECK_ERROR(AD_ERROR_STATE, "did not do the same again");
    f.what = "";
    gradient_of(y, g[0]);
    ck_assert_int_eq(record(&f, 40, 40, y), AD_OK);
    gradient_of(y, g[1]);
    ck_assert_mem_eq(g[0], g[1], sizeof g[0]);
}

TEST(arguments_that_cannot_be_are_refused)
{
    struct fickle f = {.what = ""};
    const ad_checkpoint_budget negative = {.states = -1}, one = {.bytes = 1};
    ad_real y[N + 1];
#define LOOP(n, step, n_in, in, n_out, out, budget)                                                \
    ad_real_checkpoint_loop(tape, n, step, &f, n_in, in, n_out, out, budget)
    ck_assert_int_eq(LOOP(9, NULL, 3, x, 2, y, NULL), AD_ERROR_ARGUMENT);
    CHECK_ERROR(AD_ERROR_ARGUMENT, "real_checkpoint_loop: function is a null pointer");
    ck_assert_int_eq(LOOP(9, fickle, 3, NULL, 2, y, NULL), AD_ERROR_ARGUMENT);
    CHECK_ERROR(AD_ERROR_ARGUMENT, "real_checkpoint_loop: in is a null pointer");
    ck_assert_int_eq(LOOP(9, fickle, 3, x, 2, NULL, NULL), AD_ERROR_ARGUMENT);
    CHECK_ERROR(AD_ERROR_ARGUMENT, "real_checkpoint_loop: out is a null pointer");
    ck_assert_int_eq(LOOP(9, fickle, 2, x, 3, y, NULL), AD_ERROR_ARGUMENT);
    CHECK_ERROR(AD_ERROR_ARGUMENT, "real_checkpoint_loop: a state of 3 numbers, of 2 that");
    ck_assert_int_eq(LOOP(-1, fickle, 3, x, 2, y, NULL), AD_ERROR_ARGUMENT);
    CHECK_ERROR(AD_ERROR_ARGUMENT, "real_checkpoint_loop: n is negative");
    ck_assert_int_eq(LOOP(9, fickle, 3, x, 2, y, &negative), AD_ERROR_ARGUMENT);
    CHECK_ERROR(AD_ERROR_ARGUMENT, "real_checkpoint_loop: states is negative");
    ck_assert_int_eq(LOOP(INT64_MAX, fickle, 3, x, 2, y, NULL), AD_ERROR_LIMIT);
    CHECK_ERROR(AD_ERROR_LIMIT, "real_checkpoint_loop: 9223372036854775807 steps, at most");
    ck_assert_int_eq(LOOP(9, fickle, 3, x, 2, y, &one), AD_ERROR_ARGUMENT);
    CHECK_ERROR(AD_ERROR_ARGUMENT, "real_checkpoint_loop: 1 bytes are too few: one step records");
    ck_assert_int_eq(ad_real_checkpoint_loop((ad_tape){0, 0}, 9, fickle, &f, 3, x, 2, y, NULL),
                     AD_ERROR_HANDLE);
    ad_tape_clear_error((ad_tape){0, 0});
    check_serves();
}

TEST(forks_and_sections_are_refused)
{
    struct fickle f = {.what = ""};
    ad_real y[N + 1];
    ad_tape fork;
    ck_assert_int_eq(ad_tape_fork(tape, 1, &fork), AD_OK);
    ck_assert_int_eq(ad_tape_record_begin(fork), AD_OK);
    ck_assert_int_eq(ad_real_checkpoint_loop(fork, 9, fickle, &f, 3, x, 2, y, NULL),
                     AD_ERROR_STATE);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(fork), "real_checkpoint_loop: a fork keeps"));
    ck_assert_int_eq(ad_tape_destroy(fork), AD_OK);
    ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
    ck_assert_int_eq(LOOP(9, fickle, 3, x, 2, y, NULL), AD_ERROR_STATE);
    CHECK_ERROR(AD_ERROR_STATE, "real_checkpoint_loop: ");
    ck_assert_int_eq(ad_preaccumulate_end(tape, 0, NULL, NULL), AD_OK);
    check_serves();
}

RUN_TESTS(setup, teardown_fine)
