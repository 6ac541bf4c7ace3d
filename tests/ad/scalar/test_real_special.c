/* test_real_special.c: functions of <math.h> with several results, Bessel functions,
 * and where C's own conditional chooses between formulas.
 */
#include <tapescope/ad_real.h>

#include "run_cases.h"

#include <float.h>
#include <limits.h>

#include "tape_fixture.h"

static void setup(void)
{
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
}

/* The derivative of y by x alone. */
static double derivative(ad_real y, ad_real x)
{
    double d = 0;
    ck_assert_int_eq(ad_real_jacobian(tape, 1, &y, 1, &x, &d), AD_OK);
    return d;
}

static ad_expr bessel(bool second, int n, ad_real x)
{
    if (second)
        return n == 0 ? ad_real_y0(x) : n == 1 ? ad_real_y1(x) : ad_real_yn(n, x);
    return n == 0 ? ad_real_j0(x) : n == 1 ? ad_real_j1(x) : ad_real_jn(n, x);
}

/* By mpmath 1.3.0 with 40 digits: besselj(n, x) or bessely(n, x), and diff() of it by x. */
static const struct {
    bool second;
    int n;
    double x, value, derivative;
} stored[] = {
    {false, 0, 0.25, 0.98443592929585270, -0.12402597732272692},
    {false, 0, 7.5, 0.26633965788037840, -0.13524842757970551},
    {false, 1, 0.25, 0.12402597732272692, 0.48833202000494501},
    {false, 1, 7.5, 0.13524842757970551, 0.24830653420308433},
    {false, 2, 0.5, 0.030604023458682641, 0.11985236384014332},
    {false, 3, 4.0, 0.43017147387562194, 0.041499540445356349},
    {false, -3, 4.0, -0.43017147387562194, -0.041499540445356349},
    {false, 5, 20.0, 0.15116976798239497, 0.092878491559264504},
    {false, 10, 3.0, 1.2928351645715884e-5, 4.1300515823372166e-5},
    {false, 0, -2.5, -0.048383776468197996, 0.49709410246427404},
    {false, 1, -2.5, -0.49709410246427404, -0.24722141745390761},
    {false, 3, -4.0, -0.43017147387562194, 0.041499540445356349},
    {true, 0, 0.25, -0.93157302493005869, 2.7041052293152824},
    {true, 0, 7.5, 0.11731328614820863, 0.25912851048611625},
    {true, 1, 0.25, -2.7041052293152824, 9.8848478923310711},
    {true, 1, 7.5, -0.25912851048611625, 0.15186375421302413},
    {true, 2, 0.5, -5.4413708371742657, 20.294010956026820},
    {true, 3, 4.0, -0.18202211595348501, 0.35242018156872875},
    {true, -3, 4.0, 0.18202211595348501, -0.35242018156872875},
    {true, 5, 20.0, -0.10003576788953243, 0.14910267903203730},
    {true, 10, 3.0, -2582.6071294842997, 8163.7309275500768},
};

TEST_EACH(bessel_functions_have_the_values_and_derivatives_that_mpmath_has,
          sizeof stored / sizeof *stored)
{
    ad_real x = ad_real_leaf(tape, stored[_i].x), y;
    ad_set(&y, bessel(stored[_i].second, stored[_i].n, x));
    ck_assert_msg(fabs(y.value - stored[_i].value) <= 4e-15 * (0.1 + fabs(stored[_i].value)),
                  "%d (%g): %.17g, not %.17g", stored[_i].n, stored[_i].x, y.value,
                  stored[_i].value);
    const double d = derivative(y, x);
    ck_assert_msg(fabs(d - stored[_i].derivative) <= 8e-15 * (0.1 + fabs(stored[_i].derivative)),
                  "%d'(%g): %.17g, not %.17g", stored[_i].n, stored[_i].x, d,
                  stored[_i].derivative);
    ad_set(&y, bessel(stored[_i].second, stored[_i].n, ad_real_of(stored[_i].x)));
    ck_assert_uint_eq(y.index, 0);
}

/* As ad_real_functions.h has it. */
static const struct {
    bool second;
    int n;
    double x, value, derivative;
} edges[] = {
    {false, 0, 0, 1, 0},
    {false, 1, 0, 0, 0.5},
    {false, 2, 0, 0, 0},
    {false, 0, INFINITY, 0, 0},
    {false, 1, -INFINITY, 0, 0},
    {false, 2, INFINITY, 0, 0},
    {true, 0, 0, -INFINITY, INFINITY},
    {true, 1, 0, -INFINITY, INFINITY},
    {true, 2, 0, -INFINITY, INFINITY},
    {true, -1, 0, INFINITY, -INFINITY},
    {true, 0, INFINITY, 0, 0},
    {true, 1, INFINITY, 0, 0},
    {true, 0, -1, NAN, NAN},
    {true, 2, -1, NAN, NAN},
    {true, 0, NAN, NAN, NAN},
    {false, 1, NAN, NAN, NAN},
};

