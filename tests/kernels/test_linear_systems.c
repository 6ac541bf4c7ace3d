/* test_linear_systems.c: Cholesky factors, triangular systems, LU: values against long double, what
 * is promised at special values, and what is refused.
 *
 * Matrices beyond the blocks of the kernels.
 */
#include "matrix_case.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 70 };

static const ad_dtype dtypes[] = {AD_F32, AD_F64};
static const int orders[] = {1, 2, 5, 31, 32, 33, MOST};
enum { ORDERS = sizeof orders / sizeof *orders };

static double a[MOST * MOST], b[MOST * MOST], x[MOST * MOST], g[MOST * MOST], w[MOST * MOST];
static long double exact[MOST * MOST], other[MOST * MOST];

static void near(double got, long double want, double scale)
{
    ck_assert_msg(fabsl((long double)got - want) <= (long double)(scale * matrix_epsilon()),
                  "%.17g, but it is %.17Lg", got, want);
}

/* ---- cholesky ---- */

/* exact = the lower triangular root of the symmetric part of a. */
static void root_of(int n)
{
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) {
            long double sum = ((long double)a[i * n + j] + (long double)a[j * n + i]) / 2;
            for (int k = 0; k < j; k++)
                sum -= exact[i * n + k] * exact[j * n + k];
            exact[i * n + j] = i < j ? 0 : i == j ? sqrtl(sum) : sum / exact[j * n + j];
        }
}

/* other = gradient of <w, root> in the symmetric matrix, by reversing each step of root_of. */
static void root_adjoint(int n)
{
    long double *const bar = calloc((size_t)n * (size_t)n, sizeof *bar);
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++)
            bar[i * n + j] = (long double)w[i * n + j];
    for (int j = n - 1; j >= 0; j--)
        for (int i = n - 1; i >= j; i--) {
            const long double root = exact[j * n + j];
            long double from = 0;
            if (i == j) {
                from = bar[i * n + j] / (2 * root);
            } else {
                from = bar[i * n + j] / root;
                bar[j * n + j] -= from * exact[i * n + j];
            }
            bar[i * n + j] = from;
            for (int k = 0; k < j; k++) {
                bar[i * n + k] -= from * exact[j * n + k];
                bar[j * n + k] -= from * exact[i * n + k];
            }
        }
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++)
            other[i * n + j] = other[j * n + i] = i == j ? bar[i * n + j] : bar[i * n + j] / 2;
    free(bar);
}

TEST_EACH(roots_and_their_gradients_agree_with_long_double, 2)
{
    for (int k = 0; k < ORDERS; k++)
        for (int layout = 0; layout < MATRIX_LAYOUTS; layout++) {
            const int n = orders[k];
            matrix_begin(dtypes[_i]);
            matrix_random_raised(n, 0.125, a);
            for (int i = 0; i < n; i++)
                a[i * n + i] += n; /* exactly what f32 holds */
            matrix_random(n * n, w);
            root_of(n);
            root_adjoint(n);
            const ad_tensor at = matrix_leaf(2, SHAPE(n, n), a);
            const ad_tensor l = ad_cholesky(layout == MATRIX_DENSE ? ad_scale(at, 1) : at);
            matrix_read(l, x);
            for (int i = 0; i < n * n; i++)
                near(x[i], exact[i], 4.0 * n);
            matrix_sweep(l, w);
            matrix_gradient(at, g);
            for (int i = 0; i < n * n; i++)
                near(g[i], other[i], 16.0 * n);
            for (int i = 0; i < n; i++)
                for (int j = 0; j < i; j++)
                    ck_assert(g[i * n + j] == g[j * n + i]); /* symmetric bit for bit */
            const ad_tensor view = matrix_laid((enum matrix_layout)layout, n, n, a);
            double *const again = calloc((size_t)n * (size_t)n, sizeof *again);
            matrix_read(ad_cholesky(view), again);
            ck_assert_int_eq(memcmp(again, x, sizeof *x * (size_t)n * (size_t)n), 0);
            free(again);
            matrix_end();
        }
}

