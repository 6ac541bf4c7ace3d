/* gemm_complex.c: products of matrices of complex numbers by cblas_cgemm and cblas_zgemm.
 *
 * BLAS is never called with an extent of 0 or with a leading dimension that it would refuse.
 */
#include "gemm.h"

#include <cblas.h>
#include <limits.h>
#include <string.h>

static bool reads_rows(const struct gemm_matrix *a)
{
    return (a->column_stride == 1 || a->columns == 1) &&
           (a->rows == 1 || (a->row_stride >= a->columns && a->row_stride <= INT_MAX));
}

static struct gemm_matrix flipped(const struct gemm_matrix *a)
{
    return (struct gemm_matrix){a->data, a->columns, a->rows, a->column_stride, a->row_stride};
}

bool gemm_complex_fits(const struct gemm_matrix *a)
{
    const struct gemm_matrix other = flipped(a);
    return reads_rows(a) || reads_rows(&other);
}

/* How BLAS is to read a matrix. */
static CBLAS_TRANSPOSE reading(const struct gemm_matrix *a, int *leading)
{
    if (reads_rows(a)) {
        *leading = (int)(a->rows == 1 ? a->columns : a->row_stride);
        return CblasNoTrans;
    }
    *leading = (int)(a->columns == 1 ? a->rows : a->column_stride);
    return CblasTrans;
}

void gemm_complex_run(int dtype, const struct gemm_matrix *a, const struct gemm_matrix *b,
                      const struct gemm_matrix *c)
{
    static const float one_32[] = {1, 0}, zero_32[] = {0, 0};
    static const double one_64[] = {1, 0}, zero_64[] = {0, 0};
    const int m = (int)c->rows, n = (int)c->columns, k = (int)a->columns;
    if (m == 0 || n == 0)
        return;
    if (k == 0) {
        memset(c->data, 0, 2 * (size_t)m * (size_t)n * kernel_dtype_bytes(dtype));
        return;
    }
    int leading_a, leading_b;
    const CBLAS_TRANSPOSE of_a = reading(a, &leading_a), of_b = reading(b, &leading_b);
    /* A complex multiplication is four. */
    const int threads = gemm_threads_limit(4 * (int64_t)m, k, n);
    if (dtype == KERNEL_F32)
        cblas_cgemm(CblasRowMajor, of_a, of_b, m, n, k, one_32, a->data, leading_a, b->data,
                    leading_b, zero_32, c->data, n);
    else
        cblas_zgemm(CblasRowMajor, of_a, of_b, m, n, k, one_64, a->data, leading_a, b->data,
                    leading_b, zero_64, c->data, n);
    gemm_threads_restore(threads);
}
