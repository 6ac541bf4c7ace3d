/* lapack.c: LAPACK by its Fortran symbols, which OpenBLAS exports, and triangular solves by CBLAS.
 *
 * Work lengths are the documented minimum, or the block size times an extent where the blocked
 * algorithm is known to want that.
 */
#include "lapack.h"
#include "gemm.h"

#include <cblas.h>

enum { BLOCK = 64 }; /* at least LAPACK's block sizes (ILAENV), so that no routine is unblocked */

/* Fortran passes the lengths of strings behind the other arguments. */
#define ROUTINES(prefix, T)                                                                        \
    extern void prefix##potrf_(const char *uplo, const int *n, T *a, const int *lda, int *info,    \
                               size_t length);                                                     \
    extern void prefix##getrf_(const int *m, const int *n, T *a, const int *lda, int *pivot,       \
                               int *info);                                                         \
    extern void prefix##getri_(const int *n, T *a, const int *lda, const int *pivot, T *work,      \
                               const int *lwork, int *info);                                       \
    extern void prefix##gelqf_(const int *m, const int *n, T *a, const int *lda, T *tau, T *work,  \
                               const int *lwork, int *info);                                       \
    extern void prefix##orglq_(const int *m, const int *n, const int *k, T *a, const int *lda,     \
                               const T *tau, T *work, const int *lwork, int *info);                \
    extern void prefix##syevd_(const char *job, const char *uplo, const int *n, T *a,              \
                               const int *lda, T *w, T *work, const int *lwork, int *integers,     \
                               const int *n_integers, int *info, size_t length,                    \
                               size_t other_length);                                               \
    extern void prefix##gesdd_(const char *job, const int *m, const int *n, T *a, const int *lda,  \
                               T *s, T *u, const int *ldu, T *vt, const int *ldvt, T *work,        \
                               const int *lwork, int *integers, int *info, size_t length);
ROUTINES(s, float)
ROUTINES(d, double)

/* The routine of this dtype. */
#define CALL(routine, ...)                                                                         \
    do {                                                                                           \
        if (dtype == KERNEL_F32)                                                                   \
            s##routine(__VA_ARGS__);                                                               \
        else                                                                                       \
            d##routine(__VA_ARGS__);                                                               \
    } while (0)

int lapack_cholesky(int dtype, int n, void *a)
{
    int info = 0;
    const int threads = gemm_threads_limit(n, n, n);
    CALL(potrf_, "U", &n, a, &n, &info, 1);
    gemm_threads_restore(threads);
    return info;
}

int lapack_lu(int dtype, int n, void *a, int *pivot)
{
    int info = 0;
    const int threads = gemm_threads_limit(n, n, n);
    CALL(getrf_, &n, &n, a, &n, pivot, &info);
    gemm_threads_restore(threads);
    return info;
}

size_t lapack_inverse_work(int n)
{
    return (size_t)BLOCK * (size_t)n;
}

int lapack_inverse(int dtype, int n, void *a, const int *pivot, void *work)
{
    int info = 0;
    const int length = (int)lapack_inverse_work(n);
    const int threads = gemm_threads_limit(n, n, n);
    CALL(getri_, &n, a, &n, pivot, work, &length, &info);
    gemm_threads_restore(threads);
    return info;
}

size_t lapack_qr_work(int m, int n)
{
    return (size_t)BLOCK * (size_t)(m > n ? m : n);
}

int lapack_qr(int dtype, int m, int n, void *a, void *tau, void *work)
{
    int info = 0;
    const int length = (int)lapack_qr_work(m, n), threads = gemm_threads_limit(m, n, n);
    CALL(gelqf_, &n, &m, a, &n, tau, work, &length, &info);
    gemm_threads_restore(threads);
    return info;
}

int lapack_unpack_q(int dtype, int m, int k, void *q, const void *tau, void *work)
{
    int info = 0;
    const int length = (int)lapack_qr_work(m, k), threads = gemm_threads_limit(m, k, k);
    CALL(orglq_, &k, &m, &k, q, &k, tau, work, &length, &info);
    gemm_threads_restore(threads);
    return info;
}

size_t lapack_eigh_work(int n)
{
    return 1 + 6 * (size_t)n + 2 * (size_t)n * (size_t)n;
}

size_t lapack_eigh_integers(int n)
{
    return 3 + 5 * (size_t)n;
}

int lapack_eigh(int dtype, int n, void *a, void *w, void *work, int *integers)
{
    int info = 0;
    const int length = (int)lapack_eigh_work(n), n_integers = (int)lapack_eigh_integers(n);
    const int threads = gemm_threads_limit(n, n, n);
    CALL(syevd_, "V", "U", &n, a, &n, w, work, &length, integers, &n_integers, &info, 1, 1);
    gemm_threads_restore(threads);
    return info;
}

