/* test_thread_pool.c: the number of threads, the pool of large loops, and what does not depend on
 * either.
 */
#include "gemm.h"
#include "run_cases.h"
#include "sanitizers.h"
#include "threads.h"

#include <tapescope/ad.h>

#include <cblas.h>
#include <check.h>
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ThreadSanitizer knows neither what orders OpenBLAS' threads nor threads in the child of a fork;
 * neither sanitizer can do without address space. */
enum { BY_THREAD_SANITIZER = SANITIZED_THREAD, BY_ADDRESS_SANITIZER = SANITIZED_ADDRESS };

enum { LARGE = (1 << 17) + 37, PARTS = 7, USERS = 4, ROUNDS = 50, LOOKS = 60000 };

static void check_ok(ad_status status)
{
    ck_assert_msg(status == AD_OK, "%s", ad_tape_message((ad_tape){0, 0}));
}

START_TEST(the_number_of_threads_is_what_was_asked_for)
{
    ck_assert_int_ge(ad_threads(), 1);
    for (int n = 3; n >= 1; n--) {
        check_ok(ad_set_threads(n));
        ck_assert_int_eq(ad_threads(), n);
    }
    check_ok(ad_set_threads(2));
    static const int wrong[] = {0, -1, 65};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(ad_set_threads(wrong[i]), AD_ERROR_ARGUMENT);
        const char *message = ad_tape_message((ad_tape){0, 0});
        ck_assert_msg(strstr(message, "set_threads: ") &&
                          strstr(message, " threads, from 1 to 64 are possible at "),
                      "%s", message);
        ck_assert_int_eq(ad_threads(), 2);
    }
}
END_TEST

/* ---- the pool ---- */

struct count {
    int parts, done[THREADS_MOST_PARTS];
};

static void count_part(void *job, int part, int parts)
{
    struct count *c = job;
    ck_assert_int_eq(parts, c->parts);
    __atomic_add_fetch(&c->done[part], 1, __ATOMIC_RELAXED);
}

/* Not by ad_set_threads: OpenBLAS keeps its number. */
static void let_loops_have(int threads)
{
    threads_ask(threads);
}

static bool each_part_once(int parts)
{
    struct count c = {.parts = parts};
    threads_run(parts, count_part, &c);
    for (int i = 0; i < THREADS_MOST_PARTS; i++)
        if (c.done[i] != (i < parts))
            return false;
    return true;
}

static const int numbers_of_threads[] = {1, 2, 3, 5, KERNEL_MAX_THREADS};
enum { NUMBERS = sizeof numbers_of_threads / sizeof *numbers_of_threads };

/* Fewer parts than threads, as many, and more. */
START_TEST(every_part_runs_once)
{
    for (int k = 0; k < 2 * NUMBERS; k++) {
        let_loops_have(numbers_of_threads[k < NUMBERS ? k : 2 * NUMBERS - 1 - k]);
        for (int i = 0; i < ROUNDS; i++) {
            for (int parts = 1; parts <= PARTS; parts++)
                ck_assert(each_part_once(parts));
            ck_assert(each_part_once(THREADS_MOST_PARTS));
        }
    }
}
END_TEST

struct caller {
    pthread_t thread;
    int alone;
};

static void caller_part(void *job, int part, int parts)
{
    (void)part, (void)parts;
    struct caller *c = job;
    __atomic_add_fetch(&c->alone, pthread_equal(c->thread, pthread_self()) != 0, __ATOMIC_RELAXED);
}

START_TEST(one_thread_runs_all_parts_itself)
{
    struct caller c = {.thread = pthread_self()};
    let_loops_have(3);
    ck_assert(each_part_once(3));
    let_loops_have(1);
    threads_run(PARTS, caller_part, &c);
    ck_assert_int_eq(c.alone, PARTS);
}
END_TEST

