/* test_complex.c: complex numbers as pairs, against C's own in long double, and at special values.
 */
#include "elementwise.h"
#include "oracle.h"
#include "run_cases.h"

#include <check.h>
#include <complex.h>
#include <math.h>

enum { MOST = 2048 };

typedef long double complex number;

static double a[2 * MOST], b[2 * MOST], got[2 * MOST], want[2 * MOST];
static const char *const isa_names[] = {"portable", "avx2", "avx512"};

static number number_of(const double *pair)
{
    return pair[0] + pair[1] * (number)I;
}

static void put(double *pair, number z)
{
    pair[0] = (double)creall(z);
    pair[1] = (double)cimagl(z);
}

static double tolerance(ad_dtype dtype)
{
    return dtype == AD_F32 ? 3e-6 : 1e-14;
}

/* ---- elementwise ---- */

static number quotient(number x, number y)
{
    return x / y;
}

static number product(number x, number y)
{
    return x * y;
}

static const struct {
    const char *name;
    number (*plain)(number x, number y);
    ad_tensor (*op)(ad_tensor x, ad_tensor y);
} binary[] = {{"complex_mul", product, ad_complex_mul}, {"complex_div", quotient, ad_complex_div}};

static const struct {
    const char *name;
    number (*plain)(number x);
    long double (*real)(number x);
    ad_tensor (*op)(ad_tensor x);
} unary[] = {
    {"complex_conj", conjl, NULL, ad_complex_conj},   {"complex_exp", cexpl, NULL, ad_complex_exp},
    {"complex_log", clogl, NULL, ad_complex_log},     {"complex_abs", NULL, cabsl, ad_complex_abs},
    {"complex_angle", NULL, cargl, ad_complex_angle},
};

/* 5 x 67 pairs: more than a block. */
static void check_unary(int k, enum oracle_layout layout, ad_dtype dtype)
{
    oracle_draw(7, 2 * 5 * 67, -3, 3, a);
    oracle_begin(dtype);
    ad_tensor x = oracle_tensor(layout, 3, SHAPE(5, 67, 2), a);
    for (int i = 0; i < 5 * 67; i++) {
        if (unary[k].plain)
            put(want + 2 * i, unary[k].plain(number_of(a + 2 * i)));
        else
            want[i] = (double)unary[k].real(number_of(a + 2 * i));
    }
    const ad_tensor y = unary[k].op(x);
    const int64_t n = 5 * 67 * (unary[k].plain ? 2 : 1);
    ck_assert_int_eq(ad_size(y), n);
    oracle_value(y, got);
    oracle_close(unary[k].name, n, got, want, tolerance(dtype));
    oracle_end();
}

TEST_EACH(functions_of_one_number_are_those_of_c, 3)
{
    if (!kernel_isa_use(isa_names[_i]))
        return; /* the machine lacks it */
    for (int k = 0; k < (int)(sizeof unary / sizeof *unary); k++)
        for (int layout = 0; layout < ORACLE_LAYOUTS; layout++) {
            check_unary(k, (enum oracle_layout)layout, AD_F64);
            check_unary(k, (enum oracle_layout)layout, AD_F32);
        }
    (void)kernel_isa_use(NULL);
}

/* [3,1,2] and [130,2] give [3,130,2]. */
TEST_EACH(products_and_quotients_broadcast, 2)
{
    oracle_draw(8, 6, -3, 3, a);
    oracle_draw(9, 260, 0.5, 3, b);
    for (int k = 0; k < 2; k++)
        for (int layout = 0; layout < ORACLE_LAYOUTS; layout++) {
            oracle_begin(_i ? AD_F32 : AD_F64);
            const ad_tensor x = oracle_tensor((enum oracle_layout)layout, 3, SHAPE(3, 1, 2), a);
            const ad_tensor y = oracle_tensor((enum oracle_layout)layout, 2, SHAPE(130, 2), b);
            for (int i = 0; i < 390; i++)
                put(want + 2 * i,
                    binary[k].plain(number_of(a + 2 * (i / 130)), number_of(b + 2 * (i % 130))));
            oracle_value(binary[k].op(x, y), got);
            oracle_close(binary[k].name, 780, got, want, tolerance(_i ? AD_F32 : AD_F64));
            oracle_end();
        }
}

