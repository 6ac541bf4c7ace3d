/* plain_blas_record.c: records of BLAS and LAPACK, and their derivatives.
 *
 * A record has up to five operands. Of those that are active the sweep gets the derivatives, one
 * behind the other; of those whose values are needed there a copy is kept. All matrices are column
 * by column and have no gaps.
 */
#include "plain_blas.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { A, B, C, ALPHA, BETA, OPERANDS };

struct operand {
    int64_t n;
    const ad_real *x;     /* or else */
    const double *number; /* constants */
    bool active, kept;
};

/* What the sweep finds: this, and the values that are kept behind it. */
struct kept {
    int64_t m, n, k;
    double alpha, beta;
    int64_t size[OPERANDS];
    bool active[OPERANDS], has[OPERANDS];
    bool lower, of_squares;
};
_Static_assert(sizeof(struct kept) % sizeof(double) == 0, "numbers follow");

/* The parts of a record in a sweep; NULLs: not there. */
struct parts {
    const double *value[OPERANDS];
    double *dx[OPERANDS];
};

static struct parts parts_of(const struct kept *kept, double *dx)
{
    struct parts p;
    const double *value = (const double *)(const void *)(kept + 1);
    for (int i = 0; i < OPERANDS; i++) {
        p.value[i] = kept->has[i] ? value : NULL;
        p.dx[i] = kept->active[i] ? dx : NULL;
        value += kept->has[i] ? kept->size[i] : 0;
        dx += kept->active[i] ? kept->size[i] : 0;
    }
    return p;
}

static struct operand operand_of(const struct plain_numbers *x)
{
    return (struct operand){.n = x->m * x->n, .x = x->x, .active = x->active};
}

static struct operand operand_one(const ad_real *x)
{
    return (struct operand){.n = 1, .x = x, .active = x->index != 0};
}

/* y[m] of these values, or NULL. */
static ad_real *record(struct plain_call *call, ad_custom_callback *pullback, struct kept *kept,
                       const struct operand *operand, int64_t m, const double *values)
{
    size_t n_active = 0, n_kept = 0;
    for (int i = 0; i < OPERANDS; i++) {
        kept->size[i] = operand[i].n;
        kept->active[i] = operand[i].active;
        kept->has[i] = operand[i].kept;
        n_active += operand[i].active ? (size_t)operand[i].n : 0;
        n_kept += operand[i].kept ? (size_t)operand[i].n : 0;
    }
    if (n_active == 0 || call->failed || !values)
        return NULL;
    ad_real *x = plain_call_memory(call, n_active, sizeof *x);
    ad_real *y = plain_call_memory(call, (size_t)m, sizeof *y);
    struct kept *data = plain_call_memory(call, n_kept * sizeof(double) + sizeof *data, 1);
    if (!x || !y || !data)
        return NULL;
    *data = *kept;
    double *value = (double *)(void *)(data + 1);
    ad_real *to = x;
    for (int i = 0; i < OPERANDS; i++) {
        const struct operand *o = &operand[i];
        if (o->active) {
            memcpy(to, o->x, (size_t)o->n * sizeof *to);
            to += o->n;
        }
        for (int64_t k = 0; o->kept && k < o->n; k++)
            *value++ = o->x ? o->x[k].value : o->number[k];
    }
    const struct ad_custom_ custom = {call->name, pullback, data,
                                      n_kept * sizeof(double) + sizeof *data};
    return ad_plain_custom_(call->pc, (int64_t)n_active, x, m, values, y, custom) == AD_OK ? y
                                                                                           : NULL;
}

/* ---- products ---- */

static double dot(int64_t n, const double *x, const double *y)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* The sum of dy times a b, element by element. */
static double dot_product(const struct kept *s, const double *dy, const double *a, const double *b)
{
    double sum = 0;
    for (int64_t j = 0; j < s->n; j++)
        for (int64_t p = 0; p < s->k; p++)
            sum += b[p + j * s->k] * dot(s->m, &dy[j * s->m], &a[p * s->m]);
    return sum;
}

