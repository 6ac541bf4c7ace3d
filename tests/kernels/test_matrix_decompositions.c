/* test_matrix_decompositions.c: QR, least squares, eigenvalues, singular values and exponentials:
 * what they satisfy, in long double, what is promised at special values, and what is refused.
 */
#include "matrix_case.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 40 };

static const ad_dtype dtypes[] = {AD_F32, AD_F64};
static const int extents[][2] = {{1, 1}, {3, 3}, {5, 2}, {2, 5}, {33, 33}, {MOST, 17}, {17, MOST}};
enum { EXTENTS = sizeof extents / sizeof *extents };

static double a[MOST * MOST], b[MOST * MOST], u[MOST * MOST], s[MOST], v[MOST * MOST];
static double g[MOST * MOST], w[MOST * MOST];

/* |got - want| <= scale epsilon. */
static void near(double got, long double want, double scale)
{
    ck_assert_msg(fabsl((long double)got - want) <= (long double)(scale * matrix_epsilon()),
                  "%.17g, but it is %.17Lg", got, want);
}

/* a [m,n] = left [m,k] diag(d) right [k,n]; no d: ones. */
static void multiplies_to(int m, int n, int k, const double *left, const double *d,
                          const double *right, const double *product, double scale)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            long double sum = 0;
            for (int l = 0; l < k; l++)
                sum += (long double)left[i * k + l] * (d ? (long double)d[l] : 1) *
                       (long double)right[l * n + j];
            near(product[i * n + j], sum, scale);
        }
}

/* The columns of x [m,k], `across` its transpose [k,m], are orthonormal. */
static void orthonormal(int m, int k, const double *x, bool across, double scale)
{
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            long double sum = 0;
            for (int l = 0; l < m; l++)
                sum += (long double)(across ? x[i * m + l] : x[l * k + i]) *
                       (long double)(across ? x[j * m + l] : x[l * k + j]);
            near(i == j, sum, scale);
        }
}

static void draw(int m, int n)
{
    matrix_random(m * n, a);
    for (int k = 0; k < m && k < n; k++)
        a[k * n + k] += 1;
}

static ad_tensor laid(int layout, int m, int n, const double *x)
{
    return matrix_laid((enum matrix_layout)layout, m, n, x);
}

/* ---- QR and least squares ---- */

TEST_EACH(q_is_orthonormal_r_upper_triangular_and_their_product_the_matrix, 2)
{
    for (int c = 0; c < EXTENTS; c++)
        for (int layout = 0; layout < MATRIX_LAYOUTS; layout++) {
            const int m = extents[c][0], n = extents[c][1], k = m < n ? m : n;
            ad_tensor r = {0};
            matrix_begin(dtypes[_i]);
            draw(m, n);
            matrix_read(ad_qr(laid(layout, m, n, a), &r), u);
            matrix_read(r, v);
            multiplies_to(m, n, k, u, NULL, v, a, 20.0 * m);
            orthonormal(m, k, u, false, 20.0 * m);
            for (int i = 0; i < k; i++) {
                ck_assert(v[i * n + i] >= 0);
                for (int j = 0; j < i; j++)
                    ck_assert(v[i * n + j] == 0);
            }
            matrix_end();
        }
}

TEST_EACH(least_squares_leave_a_residual_across_the_columns, 2)
{
    for (int c = 0; c < EXTENTS; c++)
        for (int layout = 0; layout < MATRIX_LAYOUTS; layout++) {
            const int m = extents[c][0], n = extents[c][1], columns = c % 3 + 1;
            if (m < n)
                continue;
            matrix_begin(dtypes[_i]);
            matrix_random(m * n, a);
            for (int k = 0; k < n; k++)
                a[k * n + k] += 8;
            matrix_random(m * columns, b);
            matrix_read(ad_lstsq(laid(layout, m, n, a), laid(layout, m, columns, b)), v);
            for (int j = 0; j < columns; j++)
                for (int l = 0; l < n; l++) {
                    long double across = 0;
                    for (int i = 0; i < m; i++) {
                        long double residual = (long double)b[i * columns + j];
                        for (int k = 0; k < n; k++)
                            residual -= (long double)a[i * n + k] * (long double)v[k * columns + j];
                        across += (long double)a[i * n + l] * residual;
                    }
                    near(0, across, 200.0 * m);
                }
            matrix_end();
        }
}