/* The adjoint of a number is that of its parts: x' = y' conj(w) for y = w x, and the other way. */
TEST(adjoints_are_those_of_the_parts)
{
    const double x[] = {1, 2}, w[] = {3, -5}, seed[] = {0.5, 4};
    oracle_begin(AD_F64);
    const ad_tensor tx = oracle_leaf(1, SHAPE(2), x), tw = oracle_leaf(1, SHAPE(2), w);
    oracle_sweep(ad_complex_mul(tx, tw), seed);
    put(want, number_of(seed) * conjl(number_of(w)));
    oracle_gradient(tx, got);
    oracle_close("x'", 2, got, want, 1e-15);
    put(want, number_of(seed) * conjl(number_of(x)));
    oracle_gradient(tw, got);
    oracle_close("w'", 2, got, want, 1e-15);
    ck_assert_int_eq(ad_tape_zero_gradients(oracle_tape()), AD_OK);
    oracle_sweep(ad_complex_exp(tx), seed);
    put(want, number_of(seed) * conjl(cexpl(number_of(x))));
    oracle_gradient(tx, got);
    oracle_close("x' of exp", 2, got, want, 1e-14);
    oracle_end();
}

/* ---- products of matrices ---- */

/* c [m,n] = a [m,k] b [k,n], or with the adjoint of b [n,k]; or the adjoint of a [k,m]. */
static void plain_product(const double *x, const double *y, double *z, int64_t m, int64_t k,
                          int64_t n, int form)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            number sum = 0;
            for (int64_t l = 0; l < k; l++) {
                const number left = form == 2 ? conjl(number_of(x + 2 * (l * m + i)))
                                              : number_of(x + 2 * (i * k + l));
                const number right = form == 1 ? conjl(number_of(y + 2 * (j * k + l)))
                                               : number_of(y + 2 * (l * n + j));
                sum += left * right;
            }
            put(z + 2 * (i * n + j), sum);
        }
}

static void check_matrices(int64_t m, int64_t k, int64_t n, enum oracle_layout layout, ad_dtype t)
{
    static double g[2 * MOST];
    oracle_draw(1, 2 * m * k, -1, 1, a);
    oracle_draw(2, 2 * k * n, -1, 1, b);
    oracle_draw(3, 2 * m * n, -1, 1, g);
    oracle_begin(t);
    const ad_tensor x = oracle_tensor(layout, 3, SHAPE(m, k, 2), a);
    ad_tensor y = oracle_tensor(layout, 3, SHAPE(k, n, 2), b);
    const double bound = t == AD_F32 ? 1e-5 : 1e-14;
    if (layout == ORACLE_DENSE) /* read in place, transposed */
        y = ad_permute(ad_reshape(ad_permute(y, SHAPE(1, 0, 2), 3), SHAPE(n, k, 2), 3),
                       SHAPE(1, 0, 2), 3);
    ck_assert_int_eq(ad_retain_gradient(x), AD_OK);
    ck_assert_int_eq(ad_retain_gradient(y), AD_OK);
    const ad_tensor z = ad_complex_matmul(x, y);
    plain_product(a, b, want, m, k, n, 0);
    oracle_value(z, got);
    oracle_close("product", 2 * m * n, got, want, bound);
    oracle_sweep(z, g);
    plain_product(g, b, want, m, n, k, 1);
    oracle_gradient(x, got);
    oracle_close("a'", 2 * m * k, got, want, bound);
    plain_product(a, g, want, k, m, n, 2);
    oracle_gradient(y, got);
    oracle_close("b'", 2 * k * n, got, want, bound);
    oracle_end();
}

TEST_EACH(products_of_matrices_and_their_adjoints_are_those_of_plain_loops, 2)
{
    for (int layout = 0; layout < ORACLE_LAYOUTS; layout++) {
        check_matrices(3, 4, 5, (enum oracle_layout)layout, _i ? AD_F32 : AD_F64);
        check_matrices(1, 7, 2, (enum oracle_layout)layout, _i ? AD_F32 : AD_F64);
        check_matrices(17, 33, 20, (enum oracle_layout)layout, _i ? AD_F32 : AD_F64);
    }
}

