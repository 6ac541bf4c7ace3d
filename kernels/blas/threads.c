/* threads.c: see threads.h.
 *
 * One loop at a time uses the pool. A thread that asks meanwhile runs its loop alone. If a thread
 * cannot be created, the pool works with fewer.
 *
 * A loop is published by one store of a word, of which the number grows. A part is taken by whoever
 * first writes that number to the part's own word, so whoever is late finds all parts taken. What
 * describes the loop is read behind that: it stays while a part is not done. Thread i of n begins
 * at part i parts / n, so that it meets the memory again that it had in the loop before, and
 * afterwards takes what others have left.
 *
 * Helpers look for the next loop for a moment, and then sleep. Where there are fewer processors
 * than threads they sleep at once. Helper i wakes helpers 2 i + 1 and 2 i + 2, number 0 is the
 * caller: of many threads none wakes all.
 */
#include "threads.h"

#include <cblas.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST = KERNEL_MAX_THREADS,
    PARTS_A_THREAD = 4, /* so that threads that are held up have fewer */
    PART_NS = 5000,     /* of a part, at least */
    SPIN_NS = 50000,    /* ten times what it takes to wake a thread */
    LONG_NS = 100000,   /* of sleep: a virtual processor may be gone by then */
    LOOKS = 32,         /* between two looks at the clock */
    STACK_BYTES = 512 << 10
};

/* The word of a loop. */
enum { THREADS_BITS = 8, PARTS_BITS = 16 };

struct helper {
    _Alignas(64) uint32_t asleep; /* atomic; it sleeps on this */
    int number;
    uint64_t seen;  /* the last loop from before it was made */
    uint64_t spins; /* atomic: waits in which it looked for a loop before it slept */
    uint64_t slept; /* atomic: since when it does */
    pthread_t thread;
};

static struct {
    /* Read by all for a loop, and written between loops alone. */
    _Alignas(64) uint64_t loop; /* atomic: number, parts and threads of the last one */
    threads_part *run;
    void *job;
    const struct threads_watch *watch;
    void *of;                           /* whose loop it is, for `watch`; NULL: nobody asks */
    uint64_t taken[THREADS_MOST_PARTS]; /* atomic: the last loop of which a part was */
    uint64_t spins;                     /* atomic: waits in which it looked at `left` before */
    int n_helpers;
    uint32_t left;  /* atomic: parts not done yet; the caller sleeps on this */
    uint32_t waits; /* atomic: it does */
    bool busy;      /* atomic: some loop has the pool, or threads are made */
    bool stop;      /* atomic */
    struct helper helper[MOST];
} pool;

static int asked;                           /* atomic */
static int kept;                            /* atomic */
static int processors;                      /* atomic; 0: to be counted */
static const struct threads_watch *watched; /* atomic */
static pthread_once_t prepared = PTHREAD_ONCE_INIT;

int threads_asked(void)
{
    return __atomic_load_n(&asked, __ATOMIC_RELAXED);
}

void threads_keep(int n)
{
    __atomic_store_n(&kept, n, __ATOMIC_RELAXED);
}

int kernel_threads(void)
{
    const int n = threads_asked(), before = __atomic_load_n(&kept, __ATOMIC_RELAXED);
    return n ? n : before ? before : openblas_get_num_threads();
}

void threads_ask(int n)
{
    __atomic_store_n(&asked, n, __ATOMIC_RELAXED);
    __atomic_store_n(&processors, 0, __ATOMIC_RELAXED);
}

void threads_watch(const struct threads_watch *watch)
{
    __atomic_store_n(&watched, watch, __ATOMIC_RELEASE);
}

static int threads_most(void)
{
    const int n = kernel_threads();
    return n < 1 ? 1 : n > MOST ? MOST : n;
}

int threads_parts(uint64_t ns)
{
    if (__builtin_expect(ns < (uint64_t)2 * PART_NS, 1))
        return 1;
    const int threads = threads_most(), most = threads * PARTS_A_THREAD;
    if (threads == 1 || __atomic_load_n(&pool.busy, __ATOMIC_RELAXED))
        return 1;
    const int parts = ns / PART_NS < (uint64_t)most ? (int)(ns / PART_NS) : most;
    return parts < threads ? parts : parts - parts % threads;
}

/* Processors that this process may use; 1 where the system does not say. The caller's: a helper may
 * just be forbidden one. */
static int processors_count(void)
{
    int n = __atomic_load_n(&processors, __ATOMIC_RELAXED);
    cpu_set_t set;
    if (n == 0) {
        n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
        __atomic_store_n(&processors, n, __ATOMIC_RELAXED);
    }
    return n;
}

/* ---- waiting ---- */

