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

/* ---- stencils on two and three dimensions ---- */

struct grid {
    int n[3], k[3], m[3];
    ad_edge edge;
};

static struct grid grid_of(int n0, int n1, int n2, int k0, int k1, int k2, ad_edge edge)
{
    struct grid g = {{n0, n1, n2}, {k0, k1, k2}, {n0, n1, n2}, edge};
    for (int d = 0; d < 3 && edge == AD_EDGE_SHRINK; d++)
        g.m[d] = g.n[d] < g.k[d] ? 0 : g.n[d] - g.k[d] + 1;
    return g;
}

static struct fused_loop_shape grid_shape(struct grid g)
{
    return (struct fused_loop_shape){
        g.m[0] * g.m[1] * g.m[2], 2, {g.n[0] * g.n[1] * g.n[2], g.k[0] * g.k[1] * g.k[2]}};
}

/* Where a tap of point i lies in dimension d, or -1: beyond the edge. */
static int grid_at(const struct grid *g, int d, int i, int tap)
{
    const int at = i + tap - (g->edge == AD_EDGE_SHRINK ? 0 : g->k[d] / 2);
    if (at >= 0 && at < g->n[d])
        return at;
    return g->edge == AD_EDGE_WRAP ? (at + g->n[d]) % g->n[d] : -1;
}

static ad_real grid_point(const struct grid *g, const ad_real *x, const ad_real *w, const int *i)
{
    ad_real sum = {0};
    for (int a = 0; a < g->k[0]; a++)
        for (int b = 0; b < g->k[1]; b++)
            for (int c = 0; c < g->k[2]; c++) {
                const int p = grid_at(g, 0, i[0], a), q = grid_at(g, 1, i[1], b),
                          r = grid_at(g, 2, i[2], c);
                const bool inside = p >= 0 && q >= 0 && r >= 0;
                if (!inside && g->edge == AD_EDGE_KEEP)
                    return x[(i[0] * g->n[1] + i[1]) * g->n[2] + i[2]];
                if (inside)
                    add_product(&sum, w[(a * g->k[1] + b) * g->k[2] + c],
                                x[(p * g->n[1] + q) * g->n[2] + r]);
            }
    return sum;
}

static void grid_loop(struct grid g, ad_real *const *x, ad_real *y)
{
    for (int i = 0; i < g.m[0] * g.m[1] * g.m[2]; i++) {
        const int at[3] = {i / (g.m[1] * g.m[2]), i / g.m[2] % g.m[1], i % g.m[2]};
        y[i] = grid_point(&g, x[0], x[1], at);
    }
}

static void grid_fused_loop(struct grid g, const ad_array *x, ad_real *y)
{
    if (g.n[0] == 1 && g.k[0] == 1)
        ad_real_stencil_2d_(g.n[1], g.n[2], x[0], g.k[1], g.k[2], x[1], g.edge, y);
    else
        ad_real_stencil_3d_(g.n[0], g.n[1], g.n[2], x[0], g.k[0], g.k[1], g.k[2], x[1], g.edge, y);
}

/* With zeros beyond the edge, and where it shrinks, more taps than points too. */
#define GRID_CASE(name, ...)                                                                       \
    static struct fused_loop_shape name##_shape(int n)                                             \
    {                                                                                              \
        return grid_shape(grid_of(__VA_ARGS__));                                                   \
    }                                                                                              \
    static void name##_loop(int n, ad_real *const *x, ad_real *y)                                  \
    {                                                                                              \
        grid_loop(grid_of(__VA_ARGS__), x, y);                                                     \
    }                                                                                              \
    static void name##_fused_loop(int n, const ad_array *x, ad_real *y)                            \
    {                                                                                              \
        grid_fused_loop(grid_of(__VA_ARGS__), x, y);                                               \
    }
GRID_CASE(shrink, 1, n + 1, n, 1, 3, 2, AD_EDGE_SHRINK)
GRID_CASE(keep, 1, n ? n + 2 : 0, n + 3, 1, 3, 4, AD_EDGE_KEEP)
GRID_CASE(zero, 1, n, n + 1, 1, 3, 3, AD_EDGE_ZERO)
GRID_CASE(wrap, 1, n ? n + 2 : 0, n + 3, 1, 3, 4, AD_EDGE_WRAP)
GRID_CASE(many_taps, 1, 3, n ? n + 1 : 0, 1, 9, 8, AD_EDGE_ZERO)
GRID_CASE(long_rows, 1, 2, n < 17 ? n : 300, 1, 2, 5, AD_EDGE_ZERO)
GRID_CASE(shrink_3d, 3, (n + 1) / 2, n, 2, 2, 3, AD_EDGE_SHRINK)
GRID_CASE(keep_3d, 3, (n + 1) / 2, n ? n + 2 : 0, 2, 1, 3, AD_EDGE_KEEP)
GRID_CASE(wrap_3d, 3, 2, n ? n + 1 : 0, 3, 1, 2, AD_EDGE_WRAP)