TEST_EACH(the_root_is_that_of_the_symmetric_part, 2)
{
    const double lopsided[4] = {4, 9, -5, 6}, symmetric[4] = {4, 2, 2, 6}, seed[4] = {1, 7, 2, 3};
    double from[2][4], gradient[2][4];
    matrix_begin(dtypes[_i]);
    for (int k = 0; k < 2; k++) {
        const ad_tensor at = matrix_leaf(2, SHAPE(2, 2), k ? symmetric : lopsided);
        const ad_tensor l = ad_cholesky(at);
        matrix_read(l, from[k]);
        matrix_sweep(l, seed); /* what comes above the diagonal does not count */
        matrix_gradient(at, gradient[k]);
    }
    ck_assert_int_eq(memcmp(from[0], from[1], sizeof from[0]), 0);
    ck_assert_int_eq(memcmp(gradient[0], gradient[1], sizeof gradient[0]), 0);
    ck_assert(from[0][0] == 2 && from[0][1] == 0 && from[0][2] == 1);
    ck_assert(gradient[0][1] == gradient[0][2] && gradient[0][1] != 0);
    matrix_end();
}

TEST_EACH(what_is_not_positive_definite_is_refused_by_its_minor, 2)
{
    const double indefinite[9] = {4, 2, 0, 2, 1, 0, 0, 0, 1}; /* the second minor is 0 */
    const double batch[8] = {1, 0, 0, 1, -1, 0, 0, 1};
    matrix_begin(dtypes[_i]);
    ad_cholesky(matrix_leaf(2, SHAPE(3, 3), indefinite));
    matrix_refused(AD_ERROR_VALUE,
                   "[3,3]: not positive definite: the leading minor of order 2 is not positive");
    ad_cholesky(matrix_leaf(3, SHAPE(2, 2, 2), batch));
    matrix_refused(AD_ERROR_VALUE, "[2,2,2]: matrix 1: not positive definite: the leading minor of "
                                   "order 1 is not positive");
    matrix_end();
}

TEST_EACH(a_matrix_that_is_not_finite_has_a_root_of_nan, 2)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    matrix_begin(dtypes[_i]);
    for (int k = 0; k < 3; k++)
        for (int at = 0; at < 9; at++) {
            double m[18] = {4, 0, 0, 0, 4, 0, 0, 0, 4, 4, 0, 0, 0, 4, 0, 0, 0, 4};
            m[9 + at] = bad[k];
            matrix_read(ad_cholesky(matrix_leaf(3, SHAPE(2, 3, 3), m)), x);
            for (int i = 0; i < 9; i++) {
                ck_assert(x[i] == (i % 4 ? 0 : 2));
                ck_assert(i % 3 > i / 3 ? x[9 + i] == 0 : isnan(x[9 + i]));
            }
        }
    matrix_end();
}

/* ---- triangular systems ---- */

/* exact = op(t) x, of what lapack gave. */
static void product_of(int n, int k, bool upper, bool transposed, bool unit)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < k; j++) {
            long double sum = 0;
            for (int m = 0; m < n; m++) {
                const int row = transposed ? m : i, column = transposed ? i : m;
                const bool there = upper ? row <= column : row >= column;
                const double t = row == column && unit ? 1 : there ? a[row * n + column] : 0;
                sum += (long double)t * (long double)x[m * k + j];
            }
            exact[i * k + j] = sum;
        }
}

