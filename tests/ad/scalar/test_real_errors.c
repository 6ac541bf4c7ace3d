/* test_real_errors.c: mistakes with ad_real, one a case: named, with the line, and without a trace.
 */
#include <tapescope/ad_real.h>

#include "ad_internal.h"
#include "poison_check.h"
#include "run_cases.h"
#include "tape_statement.h"

#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

static ad_real x, y;

static void setup(void)
{
    static const ad_tape_options small = {.budget_bytes = 1 << 20, .reserve_bytes = 256 << 20};
    tape_begin(&small);
    x = ad_real_leaf(tape, 2);
    ad_set(&y, ad_real_square(x));
}

/* The tape (or thread) has this error, by a message with these words, and serves on without it. */
#define CHECK_ERROR(where, status, words) check_error_in(where, status, words, "test_real_errors.c")

static const ad_tape none;

TEST(a_value_from_before_a_reset_is_refused)
{
    ad_real z;
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ad_set(&z, ad_real_add(y, 1));
    ck_assert_uint_eq(z.index, 0);
    const char *message = ad_tape_message(tape);
    ck_assert_msg(strstr(message, "a rewind (the newest is at test_real_errors.c:") &&
                      strstr(message, "; the call is at test_real_errors.c:"),
                  "%s", message);
    CHECK_ERROR(tape, AD_ERROR_HANDLE, "dropped by a reset or a rewind");
    x = ad_real_leaf(tape, 3); /* under the same index */
    ad_set(&z, ad_real_add(y, x));
    CHECK_ERROR(tape, AD_ERROR_HANDLE, "dropped by a reset or a rewind");
    ck_assert_int_eq(ad_real_backward(tape, y), AD_ERROR_HANDLE);
    CHECK_ERROR(tape, AD_ERROR_HANDLE, "y[0] is no value of this tape");
}

static void count_swapped(ad_log_level level, const char *message, void *payload)
{
    (void)level;
    if (strstr(message, "real_jacobian: every y was recorded before every x, so all derivatives"))
        ++*(int *)payload;
}

TEST(a_jacobian_in_which_nothing_can_depend_on_anything_is_told_once_a_line)
{
    double all[4];
    int told = 0;
    ad_real of[2] = {x, y}, late = ad_real_leaf(tape, 1), by[2] = {late, ad_real_leaf(tape, 2)};
    ad_on_log(count_swapped, &told);
    for (int k = 0; k < 3; k++)
        ck_assert_int_eq(ad_real_jacobian(tape, 2, of, 2, by, all), AD_OK);
    for (int k = 0; k < 4; k++)
        ck_assert_double_eq(all[k], 0);
    ck_assert_int_eq(told, 1);
    /* Of these some can, or are told by a constant's zero. */
    ck_assert_int_eq(ad_real_jacobian(tape, 2, by, 2, of, all), AD_OK);
    ck_assert_int_eq(ad_real_jacobian(tape, 2, of, 2, of, all), AD_OK);
    of[1] = ad_real_of(ad_real_mul(late, 2));
    ck_assert_int_eq(ad_real_jacobian(tape, 2, of, 2, by, all), AD_OK);
    of[1] = ad_real_of(1);
    ck_assert_int_eq(ad_real_jacobian(tape, 2, of, 2, by, all), AD_OK);
    ck_assert_int_eq(ad_real_jacobian(tape, 0, of, 2, by, all), AD_OK);
    ck_assert_int_eq(told, 1);
    ad_on_log(NULL, NULL);
}

TEST(a_value_from_behind_a_rewound_mark_is_refused_and_older_ones_are_not)
{
    ad_real late, z;
    for (int round = 0; round < 3; round++) {
        const ad_mark mark = ad_tape_mark(tape);
        ad_set(&late, ad_real_mul(x, y));
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
        ad_set(&z, ad_real_add(x, y)); /* has late's index */
        ck_assert_uint_eq(z.index, late.index);
        ck_assert_int_eq(ad_tape_status(tape), AD_OK);
        ad_set(&late, ad_real_add(late, x));
        CHECK_ERROR(tape, AD_ERROR_HANDLE, "dropped by a reset or a rewind");
        ad_set(&z, ad_real_add(z, y));
        ck_assert_int_eq(ad_real_backward(tape, z), AD_OK);
        ad_tape_zero_gradients(tape);
    }
}

