/* matrix.c: batches of matrices, and what is done to single ones.
 *
 * Functions that combine an element with its mirror image work by tiles, so that both are read
 * along cache lines.
 */
#include "matrix.h"
#include "op_rules.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TILE = 32 };

/* ---- the walk ---- */

void matrix_walk_begin(struct matrix_walk *walk, kernel_ref like, int trailing)
{
    walk->rank = like->rank - trailing;
    walk->n = 0;
    walk->at = 0;
    walk->count = 1;
    for (int axis = 0; axis < walk->rank; axis++) {
        walk->shape[axis] = like->shape[axis];
        walk->index[axis] = 0;
        walk->count *= like->shape[axis];
    }
}

int matrix_walk_add(struct matrix_walk *walk, kernel_ref array, int trailing)
{
    const int own = array->rank - trailing, k = walk->n++;
    walk->data[k] = array->data; /* NULL, which is not stepped: empty, or not read in this call */
    for (int axis = 0; axis < walk->rank; axis++) {
        const int from = axis - (walk->rank - own);
        walk->step[k][axis] =
            from < 0 || array->shape[from] == 1 || array->data == NULL
                ? 0
                : array->strides[from] * (int64_t)kernel_dtype_bytes(array->dtype);
    }
    return k;
}

bool matrix_walk_next(struct matrix_walk *walk)
{
    walk->at++;
    for (int axis = walk->rank - 1; axis >= 0; axis--) {
        const bool wraps = ++walk->index[axis] == walk->shape[axis];
        const int64_t steps = wraps ? 1 - walk->shape[axis] : 1;
        for (int k = 0; k < walk->n; k++)
            walk->data[k] = kernel_behind(walk->data[k], walk->step[k][axis] * steps);
        if (!wraps)
            return true;
        walk->index[axis] = 0;
    }
    return false;
}

int64_t matrix_count(kernel_ref array)
{
    int64_t n = 1;
    for (int axis = 0; axis < array->rank - 2; axis++)
        n *= array->shape[axis];
    return array->size == 0 ? 0 : n;
}

struct gemm_matrix matrix_at(kernel_ref array, void *data)
{
    const int last = array->rank - 1;
    return (struct gemm_matrix){data, array->shape[last - 1], array->shape[last],
                                array->strides[last - 1], array->strides[last]};
}

/* ---- single matrices ---- */

/* Vectors that every processor has, to turn squares of as many rows. */
typedef float quad __attribute__((vector_size(16), aligned(sizeof(float)), may_alias));
typedef double pair __attribute__((vector_size(16), aligned(sizeof(double)), may_alias));

static inline void turn_square_float(const float *from, int64_t stride, float *to,
                                     int64_t to_stride)
{
    const quad a = *(const quad *)from, b = *(const quad *)(from + stride);
    const quad c = *(const quad *)(from + 2 * stride), d = *(const quad *)(from + 3 * stride);
    const quad ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const quad cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const quad ab_behind = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const quad cd_behind = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(quad *)to = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    *(quad *)(to + to_stride) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    *(quad *)(to + 2 * to_stride) = __builtin_shufflevector(ab_behind, cd_behind, 0, 1, 4, 5);
    *(quad *)(to + 3 * to_stride) = __builtin_shufflevector(ab_behind, cd_behind, 2, 3, 6, 7);
}

static inline void turn_square_double(const double *from, int64_t stride, double *to,
                                      int64_t to_stride)
{
    const pair a = *(const pair *)from, b = *(const pair *)(from + stride);
    *(pair *)to = __builtin_shufflevector(a, b, 0, 2);
    *(pair *)(to + to_stride) = __builtin_shufflevector(a, b, 1, 3);
}

enum { SQUARE_float = 4, SQUARE_double = 2 };