TEST_EACH(triangular_systems_are_solved_in_every_form, 2)
{
    for (int k = 0; k < ORDERS; k++)
        for (int form = 0; form < 8; form++)
            for (int layout = 0; layout < MATRIX_LAYOUTS; layout++) {
                const int n = orders[k], columns = k % 3 + 1;
                const bool upper = form & 1, transposed = form & 2, unit = form & 4;
                matrix_begin(dtypes[_i]);
                matrix_random_raised(n, 0, a);
                for (int i = 0; i < n * n; i++)
                    a[i] = i % (n + 1) ? a[i] / 64 : a[i] + 2; /* unit ones are small enough */
                matrix_random(n * columns, b);
                const ad_tensor t = matrix_laid((enum matrix_layout)layout, n, n, a);
                const ad_tensor right = matrix_laid((enum matrix_layout)layout, n, columns, b);
                matrix_read(ad_solve_triangular(t, right,
                                                (upper ? AD_UPPER : 0) |
                                                    (transposed ? AD_TRANSPOSED : 0) |
                                                    (unit ? AD_UNIT_DIAGONAL : 0)),
                            x);
                product_of(n, columns, upper, transposed, unit);
                for (int i = 0; i < n * columns; i++)
                    near(b[i], exact[i], 16.0 * n);
                matrix_end();
            }
}

TEST_EACH(the_other_triangle_is_not_read_and_has_no_gradient, 2)
{
    const double t[4] = {2, NAN, 3, 4}, unit[4] = {NAN, NAN, 3, NAN}, right[2] = {2, 11};
    const double ones[2] = {1, 1};
    matrix_begin(dtypes[_i]);
    for (int k = 0; k < 2; k++) {
        const ad_tensor at = matrix_leaf(2, SHAPE(2, 2), k ? unit : t);
        const ad_tensor bt = matrix_leaf(1, SHAPE(2), right);
        const ad_tensor y = ad_solve_triangular(at, bt, k == 1 ? AD_UNIT_DIAGONAL : 0);
        matrix_read(y, x);
        ck_assert(k ? x[0] == 2 && x[1] == 5 : x[0] == 1 && x[1] == 2);
        matrix_sweep(y, ones);
        matrix_gradient(at, g);
        ck_assert(g[1] == 0 && g[2] != 0 && (k == 0 || (g[0] == 0 && g[3] == 0)));
    }
    matrix_end();
}

TEST_EACH(a_zero_on_the_diagonal_gives_no_finite_solution, 2)
{
    const double t[4] = {2, 0, 3, 0}, right[2] = {2, 11};
    matrix_begin(dtypes[_i]);
    matrix_read(
        ad_solve_triangular(matrix_leaf(2, SHAPE(2, 2), t), matrix_leaf(1, SHAPE(2), right), 0), x);
    ck_assert(x[0] == 1 && !isfinite(x[1]));
    matrix_end();
}

/* ---- LU ---- */

TEST_EACH(systems_are_solved_and_inverses_multiply_to_one, 2)
{
    for (int k = 0; k < ORDERS; k++)
        for (int layout = 0; layout < MATRIX_LAYOUTS; layout++) {
            const int n = orders[k], columns = k % 3 + 1;
            matrix_begin(dtypes[_i]);
            matrix_random(n * n, a);
            for (int i = 0; i < n; i++) /* far from singular, and rows are exchanged */
                a[i * n + (i + 1) % n] += 8;
            matrix_random(n * columns, b);
            const ad_tensor at = matrix_laid((enum matrix_layout)layout, n, n, a);
            matrix_read(ad_solve(at, matrix_laid((enum matrix_layout)layout, n, columns, b)), x);
            for (int i = 0; i < n; i++)
                for (int j = 0; j < columns; j++) {
                    long double sum = 0;
                    for (int m = 0; m < n; m++)
                        sum += (long double)a[i * n + m] * (long double)x[m * columns + j];
                    near(b[i * columns + j], sum, 32.0 * n);
                }
            matrix_read(ad_inverse(at), x);
            for (int i = 0; i < n; i++)
                for (int j = 0; j < n; j++) {
                    long double sum = 0;
                    for (int m = 0; m < n; m++)
                        sum += (long double)a[i * n + m] * (long double)x[m * n + j];
                    near(i == j, sum, 32.0 * n);
                }
            matrix_end();
        }
}

