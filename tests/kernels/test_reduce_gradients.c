/* test_reduce_gradients.c: gradients of reductions where they are exceptional: zeros among factors,
 * ties, norms of 0, infinities.
 *
 * Expected values are worked out by hand.
 */
#include <check.h>
#include <math.h>
#include <tapescope/ad.h>

#include "run_cases.h"

/* Gradient of a vector's reduction, and that of the sum of `weights` times it; `second` may be
 * NULL, as it must be where the gradient is constant. */
static void gradients(ad_tensor (*f)(ad_tensor x), int n, const double *x, const double *weights,
                      double *first, double *second)
{
    ad_tape tape;
    ad_tensor g;
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    const ad_tensor leaf = ad_leaf(tape, AD_F64, 1, (const int64_t[]){n}, x);
    const ad_tensor w = ad_constant(tape, AD_F64, 1, (const int64_t[]){n}, weights);
    ck_assert_int_eq(ad_create_graph(f(leaf), (ad_tensor){0}, 1, &leaf, &g), AD_OK);
    ck_assert_int_eq(ad_value(g, first, n), AD_OK);
    if (second) {
        ck_assert_int_eq(ad_backward(ad_dot(g, w)), AD_OK);
        ck_assert_int_eq(ad_gradient(leaf, second, n), AD_OK);
    }
    ck_assert_int_eq(ad_backward(f(leaf)), AD_OK);
    double swept[4];
    ck_assert_int_eq(ad_gradient(leaf, swept, n), AD_OK);
    for (int i = 0; i < n; i++) /* gradients of two sweeps add up */
        if (!isnan(first[i]) || !isnan(swept[i]))
            ck_assert_double_eq(swept[i], first[i] + (second ? second[i] : 0));
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

static ad_tensor whole_prod(ad_tensor x)
{
    return ad_prod(x);
}

static ad_tensor whole_max(ad_tensor x)
{
    return ad_max(x);
}

static ad_tensor whole_min(ad_tensor x)
{
    return ad_min(x);
}

static ad_tensor whole_norm2(ad_tensor x)
{
    return ad_norm(x, 2);
}

static ad_tensor whole_norm1(ad_tensor x)
{
    return ad_norm(x, 1);
}

static ad_tensor whole_norm3(ad_tensor x)
{
    return ad_norm(x, 3);
}

static ad_tensor whole_norm_inf(ad_tensor x)
{
    return ad_norm(x, (double)INFINITY);
}

static void check_gradient_of(ad_tensor (*f)(ad_tensor x), const double *x, const double *right,
                              const double *right_second)
{
    const double weights[4] = {1, 1, 1, 1};
    double first[4], second[4];
    gradients(f, 4, x, weights, first, right_second ? second : NULL);
    for (int i = 0; i < 4; i++) {
        ck_assert_msg(first[i] == right[i], "%d: %g, right is %g", i, first[i], right[i]);
        if (right_second)
            ck_assert_msg(second[i] == right_second[i], "second %d: %g, right is %g", i, second[i],
                          right_second[i]);
    }
}

TEST(gradients_of_products_with_zeros_ties_and_norms_of_zero)
{
    const double none[4] = {0}, x1[4] = {2, 0, 3, 5}, x2[4] = {2, 0, 0, 5}, x3[4] = {0, 0, 0, 5};
    /* H 1: the sums of the rows of second derivatives, x_k x_l for the pair left over. */
    check_gradient_of(whole_prod, x1, (double[]){0, 30, 0, 0}, (double[]){15, 31, 10, 6});
    check_gradient_of(whole_prod, x2, none, (double[]){0, 10, 10, 0});
    check_gradient_of(whole_prod, x3, none, none);
    const double ties[4] = {-1, 4, -1, 7}, magnitudes[4] = {-3, 1, 3, 0};
    const double tied[4] = {3, 1, 3, -(double)INFINITY};
    check_gradient_of(whole_max, tied, (double[]){0.5, 0, 0.5, 0}, NULL);
    check_gradient_of(whole_min, ties, (double[]){0.5, 0, 0.5, 0}, NULL);
    check_gradient_of(whole_norm_inf, magnitudes, (double[]){-0.5, 0, 0.5, 0}, none);
    check_gradient_of(whole_norm1, magnitudes, (double[]){-1, 1, 1, 0}, none);
    check_gradient_of(whole_norm1, none, none, none);
    check_gradient_of(whole_norm2, none, none, NULL);
    check_gradient_of(whole_norm3, none, none, NULL);
    check_gradient_of(whole_norm_inf, none, none, NULL);
}

static ad_tensor whole_logsumexp(ad_tensor x)
{
    return ad_logsumexp(x);
}

static ad_tensor whole_var(ad_tensor x)
{
    return ad_var(x, 4);
}

TEST(gradients_are_nan_where_there_is_none_to_give)
{
    const double inf = (double)INFINITY, weights[4] = {0};
    const double one[4] = {inf, 0, 1, -inf}, all[4] = {-inf, -inf, -inf, -inf};
    const double norm[4] = {3, inf, 4, 0}, x[4] = {1, 2, 3, 4};
    double g[4];
    gradients(whole_logsumexp, 4, one, weights, g, NULL);
    ck_assert(isnan(g[0]) && g[1] == 0 && g[2] == 0 && g[3] == 0);
    gradients(whole_logsumexp, 4, all, weights, g, NULL);
    ck_assert(isnan(g[0]) && isnan(g[1]) && isnan(g[2]) && isnan(g[3]));
    gradients(whole_norm2, 4, norm, weights, g, NULL);
    ck_assert(g[0] == 0 && isnan(g[1]) && g[2] == 0 && g[3] == 0);
    gradients(whole_var, 4, x, weights, g, NULL);
    ck_assert(isnan(g[0]) && isnan(g[1]) && isnan(g[2]) && isnan(g[3]));
}

static ad_tensor plain_var(ad_tensor x)
{
    return ad_var(x, 0);
}

static ad_tensor plain_std(ad_tensor x)
{
    return ad_std(x, 0);
}

static ad_tensor whole_sigmoid(ad_tensor x)
{
    return ad_sum(ad_sigmoid(x));
}

static void check_accurate(ad_dtype dtype, ad_tensor (*f)(ad_tensor x), int n, const double *x,
                           const double *right)
{
    const bool wide = dtype == AD_F64;
    float narrow[4];
    double got[4];
    ad_tape tape;
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    for (int i = 0; i < n; i++)
        narrow[i] = (float)x[i];
    const ad_tensor leaf =
        ad_leaf(tape, dtype, 1, (const int64_t[]){n}, wide ? (const void *)x : narrow);
    ck_assert_int_eq(ad_backward(f(leaf)), AD_OK);
    ck_assert_int_eq(ad_gradient(leaf, wide ? (void *)got : narrow, n), AD_OK);
    for (int i = 0; i < n; i++) {
        const double g = wide ? got[i] : (double)narrow[i];
        ck_assert_msg(fabs(g - right[i]) <= (wide ? 1e-14 : 1e-6) * fabs(right[i]),
                      "%d: %.9g, right is %.9g", i, g, right[i]);
    }
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

/* The gradient has the digits of the elements' differences, however large the elements are. */
TEST(gradients_are_as_accurate_as_values)
{
    const double share = 0.26894142136999513, apart[] = {-1, 1}, half[] = {-0.5, 0.5};
    check_accurate(AD_F32, whole_logsumexp, 2, (double[]){1e4, 1e4 + 1},
                   (double[]){share, 1 - share});
    check_accurate(AD_F64, whole_logsumexp, 2, (double[]){1e12, 1e12 + 1},
                   (double[]){share, 1 - share});
    check_accurate(AD_F32, whole_logsumexp, 2, (double[]){-1e4, -1e4 + 1},
                   (double[]){share, 1 - share});
    check_accurate(AD_F32, plain_var, 2, (double[]){0x1p24, 0x1p24 + 2}, apart);
    check_accurate(AD_F32, plain_std, 2, (double[]){0x1p24, 0x1p24 + 2}, half);
    check_accurate(AD_F64, plain_var, 2, (double[]){0x1p53, 0x1p53 + 2}, apart);
    check_accurate(AD_F64, plain_std, 2, (double[]){1e-200, 3e-200}, half);
    check_accurate(AD_F64, plain_std, 2, (double[]){0x1p-1074, 0x3p-1074}, half);
    check_accurate(AD_F64, plain_std, 2, (double[]){0.5e308, 1.5e308}, half);
    check_accurate(AD_F64, plain_var, 3, (double[]){1.5e308, 1.5e308, 1.2e308},
                   (double[]){2 / 3.0 * 1e307, 2 / 3.0 * 1e307, -2 / 3.0 * 2e307});
    check_accurate(AD_F32, plain_std, 2, (double[]){1e-30, 3e-30}, half);
    check_accurate(AD_F32, plain_std, 2, (double[]){1e38, 3e38}, half);
    check_accurate(
        AD_F32, whole_sigmoid, 3, (double[]){15, -15, 80},
        (double[]){3.0590213341738765e-07, 3.0590213341738765e-07, 1.8048513878454153e-35});
    check_accurate(AD_F64, whole_sigmoid, 2, (double[]){35, 300},
                   (double[]){6.305116760146989e-16, 5.148200222412014e-131});
}

RUN_TESTS(NULL, NULL)
