/* test_losses.c: mean losses against plain loops in long double, at their edges, and what they
 * refuse.
 */
#include "network_support.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>

enum { ROWS = 37, COLUMNS = 21, N = ROWS * COLUMNS };

static const ad_dtype dtypes[] = {AD_F32, AD_F64};
static struct net net;
static struct net_tensor x, target;

static long double square(long double a, long double t)
{
    return (a - t) * (a - t);
}

static long double huber(long double a, long double t)
{
    const long double d = fabsl(a - t);
    return d <= 0.5L ? d * d / 2 : 0.5L * (d - 0.25L);
}

static long double entropy(long double p, long double t)
{
    return -t * logl(p) - (1 - t) * log1pl(-p);
}

static long double logistic(long double a, long double t)
{
    return log1pl(expl(-fabsl(a))) + (a > 0 ? (1 - t) * a : -t * a);
}

static ad_tensor huber_half(ad_tensor a, ad_tensor t)
{
    return ad_huber_loss(a, t, 0.5);
}

static ad_tensor mse(ad_tensor a, ad_tensor t)
{
    return ad_mse_loss(a, t);
}

static ad_tensor bce(ad_tensor a, ad_tensor t)
{
    return ad_binary_cross_entropy(a, t);
}

static ad_tensor bce_logits(ad_tensor a, ad_tensor t)
{
    return ad_binary_cross_entropy_with_logits(a, t);
}

static const struct {
    ad_tensor (*op)(ad_tensor, ad_tensor);
    long double (*value)(long double, long double);
    double low, high;
} losses[] = {{mse, square, -3, 3},
              {huber_half, huber, -1, 1},
              {bce, entropy, 0.02, 0.98},
              {bce_logits, logistic, -30, 30}};

TEST_EACH(losses_are_means_of_their_terms, 4)
{
    for (int dtype = 0; dtype < 2; dtype++)
        for (int form = NET_PLAIN; form <= NET_TURNED; form++) {
            long double sum = 0;
            net_begin(&net, dtypes[dtype]);
            net_random(&net, &x, (enum net_form)form, 2, SHAPE(ROWS, COLUMNS), losses[_i].low,
                       losses[_i].high);
            net_random(&net, &target, NET_PLAIN, 2, SHAPE(ROWS, COLUMNS), 0.01, 0.99);
            for (int i = 0; i < N; i++)
                sum += losses[_i].value((long double)x.at[i], (long double)target.at[i]);
            sum /= N;
            net_expect(&net, losses[_i].op(x.x, target.x), 0, NULL, &sum, 4);
            net_end(&net);
        }
}

TEST_EACH(of_nothing_a_loss_is_nan, 4)
{
    const long double nan = (long double)NAN;
    net_begin(&net, AD_F64);
    net_random(&net, &x, NET_PLAIN, 2, SHAPE(0, 3), 0, 1);
    net_expect(&net, losses[_i].op(x.x, x.x), 0, NULL, &nan, 0);
    net_end(&net);
}

TEST_EACH(shapes_and_dtypes_that_differ_are_refused, 4)
{
    net_begin(&net, AD_F64);
    net_random(&net, &x, NET_PLAIN, 2, SHAPE(2, 3), 0, 1);
    net_random(&net, &target, NET_PLAIN, 1, SHAPE(3), 0, 1);
    net_refused(&net, losses[_i].op(x.x, target.x), AD_ERROR_SHAPE,
                ": f64 [2,3], f64 [3]: x and target must have one shape");
    const ad_tensor turned = ad_transpose(x.x);
    net_refused(&net, losses[_i].op(x.x, turned), AD_ERROR_SHAPE,
                ": f64 [2,3], f64 [3,2]: x and target must have one shape");
    const ad_tensor whole = ad_constant(net.tape, AD_I64, 1, SHAPE(1), SHAPE(0));
    net_refused(&net, losses[_i].op(target.x, whole), AD_ERROR_DTYPE, "takes f32 or f64, not i64");
    net_end(&net);
}