TEST_EACH(dependent_columns_are_refused_by_lstsq_and_have_no_finite_gradient_in_qr, 2)
{
    const double dependent[6] = {1, 2, 2, 4, 3, 6}, right[3] = {1, 1, 1};
    ad_tensor r = {0};
    matrix_begin(dtypes[_i]);
    const ad_tensor at = matrix_leaf(2, SHAPE(3, 2), dependent);
    ad_lstsq(at, matrix_leaf(1, SHAPE(3), right));
    matrix_refused(AD_ERROR_VALUE,
                   "[3]: a has not full column rank: column 1 depends on those before");
    ad_lstsq(ad_transpose(at), matrix_leaf(1, SHAPE(2), right));
    matrix_refused(AD_ERROR_SHAPE, "[2]: a has more columns than rows");
    ad_lstsq(at, matrix_leaf(1, SHAPE(2), right));
    matrix_refused(AD_ERROR_SHAPE, "lstsq: f");
    const ad_tensor zero = matrix_leaf(2, SHAPE(3, 2), (double[6]){1, 0, 0, 0, 0, 0});
    const ad_tensor q = ad_qr(zero, &r);
    matrix_random(6, w);
    matrix_sweep(q, w);
    matrix_gradient(zero, g);
    bool finite = true;
    for (int i = 0; i < 6; i++)
        finite = finite && isfinite(g[i]);
    ck_assert(!finite);
    matrix_end();
}

/* ---- eigenvalues ---- */

TEST_EACH(eigenvectors_are_orthonormal_and_diagonalise_the_symmetric_part, 2)
{
    static const int orders[] = {1, 2, 5, 33, MOST};
    for (int c = 0; c < 5; c++)
        for (int layout = 0; layout < MATRIX_LAYOUTS; layout++) {
            const int n = orders[c];
            ad_tensor vectors = {0};
            matrix_begin(dtypes[_i]);
            draw(n, n);
            matrix_read(ad_eigh(laid(layout, n, n, a), &vectors), s);
            matrix_read(vectors, v);
            for (int i = 0; i < n; i++)
                for (int j = 0; j < n; j++) {
                    u[j * n + i] = v[i * n + j];
                    b[i * n + j] = (a[i * n + j] + a[j * n + i]) / 2;
                }
            multiplies_to(n, n, n, v, s, u, b, 30.0 * n);
            orthonormal(n, n, v, false, 20.0 * n);
            for (int j = 0; j < n; j++) {
                double most = 0;
                for (int i = 0; i < n; i++)
                    most = fabs(v[i * n + j]) > fabs(most) ? v[i * n + j] : most;
                ck_assert(most > 0 && (j == 0 || s[j - 1] <= s[j]));
            }
            matrix_end();
        }
}

TEST_EACH(functions_of_repeated_eigenvalues_have_their_gradient, 2)
{
    /* The eigenvalues 2, 2, 5, turned; sums of their squares are <a, a>. */
    const double m[9] = {3, 1, 1, 1, 3, 1, 1, 1, 3}, two[3] = {2, 2, 2};
    matrix_begin(dtypes[_i]);
    const ad_tensor at = matrix_leaf(2, SHAPE(3, 3), m);
    matrix_sweep(ad_square(ad_eigh(at, NULL)), two);
    matrix_gradient(at, g);
    for (int i = 0; i < 9; i++)
        near(g[i], 4 * (long double)m[i], 256);
    matrix_end();
}

