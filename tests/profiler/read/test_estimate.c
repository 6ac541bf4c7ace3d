/* test_estimate.c: how long statements were swept, from the tape's division and from looks
 * (read_estimate.c).
 */
#include "analyze.h"
#include "profile_maker.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>

enum { MODEL = READ_MODEL_LOOKS };

static struct maker_bytes bytes;
static struct read_profile *profile;

static void setup(void)
{
    bytes = (struct maker_bytes){0};
    maker_put_header(&bytes, "step:1", 1);
}

static void teardown(void)
{
    read_profile_free(profile);
    profile = NULL;
}

/* A line of statements that the model gives so many ticks, and that was found in so many looks. */
static void add(struct maker_ledger *made, uint64_t ticks, uint64_t looks, uint64_t exact)
{
    const uint32_t index = (uint32_t)made->ledger.n_row;
    Tapescope__Row *row = maker_add_row(made, index, 4096 + 16 * index, "statement");
    row->calls = row->backward_calls = 1000;
    row->backward_ticks = ticks + exact;
    row->estimated_backward_ticks = ticks;
    row->backward_looks = looks;
    made->ledger.backward_ticks += ticks + exact;
}

static const struct read_row *row(size_t i)
{
    ck_assert_uint_eq(profile->n_tapes, 1);
    return &profile->tape[0].row[i];
}

static void finish(struct maker_ledger *made)
{
    maker_put_ledger(&bytes, made);
    profile = maker_read(&bytes);
    uint64_t sum = 0;
    for (size_t i = 0; i < profile->tape[0].n_rows; i++)
        sum += profile->tape[0].row[i].backward_ticks;
    ck_assert_uint_eq(sum, profile->tape[0].backward_ticks);
}

TEST(without_looks_the_model_stands)
{
    struct maker_ledger *made = maker_new_ledger(1);
    add(made, 3000, 0, 0);
    add(made, 1000, 0, 0);
    finish(made);
    ck_assert_uint_eq(row(0)->backward_ticks, 3000);
    ck_assert_uint_eq(row(1)->backward_ticks, 1000);
}

TEST(a_few_looks_move_it_a_little_and_many_replace_it)
{
    struct maker_ledger *made = maker_new_ledger(1);
    add(made, 500000, 100, 0);
    add(made, 500000, 900, 7);
    finish(made);
    /* 500 looks were expected at each. */
    const double a = 104.0 / (500 + MODEL), b = 904.0 / (500 + MODEL);
    ck_assert_double_le(fabs((double)row(0)->backward_ticks - 1e6 * a / (a + b)), 1);
    ck_assert_double_le(fabs((double)row(1)->backward_ticks - 7 - 1e6 * b / (a + b)), 1);
    ck_assert_uint_eq(row(1)->estimated_backward_ticks + 7, row(1)->backward_ticks);
}

TEST(one_look_is_not_the_whole_truth)
{
    struct maker_ledger *made = maker_new_ledger(1);
    add(made, 500000, 1, 0);
    add(made, 500000, 0, 0);
    finish(made);
    ck_assert_uint_gt(row(0)->backward_ticks, 500000);
    ck_assert_uint_lt(row(0)->backward_ticks, 600000);
}

TEST(the_standard_error_is_that_of_the_looks)
{
    struct maker_ledger *made = maker_new_ledger(1);
    add(made, 500000, 400 - MODEL, 0);
    add(made, 500000, 400 - MODEL, 0);
    Tapescope__Row *forward = maker_add_row(made, 2, 8192, "statement");
    forward->calls = 10;
    forward->forward_ticks = forward->estimated_forward_ticks = 90000;
    forward->forward_looks = 9;
    made->ledger.forward_ticks = 90000;
    finish(made);
    const struct analyze_cost swept = {.estimated_backward_ns = 500000,
                                       .backward_looks = row(0)->backward_looks};
    ck_assert_double_eq_tol(analyze_cost_backward_error(&swept), 500000.0 / 20, 1e-6);
    ck_assert_double_eq(analyze_cost_forward_error(&swept), 0);
    const struct analyze_cost computed = {.estimated_forward_ns = 90000,
                                          .forward_looks = row(2)->forward_looks};
    ck_assert_double_eq_tol(analyze_cost_forward_error(&computed), 30000, 1e-6);
}

TEST(what_was_not_measured_is_told_from_0)
{
    struct maker_ledger *made = maker_new_ledger(1);
    add(made, 1000, 0, 0);
    Tapescope__Row *op = maker_add_row(made, 1, 8192, "exp");
    op->calls = 1;
    op->forward_ticks = 5;
    made->ledger.forward_ticks = 5;
    finish(made);
    const struct analyze_cost statement = analyze_row_cost(profile, row(0), true),
                              exp = analyze_row_cost(profile, row(1), true);
    ck_assert(analyze_cost_is_untimed(&statement));
    ck_assert(!analyze_cost_is_untimed(&exp));
}

RUN_TESTS(setup, teardown)
