/* network_support.c: tensors beside their numbers. */
#include "network_support.h"
#include "check_quietly.h"

#include <float.h>
#include <math.h>
#include <string.h>

void net_begin(struct net *net, ad_dtype dtype)
{
    net->dtype = dtype;
    ck_assert_int_eq(ad_tape_create(&net->tape, NULL), AD_OK);
}

void net_end(struct net *net)
{
    ck_assert_msg(ad_tape_status(net->tape) == AD_OK, "%s", ad_tape_message(net->tape));
    ck_assert_int_eq(ad_tape_destroy(net->tape), AD_OK);
}

static void put(ad_dtype dtype, void *data, int64_t i, double x)
{
    if (dtype == AD_F32)
        ((float *)data)[i] = (float)x;
    else
        ((double *)data)[i] = x;
}

static double get(ad_dtype dtype, const void *data, int64_t i)
{
    return dtype == AD_F32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

static int64_t product(int rank, const int64_t *shape)
{
    int64_t n = 1;
    for (int axis = 0; axis < rank; axis++)
        n *= shape[axis];
    ck_assert_int_le(n, NET_MOST);
    return n;
}

void net_random(struct net *net, struct net_tensor *t, enum net_form form, int rank,
                const int64_t *shape, double low, double high)
{
    int64_t turned[8] = {0};
    uint64_t state = (uint64_t)(int64_t)(low * 64) * 77 + (uint64_t)rank;
    t->n = product(rank, shape);
    memcpy(turned, shape, (size_t)rank * sizeof *shape);
    const int64_t rows = form == NET_TURNED ? shape[rank - 2] : 1;
    const int64_t columns = form == NET_TURNED ? shape[rank - 1] : 1;
    if (form == NET_TURNED) {
        turned[rank - 2] = columns;
        turned[rank - 1] = rows;
    }
    for (int64_t i = 0; i < t->n; i++) {
        state = state * 6364136223846793005U + 1442695040888963407U + (uint64_t)t->n;
        t->at[i] = (double)(float)(low + (high - low) * (double)(state >> 11) * 0x1p-53);
        const int64_t in = i % (rows * columns), before = i - in;
        put(net->dtype, t->data, before + in % columns * rows + in / columns, t->at[i]);
    }
    t->leaf = ad_leaf(net->tape, net->dtype, rank, turned, t->data);
    t->x = form == NET_TURNED ? ad_transpose(t->leaf) : t->leaf;
}

void net_given(struct net *net, struct net_tensor *t, int rank, const int64_t *shape,
               const double *numbers)
{
    t->n = product(rank, shape);
    for (int64_t i = 0; i < t->n; i++) {
        t->at[i] = numbers[i];
        put(net->dtype, t->data, i, numbers[i]);
    }
    t->x = t->leaf = ad_leaf(net->tape, net->dtype, rank, shape, t->data);
}

static void compare(const struct net *net, const char *what, const void *got, int64_t n,
                    const long double *want, double ulps)
{
    const double unit = ulps * (net->dtype == AD_F32 ? (double)FLT_EPSILON : DBL_EPSILON);
    for (int64_t i = 0; i < n; i++) {
        const double x = get(net->dtype, got, i), y = (double)want[i];
        const bool same =
            isnan(y) ? isnan(x) : x == y || (isfinite(y) && fabs(x - y) <= unit * (1 + fabs(y)));
        ck_assert_msg(same, "%s %lld is %.17g, not %.17g", what, (long long)i, x, y);
    }
}

void net_expect(const struct net *net, ad_tensor y, int rank, const int64_t *shape,
                const long double *want, double ulps)
{
    static char got[NET_MOST * 8];
    int64_t extent[8];
    ck_assert_msg(ad_rank(y) == rank, "rank %d, not %d: %s", ad_rank(y), rank,
                  ad_tape_message(net->tape));
    ck_assert_int_eq(ad_shape(y, extent), AD_OK);
    for (int axis = 0; axis < rank; axis++)
        ck_assert_int_eq(extent[axis], shape[axis]);
    ck_assert_int_eq(ad_dtype_of(y), (int)net->dtype);
    ck_assert_int_eq(ad_value(y, got, product(rank, shape)), AD_OK);
    compare(net, "element", got, product(rank, shape), want, ulps);
}

void net_expect_gradient(const struct net *net, ad_tensor y, const struct net_tensor *t,
                         const long double *want, double ulps)
{
    static char got[NET_MOST * 8];
    ck_assert_int_eq(ad_tape_zero_gradients(net->tape), AD_OK);
    ck_assert_msg(ad_backward(y) == AD_OK, "%s", ad_tape_message(net->tape));
    ck_assert_msg(ad_gradient(t->leaf, got, t->n) == AD_OK, "%s", ad_tape_message(net->tape));
    compare(net, "gradient", got, t->n, want, ulps);
}

void net_refused(const struct net *net, ad_tensor y, ad_status status, const char *text)
{
    ck_assert_int_eq(ad_size(y), -1);
    ck_assert_msg((int)ad_tape_status(net->tape) == (int)status, "%s", ad_tape_message(net->tape));
    ck_assert_msg(strstr(ad_tape_message(net->tape), text) != NULL, "%s",
                  ad_tape_message(net->tape));
    ad_tape_clear_error(net->tape);
}
