/* test_real_fork_errors.c: mistakes with forks of a tape, one a case: named, with the line, and
 * what then becomes of the fork, its results and the memory.
 */
#include <tapescope/ad_real.h>

#include "poison_check.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const ad_tape_options small = {.budget_bytes = 4 << 20, .reserve_bytes = 64 << 20};
static ad_tape tape, fork_;
static ad_real x, y;

static void setup(void)
{
    setenv("TAPESCOPE_MODULE_DIR", TAPESCOPE_LIB_DIR "/tapescope", 1);
    ck_assert_int_eq(ad_tape_create(&tape, &small), AD_OK);
    x = ad_real_leaf(tape, 2);
    ck_assert_int_eq(ad_tape_fork(tape, 1, &fork_), AD_OK);
}

static void teardown(void)
{
    ck_assert_msg(ad_tape_status(tape) == AD_OK, "%s", ad_tape_message(tape));
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

/* y = x^2 on the fork. */
static void record(void)
{
    ck_assert_int_eq(ad_tape_record_begin(fork_), AD_OK);
    ad_set(&y, ad_real_square(x));
    ck_assert_int_eq(ad_tape_record_end(fork_), AD_OK);
}

/* The tape (or thread) has this error, by a message with these words, and serves on without it. */
static void check_error(ad_tape where, ad_status status, const char *words)
{
    ck_assert_msg(ad_tape_status(where) == status, "%s: %s", ad_status_name(ad_tape_status(where)),
                  ad_tape_message(where));
    ck_assert_msg(strstr(ad_tape_message(where), words) != NULL, "%s", ad_tape_message(where));
    ck_assert_msg(strstr(ad_tape_message(where), "test_real_fork_errors.c") != NULL, "%s",
                  ad_tape_message(where));
    ad_tape_clear_error(where);
}

/* The fork is there, nobody's, and joined gives the gradient of x^2. */
static void check_joins(void)
{
    ck_assert_int_eq(ad_tape_join(tape, fork_, 1, &y), AD_OK);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert(ad_real_gradient(tape, x) == 4);
}

static void check_gone(void)
{
    ck_assert_int_eq(ad_tape_destroy(fork_), AD_ERROR_HANDLE);
    check_error((ad_tape){0, 0}, AD_ERROR_HANDLE, "tape_destroy: the tape was destroyed");
}

TEST(forking_needs_a_tape_a_number_and_a_place)
{
    ad_tape fork[2] = {{1, 1}, {1, 1}};
    ck_assert_int_eq(ad_tape_fork(tape, -1, fork), AD_ERROR_ARGUMENT);
    check_error(tape, AD_ERROR_ARGUMENT, "tape_fork: n is negative");
    ck_assert_int_eq(ad_tape_fork(tape, 1, NULL), AD_ERROR_ARGUMENT);
    check_error(tape, AD_ERROR_ARGUMENT, "tape_fork: a null pointer");
    ck_assert_int_eq(ad_tape_fork(tape, 0, NULL), AD_OK);
    ck_assert_int_eq(ad_tape_fork((ad_tape){0, 0}, 2, fork), AD_ERROR_HANDLE);
    ck_assert(fork[0].slot == 0 && fork[1].slot == 0);
    check_error((ad_tape){0, 0}, AD_ERROR_HANDLE, "tape_fork: the handle is zero");
    ad_tape_record_end((ad_tape){0, 0});
    check_error((ad_tape){0, 0}, AD_ERROR_HANDLE, "tape_record_end");
    record();
    check_joins();
}

TEST(a_join_needs_results_and_the_fork_stays)
{
    record();
    ck_assert_int_eq(ad_tape_join(tape, fork_, -1, &y), AD_ERROR_ARGUMENT);
    check_error(tape, AD_ERROR_ARGUMENT, "tape_join: m is negative");
    ck_assert_int_eq(ad_tape_join(tape, fork_, 1, NULL), AD_ERROR_ARGUMENT);
    check_error(tape, AD_ERROR_ARGUMENT, "tape_join: a null pointer");
    check_joins();
    ck_assert_int_eq(ad_tape_join(tape, fork_, 1, &y), AD_ERROR_HANDLE);
    check_error(tape, AD_ERROR_HANDLE, "tape_join: the fork was joined already, or destroyed");
    check_gone();
}

TEST(without_results_a_join_only_drops_the_fork)
{
    record();
    ck_assert_int_eq(ad_tape_join(tape, fork_, 0, NULL), AD_OK);
    ad_stats stats;
    ck_assert_int_eq(ad_tape_stats(tape, &stats), AD_OK);
    ck_assert_uint_eq(stats.statements, 0);
    check_gone();
}

TEST(only_forks_of_the_tape_are_joined_to_it)
{
    ad_tape other;
    record();
    ck_assert_int_eq(ad_tape_create(&other, &small), AD_OK);
    ck_assert_int_eq(ad_tape_join(other, fork_, 1, &y), AD_ERROR_TAPE);
    check_error(other, AD_ERROR_TAPE, "tape_join: it is no fork of this tape");
    ck_assert_int_eq(ad_tape_join(tape, other, 1, &y), AD_ERROR_TAPE);
    check_error(tape, AD_ERROR_TAPE, "tape_join: it is no fork of this tape");
    ck_assert_int_eq(ad_tape_join(tape, tape, 1, &y), AD_ERROR_TAPE);
    check_error(tape, AD_ERROR_TAPE, "tape_join: it is no fork of this tape");
    ck_assert_int_eq(ad_tape_join(tape, (ad_tape){0, 0}, 1, &y), AD_ERROR_HANDLE);
    check_error(tape, AD_ERROR_HANDLE, "tape_join: the fork's handle is none of a tape");
    ck_assert_int_eq(ad_tape_destroy(other), AD_OK);
    ck_assert_int_eq(ad_tape_join(other, fork_, 1, &y), AD_ERROR_HANDLE);
    check_error((ad_tape){0, 0}, AD_ERROR_HANDLE, "tape_join: the tape was destroyed");
    check_joins();
}

static pthread_barrier_t begun, done;

static void *hold(void *nothing)
{
    ad_tape_record_begin(fork_);
    pthread_barrier_wait(&begun);
    pthread_barrier_wait(&done);
    ad_set(&y, ad_real_square(x));
    ad_tape_record_end(fork_);
    return nothing;
}

TEST(a_fork_that_is_recorded_on_is_not_joined_nor_taken)
{
    pthread_t thread;
    ck_assert_int_eq(ad_tape_record_begin(fork_), AD_OK);
    ck_assert_int_eq(ad_tape_join(tape, fork_, 0, NULL), AD_ERROR_STATE);
    check_error(tape, AD_ERROR_STATE,
                "tape_join: the fork is recorded on: ad_tape_record_end comes first");
    ck_assert_int_eq(ad_tape_record_end(fork_), AD_OK);
    pthread_barrier_init(&begun, NULL, 2);
    pthread_barrier_init(&done, NULL, 2);
    ck_assert_int_eq(pthread_create(&thread, NULL, hold, NULL), 0);
    pthread_barrier_wait(&begun);
    ck_assert_int_eq(ad_tape_join(tape, fork_, 0, NULL), AD_ERROR_THREAD);
    check_error(
        tape, AD_ERROR_THREAD,
        "tape_join: another thread records on the fork: its ad_tape_record_end comes first");
    ck_assert_int_eq(ad_tape_record_begin(fork_), AD_ERROR_THREAD);
    check_error((ad_tape){0, 0}, AD_ERROR_THREAD, "tape_record_begin: the tape belongs to another");
    ck_assert_int_eq(ad_tape_destroy(fork_), AD_ERROR_THREAD);
    check_error((ad_tape){0, 0}, AD_ERROR_THREAD, "tape_destroy: the tape belongs to another");
    pthread_barrier_wait(&done);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    pthread_barrier_destroy(&begun);
    pthread_barrier_destroy(&done);
    check_joins();
}

TEST(a_fork_that_is_nobodys_is_refused_by_name)
{
    ad_stats stats;
    ck_assert_int_eq(ad_tape_stats(fork_, &stats), AD_ERROR_STATE);
    check_error((ad_tape){0, 0}, AD_ERROR_STATE,
                "tape_stats: the fork belongs to no thread: ad_tape_record_begin comes first");
    record();
    ad_set(&y, ad_real_of(y)); /* a copy is no use */
    ad_real z;
    ad_set(&z, ad_real_sin(y)); /* before the join */
    ck_assert_uint_eq(z.index, 0);
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_THREAD);
    check_error(tape, AD_ERROR_THREAD, "statement: an operand belongs to a fork that is not");
    check_joins();
}

