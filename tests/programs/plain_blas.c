/* plain_blas.c: BLAS and LAPACK in plain C, compiled by `tapescope cc`: gradients are those of
 * loops that compute the same. REAL: double or float; NAME(x): its functions' letter before x.
 *
 * Each case is computed twice from the same variables, in all layouts, transpositions, halves and
 * by Fortran's names, with all operands variables and with some. Both have all of the memory
 * behind them in their sum, so a result without an index, or an operand with one, is seen.
 */
#include <tapescope/ad_plain.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef OF_FLOATS
#define REAL float
#define NAME(x) s##x
#define CBLAS(x) cblas_s##x
#define LAPACKE(x) LAPACKE_s##x
#define NEAR 2e-4
#define ABS fabsf
#define SQRT sqrtf
#else
#define REAL double
#define NAME(x) d##x
#define CBLAS(x) cblas_d##x
#define LAPACKE(x) LAPACKE_d##x
#define NEAR 1e-11
#define ABS fabs
#define SQRT sqrt
#endif

REAL CBLAS(dot)(int, const REAL *, int, const REAL *, int);
REAL CBLAS(nrm2)(int, const REAL *, int);
REAL CBLAS(asum)(int, const REAL *, int);
void CBLAS(axpy)(int, REAL, const REAL *, int, REAL *, int);
void CBLAS(scal)(int, REAL, REAL *, int);
void CBLAS(copy)(int, const REAL *, int, REAL *, int);
void CBLAS(swap)(int, REAL *, int, REAL *, int);
void CBLAS(gemv)(int, int, int, int, REAL, const REAL *, int, const REAL *, int, REAL, REAL *, int);
void CBLAS(ger)(int, int, int, REAL, const REAL *, int, const REAL *, int, REAL *, int);
void CBLAS(symv)(int, int, int, REAL, const REAL *, int, const REAL *, int, REAL, REAL *, int);
void CBLAS(syr)(int, int, int, REAL, const REAL *, int, REAL *, int);
void CBLAS(trmv)(int, int, int, int, int, const REAL *, int, REAL *, int);
void CBLAS(trsv)(int, int, int, int, int, const REAL *, int, REAL *, int);
void CBLAS(gemm)(int, int, int, int, int, int, REAL, const REAL *, int, const REAL *, int, REAL,
                 REAL *, int);
void CBLAS(symm)(int, int, int, int, int, REAL, const REAL *, int, const REAL *, int, REAL, REAL *,
                 int);
void CBLAS(syrk)(int, int, int, int, int, REAL, const REAL *, int, REAL, REAL *, int);
void CBLAS(trmm)(int, int, int, int, int, int, int, REAL, const REAL *, int, REAL *, int);
void CBLAS(trsm)(int, int, int, int, int, int, int, REAL, const REAL *, int, REAL *, int);

REAL NAME(dot_)(const int *, const REAL *, const int *, const REAL *, const int *);
REAL NAME(nrm2_)(const int *, const REAL *, const int *);
REAL NAME(asum_)(const int *, const REAL *, const int *);
void NAME(axpy_)(const int *, const REAL *, const REAL *, const int *, REAL *, const int *);
void NAME(scal_)(const int *, const REAL *, REAL *, const int *);
void NAME(copy_)(const int *, const REAL *, const int *, REAL *, const int *);
void NAME(swap_)(const int *, REAL *, const int *, REAL *, const int *);
void NAME(gemv_)(const char *, const int *, const int *, const REAL *, const REAL *, const int *,
                 const REAL *, const int *, const REAL *, REAL *, const int *);
void NAME(ger_)(const int *, const int *, const REAL *, const REAL *, const int *, const REAL *,
                const int *, REAL *, const int *);
void NAME(symv_)(const char *, const int *, const REAL *, const REAL *, const int *, const REAL *,
                 const int *, const REAL *, REAL *, const int *);
void NAME(syr_)(const char *, const int *, const REAL *, const REAL *, const int *, REAL *,
                const int *);
void NAME(trmv_)(const char *, const char *, const char *, const int *, const REAL *, const int *,
                 REAL *, const int *);
void NAME(trsv_)(const char *, const char *, const char *, const int *, const REAL *, const int *,
                 REAL *, const int *);
void NAME(gemm_)(const char *, const char *, const int *, const int *, const int *, const REAL *,
                 const REAL *, const int *, const REAL *, const int *, const REAL *, REAL *,
                 const int *);
void NAME(symm_)(const char *, const char *, const int *, const int *, const REAL *, const REAL *,
                 const int *, const REAL *, const int *, const REAL *, REAL *, const int *);
void NAME(syrk_)(const char *, const char *, const int *, const int *, const REAL *, const REAL *,
                 const int *, const REAL *, REAL *, const int *);
void NAME(trmm_)(const char *, const char *, const char *, const char *, const int *, const int *,
                 const REAL *, const REAL *, const int *, REAL *, const int *);
void NAME(trsm_)(const char *, const char *, const char *, const char *, const int *, const int *,
                 const REAL *, const REAL *, const int *, REAL *, const int *);

void CBLAS(spmv)(int, int, int, REAL, const REAL *, const REAL *, int, REAL, REAL *, int);
void CBLAS(spr)(int, int, int, REAL, const REAL *, int, REAL *);
void CBLAS(tpmv)(int, int, int, int, int, const REAL *, REAL *, int);
void CBLAS(tpsv)(int, int, int, int, int, const REAL *, REAL *, int);
void NAME(spmv_)(const char *, const int *, const REAL *, const REAL *, const REAL *, const int *,
                 const REAL *, REAL *, const int *);
void NAME(spr_)(const char *, const int *, const REAL *, const REAL *, const int *, REAL *);
void NAME(tpmv_)(const char *, const char *, const char *, const int *, const REAL *, REAL *,
                 const int *);
void NAME(tpsv_)(const char *, const char *, const char *, const int *, const REAL *, REAL *,
                 const int *);