#define OF_TYPE(T)                                                                                 \
    static void pack_##T(const struct gemm_matrix *from, T *restrict to)                           \
    {                                                                                              \
        const T *x = from->data;                                                                   \
        const int64_t rows = from->rows, columns = from->columns;                                  \
        if (from->column_stride == 1) {                                                            \
            for (int64_t i = 0; i < rows; i++)                                                     \
                memcpy(to + i * columns, x + i * from->row_stride, (size_t)columns * sizeof(T));   \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i0 = 0; i0 < rows; i0 += TILE)                                                \
            for (int64_t j0 = 0; j0 < columns; j0 += TILE)                                         \
                for (int64_t i = i0; i < rows && i < i0 + TILE; i++)                               \
                    for (int64_t j = j0; j < columns && j < j0 + TILE; j++)                        \
                        to[i * columns + j] = x[i * from->row_stride + j * from->column_stride];   \
    }                                                                                              \
                                                                                                   \
    /* to [columns,rows] = from^T, which do not overlap. */                                        \
    static void turn_block_##T(int64_t rows, int64_t columns, const T *from, int64_t stride,       \
                               T *to, int64_t to_stride)                                           \
    {                                                                                              \
        enum { SQUARE = SQUARE_##T };                                                              \
        int64_t i = 0;                                                                             \
        for (; i + SQUARE <= rows; i += SQUARE) {                                                  \
            int64_t j = 0;                                                                         \
            for (; j + SQUARE <= columns; j += SQUARE)                                             \
                turn_square_##T(from + i * stride + j, stride, to + j * to_stride + i, to_stride); \
            for (; j < columns; j++)                                                               \
                for (int64_t k = i; k < i + SQUARE; k++)                                           \
                    to[j * to_stride + k] = from[k * stride + j];                                  \
        }                                                                                          \
        for (; i < rows; i++)                                                                      \
            for (int64_t j = 0; j < columns; j++)                                                  \
                to[j * to_stride + i] = from[i * stride + j];                                      \
    }                                                                                              \
                                                                                                   \
    /* What lies below the diagonal in a tile goes to its mirror image, or zeros do. */            \
    static void mirror_##T(int64_t n, T *a, int64_t i0, int64_t j0, bool zeros)                    \
    {                                                                                              \
        const int64_t end_i = i0 + TILE < n ? i0 + TILE : n,                                       \
                      end_j = j0 + TILE < n ? j0 + TILE : n;                                       \
        if (j0 < i0 && !zeros) {                                                                   \
            turn_block_##T(end_i - i0, end_j - j0, a + i0 * n + j0, n, a + j0 * n + i0, n);        \
            return;                                                                                \
        }                                                                                          \
        for (int64_t j = j0; j < end_j; j++)                                                       \
            for (int64_t i = i0 == j0 ? j + 1 : i0; i < end_i; i++)                                \
                a[j * n + i] = zeros ? 0 : a[i * n + j];                                           \
    }                                                                                              \
                                                                                                   \
    static void symmetrise_##T(const struct gemm_matrix *from, T *to, bool zero_above)             \
    {                                                                                              \
        const T *x = from->data;                                                                   \
        const int64_t n = from->rows, rows = from->row_stride, columns = from->column_stride;      \
        T tile[TILE * TILE];                                                                       \
        for (int64_t i0 = 0; i0 < n; i0 += TILE)                                                   \
            for (int64_t j0 = 0; j0 <= i0; j0 += TILE) {                                           \
                const int64_t wide = i0 + TILE < n ? TILE : n - i0;                                \
                const int64_t high = j0 + TILE < n ? TILE : n - j0;                                \
                const T *above = x + j0 * rows + i0 * columns;                                     \
                if (columns == 1)                                                                  \
                    turn_block_##T(high, wide, above, rows, tile, TILE);                           \
                else                                                                               \
                    for (int64_t j = 0; j < high; j++)                                             \
                        for (int64_t i = 0; i < wide; i++)                                         \
                            tile[i * TILE + j] = above[j * rows + i * columns];                    \
                for (int64_t i = 0; i < wide; i++) {                                               \
                    const T *below = x + (i0 + i) * rows + j0 * columns;                           \
                    T *row = to + (i0 + i) * n + j0;                                               \
                    const int64_t end = i0 == j0 ? i + 1 : high;                                   \
                    if (columns == 1)                                                              \
                        for (int64_t j = 0; j < end; j++)                                          \
                            row[j] = (T)0.5 * tile[i * TILE + j] + (T)0.5 * below[j];              \
                    else                                                                           \
                        for (int64_t j = 0; j < end; j++)                                          \
                            row[j] = (T)0.5 * tile[i * TILE + j] + (T)0.5 * below[j * columns];    \
                }                                                                                  \
                mirror_##T(n, to, i0, j0, zero_above);                                             \
            }                                                                                      \
    }                                                                                              \
                                                                                                   \
    static void halve_below_##T(int64_t n, T *a)                                                   \
    {                                                                                              \
        for (int64_t i0 = 0; i0 < n; i0 += TILE)                                                   \
            for (int64_t j0 = 0; j0 <= i0; j0 += TILE) {                                           \
                for (int64_t i = i0; i < n && i < i0 + TILE; i++)                                  \
                    for (int64_t j = j0; j < i && j < j0 + TILE; j++)                              \
                        a[i * n + j] *= (T)0.5;                                                    \
                mirror_##T(n, a, i0, j0, false);                                                   \
            }                                                                                      \
    }                                                                                              \
                                                                                                   \
    static void weigh_part_##T(int64_t n, const T *x, int64_t stride, T weight, T *to,             \
                               bool accumulate)                                                    \
    {                                                                                              \
        if (weight == 0) {                                                                         \
            if (!accumulate)                                                                       \
                memset(to, 0, (size_t)n * sizeof(T));                                              \
        } else if (stride == 1) {                                                                  \
            for (int64_t j = 0; j < n; j++)                                                        \
                to[j] = weight * x[j] + (accumulate ? to[j] : 0);                                  \
        } else {                                                                                   \
            for (int64_t j = 0; j < n; j++)                                                        \
                to[j] = weight * x[j * stride] + (accumulate ? to[j] : 0);                         \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void turn_##T(int64_t n, T *a)                                                          \
    {                                                                                              \
        for (int64_t i0 = 0; i0 < n; i0 += TILE)                                                   \
            for (int64_t j0 = 0; j0 <= i0; j0 += TILE)                                             \
                for (int64_t i = i0; i < n && i < i0 + TILE; i++)                                  \
                    for (int64_t j = j0; j < i && j < j0 + TILE; j++) {                            \
                        const T kept = a[i * n + j];                                               \
                        a[i * n + j] = a[j * n + i];                                               \
                        a[j * n + i] = kept;                                                       \
                    }                                                                              \
    }                                                                                              \
                                                                                                   \
    /* 0 * x is NaN for infinite and NaN x alone. */                                               \
    static bool finite_##T(int64_t n, const T *x)                                                  \
    {                                                                                              \
        enum { LANES = 16 };                                                                       \
        T sum[LANES] = {0};                                                                        \
        int64_t i = 0;                                                                             \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (int k = 0; k < LANES; k++)                                                        \
                sum[k] += 0 * x[i + k];                                                            \
        for (; i < n; i++)                                                                         \
            sum[0] += 0 * x[i];                                                                    \
        for (int k = 1; k < LANES; k++)                                                            \
            sum[0] += sum[k];                                                                      \
        return sum[0] == 0;                                                                        \
    }
OF_TYPE(float)
OF_TYPE(double)

void matrix_pack(int dtype, const struct gemm_matrix *from, void *to)
{
    if (dtype == KERNEL_F32)
        pack_float(from, to);
    else
        pack_double(from, to);
}

void matrix_symmetrise(int dtype, const struct gemm_matrix *from, void *to, bool zero_above)
{
    if (dtype == KERNEL_F32)
        symmetrise_float(from, to, zero_above);
    else
        symmetrise_double(from, to, zero_above);
}

void matrix_halve_below(int dtype, int64_t n, void *a)
{
    if (dtype == KERNEL_F32)
        halve_below_float(n, a);
    else
        halve_below_double(n, a);
}

static void weigh_part(int dtype, int64_t n, const struct gemm_matrix *from, int64_t row,
                       int64_t column, double weight, void *to, bool accumulate)
{
    const int64_t at = row * from->row_stride + column * from->column_stride;
    if (n <= 0)
        return;
    void *part = matrix_element(dtype, to, row * from->columns + column);
    if (dtype == KERNEL_F32)
        weigh_part_float(n, (const float *)from->data + at, from->column_stride, (float)weight,
                         part, accumulate);
    else
        weigh_part_double(n, (const double *)from->data + at, from->column_stride, weight, part,
                          accumulate);
}

void matrix_weigh(int dtype, const struct gemm_matrix *from, const struct matrix_weights *weights,
                  void *to, bool accumulate)
{
    const int64_t columns = from->columns;
    for (int64_t i = 0; i < from->rows; i++) {
        weigh_part(dtype, i < columns ? i : columns, from, i, 0, weights->below, to, accumulate);
        weigh_part(dtype, i < columns ? 1 : 0, from, i, i, weights->diagonal, to, accumulate);
        weigh_part(dtype, columns - i - 1, from, i, i + 1, weights->above, to, accumulate);
    }
}

void matrix_turn(int dtype, int64_t n, void *a)
{
    if (dtype == KERNEL_F32)
        turn_float(n, a);
    else
        turn_double(n, a);
}

bool matrix_finite(int dtype, int64_t n, const void *data)
{
    return dtype == KERNEL_F32 ? finite_float(n, data) : finite_double(n, data);
}

void matrix_fill(int dtype, int64_t n, void *data, double value)
{
    for (int64_t i = 0; i < n; i++)
        kernel_store(dtype, data, i, value);
}

double matrix_sign_of(int dtype, int64_t n, const void *data)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = kernel_load(dtype, data, i);
        if (fabs(x) > fabs(most))
            most = x;
    }
    return most < 0 ? -1 : 1;
}