/* A formula accepts the values of one older tag by itself, once it has been told of them. */
static void keep(void)
{
    ad_real z;
    ad_set(&z, ad_real_mul(x, y));
    ck_assert_int_eq(ad_tape_status(tape), AD_OK);
    ck_assert_uint_eq(ad_statement_cursor_.kept >> 32, x.tag);
    ck_assert_uint_le((uint32_t)ad_statement_cursor_.kept, x.index);
    ck_assert_uint_gt((uint32_t)ad_statement_cursor_.kept + ad_statement_cursor_.n_kept, y.index);
}

TEST(formulas_that_accept_older_values_refuse_what_is_gone)
{
    ad_real late, again, z;
    const ad_mark mark = ad_tape_mark(tape);
    ad_set(&late, ad_real_mul(x, y)); /* the index behind those that are kept, and their tag */
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    const ad_real second = ad_real_leaf(tape, 5);
    ad_set(&again, ad_real_square(second));
    keep();
    /* As formulas record them, and as the library does. */
    ad_set(&z, ad_real_add(ad_real_mul(x, again), ad_real_mul(y, 3)));
    ck_assert_int_eq(ad_real_backward(tape, z), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x), 25 + 3 * 2 * 2);
    ck_assert_double_eq(ad_real_gradient(tape, second), 2 * 2 * 5);
    ad_tape_zero_gradients(tape);
    keep();
    ad_set(&z, ad_real_mul(x, late));
    CHECK_ERROR(tape, AD_ERROR_HANDLE, "dropped by a reset or a rewind");
    keep();
    ad_set(&z, ad_real_mul(x, ((ad_real){1, y.index, y.tag + 9})));
    ck_assert_int_ne(ad_tape_status(tape), AD_OK);
    ad_tape_clear_error(tape);
    keep();
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    const ad_real third = ad_real_leaf(tape, 7); /* under x's index */
    ck_assert_uint_eq(third.index, x.index);
    ad_set(&z, ad_real_mul(third, 2));
    ck_assert_uint_eq(ad_statement_cursor_.n_kept, 0);
    ad_set(&z, ad_real_mul(x, third));
    CHECK_ERROR(tape, AD_ERROR_HANDLE, "dropped by a reset or a rewind");
}

TEST(a_rewind_within_a_run_takes_back_what_formulas_accept)
{
    ad_real late, z;
    const ad_mark first = ad_tape_mark(tape);
    ad_set(&late, ad_real_mul(x, y));
    ck_assert_int_eq(ad_tape_rewind(tape, first), AD_OK);
    ad_set(&late, ad_real_mul(x, y)); /* of a second tag, before a second mark */
    const ad_mark second = ad_tape_mark(tape);
    ad_set(&z, ad_real_mul(x, y));
    ck_assert_int_eq(ad_tape_rewind(tape, second), AD_OK);
    ad_set(&z, ad_real_square(late));
    ck_assert_uint_eq(ad_statement_cursor_.kept, (uint64_t)late.tag << 32 | late.index);
    ck_assert_uint_eq(ad_statement_cursor_.n_kept, 1);
    ck_assert_int_eq(ad_tape_rewind(tape, first), AD_OK);
    ck_assert_uint_eq(ad_statement_cursor_.n_kept, 0);
    keep();
    ad_set(&z, ad_real_square(late));
    CHECK_ERROR(tape, AD_ERROR_HANDLE, "dropped by a reset or a rewind");
}

TEST(what_formulas_of_one_tape_accept_those_of_another_do_not)
{
    ad_tape other;
    ad_real z;
    const ad_mark mark = ad_tape_mark(tape);
    ad_set(&z, ad_real_mul(x, y));
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    keep();
    ck_assert_int_eq(ad_tape_create(&other, NULL), AD_OK);
    ck_assert_int_eq(ad_tape_record_begin(other), AD_OK);
    const ad_real leaf = ad_real_leaf(other, 3);
    ad_set(&z, ad_real_square(leaf));
    ck_assert_uint_eq(ad_statement_cursor_.n_kept, 0);
    ad_set(&z, ad_real_mul(leaf, x));
    CHECK_ERROR(other, AD_ERROR_TAPE, "an operand belongs to another tape");
    ck_assert_int_eq(ad_tape_record_end(other), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(other), AD_OK);
}