int LAPACKE(getrf)(int, int, int, REAL *, int, int *);
int LAPACKE(getrs)(int, char, int, int, const REAL *, int, const int *, REAL *, int);
int LAPACKE(getri)(int, int, REAL *, int, const int *);
int LAPACKE(gesv)(int, int, int, REAL *, int, int *, REAL *, int);
int LAPACKE(potrf)(int, char, int, REAL *, int);
int LAPACKE(potrs)(int, char, int, int, const REAL *, int, REAL *, int);
int LAPACKE(posv)(int, char, int, int, REAL *, int, REAL *, int);
int LAPACKE(trtrs)(int, char, char, char, int, int, const REAL *, int, REAL *, int);
void NAME(getrf_)(const int *, const int *, REAL *, const int *, int *, int *);
void NAME(getrs_)(const char *, const int *, const int *, const REAL *, const int *, const int *,
                  REAL *, const int *, int *);
void NAME(getri_)(const int *, REAL *, const int *, const int *, REAL *, const int *, int *);
void NAME(gesv_)(const int *, const int *, REAL *, const int *, int *, REAL *, const int *, int *);
void NAME(potrf_)(const char *, const int *, REAL *, const int *, int *);
void NAME(potrs_)(const char *, const int *, const int *, const REAL *, const int *, REAL *,
                  const int *, int *);
void NAME(posv_)(const char *, const int *, const int *, REAL *, const int *, REAL *, const int *,
                 int *);
void NAME(trtrs_)(const char *, const char *, const char *, const int *, const int *, const REAL *,
                  const int *, REAL *, const int *, int *);
int LAPACKE(potri)(int, char, int, REAL *, int);
int LAPACKE(pptrf)(int, char, int, REAL *);
int LAPACKE(pptri)(int, char, int, REAL *);
int LAPACKE(pptrs)(int, char, int, int, const REAL *, REAL *, int);
int LAPACKE(ppsv)(int, char, int, int, REAL *, REAL *, int);
int LAPACKE(stev)(int, char, int, REAL *, REAL *, REAL *, int);
void NAME(stev_)(const char *, const int *, REAL *, REAL *, REAL *, const int *, REAL *, int *);
void NAME(potri_)(const char *, const int *, REAL *, const int *, int *);
void NAME(pptrf_)(const char *, const int *, REAL *, int *);
void NAME(pptri_)(const char *, const int *, REAL *, int *);
void NAME(pptrs_)(const char *, const int *, const int *, const REAL *, REAL *, const int *, int *);
void NAME(ppsv_)(const char *, const int *, const int *, REAL *, REAL *, const int *, int *);

enum { ROOM = 40, VARIABLES = 3 * ROOM + 2, M = 3, N = 4, K = 2, LD = 6 };

struct operands {
    REAL a[ROOM], b[ROOM], c[ROOM], alpha, beta;
};

/* How a case is called: the layout, and Fortran's letters. */
struct how {
    enum { ROW, COLUMN, FORTRAN } api;
    char ta, tb, half, diagonal, side;
    bool loops; /* computed by loops */
};

static const int ld = LD, m = M, n = N, k = K, three = 3;

static int layout_of(const struct how *h)
{
    return h->api == ROW ? 101 : 102;
}

static int option(char c)
{
    return c == 'N' ? 111 : c == 'T' ? 112 : c == 'U' ? 121 : c == 'L' ? 122 : 0;
}

static int diagonal_of(const struct how *h)
{
    return h->diagonal == 'U' ? 132 : 131;
}

static int side_of(const struct how *h)
{
    return h->side == 'L' ? 141 : 142;
}

/* Element (i, j) of a matrix, or of its transpose. */
static int at(const struct how *h, char trans, int i, int j)
{
    const bool rows = (h->api == ROW) != (trans == 'T');
    return rows ? i * LD + j : i + j * LD;
}

/* Whether (i, j) of a matrix that is not transposed lies in its half. */
static bool in_half(const struct how *h, int i, int j)
{
    return h->half == 'L' ? i >= j : i <= j;
}

static REAL symmetric(const struct how *h, const REAL *a, int i, int j)
{
    return in_half(h, i, j) ? a[at(h, 'N', i, j)] : a[at(h, 'N', j, i)];
}

/* (i, j) of op(a), a triangle. */
static REAL triangle(const struct how *h, const REAL *a, int i, int j)
{
    if (i == j && h->diagonal == 'U')
        return 1;
    const bool inside = h->ta == 'T' ? in_half(h, j, i) : in_half(h, i, j);
    return inside ? a[at(h, h->ta, i, j)] : 0;
}

/* ---- vectors; steps 2 and -1 ---- */

static void dot(struct operands *o, const struct how *h)
{
    const int two = 2, back = -1;
    REAL sum = 0;
    if (h->loops)
        for (int i = 0; i < n; i++)
            sum += o->a[2 * i] * o->b[n - 1 - i];
    else
        sum = h->api == FORTRAN ? NAME(dot_)(&n, o->a, &two, o->b, &back)
                                : CBLAS(dot)(n, o->a, two, o->b, back);
    o->c[3] = sum * o->alpha;
}

static void nrm2(struct operands *o, const struct how *h)
{
    const int two = 2;
    REAL sum = 0;
    if (h->loops) {
        for (int i = 0; i < n; i++)
            sum += o->a[2 * i] * o->a[2 * i];
        sum = SQRT(sum);
    } else {
        sum = h->api == FORTRAN ? NAME(nrm2_)(&n, o->a, &two) : CBLAS(nrm2)(n, o->a, two);
    }
    o->c[3] = sum * o->alpha;
}

static void asum(struct operands *o, const struct how *h)
{
    const int two = 2;
    REAL sum = 0;
    if (h->loops)
        for (int i = 0; i < n; i++)
            sum += ABS(o->a[2 * i]);
    else
        sum = h->api == FORTRAN ? NAME(asum_)(&n, o->a, &two) : CBLAS(asum)(n, o->a, two);
    o->c[3] = sum * o->alpha;
}

