/* test_real_program.c: programs of numbers: second derivatives, and other numbers.
 *
 * What every function's row says of second derivatives is compared with differences of the first;
 * whole Hessians are compared with those that were worked out by hand.
 */
#define AD_REAL_PROGRAM 1
#include <tapescope/ad_real.h>

#include "ad_internal.h"
#include "observe_support.h"
#include "run_cases.h"
#include "tape_roll.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

static void setup(void)
{
    tape_begin(NULL);
}

/* The call failed with this code, and a message that has the text; the tape serves on. */
static void check_near(double is, double want, double tolerance, const char *what)
{
    ck_assert_msg(fabs(is - want) <= tolerance * (1 + fabs(want)), "%s: %.17g, not %.17g", what, is,
                  want);
}

/* ---- every function ---- */

typedef ad_real of_two(ad_real x, ad_real y);

#define ONE(name, ...)                                                                             \
    static ad_real of_##name(ad_real x, ad_real y)                                                 \
    {                                                                                              \
        return ad_real_of(ad_real_mul(y, ad_real_##name(x)));                                      \
    }
#define TWO(name, ...)                                                                             \
    static ad_real of_##name(ad_real x, ad_real y)                                                 \
    {                                                                                              \
        return ad_real_of(ad_real_##name(x, y));                                                   \
    }
AD_REAL_FUNCTIONS_(ONE)
AD_REAL_FUNCTIONS2_(TWO)
#undef ONE
#undef TWO

static int exponent;
static double whole;
#define MORE(name, formula)                                                                        \
    static ad_real of_##name(ad_real x, ad_real y)                                                 \
    {                                                                                              \
        return ad_real_of(formula);                                                                \
    }
MORE(ldexp, ad_real_mul(y, ad_real_ldexp(ad_real_square(x), 3)))
MORE(modf, ad_real_mul(y, ad_real_modf(ad_real_square(x), &whole)))
MORE(frexp, ad_real_mul(y, ad_real_frexp(ad_real_square(x), &exponent)))
MORE(remquo, ad_real_mul(x, ad_real_remquo(ad_real_mul(x, x), ad_real_square(y), &exponent)))
MORE(j0, ad_real_mul(y, ad_real_j0(x)))
MORE(jn, ad_real_mul(y, ad_real_jn(3, x)))
MORE(y1, ad_real_mul(y, ad_real_y1(x)))
MORE(yn, ad_real_mul(y, ad_real_yn(2, x)))
MORE(fma, ad_real_fma(x, ad_real_mul(x, y), ad_real_square(y)))
MORE(fma_same, ad_real_mul(y, ad_real_fma(x, x, x)))
MORE(fma_factor, ad_real_fma(2.5, ad_real_mul(x, y), 4))
MORE(fma_term, ad_real_fma(2.5, 3, ad_real_mul(x, y)))
MORE(fma_constant, ad_real_fma(ad_real_square(x), 3, ad_real_mul(x, y)))
MORE(pow_constant, ad_real_mul(y, ad_real_pow(x, 3)))
MORE(pow_of_constant, ad_real_mul(x, ad_real_pow(2, y)))
MORE(quotient_of_constant, ad_real_div(3, ad_real_mul(x, y)))
MORE(sum_of, ad_real_sum_of(ad_real_mul(x, x), y, 1, ad_real_mul(x, y)))
MORE(product_of, ad_real_product_of(x, y, x, 2, y))
MORE(sum_of_one, ad_real_sum_of(ad_real_mul(x, y)))

static ad_real of_sincos(ad_real x, ad_real y)
{
    ad_real s, c;
    ad_real_sincos(x, &s, &c);
    return ad_real_of(ad_real_mul(ad_real_add(s, y), c));
}

static const struct {
    const char *name;
    of_two *function;
} functions[] = {
#define ROW(name, ...) {#name, of_##name},
    AD_REAL_FUNCTIONS_(ROW) AD_REAL_FUNCTIONS2_(ROW) ROW(ldexp, 0) ROW(modf, 0) ROW(frexp, 0)
        ROW(remquo, 0) ROW(j0, 0) ROW(jn, 0) ROW(y1, 0) ROW(yn, 0) ROW(fma, 0) ROW(fma_same, 0)
            ROW(fma_factor, 0) ROW(fma_term, 0) ROW(fma_constant, 0) ROW(pow_constant, 0)
                ROW(pow_of_constant, 0) ROW(quotient_of_constant, 0) ROW(sum_of, 0)
                    ROW(product_of, 0) ROW(sum_of_one, 0) ROW(sincos, 0)
#undef ROW
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static void gradient_at(const double *at, ad_real y, ad_real *x, double g[2])
{
    check_ok(ad_tape_replay(tape, 2, x, at, 0));
    ad_tape_zero_gradients(tape);
    check_ok(ad_real_backward(tape, y));
    check_ok(ad_real_gradients(tape, 2, x, g));
}

TEST(second_derivatives_are_differences_of_first_ones)
{
    const double step = 1e-5;
    for (int k = 0; k < FUNCTIONS; k++) {
        const char *name = functions[k].name;
        double at[2] = {0.62, 1.37}, h[4], g[2][2], one[2], diagonal[2], product[2], tangent;
        if (strcmp(name, "acosh") == 0)
            at[0] = 1.62;
        ad_real x[2];
        ad_tape_reset(tape);
        check_ok(ad_real_leaves(tape, 2, at, x));
        check_ok(ad_tape_program_begin(tape));
        const ad_real y = functions[k].function(x[0], x[1]);
        check_ok(ad_tape_program_end(tape));
        check_ok(ad_real_hessian(tape, y, 2, x, h));
        check_ok(ad_real_hessian_diagonal(tape, y, 2, x, diagonal));
        const double direction[] = {0.75, -2};
        check_ok(ad_real_hvp(tape, y, 2, x, direction, product, one));
        check_ok(ad_real_jvp(tape, 1, &y, 2, x, direction, &tangent));
        ck_assert_mem_eq(diagonal, ((double[]){h[0], h[3]}), sizeof diagonal);
        for (int i = 0; i < 2; i++) {
            check_near(product[i], h[2 * i] * direction[0] + h[2 * i + 1] * direction[1], 1e-13,
                       name);
            double other[2] = {at[0], at[1]};
            other[i] = at[i] - step;
            gradient_at(other, y, x, g[0]);
            other[i] = at[i] + step;
            gradient_at(other, y, x, g[1]);
            for (int j = 0; j < 2; j++)
                check_near(h[2 * j + i], (g[1][j] - g[0][j]) / (2 * step), 1e-8, name);
        }
        check_near(tangent, one[0] * direction[0] + one[1] * direction[1], 1e-14, name);
        /* And back where it was: what was recorded, bit for bit but for contracted products. */
        gradient_at(at, y, x, g[0]);
        check_near(g[0][0], one[0], 1e-15, name);
        check_near(g[0][1], one[1], 1e-15, name);
    }
}

/* ---- functions worked out by hand ---- */

/* Rosenbrock's, of n numbers: the sum of 100 (x[i+1] - x[i]^2)^2 + (1 - x[i])^2. */
TEST(the_hessian_of_rosenbrock)
{
    enum { N = 19 }; /* two walks of 8 and one of 3 */
    double at[N], h[N * N], want[N * N] = {0};
    ad_real x[N], y = ad_real_of(0);
    for (int i = 0; i < N; i++)
        at[i] = -1.2 + 0.13 * i;
    check_ok(ad_real_leaves(tape, N, at, x));
    check_ok(ad_tape_program_begin(tape));
    for (int i = 0; i + 1 < N; i++)
        ad_set(&y,
               ad_real_sum_of(
                   y,
                   ad_real_mul(100, ad_real_square(ad_real_sub(x[i + 1], ad_real_mul(x[i], x[i])))),
                   ad_real_square(ad_real_sub(1, x[i]))));
    check_ok(ad_tape_program_end(tape));
    check_ok(ad_real_hessian(tape, y, N, x, h));
    for (int i = 0; i + 1 < N; i++) {
        want[i * N + i] += 1200 * at[i] * at[i] - 400 * at[i + 1] + 2;
        want[(i + 1) * N + i + 1] += 200;
        want[(i + 1) * N + i] = want[i * N + i + 1] = -400 * at[i];
    }
    for (int i = 0; i < N * N; i++)
        check_near(h[i], want[i], 1e-12, "rosenbrock");
}

/* Logistic regression: the sum of log(1 + e^(-t x w)), whose Hessian is X^T diag(p (1 - p)) X. */
TEST(the_hessian_of_logistic_regression)
{
    enum { ROWS = 23, N = 5 };
    double data[ROWS][N], at[N], h[N * N];
    ad_real w[N], y = ad_real_of(0);
    for (int j = 0; j < N; j++)
        at[j] = 0.3 * j - 0.5;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < N; j++)
            data[i][j] = sin(1.0 + 3 * i + 7 * j * j);
    check_ok(ad_real_leaves(tape, N, at, w));
    check_ok(ad_tape_program_begin(tape));
    for (int i = 0; i < ROWS; i++) {
        ad_real z = ad_real_of(0);
        for (int j = 0; j < N; j++)
            ad_set(&z, ad_real_add(z, ad_real_mul(data[i][j], w[j])));
        ad_set(&y, ad_real_add(y, ad_real_log1p(ad_real_exp(ad_real_mul(i % 2 ? -1 : 1, z)))));
    }
    check_ok(ad_tape_program_end(tape));
    check_ok(ad_real_hessian(tape, y, N, w, h));
    for (int a = 0; a < N; a++)
        for (int b = 0; b < N; b++) {
            double want = 0;
            for (int i = 0; i < ROWS; i++) {
                double z = 0;
                for (int j = 0; j < N; j++)
                    z += data[i][j] * at[j];
                const double p = 1 / (1 + exp(-z));
                want += p * (1 - p) * data[i][a] * data[i][b];
            }
            check_near(h[a * N + b], want, 1e-12, "logistic");
        }
}

/* A mixture of two Gaussians in one dimension, by its means m[k] and logarithms of weights a[k]:
 * the sum over points of log(sum of e^(a[k] - (x - m[k])^2 / 2)), less n log(sum of e^a[k]).
 * With the shares r[k] of a point and d[k] = x - m[k] its second derivatives are sums of by
 * m[k], m[l]: (k = l) r[k] (d[k]^2 - 1) - r[k] d[k] r[l] d[l], by a[k], a[l]: (k = l) r[k] -
 * r[k] r[l], less the same of the weights, by a[k], m[l]: (k = l) r[k] d[k] - r[k] r[l] d[l]. */
TEST(the_hessian_of_a_mixture)
{
    enum { POINTS = 11, N = 4 };
    const double at[N] = {0.4, -0.7, -0.3, 0.9}; /* m, a */
    double h[N * N], want[N * N] = {0}, weight[2], point[POINTS];
    ad_real x[N], y = ad_real_of(0);
    for (int i = 0; i < POINTS; i++)
        point[i] = 2 * sin(1.7 * i);
    check_ok(ad_real_leaves(tape, N, at, x));
    check_ok(ad_tape_program_begin(tape));
    for (int i = 0; i < POINTS; i++) {
        ad_real e[2];
        for (int k = 0; k < 2; k++)
            e[k] = ad_real_of(ad_real_exp(ad_real_sub(
                x[2 + k], ad_real_mul(0.5, ad_real_square(ad_real_sub(point[i], x[k]))))));
        ad_set(&y, ad_real_add(y, ad_real_log(ad_real_add(e[0], e[1]))));
    }
    ad_set(&y, ad_real_sub(y, ad_real_mul(POINTS, ad_real_log(ad_real_add(ad_real_exp(x[2]),
                                                                          ad_real_exp(x[3]))))));
    check_ok(ad_tape_program_end(tape));
    check_ok(ad_real_hessian(tape, y, N, x, h));
    for (int k = 0; k < 2; k++)
        weight[k] = exp(at[2 + k]) / (exp(at[2]) + exp(at[3]));
    for (int i = 0; i < POINTS; i++) {
        double r[2], d[2];
        for (int k = 0; k < 2; k++) {
            d[k] = point[i] - at[k];
            r[k] = exp(at[2 + k] - d[k] * d[k] / 2);
        }
        const double sum = r[0] + r[1];
        for (int k = 0; k < 2; k++)
            r[k] /= sum;
        for (int k = 0; k < 2; k++)
            for (int l = 0; l < 2; l++) {
                const double mixed = (k == l) * r[k] * d[k] - r[k] * r[l] * d[l];
                want[k * N + l] += (k == l) * r[k] * (d[k] * d[k] - 1) - r[k] * d[k] * r[l] * d[l];
                want[(2 + k) * N + 2 + l] +=
                    (k == l) * (r[k] - weight[k]) - r[k] * r[l] + weight[k] * weight[l];
                want[(2 + k) * N + l] += mixed;
                want[l * N + 2 + k] += mixed;
            }
    }
    for (int i = 0; i < N * N; i++)
        check_near(h[i], want[i], 1e-11, "mixture");
}

/* ---- other numbers ---- */

static ad_real model(const ad_real *x, int steps)
{
    ad_real u[2] = {x[0], x[1]};
    for (int i = 0; i < steps; i++) {
        const ad_real v = ad_real_of(ad_real_sub(ad_real_mul(u[0], x[2]), ad_real_sin(u[1])));
        ad_set(&u[1], ad_real_add(ad_real_mul(0.9, u[1]), ad_real_tanh(u[0])));
        ad_set(&u[0], ad_real_div(v, ad_real_add(2, ad_real_square(u[1]))));
    }
    return ad_real_of(ad_real_mul(u[0], u[1]));
}

TEST(a_replay_is_a_new_recording)
{
    enum { STEPS = 1500 }; /* several chunks, blocks and runs */
    const double at[2][3] = {{0.3, -0.6, 1.1}, {1.7, 0.2, -0.8}};
    double g[2][3], jacobian[3];
    for (int fresh = 0; fresh < 2; fresh++) {
        ad_real x[3];
        ad_tape_reset(tape);
        check_ok(ad_real_leaves(tape, 3, at[fresh], x));
        ad_stats before, after;
        check_ok(ad_tape_program_begin(tape));
        ad_real y = model(x, STEPS);
        check_ok(ad_tape_program_end(tape));
        check_ok(ad_tape_stats(tape, &before));
        if (!fresh) {
            check_ok(ad_tape_replay(tape, 3, x, at[1], 0));
            ck_assert(x[2].value == at[1][2]);
            check_ok(ad_real_update(tape, 1, &y));
        }
        check_ok(ad_tape_stats(tape, &after));
        ck_assert_mem_eq(&before, &after, sizeof before);
        check_ok(ad_real_backward(tape, y));
        check_ok(ad_real_gradients(tape, 3, x, g[fresh]));
        check_ok(ad_real_jacobian(tape, 1, &y, 3, x, jacobian));
        ck_assert_mem_eq(jacobian, g[fresh], sizeof jacobian);
        static double value[2];
        value[fresh] = y.value;
        if (fresh)
            check_near(value[0], value[1], 1e-13, "value");
    }
    for (int i = 0; i < 3; i++)
        check_near(g[0][i], g[1][i], 1e-12, "gradient");
}

/* A leaf that is not named keeps its number; one that the program does not read may be named. */
TEST(leaves_are_named_one_by_one)
{
    double h[1];
    ad_real x[3], y;
    check_ok(ad_real_leaves(tape, 3, (double[]){2, 3, 5}, x));
    check_ok(ad_tape_program_begin(tape));
    ad_set(&y, ad_real_mul(ad_real_mul(x[0], x[1]), x[1]));
    check_ok(ad_tape_program_end(tape));
    check_ok(ad_tape_replay(tape, 2, x + 1, (double[]){4, 7}, 0));
    check_ok(ad_real_update(tape, 1, &y));
    ck_assert(y.value == 32 && x[0].value == 2 && x[1].value == 4 && x[2].value == 7);
    check_ok(ad_real_hessian(tape, y, 1, x + 1, h));
    ck_assert(h[0] == 4);
    check_ok(ad_real_hessian(tape, x[2], 1, x + 1, h));
    ck_assert(h[0] == 0);
    ad_real constant = ad_real_of(3);
    check_ok(ad_real_hessian(tape, constant, 1, x + 1, h));
    ck_assert(h[0] == 0);
    double t[3];
    check_ok(ad_real_jvp(tape, 3, (ad_real[]){y, x[1], constant}, 1, x + 1, (double[]){1}, t));
    ck_assert(t[0] == 16 && t[1] == 1 && t[2] == 0);
}

/* What was asked of values has the same answer, or it is an error with its line, and all is as it
 * was. */
#define ASKS(name, statement, same_, other_)                                                       \
    TEST(asks_##name)                                                                              \
    {                                                                                              \
        const double same = same_, other = other_;                                                 \
        double g;                                                                                  \
        ad_real x, y;                                                                              \
        check_ok(ad_real_leaves(tape, 1, (double[]){1.5}, &x));                                    \
        check_ok(ad_tape_program_begin(tape));                                                     \
        y = x;                                                                                     \
        const int line = __LINE__;                                                                 \
        statement;                                                                                 \
        ad_set(&y, ad_real_mul(y, x));                                                             \
        check_ok(ad_tape_program_end(tape));                                                       \
        check_ok(ad_tape_replay(tape, 1, &x, &same, 0));                                           \
        check_ok(ad_real_hessian(tape, y, 1, &x, &g));                                             \
        const double before = g;                                                                   \
        char where[64];                                                                            \
        snprintf(where, sizeof where, "test_real_program.c:%d", line);                             \
        check_call_refused(ad_tape_replay(tape, 1, &x, &other, 0), AD_ERROR_STATE, where);         \
        ck_assert(x.value == same);                                                                \
        check_ok(ad_real_hessian(tape, y, 1, &x, &g));                                             \
        ck_assert(g == before);                                                                    \
    }

ASKS(less, if (ad_real_less(x, 2)) ad_set(&y, ad_real_square(y)), 1.9, 2.5)
ASKS(less_equal, if (ad_real_less_equal(x, 2)) ad_set(&y, ad_real_square(y)), 2, 2.5)
ASKS(greater, if (ad_real_greater(1, x)) ad_set(&y, ad_real_square(y)), 1, 0.5)
ASKS(greater_equal, if (ad_real_greater_equal(x, 1)) ad_set(&y, ad_real_square(y)), 1, 0.5)
ASKS(equal, if (ad_real_equal(x, 1.5)) ad_set(&y, ad_real_square(y)), 1.5, 0.5)
ASKS(not_equal, if (ad_real_not_equal(x, 1.75)) ad_set(&y, ad_real_square(y)), 1.25, 1.75)
ASKS(floor, ad_set(&y, ad_real_mul(y, ad_real_floor(x))), 1.25, 2.25)
ASKS(ceil, ad_set(&y, ad_real_mul(y, ad_real_ceil(x))), 1.25, 2.25)
ASKS(trunc, ad_set(&y, ad_real_mul(y, ad_real_trunc(x))), 1.25, 2.25)
ASKS(round, ad_set(&y, ad_real_mul(y, ad_real_round(x))), 2.25, 1.25)
ASKS(rint, ad_set(&y, ad_real_mul(y, ad_real_rint(x))), 1.75, 3.75)
ASKS(nearbyint, ad_set(&y, ad_real_mul(y, ad_real_nearbyint(x))), 1.75, 3.75)
ASKS(logb, ad_set(&y, ad_real_mul(y, ad_real_logb(x))), 1.75, 3.75)
ASKS(ilogb, ad_set(&y, ad_real_mul(y, ad_real_ilogb(x))), 1.75, 3.75)
ASKS(modf, ad_set(&y, ad_real_add(y, ad_real_modf(x, &whole))), 1.25, 2.25)
ASKS(frexp, ad_set(&y, ad_real_add(y, ad_real_frexp(x, &exponent))), 1.25, 2.25)
ASKS(remquo, ad_set(&y, ad_real_add(y, ad_real_remquo(x, 1, &exponent))), 1.75, 3.75)
ASKS(read, ad_set(&y, ad_real_mul(y, ad_real_value(x))), 1.5, 1.25)

/* A number that was read does not matter where the user says so. */
TEST(reads_may_be_allowed)
{
    ad_real x, y;
    check_ok(ad_real_leaves(tape, 1, (double[]){1.5}, &x));
    check_ok(ad_tape_program_begin(tape));
    ad_set(&y, ad_real_square(x));
    ck_assert(ad_real_value(y) == 2.25);
    check_ok(ad_tape_program_end(tape));
    ck_assert(ad_real_value(y) == 2.25); /* no part of it */
    check_call_refused(ad_tape_replay(tape, 1, &x, (double[]){3}, 0), AD_ERROR_STATE,
                       "ad_real_value");
    check_ok(ad_tape_replay(tape, 1, &x, (double[]){3}, AD_REPLAY_READS));
    check_ok(ad_real_update(tape, 1, &y));
    ck_assert(y.value == 9);
    check_call_refused(ad_tape_replay(tape, 1, &x, (double[]){3}, 2), AD_ERROR_ARGUMENT,
                       "tape_replay");
}

/* ---- what no program can have ---- */

static ad_real x[2], y;

static void begin(void)
{
    check_ok(ad_real_leaves(tape, 2, (double[]){1, 2}, x));
    check_ok(ad_tape_program_begin(tape));
    ad_set(&y, ad_real_mul(x[0], x[1]));
}

static void check_end_refused(int line, const char *why)
{
    char where[64];
    snprintf(where, sizeof where, "test_real_program.c:%d", line);
    ck_assert_int_eq(ad_tape_program_end(tape), AD_ERROR_STATE);
    ck_assert_msg(strstr(ad_tape_message(tape), where) && strstr(ad_tape_message(tape), why),
                  "%s: %s", where, ad_tape_message(tape));
    ad_tape_clear_error(tape);
    double h[4];
    check_call_refused(ad_real_hessian(tape, y, 2, x, h), AD_ERROR_STATE, "no program");
    ck_assert(isnan(h[0]) && isnan(h[3]));
    check_ok(ad_real_backward(tape, y)); /* what was recorded stays */
}

TEST(fused_loops_are_none)
{
    enum { N = 40 };
    ad_real many[N];
    begin();
    for (int i = 0; i < N; i++)
        many[i] = ad_real_of(ad_real_mul(x[0], i));
    y = ad_real_dot(N, many, many);
    check_end_refused(__LINE__ - 1, "dot at");
}

TEST(older_variables_are_none)
{
    check_ok(ad_real_leaves(tape, 2, (double[]){1, 2}, x));
    const ad_real older = ad_real_of(ad_real_square(x[0]));
    check_ok(ad_tape_program_begin(tape));
    y = ad_real_of(ad_real_mul(older, x[1]));
    check_end_refused(__LINE__ - 1, "neither a step nor a leaf");
}

TEST(elements_of_tensors_are_none)
{
    ad_real of[2];
    begin();
    ad_tensor t = ad_leaf(tape, AD_F64, 1, (int64_t[]){2}, (double[]){1, 2});
    check_ok(ad_reals_of_tensor(ad_square(t), 2, of));
    y = ad_real_of(ad_real_mul(of[0], x[1]));
    check_end_refused(__LINE__ - 1, "neither a step nor a leaf");
}

/* What another file records that knows of no programs (observe_support.c is such a one). */
TEST(statements_of_other_files_are_none)
{
    begin();
    const struct {
        double value, partial[1];
        uint64_t word[1];
    } formula = {3, {2}, {(uint64_t)x[0].tag << 32 | x[0].index}};
    y = ad_statement_unusual_(&formula, 1 | 3 << 8, AD_STATEMENT_SITE_);
    check_end_refused(__LINE__ - 1, "is no step");
}

static void square(ad_tape on, int64_t n_in, const ad_real *in, int64_t n_out, ad_real *out,
                   void *payload)
{
    (void)on, (void)n_in, (void)n_out, (void)payload;
    out[0] = ad_real_of(ad_real_square(in[0]));
}

TEST(checkpoints_are_none)
{
    ad_real z;
    begin();
    check_ok(ad_real_checkpoint(tape, square, NULL, 1, &y, 1, &z));
    y = ad_real_of(ad_real_mul(z, x[1]));
    check_end_refused(__LINE__ - 1, "neither a step nor a leaf");
}

TEST(what_does_not_fit_is_refused_at_once)
{
    double h[4];
    check_ok(ad_real_leaves(tape, 2, (double[]){1, 2}, x));
    check_call_refused(ad_tape_program_end(tape), AD_ERROR_STATE, "no program is being recorded");
    check_call_refused(ad_real_hessian(tape, x[0], 2, x, h), AD_ERROR_STATE, "no program");
    check_ok(ad_tape_program_begin(tape));
    check_call_refused(ad_tape_program_begin(tape), AD_ERROR_STATE, "already");
    ad_set(&y, ad_real_mul(x[0], x[1]));
    check_call_refused(ad_real_backward(tape, y), AD_ERROR_STATE,
                       "not while a program is recorded");
    check_call_refused(ad_preaccumulate_begin(tape), AD_ERROR_STATE,
                       "not while a program is recorded");
    check_call_refused(ad_real_hessian(tape, y, 2, x, h), AD_ERROR_STATE, "no program");
    check_ok(ad_tape_program_end(tape));
    check_ok(ad_real_hessian(tape, y, 2, x, h));
    check_ok(ad_preaccumulate_begin(tape));
    check_call_refused(ad_tape_program_begin(tape), AD_ERROR_STATE, "section");
    ad_real out[1] = {y};
    check_ok(ad_preaccumulate_end(tape, 1, out, NULL));
    ad_tape fork[1];
    check_ok(ad_tape_fork(tape, 1, fork));
    check_call_refused(ad_tape_record_end(tape), AD_OK, "");
    check_call_refused(ad_tape_program_begin(tape), AD_ERROR_STATE, "does not record");
}

TEST(arguments_are_looked_at)
{
    double h[4] = {0}, v[2] = {1, 1};
    begin();
    check_ok(ad_tape_program_end(tape));
    const ad_real constant = ad_real_of(3);
    check_call_refused(ad_real_hessian(tape, y, 1, &y, h), AD_ERROR_HANDLE, "x[0] is no leaf");
    check_call_refused(ad_real_hessian(tape, y, 1, &constant, h), AD_ERROR_HANDLE,
                       "x[0] is a constant");
    check_call_refused(ad_real_hessian(tape, y, -1, x, h), AD_ERROR_ARGUMENT, "negative");
    check_call_refused(ad_real_hessian(tape, y, 2, NULL, h), AD_ERROR_ARGUMENT, "null");
    check_call_refused(ad_real_hvp(tape, y, 2, x, NULL, h, NULL), AD_ERROR_ARGUMENT, "null");
    check_call_refused(ad_real_jvp(tape, 1, NULL, 2, x, v, h), AD_ERROR_ARGUMENT, "null");
    check_call_refused(ad_tape_replay(tape, 2, x, NULL, 0), AD_ERROR_ARGUMENT, "null");
    check_call_refused(ad_tape_replay(tape, 1, &y, v, 0), AD_ERROR_HANDLE, "x[0] is no leaf");
    ck_assert(y.value == 2);
    const ad_real later = ad_real_of(ad_real_mul(y, 2));
    check_call_refused(ad_real_hessian(tape, later, 2, x, h), AD_ERROR_HANDLE, "neither a step");
    ck_assert(isnan(h[0]) && isnan(h[3]));
    const ad_real unset = {1, 77, 3}, unset_far = {1, 0xFFFFFFF0u, 3};
    check_call_refused(ad_real_hessian(tape, unset, 2, x, h), AD_ERROR_HANDLE, "y[0]");
    /* Uninitialised operands are errors of their statement; a comparison has none. */
    check_ok(ad_tape_program_begin(tape));
    (void)ad_real_less(unset, 1);
    const ad_real wrong = ad_real_of(ad_real_mul(unset_far, x[0]));
    ck_assert(isnan(wrong.value));
    ad_tape_clear_error(tape);
    check_ok(ad_tape_program_end(tape));
}

/* A number that is written to is another one, of which the program does not know. */
TEST(values_that_are_written_to_are_refused)
{
    for (int k = 0; k < 3; k++) {
        ad_tape_reset(tape);
        begin();
        ad_real z = k ? y : x[0];
        z.value += 1;
        if (k < 2)
            ad_set(&z, ad_real_mul(z, x[1]));
        else
            (void)ad_real_less(x[1], z);
        check_call_refused(ad_tape_status(tape), AD_ERROR_STATE, "`value` was written to");
        ck_assert(k == 2 || isnan(z.value));
        check_ok(ad_tape_program_end(tape));
    }
}

/* After an error there is no program, and another may begin. */
TEST(an_error_ends_it)
{
    double h[4];
    const ad_real unset = {1, 77, 3};
    begin();
    (void)ad_real_of(ad_real_mul(unset, x[0]));
    ck_assert_int_eq(ad_tape_program_end(tape), AD_ERROR_HANDLE);
    ad_tape_clear_error(tape);
    check_call_refused(ad_real_hessian(tape, y, 2, x, h), AD_ERROR_STATE, "no program");
    begin();
    check_ok(ad_tape_program_end(tape));
    check_ok(ad_real_hessian(tape, y, 2, x, h));
}

/* ---- marks ---- */

TEST(a_rewind_drops_what_is_behind)
{
    double h[4];
    check_ok(ad_real_leaves(tape, 2, (double[]){1, 2}, x));
    const ad_mark first = ad_tape_mark(tape);
    check_ok(ad_tape_program_begin(tape));
    ad_set(&y, ad_real_mul(x[0], ad_real_square(x[1])));
    const ad_mark second = ad_tape_mark(tape);
    ad_real z = model((ad_real[]){x[0], x[1], y}, 1000);
    (void)ad_real_less(z, 1e9);
    check_ok(ad_tape_rewind(tape, second));
    ad_set(&z, ad_real_mul(y, x[0]));
    check_ok(ad_tape_program_end(tape));
    check_ok(ad_real_hessian(tape, z, 2, x, h)); /* x0^2 x1^2 */
    ck_assert(h[0] == 8 && h[1] == 8 && h[2] == 8 && h[3] == 2);
    check_ok(ad_tape_rewind(tape, second)); /* part of it is a program still */
    check_ok(ad_real_hessian(tape, y, 2, x, h));
    ck_assert(h[0] == 0 && h[1] == 4 && h[3] == 2);
    check_ok(ad_tape_replay(tape, 1, x, (double[]){3}, 0));
    check_ok(ad_tape_rewind(tape, first));
    check_call_refused(ad_real_hessian(tape, x[0], 2, x, h), AD_ERROR_STATE, "no program");
    check_ok(ad_tape_program_begin(tape));
    ad_set(&y, ad_real_mul(x[0], x[1]));
    ad_stats stats;
    check_ok(ad_tape_reset(tape));
    check_ok(ad_tape_stats(tape, &stats));
    ck_assert_uint_eq(stats.live_bytes, 0);
    check_ok(ad_real_leaves(tape, 2, (double[]){1, 2}, x));
    check_call_refused(ad_tape_program_end(tape), AD_ERROR_STATE, "no program is being recorded");
}

/* What has the index of a step that is gone is no step; it may be a leaf. */
TEST(an_index_is_taken_again)
{
    double h[4];
    ad_real z, leaf;
    check_ok(ad_real_leaves(tape, 2, (double[]){1, 2}, x));
    check_ok(ad_tape_program_begin(tape));
    ad_set(&y, ad_real_mul(x[0], x[1]));
    const ad_mark mark = ad_tape_mark(tape);
    ad_set(&z, ad_real_exp(y));
    check_ok(ad_tape_rewind(tape, mark));
    check_ok(ad_real_leaves(tape, 1, (double[]){3}, &leaf));
    ck_assert_uint_eq(leaf.index, z.index);
    ad_set(&z, ad_real_mul(ad_real_mul(leaf, leaf), y));
    check_ok(ad_tape_program_end(tape));
    check_ok(ad_real_hessian(tape, z, 1, &leaf, h));
    ck_assert(h[0] == 4);
    check_ok(ad_tape_rewind(tape, mark));
    z = ad_real_leaf(tape, 5); /* where a step was, and a statement after it */
    const ad_real later = ad_real_of(ad_real_sin(y));
    check_call_refused(ad_real_hessian(tape, later, 2, x, h), AD_ERROR_HANDLE, "neither a step");
    check_ok(ad_real_update(tape, 1, &z));
    ck_assert(z.value == 5);
}

/* Trained: the same program with other numbers, between marks that take what comes behind. */
TEST(steps_of_newton)
{
    double h[4], g[2], at[2] = {-1.2, 1};
    check_ok(ad_real_leaves(tape, 2, at, x));
    check_ok(ad_tape_program_begin(tape));
    ad_set(&y,
           ad_real_add(ad_real_mul(100, ad_real_square(ad_real_sub(x[1], ad_real_square(x[0])))),
                       ad_real_square(ad_real_sub(1, x[0]))));
    check_ok(ad_tape_program_end(tape));
    for (int i = 0; i < 8; i++) {
        double none[2];
        check_ok(ad_tape_replay(tape, 2, x, at, 0));
        check_ok(ad_real_hessian(tape, y, 2, x, h));
        check_ok(ad_real_hvp(tape, y, 2, x, at, none, g));
        const double det = h[0] * h[3] - h[1] * h[2];
        at[0] -= (h[3] * g[0] - h[1] * g[1]) / det;
        at[1] -= (h[0] * g[1] - h[2] * g[0]) / det;
    }
    check_near(at[0], 1, 1e-14, "minimum");
    check_near(at[1], 1, 1e-14, "minimum");
}

/* ---- bytes ---- */

/* 40 bytes a step, in chunks of 1024, and the roll, on the line of the begin, also where the
 * observation begins later; derivatives cost time and memory on their own line, and give it
 * back. */
TEST(bytes_are_charged_to_its_line)
{
    for (int late = 0; late < 2; late++) {
        double h[9];
        ad_real u[3];
        teardown();
        tape = observe_tape();
        if (!late)
            observe_begin(UINT64_MAX);
        check_ok(ad_real_leaves(tape, 3, (double[]){1, 2, 0.5}, u));
        check_ok(ad_tape_program_begin(tape));
        const ad_mark mark = ad_tape_mark(tape);
        y = model(u, 300); /* 7 steps each */
        check_ok(ad_tape_program_end(tape));
        if (late)
            observe_begin(UINT64_MAX);
        check_ok(ad_real_hessian(tape, y, 3, u, h));
        check_ok(ad_tape_replay(tape, 1, u, (double[]){1}, 0));
        const struct tape_ledger *l = observe_ledger();
        const struct tape_row *row = observe_row(l, "program_begin"),
                              *own = observe_row(l, "real_hessian");
        /* And its roll: a body of 7 steps, and the values that rounds give each other. */
        const uint64_t roll = ad_slots[tape.slot].tape->program->roll->bytes;
        ck_assert_uint_eq(row->live_bytes, 3 * 1024 * sizeof(struct tape_step) + roll);
        ck_assert_uint_lt(roll, 2100 * 24);
        ck_assert_uint_eq(own->live_bytes, 0);
        ck_assert_uint_gt(own->adjoint_bytes, 600 * 8 * 2 * 8); /* of two kept values a round */
        ck_assert_uint_gt(own->backward_ticks, 0);
        ck_assert_uint_eq(observe_row(l, "tape_replay")->forward_ticks, 1);
        if (!late)
            ck_assert_uint_gt(observe_row(l, "program_end")->forward_ticks, 0);
        observe_check_sums(l);
        observe_check_live(l, tape);
        check_ok(ad_tape_rewind(tape, mark));
        l = observe_ledger();
        ck_assert_uint_eq(observe_row(l, "program_begin")->live_bytes, 0);
        observe_check_sums(l);
        observe_check_live(l, tape);
        check_ok(ad_tape_reset(tape));
        ck_assert_uint_eq(observe_ledger()->live_bytes, 0);
        tape_observe_end();
    }
}

RUN_TESTS(setup, teardown_fine)
