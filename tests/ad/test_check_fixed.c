/* test_check_fixed.c: what is on the tape before a gradient check stays as it is while the checked
 * function runs, whatever that does.
 *
 * The leaf lies behind a mark and within a frame, in which nothing is recorded after the last mark
 * and the last frame have begun: both have their ends at the check's.
 */
#include <tapescope/ad.h>

#include "run_cases.h"

#include <check.h>
#include <string.h>

enum { N = 3 };

static const int64_t shape[] = {N};
static double data[N] = {0.5, -1.25, 2}, other[N] = {3, 4, -5}, got[N];
static double lent[N], own[N];
static ad_tape tape;
static ad_tensor x, older;
static ad_mark first, last;
static ad_frame outer, empty;

static void setup(void)
{
    memset(lent, 0, sizeof lent);
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    first = ad_tape_mark(tape);
    outer = ad_frame_begin(tape);
    x = ad_leaf(tape, AD_F64, 1, shape, data);
    older = ad_exp(x);
    last = ad_tape_mark(tape);
    empty = ad_frame_begin(tape);
}

static void teardown(void)
{
    ck_assert_int_eq(ad_tape_status(tape), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

static ad_tensor cubic(ad_tensor v)
{
    return ad_sum(ad_mul(ad_square(v), v));
}

enum misuse { NONE, REWIND_FIRST, REWIND_LAST, RESET, END_OUTER, END_EMPTY, LEND, RELEASE, CHECK };

/* sum(x^3), and a mistake before it. */
static ad_tensor mistaken(ad_tape t, const ad_tensor *v, int n, void *payload)
{
    const enum misuse misuse = *(const enum misuse *)payload;
    enum misuse none = NONE;
    switch (misuse) {
    case NONE:
        break;
    case REWIND_FIRST:
    case REWIND_LAST:
        ad_tape_rewind(t, misuse == REWIND_FIRST ? first : last);
        ad_leaf(t, AD_F64, 1, shape, other);
        break;
    case RESET:
        ad_tape_reset(t);
        break;
    case END_OUTER:
    case END_EMPTY:
        ad_frame_end(misuse == END_OUTER ? outer : empty, NULL, 0);
        break;
    case LEND:
        ad_gradient_buffer(v[0], own, N);
        break;
    case CHECK: /* the end of a check within does not end what holds for this one */
        ck_assert_int_eq(ad_check_gradient(t, mistaken, 1, v, 1e-6, &none, NULL), AD_OK);
        ck_assert_int_eq(ad_tape_status(t), AD_OK);
        ad_release(older);
        break;
    case RELEASE:
        ad_release(older);
        break;
    }
    (void)n;
    return cubic(v[0]);
}

/* The mistake is refused by a message with its line, and all that there was serves on. */
static void check_stays(enum misuse misuse, const char *text)
{
    enum misuse none = NONE;
    double was[N];
    ad_stats before, after;
    memcpy(was, data, sizeof was);
    ck_assert_int_eq(ad_gradient_buffer(x, lent, N), AD_OK);
    ad_tensor y = cubic(x);
    ck_assert_int_eq(ad_tape_stats(tape, &before), AD_OK);
    ck_assert_int_eq(ad_check_gradient(tape, mistaken, 1, &x, 1e-6, &misuse, NULL), AD_ERROR_STATE);
    ck_assert_msg(strstr(ad_tape_message(tape), text) &&
                      strstr(ad_tape_message(tape), "in mistaken"),
                  "%s", ad_tape_message(tape));
    ad_tape_clear_error(tape);
    ck_assert_mem_eq(data, was, sizeof was);
    ck_assert_int_eq(ad_tape_stats(tape, &after), AD_OK);
    ck_assert_uint_eq(after.values, before.values);
    ck_assert_uint_eq(after.records, before.records);
    ck_assert_uint_eq(after.live_bytes, before.live_bytes);
    ck_assert_int_eq(ad_value(older, got, N), AD_OK);
    ck_assert_int_eq(ad_check_gradient(tape, mistaken, 1, &x, 1e-6, &none, NULL), AD_OK);
    ck_assert_int_eq(ad_backward(y), AD_OK);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq_tol(lent[i], 3 * data[i] * data[i], 1e-14);
    ck_assert_int_eq(ad_frame_end(empty, NULL, 0), AD_OK);
    ck_assert_int_eq(ad_frame_end(outer, NULL, 0), AD_OK);
    ck_assert_int_eq(ad_tape_rewind(tape, last), AD_OK);
    ck_assert_int_eq(ad_tape_rewind(tape, first), AD_OK);
}

TEST(a_rewind_behind_the_leaf_is_refused)
{
    check_stays(REWIND_FIRST, "tape_rewind: the mark is older than the gradient check that runs");
}

TEST(a_rewind_to_where_the_check_began_is_refused)
{
    check_stays(REWIND_LAST, "tape_rewind: the mark is older than the gradient check that runs");
}

TEST(a_reset_is_refused)
{
    check_stays(RESET, "tape_reset: not while a gradient check runs");
}

TEST(the_end_of_an_outer_frame_is_refused)
{
    check_stays(END_OUTER, "frame_end: the frame is older than the gradient check that runs");
}

TEST(the_end_of_an_outer_frame_in_which_nothing_was_made_is_refused)
{
    enum misuse end = END_EMPTY;
    ck_assert_int_eq(ad_check_gradient(tape, mistaken, 1, &x, 1e-6, &end, NULL), AD_ERROR_STATE);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "frame_end: the frame is older than the "));
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_frame_end(empty, NULL, 0), AD_OK);
}

TEST(another_buffer_for_the_leafs_gradient_is_refused)
{
    check_stays(LEND, "gradient_buffer: the leaf is older than the gradient check that runs");
}

TEST(a_check_within_a_check_ends_only_itself)
{
    check_stays(RELEASE, "release: the tensor is older than the gradient check that runs");
    teardown();
    setup();
    check_stays(CHECK, "release: the tensor is older than the gradient check that runs");
}

TEST(after_a_check_everything_is_allowed_again)
{
    enum misuse none = NONE;
    ck_assert_int_eq(ad_check_gradient(tape, mistaken, 1, &x, 1e-6, &none, NULL), AD_OK);
    ck_assert_int_eq(ad_release(older), AD_OK);
    ck_assert_int_eq(ad_tape_rewind(tape, first), AD_OK);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
}

RUN_TESTS(setup, teardown)
