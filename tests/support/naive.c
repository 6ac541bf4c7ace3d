/* naive.c: tensors beside plain arrays. */
#include "naive.h"
#include "check_quietly.h"

#include <string.h>

int64_t naive_size(const struct naive *a)
{
    int64_t n = 1;
    for (int axis = 0; axis < a->rank; axis++)
        n *= a->shape[axis];
    return n;
}

bool naive_next(const struct naive *a, int64_t *index)
{
    for (int axis = a->rank - 1; axis >= 0; axis--) {
        if (++index[axis] < a->shape[axis])
            return true;
        index[axis] = 0;
    }
    return false;
}

double naive_get(const struct naive *a, const int64_t *index)
{
    int64_t at = 0;
    for (int axis = 0; axis < a->rank; axis++) {
        ck_assert(index[axis] >= 0 && index[axis] < a->shape[axis]);
        at = at * a->shape[axis] + index[axis];
    }
    return a->at[at];
}

static void naive_count(struct naive *a, int rank, const int64_t *shape)
{
    a->rank = rank;
    memcpy(a->shape, shape, (size_t)rank * sizeof *shape);
    ck_assert_int_le(naive_size(a), NAIVE_MOST);
    for (int64_t i = 0; i < naive_size(a); i++)
        a->at[i] = (double)i;
}

struct naive naive_permuted(const struct naive *a, const int64_t *axes)
{
    struct naive y = {.rank = a->rank};
    int64_t index[NAIVE_RANK] = {0}, from[NAIVE_RANK] = {0}, i = 0;
    for (int axis = 0; axis < y.rank; axis++)
        y.shape[axis] = a->shape[axes[axis]];
    if (naive_size(&y) > 0)
        do {
            for (int axis = 0; axis < y.rank; axis++)
                from[axes[axis]] = index[axis];
            y.at[i++] = naive_get(a, from);
        } while (naive_next(&y, index));
    return y;
}

struct naive naive_sliced(const struct naive *a, int axis, int64_t start, int64_t stop,
                          int64_t step)
{
    struct naive y = *a;
    int64_t index[NAIVE_RANK] = {0}, from[NAIVE_RANK] = {0}, i = 0;
    y.shape[axis] = 0;
    for (int64_t k = start; k < stop; k += step)
        y.shape[axis]++;
    if (naive_size(&y) > 0)
        do {
            memcpy(from, index, sizeof from);
            from[axis] = start + index[axis] * step;
            y.at[i++] = naive_get(a, from);
        } while (naive_next(&y, index));
    return y;
}

struct naive naive_selected(const struct naive *a, int axis, int64_t k)
{
    struct naive y = naive_sliced(a, axis, k, k + 1, 1);
    y.rank--;
    memmove(y.shape + axis, y.shape + axis + 1, (size_t)(y.rank - axis) * sizeof *y.shape);
    return y;
}

struct naive naive_concatenated(const struct naive *a, int n, int axis)
{
    struct naive y = a[0];
    int64_t index[NAIVE_RANK] = {0}, from[NAIVE_RANK] = {0}, i = 0;
    for (int k = 1; k < n; k++)
        y.shape[axis] += a[k].shape[axis];
    if (naive_size(&y) > 0)
        do {
            int k = 0;
            memcpy(from, index, sizeof from);
            while (from[axis] >= a[k].shape[axis])
                from[axis] -= a[k++].shape[axis];
            y.at[i++] = naive_get(&a[k], from);
        } while (naive_next(&y, index));
    return y;
}

struct naive naive_stacked(const struct naive *a, int n, int axis)
{
    struct naive y = {.rank = a->rank + 1};
    int64_t index[NAIVE_RANK] = {0}, from[NAIVE_RANK] = {0}, i = 0;
    for (int to = 0; to < y.rank; to++)
        y.shape[to] = to == axis ? n : a->shape[to - (to > axis)];
    if (naive_size(&y) > 0)
        do {
            for (int to = 0; to < y.rank; to++)
                if (to != axis)
                    from[to - (to > axis)] = index[to];
            y.at[i++] = naive_get(&a[index[axis]], from);
        } while (naive_next(&y, index));
    return y;
}

