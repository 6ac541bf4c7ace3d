/* collect_helper.c: a thread that a collector adds to the process: it takes no signal and ticks.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "collect_helper.h"

#include "collect_sampler.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SECOND = 1000000000, HELPER_STACK = 256 << 10, SLACK_NS = 1000 };

static uint64_t own_ns(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static void *helper_help(void *payload)
{
    struct collect_helper *helper = payload;
    uint64_t next_ns = helper->first_ns;
    (void)pthread_setname_np(pthread_self(), "tapescope");
    (void)prctl(PR_SET_TIMERSLACK, SLACK_NS, 0, 0, 0); /* 50 us otherwise; of this thread alone */
    pthread_mutex_lock(&helper->lock);
    helper->tid = (pid_t)syscall(SYS_gettid);
    pthread_cond_broadcast(&helper->wake);
    while (!helper->stop) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        const uint64_t ns = (uint64_t)until.tv_nsec + next_ns;
        until.tv_sec += (time_t)(ns / SECOND);
        until.tv_nsec = (long)(ns % SECOND);
        (void)pthread_cond_timedwait(&helper->wake, &helper->lock, &until);
        if (helper->stop)
            break;
        pthread_mutex_unlock(&helper->lock);
        next_ns = helper->tick(helper->payload);
        pthread_mutex_lock(&helper->lock);
    }
    pthread_mutex_unlock(&helper->lock);
    helper->used_ns = own_ns(); /* read once it is joined */
    return NULL;
}

uint64_t collect_helper_ns(const struct collect_helper *helper)
{
    return __atomic_load_n(&helper->runs, __ATOMIC_ACQUIRE) ? collect_thread_cpu(helper->tid)
                                                            : helper->used_ns;
}

const char *collect_helper_begin(struct collect_helper *helper, uint64_t first_ns,
                                 uint64_t (*tick)(void *payload), void *payload)
{
    pthread_condattr_t clock;
    pthread_attr_t attr;
    sigset_t all, before;
    helper->first_ns = first_ns;
    helper->tick = tick;
    helper->payload = payload;
    pthread_mutex_init(&helper->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&helper->wake, &clock);
    pthread_condattr_destroy(&clock);
    if (pthread_attr_init(&attr) != 0)
        return COLLECT_NO_MEMORY;
    (void)pthread_attr_setstacksize(&attr, HELPER_STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&helper->thread, &attr, helper_help, helper);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (error != 0)
        return collect_reason(error);
    /* It is not sampled, so it has to be known. */
    pthread_mutex_lock(&helper->lock);
    while (helper->tid == 0)
        pthread_cond_wait(&helper->wake, &helper->lock);
    pthread_mutex_unlock(&helper->lock);
    __atomic_store_n(&helper->runs, true, __ATOMIC_RELEASE);
    return NULL;
}

void collect_helper_join(struct collect_helper *helper)
{
    if (!helper->runs)
        return;
    pthread_mutex_lock(&helper->lock);
    helper->stop = true;
    pthread_cond_signal(&helper->wake);
    pthread_mutex_unlock(&helper->lock);
    (void)pthread_join(helper->thread, NULL);
    __atomic_store_n(&helper->runs, false, __ATOMIC_RELEASE);
}

void collect_helper_forget(struct collect_helper *helper)
{
    helper->runs = false;
}
