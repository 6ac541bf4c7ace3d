/* plain_blas_lost.c: calls of BLAS and LAPACK that have no rule, and where calls stand. Compiled by
 * `tapescope cc`; OWN: a function of BLAS, compiled by it too. Prints how often each trap was said.
 */
#include <stdio.h>

#ifdef OWN
double cblas_ddot(int n, const double *x, int incx, const double *y, int incy);
double cblas_ddot(int n, const double *x, int incx, const double *y, int incy)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i * incx] * y[i * incy];
    return sum;
}
#else
#include <tapescope/ad_plain.h>

#include <string.h>

void cblas_drot(int n, double *x, int incx, double *y, int incy, double c, double s);
void dsyev_(const char *job, const char *half, const int *n, double *a, const int *lda, double *w,
            double *work, const int *length, int *info);
void cblas_dsyr2k(int layout, int half, int trans, int n, int k, double alpha, const double *a,
                  int lda, const double *b, int ldb, double beta, double *c, int ldc);
void dgetrf_(const int *m, const int *n, double *a, const int *lda, int *pivot, int *info);
void zscal_(const int *n, const double *alpha, double *x, const int *incx);
int cblas_idamax(int n, const double *x, int incx);
double cblas_ddot(int n, const double *x, int incx, const double *y, int incy);
void dpotrf_(const char *half, const int *n, double *a, const int *lda, int *info);
void cblas_dcopy(int n, const double *x, int incx, double *y, int incy);
double dnrm2_(const int *n, const double *x, const int *incx);

void dstev_(const char *job, const int *n, double *d, double *e, double *z, const int *ldz,
            double *work, int *info);

enum { FAR = 400, SIDE = 20 };

static double a[FAR], b[FAR], c[FAR];

/* The variable lies far behind the pointers. */
static double rotated(double x)
{
    a[FAR - 1] = x;
    cblas_drot(FAR, a, 1, b, 1, 0.6, 0.8);
    return b[FAR - 1];
}

static double rotated_by(double x)
{
    cblas_drot(FAR, a, 1, b, 1, x, 0.8);
    return b[0];
}

static double eigenvalues(double x)
{
    static double w[SIDE], work[FAR];
    const int n = SIDE, length = FAR;
    int info;
    for (int i = 0; i < FAR; i++)
        a[i] = i % (SIDE + 1) == 0 ? i : 0;
    a[FAR - 1] = x;
    dsyev_("N", "U", &n, a, &n, w, work, &length, &info);
    return w[SIDE - 1] + w[0];
}

/* Values of a tridiagonal matrix have a rule, vectors have none. */
static double eigenvector(double x)
{
    double d[2] = {x, 1}, e[1] = {0.5}, z[4], work[2];
    const int n = 2;
    int info;
    dstev_("V", &n, d, e, z, &n, work, &info);
    return z[0];
}

static double twice(double x)
{
    a[FAR - 1] = x;
    cblas_dsyr2k(102, 121, 111, SIDE, SIDE, 1, a, SIDE, b, SIDE, 0, c, SIDE);
    return c[FAR - 1];
}

static double complex_scaled(double x)
{
    const double alpha[2] = {0, 1};
    const int n = FAR / 2, one = 1;
    a[FAR - 1] = x;
    zscal_(&n, alpha, a, &one);
    return a[FAR - 2];
}

static double oblong(double x)
{
    int pivot[SIDE], info;
    const int m = SIDE, n = SIDE / 2;
    for (int i = 0; i < FAR; i++)
        a[i] = i % (SIDE + 1) == 0 ? 3 : 0;
    a[0] = x;
    dgetrf_(&m, &n, a, &m, pivot, &info);
    return a[0];
}

static double no_spread(double x)
{
    double from[2] = {x, 2 * x};
    const int n = 2, none = 0;
    return dnrm2_(&n, from, &none) + x;
}

/* A factor that failed is not there; asking whether it fails loses nothing, */
static double fails(double x)
{
    double m[4] = {-x, 0, 0, 1};
    int info;
    const int n = 2;
    dpotrf_("L", &n, m, &n, &info);
    return info > 0 ? x * x : m[0];
}

/* and no more does what is a constant, or no number. */
static double constants(double x)
{
    double y[8] = {1, 2, 3, x}, z[8] = {1};
    cblas_drot(3, z, 1, z + 4, 1, 0.6, 0.8);
    return x * cblas_idamax(4, y, 1) + z[0];
}

static double mine(double x)
{
    double y[3] = {x, 2 * x, 3}, z[3] = {1, x, x};
    return cblas_ddot(3, y, 1, z, 1);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        double (*f)(double);
        double derivative; /* 0: it must be said that it is lost */
    } traps[] = {{"cblas_drot", rotated, 0}, {"cblas_drot", rotated_by, 0},
                 {"dsyev_", eigenvalues, 0}, {"dstev_", eigenvector, 0},
                 {"cblas_dsyr2k", twice, 0}, {"zscal_", complex_scaled, 0},
                 {"dgetrf_", oblong, 0},     {"dnrm2_", no_spread, 0},
                 {"fails", fails, 4},        {"constants", constants, 2},
                 {"mine", mine, 12}};
    int wrong = 0;
    ad_tape tape;
    ad_tape_create(&tape, NULL);
    for (size_t k = 0; k < sizeof traps / sizeof *traps; k++) {
        double x = 2, g = 0;
        ad_real key;
        memset(a, 0, sizeof a);
        memset(b, 0, sizeof b);
        memset(c, 0, sizeof c);
        ad_tape_reset(tape);
        const unsigned long long before = ad_plain_dropped();
        if (ad_plain_leaves(tape, 1, &x, &key) != AD_OK)
            return 1;
        double y = traps[k].f(x);
        const unsigned long long lost = ad_plain_dropped() - before;
        if (argc > 1) { /* compiled with --strict */
            const bool failed = ad_tape_status(tape) == AD_ERROR_STATE &&
                                strstr(ad_tape_message(tape), "a gradient is lost") != NULL;
            wrong += failed != (traps[k].derivative == 0);
            printf("%s: %s\n", traps[k].name, failed ? ad_tape_message(tape) : "no error");
            ad_tape_clear_error(tape);
            continue;
        }
        if (ad_plain_backward(tape, &y) != AD_OK || ad_plain_gradients(tape, 1, &key, &g) != AD_OK)
            ad_tape_clear_error(tape);
        if (traps[k].derivative == 0 ? lost == 0 : lost > 0 || g != traps[k].derivative)
            wrong++;
        printf("%s: lost %llu, gradient %g\n", traps[k].name, lost, g);
    }
    (void)argv;
    ad_tape_destroy(tape);
    return wrong > 0;
}
#endif