TEST_EACH(the_gradient_through_vectors_of_repeated_eigenvalues_is_nan_where_it_is_asked_for, 2)
{
    const double m[9] = {2, 0, 0, 0, 2, 0, 0, 0, 5}; /* the last vector is the third axis */
    const double last[9] = {0, 0, 1, 0, 0, 3, 0, 0, 2}, first[9] = {0, 0, 0, 1, 0, 0, 0, 0, 0};
    const double symmetric[9] = {0, 1, 0, 1, 0, 0, 0, 0, 0};
    for (int k = 0; k < 3; k++) {
        ad_tensor vectors = {0};
        matrix_begin(dtypes[_i]);
        const ad_tensor at = matrix_leaf(2, SHAPE(3, 3), m);
        ad_eigh(at, &vectors);
        matrix_sweep(vectors, k == 0 ? last : k == 1 ? first : symmetric);
        matrix_gradient(at, g);
        if (k == 0) /* v = e3 + da e / (5 - 2): the symmetric part of that */
            for (int i = 0; i < 9; i++)
                near(g[i], i == 2 || i == 6 ? 1.0L / 6 : i == 5 || i == 7 ? 0.5L : 0, 8);
        else
            ck_assert(isnan(g[0]) && isnan(g[1]) && isnan(g[4]));
        matrix_end();
    }
}

TEST_EACH(eigenvalues_apart_by_rounding_count_as_repeated, 2)
{
    matrix_begin(dtypes[_i]);
    double m[4] = {1, 0, 0, 1 + matrix_epsilon()};
    const double seed[4] = {0, 1, 0, 0};
    ad_tensor vectors = {0};
    for (int k = 0; k < 2; k++) {
        const ad_tensor at = matrix_leaf(2, SHAPE(2, 2), m);
        ad_eigh(at, &vectors);
        matrix_sweep(vectors, seed);
        matrix_gradient(at, g);
        ck_assert(k ? isfinite(g[1]) && g[1] != 0 : isnan(g[1]));
        m[3] = 1 + 8 * matrix_epsilon();
    }
    matrix_end();
}

/* ---- singular values ---- */

TEST_EACH(singular_vectors_are_orthonormal_and_multiply_to_the_matrix, 2)
{
    for (int c = 0; c < EXTENTS; c++)
        for (int layout = 0; layout < MATRIX_LAYOUTS; layout++) {
            const int m = extents[c][0], n = extents[c][1], k = m < n ? m : n;
            ad_tensor values = {0}, vh = {0};
            matrix_begin(dtypes[_i]);
            draw(m, n);
            matrix_read(ad_svd(laid(layout, m, n, a), &values, &vh), u);
            matrix_read(values, s);
            matrix_read(vh, v);
            multiplies_to(m, n, k, u, s, v, a, 30.0 * (m + n));
            orthonormal(m, k, u, false, 20.0 * m);
            orthonormal(n, k, v, true, 20.0 * n);
            for (int i = 0; i < k; i++) {
                double most = 0;
                for (int j = 0; j < n; j++)
                    most = fabs(v[i * n + j]) > fabs(most) ? v[i * n + j] : most;
                ck_assert(most > 0 && s[i] >= 0 && (i == 0 || s[i - 1] >= s[i]));
            }
            matrix_end();
        }
}

TEST_EACH(functions_of_repeated_singular_values_have_their_gradient, 2)
{
    /* Singular values 2, 2; the sum of squares is <a, a>. And of rank 1: the sum of s, at 0 as
     * well, has the gradient u vh, whichever vectors stand for 0. */
    const double m[6] = {0, 2, -2, 0, 0, 0}, two[2] = {2, 2}, ones[2] = {1, 1};
    const double flat[6] = {3, 0, 0, 0, 0, 0};
    ad_tensor values = {0};
    matrix_begin(dtypes[_i]);
    const ad_tensor at = matrix_leaf(2, SHAPE(3, 2), m), low = matrix_leaf(2, SHAPE(3, 2), flat);
    ad_svd(at, &values, NULL);
    matrix_sweep(ad_square(values), two);
    matrix_gradient(at, g);
    for (int i = 0; i < 6; i++)
        near(g[i], 4 * (long double)m[i], 32);
    ad_svd(low, &values, NULL);
    matrix_sweep(values, ones);
    matrix_gradient(low, g);
    near(g[0], 1, 8);
    for (int i = 0; i < 6; i++)
        ck_assert(isfinite(g[i]));
    matrix_end();
}