TEST(operands_of_later_or_elsewhere_are_refused)
{
    ad_tape sibling;
    ad_real later, z;
    ad_set(&later, ad_real_square(x));
    ck_assert_int_eq(ad_tape_fork(tape, 1, &sibling), AD_OK);
    record();
    ck_assert_int_eq(ad_tape_record_begin(sibling), AD_OK);
    ad_set(&z, ad_real_mul(x, y));
    ck_assert_uint_eq(z.index, 0);
    check_error(sibling, AD_ERROR_THREAD, "statement: an operand belongs to a fork that is not");
    ck_assert_int_eq(ad_tape_record_end(sibling), AD_OK);
    ck_assert_int_eq(ad_tape_record_begin(fork_), AD_OK);
    ad_set(&z, ad_real_mul(y, later));
    ck_assert_uint_eq(z.index, 0);
    check_error(fork_, AD_ERROR_HANDLE,
                "statement: an operand was recorded on the parent after the fork, or dropped");
    ck_assert_int_eq(ad_tape_record_end(fork_), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(sibling), AD_OK);
    check_joins();
}

TEST(a_fork_has_no_leaves_and_is_not_swept_alone)
{
    double g;
    record();
    ck_assert_int_eq(ad_tape_record_begin(fork_), AD_OK);
    const ad_real leaf = ad_real_leaf(fork_, 1);
    ck_assert_uint_eq(leaf.index, 0);
    check_error(fork_, AD_ERROR_STATE, "leaf: a fork has no leaves: make them on its parent");
    ad_leaf(fork_, AD_F64, 0, NULL, &g);
    check_error(fork_, AD_ERROR_STATE, "leaf: a fork has no leaves: make them on its parent");
    ck_assert_int_eq(ad_real_backward(fork_, y), AD_ERROR_STATE);
    check_error(fork_, AD_ERROR_STATE,
                "real_backward: a fork is swept with its parent: ad_tape_join comes first");
    ck_assert_int_eq(ad_real_backward_seeds(fork_, 1, &y, &x.value), AD_ERROR_STATE);
    check_error(fork_, AD_ERROR_STATE, "real_backward_seeds: a fork is swept");
    ck_assert_int_eq(ad_real_jacobian(fork_, 1, &y, 1, &x, &g), AD_ERROR_STATE);
    check_error(fork_, AD_ERROR_STATE, "real_jacobian: a fork is swept");
    ck_assert_int_eq(ad_real_gradients(fork_, 1, &x, &g), AD_ERROR_STATE);
    check_error(fork_, AD_ERROR_STATE, "real_gradient: a fork is swept");
    ck_assert_int_eq(ad_tape_record_end(fork_), AD_OK);
    check_joins();
}

