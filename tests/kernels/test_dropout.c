/* test_dropout.c: the generator against published words, and dropout against the generator. */
#include "network_support.h"
#include "philox.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>

static const ad_dtype dtypes[] = {AD_F32, AD_F64};
static struct net net;
static struct net_tensor x;

/* The known answers that the generator's authors publish with Random123 (kat_vectors, philox4x32
 * with 10 rounds): counter, key, words. */
static const uint32_t known[][10] = {
    {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
    {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d, 0x41c83b0e,
     0xa20bc7c6, 0x6d5451fd},
    {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb,
     0x5001e420, 0x24126ea1},
};

TEST(the_generator_gives_the_published_words)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t words[4];
        philox_block(known[i], known[i] + 4, words);
        for (int k = 0; k < 4; k++)
            ck_assert_msg(words[k] == known[i][6 + k], "case %zu: word %d is %08x, not %08x", i, k,
                          words[k], known[i][6 + k]);
    }
}

TEST(many_blocks_are_those_of_their_counters)
{
    const uint64_t seed = 0x0123456789abcdefU, first = 0xffffffe0U; /* beyond 32 bits on the way */
    const uint32_t key[2] = {0x89abcdef, 0x01234567};
    uint32_t words[4 * PHILOX_BLOCKS], block[4];
    philox_words(seed, first, words);
    for (uint64_t i = 0; i < PHILOX_BLOCKS; i++) {
        const uint32_t counter[4] = {(uint32_t)(first + i), (uint32_t)((first + i) >> 32), 0, 0};
        philox_block(counter, key, block);
        for (int k = 0; k < 4; k++)
            ck_assert_uint_eq(words[4 * (int)i + k], block[k]);
    }
}

/* r_i < 1 - p, by the definition. */
static bool is_kept(int64_t i, int64_t seed, double p)
{
    const uint32_t counter[4] = {(uint32_t)(i / 4), 0, 0, 0};
    const uint32_t key[2] = {(uint32_t)(uint64_t)seed, (uint32_t)((uint64_t)seed >> 32)};
    uint32_t words[4];
    philox_block(counter, key, words);
    return (double)words[i % 4] < rint((1 - p) * 0x1p32);
}

static void check_dropout(int rank, const int64_t *shape, double p, int64_t seed)
{
    for (int run = 0; run < 4; run++) {
        static long double want[NET_MOST], g[NET_MOST];
        const bool turned = run >= 2 && rank >= 2;
        net_begin(&net, dtypes[run % 2]);
        net_random(&net, &x, turned ? NET_TURNED : NET_PLAIN, rank, shape, 0.5, 2);
        for (int64_t i = 0; i < x.n; i++) {
            g[i] = is_kept(i, seed, p) ? 1 / (1 - (long double)p) : 0;
            want[i] = (long double)x.at[i] * g[i];
        }
        const ad_tensor y = ad_dropout(x.x, p, seed);
        net_expect(&net, y, rank, shape, want, 2);
        if (!turned)
            net_expect_gradient(&net, ad_sum(y), &x, g, 2);
        net_end(&net);
    }
}

TEST(elements_are_dropped_by_the_generators_words)
{
    check_dropout(1, SHAPE(1), 0.5, 7);
    check_dropout(2, SHAPE(17, 31), 0.1, 7);
    check_dropout(2, SHAPE(17, 31), 0.9, -8);
    check_dropout(1, SHAPE(4000), 0.25, INT64_MAX);
    check_dropout(3, SHAPE(2, 3, 5), 0, 7);
    check_dropout(3, SHAPE(2, 3, 5), 1e-12, 7);
    check_dropout(1, SHAPE(0), 0.5, 7);
}

TEST(the_share_that_is_dropped_is_p_and_seeds_differ)
{
    static const double p[] = {0.1, 0.5, 0.8};
    net_begin(&net, AD_F64);
    net_random(&net, &x, NET_PLAIN, 1, SHAPE(4096), 1, 2);
    for (int k = 0; k < 3; k++) {
        static double y[2][4096];
        int dropped = 0, differ = 0;
        for (int seed = 0; seed < 2; seed++)
            ck_assert_int_eq(ad_value(ad_dropout(x.x, p[k], seed), y[seed], 4096), AD_OK);
        for (int i = 0; i < 4096; i++) {
            dropped += y[0][i] == 0;
            differ += (y[0][i] == 0) != (y[1][i] == 0);
        }
        /* Five standard deviations. */
        const double p_differ = 2 * p[k] * (1 - p[k]);
        ck_assert(fabs(dropped - 4096 * p[k]) < 5 * sqrt(4096 * p[k] * (1 - p[k])));
        ck_assert(fabs(differ - 4096 * p_differ) < 5 * sqrt(4096 * p_differ * (1 - p_differ)));
    }
    net_end(&net);
}

TEST(what_is_dropped_is_0_whatever_it_was)
{
    const double inf = (double)INFINITY, nan = (double)NAN;
    const double odd[] = {inf, -inf, nan, 1}, none[] = {0, 0, 0, 0};
    const long double zeros[] = {0, 0, 0, 0}, ones[] = {1, 1, 1, 1};
    for (int dtype = 0; dtype < 2; dtype++) {
        net_begin(&net, dtypes[dtype]);
        net_given(&net, &x, 1, SHAPE(4), odd);
        const ad_tensor all = ad_dropout(x.x, 1, 3);
        net_expect(&net, all, 1, SHAPE(4), zeros, 0);
        net_expect_gradient(&net, ad_sum(all), &x, zeros, 0);
        long double want[4];
        for (int i = 0; i < 4; i++)
            want[i] = is_kept(i, 3, 0.5) ? 2 * (long double)odd[i] : 0;
        net_expect(&net, ad_dropout(x.x, 0.5, 3), 1, SHAPE(4), want, 0);
        net_given(&net, &x, 1, SHAPE(4), none);
        net_expect_gradient(&net, ad_sum(ad_dropout(x.x, 0, 3)), &x, ones, 0);
        net_end(&net);
    }
}

TEST(a_p_that_is_no_probability_is_refused)
{
    net_begin(&net, AD_F64);
    net_given(&net, &x, 1, SHAPE(1), (double[]){1});
    net_refused(&net, ad_dropout(x.x, -0.125, 1), AD_ERROR_ARGUMENT,
                "dropout: p is -0.125: a number in [0, 1] is wanted");
    net_refused(&net, ad_dropout(x.x, 1.5, 1), AD_ERROR_ARGUMENT, "dropout: p is 1.5");
    net_refused(&net, ad_dropout(x.x, (double)NAN, 1), AD_ERROR_ARGUMENT, "dropout: p is nan");
    const ad_tensor whole = ad_constant(net.tape, AD_I64, 1, SHAPE(1), SHAPE(3));
    net_refused(&net, ad_dropout(whole, 0.5, 1), AD_ERROR_DTYPE,
                "dropout takes f32 or f64, not i64");
    net_end(&net);
}

RUN_TESTS(NULL, NULL)
