/* fused_loop_kinds.c: see fused_loop_kinds.h.
 *
 * Loops are written as the definitions have them, one statement a step.
 */
#include "fused_loop_kinds.h"

#include <math.h>

enum { ROWS = 3, VECTORS = 35, TAPS = 3 };

static void add_product(ad_real *sum, ad_real a, ad_real b)
{
    ad_set(sum, ad_real_add(*sum, ad_real_mul(a, b)));
}

/* ---- dot, sum, sum_of_squares, log_sum_exp ---- */

static struct fused_loop_shape dot_shape(int n)
{
    return (struct fused_loop_shape){1, 2, {n, n}};
}

static void dot_fused_loop(int n, const ad_array *x, ad_real *y)
{
    *y = ad_real_dot_(n, x[0], x[1]);
}

static void dot_loop(int n, ad_real *const *x, ad_real *y)
{
    *y = (ad_real){0};
    for (int i = 0; i < n; i++)
        add_product(y, x[0][i], x[1][i]);
}

static struct fused_loop_shape one_shape(int n)
{
    return (struct fused_loop_shape){1, 1, {n}};
}

static void sum_fused_loop(int n, const ad_array *x, ad_real *y)
{
    *y = ad_real_sum_(n, x[0]);
}

static void sum_loop(int n, ad_real *const *x, ad_real *y)
{
    *y = (ad_real){0};
    for (int i = 0; i < n; i++)
        ad_set(y, ad_real_add(*y, x[0][i]));
}

static void squares_fused_loop(int n, const ad_array *x, ad_real *y)
{
    *y = ad_real_sum_of_squares_(n, x[0]);
}

static void squares_loop(int n, ad_real *const *x, ad_real *y)
{
    *y = (ad_real){0};
    for (int i = 0; i < n; i++)
        ad_set(y, ad_real_add(*y, ad_real_square(x[0][i])));
}

static struct fused_loop_shape rows_shape(int n)
{
    return (struct fused_loop_shape){ROWS, 1, {ROWS * n}};
}

static void rows_fused_loop(int n, const ad_array *x, ad_real *y)
{
    ad_real_sums_of_squares_(ROWS, n, x[0], y);
}

static void rows_loop(int n, ad_real *const *x, ad_real *y)
{
    for (int i = 0; i < ROWS; i++)
        squares_loop(n, (ad_real *[]){x[0] + i * n}, &y[i]);
}

static void log_sum_exp_fused_loop(int n, const ad_array *x, ad_real *y)
{
    *y = ad_real_log_sum_exp_(n, x[0]);
}

static void log_sum_exp_loop(int n, ad_real *const *x, ad_real *y)
{
    ad_real sum = {0};
    for (int i = 0; i < n; i++)
        ad_set(&sum, ad_real_add(sum, ad_real_exp(x[0][i])));
    *y = (ad_real){.value = -INFINITY};
    if (n > 0)
        ad_set(y, ad_real_log(sum));
}

/* ---- linear algebra ---- */

static struct fused_loop_shape axpy_shape(int n)
{
    return (struct fused_loop_shape){n, 3, {1, n, n}};
}

/* In place, so of a copy; what is no array of ad_real becomes one. */
static ad_real element(ad_array x, int i)
{
    return x.real ? x.real[i] : ad_real_of(x.number[i]);
}

static void axpy_fused_loop(int n, const ad_array *x, ad_real *y)
{
    for (int i = 0; i < n; i++)
        y[i] = element(x[2], i);
    ad_real_axpy_(n, element(x[0], 0), x[1], y);
}

static void axpy_loop(int n, ad_real *const *x, ad_real *y)
{
    for (int i = 0; i < n; i++) {
        y[i] = x[2][i];
        add_product(&y[i], x[0][0], x[1][i]);
    }
}

static struct fused_loop_shape gemv_shape(int n)
{
    return (struct fused_loop_shape){ROWS, 2, {ROWS * n, n}};
}

