/* test_pooling.c: maxima and means of windows, and their gradients, against plain loops in long
 * double, at their edges, and what they refuse.
 */
#include "network_support.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <string.h>

static const ad_dtype dtypes[] = {AD_F32, AD_F64};
static struct net net;
static struct net_tensor x, u;
static long double most[NET_MOST], most_g[NET_MOST];
static long double mean[2][NET_MOST], mean_g[2][NET_MOST]; /* by count_padding */

struct geometry {
    int planes, h, w, kh, kw, sh, sw, ph, pw;
};

static const struct geometry cases[] = {
    {6, 8, 10, 2, 2, 2, 2, 0, 0}, {6, 7, 9, 3, 3, 2, 2, 1, 1}, {2, 5, 33, 3, 5, 1, 1, 1, 2},
    {1, 3, 3, 3, 3, 1, 1, 0, 0},  {3, 9, 8, 2, 4, 3, 1, 0, 2}, {2, 4, 4, 1, 1, 2, 3, 0, 0},
    {1, 1, 1, 2, 2, 1, 1, 1, 1},  {0, 4, 4, 2, 2, 1, 1, 0, 0},
};

static int out_of(int image, int kernel, int stride, int padding)
{
    return (image + 2 * padding - kernel) / stride + 1;
}

/* Values, and the gradients for the adjoint u, by the definitions. */
static void compute(const struct geometry *g, int oh, int ow)
{
    memset(most_g, 0, sizeof most_g);
    memset(mean_g, 0, sizeof mean_g);
    for (int to = 0; to < g->planes * oh * ow; to++) {
        const int plane = to / (oh * ow), p = to / ow % oh, q = to % ow;
        int inside[256] = {0}, n = 0;
        long double sum = 0;
        for (int k = 0; k < g->kh * g->kw; k++) {
            const int r = p * g->sh + k / g->kw - g->ph, s = q * g->sw + k % g->kw - g->pw;
            if (r >= 0 && r < g->h && s >= 0 && s < g->w)
                inside[n++] = (plane * g->h + r) * g->w + s;
        }
        int best = inside[0];
        for (int k = 0; k < n; k++) {
            best = x.at[inside[k]] > x.at[best] ? inside[k] : best;
            sum += (long double)x.at[inside[k]];
        }
        most[to] = (long double)x.at[best];
        most_g[best] += (long double)u.at[to];
        for (int padded = 0; padded < 2; padded++) {
            const int count = padded ? g->kh * g->kw : n;
            mean[padded][to] = sum / count;
            for (int k = 0; k < n; k++)
                mean_g[padded][inside[k]] += (long double)u.at[to] / count;
        }
    }
}

static void expect(ad_tensor y, int rank, const int64_t *shape, const long double *want,
                   const long double *g, int rows, int columns, bool turned)
{
    static long double in_leaf[NET_MOST];
    for (int i = 0; i < x.n; i++) {
        const int in = i % (rows * columns);
        in_leaf[turned ? i - in + in % columns * rows + in / columns : i] = g[i];
    }
    net_expect(&net, y, rank, shape, want, 8);
    net_expect_gradient(&net, ad_sum(ad_mul(y, u.x)), &x, in_leaf, 40);
}

TEST_EACH(images_agree_with_plain_loops, (int)(sizeof cases / sizeof *cases))
{
    const struct geometry *g = &cases[_i];
    const int oh = out_of(g->h, g->kh, g->sh, g->ph), ow = out_of(g->w, g->kw, g->sw, g->pw);
    for (int run = 0; run < 4; run++) {
        const int64_t shape[] = {g->planes, oh, ow};
        const bool turned = run >= 2;
        net_begin(&net, dtypes[run % 2]);
        net_random(&net, &x, turned ? NET_TURNED : NET_PLAIN, 3, SHAPE(g->planes, g->h, g->w), -1,
                   1);
        net_random(&net, &u, NET_PLAIN, 3, shape, -0.75, 1);
        compute(g, oh, ow);
        expect(ad_max_pool2d(x.x, g->kh, g->kw,
                             &(ad_max_pool2d_options){.stride_h = g->sh,
                                                      .stride_w = g->sw,
                                                      .padding_h = g->ph,
                                                      .padding_w = g->pw}),
               3, shape, most, most_g, g->h, g->w, turned);
        for (int padded = 0; padded < 2; padded++)
            expect(ad_avg_pool2d(x.x, g->kh, g->kw,
                                 &(ad_avg_pool2d_options){.stride_h = g->sh,
                                                          .stride_w = g->sw,
                                                          .padding_h = g->ph,
                                                          .padding_w = g->pw,
                                                          .flags = padded ? 0 : AD_SKIP_PADDING}),
                   3, shape, mean[padded], mean_g[padded], g->h, g->w, turned);
        net_end(&net);
    }
}