/* Value and derivatives of one term. */
static void check_term(ad_tensor (*op)(ad_tensor, ad_tensor), double a, double t, double value,
                       double da, double dt)
{
    const long double want = (long double)value, first = (long double)da, second = (long double)dt;
    for (int dtype = 0; dtype < 2; dtype++) {
        net_begin(&net, dtypes[dtype]);
        net_given(&net, &x, 1, SHAPE(1), &a);
        net_given(&net, &target, 1, SHAPE(1), &t);
        const ad_tensor y = op(x.x, target.x);
        net_expect(&net, y, 0, NULL, &want, 4);
        net_expect_gradient(&net, y, &x, &first, 4);
        net_expect_gradient(&net, y, &target, &second, 4);
        net_end(&net);
    }
}

TEST(probabilities_of_0_and_1_have_the_documented_losses)
{
    const double inf = (double)INFINITY, nan = (double)NAN;
    check_term(bce, 0, 0, 0, 1, inf);
    check_term(bce, 1, 1, 0, -1, -inf);
    check_term(bce, 0, 1, inf, -inf, inf);
    check_term(bce, 1, 0, inf, inf, -inf);
    check_term(bce, 0, 0.5, inf, -inf, inf);
    check_term(bce, 1, 0.5, inf, inf, -inf);
    check_term(bce, -0.5, 0.5, nan, 4.0 / 3, nan);
    check_term(bce, 1.5, 0.5, nan, -4.0 / 3, nan);
    check_term(bce, 1.5, 1, nan, -1 / 1.5, nan);
    check_term(bce, -0.5, 0, nan, 1 / 1.5, nan);
}

TEST(logits_that_are_large_or_infinite_have_the_documented_losses)
{
    const double inf = (double)INFINITY, small = exp(-40);
    check_term(bce_logits, 40, 1, small, -small, -40);
    check_term(bce_logits, -40, 0, small, small, 40);
    check_term(bce_logits, 1000, 0, 1000, 1, -1000);
    check_term(bce_logits, -1000, 1, 1000, -1, 1000);
    check_term(bce_logits, inf, 1, 0, 0, -inf);
    check_term(bce_logits, -inf, 0, 0, 0, inf);
    check_term(bce_logits, inf, 0, inf, 1, -inf);
    check_term(bce_logits, -inf, 0.5, inf, -0.5, inf);
    check_term(bce_logits, (double)NAN, 0, (double)NAN, (double)NAN, (double)NAN);
    /* No cancellation: the loss itself, not 1 plus it, has all its digits. */
    net_begin(&net, AD_F64);
    net_given(&net, &x, 1, SHAPE(1), (double[]){40});
    net_given(&net, &target, 1, SHAPE(1), (double[]){1});
    const double got = ad_item(bce_logits(x.x, target.x));
    ck_assert_msg(fabs(got - small) <= 1e-15 * small, "%.17g, not %.17g", got, small);
    net_end(&net);
}

TEST(huber_is_a_square_up_to_delta_and_linear_beyond)
{
    const double inf = (double)INFINITY;
    check_term(huber_half, 1, 1, 0, 0, 0);
    check_term(huber_half, 1.5, 1, 0.125, 0.5, -0.5);
    check_term(huber_half, 3, 1, 0.875, 0.5, -0.5);
    check_term(huber_half, -1, 1, 0.875, -0.5, 0.5);
    check_term(huber_half, inf, 1, inf, 0.5, -0.5);
    check_term(huber_half, (double)NAN, 1, (double)NAN, (double)NAN, (double)NAN);
}

TEST(huber_of_infinite_delta_is_half_the_square_and_has_half_a_second_derivative_at_delta)
{
    net_begin(&net, AD_F64);
    net_given(&net, &x, 1, SHAPE(2), (double[]){3, -1});
    net_given(&net, &target, 1, SHAPE(2), (double[]){1, 2});
    const long double half = (4 + 9) / 4.0L;
    net_expect(&net, ad_huber_loss(x.x, target.x, (double)INFINITY), 0, NULL, &half, 0);
    const ad_tensor y = ad_huber_loss(x.x, target.x, 2);
    ad_tensor g;
    ck_assert_int_eq(ad_create_graph(y, (ad_tensor){0}, 1, &x.leaf, &g), AD_OK);
    net_expect_gradient(&net, ad_sum(g), &x, (long double[]){0.25L, 0}, 0);
    net_end(&net);
}