static void axpy(struct operands *o, const struct how *h)
{
    const int two = 2, back = -1;
    if (h->loops)
        for (int i = 0; i < n; i++)
            o->b[2 * i] += o->alpha * o->a[n - 1 - i];
    else if (h->api == FORTRAN)
        NAME(axpy_)(&n, &o->alpha, o->a, &back, o->b, &two);
    else
        CBLAS(axpy)(n, o->alpha, o->a, back, o->b, two);
}

static void scal(struct operands *o, const struct how *h)
{
    if (h->loops)
        for (int i = 0; i < n; i++)
            o->b[3 * i] *= o->alpha;
    else if (h->api == FORTRAN)
        NAME(scal_)(&n, &o->alpha, o->b, &three);
    else
        CBLAS(scal)(n, o->alpha, o->b, three);
}

static void copy(struct operands *o, const struct how *h)
{
    const int two = 2, back = -1;
    if (h->loops)
        for (int i = 0; i < n; i++)
            o->b[2 * i] = o->a[n - 1 - i];
    else if (h->api == FORTRAN)
        NAME(copy_)(&n, o->a, &back, o->b, &two);
    else
        CBLAS(copy)(n, o->a, back, o->b, two);
}

static void swap(struct operands *o, const struct how *h)
{
    const int two = 2, back = -1;
    if (h->loops)
        for (int i = 0; i < n; i++) {
            const REAL was = o->b[2 * i];
            o->b[2 * i] = o->a[n - 1 - i];
            o->a[n - 1 - i] = was;
        }
    else if (h->api == FORTRAN)
        NAME(swap_)(&n, o->a, &back, o->b, &two);
    else
        CBLAS(swap)(n, o->a, back, o->b, two);
}

/* ---- a matrix and vectors ---- */

static void gemv(struct operands *o, const struct how *h)
{
    const int two = 2, back = -1, rows = h->ta == 'T' ? n : m, inner = h->ta == 'T' ? m : n;
    if (h->loops) {
        for (int i = 0; i < rows; i++) {
            REAL sum = 0;
            for (int j = 0; j < inner; j++)
                sum += o->a[at(h, h->ta, i, j)] * o->b[2 * j];
            o->c[rows - 1 - i] = o->alpha * sum + o->beta * o->c[rows - 1 - i];
        }
    } else if (h->api == FORTRAN) {
        NAME(gemv_)(&h->ta, &m, &n, &o->alpha, o->a, &ld, o->b, &two, &o->beta, o->c, &back);
    } else {
        CBLAS(gemv)
        (layout_of(h), option(h->ta), m, n, o->alpha, o->a, ld, o->b, two, o->beta, o->c, back);
    }
}

static void ger(struct operands *o, const struct how *h)
{
    const int two = 2, back = -1;
    if (h->loops)
        for (int i = 0; i < m; i++)
            for (int j = 0; j < n; j++)
                o->c[at(h, 'N', i, j)] += o->alpha * o->a[2 * i] * o->b[n - 1 - j];
    else if (h->api == FORTRAN)
        NAME(ger_)(&m, &n, &o->alpha, o->a, &two, o->b, &back, o->c, &ld);
    else
        CBLAS(ger)(layout_of(h), m, n, o->alpha, o->a, two, o->b, back, o->c, ld);
}

static void symv(struct operands *o, const struct how *h)
{
    const int two = 2, back = -1;
    if (h->loops) {
        for (int i = 0; i < n; i++) {
            REAL sum = 0;
            for (int j = 0; j < n; j++)
                sum += symmetric(h, o->a, i, j) * o->b[2 * j];
            o->c[n - 1 - i] = o->alpha * sum + o->beta * o->c[n - 1 - i];
        }
    } else if (h->api == FORTRAN) {
        NAME(symv_)(&h->half, &n, &o->alpha, o->a, &ld, o->b, &two, &o->beta, o->c, &back);
    } else {
        CBLAS(symv)
        (layout_of(h), option(h->half), n, o->alpha, o->a, ld, o->b, two, o->beta, o->c, back);
    }
}

static void syr(struct operands *o, const struct how *h)
{
    const int two = 2;
    if (h->loops) {
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                if (in_half(h, i, j))
                    o->c[at(h, 'N', i, j)] += o->alpha * o->a[2 * i] * o->a[2 * j];
    } else if (h->api == FORTRAN) {
        NAME(syr_)(&h->half, &n, &o->alpha, o->a, &two, o->c, &ld);
    } else {
        CBLAS(syr)(layout_of(h), option(h->half), n, o->alpha, o->a, two, o->c, ld);
    }
}

static void trmv(struct operands *o, const struct how *h)
{
    const int two = 2;
    if (h->loops) {
        REAL y[N];
        for (int i = 0; i < n; i++) {
            y[i] = 0;
            for (int j = 0; j < n; j++)
                y[i] += triangle(h, o->a, i, j) * o->b[2 * j];
        }
        for (int i = 0; i < n; i++)
            o->b[2 * i] = y[i];
    } else if (h->api == FORTRAN) {
        NAME(trmv_)(&h->half, &h->ta, &h->diagonal, &n, o->a, &ld, o->b, &two);
    } else {
        CBLAS(trmv)
        (layout_of(h), option(h->half), option(h->ta), diagonal_of(h), n, o->a, ld, o->b, two);
    }
}

/* x = op(a)^-1 x, of a triangle; elements of x lie `step` apart. */
static void solve(const struct how *h, const REAL *a, int size, REAL *x, int step)
{
    const bool lower = (h->half == 'L') != (h->ta == 'T');
    for (int k0 = 0; k0 < size; k0++) {
        const int i = lower ? k0 : size - 1 - k0;
        REAL sum = x[i * step];
        for (int j = lower ? 0 : i + 1; j < (lower ? i : size); j++)
            sum -= triangle(h, a, i, j) * x[j * step];
        x[i * step] = sum / triangle(h, a, i, i);
    }
}