TEST(whether_a_value_of_an_older_recording_is_alive_is_known)
{
    const struct tape *t = ad_slots[tape.slot].tape;
    ad_real late, z;
    const ad_mark mark = ad_tape_mark(tape);
    ad_set(&late, ad_real_mul(x, y));
    ck_assert(tape_statement_holds(t, late.index, late.tag));
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    const ad_real second = ad_real_leaf(tape, 5);
    ck_assert_uint_eq(second.index, late.index);
    ck_assert_uint_ne(second.tag, x.tag);
    ck_assert(tape_statement_holds(t, x.index, x.tag) && tape_statement_holds(t, y.index, y.tag));
    ck_assert(tape_statement_holds(t, second.index, second.tag));
    ck_assert(!tape_statement_holds(t, late.index, late.tag));
    ck_assert(!tape_statement_holds(t, x.index, second.tag));
    ad_set(&z, ad_real_mul(x, second)); /* of both recordings */
    ck_assert_int_eq(ad_real_backward(tape, z), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x), 5);
    ck_assert_double_eq(ad_real_gradient(tape, second), 2);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ck_assert(!tape_statement_holds(t, x.index, x.tag));
    ck_assert(!tape_statement_holds(t, second.index, second.tag));
}

TEST(values_from_before_a_mark_stay_over_more_rewinds_than_there_are_tags)
{
    ad_real late, z;
    ad_set(&late, ad_real_mul(x, x));
    const ad_mark mark = ad_tape_mark(tape);
    for (int round = 0; round < 70000; round++) {
        ad_set(&late, ad_real_mul(x, y));
        if (round % 1000 == 0 || round > 65000) {
            ck_assert_int_eq(ad_real_backward(tape, late), AD_OK);
            ck_assert_double_eq(ad_real_gradient(tape, x), 12);
        }
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    }
    ad_set(&z, ad_real_mul(late, x)); /* of the last round */
    CHECK_ERROR(tape, AD_ERROR_HANDLE, "dropped by a reset or a rewind");
}

TEST(an_uninitialised_operand_is_refused)
{
    ad_real wild, z;
    memset(&wild, 0xa5, sizeof wild);
    ad_set(&z, ad_real_mul(wild, x));
    CHECK_ERROR(tape, AD_ERROR_HANDLE, "an operand was never set");
    memset(&wild, 0, sizeof wild); /* the constant 0 */
    ad_set(&z, ad_real_mul(wild, x));
    ck_assert_int_eq(ad_tape_status(tape), AD_OK);
    ck_assert_double_eq(z.value, 0);
}

TEST(two_tapes_do_not_mix)
{
    ad_tape other;
    ad_real a, z;
    ck_assert_int_eq(ad_tape_create(&other, NULL), AD_OK);
    a = ad_real_leaf(other, 1); /* the thread records on the first */
    ck_assert_uint_eq(a.index, 0);
    CHECK_ERROR(other, AD_ERROR_STATE, "the thread records on another tape");
    ck_assert_int_eq(ad_tape_record_begin(other), AD_OK);
    ck_assert_int_eq(ad_tape_record_begin(tape), AD_ERROR_STATE);
    CHECK_ERROR(tape, AD_ERROR_STATE, "records on this tape already, beneath another");
    a = ad_real_leaf(other, 1);
    ad_set(&z, ad_real_mul(a, x));
    CHECK_ERROR(other, AD_ERROR_TAPE, "belongs to another tape than the one recorded on");
    ad_set(&z, ad_real_mul(a, a));
    ck_assert_int_eq(ad_real_backward(other, z), AD_OK);
    ck_assert_double_eq(ad_real_gradient(other, a), 2);
    ck_assert_int_eq(ad_real_backward(tape, z), AD_ERROR_HANDLE);
    CHECK_ERROR(tape, AD_ERROR_HANDLE, "is another's");
    ck_assert_int_eq(ad_tape_record_end(tape), AD_ERROR_STATE);
    CHECK_ERROR(tape, AD_ERROR_STATE, "does not record on this tape");
    ck_assert_int_eq(ad_tape_record_end(other), AD_OK);
    ad_set(&z, ad_real_mul(x, y));
    ck_assert_int_eq(ad_real_backward(tape, z), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x), 12);
    ck_assert_int_eq(ad_tape_destroy(other), AD_OK);
}

