/* test_bilinear.c: bilinear forms and their gradients against plain loops in long double, and what
 * they refuse.
 *
 * One case is larger than a strip of outer products.
 */
#include "network_support.h"
#include "run_cases.h"

#include <check.h>
#include <string.h>

static const ad_dtype dtypes[] = {AD_F32, AD_F64};
static struct net net;
static struct net_tensor x1, x2, w, u;
static long double y[NET_MOST], g1[NET_MOST], g2[NET_MOST], gw[NET_MOST];

static void compute(int rows, int m, int n, int o)
{
    memset(y, 0, sizeof y);
    memset(g1, 0, sizeof g1);
    memset(g2, 0, sizeof g2);
    memset(gw, 0, sizeof gw);
    for (int r = 0; r < rows; r++)
        for (int k = 0; k < o; k++)
            for (int i = 0; i < m; i++)
                for (int j = 0; j < n; j++) {
                    const long double a = (long double)x1.at[r * m + i];
                    const long double b = (long double)x2.at[r * n + j];
                    const long double c = (long double)w.at[(k * m + i) * n + j];
                    const long double g = (long double)u.at[r * o + k];
                    y[r * o + k] += a * b * c;
                    g1[r * m + i] += g * b * c;
                    g2[r * n + j] += g * a * c;
                    gw[(k * m + i) * n + j] += g * a * b;
                }
}

TEST(forms_agree_with_plain_loops)
{
    static const int cases[][4] = {{7, 5, 3, 4}, {1, 1, 1, 1},    {33, 2, 9, 1}, {300, 9, 13, 6},
                                   {2, 0, 3, 2}, {1300, 3, 3, 2}, {0, 2, 2, 2}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int run = 0; run < 4; run++) {
            const int rows = cases[k][0], m = cases[k][1], n = cases[k][2], o = cases[k][3];
            const bool turned = run >= 2;
            net_begin(&net, dtypes[run % 2]);
            net_random(&net, &x1, turned ? NET_TURNED : NET_PLAIN, 2, SHAPE(rows, m), -1, 1);
            net_random(&net, &x2, NET_PLAIN, 2, SHAPE(rows, n), -0.75, 1);
            net_random(&net, &w, turned ? NET_TURNED : NET_PLAIN, 3, SHAPE(o, m, n), -0.5, 0.5);
            net_random(&net, &u, NET_PLAIN, 2, SHAPE(rows, o), -0.25, 0.5);
            compute(rows, m, n, o);
            const ad_tensor result = ad_bilinear(x1.x, x2.x, w.x);
            net_expect(&net, result, 2, SHAPE(rows, o), y, 40);
            const ad_tensor loss = ad_sum(ad_mul(result, u.x));
            net_expect_gradient(&net, loss, &x2, g2, 100);
            if (!turned) {
                net_expect_gradient(&net, loss, &x1, g1, 100);
                net_expect_gradient(&net, loss, &w, gw, 200);
            }
            net_end(&net);
        }
}

TEST(leading_axes_are_rows_and_none_is_one_row)
{
    net_begin(&net, AD_F64);
    net_random(&net, &x1, NET_PLAIN, 3, SHAPE(2, 3, 4), -1, 1);
    net_random(&net, &x2, NET_PLAIN, 3, SHAPE(2, 3, 2), -0.75, 1);
    net_random(&net, &w, NET_PLAIN, 3, SHAPE(5, 4, 2), -0.5, 0.5);
    compute(6, 4, 2, 5);
    net_expect(&net, ad_bilinear(x1.x, x2.x, w.x), 3, SHAPE(2, 3, 5), y, 20);
    net_random(&net, &x1, NET_PLAIN, 1, SHAPE(4), -1, 1);
    net_random(&net, &x2, NET_PLAIN, 1, SHAPE(2), -0.75, 1);
    compute(1, 4, 2, 5);
    net_expect(&net, ad_bilinear(x1.x, x2.x, w.x), 1, SHAPE(5), y, 20);
    net_end(&net);
}

TEST(what_does_not_fit_is_refused)
{
    const char *const wanted = "x1 [...,m], x2 [...,n] and w [o,m,n] are wanted";
    net_begin(&net, AD_F64);
    net_random(&net, &x1, NET_PLAIN, 2, SHAPE(3, 4), -1, 1);
    net_random(&net, &x2, NET_PLAIN, 2, SHAPE(3, 2), -1, 1);
    net_random(&net, &u, NET_PLAIN, 2, SHAPE(2, 2), -1, 1);
    net_random(&net, &w, NET_PLAIN, 3, SHAPE(5, 4, 2), -1, 1);
    const ad_tensor whole = ad_constant(net.tape, AD_I64, 2, SHAPE(1, 1), SHAPE(1));
    net_refused(&net, ad_bilinear(x1.x, u.x, w.x), AD_ERROR_SHAPE,
                "bilinear: f64 [3,4], f64 [2,2], f64 [5,4,2]: x1 [...,m], x2 [...,n] and w");
    net_refused(&net, ad_bilinear(x1.x, ad_sum(u.x), w.x), AD_ERROR_SHAPE, wanted);
    net_refused(&net, ad_bilinear(ad_sum(x1.x), ad_sum(u.x), w.x), AD_ERROR_SHAPE, wanted);
    net_refused(&net, ad_bilinear(x1.x, x2.x, x2.x), AD_ERROR_SHAPE, wanted);
    net_refused(&net, ad_bilinear(x2.x, x2.x, w.x), AD_ERROR_SHAPE, "w takes 4 and 2 elements");
    net_refused(&net, ad_bilinear(x1.x, x1.x, w.x), AD_ERROR_SHAPE, "w takes 4 and 2 elements");
    net_refused(&net, ad_bilinear(x1.x, x2.x, whole), AD_ERROR_DTYPE,
                "bilinear takes f32 or f64, not i64");
    net_end(&net);
}

RUN_TESTS(NULL, NULL)
