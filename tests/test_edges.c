/* test_edges.c: values and derivatives of the elementwise ops where they are special.
 *
 * May include: check_gradient.h, elementwise.h (which chooses the set), kernel_ops.h, Check. What
 * is expected stands in tables, derived from IEEE 754, C's Annex F and the rows' own words, and is
 * compared exactly, zeros with their sign in values, irrational numbers within 16 ulp; derivatives
 * are taken with a seed of 1.
 */
#include "check_gradient.h"

#include "elementwise.h"
#include "kernel_ops.h"
#include "run_cases.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define INF ((double)INFINITY)
#define NaN ((double)NAN)

/* Stand for numbers that depend on the dtype: the smallest subnormal, and functions of it. */
#define TINY (-12345.0)
#define NEGTINY (-12346.0)
#define TWICE_TINY (-12347.0)
#define LOG_TINY (-12348.0)
#define NEGLOG_TINY (-12349.0)
#define ROOT_TINY (-12350.0)
#define RROOT_TINY (-12351.0)
#define HALF_RROOT_TINY (-12352.0)

#define PI 3.14159265358979323846
#define ERF_SLOPE 1.12837916709551257390 /* 2 / sqrt(pi) */
#define LOG_TWO 0.69314718055994530942
#define GAMMA 0.57721566490153286061 /* Euler's */

struct edge {
    const struct kernel_op *op;
    double in[3], value, derivative[3];
    double parameter[2];
};

static double meant(double x, int dtype)
{
    const double tiny = dtype == KERNEL_F32 ? 0x1p-149 : 0x1p-1074;
    const double list[][2] = {{TINY, tiny},
                              {NEGTINY, -tiny},
                              {TWICE_TINY, 2 * tiny},
                              {LOG_TINY, log(tiny)},
                              {NEGLOG_TINY, -log(tiny)},
                              {ROOT_TINY, sqrt(tiny)},
                              {RROOT_TINY, 1 / sqrt(tiny)},
                              {HALF_RROOT_TINY, 0.5 / sqrt(tiny)}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (x == list[i][0])
            return list[i][1];
    return x;
}

/* A number that f32 has is meant exactly, another one within 16 ulp of the dtype. */
static bool same(double got, double want, bool sign, int dtype)
{
    if (isnan(want))
        return isnan(got);
    if (isfinite(want) && (double)(float)want != want && fabs(want) > DBL_MIN)
        return fabs(got - want) <= (dtype == KERNEL_F32 ? 0x1p-20 : 0x1p-49) * fabs(want);
    return got == want && (!sign || !signbit(got) == !signbit(want));
}

static void check_edge(const struct edge *e, int dtype)
{
    struct check_case c = {.op = e->op, .n_leaves = e->op->n_in, .n_in = e->op->n_in, .sample = -1};
    const double one = 1;
    double x[3], y, g[3];
    c.aim = "edge";
    c.n_attr = e->op->n_attrs;
    for (int i = 0; i < 2; i++)
        c.attr[i] = kernel_attr_word(e->parameter[i]);
    for (int i = 0; i < c.n_in; i++) {
        c.leaf[i] = (struct check_leaf){dtype, 0, {0}, -1, 1, true};
        c.in[i].leaf = i;
        x[i] = meant(e->in[i], dtype);
    }
    check_forward(&c, x, &y);
    ck_assert_msg(same(y, meant(e->value, dtype), true, dtype),
                  "%s %s on %s at (%g, %g, %g): value %g, not %g", e->op->name,
                  kernel_dtype_name(dtype), kernel_isa_name(), x[0], c.n_in > 1 ? x[1] : 0,
                  c.n_in > 2 ? x[2] : 0, y, meant(e->value, dtype));
    if (e->op->constant) {
        check_demand(check_constant(&c));
        return;
    }
    check_pullback(&c, x, &one, g);
    for (int i = 0; i < c.n_in; i++)
        ck_assert_msg(same(g[i], meant(e->derivative[i], dtype), false, dtype),
                      "%s %s on %s at (%g, %g, %g): derivative %d is %g, not %g", e->op->name,
                      kernel_dtype_name(dtype), kernel_isa_name(), x[0], c.n_in > 1 ? x[1] : 0,
                      c.n_in > 2 ? x[2] : 0, i, g[i], meant(e->derivative[i], dtype));
}

static void check_edges(const struct edge *edges, size_t n)
{
    static const char *const names[] = {"portable", "avx2", "avx512"};
    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < n && kernel_isa_use(names[k]); i++)
            for (int dtype = KERNEL_F32; dtype <= KERNEL_F64; dtype++)
                check_edge(&edges[i], dtype);
    kernel_isa_use(NULL);
}

