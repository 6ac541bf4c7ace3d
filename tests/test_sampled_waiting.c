/* test_sampled_waiting.c: what threads wait for that are sampled, and who was on a processor before
 * they did.
 *
 * May include: sampled_support.h, analyze_tree.h, report_tree.h, Check.
 */
#include "analyze_tree.h"
#include "report_tree.h"
#include "run_cases.h"
#include "sampled_support.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

static int ends[2];
static sem_t never;

static void until(struct timespec *end, long ns)
{
    clock_gettime(CLOCK_REALTIME, end);
    end->tv_nsec += ns;
    end->tv_sec += end->tv_nsec / 1000000000;
    end->tv_nsec %= 1000000000;
}

/* Each waits 400 ms, or longer on a busy machine. */
static void *for_input(void *payload)
{
    char byte;
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    return payload;
}

static void *for_a_lock(void *payload)
{
    struct timespec end;
    until(&end, 400000000);
    while (sem_timedwait(&never, &end) != 0 && errno == EINTR) {
    }
    return payload;
}

static void *asleep(void *payload)
{
    struct timespec left = {.tv_nsec = 400000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
    (void)!write(ends[1], "", 1);
    return payload;
}

/* Whether a thread waited like that, and not like anything else half so long: a busy machine may
 * delay signals until a wait is over, so that it has a part of its 400 ms only. */
static bool waits_alone(const struct prof_profile *profile, int kind)
{
    bool found = false;
    for (size_t t = 0; t < profile->n_threads; t++) {
        uint64_t ns[PROF_WAITING_BLAS + 1] = {0}, all = 0;
        for (size_t i = 0; i < profile->n_samples; i++) {
            const struct prof_sample *sample = &profile->sample[i];
            if (sample->thread != profile->thread[t].index || sample->waiting == PROF_WAITING_NONE)
                continue;
            ns[sample->waiting] += sample->wall_ns;
            all += sample->wall_ns;
        }
        ck_assert_uint_le(all, profile->thread[t].wall_ns);
        found = found || (ns[kind] > 50 * MS && all - ns[kind] < ns[kind] / 2);
    }
    return found;
}

START_TEST(input_locks_and_sleep_are_told_apart)
{
    static void *(*const what[])(void *) = {for_input, for_a_lock, asleep};
    pthread_t thread[3];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(sem_init(&never, 0, 0), 0);
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,freq=1000"), AD_OK);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, what[i], NULL), 0);
    sampled_compute(0.02);
    pthread_join(thread[2], NULL);
    pthread_join(thread[1], NULL);
    pthread_join(thread[0], NULL);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    close(ends[0]);
    close(ends[1]);
    struct prof_profile *profile = sampled_read(sampled_path);
    struct prof_analysis *analysis = prof_analyze(profile, NULL, NULL);
    const struct prof_cost *sum = &analysis->sum;
    /* This thread waits as well, and so do those of the library for products. */
    for (int kind = PROF_WAITING_INPUT_OUTPUT; kind <= PROF_WAITING_OTHER; kind++)
        ck_assert_msg(waits_alone(profile, kind), "no thread that waits like %d", kind);
    ck_assert_uint_ge(sum->waiting_ns, sum->waiting_io_ns + sum->waiting_lock_ns);
    uint64_t waiting = 0;
    for (size_t i = 0; i < analysis->n_lines; i++)
        waiting += analysis->line[i].cost.waiting_ns;
    ck_assert_uint_eq(waiting, sum->waiting_ns);
    prof_analysis_free(analysis);
    prof_profile_free(profile);
}
END_TEST

static volatile double sink;

/* Works 1 ms and sleeps 1 ms, in turn: the work, not the sleep, is on a processor. */
__attribute__((noinline)) static void work(void)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do {
        for (int i = 0; i < 1000; i++)
            sink = sink * 0.5 + i;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < 1000000);
}

START_TEST(work_between_sleeps_has_the_processor_time)
{
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,freq=250"), AD_OK);
    for (int i = 0; i < 300; i++) {
        const struct timespec ms = {.tv_nsec = 1000000};
        work();
        nanosleep(&ms, NULL);
    }
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    struct prof_profile *profile = sampled_read(sampled_path);
    uint64_t asleep_ns = 0, all = 0;
    for (size_t i = 0; i < profile->n_samples; i++) {
        all += profile->sample[i].cpu_ns;
        if (profile->sample[i].waiting == PROF_WAITING_OTHER)
            asleep_ns += profile->sample[i].cpu_ns;
    }
    ck_assert_uint_gt(all, 200 * MS);
    ck_assert_uint_lt(asleep_ns, all / 10);
    prof_profile_free(profile);
}
END_TEST

static char *text;
static size_t length;

static void print(struct prof_analysis *analysis, bool as_tree)
{
    free(text);
    text = NULL;
    struct report_style style = {.width = 80};
    style.out = open_memstream(&text, &length);
    if (as_tree) {
        const struct prof_tree_options how = {.combine = true};
        const struct report_tree_options look = {.max_depth = 0};
        struct prof_tree *tree = prof_tree_make(analysis, &how);
        ck_assert_ptr_nonnull(tree);
        ck_assert_mem_eq(&tree->node[0].all, &analysis->sum, sizeof analysis->sum);
        ck_assert_int_eq(report_tree(tree, &look, &style), 0);
        prof_tree_free(tree);
    } else {
        ck_assert_int_eq(report_top(analysis, PROF_BY_FUNCTION, REPORT_SORT_TOTAL, 10, &style), 0);
    }
    fclose(style.out);
}

/* As if the program's own code had been such threads. */
START_TEST(threads_of_the_product_library_without_work_have_a_row)
{
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,freq=1000"), AD_OK);
    for (int i = 0; i < 50; i++)
        work();
    sampled_compute(0.05);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    struct prof_profile *profile = sampled_read(sampled_path);
    uint64_t idle_ns = 0, found = 0;
    for (size_t i = 0; i < profile->n_samples; i++)
        if (profile->sample[i].phase == PROF_PHASE_NONE) {
            profile->sample[i].waiting = PROF_WAITING_BLAS;
            idle_ns += profile->sample[i].cpu_ns;
        }
    struct prof_analysis *analysis = prof_analyze(profile, NULL, NULL);
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
    prof_analysis_free(analysis);
    prof_profile_free(profile);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("sampled_waiting");
    tcase_set_timeout(cases, 300);
    tcase_add_checked_fixture(cases, sampled_setup, sampled_teardown);
    tcase_add_test(cases, input_locks_and_sleep_are_told_apart);
    tcase_add_test(cases, work_between_sleeps_has_the_processor_time);
    tcase_add_test(cases, threads_of_the_product_library_without_work_have_a_row);
    return run_cases("sampled_waiting", cases);
}