/* Whether all threads but the calling one sleep in the kernel, as /proc says. */
static bool others_sleep(void)
{
    DIR *tasks = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(tasks);
    bool asleep = true;
    for (struct dirent *d; (d = readdir(tasks)) != NULL;) {
        char path[300], text[512] = "";
        if (d->d_name[0] == '.' || atoi(d->d_name) == gettid())
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", d->d_name);
        FILE *f = fopen(path, "r");
        const char *state = f && fgets(text, sizeof text, f) ? strrchr(text, ')') : NULL;
        asleep = asleep && state && state[2] == 'S';
        if (f)
            fclose(f);
    }
    closedir(tasks);
    return asleep;
}

/* Whoever looked for a loop without an end would be seen running each time. */
START_TEST(threads_sleep_behind_a_loop)
{
    for (int k = 1; k < NUMBERS; k++) {
        let_loops_have(numbers_of_threads[k]);
        ck_assert(each_part_once(THREADS_MOST_PARTS));
        int looks = 0;
        for (; looks < LOOKS && !others_sleep(); looks++)
            usleep(1000);
        ck_assert_int_lt(looks, LOOKS);
        ck_assert(each_part_once(THREADS_MOST_PARTS));
    }
}
END_TEST

static void meet_part(void *all, int part, int parts)
{
    (void)part, (void)parts;
    pthread_barrier_wait(all);
}

/* Each part waits for the others: one thread alone would never end. */
START_TEST(parts_run_at_the_same_time)
{
    pthread_barrier_t all;
    ck_assert_int_eq(pthread_barrier_init(&all, NULL, 4), 0);
    let_loops_have(7);
    ck_assert(each_part_once(7));
    let_loops_have(4);
    for (int i = 0; i < ROUNDS; i++)
        threads_run(4, meet_part, &all);
    ck_assert_int_eq(pthread_barrier_destroy(&all), 0);
}
END_TEST

/* The processors that this process may use are 1 to `n` of those that it could. False: fewer. */
static bool processors_use(int n, const cpu_set_t *could)
{
    cpu_set_t some;
    int left = n;
    CPU_ZERO(&some);
    for (size_t i = 0; i < CPU_SETSIZE && left > 0; i++)
        if (CPU_ISSET(i, could)) {
            CPU_SET(i, &some);
            left--;
        }
    ck_assert_int_eq(sched_setaffinity(0, sizeof some, &some), 0);
    return left == 0;
}

/* Every thread has a part of each loop, since parts wait for each other. */
static uint64_t spins_of_loops(int threads)
{
    pthread_barrier_t all;
    ck_assert_int_eq(pthread_barrier_init(&all, NULL, (unsigned)threads), 0);
    let_loops_have(threads);
    threads_run(threads, meet_part, &all);
    for (int looks = 0; looks < LOOKS && !others_sleep(); looks++)
        usleep(1000); /* whoever still looks from the loop before has been counted */
    const uint64_t before = threads_spins();
    for (int i = 0; i < ROUNDS; i++)
        threads_run(threads, meet_part, &all);
    ck_assert_int_eq(pthread_barrier_destroy(&all), 0);
    return threads_spins() - before;
}

START_TEST(nobody_spins_where_there_are_fewer_processors_than_threads)
{
    cpu_set_t could;
    ck_assert_int_eq(sched_getaffinity(0, sizeof could, &could), 0);
    (void)processors_use(1, &could);
    ck_assert_uint_eq(spins_of_loops(2), 0);
    ck_assert_uint_eq(spins_of_loops(5), 0);
    if (processors_use(2, &could)) {
        ck_assert_uint_gt(spins_of_loops(2), 0);
        ck_assert_uint_eq(spins_of_loops(3), 0);
    }
    ck_assert_int_eq(sched_setaffinity(0, sizeof could, &could), 0);
    let_loops_have(1);
}
END_TEST

static void *use_pool(void *wrong)
{
    for (int i = 0; i < ROUNDS; i++)
        if (!each_part_once(2 + i % PARTS))
            __atomic_add_fetch((int *)wrong, 1, __ATOMIC_RELAXED);
    return NULL;
}