TEST(gradients_of_larger_systems_satisfy_their_equations)
{
    const int n = MOST;
    matrix_begin(AD_F64);
    matrix_random_raised(n, 2, a);
    matrix_random(n, b);
    matrix_random(n, w);
    const ad_tensor at = matrix_leaf(2, SHAPE(n, n), a), bt = matrix_leaf(1, SHAPE(n), b);
    const ad_tensor y = ad_solve(at, bt);
    double to_b[MOST];
    matrix_read(y, x);
    matrix_sweep(y, w);
    matrix_gradient(bt, to_b);
    matrix_gradient(at, g);
    for (int i = 0; i < n; i++) {
        long double sum = 0;
        for (int m = 0; m < n; m++)
            sum += (long double)a[m * n + i] * (long double)to_b[m];
        near(w[i], sum, 32.0 * n);
        for (int j = 0; j < n; j++)
            near(g[i * n + j], -(long double)to_b[i] * (long double)x[j], 4);
    }
    matrix_end();
}

TEST_EACH(determinants_have_sign_logarithm_and_no_overflow, 2)
{
    const double m[4] = {1, 2, 3, 4}, swapped[4] = {3, 4, 1, 2};
    matrix_begin(dtypes[_i]);
    ad_tensor log = {0};
    const double scale = 4 * matrix_epsilon();
    ck_assert_double_eq_tol(ad_item(ad_det(matrix_leaf(2, SHAPE(2, 2), m))), -2, scale);
    ck_assert_double_eq_tol(ad_item(ad_det(matrix_leaf(2, SHAPE(2, 2), swapped))), 2, scale);
    ck_assert_double_eq_tol(ad_item(ad_logdet(matrix_leaf(2, SHAPE(2, 2), swapped))),
                            log2(2) * M_LN2, scale);
    ck_assert(isnan(ad_item(ad_logdet(matrix_leaf(2, SHAPE(2, 2), m)))));
    ck_assert(ad_item(ad_slogdet(matrix_leaf(2, SHAPE(2, 2), m), &log)) == -1);
    ck_assert_double_eq_tol(ad_item(log), M_LN2, scale);
    ck_assert(ad_item(ad_slogdet(matrix_leaf(2, SHAPE(2, 2), swapped), NULL)) == 1);
    /* Of nothing. */
    const ad_tensor none = matrix_leaf(2, SHAPE(0, 0), m);
    ck_assert(ad_item(ad_det(none)) == 1 && ad_item(ad_logdet(none)) == 0);
    ck_assert(ad_item(ad_slogdet(none, &log)) == 1 && ad_item(log) == 0);
    /* Pivots whose partial products are beyond f32 and f64, and whose logarithms add up. */
    const int n = 40;
    memset(a, 0, sizeof a);
    for (int i = 0; i < n; i++)
        a[i * n + i] = ldexp(1, i < n / 2 ? 100 : -100);
    ck_assert(ad_item(ad_det(matrix_leaf(2, SHAPE(n, n), a))) == 1);
    for (int i = 0; i < n; i++)
        a[i * n + i] = ldexp(1, 100);
    ck_assert(ad_item(ad_slogdet(matrix_leaf(2, SHAPE(n, n), a), &log)) == 1);
    ck_assert_double_eq_tol(ad_item(log), 4000 * M_LN2, 4000 * scale);
    ck_assert(isinf(ad_item(ad_det(matrix_leaf(2, SHAPE(n, n), a)))));
    matrix_end();
}