TEST_EACH(the_gradient_through_vectors_of_repeated_singular_values_is_not_finite, 2)
{
    const double m[6] = {2, 0, 0, 2, 0, 0}, seed[6] = {0, 1, 0, 0, 0, 0};
    const double flat[6] = {3, 0, 0, 0, 0, 0}, below[6] = {0, 0, 0, 0, 0, 1};
    for (int k = 0; k < 2; k++) {
        matrix_begin(dtypes[_i]);
        const ad_tensor at = matrix_leaf(2, SHAPE(3, 2), k ? flat : m);
        matrix_sweep(ad_svd(at, NULL, NULL), k ? below : seed);
        matrix_gradient(at, g);
        bool finite = true;
        for (int i = 0; i < 6; i++)
            finite = finite && isfinite(g[i]);
        ck_assert(!finite);
        matrix_end();
    }
}

/* ---- exponentials ---- */

/* sum = e^a by its series in long double, of a scaled down by 2^-12 at least. */
static void exponential(int n, long double *sum)
{
    long double *const term = calloc(3 * (size_t)n * (size_t)n, sizeof *term), *const next =
                                                                                   term + n * n;
    long double *const small = next + n * n, most = 0;
    for (int i = 0; i < n * n; i++)
        most = fmaxl(most, fabsl((long double)a[i]));
    const int halvings = 12 + (int)fmaxl(0, ceill(log2l(most * n + 1)));
    for (int i = 0; i < n * n; i++) {
        small[i] = ldexpl((long double)a[i], -halvings);
        sum[i] = term[i] = i % (n + 1) == 0;
    }
    for (int k = 1; k < 12 + halvings; k++) {
        const bool series = k < 12; /* then squarings */
        for (int i = 0; i < n * n; i++)
            next[i] = 0;
        for (int i = 0; i < n; i++)
            for (int l = 0; l < n; l++)
                for (int j = 0; j < n; j++)
                    next[i * n + j] += series ? term[i * n + l] * small[l * n + j] / (long double)k
                                              : sum[i * n + l] * sum[l * n + j];
        for (int i = 0; i < n * n; i++) {
            term[i] = next[i];
            sum[i] = series ? sum[i] + term[i] : next[i];
        }
    }
    free(term);
}

TEST_EACH(exponentials_agree_with_the_series_for_every_norm, 2)
{
    static const int orders[] = {1, 2, 5, MOST};
    static const double norms[] = {0, 0.005, 0.1, 0.5, 1.2, 3, 12};
    long double *const exact = calloc((size_t)MOST * MOST, sizeof *exact);
    ck_assert_ptr_nonnull(exact);
    for (int c = 0; c < 4; c++)
        for (int k = 0; k < 7; k++)
            for (int layout = 0; layout < MATRIX_LAYOUTS; layout++) {
                const int n = orders[c];
                long double most = 0;
                matrix_begin(dtypes[_i]);
                matrix_random(n * n, a);
                for (int i = 0; i < n * n; i++)
                    a[i] = (double)(float)(a[i] * norms[k] / n);
                exponential(n, exact);
                for (int i = 0; i < n * n; i++)
                    most = fmaxl(most, fabsl(exact[i]));
                matrix_read(ad_expm(laid(layout, n, n, a)), b);
                for (int i = 0; i < n * n; i++)
                    near(b[i], exact[i], (double)most * (64 + 16 * norms[k]));
                matrix_end();
            }
    free(exact);
}

