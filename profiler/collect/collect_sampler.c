/* collect_sampler.c: a timer for each thread of the process, and what becomes of its samples.
 *
 * May include: collect_sampler.h.
 *
 * Each thread has a one-shot timer of CLOCK_MONOTONIC whose signal is sent to it and which its
 * handler arms anew after a time drawn at random: a fixed period would fall into step with the
 * program's own. The timer's signal carries the number of the thread's slot. Slots are never given
 * back to the system: a signal that was on its way when its timer was deleted finds its slot.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "collect_sampler.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define SECOND UINT64_C(1000000000)

enum {
    TICK_NS = 20000000,
    HELPER_STACK = 256 << 10,
    SLOT_MARK = 0x5a3c0000, /* in the upper half of what a signal carries */
    BUSY_TRIES = 1000,      /* of 0.1 ms, for a handler that has been interrupted */
};

/* All slots that there ever were, and the one sampler that has a handler. */
static struct prof_thread *slots[PROF_MOST_THREADS];
static bool slot_taken[PROF_MOST_THREADS];
static uint32_t n_slots; /* atomic */
static struct prof_sampler *running;

static struct prof_moment clocks(void)
{
    struct timespec wall = {0}, cpu = {0};
    clock_gettime(CLOCK_MONOTONIC, &wall);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    return (struct prof_moment){
        .wall_ns = (uint64_t)wall.tv_sec * SECOND + (uint64_t)wall.tv_nsec,
        .cpu_ns = (uint64_t)cpu.tv_sec * SECOND + (uint64_t)cpu.tv_nsec,
    };
}

static uint64_t process_ns(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static void set_registers(struct prof_moment *moment, const void *context)
{
    const ucontext_t *u = context;
#if defined(__x86_64__)
    moment->pc = (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
    moment->frame = (uintptr_t)u->uc_mcontext.gregs[REG_RBP];
    moment->stack = (uintptr_t)u->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
    moment->pc = u->uc_mcontext.pc;
    moment->frame = u->uc_mcontext.regs[29];
    moment->stack = u->uc_mcontext.sp;
#else
    (void)u;
#endif
}

static void arm(struct prof_thread *thread)
{
    const uint64_t ns = prof_take_interval(thread);
    const struct itimerspec next = {
        .it_value = {.tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND)}};
    (void)timer_settime(thread->timer, 0, &next, NULL);
}

static void handle(int number, siginfo_t *info, void *context)
{
    (void)number;
    const int saved = errno;
    const uint32_t slot = (uint32_t)info->si_value.sival_int ^ SLOT_MARK;
    struct prof_sampler *const sampler = __atomic_load_n(&running, __ATOMIC_ACQUIRE);
    if (info->si_code == SI_TIMER && sampler != NULL &&
        slot < __atomic_load_n(&n_slots, __ATOMIC_ACQUIRE)) {
        struct prof_thread *const thread = slots[slot];
        __atomic_store_n(&thread->busy, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&thread->armed, __ATOMIC_SEQ_CST)) {
            struct prof_moment moment = clocks();
            set_registers(&moment, context);
            prof_take(thread, &moment, &sampler->publishers);
            arm(thread);
        }
        __atomic_store_n(&thread->busy, 0, __ATOMIC_SEQ_CST);
    }
    errno = saved;
}

/* ---- threads that come and go ---- */

