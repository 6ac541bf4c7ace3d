/* test_lstm_cell.c: an LSTM's cell against plain loops in long double, and at special values. */
#include "elementwise.h"
#include "oracle.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>

enum { MOST = 4096 };

static double z[4 * MOST], c[MOST], gh[MOST], gm[MOST];
static double h[MOST], m[MOST], dz[4 * MOST], dc[MOST], got[4 * MOST];
static const char *const isa_names[] = {"portable", "avx2", "avx512"};

static long double logistic(long double x)
{
    return 1 / (1 + expl(-x));
}

/* Values h and m, and the adjoints of z and c for the adjoints gh and gm. */
static void plain(int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < n; k++) {
            const double *p = z + 4 * r * n + k;
            double *d = dz + 4 * r * n + k;
            const int64_t at = r * n + k;
            const long double i = logistic(p[0]), f = logistic(p[n]);
            const long double g = tanhl(p[2 * n]), o = logistic(p[3 * n]);
            const long double cell = f * c[at] + i * g, t = tanhl(cell);
            const long double q = gm[at] + gh[at] * o * (1 - t * t);
            h[at] = (double)(o * t);
            m[at] = (double)cell;
            d[0] = (double)(q * g * i * (1 - i));
            d[n] = (double)(q * c[at] * f * (1 - f));
            d[2 * n] = (double)(q * i * (1 - g * g));
            d[3 * n] = (double)(gh[at] * t * o * (1 - o));
            dc[at] = (double)(q * f);
        }
}

static void draw(int64_t rows, int64_t n)
{
    oracle_draw(1, 4 * rows * n, -4, 4, z);
    oracle_draw(2, rows * n, -2, 2, c);
    oracle_draw(3, rows * n, -1, 1, gh);
    oracle_draw(4, rows * n, -1, 1, gm);
}

/* Both results and both gradients of one cell. */
static void check(int64_t rows, int64_t n, enum oracle_layout layout, double tolerance)
{
    const ad_tensor tz = oracle_tensor(layout, 2, SHAPE(rows, 4 * n), z);
    const ad_tensor tc = oracle_tensor(layout, 2, SHAPE(rows, n), c);
    ad_tensor cell;
    const ad_tensor hidden = ad_lstm_cell(tz, tc, &cell);
    ck_assert_int_eq(ad_retain_gradient(tz), AD_OK);
    ck_assert_int_eq(ad_retain_gradient(tc), AD_OK);
    oracle_value(hidden, got);
    oracle_close("h", rows * n, got, h, tolerance);
    oracle_value(cell, got);
    oracle_close("cell", rows * n, got, m, tolerance);
    const ad_tensor a = oracle_leaf(2, SHAPE(rows, n), gh), b = oracle_leaf(2, SHAPE(rows, n), gm);
    const double one = 1;
    oracle_sweep(ad_add(ad_sum(ad_mul(hidden, a)), ad_sum(ad_mul(cell, b))), &one);
    oracle_gradient(tz, got);
    oracle_close("dz", 4 * rows * n, got, dz, tolerance);
    oracle_gradient(tc, got);
    oracle_close("dc", rows * n, got, dc, tolerance);
}

TEST_EACH(values_and_gradients_are_those_of_plain_loops_at_every_width, 6)
{
    const ad_dtype dtype = _i % 2 ? AD_F32 : AD_F64;
    if (!kernel_isa_use(isa_names[_i / 2]))
        return; /* the machine lacks it */
    for (int64_t n = 1; n <= 35; n += n < 18 ? 1 : 17) {
        draw(3, n);
        plain(3, n);
        oracle_begin(dtype);
        check(3, n, (enum oracle_layout)(n % ORACLE_LAYOUTS), dtype == AD_F32 ? 1e-6 : 1e-14);
        oracle_end();
    }
    (void)kernel_isa_use(NULL);
}

/* The adjoint that has not arrived counts as 0. */
TEST(one_result_alone_may_be_used)
{
    for (int only = 0; only < 2; only++) {
        draw(2, 5);
        for (int k = 0; k < 10; k++)
            (only == 0 ? gm : gh)[k] = 0;
        plain(2, 5);
        oracle_begin(AD_F64);
        const ad_tensor tz = oracle_leaf(2, SHAPE(2, 20), z), tc = oracle_leaf(2, SHAPE(2, 5), c);
        ad_tensor cell;
        const ad_tensor hidden = ad_lstm_cell(tz, tc, only == 0 ? NULL : &cell);
        oracle_sweep(only == 0 ? hidden : cell, only == 0 ? gh : gm);
        oracle_gradient(tz, got);
        oracle_close("dz", 40, got, dz, 1e-14);
        oracle_gradient(tc, got);
        oracle_close("dc", 10, got, dc, 1e-14);
        oracle_end();
    }
}