static void product_pullback(const void *data, int64_t m, const double *dy, int64_t n, double *dx)
{
    const struct kept *s = data;
    const struct parts p = parts_of(s, dx);
    const int rows = (int)s->m, columns = (int)s->n, inner = (int)s->k;
    (void)n;
    if (p.dx[A] && inner > 0)
        cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, rows, inner, columns, s->alpha, dy,
                    rows, p.value[B], inner, 1, p.dx[A], rows);
    if (p.dx[B] && inner > 0)
        cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, inner, columns, rows, s->alpha,
                    p.value[A], rows, dy, rows, 1, p.dx[B], inner);
    for (int64_t i = 0; p.dx[C] && i < m; i++)
        p.dx[C][i] += s->beta * dy[i];
    if (p.dx[ALPHA])
        *p.dx[ALPHA] += dot_product(s, dy, p.value[A], p.value[B]);
    if (p.dx[BETA])
        *p.dx[BETA] += dot(m, dy, p.value[C]);
}

ad_real *plain_product(struct plain_call *call, ad_real alpha, const struct plain_numbers *a,
                       const struct plain_numbers *b, ad_real beta, const struct plain_numbers *c,
                       const double *values)
{
    struct kept kept = {.m = a->m, .n = b->n, .k = a->n, .alpha = alpha.value, .beta = beta.value};
    struct operand o[OPERANDS] = {operand_of(a), operand_of(b),
                                  c ? operand_of(c) : (struct operand){.n = 0}, operand_one(&alpha),
                                  operand_one(&beta)};
    o[BETA].active &= c != NULL;
    o[A].kept = o[B].active || o[ALPHA].active;
    o[B].kept = o[A].active || o[ALPHA].active;
    o[C].kept = o[BETA].active;
    return record(call, product_pullback, &kept, o, a->m * b->n, values);
}

/* ---- triangles ---- */

/* x = t^-1 x or t^-T x, of n rows and k columns. */
static void solve(bool lower, bool transposed, int64_t n, int64_t k, const double *t, double *x)
{
    cblas_dtrsm(CblasColMajor, CblasLeft, lower ? CblasLower : CblasUpper,
                transposed ? CblasTrans : CblasNoTrans, CblasNonUnit, (int)n, (int)k, 1, t, (int)n,
                x, (int)n);
}

/* There is no one to tell in a sweep: what cannot be computed is no number. */
static void unknown(int64_t n, double *dx)
{
    for (int64_t i = 0; i < n; i++)
        dx[i] = (double)NAN;
}

/* g = a^-T dx; then b has alpha g, a has -g x^T. */
static void solve_pullback(const void *data, int64_t m, const double *dy, int64_t n, double *dx)
{
    const struct kept *s = data;
    const struct parts p = parts_of(s, dx);
    double *g = malloc((size_t)m * sizeof *g);
    if (!g) {
        unknown(n, dx);
        return;
    }
    memcpy(g, dy, (size_t)m * sizeof *g);
    solve(s->lower, true, s->m, s->n, p.value[A], g);
    for (int64_t i = 0; p.dx[B] && i < m; i++)
        p.dx[B][i] += s->alpha * g[i];
    if (p.dx[A])
        cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, (int)s->m, (int)s->m, (int)s->n, -1, g,
                    (int)s->m, p.value[C], (int)s->m, 1, p.dx[A], (int)s->m);
    if (p.dx[ALPHA])
        *p.dx[ALPHA] += dot(m, g, p.value[B]);
    free(g);
}

ad_real *plain_solve(struct plain_call *call, ad_real alpha, const struct plain_numbers *a,
                     bool lower, const struct plain_numbers *b, const double *values)
{
    struct kept kept = {.m = b->m, .n = b->n, .alpha = alpha.value, .lower = lower};
    const int64_t m = b->m * b->n;
    struct operand o[OPERANDS] = {[A] = operand_of(a),
                                  [B] = operand_of(b),
                                  [C] = {.n = m, .number = values}, /* the results */
                                  [ALPHA] = operand_one(&alpha)};
    o[A].kept = true;
    o[B].kept = o[ALPHA].active;
    o[C].kept = o[A].active;
    return record(call, solve_pullback, &kept, o, m, values);
}