size_t lapack_svd_work(int m, int n)
{
    const size_t least = (size_t)(m < n ? m : n), most = (size_t)(m < n ? n : m);
    return 4 * least * least + 7 * least + most + (size_t)BLOCK * (least + most);
}

int lapack_svd(int dtype, int m, int n, void *a, void *u, void *s, void *vh, void *work,
               int *integers)
{
    int info = 0;
    const int k = m < n ? m : n, length = (int)lapack_svd_work(m, n);
    const int threads = gemm_threads_limit(m, n, n);
    CALL(gesdd_, "S", &n, &m, a, &n, s, vh, &n, u, &k, work, &length, integers, &info, 1);
    gemm_threads_restore(threads);
    return info;
}

/* What CBLAS calls the triangle. */
struct triangle_names {
    CBLAS_UPLO uplo;
    CBLAS_TRANSPOSE op;
    CBLAS_DIAG diagonal;
};

static struct triangle_names names_of(const struct lapack_triangle *t)
{
    return (struct triangle_names){t->upper ? CblasUpper : CblasLower,
                                   t->transposed ? CblasTrans : CblasNoTrans,
                                   t->unit ? CblasUnit : CblasNonUnit};
}

void lapack_solve_triangular(int dtype, const struct lapack_triangle *t, bool right, int k, void *b,
                             int leading_b)
{
    const int rows = right ? k : t->n, columns = right ? t->n : k;
    const struct triangle_names c = names_of(t);
    const CBLAS_SIDE side = right ? CblasRight : CblasLeft;
    const int threads = gemm_threads_limit(t->n, t->n, k);
    if (rows > 0 && columns > 0 && dtype == KERNEL_F32) {
        if (!right && k == 1 && leading_b == 1)
            cblas_strsv(CblasRowMajor, c.uplo, c.op, c.diagonal, rows, t->data, t->leading, b, 1);
        else
            cblas_strsm(CblasRowMajor, side, c.uplo, c.op, c.diagonal, rows, columns, 1, t->data,
                        t->leading, b, leading_b);
    } else if (rows > 0 && columns > 0) {
        if (!right && k == 1 && leading_b == 1)
            cblas_dtrsv(CblasRowMajor, c.uplo, c.op, c.diagonal, rows, t->data, t->leading, b, 1);
        else
            cblas_dtrsm(CblasRowMajor, side, c.uplo, c.op, c.diagonal, rows, columns, 1, t->data,
                        t->leading, b, leading_b);
    }
    gemm_threads_restore(threads);
}

void lapack_multiply_triangular(int dtype, const struct lapack_triangle *t, int k, void *b,
                                int leading_b)
{
    const struct triangle_names c = names_of(t);
    const int threads = gemm_threads_limit(t->n, t->n, k);
    if (dtype == KERNEL_F32)
        cblas_strmm(CblasRowMajor, CblasLeft, c.uplo, c.op, c.diagonal, t->n, k, 1, t->data,
                    t->leading, b, leading_b);
    else
        cblas_dtrmm(CblasRowMajor, CblasLeft, c.uplo, c.op, c.diagonal, t->n, k, 1, t->data,
                    t->leading, b, leading_b);
    gemm_threads_restore(threads);
}

void lapack_product(int dtype, enum lapack_update update, struct lapack_extents extents,
                    struct lapack_matrix a, struct lapack_matrix b, void *c, int leading_c)
{
    const CBLAS_TRANSPOSE op_a = a.turned ? CblasTrans : CblasNoTrans;
    const CBLAS_TRANSPOSE op_b = b.turned ? CblasTrans : CblasNoTrans;
    const int m = extents.m, n = extents.n, k = extents.k;
    const float sign = update == LAPACK_SUBTRACT ? -1 : 1, kept = update == LAPACK_SET ? 0 : 1;
    if (m == 0 || n == 0 || k == 0)
        return;
    const int threads = gemm_threads_limit(m, k, n);
    if (dtype == KERNEL_F32)
        cblas_sgemm(CblasRowMajor, op_a, op_b, m, n, k, sign, a.data, a.leading, b.data, b.leading,
                    kept, c, leading_c);
    else
        cblas_dgemm(CblasRowMajor, op_a, op_b, m, n, k, (double)sign, a.data, a.leading, b.data,
                    b.leading, (double)kept, c, leading_c);
    gemm_threads_restore(threads);
}