static void gemv_fused_loop(int n, const ad_array *x, ad_real *y)
{
    ad_real_gemv_(ROWS, n, x[0], x[1], y);
}

static void gemv_loop(int n, ad_real *const *x, ad_real *y)
{
    for (int i = 0; i < ROWS; i++)
        dot_loop(n, (ad_real *[]){x[0] + i * n, x[1]}, &y[i]);
}

static struct fused_loop_shape trmv_shape(int n)
{
    return (struct fused_loop_shape){n, 3, {n, n * (n - 1) / 2, n}};
}

static void trmv_fused_loop(int n, const ad_array *x, ad_real *y)
{
    ad_real_trmv_(n, x[0], x[1], x[2], y);
}

static void trmv_loop(int n, ad_real *const *x, ad_real *y)
{
    const ad_real *l = x[1];
    for (int r = 0; r < n; r++)
        ad_set(&y[r], ad_real_mul(x[0][r], x[2][r]));
    for (int c = 0; c < n; c++)
        for (int r = c + 1; r < n; r++)
            add_product(&y[r], *l++, x[2][c]);
}

static struct fused_loop_shape trmm_shape(int n)
{
    return (struct fused_loop_shape){VECTORS * n, 4, {n, n * (n - 1) / 2, n, VECTORS * n}};
}

static void trmm_fused_loop(int n, const ad_array *x, ad_real *y)
{
    ad_real_trmm_(VECTORS, n, x[0], x[1], x[2], x[3], y);
}

static void trmm_loop(int n, ad_real *const *x, ad_real *y)
{
    ad_real a[64];
    for (int i = 0; i < VECTORS; i++) {
        for (int j = 0; j < n; j++)
            ad_set(&a[j], ad_real_sub(x[3][i * n + j], x[2][j]));
        trmv_loop(n, (ad_real *[]){x[0], x[1], a}, y + i * n);
    }
}

/* Long enough for columns to be loops. */
static struct fused_loop_shape wide_shape(int n)
{
    n = n ? 50 : 0;
    return (struct fused_loop_shape){2 * n, 4, {n, n * (n - 1) / 2, n, 2 * n}};
}

static void wide_fused_loop(int n, const ad_array *x, ad_real *y)
{
    ad_real_trmm_(2, n ? 50 : 0, x[0], x[1], x[2], x[3], y);
}

static void wide_loop(int n, ad_real *const *x, ad_real *y)
{
    ad_real a[50];
    for (int i = 0; i < 2 && n; i++) {
        for (int j = 0; j < 50; j++)
            ad_set(&a[j], ad_real_sub(x[3][i * 50 + j], x[2][j]));
        trmv_loop(50, (ad_real *[]){x[0], x[1], a}, y + i * 50);
    }
}

/* ---- others ---- */

static struct fused_loop_shape polynomial_shape(int n)
{
    return (struct fused_loop_shape){1, 2, {n, 1}};
}

static void polynomial_fused_loop(int n, const ad_array *x, ad_real *y)
{
    *y = ad_real_polynomial_(n, x[0], element(x[1], 0));
}

static void polynomial_loop(int n, ad_real *const *x, ad_real *y)
{
    *y = (ad_real){0};
    for (int i = n - 1; i >= 0; i--)
        ad_set(y, ad_real_add(ad_real_mul(*y, x[1][0]), x[0][i]));
}

static struct fused_loop_shape stencil_shape(int n)
{
    return (struct fused_loop_shape){n, 2, {n ? n + TAPS - 1 : 0, TAPS}};
}

static void stencil_fused_loop(int n, const ad_array *x, ad_real *y)
{
    ad_real_stencil_(n, x[0], TAPS, x[1], y);
}

static void stencil_loop(int n, ad_real *const *x, ad_real *y)
{
    for (int i = 0; i < n; i++)
        dot_loop(TAPS, (ad_real *[]){x[0] + i, x[1]}, &y[i]);
}

static struct fused_loop_shape map_shape(int n)
{
    return (struct fused_loop_shape){n, 2, {n, n}};
}

