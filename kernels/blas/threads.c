/* threads.c: see threads.h.
 *
 * One loop at a time uses the pool. A thread that asks meanwhile runs its loop alone. If a thread
 * cannot be created, the pool works with fewer.
 */
#include "threads.h"

#include <cblas.h>
#include <pthread.h>
#include <signal.h>

enum {
    MOST = KERNEL_MAX_THREADS,
    /* Below, waking a thread costs about as much as it saves. */
    LEAST_BYTES = 1 << 20,
    STACK_BYTES = 512 << 10
};

static struct {
    pthread_mutex_t busy; /* held by whose loop has the pool, and while threads are made */
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t wake, done;
    pthread_t thread[MOST];
    int n_threads;
    bool stop;
    uint64_t loops; /* begun so far */
    threads_part *run;
    void *job;
    int parts, next, left; /* the part to be taken next; those not done yet */
    const struct threads_watch *watch;
    void *of; /* whose loop it is, for `watch`; NULL: nobody asks */
} pool = {.busy = PTHREAD_MUTEX_INITIALIZER,
          .lock = PTHREAD_MUTEX_INITIALIZER,
          .wake = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};

static int asked;                           /* atomic */
static const struct threads_watch *watched; /* atomic */
static pthread_once_t prepared = PTHREAD_ONCE_INIT;

int threads_asked(void)
{
    return __atomic_load_n(&asked, __ATOMIC_RELAXED);
}

int kernel_threads(void)
{
    const int n = threads_asked();
    return n ? n : openblas_get_num_threads();
}

void threads_ask(int n)
{
    __atomic_store_n(&asked, n, __ATOMIC_RELAXED);
}

void threads_watch(const struct threads_watch *watch)
{
    __atomic_store_n(&watched, watch, __ATOMIC_RELEASE);
}

int threads_parts(uint64_t bytes)
{
    if (__builtin_expect(bytes < LEAST_BYTES, 1))
        return 1;
    const int n = kernel_threads();
    return n < 1 ? 1 : n > MOST ? MOST : n;
}

/* Does parts until none is left to take. The lock is held before and after. */
static void take_parts(void)
{
    while (pool.next < pool.parts) {
        const int part = pool.next++, parts = pool.parts;
        threads_part *const run = pool.run;
        void *const job = pool.job;
        pthread_mutex_unlock(&pool.lock);
        run(job, part, parts);
        pthread_mutex_lock(&pool.lock);
        if (--pool.left == 0)
            pthread_cond_signal(&pool.done);
    }
}

static void *serve(void *nothing)
{
    (void)nothing;
    uint64_t seen = 0;
    pthread_mutex_lock(&pool.lock);
    while (!pool.stop) {
        if (pool.loops == seen) {
            pthread_cond_wait(&pool.wake, &pool.lock);
            continue;
        }
        seen = pool.loops;
        const struct threads_watch *const watch = pool.of ? pool.watch : NULL;
        void *const of = pool.of;
        if (!watch) {
            take_parts();
            continue;
        }
        pthread_mutex_unlock(&pool.lock);
        watch->enter(of);
        pthread_mutex_lock(&pool.lock);
        if (pool.loops == seen)
            take_parts();
        watch->leave();
    }
    pthread_mutex_unlock(&pool.lock);
    return NULL;
}

/* The child of a fork has the memory of the pool, and none of its threads. */
static void forget(void)
{
    pthread_mutex_init(&pool.busy, NULL);
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.wake, NULL);
    pthread_cond_init(&pool.done, NULL);
    pool.n_threads = 0;
    pool.parts = pool.next = pool.left = 0;
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
    while (pool.n_threads < n &&
           pthread_create(&pool.thread[pool.n_threads], &attr, serve, NULL) == 0)
        pool.n_threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
}

void threads_run(int parts, threads_part *run, void *job)
{
    if (parts <= 1 || pthread_mutex_trylock(&pool.busy) != 0) {
        for (int part = 0; part < parts; part++)
            run(job, part, parts);
        return;
    }
    if (pool.n_threads < parts - 1 && !pool.stop)
        make_threads(parts - 1);
    const struct threads_watch *const watch = __atomic_load_n(&watched, __ATOMIC_ACQUIRE);
    void *const of = watch ? watch->caller() : NULL;
    pthread_mutex_lock(&pool.lock);
    pool.watch = watch;
    pool.of = of;
    pool.run = run;
    pool.job = job;
    pool.next = 0;
    pool.left = pool.parts = parts;
    pool.loops++;
    /* A loop may have fewer parts than an earlier one: then some threads of the pool stay idle. */
    for (int i = 1; i < parts && i <= pool.n_threads; i++)
        pthread_cond_signal(&pool.wake);
    take_parts();
    while (pool.left > 0)
        pthread_cond_wait(&pool.done, &pool.lock);
    pool.parts = 0;
    pthread_mutex_unlock(&pool.lock);
    pthread_mutex_unlock(&pool.busy);
}

/* The library is unloaded, or the process ends: no thread may run its code any more. */
static __attribute__((destructor)) void end(void)
{
    if (pthread_mutex_trylock(&pool.busy) != 0)
        return; /* another thread computes while the process ends */
    pthread_mutex_lock(&pool.lock);
    pool.stop = true;
    pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.lock);
    for (; pool.n_threads > 0; pool.n_threads--)
        pthread_join(pool.thread[pool.n_threads - 1], NULL);
    pthread_mutex_unlock(&pool.busy);
}
