/* test_real_fork_team.c: teams of threads as plain C has them: forks that are joined whole, copied
 * or as they are, and values that are found again by the fork's index and tag. */
#include <tapescope/ad_plain.h>

#include "run_cases.h"

#include <check.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

enum { THREADS = 4 };

static ad_tape tape;
static ad_real x[2];
static struct ad_plain_team_ *team;
static pthread_barrier_t barrier;

/* What a thread has left in memory. */
static struct left {
    ad_real y, copy, more;
    double sum;
} left[THREADS];
static ad_real total;
static int64_t statements; /* of each thread */
static int64_t rounds;     /* of what the first publishes */
static double swept[2];    /* by earlier sweeps */

static void setup(void)
{
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    ck_assert_int_eq(ad_real_leaves(tape, 2, (double[]){0.5, 2}, x), AD_OK);
    pthread_barrier_init(&barrier, NULL, THREADS);
    memset(left, 0, sizeof left);
    memset(swept, 0, sizeof swept);
    statements = 1;
    rounds = 50;
}

static void teardown(void)
{
    pthread_barrier_destroy(&barrier);
    ad_tape_destroy(tape);
}

/* A value as code finds it in memory: moved to where it is on the thread's tape. */
static ad_real found(ad_real y)
{
    ck_assert_int_eq(ad_plain_place_(&y.index, &y.tag), AD_PLAIN_STANDS_);
    return y;
}

/* A copy that the thread has written: with its own newest tag. */
static ad_real written(ad_real y)
{
    y.tag = (uint32_t)(ad_statement_cursor_.result >> 32);
    return y;
}

static void run(void *(*f)(void *))
{
    pthread_t id[THREADS];
    team = ad_plain_team_begin_(true, 0);
    ck_assert_ptr_nonnull(team);
    for (uintptr_t k = 0; k < THREADS; k++)
        pthread_create(&id[k], NULL, f, (void *)k);
    for (int k = 0; k < THREADS; k++)
        pthread_join(id[k], NULL);
    ad_plain_team_end_(team);
    ck_assert_int_eq(ad_tape_status(tape), AD_OK);
}

static void check_gradient(ad_real y, double first, double second)
{
    double g[2];
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_int_eq(ad_real_gradients(tape, 2, x, g), AD_OK);
    ck_assert_double_eq_tol(g[0] - swept[0], first, 1e-12);
    ck_assert_double_eq_tol(g[1] - swept[1], second, 1e-12);
    memcpy(swept, g, sizeof swept);
}

static void *compute(void *number)
{
    const unsigned k = (unsigned)(uintptr_t)number;
    struct ad_plain_member_ *m = ad_plain_member_make_(team, k, THREADS);
    ad_plain_member_begin_(m);
    left[k].copy = written(x[1]);
    ad_set(&left[k].y, ad_real_mul(x[0], k + 1));
    for (int64_t i = 1; i < statements; i++)
        ad_set(&left[k].y, ad_real_add(left[k].y, 0 * i));
    ad_plain_member_end_(m);
    return NULL;
}

static void check_computed(void)
{
    ad_real y = ad_real_of(0);
    run(compute);
    for (int k = 0; k < THREADS; k++)
        ad_set(&y, ad_real_add(y, ad_real_mul(found(left[k].y), found(left[k].copy))));
    check_gradient(y, 10 * 2, 10 * 0.5);
}

TEST(little_is_copied_to_the_tape)
{
    check_computed();
    check_computed();
}

TEST(much_stays_a_fork)
{
    ad_stats before, after;
    statements = 10000;
    ck_assert_int_eq(ad_tape_stats(tape, &before), AD_OK);
    check_computed();
    ck_assert_int_eq(ad_tape_stats(tape, &after), AD_OK);
    ck_assert_uint_ge(after.statements - before.statements, (uint64_t)(THREADS * statements));
    check_computed();
}

/* Each reads what its neighbour has computed before the barrier. The first waits until the others
   are members: thread sanitizer would see it read the team without its lock. */
static void *meet(void *number)
{
    const unsigned k = (unsigned)(uintptr_t)number;
    const struct timespec late = {0, 20000000};
    struct ad_plain_member_ *m = ad_plain_member_make_(team, k, THREADS);
    ad_plain_member_begin_(m);
    if (k == 0)
        nanosleep(&late, NULL);
    ad_set(&left[k].y, ad_real_mul(x[0], k + 1));
    ck_assert(ad_plain_meet_begin_(THREADS));
    pthread_barrier_wait(&barrier);
    ad_plain_meet_end_();
    ad_set(&left[k].more, ad_real_mul(found(left[(k + 1) % THREADS].y), found(left[k].y)));
    ck_assert(ad_plain_meet_begin_(THREADS));
    pthread_barrier_wait(&barrier);
    ad_plain_meet_end_();
    ck_assert(ad_plain_turn_begin_(THREADS));
    ad_set(&total, ad_real_add(k > 0 ? found(total) : ad_real_of(0), found(left[k].more)));
    ck_assert(ad_plain_turn_end_());
    ad_plain_member_end_(m);
    return NULL;
}

