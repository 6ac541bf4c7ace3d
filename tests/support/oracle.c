/* oracle.c: tensors of doubles on one tape, and their comparison with plain arrays. */
#include "oracle.h"
#include "check_quietly.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ARRAYS = 256, MOST_ELEMENTS = 1 << 17 };

static ad_tape tape;
static ad_dtype dtype_now;
static void *array[MOST_ARRAYS];
static int arrays;
static double wide[MOST_ELEMENTS];

static void succeed(void)
{
    ck_assert_msg(ad_tape_status(tape) == AD_OK, "%s", ad_tape_message(tape));
}

void oracle_begin(ad_dtype dtype)
{
    dtype_now = dtype;
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
}

void oracle_end(void)
{
    succeed();
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
    while (arrays > 0)
        free(array[--arrays]);
}

ad_tape oracle_tape(void)
{
    return tape;
}

void oracle_draw(unsigned seed, int64_t n, double low, double high, double *out)
{
    uint64_t state = 0x9e3779b97f4a7c15u * (seed + 1);
    for (int64_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        out[i] = (double)(float)(low + (high - low) * (double)(state >> 11) * 0x1p-53);
    }
}

static int64_t count(int rank, const int64_t *shape)
{
    int64_t n = 1;
    for (int axis = 0; axis < rank; axis++)
        n *= shape[axis];
    return n;
}

ad_tensor oracle_leaf(int rank, const int64_t *shape, const double *elements)
{
    const int64_t n = count(rank, shape);
    ck_assert_int_lt(arrays, MOST_ARRAYS);
    void *data = array[arrays++] = malloc((size_t)(n > 0 ? n : 1) * sizeof(double));
    ck_assert_ptr_nonnull(data);
    for (int64_t i = 0; i < n; i++) {
        if (dtype_now == AD_F32)
            ((float *)data)[i] = (float)elements[i];
        else
            ((double *)data)[i] = elements[i];
    }
    return ad_leaf(tape, dtype_now, rank, shape, data);
}

static ad_tensor transposed(int rank, int64_t *shape, const double *elements, double *turned)
{
    const int64_t m = shape[rank - 2], n = shape[rank - 1], blocks = count(rank - 2, shape);
    for (int64_t b = 0; b < blocks; b++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t k = 0; k < n; k++)
                turned[(b * n + k) * m + i] = elements[(b * m + i) * n + k];
    shape[rank - 2] = n;
    shape[rank - 1] = m;
    return ad_transpose(oracle_leaf(rank, shape, turned));
}

ad_tensor oracle_tensor(enum oracle_layout layout, int rank, const int64_t *shape,
                        const double *elements)
{
    int64_t other[AD_MAX_RANK];
    const int64_t n = count(rank, shape);
    ck_assert_int_le(2 * n, MOST_ELEMENTS);
    memcpy(other, shape, (size_t)rank * sizeof *shape);
    if (layout == ORACLE_TRANSPOSED && rank > 1)
        return transposed(rank, other, elements, wide);
    if (layout != ORACLE_SLICED || rank == 0)
        return oracle_leaf(rank, shape, elements);
    for (int64_t i = 0; i < n; i++) {
        wide[2 * i] = elements[i];
        wide[2 * i + 1] = 1e30;
    }
    other[rank - 1] *= 2;
    return ad_slice(oracle_leaf(rank, other, wide), rank - 1, 0, INT64_MAX, 2);
}

static void widen(int64_t n, const void *data, double *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = dtype_now == AD_F32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

static void read_into(ad_tensor x, double *out,
                      ad_status (*reader)(ad_tensor x, void *buffer, int64_t n))
{
    const int64_t n = ad_size(x);
    succeed();
    void *data = malloc((size_t)n * sizeof(double) + 1);
    ck_assert_ptr_nonnull(data);
    ck_assert_msg(reader(x, data, n) == AD_OK, "%s", ad_tape_message(tape));
    widen(n, data, out);
    free(data);
}

static ad_status read_value(ad_tensor x, void *buffer, int64_t n)
{
    return ad_value(x, buffer, n);
}

static ad_status read_gradient(ad_tensor x, void *buffer, int64_t n)
{
    return ad_gradient(x, buffer, n);
}

void oracle_value(ad_tensor x, double *out)
{
    read_into(x, out, read_value);
}

void oracle_gradient(ad_tensor x, double *out)
{
    read_into(x, out, read_gradient);
}

void oracle_sweep(ad_tensor y, const double *seed)
{
    int64_t shape[AD_MAX_RANK];
    succeed();
    ck_assert_int_eq(ad_shape(y, shape), AD_OK);
    ck_assert_msg(ad_backward_seed(y, oracle_leaf(ad_rank(y), shape, seed)) == AD_OK, "%s",
                  ad_tape_message(tape));
}

void oracle_close(const char *what, int64_t n, const double *got, const double *want,
                  double tolerance)
{
    for (int64_t i = 0; i < n; i++) {
        const bool same = got[i] == want[i] || (isnan(got[i]) && isnan(want[i]));
        if (!same && !(fabs(got[i] - want[i]) <= tolerance * (1 + fabs(want[i]))))
            ck_abort_msg("%s %lld is %.17g, not %.17g", what, (long long)i, got[i], want[i]);
    }
}

void oracle_refused(ad_tensor y, ad_status status, const char *text)
{
    ck_assert_int_eq(ad_size(y), -1);
    ck_assert_msg(ad_tape_status(tape) == status, "%s: %s", ad_status_name(ad_tape_status(tape)),
                  ad_tape_message(tape));
    ck_assert_msg(strstr(ad_tape_message(tape), text), "%s", ad_tape_message(tape));
    ad_tape_clear_error(tape);
}