static void trsv(struct operands *o, const struct how *h)
{
    const int two = 2;
    if (h->loops)
        solve(h, o->a, n, o->b, 2);
    else if (h->api == FORTRAN)
        NAME(trsv_)(&h->half, &h->ta, &h->diagonal, &n, o->a, &ld, o->b, &two);
    else
        CBLAS(trsv)
    (layout_of(h), option(h->half), option(h->ta), diagonal_of(h), n, o->a, ld, o->b, two);
}

/* ---- matrices ---- */

static void gemm(struct operands *o, const struct how *h)
{
    if (h->loops) {
        for (int i = 0; i < m; i++)
            for (int j = 0; j < n; j++) {
                REAL sum = 0;
                for (int p = 0; p < k; p++)
                    sum += o->a[at(h, h->ta, i, p)] * o->b[at(h, h->tb, p, j)];
                REAL *c = &o->c[at(h, 'N', i, j)];
                *c = o->alpha * sum + o->beta * *c;
            }
    } else if (h->api == FORTRAN) {
        NAME(gemm_)
        (&h->ta, &h->tb, &m, &n, &k, &o->alpha, o->a, &ld, o->b, &ld, &o->beta, o->c, &ld);
    } else {
        CBLAS(gemm)
        (layout_of(h), option(h->ta), option(h->tb), m, n, k, o->alpha, o->a, ld, o->b, ld, o->beta,
         o->c, ld);
    }
}

/* What is in c is not read. */
static void gemm_into(struct operands *o, const struct how *h)
{
    if (h->loops) {
        for (int i = 0; i < m; i++)
            for (int j = 0; j < n; j++) {
                REAL sum = 0;
                for (int p = 0; p < k; p++)
                    sum += o->a[at(h, h->ta, i, p)] * o->b[at(h, h->tb, p, j)];
                o->c[at(h, 'N', i, j)] = sum;
            }
    } else if (h->api == FORTRAN) {
        const REAL one = 1, none = 0;
        NAME(gemm_)(&h->ta, &h->tb, &m, &n, &k, &one, o->a, &ld, o->b, &ld, &none, o->c, &ld);
    } else {
        CBLAS(gemm)
        (layout_of(h), option(h->ta), option(h->tb), m, n, k, 1, o->a, ld, o->b, ld, 0, o->c, ld);
    }
}

static void symm(struct operands *o, const struct how *h)
{
    if (h->loops) {
        for (int i = 0; i < m; i++)
            for (int j = 0; j < n; j++) {
                REAL sum = 0;
                for (int p = 0; p < (h->side == 'L' ? m : n); p++)
                    sum += h->side == 'L' ? symmetric(h, o->a, i, p) * o->b[at(h, 'N', p, j)]
                                          : o->b[at(h, 'N', i, p)] * symmetric(h, o->a, p, j);
                REAL *c = &o->c[at(h, 'N', i, j)];
                *c = o->alpha * sum + o->beta * *c;
            }
    } else if (h->api == FORTRAN) {
        NAME(symm_)
        (&h->side, &h->half, &m, &n, &o->alpha, o->a, &ld, o->b, &ld, &o->beta, o->c, &ld);
    } else {
        CBLAS(symm)
        (layout_of(h), side_of(h), option(h->half), m, n, o->alpha, o->a, ld, o->b, ld, o->beta,
         o->c, ld);
    }
}

static void syrk(struct operands *o, const struct how *h)
{
    if (h->loops) {
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                REAL sum = 0, *c = &o->c[at(h, 'N', i, j)];
                for (int p = 0; p < k; p++)
                    sum += o->a[at(h, h->ta, i, p)] * o->a[at(h, h->ta, j, p)];
                if (in_half(h, i, j))
                    *c = o->alpha * sum + o->beta * *c;
            }
    } else if (h->api == FORTRAN) {
        NAME(syrk_)(&h->half, &h->ta, &n, &k, &o->alpha, o->a, &ld, &o->beta, o->c, &ld);
    } else {
        CBLAS(syrk)
        (layout_of(h), option(h->half), option(h->ta), n, k, o->alpha, o->a, ld, o->beta, o->c, ld);
    }
}

static void trmm(struct operands *o, const struct how *h)
{
    if (h->loops) {
        REAL y[M][N];
        for (int i = 0; i < m; i++)
            for (int j = 0; j < n; j++) {
                y[i][j] = 0;
                for (int p = 0; p < (h->side == 'L' ? m : n); p++)
                    y[i][j] += h->side == 'L' ? triangle(h, o->a, i, p) * o->b[at(h, 'N', p, j)]
                                              : o->b[at(h, 'N', i, p)] * triangle(h, o->a, p, j);
            }
        for (int i = 0; i < m; i++)
            for (int j = 0; j < n; j++)
                o->b[at(h, 'N', i, j)] = o->alpha * y[i][j];
    } else if (h->api == FORTRAN) {
        NAME(trmm_)
        (&h->side, &h->half, &h->ta, &h->diagonal, &m, &n, &o->alpha, o->a, &ld, o->b, &ld);
    } else {
        CBLAS(trmm)
        (layout_of(h), side_of(h), option(h->half), option(h->ta), diagonal_of(h), m, n, o->alpha,
         o->a, ld, o->b, ld);
    }
}

/* Many systems from the left, or from the right: the transposed ones. */
static void systems(const struct how *h, const REAL *a, REAL *b, int rows, int columns)
{
    struct how own = *h;
    const bool left = h->side == 'L';
    if (!left)
        own.ta = h->ta == 'T' ? 'N' : 'T';
    for (int j = 0; j < (left ? columns : rows); j++)
        solve(&own, a, left ? rows : columns, &b[left ? at(h, 'N', 0, j) : at(h, 'N', j, 0)],
              left ? at(h, 'N', 1, 0) : at(h, 'N', 0, 1));
}

static void trsm(struct operands *o, const struct how *h)
{
    if (h->loops) {
        for (int i = 0; i < m; i++)
            for (int j = 0; j < n; j++)
                o->b[at(h, 'N', i, j)] *= o->alpha;
        systems(h, o->a, o->b, m, n);
    } else if (h->api == FORTRAN) {
        NAME(trsm_)
        (&h->side, &h->half, &h->ta, &h->diagonal, &m, &n, &o->alpha, o->a, &ld, o->b, &ld);
    } else {
        CBLAS(trsm)
        (layout_of(h), side_of(h), option(h->half), option(h->ta), diagonal_of(h), m, n, o->alpha,
         o->a, ld, o->b, ld);
    }
}