/* [2,1,2,3,2] x [3,3,2,2] gives [2,3,2,2,2]. */
TEST(batches_of_matrices_broadcast)
{
    oracle_draw(4, 24, -1, 1, a);
    oracle_draw(5, 36, -1, 1, b);
    for (int layout = 0; layout < ORACLE_LAYOUTS; layout++) {
        oracle_begin(AD_F64);
        const ad_tensor x = oracle_tensor((enum oracle_layout)layout, 5, SHAPE(2, 1, 2, 3, 2), a);
        const ad_tensor y = oracle_tensor((enum oracle_layout)layout, 4, SHAPE(3, 3, 2, 2), b);
        for (int i = 0; i < 6; i++)
            plain_product(a + 12 * (i / 3), b + 12 * (i % 3), want + 8 * i, 2, 3, 2, 0);
        oracle_value(ad_complex_matmul(x, y), got);
        oracle_close("product", 48, got, want, 1e-14);
        oracle_end();
    }
}

/* ---- special values ---- */

static const struct {
    ad_tensor (*op)(ad_tensor x);
    int n; /* numbers of y */
    double x[2], y[2], dx[2];
} edges[] = {
    {ad_complex_abs, 1, {0, 0}, {0}, {0, 0}},
    {ad_complex_abs, 1, {-0.0, 0}, {0}, {0, 0}},
    {ad_complex_abs, 1, {3, 4}, {5}, {0.6, 0.8}},
    {ad_complex_abs, 1, {0, -2}, {2}, {0, -1}},
    {ad_complex_abs, 1, {INFINITY, NAN}, {INFINITY}, {NAN, NAN}},
    {ad_complex_abs, 1, {1, -INFINITY}, {INFINITY}, {0, NAN}},
    {ad_complex_abs, 1, {NAN, 1}, {NAN}, {NAN, NAN}},
    {ad_complex_abs, 1, {3e30, 4e30}, {5e30}, {0.6, 0.8}},
    {ad_complex_angle, 1, {0, 0}, {0}, {0, 0}},
    {ad_complex_angle, 1, {-0.0, 0}, {3.14159265358979}, {0, 0}},
    {ad_complex_angle, 1, {-1, -0.0}, {-3.14159265358979}, {0, -1}},
    {ad_complex_angle, 1, {0, 2}, {1.570796326794897}, {-0.5, 0}},
    {ad_complex_angle, 1, {1, INFINITY}, {1.570796326794897}, {NAN, 0}},
    {ad_complex_angle, 1, {NAN, 1}, {NAN}, {NAN, NAN}},
    {ad_complex_angle, 1, {3e-30, 4e-30}, {0.92729521800161}, {-1.6e29, 1.2e29}},
    {ad_complex_exp, 2, {0, 0}, {1, 0}, {1, 1}},
    {ad_complex_exp, 2, {INFINITY, 0}, {INFINITY, 0}, {INFINITY, INFINITY}},
    {ad_complex_exp, 2, {-INFINITY, 3}, {0, 0}, {0, 0}},
    {ad_complex_exp, 2, {-INFINITY, INFINITY}, {NAN, NAN}, {NAN, NAN}},
    {ad_complex_exp, 2, {0, NAN}, {NAN, NAN}, {NAN, NAN}},
    {ad_complex_log, 2, {0, 0}, {-INFINITY, 0}, {NAN, NAN}},
    {ad_complex_log, 2, {-1, 0}, {0, 3.14159265358979}, {-1, -1}},
    {ad_complex_log, 2, {-1, -0.0}, {0, -3.14159265358979}, {-1, -1}},
    {ad_complex_conj, 2, {INFINITY, NAN}, {INFINITY, NAN}, {1, -1}},
};

/* Values, and the gradient for adjoints of 1. */
TEST_EACH(edges_are_as_the_texts_say, 2)
{
    for (size_t k = 0; k < sizeof edges / sizeof *edges; k++) {
        oracle_begin(_i ? AD_F32 : AD_F64);
        const ad_tensor x = oracle_leaf(1, SHAPE(2), edges[k].x), y = edges[k].op(x);
        char what[32];
        (void)snprintf(what, sizeof what, "edge %d, part", (int)k);
        oracle_value(y, got);
        oracle_close(what, edges[k].n, got, edges[k].y, 1e-6);
        oracle_sweep(y, (const double[]){1, 1});
        oracle_gradient(x, got);
        oracle_close(what, 2, got, edges[k].dx, 1e-6);
        oracle_end();
    }
}

