/* test_scope.c: scopes as the tape counts them: nesting, ways out, keys, threads, misuse.
 *
 * The clock is the observer's: a tick each time that it is read, so that ticks are known by
 * counting.
 */
#include "observe_support.h"
#include "run_cases.h"
#include "tape_scope.h"

#include <tapescope/ad_real.h>

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const double data[4] = {1, 2, 3, 4};
static const int64_t shape[1] = {4};

static void begin(void)
{
    observe_begin(UINT64_MAX);
    ad_profiling_ = 1;
}

static void end(void)
{
    tape_observe_end();
    ad_profiling_ = 0;
}

/* A clean thread's error, whatever a case left. */
static void setup(void)
{
    ad_tape_clear_error((ad_tape){0, 0});
}

/* Number of the newest node of that name, or 0. */
static uint32_t node(const char *name)
{
    for (uint32_t i = observe_scopes->n; i-- > 1;)
        if (strcmp(tape_scopes_at(observe_scopes, i)->name, name) == 0)
            return i;
    return 0;
}

static const struct tape_scope *scope(const char *name)
{
    const uint32_t i = node(name);
    ck_assert_msg(i != 0, "no scope %s", name);
    return tape_scopes_at(observe_scopes, i);
}

/* Sum of a counter over the rows of a scope. */
static uint64_t calls_in(const struct tape_ledger *ledger, const char *name, const char *op)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < ledger->n_rows; i++) {
        const struct tape_row *row = tape_ledger_row(ledger, i);
        if (row->scope == (name ? node(name) : 0) && strcmp(row->op, op) == 0)
            n += row->calls;
    }
    return n;
}

TEST(rows_belong_to_the_scope_they_were_recorded_in)
{
    begin();
    ad_tape tape = observe_tape();
    ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data), y = x;
    AD_SCOPE("outer")
    {
        y = ad_square(y);
        AD_SCOPE("inner")
        {
            y = ad_exp(y);
            y = ad_exp(y);
        }
        y = ad_exp(y);
    }
    ck_assert_int_eq(ad_backward(ad_sum(y)), AD_OK);
    const struct tape_ledger *ledger = observe_ledger();
    ck_assert_uint_eq(scope("inner")->parent, node("outer"));
    ck_assert_uint_eq(scope("outer")->parent, 0);
    ck_assert_uint_eq(calls_in(ledger, NULL, "leaf"), 1);
    ck_assert_uint_eq(calls_in(ledger, NULL, "sum"), 1);
    ck_assert_uint_eq(calls_in(ledger, "outer", "square"), 1);
    ck_assert_uint_eq(calls_in(ledger, "outer", "exp"), 1);
    ck_assert_uint_eq(calls_in(ledger, "inner", "exp"), 2);
    uint64_t backward = 0;
    for (uint32_t i = 0; i < ledger->n_rows; i++)
        if (tape_ledger_row(ledger, i)->scope == node("inner"))
            backward += tape_ledger_row(ledger, i)->backward_ticks;
    ck_assert_uint_eq(backward, 2);
    observe_check_sums(ledger);
    observe_check_live(ledger, tape);
    ad_tape_destroy(tape);
    end();
}

TEST(every_tick_between_begin_and_end_is_some_scopes)
{
    begin();
    ad_tape tape = observe_tape();
    ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data);
    const uint64_t before = observe_ticks;
    for (int i = 0; i < 3; i++) {
        AD_SCOPE("a")
        {
            ad_neg(x); /* two readings */
            AD_SCOPE("b")
            {
                ad_neg(x);
                ad_neg(x);
            }
        }
    }
    /* Each time: 2 begins, 3 ops, 2 ends; the first begin's reading is the time before it. */
    ck_assert_uint_eq(observe_ticks - before, 3 * (4 + 6));
    ck_assert_uint_eq(scope("a")->calls, 3);
    ck_assert_uint_eq(scope("b")->calls, 3);
    ck_assert_uint_eq(scope("a")->ticks, 3 * (2 + 1 + 1));
    ck_assert_uint_eq(scope("b")->ticks, 3 * (4 + 1));
    ck_assert_uint_eq(scope("a")->records, 3);
    ck_assert_uint_eq(scope("b")->records, 6);
    ad_tape_destroy(tape);
    end();
}

