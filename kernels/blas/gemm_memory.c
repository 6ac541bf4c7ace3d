/* gemm_memory.c: makes sure that OpenBLAS has memory for its buffers, and runs it on one thread
 * where there is no memory for more.
 *
 * OpenBLAS maps a buffer for the calling thread at its first product, and one for each worker when
 * the worker starts or first takes part in a product. It never frees them. If the system refuses,
 * it tries again for ever. So we first test that there is room for all buffers, and then run a
 * product that all threads share. We cannot ask which workers have a buffer already, so we test for
 * all of them; that may be more than is needed.
 */
#include "gemm.h"
#include "threads.h"

#include <cblas.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    THREAD_MIB = 128, /* BUFFER_SIZE of OpenBLAS on x86-64, measured with 0.3.21 */
    REST_MIB = 4,     /* for its queues, and what the process needs meanwhile */
    /* More than a million multiplications: for fewer, OpenBLAS may use neither threads nor buffers.
     * 64 rows for each of 16 threads. */
    M = 1024,
    N = 64,
    K = 16,
    /* A product of more multiplications may be shared among threads, for which OpenBLAS allocates
     * 516 KiB by malloc (for a most of 64 threads) and ends the process if it cannot. */
    SHARED = 200000,
    SHARING_BYTES = 1 << 20
};

/* The most threads that OpenBLAS has had in this process. They have their buffers. */
static int primed;

/* Whether OpenBLAS can have buffers for so many threads. */
static int find_room(int threads, char *error, size_t n)
{
    const size_t mib = (size_t)threads * THREAD_MIB + REST_MIB;
    void *p = mmap(NULL, mib << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        snprintf(error, n,
                 "no memory for OpenBLAS: %zu MiB of address space for its buffers (%d threads); "
                 "OPENBLAS_NUM_THREADS=1 needs the least",
                 mib, threads);
        return -1;
    }
    munmap(p, mib << 20);
    return 0;
}

/* A product in which all threads take part. */
static void share_product(int threads)
{
    static float a[M * K], b[K * N], c[M * N];
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, M, N, K, 1, a, K, b, N, 0, c, N);
    if (primed < threads)
        primed = threads;
}

int kernel_prime(char *error, size_t n)
{
    int threads = openblas_get_num_threads();
    if (threads < 1)
        threads = 1;
    if (find_room(threads, error, n) != 0)
        return -1;
    share_product(threads);
    return 0;
}

static void *wait_for_all(void *lock)
{
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
    return NULL;
}

/* Whether n threads can be created at once. OpenBLAS does not check that its own were. */
static bool try_threads(int n)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_t thread[KERNEL_MAX_THREADS];
    int made = 0;
    pthread_mutex_lock(&lock);
    while (made < n && pthread_create(&thread[made], NULL, wait_for_all, &lock) == 0)
        made++;
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < made; i++)
        pthread_join(thread[i], NULL);
    return made == n;
}

int kernel_set_threads(int n, char *error, size_t size)
{
    if (n > primed) {
        if (find_room(n, error, size) != 0)
            return -1;
        if (!try_threads(n - 1)) {
            snprintf(error, size, "%d threads cannot be made", n);
            return -1;
        }
    }
    openblas_set_num_threads(n);
    threads_ask(n);
    if (n > primed)
        share_product(n);
    return 0;
}

/* OpenBLAS on one thread; what is for gemm_threads_restore. */
static int hold(void)
{
    const int threads = openblas_get_num_threads();
    if (threads <= 1)
        return 0;
    threads_keep(threads);
    openblas_set_num_threads(1);
    return threads;
}

int gemm_threads_alone(int64_t m, int64_t k, int64_t n)
{
    return (double)m * (double)k * (double)n < SHARED ? 0 : hold();
}

int gemm_threads_limit(int64_t m, int64_t k, int64_t n)
{
    if ((double)m * (double)k * (double)n >= GEMM_WORTH_SHARING) {
        void *volatile p = malloc(SHARING_BYTES); /* volatile: or it would be left out */
        if (p) {
            free(p);
            return 0;
        }
    }
    return gemm_threads_alone(m, k, n);
}

void gemm_threads_restore(int threads)
{
    /* Another thread may have set it anew meanwhile. */
    if (!threads)
        return;
    openblas_set_num_threads(threads_asked() ? threads_asked() : threads);
    threads_keep(0);
}

int gemm_threads_hold(int callers)
{
    char error[192];
    return find_room(callers, error, sizeof error) != 0 ? -1 : hold();
}
