/* gemm.h: matrix products of float matrices of any strides, by BLAS.
 *
 * Internal to kernels/. A matrix that BLAS can read in place, plain or transposed, is not copied;
 * others are copied into workspace.
 */
#ifndef GEMM_H
#define GEMM_H

#include "kernel.h"

struct gemm_matrix {
    void *data;
    int64_t rows, columns;
    int64_t row_stride, column_stride; /* elements */
};

/* The last two axes of a rank-2 array. */
struct gemm_matrix gemm_matrix_of(kernel_ref array);

/* An array of rank >= 1 as a matrix whose columns are the last axis. False if its strides do not
 * let the leading axes be folded; the matrix then has no strides. */
bool gemm_matrix_fold(kernel_ref array, struct gemm_matrix *matrix);

/* False if an extent is beyond what BLAS can count. */
bool gemm_fits(int64_t m, int64_t k, int64_t n);

size_t gemm_workspace(int dtype, const struct gemm_matrix *a, const struct gemm_matrix *b,
                      const struct gemm_matrix *c);

/* c = a b, or c += a b. Sizes of 0 are allowed everywhere. */
void gemm_run(int dtype, const struct gemm_matrix *a, const struct gemm_matrix *b,
              const struct gemm_matrix *c, bool accumulate, void *workspace);

/* c = start + a b, or a b where start is NULL. It has c's extents, any strides (0 along its rows
 * where one row serves all), and is c itself or apart from it. */
void gemm_run_from(int dtype, const struct gemm_matrix *a, const struct gemm_matrix *b,
                   const struct gemm_matrix *c, const struct gemm_matrix *start, void *workspace);

/* True if BLAS reads a matrix of complex numbers in place; its strides count complex numbers. */
bool gemm_complex_fits(const struct gemm_matrix *a);

/* c = a b for complex numbers (pairs of floats) and matrices that fit; c is dense. Sizes of 0 are
 * allowed everywhere. */
void gemm_complex_run(int dtype, const struct gemm_matrix *a, const struct gemm_matrix *b,
                      const struct gemm_matrix *c);

/* Rows, columns and depth of the pieces in which c [m,n] = op(a) [m,k] op(b) [k,n] is best
 * computed; where that is the whole, m, n and k. flip_a, flip_b: whether BLAS reads the operand
 * transposed. */
struct gemm_tile {
    int rows, columns, depth;
};
struct gemm_tile gemm_tile_of(int dtype, bool flip_a, bool flip_b, int m, int n, int k);

/* Whether OpenBLAS has kernels on this processor that read their operands in place, for so many
 * multiplications at most. Products of fewer rows are cut into pieces of that size, larger ones go
 * by panels. */
bool gemm_reads_in_place(void);
enum { GEMM_IN_PLACE = 1000000, GEMM_FEW_ROWS = 32 };

/* Multiplications from which a function of LAPACK is worth OpenBLAS' own threads, which wait for
 * each other by sched_yield: where cores are not free a product of a million took 47 times as long
 * by two of them as by one, and in the best case a quarter longer. Products of matrices are shared
 * by the pool of threads.h, where that gives the bits of one thread. */
enum { GEMM_WORTH_SHARING = 8 << 20 };

/* Around what OpenBLAS may share by threads of its own: where it is small, or memory is too short
 * for threads, OpenBLAS is held to one. What is returned is for gemm_threads_restore. */
int gemm_threads_limit(int64_t m, int64_t k, int64_t n);

/* Around a product by BLAS on the calling thread alone, likewise. */
int gemm_threads_alone(int64_t m, int64_t k, int64_t n);
void gemm_threads_restore(int threads);

/* Before products by so many threads at once: OpenBLAS is held to one thread for each. Returns what
 * is for gemm_threads_restore, or -1 where there is no memory for their buffers, and then nothing
 * has changed. */
int gemm_threads_hold(int callers);

#endif