/* Leaves its scope by the way that it is told. */
static int leave(int way)
{
    for (int i = 0; i < 2; i++) {
        AD_SCOPE("way")
        {
            if (way == 0)
                return 1;
            if (way == 1)
                break;
            if (way == 2)
                continue;
            if (way == 3)
                goto out;
        }
        AD_SCOPE_HERE("here");
        if (way == 4)
            break;
        if (way == 5)
            continue;
        if (way == 6)
            return 2;
    }
out:
    return 3;
}

TEST(a_scope_ends_by_whatever_way_it_is_left)
{
    static const struct {
        int result;
        unsigned ways, heres;
    } want[] = {{1, 1, 0}, {3, 2, 2}, {3, 2, 2}, {3, 1, 0}, {3, 1, 1}, {3, 2, 2}, {2, 1, 1}};
    for (int way = 0; way < 7; way++) {
        begin();
        ck_assert_int_eq(leave(way), want[way].result);
        ck_assert_uint_eq(tape_scope_now, 0);
        ck_assert_uint_eq(scope("way")->calls, want[way].ways);
        if (want[way].heres)
            ck_assert_uint_eq(scope("here")->calls, want[way].heres);
        end();
    }
    ck_assert_int_eq(ad_tape_status((ad_tape){0, 0}), AD_OK);
}

TEST(keys_and_values_tell_scopes_apart)
{
    begin();
    const uint32_t first = observe_scopes->n;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 3; i++) {
            AD_SCOPE("layer", "index", i, "width", (size_t)7)
            {
            }
            char name[] = "copied";
            AD_SCOPE(name)
            {
                memset(name, 'x', 6);
            }
        }
    ck_assert_uint_eq(observe_scopes->n - first, 4);
    ck_assert_uint_eq(scope("copied")->calls, 6);
    int seen = 0;
    for (uint32_t i = first; i < observe_scopes->n; i++) {
        const struct tape_scope *s = tape_scopes_at(observe_scopes, i);
        if (strcmp(s->name, "layer") != 0)
            continue;
        ck_assert_uint_eq(s->calls, 2);
        ck_assert_uint_eq(s->n_keys, 2);
        ck_assert_str_eq(s->key[0], "index");
        ck_assert_int_eq(s->value[0], seen++);
        ck_assert_str_eq(s->key[1], "width");
        ck_assert_int_eq(s->value[1], 7);
    }
    ck_assert_int_eq(seen, 3);
    end();
}

TEST(an_observation_counts_from_zero)
{
    begin();
    AD_SCOPE("again")
    {
    }
    end();
    begin();
    const uint32_t n = observe_scopes->n;
    ck_assert_uint_eq(scope("again")->calls, 0);
    ck_assert_uint_eq(scope("again")->ticks, 0);
    AD_SCOPE("again")
    {
    }
    ck_assert_uint_eq(scope("again")->calls, 1);
    ck_assert_uint_eq(scope("again")->ticks, 1);
    ck_assert_uint_eq(observe_scopes->n, n);
    end();
}

TEST(a_run_of_statements_is_split_where_a_scope_begins_or_ends)
{
    begin();
    ad_tape tape = observe_tape();
    ad_tape_record_begin(tape);
    ad_real x[4];
    ad_real_leaves(tape, 4, data, x);
    ad_real y = x[0];
    for (int i = 0; i < 5; i++)
        ad_set(&y, ad_real_mul(y, x[1]));
    AD_SCOPE("statements")
    {
        for (int i = 0; i < 7; i++)
            ad_set(&y, ad_real_mul(y, x[2]));
        AD_SCOPE("within")
        {
            ad_set(&y, ad_real_sin(y));
        }
    }
    for (int i = 0; i < 2; i++)
        ad_set(&y, ad_real_mul(y, x[3]));
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ad_tape_record_end(tape);
    const struct tape_ledger *ledger = observe_ledger();
    ck_assert_uint_eq(calls_in(ledger, NULL, "statement"), 7);
    ck_assert_uint_eq(calls_in(ledger, "statements", "statement"), 7);
    ck_assert_uint_eq(calls_in(ledger, "within", "statement"), 1);
    ck_assert_uint_eq(scope("statements")->records, 7);
    ck_assert_uint_eq(scope("within")->records, 1);
    ck_assert_uint_eq(scope("statements")->recorded_calls, 1);
    observe_check_sums(ledger);
    observe_check_live(ledger, tape);
    ad_tape_destroy(tape);
    end();
}

