/* lapack.h: the routines of LAPACK and level-3 BLAS that ops of linear algebra are made of, in f32
 * and f64, on row-major matrices.
 *
 * Internal to kernels/. A row-major matrix is its transpose to LAPACK, which counts by columns;
 * each function says what it gives in row-major terms, so that no matrix is turned round. Each
 * call is held to one thread where memory is short (gemm.h). Extents are checked before: LAPACK
 * prints about arguments that it refuses. A status above 0 is LAPACK's `info`.
 */
#ifndef LAPACK_H
#define LAPACK_H

#include "kernel.h"

/* a [n,n] = l l^T, of which the lower triangle is read and overwritten by l. Above 0: the order of
 * the leading minor that is not positive. */
int lapack_cholesky(int dtype, int n, void *a);

/* a [n,n] P = l u with l lower triangular, u upper with a diagonal of ones, both in place of a; P
 * exchanges column i with column pivot[i] - 1, for i = 0, 1, ... Above 0: the pivot that is 0. */
int lapack_lu(int dtype, int n, void *a, int *pivot);

/* The inverse in place of what lapack_lu left in a. work: lapack_inverse_work(n) elements. */
int lapack_inverse(int dtype, int n, void *a, const int *pivot, void *work);
size_t lapack_inverse_work(int n);

/* a [m,n] = q r with k = min(m, n): r [k,n] upper triangular, in the upper triangle of a, and q
 * [m,k], packed: for lapack_unpack_q. work: lapack_qr_work(m, n) elements, tau: k elements. */
int lapack_qr(int dtype, int m, int n, void *a, void *tau, void *work);
/* q [m,k], whose rows begin with the first k elements of a's rows. */
int lapack_unpack_q(int dtype, int m, int k, void *q, const void *tau, void *work);
size_t lapack_qr_work(int m, int n);

/* Eigenvalues w [n] in ascending order of the symmetric a [n,n], whose rows become the
 * eigenvectors. Above 0: it did not converge. */
int lapack_eigh(int dtype, int n, void *a, void *w, void *work, int *integers);
size_t lapack_eigh_work(int n);
size_t lapack_eigh_integers(int n);

/* a [m,n] = u diag(s) vh, k = min(m, n), u [m,k], s [k] descending, vh [k,n]; a is overwritten.
 * integers: 8 k. Above 0: it did not converge. */
int lapack_svd(int dtype, int m, int n, void *a, void *u, void *s, void *vh, void *work,
               int *integers);
size_t lapack_svd_work(int m, int n);

/* A triangular matrix t [n,n], rows `leading` elements apart. */
struct lapack_triangle {
    const void *data;
    int n, leading;
    bool upper, transposed, unit;
};

/* b [n,k] = op(t)^-1 b, or b [k,n] = b op(t)^-1 where `right`. */
void lapack_solve_triangular(int dtype, const struct lapack_triangle *t, bool right, int k, void *b,
                             int leading_b);

/* b [n,k] = op(t) b. */
void lapack_multiply_triangular(int dtype, const struct lapack_triangle *t, int k, void *b,
                                int leading_b);

/* A matrix whose rows are `leading` elements apart, to be read transposed where `turned`. */
struct lapack_matrix {
    const void *data;
    int leading;
    bool turned;
};

/* c [m,n], rows leading_c apart, is set to a b, or a b is added to or subtracted from it. */
enum lapack_update { LAPACK_SET, LAPACK_ADD, LAPACK_SUBTRACT };
struct lapack_extents {
    int m, n, k;
};
void lapack_product(int dtype, enum lapack_update update, struct lapack_extents extents,
                    struct lapack_matrix a, struct lapack_matrix b, void *c, int leading_c);

#endif
