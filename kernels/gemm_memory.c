/* gemm_memory.c: OpenBLAS takes its buffers while there is memory for them, and does without
 * threads where there is none for those.
 *
 * May include: gemm.h, cblas. OpenBLAS maps a buffer for the calling thread with its first product
 * and one for each worker when that starts or has a first part in a product, keeps them for ever,
 * and tries again without end where it is refused. So the need is tried first, and then a product
 * is run that all threads share. Which workers have theirs already cannot be asked: the need of all
 * is tried, which is too much at worst.
 */
#include "gemm.h"

#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    THREAD_MIB = 128, /* BUFFER_SIZE of OpenBLAS on x86-64, measured with 0.3.21 */
    REST_MIB = 4,     /* for its queues, and what the process needs meanwhile */
    /* More than a million multiplications, or OpenBLAS may do without threads and buffers; 64
     * rows for each of 16 threads. */
    M = 1024,
    N = 64,
    K = 16,
    /* A product of more multiplications may be shared among threads, for which OpenBLAS allocates
     * 516 KiB by malloc (for a most of 64 threads) and ends the process if it cannot. */
    SHARED = 200000,
    SHARING_BYTES = 1 << 20
};

int kernel_prime(char *error, size_t n)
{
    static float a[M * K], b[K * N], c[M * N];
    int threads = openblas_get_num_threads();
    if (threads < 1)
        threads = 1;
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
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, M, N, K, 1, a, K, b, N, 0, c, N);
    return 0;
}

int gemm_threads_limit(int64_t m, int64_t k, int64_t n)
{
    if ((double)m * (double)k * (double)n < SHARED)
        return 0;
    const int threads = openblas_get_num_threads();
    if (threads <= 1)
        return 0;
    void *volatile p = malloc(SHARING_BYTES); /* volatile: or it would be left out */
    if (p) {
        free(p);
        return 0;
    }
    openblas_set_num_threads(1);
    return threads;
}

void gemm_threads_restore(int threads)
{
    if (threads)
        openblas_set_num_threads(threads);
}
