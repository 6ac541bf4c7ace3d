/* collect_helper.c: the one thread that a collector adds to the process, where times are not exact:
 * it takes no signal and ticks.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "collect_sampler.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SECOND = 1000000000, HELPER_STACK = 256 << 10 };

static uint64_t own_ns(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static void *helper_help(void *payload)
{
    struct collect_sampler *sampler = payload;
    (void)pthread_setname_np(pthread_self(), "tapescope");
    pthread_mutex_lock(&sampler->wake_lock);
    sampler->helper_tid = (pid_t)syscall(SYS_gettid);
    pthread_cond_broadcast(&sampler->wake);
    while (!sampler->stop) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += COLLECT_TICK_NS;
        if (until.tv_nsec >= SECOND) {
            until.tv_nsec -= SECOND;
            until.tv_sec++;
        }
        (void)pthread_cond_timedwait(&sampler->wake, &sampler->wake_lock, &until);
        if (sampler->stop)
            break;
        pthread_mutex_unlock(&sampler->wake_lock);
        sampler->tick(sampler->payload);
        pthread_mutex_lock(&sampler->wake_lock);
    }
    pthread_mutex_unlock(&sampler->wake_lock);
    sampler->helper_ns = own_ns(); /* read once it is joined */
    return NULL;
}

uint64_t collect_sampler_helper_ns(const struct collect_sampler *sampler)
{
    return __atomic_load_n(&sampler->helped, __ATOMIC_ACQUIRE)
               ? collect_thread_cpu(sampler->helper_tid)
               : sampler->helper_ns;
}

const char *collect_sampler_help(struct collect_sampler *sampler)
{
    pthread_condattr_t clock;
    pthread_attr_t attr;
    sigset_t all, before;
    pthread_mutex_init(&sampler->wake_lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&sampler->wake, &clock);
    pthread_condattr_destroy(&clock);
    if (pthread_attr_init(&attr) != 0)
        return COLLECT_NO_MEMORY;
    (void)pthread_attr_setstacksize(&attr, HELPER_STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&sampler->helper, &attr, helper_help, sampler);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (error != 0)
        return collect_reason(error);
    /* It is not sampled, so it has to be known. */
    pthread_mutex_lock(&sampler->wake_lock);
    while (sampler->helper_tid == 0)
        pthread_cond_wait(&sampler->wake, &sampler->wake_lock);
    pthread_mutex_unlock(&sampler->wake_lock);
    __atomic_store_n(&sampler->helped, true, __ATOMIC_RELEASE);
    return NULL;
}

void collect_sampler_join(struct collect_sampler *sampler)
{
    if (!sampler->helped)
        return;
    pthread_mutex_lock(&sampler->wake_lock);
    sampler->stop = true;
    pthread_cond_signal(&sampler->wake);
    pthread_mutex_unlock(&sampler->wake_lock);
    (void)pthread_join(sampler->helper, NULL);
    __atomic_store_n(&sampler->helped, false, __ATOMIC_RELEASE);
}