TEST(a_destroyed_tape_is_recorded_on_no_more_wherever_it_stood)
{
    ad_tape other[3];
    ad_real z;
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(ad_tape_create(&other[i], NULL), AD_OK);
        ck_assert_int_eq(ad_tape_record_begin(other[i]), AD_OK);
    }
    ck_assert_int_eq(ad_tape_record_begin(other[2]), AD_OK); /* twice */
    ck_assert_int_eq(ad_tape_record_end(other[2]), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(other[1]), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(other[2]), AD_OK);
    z = ad_real_leaf(other[0], 1);
    ck_assert_uint_ne(z.index, 0);
    ck_assert_int_eq(ad_tape_destroy(other[0]), AD_OK);
    ad_set(&z, ad_real_mul(y, x));
    ck_assert_int_eq(ad_tape_status(tape), AD_OK);
    ck_assert_int_eq(ad_tape_record_end(tape), AD_OK);
    ad_tape_clear_error(none);
    ad_set(&z, ad_real_mul(y, x));
    check_poisoned(z);
    CHECK_ERROR(none, AD_ERROR_STATE, "the thread records on no tape");
    CHECK_ERROR(tape, AD_ERROR_STATE, "the thread records on no tape");
    ck_assert_int_eq(ad_tape_record_begin(tape), AD_OK);
    ad_set(&z, ad_real_mul(y, x));
    ck_assert_uint_ne(z.index, 0);
}

static void *in_another_thread(void *payload)
{
    ad_tape own;
    ad_real z, leaf;
    (void)payload;
    ck_assert_int_eq(ad_tape_create(&own, NULL), AD_OK);
    leaf = ad_real_leaf(own, 1);
    ad_set(&z, ad_real_mul(leaf, x));
    CHECK_ERROR(own, AD_ERROR_THREAD, "belongs to a tape of another thread");
    ck_assert_int_eq(ad_real_backward(tape, y), AD_ERROR_THREAD);
    CHECK_ERROR(none, AD_ERROR_THREAD, "belongs to another thread");
    ad_set(&z, ad_real_mul(leaf, 3));
    ck_assert_int_eq(ad_real_backward(own, z), AD_OK);
    ck_assert_double_eq(ad_real_gradient(own, leaf), 3);
    ck_assert_int_eq(ad_tape_destroy(own), AD_OK);
    return NULL;
}

TEST(a_value_of_another_thread_is_refused)
{
    pthread_t thread;
    ad_real z;
    ck_assert_int_eq(pthread_create(&thread, NULL, in_another_thread, NULL), 0);
    ad_set(&z, y);
    for (int i = 0; i < 1000; i++)
        ad_set(&z, ad_real_add(z, x));
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(ad_real_backward(tape, z), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x), 1004);
}

/* What was computed from a constant was recorded without it: 0 would be wrong. */
TEST(derivatives_by_a_constant_are_refused)
{
    const ad_real constant = {0}, by[2] = {x, ad_real_of(3)};
    double j[2] = {5, 5};
    ck_assert_int_eq(ad_real_jacobian(tape, 1, &y, 1, &constant, j), AD_ERROR_HANDLE);
    CHECK_ERROR(tape, AD_ERROR_HANDLE, "real_jacobian: x[0] is a constant: ad_real_leaves comes");
    ck_assert(isnan(j[0]) && j[1] == 5);
    ck_assert_int_eq(ad_real_jacobian(tape, 1, &y, 2, by, j), AD_ERROR_HANDLE);
    CHECK_ERROR(tape, AD_ERROR_HANDLE, "real_jacobian: x[1] is a constant");
    ck_assert(isnan(j[0]) && isnan(j[1]));
    ck_assert_int_eq(ad_real_jacobian(tape, 1, &constant, 1, &x, j), AD_OK); /* a constant result */
    ck_assert(j[0] == 0);
}