TEST(calls_that_recorded_nothing_are_told_apart)
{
    begin();
    ad_tape tape = observe_tape();
    ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data);
    for (int i = 0; i < 5; i++) {
        AD_SCOPE("maybe")
        {
            if (i < 2)
                ad_tape_no_grad_begin(tape);
            ad_neg(x);
            if (i < 2)
                ad_tape_no_grad_end(tape);
        }
    }
    ck_assert_uint_eq(scope("maybe")->calls, 5);
    ck_assert_uint_eq(scope("maybe")->recorded_calls, 3);
    ad_tape_destroy(tape);
    end();
}

static const char *message(void)
{
    return ad_tape_message((ad_tape){0, 0});
}

TEST(an_end_without_a_begin_is_a_named_error_with_and_without_a_profile)
{
    for (int profiled = 0; profiled < 2; profiled++) {
        if (profiled)
            begin();
        ck_assert_int_eq(ad_scope_begin("x"), AD_OK);
        ck_assert_int_eq(ad_scope_end(), AD_OK);
        ck_assert_int_eq(ad_scope_end(), AD_ERROR_STATE);
        ck_assert_ptr_nonnull(strstr(message(), "scope_end: no scope was begun at test_scope.c:"));
        ad_tape_clear_error((ad_tape){0, 0});
        if (profiled)
            end();
    }
}

TEST(a_begin_without_an_end_is_named_where_the_scope_around_it_ends)
{
    begin();
    AD_SCOPE("block")
    {
        ck_assert_int_eq(ad_scope_begin("forgotten"), AD_OK);
    }
    ck_assert_int_eq(ad_tape_status((ad_tape){0, 0}), AD_ERROR_STATE);
    ck_assert_ptr_nonnull(strstr(message(), "the scope \"forgotten\" was begun within and not"));
    ck_assert_ptr_nonnull(strstr(message(), "test_scope.c"));
    ck_assert_uint_eq(tape_scope_now, 0);
    ck_assert_int_eq(ad_scope_end(), AD_OK); /* its end comes late, and is none any more */
    end();
}

TEST(an_end_within_a_block_that_began_later_is_named)
{
    begin();
    ad_scope_begin("around");
    AD_SCOPE("block")
    {
        ck_assert_int_eq(ad_scope_end(), AD_ERROR_STATE);
        ck_assert_ptr_nonnull(strstr(message(), "ends a scope around the scope \"block\""));
        ck_assert_uint_eq(tape_scope_now, 0);
    }
    ck_assert_uint_eq(tape_scope_now, 0);
    ck_assert_uint_eq(scope("block")->calls, 1);
    end();
}

TEST(scopes_that_began_before_the_profile_or_end_after_it_are_no_errors)
{
    ad_scope_begin("before");
    AD_SCOPE("block")
    {
        begin();
        AD_SCOPE("whole")
        {
        }
        ad_scope_begin("into");
        AD_SCOPE("block into")
        {
            end();
            ck_assert_str_eq(tape_scopes_at(observe_scopes, tape_scope_now)->name, "block into");
        }
        ck_assert_int_eq(ad_scope_end(), AD_OK);
    }
    ck_assert_int_eq(ad_scope_end(), AD_OK);
    ck_assert_int_eq(ad_tape_status((ad_tape){0, 0}), AD_OK);
    ck_assert_uint_eq(tape_scope_now, 0);
    ck_assert_uint_eq(scope("whole")->parent, 0);
}