TEST(lines_agree_with_plain_loops)
{
    static const struct geometry lines[] = {
        {6, 1, 33, 1, 3, 1, 2, 0, 1}, {6, 1, 8, 1, 2, 1, 2, 0, 0}, {6, 1, 5, 1, 5, 1, 1, 0, 2}};
    for (int run = 0; run < 12; run++) {
        const struct geometry *g = &lines[run / 4];
        const int ow = out_of(g->w, g->kw, g->sw, g->pw);
        const int64_t shape[] = {2, 3, ow};
        const bool turned = run % 4 >= 2;
        net_begin(&net, dtypes[run % 2]);
        net_random(&net, &x, turned ? NET_TURNED : NET_PLAIN, 3, SHAPE(2, 3, g->w), -1, 1);
        net_random(&net, &u, NET_PLAIN, 3, shape, -0.75, 1);
        compute(g, 1, ow);
        expect(
            ad_max_pool1d(x.x, g->kw, &(ad_max_pool1d_options){.stride = g->sw, .padding = g->pw}),
            3, shape, most, most_g, 3, g->w, turned);
        for (int padded = 0; padded < 2; padded++)
            expect(ad_avg_pool1d(x.x, g->kw,
                                 &(ad_avg_pool1d_options){.stride = g->sw,
                                                          .padding = g->pw,
                                                          .flags = padded ? 0 : AD_SKIP_PADDING}),
                   3, shape, mean[padded], mean_g[padded], 3, g->w, turned);
        net_end(&net);
    }
}

/* One window over all four elements: its maximum and who gets the gradient. */
static void check_window(const double *numbers, double value, int who)
{
    const long double want = (long double)value;
    long double g[4] = {0};
    g[who] = 1;
    for (int dtype = 0; dtype < 2; dtype++) {
        net_begin(&net, dtypes[dtype]);
        net_given(&net, &x, 1, SHAPE(4), numbers);
        ad_tensor y = ad_max_pool1d(x.x, 4, &(ad_max_pool1d_options){.stride = 1});
        net_expect(&net, y, 1, SHAPE(1), &want, 0);
        net_expect_gradient(&net, ad_sum(y), &x, g, 0);
        net_given(&net, &x, 2, SHAPE(2, 2), numbers);
        y = ad_max_pool2d(x.x, 2, 2, &(ad_max_pool2d_options){.stride_h = 1, .stride_w = 1});
        net_expect(&net, y, 2, SHAPE(1, 1), &want, 0);
        net_expect_gradient(&net, ad_sum(y), &x, g, 0);
        net_end(&net);
    }
}

TEST(of_equal_elements_the_first_and_of_any_a_nan_is_the_maximum)
{
    const double inf = (double)INFINITY, nan = (double)NAN;
    check_window((double[]){1, 3, 3, 3}, 3, 1);
    check_window((double[]){2, 2, 2, 2}, 2, 0);
    check_window((double[]){-0.0, 0, 0, 0}, 0, 0);
    check_window((double[]){-inf, -inf, -inf, -inf}, -inf, 0);
    check_window((double[]){-inf, -5, -inf, -7}, -5, 1);
    check_window((double[]){1, nan, inf, 2}, nan, 1);
    check_window((double[]){nan, 5, nan, 2}, nan, 0);
    check_window((double[]){1, 2, 5, nan}, nan, 3);
    check_window((double[]){1, inf, 5, inf}, inf, 1);
}

TEST(padding_is_no_maximum_and_counts_in_a_mean_where_asked)
{
    const long double low[] = {-3, -2, -2}, padded[] = {-1.5L, -2.5L, -1},
                      inside[] = {-3, -2.5L, -2};
    net_begin(&net, AD_F64);
    net_given(&net, &x, 1, SHAPE(2), (double[]){-3, -2});
    net_expect(&net, ad_max_pool1d(x.x, 2, &(ad_max_pool1d_options){.stride = 1, .padding = 1}), 1,
               SHAPE(3), low, 0);
    net_expect(&net, ad_avg_pool1d(x.x, 2, &(ad_avg_pool1d_options){.stride = 1, .padding = 1}), 1,
               SHAPE(3), padded, 0);
    net_expect(
        &net,
        ad_avg_pool1d(
            x.x, 2, &(ad_avg_pool1d_options){.stride = 1, .padding = 1, .flags = AD_SKIP_PADDING}),
        1, SHAPE(3), inside, 0);
    net_end(&net);
}