/* One operand: at 0, -0, the smallest subnormal, inf, -inf and NaN; pairs of value, derivative. */
#define SIX(op, v0, d0, vm, dm, vt, dt, vi, di, vn, dn, vx, dx)                                    \
    {&kernel_op_##op, {0}, v0, {d0}, {0}}, {&kernel_op_##op, {-0.0}, vm, {dm}, {0}},               \
        {&kernel_op_##op, {TINY}, vt, {dt}, {0}}, {&kernel_op_##op, {INF}, vi, {di}, {0}},         \
        {&kernel_op_##op, {-INF}, vn, {dn}, {0}},                                                  \
    {                                                                                              \
        &kernel_op_##op, {NaN}, vx, {dx},                                                          \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }
#define AT(op, x, v, d)                                                                            \
    {                                                                                              \
        &kernel_op_##op, {x}, v, {d},                                                              \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

static const struct edge ends[] = {
    SIX(neg, -0.0, -1, 0, -1, NEGTINY, -1, -INF, -1, INF, -1, NaN, -1),
    SIX(exp, 1, 1, 1, 1, 1, 1, INF, INF, 0, 0, NaN, NaN),
    SIX(log, -INF, INF, -INF, -INF, LOG_TINY, INF, INF, 0, NaN, 0, NaN, NaN),
    SIX(tanh, 0, 1, -0.0, 1, TINY, 1, 1, 0, -1, 0, NaN, NaN),
    SIX(sigmoid, 0.5, 0.25, 0.5, 0.25, 0.5, 0.25, 1, 0, 0, 0, NaN, NaN),
    SIX(relu, 0, 0, 0, 0, TINY, 1, INF, 1, 0, 0, NaN, 0),
    SIX(square, 0, 0, 0, 0, 0, TWICE_TINY, INF, INF, INF, -INF, NaN, NaN),
    SIX(sqrt, 0, INF, -0.0, -INF, ROOT_TINY, HALF_RROOT_TINY, INF, 0, NaN, NaN, NaN, NaN),
    SIX(abs, 0, 0, 0, 0, TINY, 1, INF, 1, INF, -1, NaN, NaN),
    SIX(sign, 0, 0, -0.0, 0, 1, 0, 1, 0, -1, 0, NaN, 0),
    SIX(floor, 0, 0, -0.0, 0, 0, 0, INF, 0, -INF, 0, NaN, 0),
    SIX(log1p, 0, 1, -0.0, 1, TINY, 1, INF, 0, NaN, 0, NaN, NaN),
    SIX(expm1, 0, 1, -0.0, 1, TINY, 1, INF, INF, -1, 0, NaN, NaN),
    SIX(rsqrt, INF, -INF, -INF, -INF, RROOT_TINY, -INF, 0, 0, NaN, NaN, NaN, NaN),
    SIX(reciprocal, INF, -INF, -INF, -INF, INF, -INF, 0, 0, -0.0, 0, NaN, NaN),
    SIX(sin, 0, 1, -0.0, 1, TINY, 1, NaN, NaN, NaN, NaN, NaN, NaN),
    SIX(cos, 1, 0, 1, 0, 1, NEGTINY, NaN, NaN, NaN, NaN, NaN, NaN),
    SIX(tan, 0, 1, -0.0, 1, TINY, 1, NaN, NaN, NaN, NaN, NaN, NaN),
    SIX(asin, 0, 1, -0.0, 1, TINY, 1, NaN, NaN, NaN, NaN, NaN, NaN),
    SIX(acos, PI / 2, -1, PI / 2, -1, PI / 2, -1, NaN, NaN, NaN, NaN, NaN, NaN),
    SIX(atan, 0, 1, -0.0, 1, TINY, 1, PI / 2, 0, -PI / 2, 0, NaN, NaN),
    SIX(sinh, 0, 1, -0.0, 1, TINY, 1, INF, INF, -INF, INF, NaN, NaN),
    SIX(cosh, 1, 0, 1, 0, 1, TINY, INF, INF, INF, -INF, NaN, NaN),
    SIX(asinh, 0, 1, -0.0, 1, TINY, 1, INF, 0, -INF, 0, NaN, NaN),
    SIX(acosh, NaN, NaN, NaN, NaN, NaN, NaN, INF, 0, NaN, NaN, NaN, NaN),
    SIX(atanh, 0, 1, -0.0, 1, TINY, 1, NaN, 0, NaN, 0, NaN, NaN),
    SIX(softplus, LOG_TWO, 0.5, LOG_TWO, 0.5, LOG_TWO, 0.5, INF, 1, 0, 0, NaN, NaN),
    SIX(gelu, 0, 0.5, -0.0, 0.5, 0, 0.5, INF, 1, 0, 0, NaN, NaN),
    SIX(gelu_tanh, 0, 0.5, -0.0, 0.5, 0, 0.5, INF, 1, 0, 0, NaN, NaN),
    SIX(silu, 0, 0.5, -0.0, 0.5, 0, 0.5, INF, 1, 0, 0, NaN, NaN),
    SIX(erf, 0, ERF_SLOPE, -0.0, ERF_SLOPE, TINY, ERF_SLOPE, 1, 0, -1, 0, NaN, NaN),
    SIX(erfc, 1, -ERF_SLOPE, 1, -ERF_SLOPE, 1, -ERF_SLOPE, 0, 0, 2, 0, NaN, NaN),
    SIX(lgamma, INF, -INF, INF, INF, NEGLOG_TINY, -INF, INF, INF, INF, NaN, NaN, NaN),
    SIX(digamma, -INF, INF, INF, INF, -INF, INF, INF, 0, NaN, NaN, NaN, NaN),
    AT(log, 1, 0, 1),
    AT(log, -1, NaN, -1),
    AT(log1p, -1, -INF, INF),
    AT(log1p, -2, NaN, -1),
    AT(asin, 1, PI / 2, INF),
    AT(asin, -1, -PI / 2, INF),
    AT(asin, 2, NaN, NaN),
    AT(acos, 1, 0, -INF),
    AT(acos, -1, PI, -INF),
    AT(acosh, 1, 0, INF),
    AT(acosh, -2, NaN, NaN),
    AT(atanh, 1, INF, INF),
    AT(atanh, -1, -INF, INF),
    AT(atanh, 3, NaN, -0.125),
    AT(lgamma, 1, 0, -GAMMA),
    AT(lgamma, 2, 0, 1 - GAMMA),
    AT(lgamma, -1, INF, NaN),
    AT(digamma, -1, NaN, INF),
    AT(rsqrt, 4, 0.5, -0.0625),
    AT(floor, -1.5, -2, 0),
    AT(softplus, 1e4, 1e4, 1),
    AT(silu, -1e30, 0, 0),
    AT(gelu, -1e30, 0, 0),
    AT(gelu_tanh, -1e30, 0, 0),
};

START_TEST(ends_of_domains_are_as_ieee_754_and_the_rows_say)
{
    check_edges(ends, sizeof ends / sizeof *ends);
}
END_TEST

static const struct edge parameters[] = {
    {&kernel_op_leaky_relu, {0}, 0, {0.25}, {0.25}},
    {&kernel_op_leaky_relu, {-0.0}, -0.0, {0.25}, {0.25}},
    {&kernel_op_leaky_relu, {TINY}, TINY, {1}, {0.25}},
    {&kernel_op_leaky_relu, {INF}, INF, {1}, {0.25}},
    {&kernel_op_leaky_relu, {-INF}, -INF, {0.25}, {0.25}},
    {&kernel_op_leaky_relu, {NaN}, NaN, {0.25}, {0.25}},
    {&kernel_op_elu, {0}, 0, {1.5}, {1.5}},
    {&kernel_op_elu, {-0.0}, -0.0, {1.5}, {1.5}},
    {&kernel_op_elu, {TINY}, TINY, {1}, {1.5}},
    {&kernel_op_elu, {INF}, INF, {1}, {1.5}},
    {&kernel_op_elu, {-INF}, -1.5, {0}, {1.5}},
    {&kernel_op_elu, {NaN}, NaN, {NaN}, {1.5}},
    {&kernel_op_clamp, {-1}, -1, {1}, {-1, 2}},
    {&kernel_op_clamp, {2}, 2, {1}, {-1, 2}},
    {&kernel_op_clamp, {-0.0}, -0.0, {1}, {-1, 2}},
    {&kernel_op_clamp, {TINY}, TINY, {1}, {-1, 2}},
    {&kernel_op_clamp, {INF}, 2, {0}, {-1, 2}},
    {&kernel_op_clamp, {-INF}, -1, {0}, {-1, 2}},
    {&kernel_op_clamp, {NaN}, NaN, {0}, {-1, 2}},
    {&kernel_op_clamp, {0}, -1, {0}, {2, -1}},
};

START_TEST(ops_with_parameters_have_their_documented_kinks)
{
    check_edges(parameters, sizeof parameters / sizeof *parameters);
}
END_TEST

#define TWO(op, a, b, v, da, db)                                                                   \
    {                                                                                              \
        &kernel_op_##op, {a, b}, v, {da, db},                                                      \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

static const struct edge pairs[] = {
    TWO(maximum, 1, 1, 1, 0.5, 0.5),
    TWO(maximum, INF, INF, INF, 0.5, 0.5),
    TWO(maximum, 0, TINY, TINY, 0, 1),
    TWO(maximum, -INF, -1, -1, 0, 1),
    TWO(maximum, NaN, 1, NaN, 0, 0),
    TWO(maximum, 1, NaN, NaN, 0, 0),
    TWO(minimum, 1, 1, 1, 0.5, 0.5),
    TWO(minimum, -INF, -INF, -INF, 0.5, 0.5),
    TWO(minimum, 0, TINY, 0, 1, 0),
    TWO(minimum, NaN, 1, NaN, 0, 0),
    TWO(minimum, 1, NaN, NaN, 0, 0),
    TWO(pow, 0, 0, 1, 0, -INF),
    TWO(pow, 0, 1, 0, 1, 0),
    TWO(pow, 0, 2, 0, 0, 0),
    TWO(pow, 0, 0.5, 0, INF, 0),
    TWO(pow, 0, -1, INF, -INF, -INF),
    TWO(pow, 1, NaN, 1, NaN, 0),
    TWO(pow, NaN, 0, 1, 0, NaN),
    TWO(pow, -2, 2, 4, -4, NaN),
    TWO(pow, -2, 3, -8, 12, NaN),
    TWO(pow, -2, -1, -0.5, -0.25, NaN),
    TWO(pow, -2, 0, 1, 0, NaN),
    TWO(pow, INF, 0, 1, 0, INF),
    TWO(pow, INF, 1, INF, 1, INF),
    TWO(pow, INF, -1, 0, 0, 0),
    TWO(pow, 2, -INF, 0, NaN, 0),
    TWO(atan2, 0, 0, 0, NaN, NaN),
    TWO(atan2, -0.0, 0, -0.0, NaN, NaN),
    TWO(atan2, 0, 2, 0, 0.5, 0),
    TWO(atan2, 1, INF, 0, NaN, 0),
    TWO(atan2, NaN, 1, NaN, NaN, NaN),
    TWO(hypot, 0, 0, 0, NaN, NaN),
    TWO(hypot, 3, 4, 5, 0.6, 0.8),
    TWO(hypot, TINY, 0, TINY, 1, 0),
    TWO(hypot, -2, 0, 2, -1, 0),
    TWO(hypot, INF, NaN, INF, NaN, NaN),
    TWO(hypot, NaN, 1, NaN, NaN, NaN),
    TWO(fmod, 5, 3, 2, 1, -1),
    TWO(fmod, -5, 3, -2, 1, 1),
    TWO(fmod, -0.0, 3, -0.0, 1, 0),
    TWO(fmod, 6, 3, 0, 1, -2),
    TWO(fmod, 2, INF, 2, 1, 0),
    TWO(fmod, 1, 0, NaN, 1, NaN),
    TWO(fmod, INF, 1, NaN, 1, NaN),
    TWO(div, 1, 0, INF, INF, -INF),
    TWO(div, 0, 0, NaN, INF, NaN),
    TWO(mul, 0, INF, NaN, INF, 0),
};

START_TEST(pairs_of_special_operands_are_as_the_rows_say)
{
    check_edges(pairs, sizeof pairs / sizeof *pairs);
}
END_TEST

#define ORDER(a, b, l, le, g, ge, e, ne)                                                           \
    TWO(less, a, b, l, 0, 0), TWO(less_equal, a, b, le, 0, 0), TWO(greater, a, b, g, 0, 0),        \
        TWO(greater_equal, a, b, ge, 0, 0), TWO(equal, a, b, e, 0, 0),                             \
        TWO(not_equal, a, b, ne, 0, 0)

static const struct edge orders[] = {
    ORDER(0, -0.0, 0, 1, 0, 1, 1, 0),  ORDER(0, TINY, 1, 1, 0, 0, 0, 1),
    ORDER(INF, INF, 0, 1, 0, 1, 1, 0), ORDER(INF, -INF, 0, 0, 1, 1, 0, 1),
    ORDER(NaN, 1, 0, 0, 0, 0, 0, 1),   ORDER(1, NaN, 0, 0, 0, 0, 0, 1),
    ORDER(NaN, NaN, 0, 0, 0, 0, 0, 1),
};

START_TEST(comparisons_are_zero_or_one_and_constant)
{
    check_edges(orders, sizeof orders / sizeof *orders);
}
END_TEST

#define THREE(c, a, b, v, da, db)                                                                  \
    {                                                                                              \
        &kernel_op_where, {c, a, b}, v, {0, da, db},                                               \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

static const struct edge choices[] = {
    THREE(1, 2, NaN, 2, 1, 0),          THREE(0, NaN, 3, 3, 0, 1), THREE(-0.0, INF, 3, 3, 0, 1),
    THREE(TINY, -0.0, INF, -0.0, 1, 0), THREE(NaN, 2, 3, 2, 1, 0), THREE(-INF, NaN, 3, NaN, 1, 0),
    THREE(0, 2, -0.0, -0.0, 0, 1),
};

START_TEST(where_gives_the_operand_not_taken_exactly_zero)
{
    check_edges(choices, sizeof choices / sizeof *choices);
}
END_TEST

/* Even where the adjoint of the output is infinite or NaN. */
START_TEST(where_keeps_an_adjoint_that_is_not_finite_from_the_operand_not_taken)
{
    const double x[6] = {1, 0, 7, 8, NaN, INF};
    for (int k = 0; k < 2; k++) {
        struct check_case c = {.op = &kernel_op_where, .n_leaves = 3, .n_in = 3, .sample = -1};
        const double u[2] = {k ? NaN : INF, k ? NaN : -INF};
        double g[6];
        for (int i = 0; i < 3; i++) {
            c.leaf[i] = (struct check_leaf){KERNEL_F64, 1, {2}, -1, 1, true};
            c.in[i].leaf = i;
        }
        check_pullback(&c, x, u, g);
        ck_assert(g[0] == 0 && g[1] == 0);
        ck_assert(same(g[2], u[0], false, KERNEL_F64) && g[3] == 0);
        ck_assert(g[4] == 0 && same(g[5], u[1], false, KERNEL_F64));
    }
}
END_TEST

/* Every public row stands in one of the tables, or is one of these linear ones. */
START_TEST(no_elementwise_op_is_left_out)
{
    static const struct kernel_op *const plain[] = {&kernel_op_add, &kernel_op_sub,
                                                    &kernel_op_scale, &kernel_op_offset};
    const struct {
        const struct edge *edges;
        size_t n;
    } tables[] = {{ends, sizeof ends / sizeof *ends},
                  {parameters, sizeof parameters / sizeof *parameters},
                  {pairs, sizeof pairs / sizeof *pairs},
                  {orders, sizeof orders / sizeof *orders},
                  {choices, sizeof choices / sizeof *choices}};
    int n;
    const struct kernel_op *const *ops = kernel_ops(&n);
    for (int k = 0; k < n; k++) {
        bool found = ops[k]->hidden || !ops[k]->elementwise;
        for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
            found = found || ops[k] == plain[i];
        for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
            for (size_t i = 0; i < tables[t].n; i++)
                found = found || ops[k] == tables[t].edges[i].op;
        ck_assert_msg(found, "%s has no edges in this test", ops[k]->name);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("special values");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, ends_of_domains_are_as_ieee_754_and_the_rows_say);
    tcase_add_test(tests, ops_with_parameters_have_their_documented_kinks);
    tcase_add_test(tests, pairs_of_special_operands_are_as_the_rows_say);
    tcase_add_test(tests, comparisons_are_zero_or_one_and_constant);
    tcase_add_test(tests, where_gives_the_operand_not_taken_exactly_zero);
    tcase_add_test(tests, where_keeps_an_adjoint_that_is_not_finite_from_the_operand_not_taken);
    tcase_add_test(tests, no_elementwise_op_is_left_out);
    return run_cases("edges", tests);
}