void matrix_scale(int dtype, int64_t n, void *data, int64_t step, double by)
{
    for (int64_t i = 0; by != 1 && i < n; i++)
        kernel_store(dtype, data, i * step, by * kernel_load(dtype, data, i * step));
}

/* ---- refusals and shapes ---- */

int matrix_require(const struct kernel_call *call, int i, bool square)
{
    const kernel_ref x = call->in[i];
    if (kernel_require_float(call, i) != 0)
        return -1;
    if (x->rank < 2)
        return kernel_refuse_operands(call, ", ", "%s has two axes at least",
                                      kernel_in_name(call->op, i));
    const int64_t m = x->shape[x->rank - 2], n = x->shape[x->rank - 1];
    if (square && m != n)
        return kernel_refuse_operands(call, ", ", "%s is square in its last two axes",
                                      kernel_in_name(call->op, i));
    /* Lengths of workspaces are counted as int by LAPACK; eigh and svd want a few n^2. */
    if (m > INT_MAX || n > INT_MAX || (m > 0 && n > INT_MAX / 8 / m) || 8 * m > INT_MAX / 64 ||
        8 * n > INT_MAX / 64)
        return kernel_refuse_operands(call, ", ", "%s is larger than LAPACK can count",
                                      kernel_in_name(call->op, i));
    return 0;
}

