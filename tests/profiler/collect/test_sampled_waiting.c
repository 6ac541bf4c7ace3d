/* test_sampled_waiting.c: what threads wait for that are sampled, and who was on a processor before
 * they did.
 */
#include "analyze_tree.h"
#include "report_tree.h"
#include "run_cases.h"
#include "sampled_support.h"

#include <check.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Threads that wait for one thing alone, from before samples are taken until the end. */
enum { WAITING = 3 };

static int ends[2];
static sem_t never;
static bool stop;                /* atomic */
static uint64_t waiter[WAITING]; /* atomic; their numbers, once they have nothing else to do */

static void *for_input(void *payload)
{
    char byte;
    __atomic_store_n((uint64_t *)payload, sampled_tid(), __ATOMIC_RELEASE);
    while (read(ends[0], &byte, 1) < 0) {
    }
    return NULL;
}

static void *for_a_lock(void *payload)
{
    __atomic_store_n((uint64_t *)payload, sampled_tid(), __ATOMIC_RELEASE);
    while (sem_wait(&never) != 0) {
    }
    return NULL;
}

static void *asleep(void *payload)
{
    const struct timespec ms = {.tv_nsec = 1000000};
    __atomic_store_n((uint64_t *)payload, sampled_tid(), __ATOMIC_RELEASE);
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
        nanosleep(&ms, NULL);
    return NULL;
}

static uint64_t tid_of(const struct read_profile *profile, const struct read_sample *sample)
{
    for (size_t i = 0; i < profile->n_threads; i++)
        if (profile->thread[i].index == sample->thread)
            return profile->thread[i].tid;
    return 0;
}

/* How long a thread is said to have waited like that. */
static uint64_t waited(const struct read_profile *profile, uint64_t tid, int kind)
{
    uint64_t ns = 0;
    for (size_t i = 0; i < profile->n_samples; i++) {
        const struct read_sample *sample = &profile->sample[i];
        ns += (int)sample->waiting == kind && tid_of(profile, sample) == tid ? sample->wall_ns : 0;
    }
    return ns;
}

static bool all_have_waited(const struct read_profile *profile)
{
    bool all = true;
    for (int i = 0; i < WAITING; i++)
        all = all && waited(profile, waiter[i], READ_WAITING_INPUT_OUTPUT + i) > 0;
    return all;
}

TEST(input_locks_and_sleep_are_told_apart)
{
    static void *(*const what[WAITING])(void *) = {for_input, for_a_lock, asleep};
    pthread_t thread[WAITING];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(sem_init(&never, 0, 0), 0);
    for (int i = 0; i < WAITING; i++) {
        ck_assert_int_eq(pthread_create(&thread[i], NULL, what[i], &waiter[i]), 0);
        while (__atomic_load_n(&waiter[i], __ATOMIC_ACQUIRE) == 0) {
        }
    }
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,freq=1000"), AD_OK);
    sampled_compute_until(all_have_waited);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    ck_assert_int_eq(sem_post(&never), 0);
    ck_assert_int_eq(write(ends[1], "", 1), 1);
    for (int i = 0; i < WAITING; i++)
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    close(ends[0]);
    close(ends[1]);
    struct read_profile *profile = sampled_read(sampled_path);
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    const struct analyze_cost *sum = &analysis->sum;
    for (int i = 0; i < WAITING; i++)
        for (int kind = READ_WAITING_INPUT_OUTPUT; kind <= READ_WAITING_BLAS; kind++) {
            const uint64_t ns = waited(profile, waiter[i], kind);
            ck_assert_msg((ns > 0) == (kind == READ_WAITING_INPUT_OUTPUT + i),
                          "thread %d has waited %llu ns like %d", i, (unsigned long long)ns, kind);
        }
    ck_assert_uint_ge(sum->waiting_ns, sum->waiting_io_ns + sum->waiting_lock_ns);
    uint64_t waiting = 0;
    for (size_t i = 0; i < analysis->n_lines; i++)
        waiting += analysis->line[i].cost.waiting_ns;
    ck_assert_uint_eq(waiting, sum->waiting_ns);
    analyze_free(analysis);
    read_profile_free(profile);
}

static volatile double sink;

__attribute__((noinline)) static void work(void)
{
    for (int i = 0; i < 100000; i++)
        sink = sink * 0.5 + i;
}

/* Works and sleeps in turn, and asks nothing else of the system. */
static void *work_and_sleep(void *payload)
{
    const struct timespec ms = {.tv_nsec = 1000000};
    __atomic_store_n((uint64_t *)payload, sampled_tid(), __ATOMIC_RELEASE);
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        work();
        nanosleep(&ms, NULL);
    }
    return NULL;
}