START_TEST(several_threads_may_use_the_pool_at_once)
{
    pthread_t user[USERS];
    int wrong = 0;
    let_loops_have(PARTS);
    for (int i = 0; i < USERS; i++)
        ck_assert_int_eq(pthread_create(&user[i], NULL, use_pool, &wrong), 0);
    for (int i = 0; i < USERS; i++)
        ck_assert_int_eq(pthread_join(user[i], NULL), 0);
    ck_assert_int_eq(wrong, 0);
}
END_TEST

static void run_within(void *job, int part, int parts)
{
    (void)part, (void)parts;
    if (!each_part_once(3))
        __atomic_add_fetch((int *)job, 1, __ATOMIC_RELAXED);
}

START_TEST(a_loop_within_a_part_runs_alone)
{
    int wrong = 0;
    let_loops_have(4);
    threads_run(4, run_within, &wrong);
    ck_assert_int_eq(wrong, 0);
}
END_TEST

START_TEST(the_child_of_a_fork_makes_threads_of_its_own)
{
    let_loops_have(PARTS);
    ck_assert(each_part_once(3));
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        _exit(each_part_once(3) && each_part_once(PARTS) ? 7 : 8);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 7);
    ck_assert(each_part_once(3));
}
END_TEST

START_TEST(where_no_thread_can_be_made_the_caller_does_it_all)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        let_loops_have(PARTS);
        /* No address space for a stack. */
        struct rlimit none = {1 << 20, 1 << 20};
        const int before = ad_threads();
        if (setrlimit(RLIMIT_AS, &none) != 0)
            _exit(9);
        if (!each_part_once(3))
            _exit(8);
        if (ad_set_threads(64) != AD_ERROR_MEMORY || ad_threads() != before ||
            !strstr(ad_tape_message((ad_tape){0, 0}), "set_threads: no memory for OpenBLAS: "))
            _exit(10);
        _exit(7);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 7);
}
END_TEST

static void parts_within(void *most, int part, int parts)
{
    (void)part, (void)parts;
    const int found = threads_parts(UINT64_MAX);
    if (found > 1)
        __atomic_store_n((int *)most, found, __ATOMIC_RELAXED);
}

