/* test_sampled_threads.c: threads that the system's list lacks, though they live: so it is when
 * others end while the list is read.
 *
 * Takes the place of readdir(), in the collector too.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "run_cases.h"
#include "sampled_support.h"

#include <check.h>
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The thread that is left out, 0: none, and how often that was done; atomic, as is what follows. */
static long hidden;
static int n_hidden;
static long worker_tid;
static bool stop;

__attribute__((visibility("default"))) struct dirent *readdir(DIR *folder)
{
    struct dirent *(*next)(DIR *) = NULL;
    void *const symbol = dlsym(RTLD_NEXT, "readdir");
    memcpy(&next, &symbol, sizeof next);
    struct dirent *entry = next(folder);
    const long left_out = __atomic_load_n(&hidden, __ATOMIC_ACQUIRE);
    if (entry && left_out != 0 && strtol(entry->d_name, NULL, 10) == left_out) {
        __atomic_add_fetch(&n_hidden, 1, __ATOMIC_RELEASE);
        entry = next(folder);
    }
    return entry;
}

static void *compute(void *payload)
{
    volatile double *const x = payload;
    __atomic_store_n(&worker_tid, (long)sampled_tid(), __ATOMIC_RELEASE);
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
        *x = *x * 0.5 + 1;
    return NULL;
}

static uint64_t held_before;

static bool has_more_of_worker(const struct read_profile *profile)
{
    return sampled_held(profile, (uint64_t)worker_tid) > held_before;
}

/* One that was taken for gone would be met again, and all its time be charged once more. */
TEST(a_thread_that_is_not_listed_but_lives_is_the_same_when_it_is_listed_again)
{
    pthread_t worker;
    double x = 0;
    ck_assert_int_eq(pthread_create(&worker, NULL, compute, &x), 0);
    while (__atomic_load_n(&worker_tid, __ATOMIC_ACQUIRE) == 0) {
    }
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,freq=1000"), AD_OK);
    sampled_compute_until(has_more_of_worker);
    __atomic_store_n(&hidden, worker_tid, __ATOMIC_RELEASE);
    read_profile_free(sampled_fetch());
    ck_assert_int_gt(__atomic_load_n(&n_hidden, __ATOMIC_ACQUIRE), 0);
    __atomic_store_n(&hidden, 0, __ATOMIC_RELEASE);
    struct read_profile *profile = sampled_fetch();
    held_before = sampled_held(profile, (uint64_t)worker_tid);
    read_profile_free(profile);
    sampled_compute_until(has_more_of_worker);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    ck_assert_int_eq(pthread_join(worker, NULL), 0);
    profile = sampled_read(sampled_path);
    int n = 0;
    for (size_t i = 0; i < profile->n_threads; i++)
        n += profile->thread[i].tid == (uint64_t)worker_tid;
    ck_assert_int_eq(n, 1);
    ck_assert_uint_le(sampled_held(profile, 0), profile->process_cpu_ns);
    read_profile_free(profile);
}

/* A signal of that slot's timer, as one that was on its way when the slot became another's. */
static void signal_of_slot(int slot)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_code = SI_TIMER;
    info.si_value.sival_int = slot ^ 0x5a3c0000;
    ck_assert_int_eq(syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)sampled_tid(), SIGPROF, &info),
                     0);
}

static uint64_t fired_of(const struct read_profile *profile, uint64_t tid)
{
    for (size_t i = 0; i < profile->n_threads; i++)
        if (profile->thread[i].tid == tid)
            return profile->thread[i].fired;
    return 0;
}

TEST(a_signal_that_finds_another_threads_slot_is_no_sample_of_that_thread)
{
    enum { SIGNALS = 20000, SLOTS = 4 };
    pthread_t worker;
    double x = 0;
    ck_assert_int_eq(pthread_create(&worker, NULL, compute, &x), 0);
    while (__atomic_load_n(&worker_tid, __ATOMIC_ACQUIRE) == 0) {
    }
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,freq=1"), AD_OK);
    for (int i = 0; i < SIGNALS; i++)
        signal_of_slot(i % SLOTS);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    ck_assert_int_eq(pthread_join(worker, NULL), 0);
    struct read_profile *profile = sampled_read(sampled_path);
    ck_assert_uint_ge(fired_of(profile, sampled_tid()), SIGNALS / SLOTS); /* in its own slot */
    ck_assert_uint_lt(fired_of(profile, (uint64_t)worker_tid), SIGNALS / SLOTS);
    read_profile_free(profile);
}

RUN_TESTS(sampled_setup, sampled_teardown)
