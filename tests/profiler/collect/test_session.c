/* test_session.c: a hook that a thread took up just before its observation ended and another began;
 * and what is left of a thread that has ended.
 *
 * What other threads do between two steps of a thread is done here by the clock, which the thread
 * reads in between, or by the test.
 */
#include "ad_internal.h"
#include "run_cases.h"
#include "tape_account.h"
#include "tape_now.h"
#include "tape_scope.h"

#include <tapescope/ad.h>

#include <check.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 4, LATER = 1000000 };

static const int64_t shape[1] = {SIZE};
static const double data[SIZE] = {1, 2, 3, 4};
static const struct tape_scope_keys no_keys;

static struct tape_hook first, second;
static const struct tape_scopes *scopes;
static unsigned n_flushed, n_events, n_told[2];
static uint64_t ticks[2];
static unsigned readings; /* of the first clock until its observation ends; 0: it goes on */
static struct tape_hook *the_next; /* whose observation begins then */

static void change(struct tape_hook *to)
{
    tape_observe_end();
    ck_assert(tape_observe_begin(to));
}

static uint64_t first_clock(void)
{
    if (readings > 0 && --readings == 0)
        change(the_next);
    return ++ticks[0];
}

static uint64_t second_clock(void)
{
    return LATER + ++ticks[1];
}

static void flush(struct tape_hook *hook, const struct tape_ledger *ledger, bool last)
{
    (void)hook, (void)ledger, (void)last;
    n_flushed++;
}

static void begin(struct tape_hook *hook, const struct tape_scopes *from)
{
    (void)hook;
    scopes = from;
}

static void thread(struct tape_hook *hook, const struct tape_now *now)
{
    ck_assert_ptr_nonnull(now);
    n_told[hook == &second]++;
}

static void event(struct tape_hook *hook, const struct tape_event *of)
{
    (void)hook, (void)of;
    n_events++;
}

static void setup(void)
{
    first = (struct tape_hook){.abi = TAPE_HOOK_ABI,
                               .clock = first_clock,
                               .due = UINT64_MAX,
                               .flush = flush,
                               .begin = begin};
    second = first;
    second.clock = second_clock;
    ck_assert(tape_observe_begin(&first));
}

static void teardown(void)
{
    tape_observe_end();
}

static ad_tape a_tape(void)
{
    static const ad_tape_options small = {.budget_bytes = 1 << 20, .reserve_bytes = 1 << 20};
    ad_tape tape;
    ck_assert_int_eq(ad_tape_create(&tape, &small), AD_OK);
    return tape;
}