static void futex_wait(uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* The end of a wait that looks; 0: none does. Counts in `spins`, which one thread writes. */
static uint64_t spin_end(uint64_t *spins, bool spin)
{
    if (!spin)
        return 0;
    __atomic_store_n(spins, *spins + 1, __ATOMIC_RELAXED);
    return now_ns() + SPIN_NS;
}

static uint64_t loop_now(void)
{
    return __atomic_load_n(&pool.loop, __ATOMIC_ACQUIRE);
}

static uint64_t loop_number(uint64_t loop)
{
    return loop >> (THREADS_BITS + PARTS_BITS);
}

static int loop_parts(uint64_t loop)
{
    return (int)(loop >> THREADS_BITS) & ((1 << PARTS_BITS) - 1);
}

static int loop_threads(uint64_t loop)
{
    return (int)loop & ((1 << THREADS_BITS) - 1);
}

/* The next loop. A wake is not lost: either the sleeper sees the loop, or whoever wakes sees it
 * asleep. */
static uint64_t loop_wait(struct helper *helper, uint64_t seen, bool spin)
{
    uint64_t loop = seen;
    for (const uint64_t end = spin_end(&helper->spins, spin); spin && now_ns() < end;)
        for (int i = 0; i < LOOKS; i++) {
            loop = loop_now();
            if (loop != seen)
                return loop;
            relax();
        }
    while ((loop = loop_now()) == seen) {
        __atomic_store_n(&helper->slept, now_ns(), __ATOMIC_RELAXED);
        __atomic_store_n(&helper->asleep, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&pool.loop, __ATOMIC_SEQ_CST) == seen)
            futex_wait(&helper->asleep, 1);
        __atomic_store_n(&helper->asleep, 0, __ATOMIC_RELAXED);
    }
    return loop;
}

/* A virtual processor that has halted may look busy. Linux then wakes a thread on the caller's
 * processor, where it waits for the next tick. So that one is forbidden to the thread while it is
 * woken. */
static bool helper_keep_off(struct helper *helper, cpu_set_t *all)
{
    const int here = sched_getcpu();
    cpu_set_t others;
    if (here < 0 || now_ns() - __atomic_load_n(&helper->slept, __ATOMIC_RELAXED) < LONG_NS ||
        pthread_getaffinity_np(helper->thread, sizeof *all, all) != 0)
        return false;
    others = *all;
    CPU_CLR((size_t)here, &others);
    return CPU_COUNT(&others) > 0 &&
           pthread_setaffinity_np(helper->thread, sizeof others, &others) == 0;
}

static void helper_wake(struct helper *helper)
{
    cpu_set_t all;
    if (__atomic_load_n(&helper->asleep, __ATOMIC_SEQ_CST) == 0 ||
        __atomic_exchange_n(&helper->asleep, 0, __ATOMIC_SEQ_CST) == 0)
        return;
    const bool kept_off = helper_keep_off(helper, &all);
    futex_wake(&helper->asleep);
    if (kept_off)
        (void)pthread_setaffinity_np(helper->thread, sizeof all, &all);
}

/* Helper number i is helper[i - 1]. */
static void helpers_wake(int number, int threads)
{
    for (int i = 2 * number + 1; i <= 2 * number + 2 && i < threads; i++)
        helper_wake(&pool.helper[i - 1]);
}

/* Waits for the parts that others have taken. */
static void left_wait(bool spin)
{
    for (const uint64_t end = spin_end(&pool.spins, spin); spin && now_ns() < end;)
        for (int i = 0; i < LOOKS; i++) {
            if (__atomic_load_n(&pool.left, __ATOMIC_ACQUIRE) == 0)
                return;
            relax();
        }
    __atomic_store_n(&pool.waits, 1, __ATOMIC_SEQ_CST);
    for (uint32_t left; (left = __atomic_load_n(&pool.left, __ATOMIC_SEQ_CST)) > 0;)
        futex_wait(&pool.left, left);
    __atomic_store_n(&pool.waits, 0, __ATOMIC_RELAXED);
}

/* ---- parts ---- */