TEST_EACH(exponentials_of_what_is_special, 2)
{
    const double nilpotent[4] = {0, 3, 0, 0}, turn[4] = {0, -M_PI, M_PI, 0},
                 huge[4] = {0, 0, 0, 1e30};
    const double bad[8] = {0, NAN, 0, 0, 0, 0, 0, 0}, infinite[4] = {0, 0, 0, INFINITY};
    matrix_begin(dtypes[_i]);
    matrix_read(ad_expm(matrix_leaf(2, SHAPE(2, 2), nilpotent)), b);
    near(b[0], 1, 4);
    near(b[1], 3, 8);
    ck_assert(b[2] == 0);
    near(b[3], 1, 4);
    matrix_read(ad_expm(matrix_leaf(2, SHAPE(2, 2), turn)), b);
    for (int i = 0; i < 4; i++)
        near(b[i], i % 3 ? 0 : -1, 64);
    matrix_read(ad_expm(matrix_leaf(2, SHAPE(2, 2), huge)), b);
    ck_assert(!isfinite(b[3])); /* and it comes to an end */
    matrix_read(ad_expm(matrix_leaf(3, SHAPE(2, 2, 2), bad)), b);
    for (int i = 0; i < 8; i++)
        ck_assert(i < 4 ? isnan(b[i]) : b[i] == (i % 3 == 1));
    matrix_read(ad_expm(matrix_leaf(2, SHAPE(2, 2), infinite)), b);
    for (int i = 0; i < 4; i++)
        ck_assert(isnan(b[i]));
    matrix_end();
}

/* ---- all of them ---- */

TEST_EACH(a_matrix_that_is_not_finite_gives_nan_and_the_next_of_a_batch_does_not, 2)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    for (int k = 0; k < 3; k++)
        for (int at = 0; at < 6; at++) {
            double m[12] = {4, 1, 0, 3, 1, 1, 4, 1, 0, 3, 1, 1},
                   square[8] = {3, 1, 1, 2, 3, 1, 1, 2};
            const double right[3] = {1, 2, 3};
            ad_tensor result[5] = {{0}}, more[3] = {{0}};
            matrix_begin(dtypes[_i]);
            m[at] = bad[k];
            square[at % 4] = bad[k];
            const ad_tensor t = matrix_leaf(3, SHAPE(2, 3, 2), m);
            result[0] = ad_qr(t, &more[0]);
            result[1] = ad_lstsq(t, matrix_leaf(1, SHAPE(3), right));
            result[2] = ad_svd(t, &more[1], NULL);
            result[3] = ad_eigh(matrix_leaf(3, SHAPE(2, 2, 2), square), &more[2]);
            for (int i = 0; i < 7; i++) {
                const ad_tensor y = i < 4 ? result[i] : more[i - 4];
                matrix_read(y, u);
                const int64_t half = ad_size(y) / 2;
                ck_assert(isnan(u[0]) && isnan(u[half - 1]));
                for (int64_t j = half; j < 2 * half; j++)
                    ck_assert(isfinite(u[j]));
            }
            matrix_end();
        }
}

TEST(shapes_that_do_not_fit_are_refused)
{
    matrix_begin(AD_F64);
    const ad_tensor wide = matrix_leaf(2, SHAPE(2, 3), a), vector = matrix_leaf(1, SHAPE(3), a);
    ad_eigh(wide, NULL);
    matrix_refused(AD_ERROR_SHAPE, "eigh: f64 [2,3]: a is square in its last two axes");
    ad_svd(vector, NULL, NULL);
    matrix_refused(AD_ERROR_SHAPE, "svd: f64 [3]: a has two axes at least");
    ad_qr(vector, NULL);
    matrix_refused(AD_ERROR_SHAPE, "qr: f64 [3]: a has two axes at least");
    ad_expm(wide);
    matrix_refused(AD_ERROR_SHAPE, "expm: f64 [2,3]: a is square in its last two axes");
    ad_lstsq(vector, vector);
    matrix_refused(AD_ERROR_SHAPE, "lstsq: f64 [3], f64 [3]: a has two axes at least");
    matrix_end();
}

RUN_TESTS(NULL, NULL)