TEST(what_failed_on_the_fork_is_told_by_the_join)
{
    ad_real never = {1, 77, 77};
    ck_assert_int_eq(ad_tape_record_begin(fork_), AD_OK);
    ad_set(&y, ad_real_square(x));
    const ad_real good = y;
    ad_real bad;
    ad_set(&bad, ad_real_sin(never));
    ck_assert_int_eq(ad_tape_record_end(fork_), AD_OK);
    ad_real both[2] = {good, bad};
    ck_assert_int_eq(ad_tape_join(tape, fork_, 2, both), AD_ERROR_HANDLE);
    check_error(tape, AD_ERROR_HANDLE,
                "tape_join: on the fork: statement: an operand was never set, or its tape");
    check_poisoned(both[0]);
    check_poisoned(both[1]);
    check_gone();
}

TEST(results_must_be_the_forks)
{
    ad_real later, dropped;
    record();
    ad_set(&later, ad_real_square(x));
    ck_assert_int_eq(ad_tape_record_begin(fork_), AD_OK);
    const ad_mark mark = ad_tape_mark(fork_);
    ad_set(&dropped, ad_real_square(y));
    ck_assert_int_eq(ad_tape_rewind(fork_, mark), AD_OK);
    ck_assert_int_eq(ad_tape_record_end(fork_), AD_OK);
    ad_real both[2] = {y, dropped};
    ck_assert_int_eq(ad_tape_join(tape, fork_, 2, both), AD_ERROR_HANDLE);
    check_error(tape, AD_ERROR_HANDLE, "tape_join: y[1] is no value of the fork: it was dropped");
    check_poisoned(both[0]);
    check_poisoned(both[1]);
    check_gone();
    ck_assert_int_eq(ad_tape_fork(tape, 1, &fork_), AD_OK);
    ad_set(&later, ad_real_square(x));
    ck_assert_int_eq(ad_tape_join(tape, fork_, 1, &later), AD_ERROR_HANDLE);
    check_error(tape, AD_ERROR_HANDLE, "tape_join: y[0] is no value of the fork");
}