/* z, c, the results, and the adjoints for adjoints of 1. Gates are in the order i, f, g, o. */
static const struct {
    double z[4], c, h, m, dz[4], dc;
} edges[] = {
    /* All gates open, and all shut. */
    {{INFINITY, INFINITY, INFINITY, INFINITY}, 0, 0.76159415595576489, 1, {0, 0, 0, 0}, 1.4199743},
    {{-INFINITY, -INFINITY, -INFINITY, -INFINITY}, 3, 0, 0, {0, 0, 0, 0}, 0},
    {{1e300, -1e300, -1e300, 1e300}, 3, -0.76159415595576489, -1, {0, 0, 0, 0}, 0},
    /* Negative zeros. */
    {{-0.0, -0.0, -0.0, -0.0}, -0.0, 0, 0, {0, 0, 0.75, 0}, 0.75},
    /* An infinite cell: kept by an open gate, NaN behind a shut one. */
    {{0, INFINITY, 0, INFINITY}, INFINITY, 1, INFINITY, {0, NAN, 0.5, 0}, 1},
    {{0, -INFINITY, 0, 0}, INFINITY, NAN, NAN, {NAN, NAN, NAN, NAN}, NAN},
    /* NaN stays in what depends on it. */
    {{0, 0, 0, NAN}, 1, NAN, 0.5, {NAN, NAN, NAN, NAN}, NAN},
    {{0, NAN, 0, 0}, 1, NAN, NAN, {NAN, NAN, NAN, NAN}, NAN},
};

TEST_EACH(gates_saturate_at_infinities_and_nan_stays, 2)
{
    for (size_t k = 0; k < sizeof edges / sizeof *edges; k++) {
        oracle_begin(_i ? AD_F32 : AD_F64);
        double scaled[4];
        for (int i = 0; i < 4; i++)
            scaled[i] = _i && fabs(edges[k].z[i]) == 1e300 ? edges[k].z[i] * 1e-265 : edges[k].z[i];
        const ad_tensor tz = oracle_leaf(2, SHAPE(1, 4), scaled);
        const ad_tensor tc = oracle_leaf(2, SHAPE(1, 1), &edges[k].c);
        ad_tensor cell;
        const ad_tensor hidden = ad_lstm_cell(tz, tc, &cell);
        oracle_value(hidden, got);
        oracle_close("h", 1, got, &edges[k].h, 1e-6);
        oracle_value(cell, got);
        oracle_close("cell", 1, got, &edges[k].m, 1e-6);
        oracle_sweep(ad_add(hidden, cell), (const double[]){1});
        oracle_gradient(tz, got);
        oracle_close("dz", 4, got, edges[k].dz, 1e-6);
        oracle_gradient(tc, got);
        oracle_close("dc", 1, got, &edges[k].dc, 1e-6);
        oracle_end();
    }
}

TEST(shapes_that_do_not_fit_are_refused)
{
    oracle_begin(AD_F64);
    draw(4, 5);
    const ad_tensor tc = oracle_leaf(2, SHAPE(2, 5), c), row = oracle_leaf(1, SHAPE(20), z);
    oracle_refused(ad_lstm_cell(oracle_leaf(2, SHAPE(2, 19), z), tc, NULL), AD_ERROR_SHAPE,
                   "lstm_cell: f64 [2,19], f64 [2,5]: z [b,4h] and c [b,h] are wanted");
    oracle_refused(ad_lstm_cell(oracle_leaf(2, SHAPE(2, 16), z), tc, NULL), AD_ERROR_SHAPE,
                   "f64 [2,16], f64 [2,5]: z [b,4h]");
    oracle_refused(ad_lstm_cell(oracle_leaf(2, SHAPE(3, 20), z), tc, NULL), AD_ERROR_SHAPE,
                   "f64 [3,20], f64 [2,5]: z [b,4h]");
    oracle_refused(ad_lstm_cell(row, tc, NULL), AD_ERROR_SHAPE, "f64 [20], f64 [2,5]: z [b,4h]");
    oracle_refused(ad_lstm_cell(oracle_leaf(2, SHAPE(2, 20), z), row, NULL), AD_ERROR_SHAPE,
                   "f64 [2,20], f64 [20]: z [b,4h]");
    static const int64_t whole[40];
    const ad_tensor integers = ad_constant(oracle_tape(), AD_I64, 2, SHAPE(2, 20), whole);
    oracle_refused(ad_lstm_cell(integers, tc, NULL), AD_ERROR_DTYPE,
                   "lstm_cell takes f32 or f64, not i64");
    oracle_end();
}

RUN_TESTS(NULL, NULL)