/* ---- LAPACK ---- */

static int pivot[N];

static void loops_lu(const struct how *h, REAL *a)
{
    for (int p = 0; p < n; p++) {
        int best = p;
        for (int i = p + 1; i < n; i++)
            if (ABS(a[at(h, 'N', i, p)]) > ABS(a[at(h, 'N', best, p)]))
                best = i;
        pivot[p] = best + 1;
        for (int j = 0; best != p && j < n; j++) {
            const REAL was = a[at(h, 'N', p, j)];
            a[at(h, 'N', p, j)] = a[at(h, 'N', best, j)];
            a[at(h, 'N', best, j)] = was;
        }
        for (int i = p + 1; i < n; i++) {
            a[at(h, 'N', i, p)] /= a[at(h, 'N', p, p)];
            for (int j = p + 1; j < n; j++)
                a[at(h, 'N', i, j)] -= a[at(h, 'N', i, p)] * a[at(h, 'N', p, j)];
        }
    }
}

static void exchange(const struct how *h, REAL *b, int columns, bool back)
{
    for (int p = 0; p < n; p++) {
        const int i = back ? n - 1 - p : p, other = pivot[i] - 1;
        for (int j = 0; other != i && j < columns; j++) {
            const REAL was = b[at(h, 'N', i, j)];
            b[at(h, 'N', i, j)] = b[at(h, 'N', other, j)];
            b[at(h, 'N', other, j)] = was;
        }
    }
}

static void loops_lu_solve(const struct how *h, const REAL *lu, REAL *b, int columns)
{
    struct how lower = *h, upper = *h;
    lower.half = 'L', lower.diagonal = 'U', lower.side = 'L';
    upper.half = 'U', upper.diagonal = 'N', upper.side = 'L';
    if (h->ta == 'N') {
        exchange(h, b, columns, false);
        systems(&lower, lu, b, n, columns);
        systems(&upper, lu, b, n, columns);
    } else {
        systems(&upper, lu, b, n, columns);
        systems(&lower, lu, b, n, columns);
        exchange(h, b, columns, true);
    }
}

static void loops_cholesky(const struct how *h, REAL *a)
{
    /* The lower factor in the half that is read: the other is its transpose. */
    const char t = h->half == 'L' ? 'N' : 'T';
    for (int j = 0; j < n; j++)
        for (int i = j; i < n; i++) {
            REAL sum = a[at(h, t, i, j)];
            for (int p = 0; p < j; p++)
                sum -= a[at(h, t, i, p)] * a[at(h, t, j, p)];
            a[at(h, t, i, j)] = i == j ? SQRT(sum) : sum / a[at(h, t, j, j)];
        }
}

static void loops_cholesky_solve(const struct how *h, const REAL *a, REAL *b, int columns)
{
    struct how of = *h;
    of.side = 'L', of.diagonal = 'N';
    of.ta = h->half == 'L' ? 'N' : 'T';
    systems(&of, a, b, n, columns);
    of.ta = h->half == 'L' ? 'T' : 'N';
    systems(&of, a, b, n, columns);
}

/* The matrix of a system has no large diagonal, so rows are exchanged. */
static void exchanged(struct operands *o, const struct how *h)
{
    for (int i = 0; i < n; i++)
        o->a[at(h, 'N', i, (i + 1) % n)] += 3;
}

static void definite(struct operands *o, const struct how *h)
{
    for (int i = 0; i < n; i++)
        o->a[at(h, 'N', i, i)] += 5;
}

static void getrf(struct operands *o, const struct how *h)
{
    int info = 0;
    exchanged(o, h);
    if (h->loops)
        loops_lu(h, o->a);
    else if (h->api == FORTRAN)
        NAME(getrf_)(&n, &n, o->a, &ld, pivot, &info);
    else
        info = LAPACKE(getrf)(layout_of(h), n, n, o->a, ld, pivot);
    o->c[1] += (REAL)info;
}

/* With factors that were computed: what is solved depends on the matrix by them. */
static void getrs(struct operands *o, const struct how *h)
{
    int info = 0;
    getrf(o, h);
    if (h->loops)
        loops_lu_solve(h, o->a, o->b, k);
    else if (h->api == FORTRAN)
        NAME(getrs_)(&h->ta, &n, &k, o->a, &ld, pivot, o->b, &ld, &info);
    else
        info = LAPACKE(getrs)(layout_of(h), h->ta, n, k, o->a, ld, pivot, o->b, ld);
    o->c[1] += (REAL)info;
}

static void getri(struct operands *o, const struct how *h)
{
    int info = 0;
    getrf(o, h);
    if (h->loops) {
        REAL inverse[ROOM] = {0};
        for (int i = 0; i < n; i++)
            inverse[i * (LD + 1)] = 1;
        loops_lu_solve(h, o->a, inverse, n);
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                o->a[at(h, 'N', i, j)] = inverse[at(h, 'N', i, j)];
    } else if (h->api == FORTRAN) {
        const int asks = -1;
        REAL need[1], *work;
        NAME(getri_)(&n, o->a, &ld, pivot, need, &asks, &info);
        const int length = (int)need[0];
        work = malloc((size_t)length * sizeof *work);
        work[0] = o->alpha; /* what is written over it is a constant */
        NAME(getri_)(&n, o->a, &ld, pivot, work, &length, &info);
        o->c[1] += 0 * work[0];
        free(work);
    } else {
        info = LAPACKE(getri)(layout_of(h), n, o->a, ld, pivot);
    }
    o->c[1] += (REAL)info;
}