TEST_EACH(a_singular_matrix_is_refused_or_has_determinant_zero, 2)
{
    const double singular[9] = {1, 2, 3, 4, 5, 6, 0, 0, 0}, right[3] = {1, 2, 3}, one[1] = {1};
    const double batch[8] = {1, 0, 0, 1, 0, 0, 0, 0};
    ad_tensor log = {0};
    matrix_begin(dtypes[_i]);
    const ad_tensor at = matrix_leaf(2, SHAPE(3, 3), singular);
    ad_solve(at, matrix_leaf(1, SHAPE(3), right));
    matrix_refused(AD_ERROR_VALUE, "[3]: a is singular: pivot 3 of its LU decomposition is 0");
    ad_inverse(at);
    matrix_refused(AD_ERROR_VALUE, "[3,3]: singular: pivot 3 of its LU decomposition is 0");
    ad_inverse(matrix_leaf(3, SHAPE(2, 2, 2), batch));
    matrix_refused(AD_ERROR_VALUE, "matrix 1: singular: pivot 1 ");
    ck_assert(ad_item(ad_slogdet(at, &log)) == 0 && ad_item(log) == -INFINITY);
    ck_assert(ad_item(ad_logdet(at)) == -INFINITY);
    const ad_tensor y = ad_det(at);
    ck_assert(ad_item(y) == 0);
    matrix_sweep(y, one);
    matrix_gradient(at, g);
    const double cofactors[9] = {0, 0, 0, 0, 0, 0, -3, 6, -3};
    for (int i = 0; i < 9; i++)
        ck_assert_double_eq_tol(g[i], cofactors[i], 1e-5);
    matrix_end();
}

/* The determinant of a matrix of n rows without those and the columns in the masks. */
static long double minor_of(int n, const double *m, unsigned rows, unsigned columns)
{
    long double sum = 0, sign = 1;
    int row = 0;
    while (row < n && rows >> row & 1)
        row++;
    if (row == n)
        return 1;
    for (int j = 0; j < n; j++)
        if (!(columns >> j & 1)) {
            sum += sign * (long double)m[row * n + j] *
                   minor_of(n, m, rows | 1U << row, columns | 1U << j);
            sign = -sign;
        }
    return sum;
}

/* Of each matrix of a batch, with a seed of 2. */
static void check_cofactors(int n, int count, const double *m)
{
    double seed[8];
    for (int k = 0; k < count; k++)
        seed[k] = 2;
    const ad_tensor at = matrix_leaf(3, SHAPE(count, n, n), m);
    const ad_tensor y = ad_det(at);
    matrix_sweep(y, seed);
    matrix_gradient(at, g);
    for (int k = 0; k < count; k++)
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                const long double sign = (i + j) % 2 == 0 ? 2 : -2;
                const double want = (double)(sign * minor_of(n, m + k * n * n, 1U << i, 1U << j));
                ck_assert_msg(fabs(g[(k * n + i) * n + j] - want) <= 2e-5 * (1 + fabs(want)),
                              "%d x %d, matrix %d, (%d, %d): %g, not %g", n, n, k, i, j,
                              g[(k * n + i) * n + j], want);
            }
}

TEST_EACH(the_gradient_of_a_determinant_is_the_cofactors_also_where_it_is_zero, 2)
{
    const double one[] = {0, 3};
    const double two[] = {1, 2, 2, 4, 0, 0, 5, 0, 0, 0, 0, 0, 1, 2, 3, 4, 0, 1, 0, 2};
    const double three[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                            0, 0, 0, 5, 0, 1, 2, 3, 0, 2, 0, 0, 0, 0, 3, 0, 0, 4};
    double four[3 * 16] = {0};
    for (int i = 0; i < 16; i++) {
        four[i] = (i * 7 % 5) - 2;
        four[16 + i] = i / 4 == 2 ? four[4 + i % 4] : four[i]; /* two equal rows */
        four[32 + i] = i % 4 == 0 ? 0 : four[i];               /* a column of zeros */
    }
    matrix_begin(dtypes[_i]);
    check_cofactors(1, 2, one);
    check_cofactors(2, 5, two);
    check_cofactors(3, 4, three);
    check_cofactors(4, 3, four);
    matrix_end();
}

TEST_EACH(the_second_derivative_of_a_determinant_that_is_zero_is_nan, 2)
{
    const double m[] = {1, 2, 2, 4, 1, 2, 3, 4};
    matrix_begin(dtypes[_i]);
    const ad_tensor at = matrix_leaf(3, SHAPE(2, 2, 2), m);
    ad_tensor first = {0};
    ck_assert_int_eq(ad_create_graph(ad_sum(ad_det(at)), (ad_tensor){0}, 1, &at, &first), AD_OK);
    const double weights[] = {1, 0, 0, 0, 1, 0, 0, 0}, right[] = {0, 0, 0, 1};
    matrix_sweep(first, weights);
    matrix_gradient(at, g);
    for (int i = 0; i < 4; i++) {
        ck_assert(isnan(g[i]));
        ck_assert_double_eq_tol(g[4 + i], right[i], 1e-5);
    }
    matrix_end();
}