static uint64_t clock_of(pthread_t thread)
{
    clockid_t id;
    struct timespec t;
    ck_assert_int_eq(pthread_getcpuclockid(thread, &id), 0);
    ck_assert_int_eq(clock_gettime(id, &t), 0);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* Samples that found the worker asleep, or at work. */
static uint64_t found(const struct read_profile *profile, bool is_asleep)
{
    uint64_t n = 0;
    for (size_t i = 0; i < profile->n_samples; i++) {
        const struct read_sample *sample = &profile->sample[i];
        if ((sample->waiting != READ_WAITING_NONE) == is_asleep &&
            tid_of(profile, sample) == waiter[0])
            n += sample->count;
    }
    return n;
}

static uint64_t at_work; /* the samples of which there must be more */

static bool is_found(const struct read_profile *profile)
{
    return found(profile, true) > 0 && found(profile, false) > at_work;
}

/* The standard error of the time is that of the samples which have it: who sleeps adds nothing to
 * what is known. */
static void check_error(const struct read_profile *profile)
{
    uint64_t with_time = 0;
    for (size_t i = 0; i < profile->n_samples; i++)
        with_time += profile->sample[i].working;
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    ck_assert_ptr_nonnull(analysis);
    const struct analyze_cost *sum = &analysis->sum;
    const double all = (double)analyze_cost_time(sum);
    ck_assert_uint_eq(sum->cpu_samples, with_time);
    ck_assert_uint_lt(with_time, sum->samples);
    ck_assert_double_eq_tol(analyze_cost_error(sum, analyze_cost_time(sum)),
                            all / sqrt((double)with_time), all * 1e-9);
    analyze_free(analysis);
}

/* The work, not the sleep, is on a processor: no time of it is missed. */
TEST(work_between_sleeps_has_the_processor_time)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, work_and_sleep, &waiter[0]), 0);
    while (__atomic_load_n(&waiter[0], __ATOMIC_ACQUIRE) == 0) {
    }
    const uint64_t before = clock_of(thread);
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,freq=250"), AD_OK);
    const uint64_t begin = clock_of(thread);
    sampled_compute_until(is_found);
    const uint64_t end = clock_of(thread);
    struct read_profile *profile = sampled_fetch();
    at_work = found(profile, false) + 1; /* one may have been under way before the end */
    read_profile_free(profile);
    sampled_compute_until(is_found);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    const uint64_t after = clock_of(thread);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    profile = sampled_read(sampled_path);
    uint64_t asleep_ns = 0;
    for (size_t i = 0; i < profile->n_samples; i++)
        if (profile->sample[i].waiting != READ_WAITING_NONE &&
            tid_of(profile, &profile->sample[i]) == waiter[0])
            asleep_ns += profile->sample[i].cpu_ns;
    ck_assert_uint_eq(asleep_ns, 0);
    ck_assert_uint_ge(sampled_held(profile, waiter[0]), end - begin);
    ck_assert_uint_le(sampled_held(profile, waiter[0]), after - before);
    check_error(profile);
    read_profile_free(profile);
}

static char *text;
static size_t length;

static void print(struct analyze_result *analysis, bool as_tree)
{
    free(text);
    text = NULL;
    struct report_style style = {.width = 80};
    style.out = open_memstream(&text, &length);
    if (as_tree) {
        const struct analyze_tree_options how = {.combine = true};
        const struct report_tree_options look = {.max_depth = 0};
        struct analyze_tree *tree = analyze_tree_make(analysis, &how);
        ck_assert_ptr_nonnull(tree);
        ck_assert_mem_eq(&tree->node[0].all, &analysis->sum, sizeof analysis->sum);
        report_tree(tree, &look, &style);
        analyze_tree_free(tree);
    } else {
        report_top(analysis, ANALYZE_BY_FUNCTION, REPORT_SORT_TOTAL, 10, &style);
    }
    fclose(style.out);
}

static bool has_own_code(const struct read_profile *profile)
{
    for (size_t i = 0; i < profile->n_samples; i++)
        if (profile->sample[i].phase == READ_PHASE_NONE && profile->sample[i].cpu_ns > 0)
            return true;
    return false;
}

/* As if the program's own code had been such threads. */
TEST(threads_of_the_product_library_without_work_have_a_row)
{
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,freq=1000"), AD_OK);
    sampled_compute_until(has_own_code);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    struct read_profile *profile = sampled_read(sampled_path);
    uint64_t idle_ns = 0, found = 0;
    for (size_t i = 0; i < profile->n_samples; i++)
        if (profile->sample[i].phase == READ_PHASE_NONE) {
            profile->sample[i].waiting = READ_WAITING_BLAS;
            idle_ns += profile->sample[i].cpu_ns;
        }
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    for (size_t i = 0; i < analysis->n_lines; i++) {
        ck_assert(analysis->line[i].idle || analysis->line[i].cost.other_ns == 0);
        found += analysis->line[i].idle;
        if (analysis->line[i].idle)
            ck_assert_uint_eq(analysis->line[i].cost.other_ns, idle_ns);
    }
    ck_assert_uint_eq(found, 1);
    print(analysis, false);
    ck_assert_ptr_nonnull(strstr(text, "(idle BLAS threads)"));
    ck_assert_ptr_null(strstr(text, "? "));
    print(analysis, true);
    ck_assert_ptr_nonnull(strstr(text, "(idle BLAS threads)"));
    free(text);
    analyze_free(analysis);
    read_profile_free(profile);
}

RUN_TESTS(sampled_setup, sampled_teardown)