double *plain_solved(struct plain_call *call, const struct plain_numbers *a, bool lower,
                     const struct plain_numbers *b)
{
    const int64_t n = b->m, m = b->m * b->n;
    double *t = plain_call_memory(call, (size_t)n * (size_t)n, sizeof *t);
    double *x = plain_call_memory(call, (size_t)m, sizeof *x);
    if (!t || !x)
        return NULL;
    for (int64_t i = 0; i < n * n; i++)
        t[i] = a->x[i].value;
    for (int64_t i = 0; i < m; i++)
        x[i] = b->x[i].value;
    solve(lower, false, n, b->n, t, x);
    return x;
}

/* ---- factors ---- */

/* One half of a square, and what lies on its diagonal times `diagonal`; the rest is 0. */
static void half(int64_t n, const double *x, bool lower, double diagonal, double *y)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++)
            y[i + j * n] = i == j ? diagonal * x[i + j * n] : (i > j) == lower ? x[i + j * n] : 0;
}

static void set_diagonal(int64_t n, double *x, double value)
{
    for (int64_t i = 0; i < n; i++)
        x[i + i * n] = value;
}

/* x = a^-T x b^-1, or b^-T, of triangles; a is a lower one. */
static void between(int64_t n, const double *a, const double *b, bool b_lower, bool b_transposed,
                    double *x)
{
    solve(true, true, n, n, a, x);
    cblas_dtrsm(CblasColMajor, CblasRight, b_lower ? CblasLower : CblasUpper,
                b_transposed ? CblasTrans : CblasNoTrans, CblasNonUnit, (int)n, (int)n, 1, b,
                (int)n, x, (int)n);
}

/* y = a b of squares, or a^T b, or a b^T. */
static void multiply(int64_t n, bool a_transposed, const double *a, bool b_transposed,
                     const double *b, double *y)
{
    cblas_dgemm(CblasColMajor, a_transposed ? CblasTrans : CblasNoTrans,
                b_transposed ? CblasTrans : CblasNoTrans, (int)n, (int)n, (int)n, 1, a, (int)n, b,
                (int)n, 0, y, (int)n);
}

/* With p a = l u and q = l^-1 p da u^-1 the lower half of q, without the diagonal, is l^-1 dl, and
 * the upper one du u^-1. So p a has l^-T (lower(l^T L) + upper(U u^T)) u^-T of the adjoints L,
 * U. */
static void lu_pullback(const void *data, int64_t m, const double *dy, int64_t count, double *dx)
{
    const struct kept *s = data;
    const struct parts p = parts_of(s, dx);
    const int64_t n = s->n;
    double *work = calloc(5 * (size_t)m, sizeof *work);
    if (!work) {
        unknown(count, dx);
        return;
    }
    double *l = work, *u = l + m, *dl = u + m, *du = dl + m, *q = du + m;
    half(n, p.value[B], true, 0, l);
    set_diagonal(n, l, 1);
    half(n, p.value[B], false, 1, u);
    half(n, dy, true, 0, dl);
    half(n, dy, false, 1, du);
    multiply(n, true, l, false, dl, q);
    half(n, q, true, 0, dl);
    multiply(n, false, du, true, u, q);
    half(n, q, false, 1, du);
    for (int64_t i = 0; i < m; i++)
        q[i] = dl[i] + du[i];
    between(n, l, u, false, true, q);
    for (int64_t i = n; i-- > 0;) {
        const int64_t other = (int64_t)p.value[C][i] - 1;
        for (int64_t j = 0; other != i && j < n; j++) {
            const double was = q[i + j * n];
            q[i + j * n] = q[other + j * n];
            q[other + j * n] = was;
        }
    }
    for (int64_t i = 0; i < m; i++)
        dx[i] += q[i];
    free(work);
}

ad_real *plain_lu(struct plain_call *call, const struct plain_numbers *a, const int *pivot,
                  const double *values)
{
    struct kept kept = {.n = a->n};
    double *rows = plain_call_memory(call, (size_t)a->n, sizeof *rows);
    for (int64_t i = 0; rows && i < a->n; i++)
        rows[i] = pivot[i];
    const int64_t m = a->n * a->n;
    const struct operand o[OPERANDS] = {[A] = operand_of(a),
                                        [B] = {.n = m, .number = values, .kept = true},
                                        [C] = {.n = a->n, .number = rows, .kept = true}};
    return record(call, lu_pullback, &kept, o, m, values);
}