TEST(a_delta_that_is_not_positive_is_refused)
{
    net_begin(&net, AD_F64);
    net_given(&net, &x, 1, SHAPE(1), (double[]){3});
    net_refused(&net, ad_huber_loss(x.x, x.x, 0), AD_ERROR_ARGUMENT,
                "huber_loss: delta is 0: a positive number is wanted");
    net_refused(&net, ad_huber_loss(x.x, x.x, -1), AD_ERROR_ARGUMENT, "delta is -1");
    net_refused(&net, ad_huber_loss(x.x, x.x, (double)NAN), AD_ERROR_ARGUMENT, "delta is nan");
    net_end(&net);
}

TEST(the_likelihood_of_labels_is_picked_and_its_gradient_is_one_element_a_row)
{
    static const int64_t labels[] = {4, 0, 2, 2};
    for (int dtype = 0; dtype < 2; dtype++)
        for (int form = NET_PLAIN; form <= NET_TURNED; form++) {
            long double sum = 0, g[20] = {0};
            net_begin(&net, dtypes[dtype]);
            net_random(&net, &x, (enum net_form)form, 2, SHAPE(4, 5), -3, 0);
            const ad_tensor index = ad_constant(net.tape, AD_I64, 1, SHAPE(4), labels);
            for (int r = 0; r < 4; r++) {
                sum -= (long double)x.at[5 * r + labels[r]] / 4;
                g[form == NET_PLAIN ? 5 * r + labels[r] : 4 * labels[r] + r] = -0.25L;
            }
            const ad_tensor y = ad_nll_loss(x.x, index);
            net_expect(&net, y, 0, NULL, &sum, 2);
            net_expect_gradient(&net, y, &x, g, 0);
            net_end(&net);
        }
}

TEST(likelihoods_refuse_labels_that_are_none)
{
    static const int64_t labels[] = {0, 3, -1};
    const long double nan = (long double)NAN;
    net_begin(&net, AD_F64);
    net_random(&net, &x, NET_PLAIN, 2, SHAPE(2, 3), -3, 0);
    const ad_tensor high = ad_constant(net.tape, AD_I64, 1, SHAPE(2), labels);
    const ad_tensor low = ad_constant(net.tape, AD_I64, 1, SHAPE(2), labels + 1);
    net_refused(&net, ad_nll_loss(x.x, high), AD_ERROR_VALUE,
                "nll_loss: f64 [2,3], i64 [2]: label 3 of row 1 is not in 0..2");
    net_refused(&net, ad_nll_loss(x.x, low), AD_ERROR_VALUE,
                "nll_loss: f64 [2,3], i64 [2]: label 3 of row 0 is not in 0..2");
    const ad_tensor minus = ad_constant(net.tape, AD_I64, 1, SHAPE(2), (int64_t[]){0, -1});
    net_refused(&net, ad_nll_loss(x.x, minus), AD_ERROR_VALUE, "label -1 of row 1");
    net_refused(&net, ad_nll_loss(x.x, ad_constant(net.tape, AD_I64, 1, SHAPE(3), labels)),
                AD_ERROR_SHAPE, "f64 [2,3], i64 [3]: x [b,c] and labels [b] are wanted");
    net_refused(&net, ad_nll_loss(x.x, x.x), AD_ERROR_DTYPE,
                "nll_loss: labels must be i64, not f64");
    net_random(&net, &x, NET_PLAIN, 2, SHAPE(0, 3), -3, 0);
    const ad_tensor none = ad_constant(net.tape, AD_I64, 1, SHAPE(0), NULL);
    net_expect(&net, ad_nll_loss(x.x, none), 0, NULL, &nan, 0);
    net_end(&net);
}

RUN_TESTS(NULL, NULL)
