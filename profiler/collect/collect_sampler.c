/* collect_sampler.c: a timer for each thread of the process, and what becomes of its samples.
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
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define SECOND UINT64_C(1000000000)

enum {
    SLOT_MARK = 0x5a3c0000, /* in the upper half of what a signal carries */
    BUSY_TRIES = 1000,      /* of 0.1 ms, for a handler that has been interrupted */
};

/* All slots that there ever were, and the one sampler that has a handler. */
static struct collect_thread *slots[COLLECT_MOST_THREADS];
static bool slot_taken[COLLECT_MOST_THREADS];
static uint32_t n_slots; /* atomic */
static struct collect_sampler *running;

static struct collect_moment sampler_clocks(void)
{
    struct timespec wall = {0}, cpu = {0};
    clock_gettime(CLOCK_MONOTONIC, &wall);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    return (struct collect_moment){
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

/* The processor time of the process without that of the helper thread: what is measured begins at
 * begin_ns() and ends at end_ns(), which may come out too long by what runs between two readings,
 * but never shorter than what the samples hold. */
static uint64_t begin_ns(const struct collect_sampler *sampler)
{
    const uint64_t all = process_ns();
    return all - collect_helper_ns(&sampler->helper);
}

static uint64_t end_ns(const struct collect_sampler *sampler)
{
    const uint64_t helper = collect_helper_ns(&sampler->helper);
    return process_ns() - helper;
}

static void sampler_arm(struct collect_thread *thread, uint64_t ns)
{
    const struct itimerspec next = {
        .it_value = {.tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND)}};
    (void)timer_settime(thread->timer, 0, &next, NULL);
}

static void sampler_handle(int number, siginfo_t *info, void *context)
{
    (void)number;
    const int saved = errno;
    const uint32_t slot = (uint32_t)info->si_value.sival_int ^ SLOT_MARK;
    struct collect_sampler *const sampler = __atomic_load_n(&running, __ATOMIC_ACQUIRE);
    if (info->si_code == SI_TIMER && sampler != NULL &&
        slot < __atomic_load_n(&n_slots, __ATOMIC_ACQUIRE)) {
        struct collect_thread *const thread = slots[slot];
        /* Until it is armed, the slot may still become another thread's. */
        const pid_t tid = (pid_t)syscall(SYS_gettid);
        const bool mine = __atomic_load_n(&thread->tid, __ATOMIC_RELAXED) == tid;
        if (mine)
            __atomic_store_n(&thread->busy, 1, __ATOMIC_SEQ_CST);
        if (mine && __atomic_load_n(&thread->armed, __ATOMIC_SEQ_CST) &&
            __atomic_load_n(&thread->tid, __ATOMIC_RELAXED) == tid) {
            struct collect_moment moment = sampler_clocks();
            collect_registers_read(&moment, context, &sampler->code);
            collect_take(thread, &moment, &sampler->publishers);
            const uint64_t interval_ns = collect_take_interval(thread);
            thread->due_ns = moment.wall_ns + interval_ns;
            sampler_arm(thread, interval_ns);
        }
        if (mine)
            __atomic_store_n(&thread->busy, 0, __ATOMIC_SEQ_CST);
    }
    errno = saved;
}

/* ---- threads that come and go ---- */

static struct collect_thread *slot_take(void)
{
    for (uint32_t i = 0; i < COLLECT_MOST_THREADS; i++) {
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
static void slot_clear(struct collect_thread *thread)
{
    const uint32_t slot = thread->slot;
    memset(thread, 0, offsetof(struct collect_thread, ring));
    thread->slot = slot;
}

/* The thread's place in the profile: its own while there are any. */
static uint32_t sampler_number_of(struct collect_samples *samples, pid_t tid)
{
    if (samples->n_threads == 0)
        samples->n_threads = 1;
    if (samples->n_threads > COLLECT_NAMED_THREADS) {
        memcpy(samples->thread[0].name, "others", sizeof "others");
        return 0;
    }
    struct collect_thread_total *total = &samples->thread[samples->n_threads];
    *total = (struct collect_thread_total){.tid = tid};
    collect_thread_name(total->name, tid);
    return samples->n_threads++;
}

static struct collect_thread *sampler_find(const struct collect_sampler *sampler, pid_t tid)
{
    for (uint32_t i = 0; i < sampler->n_threads; i++)
        if (sampler->thread[i]->tid == tid)
            return sampler->thread[i];
    return NULL;
}

/* Begins to sample a thread; NULL: it cannot be. */
static struct collect_thread *sampler_add(struct collect_sampler *sampler, pid_t tid)
{
    struct collect_thread *thread = sampler->ended == NULL ? slot_take() : NULL;
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
    struct collect_moment now = sampler_clocks();
    /* What a thread has done since it began is part of its first sample. */
    now.cpu_ns = sampler->first ? collect_thread_cpu(tid) : 0;
    collect_take_begin(thread, sampler->period_ns, now.wall_ns ^ (uint64_t)tid << 32, &now);
    __atomic_store_n(&thread->tid, tid, __ATOMIC_RELAXED);
    thread->seen = true;
    thread->number = sampler_number_of(&sampler->samples, tid);
    thread->outside = sampler->outside;
    sampler->thread[sampler->n_threads++] = thread;
    /* Once it is armed, the slot is its handler's. */
    const uint64_t interval_ns = collect_take_interval(thread);
    thread->due_ns = now.wall_ns + interval_ns;
    __atomic_store_n(&thread->armed, 1, __ATOMIC_SEQ_CST);
    sampler_arm(thread, interval_ns);
    return thread;
}

/* No further signal of this thread is counted once this returns. */
static void sampler_disarm(struct collect_thread *thread)
{
    __atomic_store_n(&thread->armed, 0, __ATOMIC_SEQ_CST);
    (void)timer_delete(thread->timer);
}

/* Ends a thread's sampling. `exists`: its handler may be at work, for which it waits. */
static void sampler_end(struct collect_sampler *sampler, uint32_t at, bool exists,
                        const struct collect_modules *modules)
{
    struct collect_thread *thread = sampler->thread[at];
    const struct timespec pause = {.tv_nsec = 100000};
    for (int i = 0; exists && i < BUSY_TRIES; i++) {
        if (!__atomic_load_n(&thread->busy, __ATOMIC_SEQ_CST))
            break;
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    }
    collect_drain_last(sampler, thread, modules);
    /* A handler that still has not ended keeps its slot for good. */
    if (!exists || !__atomic_load_n(&thread->busy, __ATOMIC_SEQ_CST))
        slot_taken[thread->slot] = false;
    sampler->thread[at] = sampler->thread[--sampler->n_threads];
}

static void learn_stack(struct collect_thread *thread)
{
    const uintptr_t seen = __atomic_load_n(&thread->stack_begin, __ATOMIC_RELAXED);
    uintptr_t low, high;
    if (thread->high != 0 || seen == 0)
        return;
    if (!collect_mapping_of(seen, &low, &high))
        low = high = 1; /* it is not looked for again */
    /* The first thread's stack grows downwards as it is used. */
    if (thread->tid == getpid() && high - low < (uintptr_t)8 << 20)
        low = high - ((uintptr_t)8 << 20);
    __atomic_store_n(&thread->low, low, __ATOMIC_RELAXED);
    __atomic_store_n(&thread->high, high, __ATOMIC_RELAXED);
}

/* ---- the process's SIGPROF ---- */

static bool sampler_is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) != 0 && action->sa_sigaction == sampler_handle;
}

static const char *take_signal(struct collect_sampler *sampler)
{
    struct itimerval interval;
    if (sigaction(SIGPROF, NULL, &sampler->before) != 0)
        return collect_reason(errno);
    const bool handled =
        (sampler->before.sa_flags & SA_SIGINFO) != 0 ||
        (sampler->before.sa_handler != SIG_DFL && sampler->before.sa_handler != SIG_IGN);
    if (handled || (getitimer(ITIMER_PROF, &interval) == 0 &&
                    (interval.it_value.tv_sec != 0 || interval.it_value.tv_usec != 0)))
        return "the program uses the signal SIGPROF itself";
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = sampler_handle;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigfillset(&action.sa_mask);
    return sigaction(SIGPROF, &action, NULL) == 0 ? NULL : collect_reason(errno);
}

/* A signal that is on its way yet is dropped: its default action would end the process. */
static void give_signal(const struct collect_sampler *sampler)
{
    struct sigaction now, ignore;
    memset(&ignore, 0, sizeof ignore);
    ignore.sa_handler = SIG_IGN;
    if (sigaction(SIGPROF, NULL, &now) == 0 && sampler_is_ours(&now) &&
        sigaction(SIGPROF, &ignore, NULL) == 0)
        (void)sigaction(SIGPROF, &sampler->before, NULL);
}

/* ---- the whole ---- */

/* NULL, or why no samples can be taken. */
static const char *sampler_start(struct collect_sampler *sampler, uint64_t hz,
                                 uint64_t (*tick)(void *payload), void *payload)
{
    if (__atomic_load_n(&running, __ATOMIC_ACQUIRE) != NULL)
        return "samples are being taken already";
    const char *reason = hz > 0 ? take_signal(sampler) : NULL;
    if (reason != NULL)
        return reason;
    reason = collect_helper_begin(&sampler->helper, COLLECT_TICK_NS, tick, payload);
    if (hz == 0)
        return reason;
    if (reason != NULL) {
        give_signal(sampler);
        return reason;
    }
    sampler->period_ns = SECOND / hz;
    sampler->began_ns = sampler->ended_ns = begin_ns(sampler);
    sampler->first = sampler->running = true;
    __atomic_store_n(&running, sampler, __ATOMIC_RELEASE);
    return NULL;
}

static uint64_t no_clock(void)
{
    return 0;
}

bool collect_sampler_open(struct collect_sampler *sampler, struct tape_hook *hook,
                          const struct tape_collect_options *options, const char *path,
                          uint64_t (*tick)(void *payload), void *payload)
{
    if (options->time == TAPE_TIME_EXACT)
        return false;
    const bool sampled = options->time == TAPE_TIME_SAMPLED;
    sampler->untimed = true;
    sampler->most_ns = options->interval * (SECOND / 1000);
    sampler->locate = collect_modules_locate(options->locate);
    sampler->stepped = sampler->outside = tape_collect_steps(options);
    hook->clock = no_clock;
    hook->due = UINT64_MAX;
    hook->unaccounted = options->tape == 0 || (options->tape == TAPE_BYTES_WITH_TIME && sampled);
    const char *reason = sampler_start(sampler, sampled ? options->freq : 0, tick, payload);
    if (reason != NULL) {
        char text[256];
        snprintf(text, sizeof text, "%s: %s",
                 sampled ? "no samples are taken" : "rows are written at the end alone", reason);
        collect_say(options->log, path, "%s: %s", text);
    }
    return reason == NULL;
}

bool collect_sampler_is_due(struct collect_sampler *sampler)
{
    const uint64_t now = collect_time_monotonic();
    if (now < sampler->write_due)
        return false;
    sampler->write_ns = sampler->write_ns == 0                     ? COLLECT_TICK_NS
                        : 2 * sampler->write_ns < sampler->most_ns ? 2 * sampler->write_ns
                                                                   : sampler->most_ns;
    sampler->write_due = now + sampler->write_ns;
    return true;
}

bool collect_sampler_put(struct collect_sampler *sampler, struct collect_buffer *out,
                         struct collect_path_map *paths, bool all)
{
    if (sampler->period_ns == 0)
        return true;
    const uint64_t until_ns = sampler->outside ? sampler->ended_ns : end_ns(sampler);
    if (!collect_put_samples(out, &sampler->samples, sampler->period_ns,
                             until_ns - sampler->began_ns, paths, all))
        return false;
    if (!all)
        collect_samples_written(&sampler->samples);
    return true;
}

void collect_sampler_publish(struct collect_sampler *sampler, const struct tape_now *now)
{
    if (!sampler->running)
        return;
    struct collect_publishers *all = &sampler->publishers;
    uint32_t known = 0;
    while (known < all->n && all->now[known] != now)
        known++;
    if (known == all->n && known < COLLECT_MOST_PUBLISHERS) {
        all->now[known] = now;
        __atomic_store_n(&all->n, known + 1, __ATOMIC_RELEASE);
    }
    /* A thread that has ended may have had it before. */
    for (uint32_t i = 0; i < sampler->n_threads; i++)
        if (sampler->thread[i]->now == now)
            __atomic_store_n(&sampler->thread[i]->now, NULL, __ATOMIC_RELAXED);
    const pid_t tid = (pid_t)syscall(SYS_gettid);
    struct collect_thread *thread = sampler_find(sampler, tid);
    if (thread == NULL)
        thread = sampler_add(sampler, tid);
    if (thread == NULL)
        return;
    __atomic_store_n(&thread->stack_begin, (uintptr_t)__builtin_frame_address(0), __ATOMIC_RELAXED);
    learn_stack(thread);
    /* In this order, which is that of a handler of the calling thread's as well. */
    __atomic_store_n(&thread->owner, __atomic_load_n(&now->owner, __ATOMIC_RELAXED),
                     __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&thread->now, now, __ATOMIC_RELAXED);
}

/* Where the handler may look for system calls. */
static void find_code(struct collect_sampler *sampler, const struct collect_modules *modules)
{
    const uintptr_t within = (uintptr_t)syscall;
    for (size_t i = 0; i < modules->n && sampler->code.high == 0; i++) {
        const struct collect_module *module = &modules->module[i];
        if (within < module->start || within >= module->end)
            continue;
        __atomic_store_n(&sampler->code.low, module->start, __ATOMIC_RELAXED);
        __atomic_store_n(&sampler->code.high, module->end, __ATOMIC_RELEASE);
    }
}

void collect_sampler_scan(struct collect_sampler *sampler, const struct collect_modules *modules)
{
    pid_t tid[COLLECT_MOST_THREADS];
    struct sigaction now;
    if (!sampler->running)
        return;
    if (sampler->code.high == 0)
        find_code(sampler, modules);
    if (sampler->ended == NULL && sigaction(SIGPROF, NULL, &now) == 0 && !sampler_is_ours(&now)) {
        sampler->ended = "the program has taken the signal SIGPROF; no further samples are taken";
        for (uint32_t i = 0; i < sampler->n_threads; i++)
            sampler_disarm(sampler->thread[i]);
    }
    const uint32_t n = collect_threads_list(tid, COLLECT_MOST_THREADS);
    for (uint32_t i = 0; i < sampler->n_threads; i++)
        sampler->thread[i]->seen = n == 0;
    for (uint32_t i = 0; i < n; i++) {
        struct collect_thread *thread = sampler_find(sampler, tid[i]);
        if (thread != NULL)
            thread->seen = true;
        else if (tid[i] != sampler->helper.tid && !collect_thread_is_own(tid[i]))
            (void)sampler_add(sampler, tid[i]);
    }
    sampler->first = false;
    for (uint32_t i = sampler->n_threads; i-- > 0;) {
        struct collect_thread *thread = sampler->thread[i];
        /* The system's list lacks threads that live if others end while it is read. */
        if (thread->seen || collect_thread_cpu(thread->tid) != 0) {
            learn_stack(thread);
            collect_drain(sampler, thread, modules);
            continue;
        }
        if (sampler->ended == NULL)
            sampler_disarm(thread);
        sampler_end(sampler, i, false, modules);
    }
}

/* A signal that comes meanwhile is on either side. */
static void sampler_measure(struct collect_sampler *sampler, bool begin)
{
    const uint64_t wall_ns = sampler_clocks().wall_ns;
    sampler->outside = !begin;
    for (uint32_t i = 0; i < sampler->n_threads; i++) {
        struct collect_thread *thread = sampler->thread[i];
        __atomic_store_n(&thread->from_wall_ns, wall_ns, __ATOMIC_RELAXED);
        __atomic_store_n(&thread->from_cpu_ns, collect_thread_cpu(thread->tid), __ATOMIC_RELAXED);
        __atomic_store_n(&thread->outside, !begin, __ATOMIC_RELEASE);
    }
}

void collect_sampler_begin(struct collect_sampler *sampler, const struct collect_modules *modules,
                           bool wanted)
{
    if (!sampler->running || !sampler->stepped)
        return;
    for (uint32_t i = 0; i < sampler->n_threads; i++)
        collect_drain(sampler, sampler->thread[i], modules);
    collect_samples_void(&sampler->samples);
    sampler->began_ns = sampler->ended_ns = begin_ns(sampler);
    if (wanted)
        sampler_measure(sampler, true);
}

void collect_sampler_end(struct collect_sampler *sampler)
{
    if (!sampler->running || !sampler->stepped || sampler->outside)
        return;
    sampler_measure(sampler, false);
    sampler->ended_ns = end_ns(sampler); /* not before the last sample */
}

void collect_sampler_stop(struct collect_sampler *sampler, const struct collect_modules *modules)
{
    if (!sampler->running)
        return;
    sampler->running = false;
    for (uint32_t i = 0; i < sampler->n_threads && sampler->ended == NULL; i++)
        sampler_disarm(sampler->thread[i]);
    while (sampler->n_threads > 0)
        sampler_end(sampler, sampler->n_threads - 1, true, modules);
    give_signal(sampler);
    __atomic_store_n(&running, NULL, __ATOMIC_RELEASE);
}

void collect_sampler_forget(struct collect_sampler *sampler)
{
    collect_helper_forget(&sampler->helper);
    if (!sampler->running)
        return;
    sampler->running = false;
    for (uint32_t i = 0; i < COLLECT_MOST_THREADS; i++)
        slot_taken[i] = false;
    __atomic_store_n(&running, NULL, __ATOMIC_RELEASE);
    give_signal(sampler);
}

void collect_sampler_free(struct collect_sampler *sampler)
{
    collect_samples_free(&sampler->samples);
}