TEST(what_does_not_fit_is_refused)
{
    net_begin(&net, AD_F64);
    net_random(&net, &x, NET_PLAIN, 2, SHAPE(3, 4), -1, 1);
    const ad_tensor row = ad_select(x.x, 0, 0), one = ad_sum(x.x);
    const ad_tensor whole = ad_constant(net.tape, AD_I64, 2, SHAPE(1, 1), SHAPE(1));
    const ad_tensor none = ad_slice(x.x, 1, 0, 0, 1);
    net_refused(&net, ad_max_pool2d(x.x, 0, 1, &(ad_max_pool2d_options){.stride_h = 1}),
                AD_ERROR_SHAPE, "max_pool2d: f64 [3,4]: there is no window of 0 with stride 1");
    net_refused(&net, ad_max_pool2d(x.x, 1, 1, &(ad_max_pool2d_options){.stride_w = -1}),
                AD_ERROR_SHAPE, "there is no window of 1 with stride -1");
    net_refused(
        &net,
        ad_max_pool2d(x.x, 3, 3,
                      &(ad_max_pool2d_options){.stride_h = 1, .stride_w = 1, .padding_w = 2}),
        AD_ERROR_SHAPE, "padding 2 is not in 0..1");
    net_refused(
        &net,
        ad_max_pool2d(x.x, 3, 3,
                      &(ad_max_pool2d_options){.stride_h = 1, .stride_w = 1, .padding_h = -1}),
        AD_ERROR_SHAPE, "padding -1 is not in 0..1");
    net_refused(&net,
                ad_max_pool2d(x.x, 4, 3, &(ad_max_pool2d_options){.stride_h = 1, .stride_w = 1}),
                AD_ERROR_SHAPE, "a window of 4 does not fit into 3");
    net_refused(&net,
                ad_max_pool2d(none, 2, 2,
                              &(ad_max_pool2d_options){
                                  .stride_h = 1, .stride_w = 1, .padding_h = 1, .padding_w = 1}),
                AD_ERROR_SHAPE, "a window of 2 does not fit into 0");
    net_refused(&net, ad_max_pool2d(row, 1, 1, NULL), AD_ERROR_SHAPE,
                "max_pool2d: f64 [4]: x [...,h,w] is wanted");
    net_refused(&net, ad_max_pool2d(whole, 1, 1, NULL), AD_ERROR_DTYPE,
                "max_pool2d takes f32 or f64, not i64");
    net_refused(&net, ad_avg_pool2d(row, 1, 1, NULL), AD_ERROR_SHAPE,
                "avg_pool2d: f64 [4]: x [...,h,w] is wanted");
    net_refused(&net, ad_avg_pool2d(x.x, 1, 5, &(ad_avg_pool2d_options){.stride_w = 1}),
                AD_ERROR_SHAPE, "avg_pool2d: f64 [3,4]: a window of 5 does not fit into 4");
    net_refused(&net, ad_avg_pool2d(whole, 1, 1, NULL), AD_ERROR_DTYPE,
                "avg_pool2d takes f32 or f64, not i64");
    net_refused(&net, ad_max_pool1d(row, 5, &(ad_max_pool1d_options){.stride = 1}), AD_ERROR_SHAPE,
                "max_pool1d: f64 [4]: a window of 5 does not fit into 4");
    net_refused(&net, ad_max_pool1d(one, 1, NULL), AD_ERROR_SHAPE, "x [...,l] is wanted");
    net_refused(&net, ad_max_pool1d(whole, 1, NULL), AD_ERROR_DTYPE, "takes f32 or f64, not i64");
    net_refused(&net, ad_avg_pool1d(row, 2, &(ad_avg_pool1d_options){.stride = 1, .padding = 2}),
                AD_ERROR_SHAPE, "avg_pool1d: f64 [4]: padding 2 is not in 0..1");
    net_refused(&net, ad_avg_pool1d(one, 1, NULL), AD_ERROR_SHAPE,
                "x [...,l] of at most 7 axes is wanted");
    net_refused(&net, ad_avg_pool1d(ad_reshape(row, SHAPE(1, 1, 1, 1, 1, 1, 1, 4), 8), 1, NULL),
                AD_ERROR_SHAPE, "x [...,l] of at most 7 axes is wanted");
    net_refused(&net, ad_avg_pool1d(whole, 1, NULL), AD_ERROR_DTYPE, "takes f32 or f64, not i64");
    net_end(&net);
}

RUN_TESTS(NULL, NULL)