TEST(gradients_have_names_for_what_is_missing)
{
    double g[2];
    ck_assert(isnan(ad_real_gradient(tape, x)));
    CHECK_ERROR(tape, AD_ERROR_STATE, "no sweep since");
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert(isnan(ad_real_gradient(tape, y)));
    CHECK_ERROR(tape, AD_ERROR_STATE, "x[0] is no leaf");
    ck_assert_int_eq(ad_real_gradients(tape, 2, (ad_real[]){x, ad_real_of(1)}, g), AD_ERROR_HANDLE);
    CHECK_ERROR(tape, AD_ERROR_HANDLE, "x[1] is a constant: ad_real_leaves comes first at");
    ck_assert_int_eq(ad_real_gradients(tape, -1, &x, g), AD_ERROR_ARGUMENT);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "n is negative");
    ck_assert_int_eq(ad_real_gradients(tape, 1, NULL, g), AD_ERROR_ARGUMENT);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "a null pointer");
    ck_assert_int_eq(ad_real_gradients(tape, 0, NULL, NULL), AD_OK);
    ck_assert_int_eq(ad_real_backward_seeds(tape, 1, &y, NULL), AD_ERROR_ARGUMENT);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "seed is a null pointer");
    ck_assert_int_eq(ad_real_backward_seeds(tape, -2, &y, g), AD_ERROR_ARGUMENT);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "a number is negative");
    ck_assert_int_eq(ad_real_jacobian(tape, 1, &y, 1, &x, NULL), AD_ERROR_ARGUMENT);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "jacobian is a null pointer");
    ck_assert_int_eq(ad_real_jacobian(tape, 1, &y, 1, NULL, g), AD_ERROR_ARGUMENT);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "a null pointer");
    ck_assert_int_eq(ad_real_leaves(tape, -1, g, &x), AD_ERROR_ARGUMENT);
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "n is negative");
    const ad_real leaf = x;
    ck_assert_int_eq(ad_real_leaves(tape, 1, NULL, &x), AD_ERROR_ARGUMENT);
    check_poisoned(x);
    x = leaf;
    CHECK_ERROR(tape, AD_ERROR_ARGUMENT, "a null pointer");
    ck_assert_int_eq(ad_real_leaves(tape, 0, NULL, NULL), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x), 4);
}

TEST(handles_of_no_tape_are_refused)
{
    double g;
    ck_assert_int_eq(ad_real_backward(none, y), AD_ERROR_HANDLE);
    CHECK_ERROR(none, AD_ERROR_HANDLE, "real_backward: the handle is zero");
    ck_assert_int_eq(ad_real_backward_seeds(none, 1, &y, &g), AD_ERROR_HANDLE);
    CHECK_ERROR(none, AD_ERROR_HANDLE, "real_backward_seeds");
    ck_assert_int_eq(ad_real_jacobian(none, 1, &y, 1, &x, &g), AD_ERROR_HANDLE);
    CHECK_ERROR(none, AD_ERROR_HANDLE, "real_jacobian");
    ck_assert_int_eq(ad_tape_record_begin(none), AD_ERROR_HANDLE);
    CHECK_ERROR(none, AD_ERROR_HANDLE, "tape_record_begin");
    ck_assert_int_eq(ad_tape_record_end(none), AD_ERROR_HANDLE);
    CHECK_ERROR(none, AD_ERROR_HANDLE, "tape_record_end");
    const ad_real z = ad_real_leaf(none, 7);
    check_poisoned(z);
    CHECK_ERROR(none, AD_ERROR_HANDLE, "real_leaves");
}

TEST(after_an_error_statements_are_poisoned_until_it_is_cleared)
{
    ad_real z;
    ad_stats before, after;
    ad_leaf(tape, AD_I64, 0, NULL, NULL); /* while a run is open */
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_DTYPE);
    ad_tape_stats(tape, &before);
    ad_set(&z, ad_real_mul(x, y));
    ad_tape_stats(tape, &after);
    check_poisoned(z);
    ck_assert_uint_eq(after.statement_bytes, before.statement_bytes);
    CHECK_ERROR(tape, AD_ERROR_DTYPE, "i64 has no gradient");
    ad_set(&z, ad_real_mul(x, y));
    ck_assert_int_eq(ad_real_backward(tape, z), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x), 12);
}