/* ---- by index: of two records where n is large ---- */

enum { MOST_INDICES = 40 * 17 };

static int many(int n)
{
    return n < 17 ? 3 * n : 40 * n;
}

static const int *indices(int n)
{
    static int index[MOST_INDICES];
    for (int i = 0; i < many(n); i++)
        index[i] = (i * 7 + i / 5) % n;
    return index;
}

static struct fused_loop_shape gather_shape(int n)
{
    return (struct fused_loop_shape){many(n), 1, {n}};
}

static void gather_fused_loop(int n, const ad_array *x, ad_real *y)
{
    ad_real_gather_(many(n), n, x[0], indices(n), y);
}

static void gather_loop(int n, ad_real *const *x, ad_real *y)
{
    const int *index = indices(n);
    for (int i = 0; i < many(n); i++)
        y[i] = x[0][index[i]];
}

static struct fused_loop_shape scatter_shape(int n)
{
    return (struct fused_loop_shape){n, 2, {n, many(n)}};
}

static void scatter_fused_loop(int n, const ad_array *x, ad_real *y)
{
    for (int i = 0; i < n; i++)
        y[i] = element(x[0], i);
    ad_real_scatter_add_(many(n), x[1], indices(n), n, y);
}

static void scatter_loop(int n, ad_real *const *x, ad_real *y)
{
    const int *index = indices(n);
    for (int i = 0; i < n; i++)
        y[i] = x[0][i];
    for (int i = 0; i < many(n); i++)
        ad_set(&y[index[i]], ad_real_add(y[index[i]], x[1][i]));
}

/* ---- functions of the user's ---- */

static struct fused_loop_shape map_with_shape(int n)
{
    return (struct fused_loop_shape){n, 3, {n, 1, 1}};
}

/* a b + exp(c), where a alone is an array */
static void map_with_callback(void *payload, int64_t n, const double *const *x, double *y,
                              double *const *partial)
{
    (void)payload;
    for (int64_t i = 0; i < n; i++) {
        y[i] = x[0][i] * x[1][i] + exp(x[2][i]);
        if (partial[0])
            partial[0][i] = x[1][i];
        if (partial[1])
            partial[1][i] = x[0][i];
        if (partial[2])
            partial[2][i] = exp(x[2][i]);
    }
}

static void map_with_fused_loop(int n, const ad_array *x, ad_real *y)
{
    const ad_real scalar[] = {element(x[1], 0), element(x[2], 0)};
    ad_real_map_with(n, 1, x, 2, scalar, y, map_with_callback, NULL);
}

static void map_with_loop(int n, ad_real *const *x, ad_real *y)
{
    for (int i = 0; i < n; i++)
        ad_set(&y[i], ad_real_add(ad_real_mul(x[0][i], x[1][0]), ad_real_exp(x[2][0])));
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
    {"stencil on a plane", shrink_shape, shrink_fused_loop, shrink_loop},
    {"stencil, edge kept", keep_shape, keep_fused_loop, keep_loop},
    {"stencil, edge of zeros", zero_shape, zero_fused_loop, zero_loop},
    {"stencil, edges joined", wrap_shape, wrap_fused_loop, wrap_loop},
    {"stencil of many taps", many_taps_shape, many_taps_fused_loop, many_taps_loop},
    {"stencil, long rows", long_rows_shape, long_rows_fused_loop, long_rows_loop},
    {"stencil in space", shrink_3d_shape, shrink_3d_fused_loop, shrink_3d_loop},
    {"stencil in space, edge kept", keep_3d_shape, keep_3d_fused_loop, keep_3d_loop},
    {"stencil in space, edges joined", wrap_3d_shape, wrap_3d_fused_loop, wrap_3d_loop},
    {"gather", gather_shape, gather_fused_loop, gather_loop},
    {"scatter", scatter_shape, scatter_fused_loop, scatter_loop},
    {"map with numbers", map_with_shape, map_with_fused_loop, map_with_loop},
    {"map", map_shape, map_fused_loop, map_loop},
    {"collect", collect_shape, collect_fused_loop, collect_loop},
    {"custom", custom_shape, custom_fused_loop, custom_loop},
};