TEST_EACH(quotients_neither_overflow_on_the_way_nor_exist_at_zero_and_infinity, 2)
{
    const double x[] = {2e30, 2e30, 1, 1, 1, 1, 2e-30, 0};
    const double y[] = {1e30, 1e30, 0, 0, INFINITY, 0, 0, 1e-30};
    const double q[] = {2, 0, NAN, NAN, NAN, NAN, 0, -2};
    oracle_begin(_i ? AD_F32 : AD_F64);
    oracle_value(ad_complex_div(oracle_leaf(2, SHAPE(4, 2), x), oracle_leaf(2, SHAPE(4, 2), y)),
                 got);
    oracle_close("quotient", 8, got, q, 1e-6);
    const double inf[] = {INFINITY, 0}, one[] = {1, 1}, times[] = {INFINITY, INFINITY};
    oracle_value(ad_complex_mul(oracle_leaf(1, SHAPE(2), inf), oracle_leaf(1, SHAPE(2), one)), got);
    oracle_close("product", 2, got, times, 0);
    const double i[] = {0, 1}, partly[] = {NAN, INFINITY};
    oracle_value(ad_complex_mul(oracle_leaf(1, SHAPE(2), inf), oracle_leaf(1, SHAPE(2), i)), got);
    oracle_close("product", 2, got, partly, 0);
    oracle_end();
}

/* Compares by the numbers' own size, where oracle_close() asks for less of small ones. */
static void check_parts(const char *what, bool narrow, int n, const double *expected)
{
    for (int i = 0; i < n; i++) {
        const double x = narrow ? (double)(float)expected[i] : expected[i];
        if (!(got[i] == x || fabs(got[i] - x) <= 1e-6 * fabs(x)))
            ck_abort_msg("%s %d is %.17g, not %.17g", what, i, got[i], x);
    }
}

/* Each part of a quotient, and of its pullbacks, whose true value the dtype has. The pairs behind
 * an extreme one are ordinary. */
TEST_EACH(quotients_of_extreme_numbers_keep_their_parts, 2)
{
    const bool narrow = _i == 0;
    const double big = narrow ? 0x1.8p127 : 0x1.8p1023, tiny = narrow ? 0x1p-149 : 0x1p-1074;
    const double far = narrow ? 0x1p100 : 0x1p900, near = 1 / far;
    const struct {
        double x[2], y[2], q[2], to_x[2];
    } cases[] = {
        {{big, big}, {big, big}, {1, 0}, {0, 1 / big}},
        {{tiny, tiny}, {tiny, tiny}, {1, 0}, {0, INFINITY}},
        {{big, 0}, {big, big}, {0.5, -0.5}, {0, 1 / big}},
        {{1, near}, {near, 0}, {far, 1}, {far, far}},
        {{far, near}, {far, 0}, {1, near * near}, {near, near}},
        {{near, far}, {0, far}, {1, -near * near}, {-near, near}},
        {{near, near}, {far, far}, {near * near, 0}, {0, near}},
        {{1, 1}, {1, tiny}, {1, 1}, {1, 1}},
        {{3, 4}, {0, 2}, {2, -1.5}, {-0.5, 0.5}},
    };
    enum { CASES = sizeof cases / sizeof *cases };
    double x[2 * CASES], y[2 * CASES], q[2 * CASES], seed[2 * CASES], to_x[2 * CASES];
    for (int k = 0; k < 2 * CASES; k++) {
        x[k] = cases[k / 2].x[k % 2];
        y[k] = cases[k / 2].y[k % 2];
        q[k] = cases[k / 2].q[k % 2];
        to_x[k] = cases[k / 2].to_x[k % 2];
        seed[k] = 1;
    }
    for (int isa = 0; isa < 3; isa++) {
        if (!kernel_isa_use(isa_names[isa]))
            continue;
        oracle_begin(narrow ? AD_F32 : AD_F64);
        const ad_tensor u = oracle_leaf(2, SHAPE(CASES, 2), x);
        const ad_tensor z = ad_complex_div(u, oracle_leaf(2, SHAPE(CASES, 2), y));
        oracle_value(z, got);
        check_parts("part", narrow, 2 * CASES, q);
        oracle_sweep(z, seed);
        oracle_gradient(u, got);
        check_parts("pullback", narrow, 2 * CASES, to_x);
        oracle_end();
    }
    kernel_isa_use(NULL);
}

