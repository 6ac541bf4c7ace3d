/* test_normalization.c: layer_norm, rms_norm and batch_norm against plain loops in long double, at
 * their edges, and what they refuse.
 *
 * Sizes go beyond one block and one vector.
 */
#include "network_support.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <string.h>

static const ad_dtype dtypes[] = {AD_F32, AD_F64};
static struct net net;
static struct net_tensor x, w, b, u;
static long double want[NET_MOST], gx[NET_MOST], gw[NET_MOST], gb[NET_MOST];
static long double mean[NET_MOST], var[NET_MOST];

enum kind { LAYER, ROOT, BATCH };

/* Element (o, k, i) of [outer, kept, inner]. */
static struct {
    enum kind kind;
    int outer, kept, inner;
} now;

static int at(int o, int k, int i)
{
    return (o * now.kept + k) * now.inner + i;
}

static int weight_at(int k, int i)
{
    return now.kind == BATCH ? k : i;
}

static long double standard(int k, int e)
{
    return ((long double)x.at[e] - mean[k]) / sqrtl(var[k] + 0.0625L);
}

/* y, and with u as its adjoint the gradients, by the definitions. */
static void compute(void)
{
    const long double count = (long double)now.outer * now.inner;
    memset(gw, 0, sizeof gw);
    memset(gb, 0, sizeof gb);
    for (int k = 0; k < now.kept; k++) {
        long double of_q = 0, of_qz = 0;
        mean[k] = var[k] = 0;
        for (int o = 0; o < now.outer; o++)
            for (int i = 0; i < now.inner && now.kind != ROOT; i++)
                mean[k] += (long double)x.at[at(o, k, i)] / count;
        for (int o = 0; o < now.outer; o++)
            for (int i = 0; i < now.inner; i++)
                var[k] += powl((long double)x.at[at(o, k, i)] - mean[k], 2) / count;
        for (int o = 0; o < now.outer; o++)
            for (int i = 0; i < now.inner; i++) {
                const int e = at(o, k, i), p = weight_at(k, i);
                const long double z = standard(k, e), g = (long double)u.at[e];
                want[e] = z * (long double)w.at[p] + (now.kind == ROOT ? 0 : (long double)b.at[p]);
                gw[p] += g * z;
                gb[p] += g;
                of_q += g * (long double)w.at[p] / count;
                of_qz += g * (long double)w.at[p] * z / count;
            }
        for (int o = 0; o < now.outer; o++)
            for (int i = 0; i < now.inner; i++) {
                const int e = at(o, k, i);
                const long double q = (long double)u.at[e] * (long double)w.at[weight_at(k, i)];
                gx[e] = (q - (now.kind == ROOT ? 0 : of_q) - standard(k, e) * of_qz) /
                        sqrtl(var[k] + 0.0625L);
            }
    }
}

static ad_tensor apply(ad_tensor *m, ad_tensor *v)
{
    if (now.kind == LAYER)
        return ad_layer_norm(x.x, w.x, b.x, 0.0625);
    if (now.kind == ROOT)
        return ad_rms_norm(x.x, w.x, 0.0625);
    return ad_batch_norm(x.x, w.x, b.x, 0.0625, m, v);
}

/* Values and gradients in both dtypes, of a dense x and of a transposed one. */
static void check(enum kind kind, int rank, const int64_t *shape, int rank_w, double low,
                  double high)
{
    const int64_t *const shape_w = kind == BATCH ? shape + 1 : shape + rank - rank_w;
    now.kind = kind;
    now.outer = now.kept = now.inner = 1;
    for (int axis = 0; axis < rank; axis++) {
        if (kind == BATCH)
            *(axis == 0 ? &now.outer : axis == 1 ? &now.kept : &now.inner) *= (int)shape[axis];
        else
            *(axis < rank - rank_w ? &now.kept : &now.inner) *= (int)shape[axis];
    }
    for (int run = 0; run < 4; run++) {
        ad_tensor m, v;
        net_begin(&net, dtypes[run % 2]);
        net_random(&net, &x, run < 2 || rank < 2 ? NET_PLAIN : NET_TURNED, rank, shape, low, high);
        net_random(&net, &w, NET_PLAIN, rank_w, shape_w, 0.5, 1.5);
        net_random(&net, &b, NET_PLAIN, rank_w, shape_w, -1, 1);
        net_random(&net, &u, NET_PLAIN, rank, shape, -0.5, 0.5);
        compute();
        const ad_tensor y = apply(&m, &v);
        net_expect(&net, y, rank, shape, want, 40);
        if (kind == BATCH) {
            net_expect(&net, m, 1, shape_w, mean, 4);
            net_expect(&net, v, 1, shape_w, var, 8);
        }
        const ad_tensor loss = ad_sum(ad_mul(y, u.x));
        net_expect_gradient(&net, loss, &w, gw, 200);
        if (kind != ROOT)
            net_expect_gradient(&net, loss, &b, gb, 100);
        if (x.x.value == x.leaf.value)
            net_expect_gradient(&net, loss, &x, gx, 100);
        net_end(&net);
    }
}