TEST(the_account_is_not_opened_for_a_hook_that_observes_no_more)
{
    const ad_tape tape = a_tape();
    const ad_tensor x = ad_neg(ad_leaf(tape, AD_F64, 1, shape, data));
    struct tape *t = ad_tape_behind(x);
    ck_assert_uint_eq(t->session, tape_session_now);
    change(&second);
    ck_assert_ptr_null(tape_account_attach(t, &first));
    ck_assert_uint_ne(t->session, tape_session_now);
    ad_neg(x);
    ck_assert_uint_eq(t->session, tape_session_now);
    ck_assert_ptr_eq(t->hook, &second);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

TEST(each_observer_hears_of_a_thread_that_had_the_last_ones_hook)
{
    change(&second);
    first.thread = second.thread = thread;
    struct tape_now *now = tape_now_here(&second);
    ck_assert_ptr_nonnull(now);
    change(&first);
    ck_assert_ptr_null(tape_now_here(&second));
    ck_assert_uint_eq(n_told[0], 0);
    ck_assert_ptr_eq(tape_now_here(&first), now);
    ck_assert_ptr_eq(tape_now_here(&first), now);
    ck_assert_uint_eq(n_told[0], 1);
    ck_assert_uint_eq(n_told[1], 1);
}

TEST(a_scope_that_begins_as_the_observation_ends_is_none_of_the_next)
{
    readings = 1;
    the_next = &second;
    ck_assert_uint_eq(tape_scope_begin("between", no_keys, 0), 0);
    ck_assert_uint_eq(readings, 0);
    ck_assert_uint_eq(scopes->n, 1);
    const uint32_t depth = tape_scope_begin("within", no_keys, 0);
    ck_assert_uint_eq(depth, 1);
    ck_assert_int_eq(tape_scope_end(depth).what, TAPE_SCOPE_FINE);
    ck_assert_uint_eq(tape_scopes_at(scopes, 1)->calls, 1);
    ck_assert_uint_eq(tape_scopes_at(scopes, 1)->open_calls, 0);
    ck_assert_uint_eq(tape_scopes_at(scopes, 1)->ticks, 1);
}

TEST(an_op_that_ends_in_the_next_observation_of_its_hook_is_none_of_it)
{
    const ad_tape tape = a_tape();
    const ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data);
    first.due = 0;
    first.event = event;
    readings = 2;
    the_next = &first;
    n_flushed = 0;
    ad_neg(x);
    ck_assert_uint_eq(readings, 0);
    ck_assert_uint_eq(n_flushed, 1); /* by the end of the observation */
    ck_assert_uint_eq(n_events, 0);
    ad_neg(x);
    ck_assert_uint_eq(n_flushed, 2);
    ck_assert_uint_eq(n_events, 1);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

struct publisher {
    const struct tape_now *now;
    uint32_t owner;
};

static void *publish(void *payload)
{
    struct publisher *p = payload;
    p->now = tape_now_here(&second);
    p->owner = p->now ? p->now->owner : 0;
    return NULL;
}

TEST(a_place_has_another_owner_once_its_thread_has_ended)
{
    struct publisher publisher[2];
    second.thread = thread;
    change(&second);
    for (int i = 0; i < 2; i++) {
        pthread_t worker;
        ck_assert_int_eq(pthread_create(&worker, NULL, publish, &publisher[i]), 0);
        ck_assert_int_eq(pthread_join(worker, NULL), 0);
        ck_assert_ptr_nonnull(publisher[i].now);
        ck_assert_uint_ne(publisher[i].now->owner, publisher[i].owner);
    }
    ck_assert_ptr_eq(publisher[0].now, publisher[1].now);
    ck_assert_uint_ne(publisher[0].owner, publisher[1].owner);
}

/* A thread that is writing what it does while the process is forked; it ends when it is told. */
static pthread_barrier_t writes, forked;

static void *write_for_long(void *payload)
{
    struct publisher *p = payload;
    publish(p);
    struct tape_now *now = (struct tape_now *)(uintptr_t)p->now;
    __atomic_add_fetch(&now->version, 1, __ATOMIC_RELAXED);
    pthread_barrier_wait(&writes);
    pthread_barrier_wait(&forked);
    __atomic_add_fetch(&now->version, 1, __ATOMIC_RELAXED);
    return NULL;
}

static bool publish_something(struct publisher *p)
{
    static const struct tape_doing something = {.line = 7};
    publish(p);
    tape_doing_write((struct tape_now *)(uintptr_t)p->now, &something);
    struct tape_doing read;
    return tape_doing_read(&read, p->now) && read.line == 7;
}

/* In the child of a fork that thread is gone, and another has its place. */
TEST(a_place_that_was_written_at_a_fork_can_be_read_in_the_child)
{
    struct publisher writer, reader;
    pthread_t thread_of_writer;
    int status;
    second.thread = thread;
    change(&second);
    pthread_barrier_init(&writes, NULL, 2);
    pthread_barrier_init(&forked, NULL, 2);
    ck_assert_int_eq(pthread_create(&thread_of_writer, NULL, write_for_long, &writer), 0);
    pthread_barrier_wait(&writes);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        const bool found = publish_something(&reader);
        _exit(!found + 2 * (reader.now != writer.now));
    }
    pthread_barrier_wait(&forked);
    pthread_join(thread_of_writer, NULL);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    pthread_barrier_destroy(&writes);
    pthread_barrier_destroy(&forked);
}

RUN_TESTS(setup, teardown)