int matrix_shape_square(const struct kernel_call *call, struct kernel_shape *out)
{
    if (matrix_require(call, 0, true) != 0)
        return -1;
    return kernel_shape_same(call, out);
}

int matrix_shape_pair(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref a = call->in[0], b = call->in[1];
    if (matrix_shape_square(call, out) != 0 || kernel_require_float(call, 1) != 0)
        return -1;
    bool same = a->rank == b->rank;
    for (int axis = 0; same && axis < a->rank; axis++)
        same = a->shape[axis] == b->shape[axis];
    return same ? 0 : kernel_refuse_operands(call, ", ", "both must have one shape");
}

struct matrix_place matrix_place_of(const struct matrix_walk *walk)
{
    struct matrix_place place = {""};
    if (walk->count > 1)
        (void)snprintf(place.text, sizeof place.text, "matrix %lld: ", (long long)walk->at);
    return place;
}

int matrix_solution_shape(const struct kernel_call *call, int64_t rows, int64_t result_rows,
                          struct kernel_shape *out)
{
    const kernel_ref a = call->in[0], b = call->in[1];
    const bool vector = b->rank == 1;
    if (kernel_require_float(call, 1) != 0)
        return -1;
    if (b->rank < 1 || b->shape[vector ? 0 : b->rank - 2] != rows)
        return kernel_refuse_operands(call, ", ", "b is [%lld] or [...,%lld,k]", (long long)rows,
                                      (long long)rows);
    if (!vector && !gemm_fits(1, 1, b->shape[b->rank - 1]))
        return kernel_refuse_operands(call, ", ", "b is larger than LAPACK can count");
    /* Leading axes alone. */
    struct kernel_array leading[2] = {*a, *b};
    const kernel_ref both[] = {&leading[0], &leading[1]};
    int64_t differ[2];
    leading[0].rank = (uint8_t)(a->rank - 2);
    leading[1].rank = (uint8_t)(vector ? 0 : b->rank - 2);
    if (!kernel_broadcast(2, both, out, differ))
        return kernel_refuse_operands(call, ", ", "extents %lld and %lld do not broadcast",
                                      (long long)differ[0], (long long)differ[1]);
    int rank = out->rank;
    if (out->same_as >= 0)
        memcpy(out->extent, leading[out->same_as].shape, sizeof *out->extent * (size_t)rank);
    out->extent[rank++] = result_rows;
    if (!vector)
        out->extent[rank++] = b->shape[b->rank - 1];
    kernel_shape_begin(out, a->dtype, rank);
    return 0;
}