static void gesv(struct operands *o, const struct how *h)
{
    int info = 0;
    exchanged(o, h);
    if (h->loops) {
        loops_lu(h, o->a);
        loops_lu_solve(h, o->a, o->b, k);
    } else if (h->api == FORTRAN) {
        NAME(gesv_)(&n, &k, o->a, &ld, pivot, o->b, &ld, &info);
    } else {
        info = LAPACKE(gesv)(layout_of(h), n, k, o->a, ld, pivot, o->b, ld);
    }
    o->c[1] += (REAL)info;
}

static void potrf(struct operands *o, const struct how *h)
{
    int info = 0;
    definite(o, h);
    if (h->loops)
        loops_cholesky(h, o->a);
    else if (h->api == FORTRAN)
        NAME(potrf_)(&h->half, &n, o->a, &ld, &info);
    else
        info = LAPACKE(potrf)(layout_of(h), h->half, n, o->a, ld);
    o->c[1] += (REAL)info;
}

static void potrs(struct operands *o, const struct how *h)
{
    int info = 0;
    potrf(o, h);
    if (h->loops)
        loops_cholesky_solve(h, o->a, o->b, k);
    else if (h->api == FORTRAN)
        NAME(potrs_)(&h->half, &n, &k, o->a, &ld, o->b, &ld, &info);
    else
        info = LAPACKE(potrs)(layout_of(h), h->half, n, k, o->a, ld, o->b, ld);
    o->c[1] += (REAL)info;
}

static void posv(struct operands *o, const struct how *h)
{
    int info = 0;
    definite(o, h);
    if (h->loops) {
        loops_cholesky(h, o->a);
        loops_cholesky_solve(h, o->a, o->b, k);
    } else if (h->api == FORTRAN) {
        NAME(posv_)(&h->half, &n, &k, o->a, &ld, o->b, &ld, &info);
    } else {
        info = LAPACKE(posv)(layout_of(h), h->half, n, k, o->a, ld, o->b, ld);
    }
    o->c[1] += (REAL)info;
}

static void trtrs(struct operands *o, const struct how *h)
{
    int info = 0;
    struct how left = *h;
    left.side = 'L';
    definite(o, h);
    if (h->loops)
        systems(&left, o->a, o->b, n, k);
    else if (h->api == FORTRAN)
        NAME(trtrs_)(&h->half, &h->ta, &h->diagonal, &n, &k, o->a, &ld, o->b, &ld, &info);
    else
        info = LAPACKE(trtrs)(layout_of(h), h->half, h->ta, h->diagonal, n, k, o->a, ld, o->b, ld);
    o->c[1] += (REAL)info;
}

static void potri(struct operands *o, const struct how *h)
{
    int info = 0;
    potrf(o, h);
    if (h->loops) {
        REAL inverse[ROOM] = {0};
        for (int i = 0; i < n; i++)
            inverse[i * (LD + 1)] = 1;
        loops_cholesky_solve(h, o->a, inverse, n);
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                if (in_half(h, i, j))
                    o->a[at(h, 'N', i, j)] = inverse[at(h, 'N', i, j)];
    } else if (h->api == FORTRAN) {
        NAME(potri_)(&h->half, &n, o->a, &ld, &info);
    } else {
        info = LAPACKE(potri)(layout_of(h), h->half, n, o->a, ld);
    }
    o->c[1] += (REAL)info;
}

/* ---- one half of a matrix, packed ---- */

typedef void computation(struct operands *, const struct how *);

/* Element (i, j), by counting those before it. */
static int packed(const struct how *h, int i, int j)
{
    int before = 0;
    for (int slow = 0; slow < n; slow++)
        for (int fast = 0; fast < n; fast++) {
            const int row = h->api == ROW ? slow : fast, column = h->api == ROW ? fast : slow;
            if (row == i && column == j)
                return before;
            before += in_half(h, row, column);
        }
    return before;
}

/* The same by loops, with the matrix of n rows in a, or in c, in its place. */
static void unpacked(struct operands *o, const struct how *h, computation *of_full, bool in_c)
{
    struct operands full = *o;
    REAL *p = in_c ? o->c : o->a, *q = in_c ? full.c : full.a;
    REAL kept[ROOM];
    for (int i = 0; i < ROOM; i++)
        kept[i] = p[i];
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            if (in_half(h, i, j))
                q[at(h, 'N', i, j)] = p[packed(h, i, j)];
    of_full(&full, h);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            if (in_half(h, i, j))
                kept[packed(h, i, j)] = q[at(h, 'N', i, j)];
    *o = full;
    for (int i = 0; i < ROOM; i++)
        p[i] = kept[i];
}

static void add_to_diagonal(REAL *a, const struct how *h, REAL x)
{
    for (int i = 0; i < n; i++)
        a[packed(h, i, i)] += x;
}

static void spmv(struct operands *o, const struct how *h)
{
    const int two = 2, back = -1;
    if (h->loops)
        unpacked(o, h, symv, false);
    else if (h->api == FORTRAN)
        NAME(spmv_)(&h->half, &n, &o->alpha, o->a, o->b, &two, &o->beta, o->c, &back);
    else
        CBLAS(spmv)
    (layout_of(h), option(h->half), n, o->alpha, o->a, o->b, two, o->beta, o->c, back);
}

static void spr(struct operands *o, const struct how *h)
{
    const int two = 2;
    if (h->loops)
        unpacked(o, h, syr, true);
    else if (h->api == FORTRAN)
        NAME(spr_)(&h->half, &n, &o->alpha, o->a, &two, o->c);
    else
        CBLAS(spr)(layout_of(h), option(h->half), n, o->alpha, o->a, two, o->c);
}

static void tpmv(struct operands *o, const struct how *h)
{
    const int two = 2;
    if (h->loops)
        unpacked(o, h, trmv, false);
    else if (h->api == FORTRAN)
        NAME(tpmv_)(&h->half, &h->ta, &h->diagonal, &n, o->a, o->b, &two);
    else
        CBLAS(tpmv)
    (layout_of(h), option(h->half), option(h->ta), diagonal_of(h), n, o->a, o->b, two);
}

