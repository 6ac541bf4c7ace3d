/* test_lapack_fails.c: what becomes of a call whose iteration does not converge in LAPACK.
 *
 * LAPACK converges for all that it is given here, so the program has its routines of that name,
 * which the library then calls: the n-th call from now on says that it has failed, every other one
 * is the real routine's.
 */
#include "matrix_case.h"
#include "run_cases.h"

#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int calls, failing; /* so far, and the one that fails, counted from 1 */

/* 1 into *info if this call is the one that fails. */
static bool fails(int *info)
{
    if (++calls != failing)
        return false;
    *info = 1;
    return true;
}

#define EIGH(name, T)                                                                              \
    typedef void name##type(const char *job, const char *uplo, const int *n, T *a, const int *lda, \
                            T *w, T *work, const int *lwork, int *integers, const int *n_integers, \
                            int *info, size_t length, size_t other_length);                        \
    name##type name;                                                                               \
    void name(const char *job, const char *uplo, const int *n, T *a, const int *lda, T *w,         \
              T *work, const int *lwork, int *integers, const int *n_integers, int *info,          \
              size_t length, size_t other_length)                                                  \
    {                                                                                              \
        name##type *real;                                                                          \
        *(void **)&real = dlsym(RTLD_NEXT, #name);                                                 \
        if (!fails(info))                                                                          \
            real(job, uplo, n, a, lda, w, work, lwork, integers, n_integers, info, length,         \
                 other_length);                                                                    \
    }
EIGH(ssyevd_, float)
EIGH(dsyevd_, double)

#define SVD(name, T)                                                                               \
    typedef void name##type(const char *job, const int *m, const int *n, T *a, const int *lda,     \
                            T *s, T *u, const int *ldu, T *vt, const int *ldvt, T *work,           \
                            const int *lwork, int *integers, int *info, size_t length);            \
    name##type name;                                                                               \
    void name(const char *job, const int *m, const int *n, T *a, const int *lda, T *s, T *u,       \
              const int *ldu, T *vt, const int *ldvt, T *work, const int *lwork, int *integers,    \
              int *info, size_t length)                                                            \
    {                                                                                              \
        name##type *real;                                                                          \
        *(void **)&real = dlsym(RTLD_NEXT, #name);                                                 \
        if (!fails(info))                                                                          \
            real(job, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork, integers, info, length);     \
    }
SVD(sgesdd_, float)
SVD(dgesdd_, double)

/* Sum of the eigenvalues or singular values of x, and its gradient in x. */
static double sum_of_values(bool svd, ad_tensor x, double *gradient)
{
    ad_tensor parts[3];
    double sum;
    if (svd)
        parts[0] = ad_svd(x, &parts[1], &parts[2]);
    else
        parts[1] = ad_eigh(x, &parts[2]);
    const ad_tensor y = ad_sum(parts[1]);
    matrix_read(y, &sum);
    ck_assert_int_eq(ad_backward(y), AD_OK);
    matrix_gradient(x, gradient);
    return sum;
}

/* Cases 0 to 3: eigh and svd, f64 and f32. */
TEST_EACH(an_iteration_that_does_not_converge_names_op_shape_matrix_and_line, 4)
{
    /* Diagonal matrices, of which the second fails. */
    static const double elements[] = {3, 0, 0, 2, 5, 0, 0, 1, 7, 0, 0, 4};
    const bool svd = _i % 2 != 0;
    const char *const dtype = _i < 2 ? "f64" : "f32";
    char text[200];
    double gradient[12];
    ad_stats before, after;
    matrix_begin(_i < 2 ? AD_F64 : AD_F32);
    const ad_tensor x = matrix_leaf(3, SHAPE(3, 2, 2), elements);
    ad_tensor parts[3];
    ad_tape_stats(matrix_tape(), &before);
    calls = 0;
    failing = 2;
    const int line = __LINE__ + 1;
    parts[0] = svd ? ad_svd(x, &parts[1], &parts[2]) : ad_eigh(x, &parts[1]);
    ck_assert_int_eq(calls, 2);
    ad_tape_stats(matrix_tape(), &after);
    ck_assert_uint_eq(after.values, before.values);
    ck_assert_uint_eq(after.records, before.records);
    ck_assert_uint_eq(after.live_bytes, before.live_bytes);
    snprintf(text, sizeof text, "test_lapack_fails.c:%d in ", line);
    ck_assert_msg(strstr(ad_tape_message(matrix_tape()), text) != NULL, "%s",
                  ad_tape_message(matrix_tape()));
    snprintf(text, sizeof text, "%s: %s [3,2,2]: matrix 1: LAPACK's iteration did not converge",
             svd ? "svd" : "eigh", dtype);
    matrix_refused(AD_ERROR_VALUE, text);

    /* The same again, with a LAPACK that converges. */
    ck_assert_double_eq_tol(sum_of_values(svd, x, gradient), 22, 22 * 8 * matrix_epsilon());
    for (int i = 0; i < 12; i++)
        ck_assert_double_eq_tol(gradient[i], i % 4 == 0 || i % 4 == 3, 8 * matrix_epsilon());
    matrix_end();
}

RUN_TESTS(NULL, NULL)
