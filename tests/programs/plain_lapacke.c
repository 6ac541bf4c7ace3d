/* plain_lapacke.c: LAPACKE as far as plain_blas.c calls it, over LAPACK, for where the library is
 * not installed. Compiled by another compiler. */
#include <stdlib.h>

enum { ROW_MAJOR = 101 };

/* A copy column by column; or back. */
#define TYPE(s, T)                                                                                 \
    void s##getrf_(const int *, const int *, T *, const int *, int *, int *);                      \
    void s##getrs_(const char *, const int *, const int *, const T *, const int *, const int *,    \
                   T *, const int *, int *);                                                       \
    void s##getri_(const int *, T *, const int *, const int *, T *, const int *, int *);           \
    void s##gesv_(const int *, const int *, T *, const int *, int *, T *, const int *, int *);     \
    void s##potrf_(const char *, const int *, T *, const int *, int *);                            \
    void s##potrs_(const char *, const int *, const int *, const T *, const int *, T *,            \
                   const int *, int *);                                                            \
    void s##posv_(const char *, const int *, const int *, T *, const int *, T *, const int *,      \
                  int *);                                                                          \
    void s##trtrs_(const char *, const char *, const char *, const int *, const int *, const T *,  \
                   const int *, T *, const int *, int *);                                          \
    void s##potri_(const char *, const int *, T *, const int *, int *);                            \
    void s##pptrf_(const char *, const int *, T *, int *);                                         \
    void s##pptri_(const char *, const int *, T *, int *);                                         \
    void s##pptrs_(const char *, const int *, const int *, const T *, T *, const int *, int *);    \
    int LAPACKE_##s##potri(int, char, int, T *, int);                                              \
    int LAPACKE_##s##pptrf(int, char, int, T *);                                                   \
    int LAPACKE_##s##pptri(int, char, int, T *);                                                   \
    int LAPACKE_##s##pptrs(int, char, int, int, const T *, T *, int);                              \
    int LAPACKE_##s##ppsv(int, char, int, int, T *, T *, int);                                     \
    void s##stev_(const char *, const int *, T *, T *, T *, const int *, T *, int *);              \
    int LAPACKE_##s##stev(int, char, int, T *, T *, T *, int);                                     \
    int LAPACKE_##s##getrf(int, int, int, T *, int, int *);                                        \
    int LAPACKE_##s##getrs(int, char, int, int, const T *, int, const int *, T *, int);            \
    int LAPACKE_##s##getri(int, int, T *, int, const int *);                                       \
    int LAPACKE_##s##gesv(int, int, int, T *, int, int *, T *, int);                               \
    int LAPACKE_##s##potrf(int, char, int, T *, int);                                              \
    int LAPACKE_##s##potrs(int, char, int, int, const T *, int, T *, int);                         \
    int LAPACKE_##s##posv(int, char, int, int, T *, int, T *, int);                                \
    int LAPACKE_##s##trtrs(int, char, char, char, int, int, const T *, int, T *, int);             \
                                                                                                   \
    static T *s##_columns(int layout, int m, int n, const T *a, int lda)                           \
    {                                                                                              \
        T *c = malloc(sizeof *c * (size_t)(m * n + 1));                                            \
        for (int i = 0; c && i < m; i++)                                                           \
            for (int j = 0; j < n; j++)                                                            \
                c[i + j * m] = layout == ROW_MAJOR ? a[i * lda + j] : a[i + j * lda];              \
        return c;                                                                                  \
    }                                                                                              \
    /* half: 'A' all of it, else what LAPACK may have written. */                                  \
    static void s##_back(int layout, char half, int m, int n, T *c, T *a, int lda)                 \
    {                                                                                              \
        for (int i = 0; i < m; i++)                                                                \
            for (int j = 0; j < n; j++)                                                            \
                if (half == 'A' || (half == 'L' ? i >= j : i <= j))                                \
                    a[layout == ROW_MAJOR ? i * lda + j : i + j * lda] = c[i + j * m];             \
        free(c);                                                                                   \
    }                                                                                              \
                                                                                                   \
    int LAPACKE_##s##getrf(int layout, int m, int n, T *a, int lda, int *pivot)                    \
    {                                                                                              \
        int info;                                                                                  \
        T *c = s##_columns(layout, m, n, a, lda);                                                  \
        s##getrf_(&m, &n, c, &m, pivot, &info);                                                    \
        s##_back(layout, 'A', m, n, c, a, lda);                                                    \
        return info;                                                                               \
    }                                                                                              \
    int LAPACKE_##s##getrs(int layout, char t, int n, int k, const T *a, int lda,                  \
                           const int *pivot, T *b, int ldb)                                        \
    {                                                                                              \
        int info;                                                                                  \
        T *c = s##_columns(layout, n, n, a, lda), *x = s##_columns(layout, n, k, b, ldb);          \
        s##getrs_(&t, &n, &k, c, &n, pivot, x, &n, &info);                                         \
        s##_back(layout, 'A', n, k, x, b, ldb);                                                    \
        free(c);                                                                                   \
        return info;                                                                               \
    }                                                                                              \
    int LAPACKE_##s##getri(int layout, int n, T *a, int lda, const int *pivot)                     \
    {                                                                                              \
        int info, length = n * n;                                                                  \
        T *c = s##_columns(layout, n, n, a, lda), *work = malloc(sizeof *work * (size_t)length);   \
        s##getri_(&n, c, &n, pivot, work, &length, &info);                                         \
        s##_back(layout, 'A', n, n, c, a, lda);                                                    \
        free(work);                                                                                \
        return info;                                                                               \
    }                                                                                              \
    int LAPACKE_##s##gesv(int layout, int n, int k, T *a, int lda, int *pivot, T *b, int ldb)      \
    {                                                                                              \
        const int info = LAPACKE_##s##getrf(layout, n, n, a, lda, pivot);                          \
        return info ? info : LAPACKE_##s##getrs(layout, 'N', n, k, a, lda, pivot, b, ldb);         \
    }                                                                                              \
    int LAPACKE_##s##potrf(int layout, char half, int n, T *a, int lda)                            \
    {                                                                                              \
        int info;                                                                                  \
        T *c = s##_columns(layout, n, n, a, lda);                                                  \
        s##potrf_(&half, &n, c, &n, &info);                                                        \
        s##_back(layout, half, n, n, c, a, lda);                                                   \
        return info;                                                                               \
    }                                                                                              \
    int LAPACKE_##s##potrs(int layout, char half, int n, int k, const T *a, int lda, T *b,         \
                           int ldb)                                                                \
    {                                                                                              \
        int info;                                                                                  \
        T *c = s##_columns(layout, n, n, a, lda), *x = s##_columns(layout, n, k, b, ldb);          \
        s##potrs_(&half, &n, &k, c, &n, x, &n, &info);                                             \
        s##_back(layout, 'A', n, k, x, b, ldb);                                                    \
        free(c);                                                                                   \
        return info;                                                                               \
    }                                                                                              \
    int LAPACKE_##s##posv(int layout, char half, int n, int k, T *a, int lda, T *b, int ldb)       \
    {                                                                                              \
        const int info = LAPACKE_##s##potrf(layout, half, n, a, lda);                              \
        return info ? info : LAPACKE_##s##potrs(layout, half, n, k, a, lda, b, ldb);               \
    }                                                                                              \
    int LAPACKE_##s##trtrs(int layout, char half, char t, char diagonal, int n, int k, const T *a, \
                           int lda, T *b, int ldb)                                                 \
    {                                                                                              \
        int info;                                                                                  \
        T *c = s##_columns(layout, n, n, a, lda), *x = s##_columns(layout, n, k, b, ldb);          \
        s##trtrs_(&half, &t, &diagonal, &n, &k, c, &n, x, &n, &info);                              \
        s##_back(layout, 'A', n, k, x, b, ldb);                                                    \
        free(c);                                                                                   \
        return info;                                                                               \
    }                                                                                              \
    int LAPACKE_##s##potri(int layout, char half, int n, T *a, int lda)                            \
    {                                                                                              \
        int info;                                                                                  \
        T *c = s##_columns(layout, n, n, a, lda);                                                  \
        s##potri_(&half, &n, c, &n, &info);                                                        \
        s##_back(layout, half, n, n, c, a, lda);                                                   \
        return info;                                                                               \
    }                                                                                              \
    /* One half by rows is the other one of the transposed matrix by columns. */                   \
    int LAPACKE_##s##pptrf(int layout, char half, int n, T *a)                                     \
    {                                                                                              \
        int info;                                                                                  \
        const char of = layout == ROW_MAJOR ? (half == 'L' ? 'U' : 'L') : half;                    \
        s##pptrf_(&of, &n, a, &info);                                                              \
        return info;                                                                               \
    }                                                                                              \
    int LAPACKE_##s##pptri(int layout, char half, int n, T *a)                                     \
    {                                                                                              \
        int info;                                                                                  \
        const char of = layout == ROW_MAJOR ? (half == 'L' ? 'U' : 'L') : half;                    \
        s##pptri_(&of, &n, a, &info);                                                              \
        return info;                                                                               \
    }                                                                                              \
    int LAPACKE_##s##pptrs(int layout, char half, int n, int k, const T *a, T *b, int ldb)         \
    {                                                                                              \
        int info;                                                                                  \
        const char of = layout == ROW_MAJOR ? (half == 'L' ? 'U' : 'L') : half;                    \
        T *x = s##_columns(layout, n, k, b, ldb);                                                  \
        s##pptrs_(&of, &n, &k, a, x, &n, &info);                                                   \
        s##_back(layout, 'A', n, k, x, b, ldb);                                                    \
        return info;                                                                               \
    }                                                                                              \
    int LAPACKE_##s##ppsv(int layout, char half, int n, int k, T *a, T *b, int ldb)                \
    {                                                                                              \
        const int info = LAPACKE_##s##pptrf(layout, half, n, a);                                   \
        return info ? info : LAPACKE_##s##pptrs(layout, half, n, k, a, b, ldb);                    \
    }                                                                                              \
    int LAPACKE_##s##stev(int layout, char job, int n, T *d, T *e, T *z, int ldz)                  \
    {                                                                                              \
        int info;                                                                                  \
        (void)layout;                                                                              \
        s##stev_(&job, &n, d, e, z, &ldz, NULL, &info); /* without vectors */                      \
        return info;                                                                               \
    }
TYPE(d, double)
TYPE(s, float)