TEST(a_full_budget_is_an_error_and_poisons)
{
    ad_stats before, after;
    ad_real z = y;
    int n = 0;
    for (; n < 1000000 && ad_tape_status(tape) == AD_OK; n++)
        ad_set(&z, ad_real_add(z, x));
    check_poisoned(z);
    ck_assert_int_gt(n, 10000);
    ad_tape_stats(tape, &before);
    ck_assert_uint_le(before.live_bytes, 1 << 20);
    ck_assert_uint_gt(before.live_bytes, 1 << 18);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_ERROR_MEMORY);
    CHECK_ERROR(tape, AD_ERROR_MEMORY, "statement: out of memory");
    /* There is no room for adjoints either. */
    ck_assert_int_eq(ad_real_backward(tape, y), AD_ERROR_MEMORY);
    ad_tape_stats(tape, &after);
    ck_assert_uint_eq(after.live_bytes, before.live_bytes);
    CHECK_ERROR(tape, AD_ERROR_MEMORY, "real_backward: out of memory");
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    x = ad_real_leaf(tape, 2);
    ad_set(&y, ad_real_square(x));
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
}

TEST(the_last_index_is_followed_by_an_error)
{
    /* As if so many statements had been recorded. */
    struct tape *t = ad_slots[tape.slot].tape;
    const uint32_t last = TAPE_INDEX_LIMIT;
    ad_real z;
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    const uint64_t tag = t->statements->rest.result >> 32;
    t->statements->rest.result = tag << 32 | (last - 1000);
    ad_tape_record_end(tape); /* the cursor takes it up */
    ad_tape_record_begin(tape);
    ad_real leaf[2];
    ck_assert_int_eq(ad_real_leaves(tape, 2, (double[]){1, 2}, leaf), AD_OK);
    ck_assert_uint_eq(leaf[1].index, last - 999);
    z = leaf[0];
    uint32_t n = 0;
    for (; n < 2000 && ad_tape_status(tape) == AD_OK; n++) {
        const uint32_t before = z.index;
        ad_set(&z, ad_real_add(ad_real_mul(z, leaf[1]), leaf[0]));
        ck_assert(ad_tape_status(tape) != AD_OK || z.index > before);
        ck_assert_uint_le(z.index, UINT32_MAX - 1);
    }
    ck_assert_uint_ge(n, 998);
    ck_assert_uint_le(n, 998 + TAPE_BLOCK_LEAST / 20);
    ck_assert_uint_eq(z.index, 0);
    CHECK_ERROR(tape, AD_ERROR_LIMIT, "statement: the tape has all of its");
    ck_assert_int_eq(ad_real_leaves(tape, 2, (double[]){1, 2}, leaf), AD_ERROR_LIMIT);
    CHECK_ERROR(tape, AD_ERROR_LIMIT, "real_leaves: 2, and");
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    x = ad_real_leaf(tape, 2);
    ck_assert_uint_eq(x.index, 1);
}

/* Sweeps what is older than the check. */
static ad_tensor sweeping(ad_tape on, const ad_tensor *in, int n, void *payload)
{
    (void)payload;
    ck_assert_int_eq(n, 1);
    ck_assert_int_eq(ad_real_backward(on, y), AD_ERROR_STATE);
    return ad_square(in[0]);
}

TEST(a_gradient_check_is_not_swept_into)
{
    double one = 1;
    ad_tensor w = ad_leaf(tape, AD_F64, 0, NULL, &one);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_int_eq(ad_check_gradient(tape, sweeping, 1, &w, 1e-6, NULL, NULL), AD_ERROR_STATE);
    CHECK_ERROR(tape, AD_ERROR_STATE, "real_backward: not while a gradient check runs");
    ck_assert_double_eq(ad_real_gradient(tape, x), 4);
}

TEST(the_first_failure_without_a_tape_stays)
{
    ad_tape_clear_error(none);
    ck_assert_int_eq(ad_real_backward(none, x), AD_ERROR_HANDLE);
    ck_assert(isnan(ad_real_gradient(none, x)));
    ck_assert_int_eq(ad_tape_reset(none), AD_ERROR_HANDLE);
    CHECK_ERROR(none, AD_ERROR_HANDLE, "real_backward: the handle is zero");
}

TEST(more_leaves_than_indices_write_nothing)
{
    ad_real z = {7, 0, 0};
    ck_assert_int_eq(ad_real_leaves(tape, INT64_MAX, &z.value, &z), AD_ERROR_LIMIT);
    CHECK_ERROR(tape, AD_ERROR_LIMIT, "real_leaves: 9223372036854775807, and");
    ck_assert_double_eq(z.value, 7);
}

RUN_TESTS(setup, teardown)