static void tpsv(struct operands *o, const struct how *h)
{
    const int two = 2;
    add_to_diagonal(o->a, h, 3);
    if (h->loops)
        unpacked(o, h, trsv, false);
    else if (h->api == FORTRAN)
        NAME(tpsv_)(&h->half, &h->ta, &h->diagonal, &n, o->a, o->b, &two);
    else
        CBLAS(tpsv)
    (layout_of(h), option(h->half), option(h->ta), diagonal_of(h), n, o->a, o->b, two);
}

/* What potrf() of full ones adds to the diagonal. */
static void pptrf(struct operands *o, const struct how *h)
{
    int info = 0;
    if (h->loops) {
        unpacked(o, h, potrf, false);
        return;
    }
    add_to_diagonal(o->a, h, 5);
    if (h->api == FORTRAN)
        NAME(pptrf_)(&h->half, &n, o->a, &info);
    else
        info = LAPACKE(pptrf)(layout_of(h), h->half, n, o->a);
    o->c[1] += (REAL)info;
}

static void pptri(struct operands *o, const struct how *h)
{
    int info = 0;
    if (h->loops) {
        unpacked(o, h, potri, false);
        return;
    }
    pptrf(o, h);
    if (h->api == FORTRAN)
        NAME(pptri_)(&h->half, &n, o->a, &info);
    else
        info = LAPACKE(pptri)(layout_of(h), h->half, n, o->a);
    o->c[1] += (REAL)info;
}

static void pptrs(struct operands *o, const struct how *h)
{
    int info = 0;
    if (h->loops) {
        unpacked(o, h, potrs, false);
        return;
    }
    pptrf(o, h);
    if (h->api == FORTRAN)
        NAME(pptrs_)(&h->half, &n, &k, o->a, o->b, &ld, &info);
    else
        info = LAPACKE(pptrs)(layout_of(h), h->half, n, k, o->a, o->b, ld);
    o->c[1] += (REAL)info;
}

static void ppsv(struct operands *o, const struct how *h)
{
    int info = 0;
    if (h->loops) {
        unpacked(o, h, posv, false);
        return;
    }
    add_to_diagonal(o->a, h, 5);
    if (h->api == FORTRAN)
        NAME(ppsv_)(&h->half, &n, &k, o->a, o->b, &ld, &info);
    else
        info = LAPACKE(ppsv)(layout_of(h), h->half, n, k, o->a, o->b, ld);
    o->c[1] += (REAL)info;
}

/* ---- eigenvalues ---- */

/* Those of the tridiagonal matrix of a and b, by Jacobi's rotations, in rising order. */
static void loops_eigenvalues(REAL *d, REAL *e)
{
    REAL s[N][N] = {{0}};
    for (int i = 0; i < n; i++) {
        s[i][i] = d[i];
        if (i > 0)
            s[i][i - 1] = s[i - 1][i] = e[i - 1];
    }
    for (int sweep = 0; sweep < 6; sweep++)
        for (int p = 0; p < n; p++)
            for (int q = p + 1; q < n; q++) {
                if (ABS(s[p][q]) < (REAL)1e-15) /* an eigenvalue has its square */
                    continue;
                const REAL half = (s[q][q] - s[p][p]) / (2 * s[p][q]);
                const REAL t = (half < 0 ? -1 : 1) / (ABS(half) + SQRT(half * half + 1));
                const REAL c = 1 / SQRT(t * t + 1), r = t * c;
                for (int i = 0; i < n; i++) {
                    const REAL x = s[i][p], y = s[i][q];
                    s[i][p] = c * x - r * y;
                    s[i][q] = r * x + c * y;
                }
                for (int i = 0; i < n; i++) {
                    const REAL x = s[p][i], y = s[q][i];
                    s[p][i] = c * x - r * y;
                    s[q][i] = r * x + c * y;
                }
            }
    for (int i = 0; i < n; i++) {
        int least = i;
        for (int j = i; j < n; j++)
            if (s[j][j] < s[least][least])
                least = j;
        d[i] = s[least][least];
        s[least][least] = s[i][i];
    }
}

static void stev(struct operands *o, const struct how *h)
{
    int info = 0;
    for (int i = 0; i < n; i++)
        o->a[i] += (REAL)i; /* so that they lie apart */
    if (h->loops)
        loops_eigenvalues(o->a, o->b);
    else if (h->api == FORTRAN)
        NAME(stev_)("N", &n, o->a, o->b, NULL, &ld, NULL, &info);
    else
        info = LAPACKE(stev)(layout_of(h), 'N', n, o->a, o->b, NULL, ld);
    o->c[1] += (REAL)info;
    for (int i = 0; i < n - 1; i++)
        o->b[i] = 0; /* which is destroyed */
}

/* A function that is called by its address. */
static void pointed(struct operands *o, const struct how *h)
{
    REAL (*volatile f)(int, const REAL *, int, const REAL *, int) = CBLAS(dot);
    REAL sum = 0;
    if (h->loops)
        for (int i = 0; i < n; i++)
            sum += o->a[i] * o->b[i];
    else
        sum = f(n, o->a, 1, o->b, 1);
    o->c[3] = sum * o->alpha;
}

/* ---- all of them ---- */

static const struct {
    const char *name;
    computation *compute;
    const char *options; /* what of struct how it depends on: a, b, half, diagonal, side */
} cases[] = {{"dot", dot, ""},       {"nrm2", nrm2, ""},      {"asum", asum, ""},
             {"axpy", axpy, ""},     {"scal", scal, ""},      {"copy", copy, ""},
             {"swap", swap, ""},     {"gemv", gemv, "a"},     {"ger", ger, ""},
             {"symv", symv, "h"},    {"syr", syr, "h"},       {"trmv", trmv, "ahd"},
             {"trsv", trsv, "ahd"},  {"gemm", gemm, "ab"},    {"gemm_into", gemm_into, "ab"},
             {"symm", symm, "hs"},   {"syrk", syrk, "ah"},    {"trmm", trmm, "ahds"},
             {"trsm", trsm, "ahds"}, {"getrf", getrf, ""},    {"getrs", getrs, "a"},
             {"getri", getri, ""},   {"gesv", gesv, ""},      {"potrf", potrf, "h"},
             {"potrs", potrs, "h"},  {"posv", posv, "h"},     {"trtrs", trtrs, "ahd"},
             {"potri", potri, "h"},  {"spmv", spmv, "h"},     {"spr", spr, "h"},
             {"tpmv", tpmv, "ahd"},  {"tpsv", tpsv, "ahd"},   {"pptrf", pptrf, "h"},
             {"pptri", pptri, "h"},  {"pptrs", pptrs, "h"},   {"ppsv", ppsv, "h"},
             {"stev", stev, ""},     {"pointed", pointed, ""}};