TEST_RANGE(rows_agree_with_plain_loops, LAYER, ROOT + 1)
{
    const enum kind kind = (enum kind)_i;
    check(kind, 2, SHAPE(7, 33), 1, -2, 2);
    check(kind, 1, SHAPE(17), 1, -2, 2);
    check(kind, 3, SHAPE(3, 5, 8), 2, -2, 2);
    check(kind, 3, SHAPE(3, 5, 8), 1, 3, 5);
    check(kind, 2, SHAPE(1000, 3), 1, -2, 2);
    check(kind, 2, SHAPE(1, 4000), 1, -2, 2);
}

TEST(channels_agree_with_plain_loops)
{
    check(BATCH, 2, SHAPE(33, 7), 1, -2, 2);
    check(BATCH, 2, SHAPE(9, 200), 1, -2, 2);
    check(BATCH, 3, SHAPE(3, 5, 40), 1, 3, 5);
    check(BATCH, 4, SHAPE(2, 3, 9, 7), 1, -2, 2);
    check(BATCH, 3, SHAPE(1, 1, 4000), 1, -2, 2);
    check(BATCH, 4, SHAPE(60, 65, 1, 1), 1, -2, 2);
}

/* The mean is taken off before anything is scaled, so that its size costs no more than rounding. */
TEST(a_mean_that_is_large_leaves_the_distances)
{
    const double far[] = {1e6 - 1, 1e6, 1e6 + 1}, one[] = {1, 1, 1}, none[] = {0, 0, 0};
    const long double z = sqrtl(1.5L), y[] = {-z, 0, z};
    net_begin(&net, AD_F64);
    net_given(&net, &x, 1, SHAPE(3), far);
    net_given(&net, &w, 1, SHAPE(3), one);
    net_given(&net, &b, 1, SHAPE(3), none);
    net_expect(&net, ad_layer_norm(x.x, w.x, b.x, 0), 1, SHAPE(3), y, 4);
    net_end(&net);
}

/* The three ops on one row or channel of three elements. */
static void check_edge(const double *numbers, double eps, const long double *centered,
                       const long double *root)
{
    const double weights[] = {2, 2, 2}, shifts[] = {1, 1, 1};
    for (int dtype = 0; dtype < 2; dtype++) {
        net_begin(&net, dtypes[dtype]);
        net_given(&net, &x, 1, SHAPE(3), numbers);
        net_given(&net, &w, 1, SHAPE(3), weights);
        net_given(&net, &b, 1, SHAPE(3), shifts);
        net_expect(&net, ad_layer_norm(x.x, w.x, b.x, eps), 1, SHAPE(3), centered, 4);
        net_expect(&net, ad_rms_norm(x.x, w.x, eps), 1, SHAPE(3), root, 4);
        net_given(&net, &x, 2, SHAPE(3, 1), numbers);
        net_given(&net, &w, 1, SHAPE(1), weights);
        net_given(&net, &b, 1, SHAPE(1), shifts);
        net_expect(&net, ad_batch_norm(x.x, w.x, b.x, eps, NULL, NULL), 2, SHAPE(3, 1), centered,
                   4);
        net_end(&net);
    }
}

TEST(edges_are_as_documented)
{
    const double inf = (double)INFINITY;
    const long double nan = (long double)NAN;
    const long double ones[] = {1, 1, 1}, nans[] = {nan, nan, nan}, zeros[] = {0, 0, 0};
    const long double at_inf[] = {0, nan, 0};
    check_edge((double[]){0, 0, 0}, 0.25, ones, zeros);
    check_edge((double[]){0, 0, 0}, 0, nans, nans);
    check_edge((double[]){0, inf, 3}, 0.25, nans, at_inf);
    check_edge((double[]){0, (double)NAN, 3}, 0.25, nans, nans);
    const long double equal[] = {sqrtl(2), sqrtl(2), sqrtl(2)};
    check_edge((double[]){0.5, 0.5, 0.5}, 0.25, ones, equal);
}

