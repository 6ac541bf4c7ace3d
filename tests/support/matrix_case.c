/* matrix_case.c: tensors of matrices for the tests of linear algebra. */
#include "matrix_case.h"
#include "check_quietly.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BLOCKS = 4096 };

static ad_tape tape;
static ad_dtype dtype_now;
static void *blocks[MOST_BLOCKS];
static int n_blocks;
static uint64_t state;

static void *block(size_t bytes)
{
    ck_assert_int_lt(n_blocks, MOST_BLOCKS);
    void *p = calloc(1, bytes + 8);
    ck_assert_ptr_nonnull(p);
    blocks[n_blocks++] = p;
    return p;
}

void matrix_begin(ad_dtype dtype)
{
    dtype_now = dtype;
    state = 12345;
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
}

void matrix_end(void)
{
    ck_assert_msg(ad_tape_status(tape) == AD_OK, "%s", ad_tape_message(tape));
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
    while (n_blocks > 0)
        free(blocks[--n_blocks]);
}

ad_tape matrix_tape(void)
{
    return tape;
}

double matrix_epsilon(void)
{
    return dtype_now == AD_F32 ? (double)FLT_EPSILON : DBL_EPSILON;
}

static void *converted(int64_t n, const double *from)
{
    void *to = block((size_t)n * sizeof *from);
    for (int64_t i = 0; i < n; i++) {
        if (dtype_now == AD_F32)
            ((float *)to)[i] = (float)from[i];
        else
            ((double *)to)[i] = from[i];
    }
    return to;
}

static int64_t count_of(int rank, const int64_t *shape)
{
    int64_t n = 1;
    for (int axis = 0; axis < rank; axis++)
        n *= shape[axis];
    return n;
}

ad_tensor matrix_leaf(int rank, const int64_t *shape, const double *elements)
{
    return ad_leaf(tape, dtype_now, rank, shape, converted(count_of(rank, shape), elements));
}

ad_tensor matrix_laid(enum matrix_layout layout, int64_t rows, int64_t columns,
                      const double *elements)
{
    if (layout == MATRIX_DENSE)
        return matrix_leaf(2, SHAPE(rows, columns), elements);
    const int64_t gap = layout == MATRIX_GAPPED ? 2 : 1;
    double *other = block((size_t)(gap * gap * rows * columns) * sizeof *other);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            const int64_t at = layout == MATRIX_TURNED ? j * rows + i : 2 * i * 2 * columns + 2 * j;
            other[at] = elements[i * columns + j];
        }
    if (layout == MATRIX_TURNED)
        return ad_transpose(matrix_leaf(2, SHAPE(columns, rows), other));
    const ad_tensor wide = matrix_leaf(2, SHAPE(2 * rows, 2 * columns), other);
    return ad_slice(ad_slice(wide, 0, 0, 2 * rows, 2), 1, 0, 2 * columns, 2);
}

static void widen(int64_t n, const void *from, double *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = dtype_now == AD_F32 ? (double)((const float *)from)[i] : ((const double *)from)[i];
}

void matrix_read(ad_tensor x, double *to)
{
    const int64_t n = ad_size(x);
    ck_assert_msg(n >= 0, "%s", ad_tape_message(tape));
    void *buffer = block((size_t)n * sizeof *to);
    ck_assert_msg(ad_value(x, buffer, n) == AD_OK, "%s", ad_tape_message(tape));
    widen(n, buffer, to);
}

void matrix_gradient(ad_tensor x, double *to)
{
    const int64_t n = ad_size(x);
    void *buffer = block((size_t)(n > 0 ? n : 0) * sizeof *to);
    ck_assert_msg(ad_gradient(x, buffer, n) == AD_OK, "%s", ad_tape_message(tape));
    widen(n, buffer, to);
}

void matrix_sweep(ad_tensor y, const double *weights)
{
    int64_t shape[16];
    const int rank = ad_rank(y);
    ck_assert_msg(rank >= 0, "%s", ad_tape_message(tape));
    ck_assert_int_eq(ad_shape(y, shape), AD_OK);
    const void *elements = converted(ad_size(y), weights);
    const ad_tensor seed = ad_constant(tape, dtype_now, rank, shape, elements);
    ck_assert_msg(ad_backward_seed(y, seed) == AD_OK, "%s", ad_tape_message(tape));
}

void matrix_random(int64_t n, double *to)
{
    for (int64_t i = 0; i < n; i++) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        to[i] = (double)(float)((double)(state >> 11) * 0x1p-52 - 1);
    }
}

void matrix_random_raised(int64_t n, double raise, double *to)
{
    matrix_random(n * n, to);
    for (int64_t k = 0; k < n; k++)
        to[k * n + k] = (double)(float)(to[k * n + k] + raise * (double)(k + 1));
}

void matrix_refused(ad_status status, const char *text)
{
    ck_assert_int_eq(ad_tape_status(tape), status);
    ck_assert_msg(strstr(ad_tape_message(tape), text) != NULL, "\"%s\" is not in \"%s\"", text,
                  ad_tape_message(tape));
    ad_tape_clear_error(tape);
}