static void put(ad_dtype dtype, void *data, int64_t i, double value)
{
    if (dtype == AD_F32)
        ((float *)data)[i] = (float)value;
    else if (dtype == AD_F64)
        ((double *)data)[i] = value;
    else
        ((int64_t *)data)[i] = (int64_t)value;
}

static double get(ad_dtype dtype, const void *data, int64_t i)
{
    if (dtype == AD_F32)
        return (double)((const float *)data)[i];
    return dtype == AD_F64 ? ((const double *)data)[i] : (double)((const int64_t *)data)[i];
}

void scene_begin(struct scene *s, ad_dtype dtype, int rank, const int64_t *shape)
{
    s->dtype = dtype;
    naive_count(&s->plain, rank, shape);
    for (int64_t i = 0; i < naive_size(&s->plain); i++)
        put(dtype, s->data, i, s->plain.at[i]);
    ck_assert_int_eq(ad_tape_create(&s->tape, NULL), AD_OK);
    s->x = dtype == AD_I64 ? ad_constant(s->tape, dtype, rank, shape, s->data)
                           : ad_leaf(s->tape, dtype, rank, shape, s->data);
}

void scene_end(struct scene *s)
{
    ck_assert_msg(ad_tape_status(s->tape) == AD_OK, "%s", ad_tape_message(s->tape));
    ck_assert_int_eq(ad_tape_destroy(s->tape), AD_OK);
}

static void expect_gradient(const struct scene *s, ad_tensor y, const struct naive *want)
{
    static char seed[NAIVE_MOST * 8], got[NAIVE_MOST * 8];
    double g[NAIVE_MOST] = {0};
    const int64_t n = naive_size(&s->plain);
    for (int64_t i = 0; i < naive_size(want); i++) {
        const double u = (double)(i * 7 % 23 - 11);
        put(s->dtype, seed, i, u);
        if (want->at[i] >= 0)
            g[(int64_t)want->at[i]] += u;
    }
    ck_assert_int_eq(ad_tape_zero_gradients(s->tape), AD_OK);
    const ad_tensor u = ad_constant(s->tape, s->dtype, want->rank, want->shape, seed);
    ck_assert_msg(ad_backward_seed(y, u) == AD_OK, "%s", ad_tape_message(s->tape));
    ck_assert_msg(ad_gradient(s->x, got, n) == AD_OK, "%s", ad_tape_message(s->tape));
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(get(s->dtype, got, i) == g[i], "gradient %lld is %g, not %g", (long long)i,
                      get(s->dtype, got, i), g[i]);
}

void naive_expect(const struct scene *s, ad_tensor y, const struct naive *want)
{
    static char got[NAIVE_MOST * 8];
    int64_t shape[NAIVE_RANK];
    ck_assert_msg(ad_rank(y) == want->rank, "rank %d, not %d: %s", ad_rank(y), want->rank,
                  ad_tape_message(s->tape));
    ck_assert_int_eq(ad_shape(y, shape), AD_OK);
    for (int axis = 0; axis < want->rank; axis++)
        ck_assert_int_eq(shape[axis], want->shape[axis]);
    ck_assert_int_eq(ad_dtype_of(y), (int)s->dtype);
    ck_assert_int_eq(ad_value(y, got, naive_size(want)), AD_OK);
    for (int64_t i = 0; i < naive_size(want); i++) {
        const double value = want->at[i] < 0 ? NAIVE_OTHER(want->at[i]) : want->at[i];
        ck_assert_msg(get(s->dtype, got, i) == value, "element %lld is %g, not %g", (long long)i,
                      get(s->dtype, got, i), value);
    }
    if (s->dtype != AD_I64)
        expect_gradient(s, y, want);
}

void naive_refused(const struct scene *s, ad_tensor y, ad_status status, const char *text)
{
    ck_assert_int_eq(ad_size(y), -1);
    ck_assert_int_eq(ad_tape_status(s->tape), status);
    ck_assert_msg(strstr(ad_tape_message(s->tape), text), "%s", ad_tape_message(s->tape));
    ad_tape_clear_error(s->tape);
    ck_assert_int_eq(ad_size(ad_reshape(s->x, SHAPE(-1), 1)), naive_size(&s->plain));
}
