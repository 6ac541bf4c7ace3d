/* exponential.c: exponentials of matrices and their Frechet derivatives, by scaling and squaring.
 *
 * Higham (2005), The scaling and squaring method for the matrix exponential revisited,
 * doi:10.1137/04061101X: Pade approximants of degree 3 to 13, by the norm. Al-Mohy and Higham
 * (2009), Computing the Frechet derivative of the matrix exponential, doi:10.1137/080716426: each
 * step of it differentiated.
 */
#include "exponential.h"
#include "lapack.h"
#include "lu.h"
#include "matrix.h"

#include <math.h>
#include <string.h>

enum { DEGREES = 5, MATRICES = 8, DERIVATIVES = 9 };

/* Coefficients of the numerator of degree m, in ascending powers, and the 1-norm up to which its
 * error, and that of its derivative, is below half the unit roundoff of f64 (Al-Mohy and Higham,
 * table 6.1: the lesser one serves both). */
static const struct pade {
    int degree;
    double norm;
    double b[14];
} pade[DEGREES] = {
    {3, 1.08e-2, {120, 60, 12, 1}},
    {5, 2.00e-1, {30240, 15120, 3360, 420, 30, 1}},
    {7, 7.83e-1, {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1}},
    {9,
     1.78,
     {17643225600, 8821612800, 2075673600, 302702400, 30270240, 2162160, 110880, 3960, 90, 1}},
    {13,
     4.74,
     {64764752532480000.0, 32382376266240000.0, 7771770303897600, 1187353796428800, 129060195264000,
      10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1}},
};

size_t exponential_workspace(int dtype, int64_t n, bool derivative)
{
    const size_t one = matrix_bytes(dtype, n * n);
    return (size_t)(MATRICES + (derivative ? DERIVATIVES : 0)) * one + lu_workspace(n);
}

struct exponential_work {
    int dtype;
    int64_t n;
    char *next; /* what is left of the workspace */
};

static void *take(struct exponential_work *w)
{
    void *const matrix = w->next;
    w->next += matrix_bytes(w->dtype, w->n * w->n);
    return matrix;
}

/* c = a b, or c += a b. */
static void product(const struct exponential_work *w, const void *a, const void *b, bool more,
                    void *c)
{
    const int n = (int)w->n;
    lapack_product(w->dtype, more ? LAPACK_ADD : LAPACK_SET, (struct lapack_extents){n, n, n},
                   (struct lapack_matrix){a, n, false}, (struct lapack_matrix){b, n, false}, c, n);
}

/* y = c x, or y += c x. */
static void add(const struct exponential_work *w, double c, const void *x, bool more, void *y)
{
    const int64_t size = w->n * w->n;
    if (w->dtype == KERNEL_F32) {
        const float *from = x;
        float *to = y;
        for (int64_t i = 0; i < size; i++)
            to[i] = (float)c * from[i] + (more ? to[i] : 0);
    } else {
        const double *from = x;
        double *to = y;
        for (int64_t i = 0; i < size; i++)
            to[i] = c * from[i] + (more ? to[i] : 0);
    }
}

static void add_to_diagonal(const struct exponential_work *w, double c, void *y)
{
    for (int64_t i = 0; i < w->n; i++)
        kernel_store(w->dtype, y, i * w->n + i, c + kernel_load(w->dtype, y, i * w->n + i));
}

/* The greatest sum of magnitudes of a column. */
static double norm_1(int dtype, int64_t n, const void *a)
{
    double most = 0;
    for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += fabs(kernel_load(dtype, a, i * n + j));
        most = fmax(most, sum);
    }
    return most;
}

/* sum = sum over k of b[first + 2 k] power[k], for count powers, power[0] the identity. */
static void even_part(const struct exponential_work *w, const double *b, int first, int count,
                      void *const *power, bool identity, void *sum)
{
    memset(sum, 0, matrix_bytes(w->dtype, w->n * w->n));
    for (int k = 1; k < count; k++)
        add(w, b[first + 2 * k], power[k], true, sum);
    if (identity)
        add_to_diagonal(w, b[first], sum);
}

/* The even and odd parts of the numerator without the last factor: v = even, inner = odd / a. For
 * degree 13 the sums of the three higher powers are multiplied by a^6. power[k] = a^(2 k). */
static void parts(const struct exponential_work *w, const struct pade *p, void *const *power,
                  void *v, void *inner, void *high)
{
    if (p->degree < 13) {
        even_part(w, p->b, 0, p->degree / 2 + 1, power, true, v);
        even_part(w, p->b, 1, p->degree / 2 + 1, power, true, inner);
        return;
    }
    for (int odd = 0; odd < 2; odd++) {
        void *const sum = odd ? inner : v;
        even_part(w, p->b, odd, 4, power, true, sum);
        even_part(w, p->b, 6 + odd, 4, power, false, high);
        product(w, power[3], high, true, sum);
    }
}