/* What of the operands are variables: a bit for each of a, b, c, alpha, beta. */
static double summed(const double *x, const double *constant, unsigned variable,
                     computation *compute, const struct how *h)
{
    struct operands o;
    REAL *const all = (REAL *)&o;
    double sum = 0;
    for (int i = 0; i < VARIABLES; i++) {
        const unsigned part = i < 3 * ROOM ? (unsigned)i / ROOM : 3 + (unsigned)(i - 3 * ROOM);
        all[i] = (REAL)(variable >> part & 1 ? x[i] : constant[i]);
    }
    for (int i = 0; i < LD; i++)
        o.a[i * (LD + 1) < ROOM ? i * (LD + 1) : 0] += 2;
    compute(&o, h);
    for (int i = 0; i < VARIABLES; i++)
        sum += (double)all[i] * all[i] * (1 + i % 7) + (double)all[i] * (i % 5);
    return sum;
}

static double gradient(ad_tape tape, const double *point, unsigned variable, computation *compute,
                       const struct how *h, double g[VARIABLES])
{
    double x[VARIABLES];
    ad_real key[VARIABLES];
    memcpy(x, point, sizeof x);
    ad_tape_reset(tape);
    if (ad_plain_leaves(tape, VARIABLES, x, key) != AD_OK)
        exit(1);
    /* What is copied from now on has a newer tag than its value. */
    if (ad_tape_rewind(tape, ad_tape_mark(tape)) != AD_OK)
        exit(1);
    double y = summed(x, point, variable, compute, h);
    if (ad_plain_backward(tape, &y) != AD_OK ||
        ad_plain_gradients(tape, VARIABLES, key, g) != AD_OK) {
        printf("%s\n", ad_tape_message(tape));
        exit(1);
    }
    return y;
}

/* How far a gradient is from the difference along one direction; floats are too coarse for it. */
static double by_difference(const double *point, const double *g, computation *compute,
                            const struct how *h)
{
    double up[VARIABLES], down[VARIABLES], along = 0;
    const double step = 1e-6;
    for (int i = 0; i < VARIABLES; i++) {
        const double d = cos(2.3 * i);
        up[i] = point[i] + step * d;
        down[i] = point[i] - step * d;
        along += g[i] * d;
    }
    const double difference =
        (summed(up, up, 0, compute, h) - summed(down, down, 0, compute, h)) / (2 * step);
    return sizeof(REAL) < sizeof(double) ? 0 : fabs(along - difference) / (1 + fabs(difference));
}

static bool has(const char *options, char c)
{
    return strchr(options, c) != NULL;
}

int main(void)
{
    static const unsigned variables[] = {31, 1, 2, 4, 8, 16, 3, 27, 30};
    double point[VARIABLES];
    unsigned compared = 0, wrong = 0;
    ad_tape tape;
    ad_tape_create(&tape, NULL);
    for (int i = 0; i < VARIABLES; i++)
        point[i] = 0.3 + 0.6 * sin(1.7 * i + 0.4);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (unsigned v = 0; v < 3 << 5; v++) {
            const char *o = cases[c].options;
            static const char letters[] = "abhds";
            bool other = false;
            for (unsigned bit = 0; bit < 5; bit++)
                other |= (v >> bit & 1) && !has(o, letters[bit]);
            if (other)
                continue;
            struct how h = {.api = v >> 5,
                            .ta = v & 1 ? 'T' : 'N',
                            .tb = v & 2 ? 'T' : 'N',
                            .half = v & 4 ? 'L' : 'U',
                            .diagonal = v & 8 ? 'U' : 'N',
                            .side = v & 16 ? 'R' : 'L'};
            for (size_t k0 = 0; k0 < sizeof variables / sizeof *variables; k0++) {
                double g[VARIABLES], by_loops[VARIABLES], greatest = 1;
                h.loops = false;
                const double y = gradient(tape, point, variables[k0], cases[c].compute, &h, g);
                h.loops = true;
                const double z =
                    gradient(tape, point, variables[k0], cases[c].compute, &h, by_loops);
                for (int i = 0; i < VARIABLES; i++)
                    greatest = fmax(greatest, fabs(by_loops[i]));
                int bad = fabs(y - z) <= NEAR * fabs(z) ? -1 : VARIABLES;
                for (int i = 0; i < VARIABLES; i++)
                    if (!(fabs(g[i] - by_loops[i]) <= NEAR * greatest))
                        bad = i;
                h.loops = false;
                if (k0 == 0 && !(by_difference(point, g, cases[c].compute, &h) < 1e-7))
                    bad = VARIABLES;
                compared++;
                if (bad >= 0 && wrong++ < 40)
                    printf("%s api %d trans %c %c half %c diagonal %c side %c variables %u: "
                           "%.10g, by loops %.10g; by x[%d] %.10g, by loops %.10g\n",
                           cases[c].name, h.api, h.ta, h.tb, h.half, h.diagonal, h.side,
                           variables[k0], y, z, bad, bad < VARIABLES ? g[bad] : 0,
                           bad < VARIABLES ? by_loops[bad] : 0);
            }
        }
    printf("%u compared, %u wrong, %llu lost\n", compared, wrong,
           (unsigned long long)ad_plain_dropped());
    ad_tape_destroy(tape);
    return wrong > 0 || ad_plain_dropped() > 0;
}
