/* test_embedding.c: rows of a table by indices of any shape, against plain loops. */
#include "network_support.h"
#include "run_cases.h"

#include <check.h>

static const ad_dtype dtypes[] = {AD_F32, AD_F64};
static struct net net;
static struct net_tensor w;
static const int64_t indices[] = {3, 0, 3, 2, 3, 0};

TEST(rows_are_picked_and_their_gradients_added)
{
    for (int run = 0; run < 4; run++) {
        long double want[42], turned[42], g[35] = {0};
        net_begin(&net, dtypes[run % 2]);
        net_random(&net, &w, run < 2 ? NET_PLAIN : NET_TURNED, 2, SHAPE(5, 7), -1, 1);
        for (int i = 0; i < 6; i++)
            for (int k = 0; k < 7; k++) {
                want[7 * i + k] = (long double)w.at[7 * indices[i] + k];
                turned[7 * i + k] = (long double)w.at[7 * indices[i / 2 + i % 2 * 3] + k];
                g[run < 2 ? 7 * indices[i] + k : 5 * k + indices[i]] += 1;
            }
        const ad_tensor index = ad_constant(net.tape, AD_I64, 2, SHAPE(2, 3), indices);
        const ad_tensor y = ad_embedding(w.x, index);
        net_expect(&net, y, 3, SHAPE(2, 3, 7), want, 0);
        net_expect_gradient(&net, ad_sum(y), &w, g, 0);
        const ad_tensor view = ad_permute(index, SHAPE(1, 0), 2);
        net_expect(&net, ad_embedding(w.x, view), 3, SHAPE(3, 2, 7), turned, 0);
        const ad_tensor one = ad_constant(net.tape, AD_I64, 0, NULL, indices);
        net_expect(&net, ad_embedding(w.x, one), 1, SHAPE(7), want, 0);
        const ad_tensor none = ad_constant(net.tape, AD_I64, 2, SHAPE(0, 3), NULL);
        net_expect(&net, ad_embedding(w.x, none), 3, SHAPE(0, 3, 7), want, 0);
        net_end(&net);
    }
}

TEST(a_table_of_several_axes_or_of_one_has_rows_as_well)
{
    long double want[24];
    net_begin(&net, AD_F64);
    const ad_tensor index = ad_constant(net.tape, AD_I64, 2, SHAPE(2, 3), indices);
    net_random(&net, &w, NET_PLAIN, 3, SHAPE(4, 2, 2), -1, 1);
    for (int i = 0; i < 24; i++)
        want[i] = (long double)w.at[4 * indices[i / 4] + i % 4];
    net_expect(&net, ad_embedding(w.x, index), 4, SHAPE(2, 3, 2, 2), want, 0);
    net_random(&net, &w, NET_PLAIN, 1, SHAPE(4), -1, 1);
    for (int i = 0; i < 6; i++)
        want[i] = (long double)w.at[indices[i]];
    net_expect(&net, ad_embedding(w.x, index), 2, SHAPE(2, 3), want, 0);
    net_end(&net);
}

TEST(what_does_not_fit_is_refused)
{
    net_begin(&net, AD_F64);
    net_random(&net, &w, NET_PLAIN, 2, SHAPE(3, 2), -1, 1);
    const ad_tensor index = ad_constant(net.tape, AD_I64, 2, SHAPE(2, 3), indices);
    net_refused(&net, ad_embedding(w.x, index), AD_ERROR_VALUE,
                "embedding: f64 [3,2], i64 [6]: index 3 at position 0 is not in 0..2");
    const ad_tensor low = ad_constant(net.tape, AD_I64, 2, SHAPE(2, 1), SHAPE(2, -1));
    net_refused(&net, ad_embedding(w.x, low), AD_ERROR_VALUE,
                "embedding: f64 [3,2], i64 [2]: index -1 at position 1 is not in 0..2");
    net_refused(&net, ad_embedding(w.x, w.x), AD_ERROR_DTYPE,
                "embedding: indices must be i64, not f64");
    net_refused(&net, ad_embedding(index, index), AD_ERROR_DTYPE,
                "embedding takes f32 or f64, not i64");
    net_refused(&net, ad_embedding(ad_sum(w.x), index), AD_ERROR_SHAPE,
                "embedding: f64 [], i64 [2,3]: w [n,...] and indices [...] are wanted");
    const ad_tensor deep = ad_reshape(index, SHAPE(1, 1, 1, 1, 1, 1, 2, 3), 8);
    net_refused(&net, ad_embedding(w.x, deep), AD_ERROR_SHAPE,
                "the result has 9 axes, at most 8 are possible");
    net_end(&net);
}

RUN_TESTS(NULL, NULL)
