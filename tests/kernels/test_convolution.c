/* test_convolution.c: convolutions and their gradients against plain loops in long double, and what
 * they refuse.
 *
 * One case is larger than a strip of windows.
 */
#include "network_support.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <string.h>

static const ad_dtype dtypes[] = {AD_F32, AD_F64};
static struct net net;
static struct net_tensor x, w, u;
static long double y[NET_MOST], gx[NET_MOST], gw[NET_MOST];

struct geometry {
    int n, c, h, w, o, kh, kw, sh, sw, ph, pw, dh, dw, groups;
};

static const struct geometry cases[] = {
    {2, 3, 6, 5, 4, 3, 2, 1, 1, 0, 0, 1, 1, 1},
    {2, 4, 7, 8, 6, 3, 3, 2, 1, 1, 2, 1, 1, 2},
    {1, 2, 9, 8, 2, 3, 2, 2, 3, 2, 0, 2, 3, 1},
    {3, 6, 4, 4, 6, 2, 2, 1, 1, 1, 1, 1, 1, 6},
    {2, 8, 5, 5, 4, 1, 1, 1, 1, 0, 0, 1, 1, 2},
    {2, 8, 5, 5, 4, 1, 1, 2, 2, 0, 0, 1, 1, 1},
    {1, 1, 3, 3, 1, 1, 1, 1, 1, 4, 3, 1, 1, 1},
    {1, 1, 2, 2, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1},
    {1, 2, 1, 40, 3, 1, 5, 1, 2, 0, 3, 1, 2, 1},
    {1, 4, 32, 32, 2, 7, 7, 1, 1, 3, 3, 1, 1, 1},
    {1, 1, 4, 4, 1, 2, 2, 5, 5, 0, 0, 1, 1, 1},
    /* in tiles */
    {2, 5, 9, 11, 13, 3, 3, 1, 1, 1, 1, 1, 1, 1},
    {1, 3, 8, 19, 9, 3, 2, 1, 1, 3, 2, 1, 1, 1},
    {1, 4, 12, 17, 8, 3, 3, 1, 1, 2, 2, 2, 2, 2},
    {1, 3, 9, 23, 10, 3, 3, 2, 2, 1, 1, 1, 1, 1},
    {1, 40, 8, 9, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1},
    {1, 1, 10, 30, 2, 9, 9, 1, 1, 4, 4, 1, 1, 1},
};