static struct prof_thread *slot_take(void)
{
    for (uint32_t i = 0; i < PROF_MOST_THREADS; i++) {
        if (slot_taken[i])
            continue;
        if (slots[i] == NULL) {
            void *memory = mmap(NULL, sizeof *slots[i], PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (memory == MAP_FAILED)
                return NULL;
            slots[i] = memory;
            __atomic_store_n(&n_slots, i + 1, __ATOMIC_RELEASE);
        }
        slot_taken[i] = true;
        slots[i]->slot = i;
        return slots[i];
    }
    return NULL;
}

/* As slot_take found it, but for its place and its memory. The ring need not be cleared. */
static void slot_clear(struct prof_thread *thread)
{
    const uint32_t slot = thread->slot;
    memset(thread, 0, offsetof(struct prof_thread, ring));
    thread->slot = slot;
}

/* The thread's place in the profile: its own while there are any. */
static uint32_t number_of(struct prof_samples *samples, pid_t tid)
{
    if (samples->n_threads == 0)
        samples->n_threads = 1;
    if (samples->n_threads > PROF_NAMED_THREADS) {
        memcpy(samples->thread[0].name, "others", sizeof "others");
        return 0;
    }
    struct prof_thread_total *total = &samples->thread[samples->n_threads];
    *total = (struct prof_thread_total){.tid = tid};
    prof_thread_name(total->name, tid);
    return samples->n_threads++;
}

static struct prof_thread *find(const struct prof_sampler *sampler, pid_t tid)
{
    for (uint32_t i = 0; i < sampler->n_threads; i++)
        if (sampler->thread[i]->tid == tid)
            return sampler->thread[i];
    return NULL;
}

/* Begins to sample a thread; NULL: it cannot be. */
static struct prof_thread *add(struct prof_sampler *sampler, pid_t tid)
{
    struct prof_thread *thread = sampler->ended == NULL ? slot_take() : NULL;
    if (thread == NULL)
        return NULL;
    slot_clear(thread);
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGPROF;
    event.sigev_value.sival_int = (int)(thread->slot ^ SLOT_MARK);
    event.sigev_notify_thread_id = tid;
    if (timer_create(CLOCK_MONOTONIC, &event, &thread->timer) != 0) {
        sampler->unarmed += errno != EINVAL; /* that is: the thread is gone */
        slot_taken[thread->slot] = false;
        return NULL;
    }
    struct prof_moment now = clocks();
    /* What a thread has done since it began is part of its first sample. */
    now.cpu_ns = sampler->first ? prof_thread_cpu(tid) : 0;
    prof_take_begin(thread, sampler->period_ns, now.wall_ns ^ (uint64_t)tid << 32, &now);
    thread->tid = tid;
    thread->seen = true;
    thread->number = number_of(&sampler->samples, tid);
    sampler->thread[sampler->n_threads++] = thread;
    __atomic_store_n(&thread->armed, 1, __ATOMIC_SEQ_CST);
    arm(thread);
    return thread;
}

/* No further signal of this thread is counted once this returns. */
static void disarm(struct prof_thread *thread)
{
    __atomic_store_n(&thread->armed, 0, __ATOMIC_SEQ_CST);
    (void)timer_delete(thread->timer);
}

/* Ends a thread's sampling. `exists`: its handler may be at work, for which it waits. */
static void end(struct prof_sampler *sampler, uint32_t at, bool exists,
                const struct prof_modules *modules)
{
    struct prof_thread *thread = sampler->thread[at];
    const struct timespec pause = {.tv_nsec = 100000};
    for (int i = 0; exists && i < BUSY_TRIES; i++) {
        if (!__atomic_load_n(&thread->busy, __ATOMIC_SEQ_CST))
            break;
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    }
    prof_drain_last(sampler, thread, modules);
    /* A handler that still has not ended keeps its slot for good. */
    if (!exists || !__atomic_load_n(&thread->busy, __ATOMIC_SEQ_CST))
        slot_taken[thread->slot] = false;
    sampler->thread[at] = sampler->thread[--sampler->n_threads];
}

static void learn_stack(struct prof_thread *thread)
{
    const uintptr_t seen = __atomic_load_n(&thread->stack_begin, __ATOMIC_RELAXED);
    uintptr_t low, high;
    if (thread->high != 0 || seen == 0)
        return;
    if (!prof_mapping_of(seen, &low, &high))
        low = high = 1; /* it is not looked for again */
    /* The first thread's stack grows downwards as it is used. */
    if (thread->tid == getpid() && high - low < (uintptr_t)8 << 20)
        low = high - ((uintptr_t)8 << 20);
    __atomic_store_n(&thread->low, low, __ATOMIC_RELAXED);
    __atomic_store_n(&thread->high, high, __ATOMIC_RELAXED);
}

/* ---- the process's SIGPROF ---- */

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) != 0 && action->sa_sigaction == handle;
}

static const char *take_signal(struct prof_sampler *sampler)
{
    struct itimerval interval;
    if (sigaction(SIGPROF, NULL, &sampler->before) != 0)
        return prof_reason(errno);
    const bool handled =
        (sampler->before.sa_flags & SA_SIGINFO) != 0 ||
        (sampler->before.sa_handler != SIG_DFL && sampler->before.sa_handler != SIG_IGN);
    if (handled || (getitimer(ITIMER_PROF, &interval) == 0 &&
                    (interval.it_value.tv_sec != 0 || interval.it_value.tv_usec != 0)))
        return "the program uses the signal SIGPROF itself";
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigfillset(&action.sa_mask);
    return sigaction(SIGPROF, &action, NULL) == 0 ? NULL : prof_reason(errno);
}