static void numbers_of(ad_dtype dtype, ad_tensor t, bool gradient, int64_t n, double *out)
{
    float narrow[60];
    void *const to = dtype == AD_F32 ? (void *)narrow : out;
    ck_assert_int_eq(gradient ? ad_gradient(t, to, n) : ad_value(t, to, n), AD_OK);
    for (int64_t i = 0; i < n && dtype == AD_F32; i++)
        out[i] = (double)narrow[i];
}

/* y of `kind` over 20 x 3 numbers, eps 0, as [3, 20] rows, [20, 3] or [1, 3, 20] channels, and the
 * gradients of sum(u y) by the numbers, times their scale, and by the weights. */
static void scaled(enum kind kind, bool runs, ad_dtype dtype, double scale, double out[3][60])
{
    static double numbers[60], weights[20], shifts[20], seed[60];
    net_begin(&net, dtype);
    const int64_t width = kind == BATCH ? 3 : 20;
    const int rank = kind == BATCH && runs ? 3 : 2;
    for (int i = 0; i < 60; i++) {
        numbers[i] = scale * (i % 7 - 2 + 0.125 * (i % 5));
        seed[i] = (i % 4 - 1) / 4.0;
    }
    for (int i = 0; i < width; i++) {
        weights[i] = 1 + 0.25 * i;
        shifts[i] = 0.5;
    }
    net_given(&net, &x, rank,
              kind != BATCH ? SHAPE(3, 20)
              : runs        ? SHAPE(1, 3, 20)
                            : SHAPE(20, 3),
              numbers);
    net_given(&net, &w, 1, &width, weights);
    net_given(&net, &b, 1, &width, shifts);
    net_given(&net, &u, rank,
              kind != BATCH ? SHAPE(3, 20)
              : runs        ? SHAPE(1, 3, 20)
                            : SHAPE(20, 3),
              seed);
    const ad_tensor y = kind == LAYER  ? ad_layer_norm(x.x, w.x, b.x, 0)
                        : kind == ROOT ? ad_rms_norm(x.x, w.x, 0)
                                       : ad_batch_norm(x.x, w.x, b.x, 0, NULL, NULL);
    ck_assert_int_eq(ad_backward(ad_sum(ad_mul(y, u.x))), AD_OK);
    numbers_of(dtype, y, false, 60, out[0]);
    numbers_of(dtype, x.leaf, true, 60, out[1]);
    numbers_of(dtype, w.leaf, true, width, out[2]);
    for (int i = 0; i < 60; i++)
        out[1][i] *= scale;
    net_end(&net);
}

/* Numbers whose squares leave the range give what the same numbers near 1 give. */
TEST_EACH(the_size_of_numbers_leaves_results_and_gradients, 12)
{
    static double near[3][60], far[3][60];
    const ad_dtype dtype = dtypes[_i % 2];
    const enum kind kind = (enum kind)(_i / 2 % 3);
    const bool narrow = dtype == AD_F32;
    /* A gradient of batch_norm has the digits of var, which is a result: none where subnormal. */
    const double small = kind == BATCH ? narrow ? 0x1p-60 : 0x1p-508 : narrow ? 0x1p-70 : 0x1p-520;
    const double scales[] = {narrow ? 0x1p-110 : 0x1p-1000, small, narrow ? 0x1p70 : 0x1p520,
                             narrow ? 0x1p124 : 0x1p1020};
    memset(near, 0, sizeof near);
    memset(far, 0, sizeof far);
    scaled(kind, _i >= 6, dtype, 1, near);
    for (int k = 0; k < 4; k++) {
        scaled(kind, _i >= 6, dtype, scales[k], far);
        for (int part = 0; part < 3; part++)
            for (int i = 0; i < 60; i++)
                ck_assert_msg(fabs(far[part][i] - near[part][i]) <=
                                  (narrow ? 4e-6 : 1e-14) * (1 + fabs(near[part][i])),
                              "kind %d, scale %g, part %d, %d: %g, not %g", (int)kind, scales[k],
                              part, i, far[part][i], near[part][i]);
    }
}