TEST(threads_that_meet_read_what_others_have_computed)
{
    for (int k = 0; k < 3; k++) {
        run(meet);
        /* 2 + 6 + 12 + 4 times the square */
        check_gradient(found(total), 24 * 2 * 0.5, 0);
    }
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *publish(void *number)
{
    const unsigned k = (unsigned)(uintptr_t)number;
    struct ad_plain_member_ *m = ad_plain_member_make_(team, k, THREADS);
    ad_plain_member_begin_(m);
    for (int64_t i = 0; i < (k == 0 ? rounds : 50); i++) {
        pthread_mutex_lock(&lock);
        ad_plain_publish_();
        const ad_real before = found(total);
        ad_set(&total, ad_real_add(before, ad_real_mul(x[0], k + 1)));
        ad_plain_publish_();
        pthread_mutex_unlock(&lock);
    }
    ad_plain_member_end_(m);
    return NULL;
}

TEST(what_is_published_is_read_by_the_next)
{
    total = x[1];
    run(publish);
    check_gradient(found(total), 50 * 10, 1);
}

/* A slot's tags come again after 65535, where each publication takes one: another slot is taken. */
TEST(there_may_be_more_publications_than_tags)
{
    rounds = 70000;
    total = x[1];
    run(publish);
    check_gradient(found(total), 70000 + 50 * (2 + 3 + 4), 1);
}

/* Without a barrier or lock a value of another thread is none. */
static void *look_early(void *number)
{
    const unsigned k = (unsigned)(uintptr_t)number;
    struct ad_plain_member_ *m = ad_plain_member_make_(team, k, THREADS);
    ad_plain_member_begin_(m);
    ad_set(&left[k].y, ad_real_mul(x[0], k + 1));
    pthread_barrier_wait(&barrier);
    ad_real other = left[(k + 1) % THREADS].y;
    ck_assert_int_eq(ad_plain_place_(&other.index, &other.tag), AD_PLAIN_ELSEWHERE_);
    pthread_barrier_wait(&barrier);
    ad_plain_member_end_(m);
    return NULL;
}

TEST(a_value_of_a_fork_that_is_recorded_on_is_elsewhere)
{
    run(look_early);
}

TEST(a_rewind_drops_what_threads_have_computed)
{
    const ad_mark mark = ad_tape_mark(tape);
    run(compute);
    found(left[1].y);
    found(left[1].copy);
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    ad_real y = left[1].y;
    ck_assert_int_eq(ad_plain_place_(&y.index, &y.tag), AD_PLAIN_DROPPED_);
    check_computed();
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    y = left[2].y;
    ck_assert_int_eq(ad_plain_place_(&y.index, &y.tag), AD_PLAIN_DROPPED_);
}

TEST(a_section_takes_no_threads)
{
    ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
    ck_assert_ptr_null(ad_plain_team_begin_(true, 0));
    ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_STATE);
}

/* How a value stands for a thread that records on no tape. */
static void *standing_of(void *payload)
{
    ad_real y = *(ad_real *)payload;
    return (void *)(uintptr_t)ad_plain_place_(&y.index, &y.tag);
}

static enum ad_plain_standing_ standing_elsewhere(ad_real y)
{
    pthread_t thread;
    void *is;
    ck_assert_int_eq(pthread_create(&thread, NULL, standing_of, &y), 0);
    ck_assert_int_eq(pthread_join(thread, &is), 0);
    return (enum ad_plain_standing_)(uintptr_t)is;
}

/* What was there before the tape began anew is a constant for all; what can be on the tape is not,
 * however often it was rewound since: tags come again after 65535. */
TEST(a_thread_without_a_tape_knows_what_a_reset_has_dropped)
{
    const ad_real old = x[0];
    ck_assert_int_eq(standing_elsewhere(old), AD_PLAIN_ELSEWHERE_);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ck_assert_int_eq(standing_elsewhere(old), AD_PLAIN_DROPPED_);
    ck_assert_int_eq(ad_real_leaves(tape, 2, (double[]){0.5, 2}, x), AD_OK);
    ck_assert_int_eq(standing_elsewhere(old), AD_PLAIN_DROPPED_);
    for (int round = 0; round < 70000; round++) {
        const ad_mark mark = ad_tape_mark(tape);
        const ad_real y = ad_real_of(ad_real_mul(x[0], 2));
        if (round % 10000 == 0)
            ck_assert_int_eq(standing_elsewhere(y), AD_PLAIN_ELSEWHERE_);
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
        if (round % 10000 == 0)
            ck_assert_int_eq(standing_elsewhere(x[1]), AD_PLAIN_ELSEWHERE_);
    }
    ck_assert_int_eq(standing_elsewhere(x[0]), AD_PLAIN_ELSEWHERE_);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ck_assert_int_eq(standing_elsewhere(x[0]), AD_PLAIN_DROPPED_);
    ck_assert_int_eq(ad_real_leaves(tape, 2, (double[]){0.5, 2}, x), AD_OK);
    const ad_real destroyed = x[0];
    ad_tape_destroy(tape);
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK); /* with the same slot */
    ck_assert_int_eq(standing_elsewhere(destroyed), AD_PLAIN_DROPPED_);
    ck_assert_int_eq(ad_real_leaves(tape, 2, (double[]){0.5, 2}, x), AD_OK);
    ck_assert_int_eq(x[0].tag >> 16, destroyed.tag >> 16);
    ck_assert_int_eq(standing_elsewhere(destroyed), AD_PLAIN_DROPPED_);
    ck_assert_int_eq(standing_elsewhere(x[0]), AD_PLAIN_ELSEWHERE_);
}

RUN_TESTS(setup, teardown)