/* By what they cost: a part is worth 5 us, and threads have the same number of them. */
START_TEST(loops_are_divided_by_what_they_cost)
{
    static const struct {
        int threads;
        uint64_t ns;
        int parts;
    } rows[] = {
        {3, 0, 1},           {3, 9999, 1},
        {3, 10000, 2},       {3, 15000, 3},
        {3, 29999, 3},       {3, 30000, 6},
        {3, UINT64_MAX, 12}, {64, 50000, 10},
        {64, 1000000, 192},  {64, UINT64_MAX, THREADS_MOST_PARTS},
        {1, UINT64_MAX, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        let_loops_have(rows[i].threads);
        ck_assert_int_eq(threads_parts(rows[i].ns), rows[i].parts);
    }
    /* Sines cost more than sums, and both more than copies. */
    ck_assert_uint_lt(threads_ns(1 << 20, 2, 1), threads_ns(1 << 20, 3, 1));
    ck_assert_uint_lt(threads_ns(1 << 20, 3, 1), threads_ns(1 << 20, 2, 18));
    int most = 1;
    let_loops_have(4);
    threads_run(4, parts_within, &most);
    ck_assert_int_eq(most, 1);
}
END_TEST

START_TEST(products_are_shared_only_where_that_is_worth_waking_threads)
{
    static const int64_t alone[][3] = {{64, 128, 128}, {128, 256, 255}};
    check_ok(ad_set_threads(2));
    for (int i = 0; i < 2; i++) {
        const int before = gemm_threads_limit(alone[i][0], alone[i][1], alone[i][2]);
        ck_assert_int_eq(before, 2);
        ck_assert_int_eq(openblas_get_num_threads(), 1);
        gemm_threads_restore(before);
        ck_assert_int_eq(openblas_get_num_threads(), 2);
    }
    ck_assert_int_eq(gemm_threads_limit(64, 512, 512), 0);
    ck_assert_int_eq(gemm_threads_limit(8, 8, 8), 0); /* OpenBLAS does so by itself */
    ck_assert_int_eq(openblas_get_num_threads(), 2);
    check_ok(ad_set_threads(1));
    ck_assert_int_eq(gemm_threads_limit(64, 128, 128), 0);
}
END_TEST

/* ---- results ---- */

static double data[LARGE], gradient[2][LARGE], value[2][LARGE];

/* Values and gradients of large elementwise ops, dense, accumulated and broadcast. */
static void compute(int dtype, double *y, double *g)
{
    ad_tape tape;
    const int64_t shape[1] = {LARGE};
    check_ok(ad_tape_create(&tape, NULL));
    ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data);
    ad_tensor h = dtype == AD_F32 ? ad_cast(x, AD_F32) : x;
    h = ad_add(ad_mul(ad_tanh(h), h), ad_exp(ad_neg(ad_square(h))));
    h = ad_where(ad_greater(h, ad_scale(h, 0.5)), h, ad_sin(h));
    if (dtype == AD_F32)
        h = ad_cast(h, AD_F64);
    ad_tensor loss = ad_sum(ad_mul(h, h));
    ck_assert_msg(ad_backward(loss) == AD_OK, "%s", ad_tape_message(tape));
    ck_assert_int_eq(ad_value(h, y, LARGE), AD_OK);
    ck_assert_int_eq(ad_gradient(x, g, LARGE), AD_OK);
    check_ok(ad_tape_destroy(tape));
}

START_TEST(elementwise_results_do_not_depend_on_the_number_of_threads)
{
    for (int i = 0; i < LARGE; i++)
        data[i] = (double)(i * 37LL % LARGE) / (LARGE / 8.0) - 4;
    let_loops_have(1);
    compute(_i, value[0], gradient[0]);
    for (int k = 1; k < NUMBERS; k++) {
        let_loops_have(numbers_of_threads[k]);
        compute(_i, value[1], gradient[1]);
        ck_assert_mem_eq(value[1], value[0], sizeof value[0]);
        ck_assert_mem_eq(gradient[1], gradient[0], sizeof gradient[0]);
    }
}
END_TEST

int main(void)
{
    setenv("TAPESCOPE_MODULE_DIR", TAPESCOPE_LIB_DIR "/tapescope", 1);
    TCase *tests = tcase_create("thread pool");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, every_part_runs_once);
    tcase_add_test(tests, one_thread_runs_all_parts_itself);
    tcase_add_test(tests, parts_run_at_the_same_time);
    tcase_add_test(tests, several_threads_may_use_the_pool_at_once);
    tcase_add_test(tests, a_loop_within_a_part_runs_alone);
    tcase_add_test(tests, loops_are_divided_by_what_they_cost);
    if (!BY_THREAD_SANITIZER) {
        tcase_add_test(tests, threads_sleep_behind_a_loop);
        tcase_add_test(tests, nobody_spins_where_there_are_fewer_processors_than_threads);
        tcase_add_test(tests, the_number_of_threads_is_what_was_asked_for);
        tcase_add_test(tests, the_child_of_a_fork_makes_threads_of_its_own);
        tcase_add_test(tests, products_are_shared_only_where_that_is_worth_waking_threads);
    }
    if (!BY_THREAD_SANITIZER && !BY_ADDRESS_SANITIZER)
        tcase_add_test(tests, where_no_thread_can_be_made_the_caller_does_it_all);
    tcase_add_loop_test(tests, elementwise_results_do_not_depend_on_the_number_of_threads, 0, 2);
    return run_cases("thread pool", tests);
}