static bool part_take(uint64_t loop, int part)
{
    const uint64_t number = loop_number(loop);
    uint64_t last = __atomic_load_n(&pool.taken[part], __ATOMIC_RELAXED);
    return last < number && __atomic_compare_exchange_n(&pool.taken[part], &last, number, false,
                                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Does parts until none is left to take; how many it did. */
static uint32_t take_parts(uint64_t loop, int number, bool helps)
{
    const int parts = loop_parts(loop), home = parts * number / loop_threads(loop);
    const struct threads_watch *watch = NULL;
    uint32_t done = 0;
    for (int i = 0; i < parts; i++) {
        const int part = home + i < parts ? home + i : home + i - parts;
        if (!part_take(loop, part))
            continue;
        if (done++ == 0 && helps && pool.of != NULL) {
            watch = pool.watch;
            watch->enter(pool.of);
        }
        pool.run(pool.job, part, parts);
    }
    if (watch != NULL)
        watch->leave();
    if (done > 0 && __atomic_sub_fetch(&pool.left, done, __ATOMIC_SEQ_CST) == 0 && helps &&
        __atomic_load_n(&pool.waits, __ATOMIC_SEQ_CST) != 0)
        futex_wake(&pool.left);
    return done;
}

static void *serve(void *self)
{
    struct helper *const helper = self;
    uint64_t loop = helper->seen;
    for (bool spin = false;;) {
        loop = loop_wait(helper, loop, spin);
        if (__atomic_load_n(&pool.stop, __ATOMIC_RELAXED))
            return NULL;
        const int threads = loop_threads(loop);
        spin = false;
        if (helper->number >= threads)
            continue;
        helpers_wake(helper->number, threads);
        spin = take_parts(loop, helper->number, true) > 0 &&
               threads <= __atomic_load_n(&processors, __ATOMIC_RELAXED);
    }
}

/* The child of a fork has the memory of the pool, and none of its threads. */
static void forget(void)
{
    pool.busy = false;
    pool.n_helpers = 0;
    pool.left = 0;
    processors = 0;
}

static void prepare(void)
{
    pthread_atfork(NULL, NULL, forget);
}

/* Makes threads until there are n. They take no signal of the program's, but for that of profilers,
 * which is sent to a thread to ask what it does. */
static void make_threads(int n)
{
    sigset_t all, before;
    pthread_attr_t attr;
    pthread_once(&prepared, prepare);
    if (pthread_attr_init(&attr) != 0)
        return;
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all);
    sigdelset(&all, SIGPROF);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; pool.n_helpers < n; pool.n_helpers++) {
        struct helper *const helper = &pool.helper[pool.n_helpers];
        helper->asleep = 0;
        helper->number = pool.n_helpers + 1;
        helper->seen = pool.loop;
        if (pthread_create(&helper->thread, &attr, serve, helper) != 0)
            break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
}

uint64_t threads_spins(void)
{
    uint64_t spins = __atomic_load_n(&pool.spins, __ATOMIC_RELAXED);
    for (int i = 0; i < MOST; i++)
        spins += __atomic_load_n(&pool.helper[i].spins, __ATOMIC_RELAXED);
    return spins;
}

/* Publishes the next loop; what describes it was written before. */
static uint64_t loop_begin(int parts, int threads)
{
    const uint64_t number = loop_number(pool.loop) + 1;
    const uint64_t loop =
        (number << PARTS_BITS | (unsigned)parts) << THREADS_BITS | (unsigned)threads;
    __atomic_store_n(&pool.loop, loop, __ATOMIC_SEQ_CST);
    return loop;
}

void threads_run(int parts, threads_part *run, void *job)
{
    const int most = parts > 1 && parts <= THREADS_MOST_PARTS ? threads_most() : 1;
    if (most == 1 || __atomic_exchange_n(&pool.busy, true, __ATOMIC_ACQUIRE)) {
        for (int part = 0; part < parts; part++)
            run(job, part, parts);
        return;
    }
    int threads = parts < most ? parts : most;
    if (pool.n_helpers < threads - 1 && !pool.stop)
        make_threads(threads - 1);
    if (threads > pool.n_helpers + 1)
        threads = pool.n_helpers + 1;
    const struct threads_watch *const watch = __atomic_load_n(&watched, __ATOMIC_ACQUIRE);
    pool.watch = watch;
    pool.of = watch ? watch->caller() : NULL;
    pool.run = run;
    pool.job = job;
    const bool spin = threads <= processors_count();
    __atomic_store_n(&pool.left, (uint32_t)parts, __ATOMIC_RELAXED);
    const uint64_t loop = loop_begin(parts, threads);
    helpers_wake(0, threads);
    (void)take_parts(loop, 0, false);
    if (__atomic_load_n(&pool.left, __ATOMIC_ACQUIRE) > 0)
        left_wait(spin);
    __atomic_store_n(&pool.busy, false, __ATOMIC_RELEASE);
}

/* The library is unloaded, or the process ends: no thread may run its code any more. */
static __attribute__((destructor)) void end(void)
{
    if (__atomic_exchange_n(&pool.busy, true, __ATOMIC_ACQUIRE))
        return; /* another thread computes while the process ends */
    __atomic_store_n(&pool.stop, true, __ATOMIC_RELAXED);
    (void)loop_begin(0, 0);
    for (; pool.n_helpers > 0; pool.n_helpers--) {
        struct helper *const helper = &pool.helper[pool.n_helpers - 1];
        helper_wake(helper);
        pthread_join(helper->thread, NULL);
    }
    __atomic_store_n(&pool.busy, false, __ATOMIC_RELEASE);
}