/* A signal that is on its way yet is dropped: its default action would end the process. */
static void give_signal(const struct prof_sampler *sampler)
{
    struct sigaction now, ignore;
    memset(&ignore, 0, sizeof ignore);
    ignore.sa_handler = SIG_IGN;
    if (sigaction(SIGPROF, NULL, &now) == 0 && is_ours(&now) &&
        sigaction(SIGPROF, &ignore, NULL) == 0)
        (void)sigaction(SIGPROF, &sampler->before, NULL);
}

/* ---- the whole ---- */

static void *help(void *payload)
{
    struct prof_sampler *sampler = payload;
    (void)pthread_setname_np(pthread_self(), "tapescope");
    pthread_mutex_lock(&sampler->wake_lock);
    sampler->helper_tid = (pid_t)syscall(SYS_gettid);
    pthread_cond_broadcast(&sampler->wake);
    while (!sampler->stop) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += TICK_NS;
        if (until.tv_nsec >= (long)SECOND) {
            until.tv_nsec -= (long)SECOND;
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
    return NULL;
}

static const char *start_helper(struct prof_sampler *sampler)
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
        return PROF_NO_MEMORY;
    (void)pthread_attr_setstacksize(&attr, HELPER_STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&sampler->helper, &attr, help, sampler);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (error != 0)
        return prof_reason(error);
    /* It is not sampled, so it has to be known. */
    pthread_mutex_lock(&sampler->wake_lock);
    while (sampler->helper_tid == 0)
        pthread_cond_wait(&sampler->wake, &sampler->wake_lock);
    pthread_mutex_unlock(&sampler->wake_lock);
    return NULL;
}

/* NULL, or why no samples can be taken. */
static const char *start(struct prof_sampler *sampler, uint64_t hz)
{
    if (__atomic_load_n(&running, __ATOMIC_ACQUIRE) != NULL)
        return "samples are being taken already";
    const char *reason = hz > 0 ? take_signal(sampler) : NULL;
    if (reason != NULL)
        return reason;
    reason = start_helper(sampler);
    sampler->helped = reason == NULL;
    if (hz == 0)
        return reason;
    if (reason != NULL) {
        give_signal(sampler);
        return reason;
    }
    sampler->period_ns = SECOND / hz;
    sampler->began_ns = process_ns();
    sampler->first = sampler->running = true;
    __atomic_store_n(&running, sampler, __ATOMIC_RELEASE);
    return NULL;
}

static uint64_t no_clock(void)
{
    return 0;
}

bool prof_sampler_open(struct prof_sampler *sampler, struct tape_hook *hook,
                       const struct tape_collect_options *options, const char *path,
                       void (*tick)(void *payload), void *payload)
{
    if (options->time == TAPE_TIME_EXACT)
        return false;
    const bool sampled = options->time == TAPE_TIME_SAMPLED;
    sampler->untimed = true;
    sampler->locate = options->locate;
    sampler->tick = tick;
    sampler->payload = payload;
    hook->clock = no_clock;
    hook->due = UINT64_MAX;
    hook->unaccounted = options->tape == 0 || (options->tape == TAPE_BYTES_WITH_TIME && sampled);
    const char *reason = start(sampler, sampled ? options->freq : 0);
    if (reason != NULL) {
        char text[256];
        snprintf(text, sizeof text, "%s: %s",
                 sampled ? "no samples are taken" : "rows are written at the end alone", reason);
        prof_say(options->log, path, "%s: %s", text);
    }
    return reason == NULL;
}

bool prof_sampler_is_due(struct prof_sampler *sampler)
{
    const uint64_t now = prof_time_monotonic();
    if (now < sampler->write_due)
        return false;
    sampler->write_ns = sampler->write_ns == 0           ? TICK_NS
                        : 2 * sampler->write_ns < SECOND ? 2 * sampler->write_ns
                                                         : SECOND;
    sampler->write_due = now + sampler->write_ns;
    return true;
}