TEST(a_parent_that_was_rewound_behind_the_fork_has_no_place_for_it)
{
    const ad_mark mark = ad_tape_mark(tape);
    ad_real z;
    ad_set(&z, ad_real_square(x));
    record(); /* forked before z: stands */
    ad_tape late[2];
    ck_assert_int_eq(ad_tape_fork(tape, 2, late), AD_OK);
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    check_joins();
    ad_set(&z, ad_real_exp(x));
    ad_set(&z, ad_real_exp(x));
    ck_assert_int_eq(ad_tape_record_begin(late[0]), AD_OK);
    ad_set(&z, ad_real_exp(x)); /* the fork cannot know */
    ck_assert_int_eq(ad_tape_record_end(late[0]), AD_OK);
    ck_assert_int_eq(ad_tape_join(tape, late[0], 1, &z), AD_ERROR_STATE);
    check_error(tape, AD_ERROR_STATE,
                ") has dropped what was on the tape at the fork; the call is at ");
    ck_assert_uint_eq(z.index, 0);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ad_real_leaves(tape, 1, &z.value, &x);
    ck_assert_int_eq(ad_tape_join(tape, late[1], 0, NULL), AD_ERROR_STATE);
    check_error(tape, AD_ERROR_STATE, "tape_join: a reset or a rewind (the newest is at ");
}

TEST(a_failed_parent_takes_no_join_but_the_forks_memory)
{
    ad_real never = {1, 77, 77}, z;
    record();
    ad_set(&z, ad_real_sin(never));
    ck_assert_int_eq(ad_tape_join(tape, fork_, 1, &y), AD_ERROR_HANDLE);
    ad_tape none = {1, 1};
    ck_assert_int_eq(ad_tape_fork(tape, 1, &none), AD_ERROR_HANDLE);
    ck_assert_uint_eq(none.slot, 0);
    check_error(tape, AD_ERROR_HANDLE, "statement: an operand was never set");
    ck_assert_uint_eq(y.index, 0);
    check_gone();
}

static void *destroy(void *fork)
{
    ad_tape_destroy(*(ad_tape *)fork);
    return NULL;
}

TEST(parent_and_forks_are_destroyed_in_any_order_by_any_thread)
{
    ad_tape parent, part[4];
    pthread_t thread;
    ad_real p, z;
    ck_assert_int_eq(ad_tape_create(&parent, &small), AD_OK);
    ck_assert_int_eq(ad_tape_record_begin(parent), AD_OK);
    p = ad_real_leaf(parent, 3);
    ck_assert_int_eq(ad_tape_fork(parent, 4, part), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(part[0]), AD_OK);
    ck_assert_int_eq(pthread_create(&thread, NULL, destroy, &part[1]), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(ad_tape_destroy(part[1]), AD_ERROR_HANDLE);
    check_error((ad_tape){0, 0}, AD_ERROR_HANDLE, "tape_destroy");
    ck_assert_int_eq(ad_tape_record_begin(part[2]), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(parent), AD_OK); /* recorded on beneath */
    ad_set(&z, ad_real_square(p));
    ck_assert_uint_ne(z.index, 0);
    ck_assert_int_eq(ad_tape_record_end(part[2]), AD_OK);
    ck_assert_int_eq(ad_tape_join(parent, part[2], 1, &z), AD_ERROR_HANDLE);
    check_error((ad_tape){0, 0}, AD_ERROR_HANDLE, "tape_join: the tape was destroyed");
    ck_assert_int_eq(ad_tape_destroy(part[2]), AD_OK);
    ck_assert_int_eq(ad_tape_record_begin(part[3]), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(part[3]), AD_OK);
    record();
    check_joins();
}

RUN_TESTS(setup, teardown)