TEST(arguments_that_name_nothing_are_refused)
{
    static const char *const keys[] = {"a", NULL};
    static const int64_t values[] = {1, 2};
    ck_assert_int_eq(ad_scope_begin(NULL), AD_ERROR_ARGUMENT);
    ck_assert_int_eq(ad_scope_begin_keys(NULL, 0, NULL, NULL), AD_ERROR_ARGUMENT);
    ck_assert_int_eq(ad_scope_begin_keys("x", 4, keys, values), AD_ERROR_ARGUMENT);
    ck_assert_int_eq(ad_scope_begin_keys("x", -1, keys, values), AD_ERROR_ARGUMENT);
    ck_assert_int_eq(ad_scope_begin_keys("x", 1, NULL, values), AD_ERROR_ARGUMENT);
    ck_assert_int_eq(ad_scope_begin_keys("x", 1, keys, NULL), AD_ERROR_ARGUMENT);
    ck_assert_int_eq(ad_scope_begin_keys("x", 2, keys, values), AD_ERROR_ARGUMENT);
    ck_assert_int_eq(ad_scope_begin_keys("x", 1, keys, values), AD_OK);
    ck_assert_int_eq(ad_scope_end(), AD_OK);
    ck_assert_int_eq(ad_scope_end(), AD_ERROR_STATE);
}

TEST(scopes_nested_too_deep_belong_to_those_around_them)
{
    begin();
    const uint32_t n = observe_scopes->n;
    for (int i = 0; i < 70; i++)
        ck_assert_int_eq(ad_scope_begin("deep"), AD_OK);
    ck_assert_uint_eq(observe_scopes->n - n, 64);
    ck_assert_uint_eq(observe_scopes->lost, 6);
    for (int i = 0; i < 70; i++)
        ck_assert_int_eq(ad_scope_end(), AD_OK);
    ck_assert_uint_eq(tape_scope_now, 0);
    uint64_t ticks = 0;
    for (uint32_t i = n; i < n + 64; i++) {
        ck_assert_uint_eq(tape_scopes_at(observe_scopes, i)->calls, 1);
        ticks += tape_scopes_at(observe_scopes, i)->ticks;
    }
    ck_assert_uint_eq(ticks, 2 * 64 - 1 + 6); /* an end beyond the 64th reads no clock */
    end();
}

static void *work(void *payload)
{
    ad_tape tape = observe_tape();
    ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data);
    for (int i = 0; i < 100; i++) {
        AD_SCOPE("threads")
        {
            x = ad_neg(x);
        }
    }
    ad_tape_destroy(tape);
    return payload;
}

TEST(threads_have_scopes_of_their_own_and_leave_them_to_later_ones)
{
    begin();
    pthread_t thread[3];
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, work, NULL), 0);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    const uint32_t n = observe_scopes->n;
    for (int i = 0; i < 3; i++) { /* one after the other */
        ck_assert_int_eq(pthread_create(&thread[0], NULL, work, NULL), 0);
        ck_assert_int_eq(pthread_join(thread[0], NULL), 0);
    }
    ck_assert_uint_eq(observe_scopes->n, n);
    uint64_t calls = 0, records = 0, lanes = 0;
    for (uint32_t i = 1; i < n; i++) {
        const struct tape_scope *s = tape_scopes_at(observe_scopes, i);
        if (strcmp(s->name, "threads") == 0) {
            calls += s->calls;
            records += s->records;
            lanes |= UINT64_C(1) << s->lane;
        }
    }
    ck_assert_uint_eq(calls, 600);
    ck_assert_uint_eq(records, 600);
    ck_assert_uint_ne(lanes, 0);
    end();
}

TEST(the_tree_has_room_for_65535_scopes_and_loses_no_time_beyond)
{
    begin();
    char name[32];
    AD_SCOPE("many")
    {
        for (int i = 0; i < 66000; i++) {
            snprintf(name, sizeof name, "many %d", i);
            AD_SCOPE(name)
            {
            }
        }
    }
    ck_assert_uint_eq(observe_scopes->n, 65536);
    ck_assert_uint_gt(observe_scopes->lost, 0);
    ck_assert_uint_eq(scope("many")->ticks,
                      66000 + 1 + observe_scopes->lost); /* lost ones are in it */
    end();
}

RUN_TESTS(setup, NULL)