bool prof_sampler_put(struct prof_sampler *sampler, struct prof_buffer *out,
                      struct prof_path_map *paths, bool all)
{
    if (sampler->period_ns == 0)
        return true;
    if (!prof_put_samples(out, &sampler->samples, sampler->period_ns,
                          process_ns() - sampler->began_ns, paths, all))
        return false;
    if (!all)
        prof_samples_written(&sampler->samples);
    return true;
}

void prof_sampler_publish(struct prof_sampler *sampler, const struct tape_now *now)
{
    if (!sampler->running)
        return;
    struct prof_publishers *all = &sampler->publishers;
    uint32_t known = 0;
    while (known < all->n && all->now[known] != now)
        known++;
    if (known == all->n && known < PROF_MOST_PUBLISHERS) {
        all->now[known] = now;
        __atomic_store_n(&all->n, known + 1, __ATOMIC_RELEASE);
    }
    /* A thread that has ended may have had it before. */
    for (uint32_t i = 0; i < sampler->n_threads; i++)
        if (sampler->thread[i]->now == now)
            __atomic_store_n(&sampler->thread[i]->now, NULL, __ATOMIC_RELAXED);
    const pid_t tid = (pid_t)syscall(SYS_gettid);
    struct prof_thread *thread = find(sampler, tid);
    if (thread == NULL)
        thread = add(sampler, tid);
    if (thread != NULL)
        __atomic_store_n(&thread->now, now, __ATOMIC_RELAXED);
}

void prof_sampler_scan(struct prof_sampler *sampler, const struct prof_modules *modules)
{
    pid_t tid[PROF_MOST_THREADS];
    struct sigaction now;
    if (!sampler->running)
        return;
    if (sampler->ended == NULL && sigaction(SIGPROF, NULL, &now) == 0 && !is_ours(&now)) {
        sampler->ended = "the program has taken the signal SIGPROF; no further samples are taken";
        for (uint32_t i = 0; i < sampler->n_threads; i++)
            disarm(sampler->thread[i]);
    }
    const uint32_t n = prof_threads_list(tid, PROF_MOST_THREADS);
    for (uint32_t i = 0; i < sampler->n_threads; i++)
        sampler->thread[i]->seen = n == 0;
    for (uint32_t i = 0; i < n; i++) {
        struct prof_thread *thread = find(sampler, tid[i]);
        if (thread != NULL)
            thread->seen = true;
        else if (tid[i] != sampler->helper_tid)
            (void)add(sampler, tid[i]);
    }
    sampler->first = false;
    for (uint32_t i = sampler->n_threads; i-- > 0;) {
        struct prof_thread *thread = sampler->thread[i];
        if (thread->seen) {
            learn_stack(thread);
            prof_drain(sampler, thread, modules);
            continue;
        }
        if (sampler->ended == NULL)
            disarm(thread);
        end(sampler, i, false, modules);
    }
}

void prof_sampler_join(struct prof_sampler *sampler)
{
    if (!sampler->helped)
        return;
    sampler->helped = false;
    pthread_mutex_lock(&sampler->wake_lock);
    sampler->stop = true;
    pthread_cond_signal(&sampler->wake);
    pthread_mutex_unlock(&sampler->wake_lock);
    (void)pthread_join(sampler->helper, NULL);
}

void prof_sampler_stop(struct prof_sampler *sampler, const struct prof_modules *modules)
{
    if (!sampler->running)
        return;
    sampler->running = false;
    for (uint32_t i = 0; i < sampler->n_threads && sampler->ended == NULL; i++)
        disarm(sampler->thread[i]);
    while (sampler->n_threads > 0)
        end(sampler, sampler->n_threads - 1, true, modules);
    give_signal(sampler);
    __atomic_store_n(&running, NULL, __ATOMIC_RELEASE);
}

void prof_sampler_forget(struct prof_sampler *sampler)
{
    sampler->helped = false;
    if (!sampler->running)
        return;
    sampler->running = false;
    for (uint32_t i = 0; i < PROF_MOST_THREADS; i++)
        slot_taken[i] = false;
    __atomic_store_n(&running, NULL, __ATOMIC_RELEASE);
    give_signal(sampler);
}

void prof_sampler_free(struct prof_sampler *sampler)
{
    prof_samples_free(&sampler->samples);
}