/* a = l l^T has s = l^-T f l^-1, where f is the lower half of l^T L with half its diagonal. What is
 * read of a stands for both halves. */
static void cholesky_pullback(const void *data, int64_t m, const double *dy, int64_t count,
                              double *dx)
{
    const struct kept *kept = data;
    const struct parts p = parts_of(kept, dx);
    const int64_t n = kept->n;
    double *work = calloc(2 * (size_t)m, sizeof *work);
    if (!work) {
        unknown(count, dx);
        return;
    }
    double *dl = work, *s = dl + m;
    half(n, dy, true, 1, dl);
    multiply(n, true, p.value[B], false, dl, s);
    half(n, s, true, 0.5, dl);
    between(n, p.value[B], p.value[B], true, false, dl);
    for (int64_t j = 0; j < n; j++) {
        dx[j + j * n] += dl[j + j * n];
        for (int64_t i = j + 1; i < n; i++)
            dx[i + j * n] += dl[i + j * n] + dl[j + i * n];
    }
    free(work);
}

ad_real *plain_cholesky(struct plain_call *call, const struct plain_numbers *a,
                        const double *values)
{
    struct kept kept = {.n = a->n};
    const int64_t m = a->n * a->n;
    const struct operand o[OPERANDS] = {
        [A] = operand_of(a), [B] = {.n = m, .number = values, .kept = true}};
    return record(call, cholesky_pullback, &kept, o, m, values);
}

/* ---- lengths of vectors ---- */

static void norm_pullback(const void *data, int64_t m, const double *dy, int64_t n, double *dx)
{
    const struct kept *s = data;
    const struct parts p = parts_of(s, dx);
    (void)m;
    for (int64_t i = 0; i < n; i++) {
        const double x = p.value[A][i];
        const double sign = (double)(x > 0) - (double)(x < 0);
        dx[i] += *dy * (s->of_squares ? x / s->alpha : sign);
    }
}

ad_real *plain_norm(struct plain_call *call, const struct plain_numbers *a, bool of_squares,
                    const double *values)
{
    struct kept kept = {.of_squares = of_squares, .alpha = values ? *values : 0};
    struct operand o[OPERANDS] = {[A] = operand_of(a)};
    o[A].kept = true;
    return record(call, norm_pullback, &kept, o, 1, values);
}

/* ---- eigenvalues ---- */

/* That of the vector v has v^T da v; C: the vectors, one behind the other. */
static void eigenvalues_pullback(const void *data, int64_t m, const double *dy, int64_t n,
                                 double *dx)
{
    const struct parts p = parts_of(data, dx);
    (void)n;
    for (int64_t k = 0; k < m; k++) {
        const double *v = &p.value[C][k * m];
        for (int64_t i = 0; p.dx[A] && i < m; i++)
            p.dx[A][i] += dy[k] * v[i] * v[i];
        for (int64_t i = 0; p.dx[B] && i < m - 1; i++)
            p.dx[B][i] += dy[k] * 2 * v[i] * v[i + 1];
    }
}

extern void dstev_(const char *job, const int *n, double *d, double *e, double *z, const int *ldz,
                   double *work, int *info, size_t length);

ad_real *plain_eigenvalues(struct plain_call *call, const struct plain_numbers *diagonal,
                           const struct plain_numbers *beside, const double *values)
{
    struct kept kept = {.n = diagonal->m};
    const int64_t m = diagonal->m;
    const int n = (int)m;
    double *d = plain_call_memory(call, (size_t)m * (size_t)(m + 4), sizeof *d);
    if (!d)
        return NULL;
    double *e = d + m, *z = e + m, *work = z + m * m;
    for (int64_t i = 0; i < m; i++)
        d[i] = diagonal->x[i].value;
    for (int64_t i = 0; i < m - 1; i++)
        e[i] = beside->x[i].value;
    int info = 0;
    dstev_("V", &n, d, e, z, &n, work, &info, 1);
    if (info != 0) {
        plain_call_lost(call, "the eigenvectors, which the gradient needs, do not converge");
        return NULL;
    }
    const struct operand o[OPERANDS] = {[A] = operand_of(diagonal),
                                        [B] = operand_of(beside),
                                        [C] = {.n = m * m, .number = z, .kept = true}};
    return record(call, eigenvalues_pullback, &kept, o, m, values);
}