TEST_EACH(a_matrix_that_is_not_finite_gives_nan, 2)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    const double right[2] = {1, 2};
    matrix_begin(dtypes[_i]);
    for (int k = 0; k < 3; k++)
        for (int at = 0; at < 4; at++) {
            double m[4] = {2, 1, 0, 1};
            ad_tensor log = {0};
            m[at] = bad[k];
            const ad_tensor t = matrix_leaf(2, SHAPE(2, 2), m);
            matrix_read(ad_solve(t, matrix_leaf(1, SHAPE(2), right)), x);
            matrix_read(ad_inverse(t), x + 2);
            for (int i = 0; i < 6; i++)
                ck_assert(isnan(x[i]));
            ck_assert(isnan(ad_item(ad_det(t))) && isnan(ad_item(ad_logdet(t))));
            ck_assert(isnan(ad_item(ad_slogdet(t, &log))) && isnan(ad_item(log)));
        }
    matrix_end();
}

TEST(shapes_that_do_not_fit_are_refused)
{
    matrix_begin(AD_F64);
    const ad_tensor wide = matrix_leaf(2, SHAPE(2, 3), a), square = matrix_leaf(2, SHAPE(3, 3), a);
    const ad_tensor vector = matrix_leaf(1, SHAPE(3), a), pair = matrix_leaf(1, SHAPE(2), a);
    const ad_tensor batch = matrix_leaf(3, SHAPE(2, 3, 3), a);
    const ad_tensor threes = matrix_leaf(3, SHAPE(3, 3, 1), a),
                    number = matrix_leaf(0, SHAPE(1), a);
    ad_cholesky(wide);
    matrix_refused(AD_ERROR_SHAPE, "cholesky: f64 [2,3]: a is square in its last two axes");
    ad_cholesky(vector);
    matrix_refused(AD_ERROR_SHAPE, "cholesky: f64 [3]: a has two axes at least");
    ad_solve_triangular(square, pair, 0);
    matrix_refused(AD_ERROR_SHAPE, "solve_triangular: f64 [3,3], f64 [2]: b is [3] or [...,3,k]");
    ad_solve(square, number);
    matrix_refused(AD_ERROR_SHAPE, "solve: f64 [3,3], f64 []: b is [3] or [...,3,k]");
    ad_solve(batch, threes);
    matrix_refused(AD_ERROR_SHAPE, "solve: f64 [2,3,3], f64 [3,3,1]: extents 2 and 3 do not ");
    ad_inverse(wide);
    matrix_refused(AD_ERROR_SHAPE, "inverse: f64 [2,3]: a is square");
    ad_det(vector);
    matrix_refused(AD_ERROR_SHAPE, "det: f64 [3]: a has two axes at least");
    ad_logdet(wide);
    matrix_refused(AD_ERROR_SHAPE, "logdet: f64 [2,3]: a is square");
    ad_slogdet(wide, NULL);
    matrix_refused(AD_ERROR_SHAPE, "slogdet: f64 [2,3]: a is square");
    /* Views, so that there need be no memory. */
    const ad_tensor one = matrix_leaf(2, SHAPE(1, 1), a);
    ad_cholesky(ad_broadcast_to(one, SHAPE(20000, 20000), 2));
    matrix_refused(AD_ERROR_SHAPE, "a is larger than LAPACK can count");
    ad_solve(one, ad_broadcast_to(one, SHAPE(1, (int64_t)1 << 32), 2));
    matrix_refused(AD_ERROR_SHAPE, "b is larger than LAPACK can count");
    matrix_end();
}

RUN_TESTS(NULL, NULL)