/* a sin b */
static void map_callback(void *payload, int64_t n, const double *const *x, double *y,
                         double *const *partial)
{
    (void)payload;
    for (int64_t i = 0; i < n; i++) {
        y[i] = x[0][i] * sin(x[1][i]);
        if (partial[0])
            partial[0][i] = sin(x[1][i]);
        if (partial[1])
            partial[1][i] = x[0][i] * cos(x[1][i]);
    }
}

static void map_fused_loop(int n, const ad_array *x, ad_real *y)
{
    ad_real_map(n, 2, x, y, map_callback, NULL);
}

static void map_loop(int n, ad_real *const *x, ad_real *y)
{
    for (int i = 0; i < n; i++)
        ad_set(&y[i], ad_real_mul(x[0][i], ad_real_sin(x[1][i])));
}

static struct fused_loop_shape collect_shape(int n)
{
    return (struct fused_loop_shape){n, 1, {n}};
}

static void collect_fused_loop(int n, const ad_array *x, ad_real *y)
{
    ad_real_collect_(n, x[0], y);
}

static void collect_loop(int n, ad_real *const *x, ad_real *y)
{
    for (int i = 0; i < n; i++)
        y[i] = x[0][i];
}

static struct fused_loop_shape custom_shape(int n)
{
    return (struct fused_loop_shape){2, 1, {n}};
}

/* The sum times data[0], and the sum of the squares, by data[1 + i] = x[i]. */
static void custom_pullback(const void *data, int64_t m, const double *y_adjoint, int64_t n,
                            double *x_adjoint)
{
    const double *d = data;
    (void)m;
    for (int64_t i = 0; i < n; i++)
        x_adjoint[i] += d[0] * y_adjoint[0] + 2 * d[1 + i] * y_adjoint[1];
}

static void custom_fused_loop(int n, const ad_array *x, ad_real *y)
{
    double data[200] = {3}, values[2] = {0};
    for (int i = 0; i < n; i++) {
        data[1 + i] = element(x[0], i).value;
        values[0] += 3 * data[1 + i];
        values[1] += data[1 + i] * data[1 + i];
    }
    ad_real_custom_(n, x[0], 2, values, y,
                    ad_custom_of_("custom", custom_pullback, data, ((size_t)n + 1) * sizeof *data));
}

static void custom_loop(int n, ad_real *const *x, ad_real *y)
{
    y[0] = y[1] = (ad_real){0};
    for (int i = 0; i < n; i++) {
        ad_set(&y[0], ad_real_add(y[0], ad_real_mul(3, x[0][i])));
        ad_set(&y[1], ad_real_add(y[1], ad_real_square(x[0][i])));
    }
}

const struct fused_loop_case fused_loop_cases[FUSED_LOOP_COUNT] = {
    {"dot", dot_shape, dot_fused_loop, dot_loop},
    {"sum", one_shape, sum_fused_loop, sum_loop},
    {"sum of squares", one_shape, squares_fused_loop, squares_loop},
    {"sums of squares", rows_shape, rows_fused_loop, rows_loop},
    {"log sum exp", one_shape, log_sum_exp_fused_loop, log_sum_exp_loop},
    {"axpy", axpy_shape, axpy_fused_loop, axpy_loop},
    {"gemv", gemv_shape, gemv_fused_loop, gemv_loop},
    {"trmv", trmv_shape, trmv_fused_loop, trmv_loop},
    {"trmm", trmm_shape, trmm_fused_loop, trmm_loop},
    {"trmm of long columns", wide_shape, wide_fused_loop, wide_loop},
    {"polynomial", polynomial_shape, polynomial_fused_loop, polynomial_loop},
    {"stencil", stencil_shape, stencil_fused_loop, stencil_loop},
    {"map", map_shape, map_fused_loop, map_loop},
    {"collect", collect_shape, collect_fused_loop, collect_loop},
    {"custom", custom_shape, custom_fused_loop, custom_loop},
};