/* The divisor's pullback is - y' conj(q) / conj(b), here of a = b and y' = (1, 0). */
TEST_EACH(pullbacks_of_extreme_divisors_keep_their_parts, 2)
{
    const double big = _i == 0 ? 0x1.8p127 : 0x1.8p1023, tiny = _i == 0 ? 0x1p-120 : 0x1p-1000;
    const double x[] = {big, big, tiny, tiny}, seed[] = {1, 0, 1, 0};
    const double want_x[] = {0.5 / big, 0.5 / big, 0.5 / tiny, 0.5 / tiny};
    const double want_y[] = {-0.5 / big, -0.5 / big, -0.5 / tiny, -0.5 / tiny};
    oracle_begin(_i == 0 ? AD_F32 : AD_F64);
    const ad_tensor u = oracle_leaf(2, SHAPE(2, 2), x), v = oracle_leaf(2, SHAPE(2, 2), x);
    oracle_sweep(ad_complex_div(u, v), seed);
    oracle_gradient(u, got);
    check_parts("numerator's", _i == 0, 4, want_x);
    oracle_gradient(v, got);
    check_parts("divisor's", _i == 0, 4, want_y);
    oracle_end();
}

TEST(shapes_that_do_not_fit_are_refused)
{
    oracle_begin(AD_F64);
    const ad_tensor x = oracle_leaf(2, SHAPE(3, 2), a), flat = oracle_leaf(1, SHAPE(3), a);
    const ad_tensor one = ad_scalar_f64(oracle_tape(), 1), y = oracle_leaf(2, SHAPE(4, 2), a);
    oracle_refused(ad_complex_abs(flat), AD_ERROR_SHAPE,
                   "complex_abs: f64 [3]: operand 1 has no last axis of extent 2");
    oracle_refused(ad_complex_exp(one), AD_ERROR_SHAPE,
                   "complex_exp: f64 []: operand 1 has no last axis");
    oracle_refused(ad_complex_mul(x, flat), AD_ERROR_SHAPE,
                   "complex_mul: f64 [3,2], f64 [3]: operand 2 has no last axis of extent 2");
    oracle_refused(ad_complex_div(x, y), AD_ERROR_SHAPE,
                   "complex_div: f64 [3,2] and f64 [4,2]: extents 3 and 4 do not broadcast");
    const ad_tensor m = oracle_leaf(3, SHAPE(2, 3, 2), a), n = oracle_leaf(3, SHAPE(4, 2, 2), a);
    oracle_refused(ad_complex_matmul(m, x), AD_ERROR_SHAPE,
                   "f64 [2,3,2] x f64 [3,2]: a [...,m,k,2] and b [...,k,n,2] are wanted");
    oracle_refused(ad_complex_matmul(m, n), AD_ERROR_SHAPE,
                   "complex_matmul: f64 [2,3,2] x f64 [4,2,2]: inner extents 3 and 4 differ");
    const ad_tensor s = oracle_leaf(4, SHAPE(2, 1, 3, 2), a);
    const ad_tensor t = oracle_leaf(4, SHAPE(3, 3, 1, 2), a);
    oracle_refused(ad_complex_matmul(s, t), AD_ERROR_SHAPE, "extents 2 and 3 do not broadcast");
    const ad_tensor wide =
        ad_broadcast_to(oracle_leaf(3, SHAPE(1, 1, 2), a), SHAPE((int64_t)1 << 32, 1, 2), 3);
    oracle_refused(ad_complex_matmul(wide, oracle_leaf(3, SHAPE(1, 1, 2), a)), AD_ERROR_SHAPE,
                   "an extent is beyond the range of BLAS");
    static const int64_t whole[6];
    oracle_refused(ad_complex_conj(ad_constant(oracle_tape(), AD_I64, 2, SHAPE(3, 2), whole)),
                   AD_ERROR_DTYPE, "complex_conj takes f32 or f64, not i64");
    oracle_end();
}

RUN_TESTS(NULL, NULL)
