/* test_fit.c: powers fitted to points whose exponents are known, and Student's distribution against
 * its published table.
 */
#include "analyze_fit.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>

/* Two-sided quantiles (Abramowitz, Stegun: Handbook of Mathematical Functions, table 26.10). */
TEST(quantiles_are_those_of_the_table)
{
    static const struct {
        unsigned n;
        double confidence, t;
    } cases[] = {{1, 0.95, 12.706}, {2, 0.95, 4.303}, {3, 0.95, 3.182},  {4, 0.95, 2.776},
                 {5, 0.95, 2.571},  {6, 0.95, 2.447}, {10, 0.95, 2.228}, {30, 0.95, 2.042},
                 {1, 0.99, 63.657}, {2, 0.99, 9.925}, {7, 0.99, 3.499},  {120, 0.95, 1.980}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_double_eq_tol(analyze_student_t(cases[i].n, cases[i].confidence), cases[i].t,
                                5e-4);
}

TEST(an_exact_power_has_its_exponent_and_no_width)
{
    double x[] = {10, 20, 40, 80}, y[4];
    for (int i = 0; i < 4; i++)
        y[i] = 3 * x[i] * x[i];
    struct analyze_fit fit = analyze_fit_power(x, y, 4);
    ck_assert(fit.fits && fit.has_interval);
    ck_assert_double_eq_tol(fit.exponent, 2, 1e-12);
    ck_assert_double_eq_tol(fit.factor, 3, 1e-10);
    ck_assert_double_eq_tol(fit.low, 2, 1e-9);
    ck_assert_double_eq_tol(fit.high, 2, 1e-9);
    ck_assert(analyze_fit_is_above(&fit, 1) && !analyze_fit_is_above(&fit, 2));
}

/* log2 of the points: (0,0), (1,1), (2,3): slope 1.5, residuals 1/6, -1/3, 1/6, so s^2 = 1/6,
 * Sxx = 2 and the standard error is sqrt(1/12); t with one degree of freedom is 12.706. */
TEST(an_interval_is_as_wide_as_the_scatter_says)
{
    double x[] = {1, 2, 4}, y[] = {1, 2, 8};
    struct analyze_fit fit = analyze_fit_power(x, y, 3);
    ck_assert_double_eq_tol(fit.exponent, 1.5, 1e-12);
    ck_assert_double_eq_tol(fit.high - fit.exponent, 12.7062 * sqrt(1.0 / 12), 1e-3);
    ck_assert_double_eq_tol(fit.exponent - fit.low, fit.high - fit.exponent, 1e-12);
    ck_assert(!analyze_fit_is_above(&fit, 1));
}

TEST(what_cannot_be_fitted_is_not)
{
    double x[] = {10, 20, 10}, y[] = {1, 4, 0};
    struct analyze_fit fit = analyze_fit_power(x, y, 3);
    ck_assert_uint_eq(fit.points, 2);
    ck_assert(fit.fits && !fit.has_interval);
    ck_assert_double_eq_tol(fit.exponent, 2, 1e-12);
    ck_assert(!analyze_fit_is_above(&fit, 1));
    /* Nor by one size twice. */
    const double again[] = {5, 5, 10}, same[] = {3, 3, 7};
    fit = analyze_fit_power(again, same, 3);
    ck_assert_uint_eq(fit.points, 3);
    ck_assert(fit.fits && !fit.has_interval && !analyze_fit_is_above(&fit, 1));
    ck_assert(!analyze_fit_power(x, y, 1).fits);
    ck_assert(!analyze_fit_power((double[]){5, 5, 5}, (double[]){1, 2, 3}, 3).fits);
    ck_assert(!analyze_fit_power(x, y, 0).fits);
}

RUN_TESTS(NULL, NULL)