TEST_EACH(bessel_functions_at_an_edge_have_what_the_table_says, sizeof edges / sizeof *edges)
{
    ad_real x = ad_real_leaf(tape, edges[_i].x), y;
    ad_set(&y, bessel(edges[_i].second, edges[_i].n, x));
    const double d = derivative(y, x);
    ck_assert_msg(isnan(edges[_i].value) ? isnan(y.value) : y.value == edges[_i].value,
                  "%d (%g): %g", edges[_i].n, edges[_i].x, y.value);
    ck_assert_msg(isnan(edges[_i].derivative) ? isnan(d) : d == edges[_i].derivative, "%d'(%g): %g",
                  edges[_i].n, edges[_i].x, d);
}

TEST(parts_of_a_number_have_the_derivative_of_the_part_that_moves)
{
    double whole;
    int exponent, quotient, want;
    ad_real x = ad_real_leaf(tape, -12.75), y;
    ad_set(&y, ad_real_modf(ad_real_mul(x, 2), &whole));
    ck_assert(y.value == -0.5 && whole == -25 && derivative(y, x) == 2);
    ad_set(&y, ad_real_frexp(x, &exponent));
    ck_assert(y.value == -12.75 / 16 && exponent == 4 && derivative(y, x) == 1.0 / 16);
    ck_assert(ad_real_logb(x) == 3 && ad_real_ilogb(x) == 3);
    ad_real z = ad_real_leaf(tape, 3.5);
    ad_set(&y, ad_real_remquo(x, z, &quotient));
    ck_assert_double_eq(y.value, remquo(-12.75, 3.5, &want));
    ck_assert_int_eq(quotient, want);
    ck_assert(derivative(y, x) == 1 && derivative(y, z) == 4);
    ad_set(&y, ad_real_remquo(x, 3.5, &quotient));
    ck_assert(derivative(y, x) == 1);
    /* Edges. */
    x = ad_real_leaf(tape, INFINITY);
    ad_set(&y, ad_real_modf(x, &whole));
    ck_assert(y.value == 0 && isinf(whole) && derivative(y, x) == 1);
    ad_set(&y, ad_real_frexp(x, &exponent));
    ck_assert(isinf(y.value) && derivative(y, x) == 1);
    x = ad_real_leaf(tape, 0);
    ad_set(&y, ad_real_frexp(x, &exponent));
    ck_assert(y.value == 0 && exponent == 0 && derivative(y, x) == 1);
    ck_assert(ad_real_logb(x) == -INFINITY && ad_real_ilogb(x) == FP_ILOGB0);
    ad_set(&y, ad_real_remquo(z, x, &quotient));
    ck_assert(isnan(y.value) && derivative(y, z) == 1 && isnan(derivative(y, x)));
    x = ad_real_leaf(tape, DBL_TRUE_MIN); /* 2^1073 is no double */
    ad_set(&y, ad_real_frexp(x, &exponent));
    ck_assert(y.value == 0.5 && exponent == -1073 && derivative(y, x) == INFINITY);
}

TEST(powers_of_two_take_any_whole_exponent)
{
    ad_real x = ad_real_leaf(tape, 0.75), y;
    ad_set(&y, ad_real_ldexp(x, (short)3));
    ck_assert(y.value == 6 && derivative(y, x) == 8);
    ad_set(&y, ad_real_scalbln(x, -2L));
    ck_assert(y.value == 0.1875 && derivative(y, x) == 0.25);
    ad_set(&y, ad_real_scalbln(x, LONG_MAX));
    ck_assert(isinf(y.value) && isinf(derivative(y, x)));
    ad_set(&y, ad_real_scalbln(x, LONG_MIN));
    ck_assert(y.value == 0 && derivative(y, x) == 0);
    ad_set(&y, ad_real_exp10(x));
    ck_assert_double_eq_tol(y.value, pow(10, 0.75), 1e-14);
}

TEST(sincos_sets_both_and_may_overwrite_its_operand)
{
    ad_real x = ad_real_leaf(tape, 0.7), y, c;
    ad_stats before, after;
    ad_tape_stats(tape, &before);
    ad_real_sincos(ad_real_mul(x, 2), &y, &c);
    ad_tape_stats(tape, &after);
    ck_assert_uint_eq(after.statements - before.statements, 2);
    ck_assert(y.value == sin(1.4) && c.value == cos(1.4));
    ck_assert(derivative(y, x) == 2 * cos(1.4) && derivative(c, x) == -2 * sin(1.4));
    y = x;
    ad_real_sincos(y, &y, &c);
    ck_assert(y.value == sin(0.7) && c.value == cos(0.7) && derivative(c, x) == -sin(0.7));
    ad_real_sincos(0.5, &y, &c);
    ck_assert(y.index == 0 && c.index == 0);
}

TEST(cs_own_conditional_chooses_between_formulas_and_records_the_chosen_one)
{
    ad_real x = ad_real_leaf(tape, 0.7), y;
    for (int side = -1; side <= 1; side += 2) {
        ad_set(&y, side > 0 ? ad_real_of(ad_real_sin(x)) : ad_real_of(ad_real_mul(x, x)));
        ck_assert(derivative(y, x) == (side > 0 ? cos(0.7) : 1.4));
        ad_set(&y, ad_real_add(1, side > 0 ? x : y));
        ck_assert(derivative(y, x) == (side > 0 ? 1 : 1.4));
        ad_set(&y, side > 0 ? ad_real_exp(x) : ad_real_square(x)); /* of one type */
        ck_assert(derivative(y, x) == (side > 0 ? exp(0.7) : 1.4));
    }
}

RUN_TESTS(setup, teardown)