static int out_of(int image, int kernel, int stride, int padding, int dilation)
{
    return (image + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
}

/* y of x and w, and their gradients for the adjoint u of y, by the definition. */
static void compute(const struct geometry *g, int oh, int ow)
{
    const int cg = g->c / g->groups, og = g->o / g->groups;
    memset(y, 0, sizeof y);
    memset(gx, 0, sizeof gx);
    memset(gw, 0, sizeof gw);
    for (int n = 0; n < g->n; n++)
        for (int o = 0; o < g->o; o++)
            for (int p = 0; p < oh; p++)
                for (int q = 0; q < ow; q++)
                    for (int c = 0; c < cg; c++)
                        for (int k = 0; k < g->kh * g->kw; k++) {
                            const int r = p * g->sh + k / g->kw * g->dh - g->ph;
                            const int s = q * g->sw + k % g->kw * g->dw - g->pw;
                            if (r < 0 || r >= g->h || s < 0 || s >= g->w)
                                continue;
                            const int at_y = ((n * g->o + o) * oh + p) * ow + q;
                            const int at_x = ((n * g->c + o / og * cg + c) * g->h + r) * g->w + s;
                            const int at_w = (o * cg + c) * g->kh * g->kw + k;
                            y[at_y] += (long double)x.at[at_x] * (long double)w.at[at_w];
                            gx[at_x] += (long double)u.at[at_y] * (long double)w.at[at_w];
                            gw[at_w] += (long double)u.at[at_y] * (long double)x.at[at_x];
                        }
}

/* The gradient of a leaf that the tensor is a transposed view of lies transposed. */
static void expect_turned(ad_tensor loss, const struct net_tensor *t, const long double *g,
                          int rows, int columns, bool turned)
{
    static long double want[NET_MOST];
    for (int i = 0; i < t->n; i++) {
        const int in = i % (rows * columns);
        want[turned ? i - in + in % columns * rows + in / columns : i] = g[i];
    }
    net_expect_gradient(&net, loss, t, want, 200);
}

TEST_EACH(values_and_gradients_agree_with_plain_loops, sizeof cases / sizeof *cases)
{
    const struct geometry *g = &cases[_i];
    const int oh = out_of(g->h, g->kh, g->sh, g->ph, g->dh);
    const int ow = out_of(g->w, g->kw, g->sw, g->pw, g->dw);
    for (int run = 0; run < 4; run++) {
        const enum net_form form = run < 2 ? NET_PLAIN : NET_TURNED;
        net_begin(&net, dtypes[run % 2]);
        net_random(&net, &x, form, 4, SHAPE(g->n, g->c, g->h, g->w), -1, 1);
        net_random(&net, &w, form, 4, SHAPE(g->o, g->c / g->groups, g->kh, g->kw), -0.5, 0.5);
        net_random(&net, &u, NET_PLAIN, 4, SHAPE(g->n, g->o, oh, ow), -0.75, 1);
        compute(g, oh, ow);
        const ad_tensor result = ad_conv2d(x.x, w.x,
                                           &(ad_conv2d_options){.stride_h = g->sh,
                                                                .stride_w = g->sw,
                                                                .padding_h = g->ph,
                                                                .padding_w = g->pw,
                                                                .dilation_h = g->dh,
                                                                .dilation_w = g->dw,
                                                                .groups = g->groups});
        net_expect(&net, result, 4, SHAPE(g->n, g->o, oh, ow), y, 40);
        const ad_tensor loss = ad_sum(ad_mul(result, u.x));
        expect_turned(loss, &x, gx, g->h, g->w, form == NET_TURNED);
        expect_turned(loss, &w, gw, g->kh, g->kw, form == NET_TURNED);
        net_end(&net);
    }
}

/* x of y as image: what conv2d's gradient in x is. */
TEST_EACH(the_transposed_convolution_is_the_adjoint, sizeof cases / sizeof *cases)
{
    const struct geometry *g = &cases[_i];
    const int oh = out_of(g->h, g->kh, g->sh, g->ph, g->dh);
    const int ow = out_of(g->w, g->kw, g->sw, g->pw, g->dw);
    const int more_h = g->h - ((oh - 1) * g->sh - 2 * g->ph + g->dh * (g->kh - 1) + 1);
    const int more_w = g->w - ((ow - 1) * g->sw - 2 * g->pw + g->dw * (g->kw - 1) + 1);
    for (int run = 0; run < 2; run++) {
        net_begin(&net, dtypes[run]);
        net_random(&net, &x, NET_PLAIN, 4, SHAPE(g->n, g->c, g->h, g->w), -1, 1);
        net_random(&net, &w, NET_PLAIN, 4, SHAPE(g->o, g->c / g->groups, g->kh, g->kw), -0.5, 0.5);
        net_random(&net, &u, NET_PLAIN, 4, SHAPE(g->n, g->o, oh, ow), -0.75, 1);
        compute(g, oh, ow);
        const ad_tensor result =
            ad_conv_transpose2d(u.x, w.x,
                                &(ad_conv_transpose2d_options){.stride_h = g->sh,
                                                               .stride_w = g->sw,
                                                               .padding_h = g->ph,
                                                               .padding_w = g->pw,
                                                               .dilation_h = g->dh,
                                                               .dilation_w = g->dw,
                                                               .groups = g->groups,
                                                               .output_padding_h = more_h,
                                                               .output_padding_w = more_w});
        net_expect(&net, result, 4, SHAPE(g->n, g->c, g->h, g->w), gx, 40);
        const ad_tensor loss = ad_sum(ad_mul(result, x.x));
        net_expect_gradient(&net, loss, &u, y, 200);
        net_expect_gradient(&net, loss, &w, gw, 200);
        net_end(&net);
    }
}

TEST(one_axis_is_an_image_of_height_1)
{
    static const struct geometry lines[] = {{2, 3, 1, 33, 4, 1, 3, 1, 1, 0, 0, 1, 1, 1},
                                            {2, 4, 1, 20, 2, 1, 4, 1, 3, 0, 2, 1, 2, 2},
                                            {1, 2, 1, 9, 3, 1, 1, 1, 1, 0, 0, 1, 1, 1}};
    for (int run = 0; run < 6; run++) {
        const struct geometry *g = &lines[run / 2];
        const int ow = out_of(g->w, g->kw, g->sw, g->pw, g->dw);
        net_begin(&net, dtypes[run % 2]);
        net_random(&net, &x, NET_TURNED, 3, SHAPE(g->n, g->c, g->w), -1, 1);
        net_random(&net, &w, NET_PLAIN, 3, SHAPE(g->o, g->c / g->groups, g->kw), -0.5, 0.5);
        net_random(&net, &u, NET_PLAIN, 3, SHAPE(g->n, g->o, ow), -0.75, 1);
        compute(g, 1, ow);
        const ad_tensor result = ad_conv1d(
            x.x, w.x,
            &(ad_conv1d_options){
                .stride = g->sw, .padding = g->pw, .dilation = g->dw, .groups = g->groups});
        net_expect(&net, result, 3, SHAPE(g->n, g->o, ow), y, 40);
        const ad_tensor loss = ad_sum(ad_mul(result, u.x));
        expect_turned(loss, &x, gx, g->c, g->w, true);
        net_expect_gradient(&net, loss, &w, gw, 200);
        net_end(&net);
    }
}

/* Where a window of an element of x does not have the infinite weight, nothing is NaN. */
TEST(infinite_weights_meet_no_zeros_around_the_result)
{
    static const struct geometry g = {1, 2, 6, 16, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1};
    for (int run = 0; run < 2; run++) {
        net_begin(&net, dtypes[run]);
        net_random(&net, &x, NET_PLAIN, 4, SHAPE(1, 2, 6, 16), -1, 1);
        net_random(&net, &w, NET_PLAIN, 4, SHAPE(3, 2, 3, 3), 0.25, 0.5);
        net_random(&net, &u, NET_PLAIN, 4, SHAPE(1, 3, 6, 16), 0.25, 1);
        w.at[0] = INFINITY;
        net_given(&net, &w, 4, SHAPE(3, 2, 3, 3), w.at);
        compute(&g, 6, 16);
        const ad_tensor result =
            ad_conv2d(x.x, w.x, &(ad_conv2d_options){.padding_h = 1, .padding_w = 1});
        net_expect_gradient(&net, ad_sum(ad_mul(result, u.x)), &x, gx, 200);
        net_end(&net);
    }
}

TEST(without_channels_the_result_is_0_and_without_images_it_is_empty)
{
    const long double zeros[8] = {0};
    net_begin(&net, AD_F64);
    net_random(&net, &x, NET_PLAIN, 4, SHAPE(1, 0, 3, 3), -1, 1);
    net_random(&net, &w, NET_PLAIN, 4, SHAPE(2, 0, 2, 2), -1, 1);
    net_expect(&net, ad_conv2d(x.x, w.x, NULL), 4, SHAPE(1, 2, 2, 2), zeros, 0);
    net_random(&net, &x, NET_PLAIN, 4, SHAPE(0, 1, 3, 3), -1, 1);
    net_random(&net, &w, NET_PLAIN, 4, SHAPE(2, 1, 2, 2), -1, 1);
    const ad_tensor none = ad_conv2d(x.x, w.x, NULL);
    net_expect(&net, none, 4, SHAPE(0, 2, 2, 2), zeros, 0);
    net_expect_gradient(&net, ad_sum(none), &w, zeros, 0);
    net_end(&net);
}

TEST(what_does_not_fit_is_refused)
{
    net_begin(&net, AD_F64);
    net_random(&net, &x, NET_PLAIN, 4, SHAPE(1, 2, 4, 5), -1, 1);
    net_random(&net, &w, NET_PLAIN, 4, SHAPE(4, 2, 3, 3), -1, 1);
    const ad_tensor line = ad_select(x.x, 0, 0), window = ad_select(w.x, 2, 0);
    const ad_tensor whole = ad_constant(net.tape, AD_I64, 4, SHAPE(1, 1, 1, 1), SHAPE(1));
    const int64_t far = (int64_t)1 << 31;
    const struct {
        int64_t attr[7];
        const char *text;
    } wrong[] = {
        {{-1, 1, 0, 0, 1, 1, 1}, "conv2d: f64 [1,2,4,5], f64 [4,2,3,3]: stride -1 is out of range"},
        {{1, far, 0, 0, 1, 1, 1}, "stride 2147483648 is out of range"},
        {{1, 1, -1, 0, 1, 1, 1}, "padding -1 is out of range"},
        {{1, 1, 0, -1, 1, 1, 1}, "padding -1 is out of range"},
        {{1, 1, 0, 0, -1, 1, 1}, "dilation -1 is out of range"},
        {{1, 1, 0, 0, 1, -1, 1}, "dilation -1 is out of range"},
        {{1, 1, 0, 0, 1, 1, -1}, "groups -1 is out of range"},
        {{1, 1, 0, 0, 1, 1, 2}, "channels do not fit 2 groups"},
        {{1, 1, 0, 0, 1, 1, 3}, "channels do not fit 3 groups"},
        {{1, 1, 0, 0, 2, 1, 1}, "a window of 3 does not fit into 4"},
        {{1, 1, 0, 0, 1, 3, 1}, "a window of 3 does not fit into 5"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const int64_t *a = wrong[i].attr;
        net_refused(&net,
                    ad_conv2d(x.x, w.x,
                              &(ad_conv2d_options){.stride_h = a[0],
                                                   .stride_w = a[1],
                                                   .padding_h = a[2],
                                                   .padding_w = a[3],
                                                   .dilation_h = a[4],
                                                   .dilation_w = a[5],
                                                   .groups = a[6]}),
                    AD_ERROR_SHAPE, wrong[i].text);
    }
    net_refused(&net, ad_conv2d(line, w.x, NULL), AD_ERROR_SHAPE,
                "x [n,c,h,w] and w [o,c/groups,kh,kw] are wanted");
    net_refused(&net, ad_conv2d(x.x, whole, NULL), AD_ERROR_DTYPE,
                "conv2d takes f32 or f64, not i64");
    net_refused(&net, ad_conv1d(x.x, window, NULL), AD_ERROR_SHAPE,
                "conv1d: f64 [1,2,4,5], f64 [4,2,3]: x [n,c,l] and w [o,c/groups,k] are wanted");
    net_refused(&net, ad_conv1d(line, window, NULL), AD_ERROR_SHAPE,
                "conv1d: f64 [2,4,5], f64 [4,2,3]: channels do not fit 1 groups");
    net_refused(&net, ad_conv1d(line, whole, NULL), AD_ERROR_DTYPE,
                "conv1d takes f32 or f64, not i64");
    net_end(&net);
}

TEST(transposed_convolutions_refuse_what_does_not_fit)
{
    net_begin(&net, AD_F64);
    net_random(&net, &x, NET_PLAIN, 4, SHAPE(1, 2, 1, 5), -1, 1);
    net_random(&net, &w, NET_PLAIN, 4, SHAPE(2, 1, 3, 3), -1, 1);
    const ad_tensor other = ad_reshape(w.x, SHAPE(1, 2, 3, 3), 4);
    const ad_tensor none = ad_slice(x.x, 2, 0, 0, 1);
    net_refused(&net, ad_conv_transpose2d(x.x, other, NULL), AD_ERROR_SHAPE,
                "conv_transpose2d: f64 [1,2,1,5], f64 [1,2,3,3]: x has 2 channels, w takes 1");
    net_refused(
        &net, ad_conv_transpose2d(x.x, w.x, &(ad_conv_transpose2d_options){.output_padding_h = 1}),
        AD_ERROR_SHAPE, "output_padding_h 1 is not in 0..0");
    net_refused(
        &net,
        ad_conv_transpose2d(x.x, w.x,
                            &(ad_conv_transpose2d_options){.stride_w = 2, .output_padding_w = -1}),
        AD_ERROR_SHAPE, "output_padding_w -1 is not in 0..1");
    net_refused(&net, ad_conv_transpose2d(x.x, w.x, &(ad_conv_transpose2d_options){.padding_h = 2}),
                AD_ERROR_SHAPE, "the result has an extent of -1");
    net_refused(&net, ad_conv_transpose2d(none, w.x, NULL), AD_ERROR_SHAPE,
                "there is no image of extent 0");
    net_refused(&net,
                ad_conv_transpose2d(x.x, w.x, &(ad_conv_transpose2d_options){.padding_h = -1}),
                AD_ERROR_SHAPE,
                "conv_transpose2d: f64 [1,2,1,5], f64 [2,1,3,3]: padding_h -1 is out of range");
    net_refused(&net,
                ad_conv_transpose2d(x.x, w.x, &(ad_conv_transpose2d_options){.dilation_h = -1}),
                AD_ERROR_SHAPE, "dilation_h -1 is out of range");
    net_refused(&net, ad_conv_transpose2d(x.x, w.x, &(ad_conv_transpose2d_options){.groups = 3}),
                AD_ERROR_SHAPE, "channels do not fit 3 groups");
    net_refused(&net, ad_conv_transpose2d(x.x, ad_sum(w.x), NULL), AD_ERROR_SHAPE,
                "x [n,o,h,w] and w [o,c/groups,kh,kw] are wanted");
    net_end(&net);
}

RUN_TESTS(NULL, NULL)