/* Their derivatives, of the powers' derivatives slope[k]. */
static void part_slopes(const struct exponential_work *w, const struct pade *p, void *const *power,
                        void *const *slope, void *v, void *inner, void *high)
{
    if (p->degree < 13) {
        even_part(w, p->b, 0, p->degree / 2 + 1, slope, false, v);
        even_part(w, p->b, 1, p->degree / 2 + 1, slope, false, inner);
        return;
    }
    for (int odd = 0; odd < 2; odd++) {
        void *const sum = odd ? inner : v;
        even_part(w, p->b, odd, 4, slope, false, sum);
        even_part(w, p->b, 6 + odd, 4, power, false, high);
        product(w, slope[3], high, true, sum);
        even_part(w, p->b, 6 + odd, 4, slope, false, high);
        product(w, power[3], high, true, sum);
    }
}

/* x [n,n] = lu^-1 x. */
static void solve(const struct exponential_work *w, const void *lu, const int *pivot, void *x)
{
    const int n = (int)w->n;
    const struct lapack_triangle l = {lu, n, n, false, false, false};
    const struct lapack_triangle u = {lu, n, n, true, false, true};
    const size_t row = (size_t)n * kernel_dtype_bytes(w->dtype);
    lapack_solve_triangular(w->dtype, &l, false, n, x, n);
    lapack_solve_triangular(w->dtype, &u, false, n, x, n);
    for (int i = n - 1; i >= 0; i--) {
        char *const one = (char *)x + (size_t)i * row;
        char *const other = (char *)x + (size_t)(pivot[i] - 1) * row;
        for (size_t at = 0; one != other && at < row; at++) {
            const char kept = one[at];
            one[at] = other[at];
            other[at] = kept;
        }
    }
}

void exponential_run(int dtype, int64_t n, const void *a, const void *e, void *y, void *z,
                     void *workspace)
{
    struct exponential_work w = {dtype, n, workspace};
    const double norm = norm_1(dtype, n, a);
    if (!isfinite(norm) || (e != NULL && !matrix_finite(dtype, n * n, e))) {
        matrix_fill(dtype, n * n, y, (double)NAN);
        if (e != NULL)
            matrix_fill(dtype, n * n, z, (double)NAN);
        return;
    }
    int degree = 0, squarings = 0;
    while (degree < DEGREES - 1 && norm > pade[degree].norm)
        degree++;
    const struct pade *const p = &pade[degree];
    if (norm > p->norm)
        (void)frexp(norm / p->norm, &squarings);
    const double scale = ldexp(1, -squarings);

    void *const b = take(&w), *const v = take(&w), *const inner = take(&w), *const u = take(&w);
    void *power[7] = {NULL, take(&w), take(&w), take(&w), take(&w)};
    const int powers = p->degree < 13 ? p->degree / 2 : 3;
    add(&w, scale, a, false, b);
    product(&w, b, b, false, power[1]);
    for (int k = 2; k <= powers; k++)
        product(&w, power[1], power[k - 1], false, power[k]);
    parts(&w, p, power, v, inner, u);
    product(&w, b, inner, false, u);

    void *f = NULL, *slope_u = NULL, *slope_v = NULL;
    if (e != NULL) { /* inner is what belongs to the value; its slope is made apart */
        void *const slope_inner = take(&w), *const high = take(&w);
        void *slope[7] = {NULL, take(&w), take(&w), take(&w), take(&w)};
        f = take(&w);
        slope_u = take(&w);
        slope_v = take(&w);
        add(&w, scale, e, false, f);
        product(&w, b, f, false, slope[1]);
        product(&w, f, b, true, slope[1]);
        for (int k = 2; k <= powers; k++) {
            product(&w, power[1], slope[k - 1], false, slope[k]);
            product(&w, slope[1], power[k - 1], true, slope[k]);
        }
        part_slopes(&w, p, power, slope, slope_v, slope_inner, high);
        product(&w, b, slope_inner, false, slope_u);
        product(&w, f, inner, true, slope_u);
    }
    /* (v - u) y = v + u, and its derivative. */
    int *const pivot = (void *)w.next;
    add(&w, 1, v, false, y);
    add(&w, 1, u, true, y);
    add(&w, -1, u, true, v);
    (void)lapack_lu(dtype, (int)n, v, pivot);
    solve(&w, v, pivot, y);
    if (e != NULL) {
        add(&w, 1, slope_u, false, z);
        add(&w, 1, slope_v, true, z);
        add(&w, -1, slope_v, true, slope_u); /* the slope of u - v */
        product(&w, slope_u, y, true, z);
        solve(&w, v, pivot, z);
    }
    for (int k = 0; k < squarings; k++) {
        if (e != NULL) {
            product(&w, y, z, false, u);
            product(&w, z, y, true, u);
            add(&w, 1, u, false, z);
        }
        product(&w, y, y, false, u);
        add(&w, 1, u, false, y);
    }
}