TEST(rows_beyond_the_range_of_their_squares)
{
    const long double root[] = {sqrtl(2), 0}, apart[] = {1, -1};
    const double ones[] = {1, 1}, none[] = {0, 0};
    net_begin(&net, AD_F32);
    net_given(&net, &x, 2, SHAPE(1, 2), (double[]){3e19, 0});
    net_given(&net, &w, 1, SHAPE(2), ones);
    net_expect(&net, ad_rms_norm(x.x, w.x, 1e-5), 2, SHAPE(1, 2), root, 4);
    net_end(&net);
    net_begin(&net, AD_F64);
    net_given(&net, &x, 2, SHAPE(1, 2), (double[]){1e300, 0});
    net_given(&net, &w, 1, SHAPE(2), ones);
    net_given(&net, &b, 1, SHAPE(2), none);
    net_expect(&net, ad_layer_norm(x.x, w.x, b.x, 1e-5), 2, SHAPE(1, 2), apart, 4);
    net_given(&net, &x, 2, SHAPE(1, 2), (double[]){1.5e308, 1.5e308});
    net_expect(&net, ad_layer_norm(x.x, w.x, b.x, 1e-5), 2, SHAPE(1, 2), (long double[]){0, 0}, 4);
    net_end(&net);
}

TEST(what_does_not_fit_is_refused)
{
    const char *const wanted = "w must have the last extents of x";
    net_begin(&net, AD_F64);
    net_random(&net, &x, NET_PLAIN, 2, SHAPE(2, 3), -1, 1);
    net_random(&net, &w, NET_PLAIN, 1, SHAPE(2), 0, 1);
    net_random(&net, &b, NET_PLAIN, 1, SHAPE(3), 0, 1);
    const ad_tensor one = ad_scalar_f64(net.tape, 1), row = ad_sum_axes(x.x, SHAPE(0), 1, 0);
    const ad_tensor whole = ad_constant(net.tape, AD_I64, 1, SHAPE(3), SHAPE(1, 1, 1));
    net_refused(&net, ad_layer_norm(x.x, w.x, b.x, 1), AD_ERROR_SHAPE, wanted);
    net_refused(&net, ad_layer_norm(x.x, one, one, 1), AD_ERROR_SHAPE, wanted);
    net_refused(&net, ad_layer_norm(row, x.x, x.x, 1), AD_ERROR_SHAPE, wanted);
    net_refused(&net, ad_layer_norm(x.x, b.x, w.x, 1), AD_ERROR_SHAPE,
                "layer_norm: f64 [2,3], f64 [3], f64 [2]: w and b must have one shape");
    net_refused(&net, ad_layer_norm(x.x, b.x, b.x, -1), AD_ERROR_ARGUMENT,
                "layer_norm: eps is -1: a number of at least 0 is wanted");
    net_refused(&net, ad_layer_norm(x.x, b.x, whole, 1), AD_ERROR_DTYPE,
                "layer_norm takes f32 or f64, not i64");
    net_refused(&net, ad_rms_norm(x.x, w.x, 1), AD_ERROR_SHAPE,
                "rms_norm: f64 [2,3], f64 [2]: w must have the last extents of x");
    net_refused(&net, ad_rms_norm(x.x, b.x, (double)NAN), AD_ERROR_ARGUMENT,
                "rms_norm: eps is nan");
    net_refused(&net, ad_rms_norm(x.x, whole, 1), AD_ERROR_DTYPE,
                "rms_norm takes f32 or f64, not i64");
    const char *const channels = "x [n,c,...], w [c] and b [c] are wanted";
    ad_tensor m, v;
    net_refused(&net, ad_batch_norm(x.x, w.x, b.x, 1, &m, &v), AD_ERROR_SHAPE, channels);
    ck_assert(m.value == 0 && v.value == 0);
    net_refused(&net, ad_batch_norm(x.x, x.x, b.x, 1, &m, &v), AD_ERROR_SHAPE, channels);
    net_refused(&net, ad_batch_norm(x.x, b.x, w.x, 1, &m, &v), AD_ERROR_SHAPE, channels);
    net_refused(&net, ad_batch_norm(b.x, b.x, b.x, 1, &m, &v), AD_ERROR_SHAPE, channels);
    net_refused(&net, ad_batch_norm(x.x, b.x, b.x, -0.5, &m, &v), AD_ERROR_ARGUMENT,
                "batch_norm: eps is -0.5: a number of at least 0 is wanted");
    net_refused(&net, ad_batch_norm(ad_slice(x.x, 0, 0, 0, 1), b.x, b.x, 1, NULL, NULL),
                AD_ERROR_SHAPE, "axis 0 is empty and has no mean");
    net_end(&net);
}

RUN_TESTS(NULL, NULL)
