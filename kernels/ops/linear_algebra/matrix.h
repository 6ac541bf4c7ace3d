/* matrix.h: matrices in the last two axes: the walk over a batch of them, and what is done to
 * single ones besides products and factorisations.
 *
 * Internal to kernels/. Outputs are row-major; operands may have any strides.
 */
#ifndef MATRIX_H
#define MATRIX_H

#include "dense.h"
#include "gemm.h"
#include "op_rules.h"

/* Leading axes of a batch; operands are broadcast against them. */
struct matrix_walk {
    int rank, n;
    int64_t shape[KERNEL_MAX_RANK], index[KERNEL_MAX_RANK];
    char *data[KERNEL_MAX_IN + KERNEL_MAX_OUT];
    int64_t step[KERNEL_MAX_IN + KERNEL_MAX_OUT][KERNEL_MAX_RANK]; /* bytes */
    int64_t count, at; /* matrices in all, and which one it is */
};

/* A walk over the leading axes of `like`, all but the last `trailing` ones. */
void matrix_walk_begin(struct matrix_walk *walk, kernel_ref like, int trailing);
/* Adds an array, whose last `trailing` axes are those of one matrix, vector or number; its leading
 * axes are those of the walk, or broadcast to them. Returns its place in walk->data. */
int matrix_walk_add(struct matrix_walk *walk, kernel_ref array, int trailing);
/* Moves on; false after the last one. */
bool matrix_walk_next(struct matrix_walk *walk);

/* Matrices of a shape in the last two axes, 1 if there are no more; 0 if there are no elements. */
int64_t matrix_count(kernel_ref array);

/* The matrix of an array's last two axes that begins at `data`. */
struct gemm_matrix matrix_at(kernel_ref array, void *data);

/* to [rows,columns], row-major, = from. */
void matrix_pack(int dtype, const struct gemm_matrix *from, void *to);

/* to = (from + from^T) / 2 in the lower triangle, and its mirror image above or, with zero_above,
 * zeros. to may be from's data if from is row-major. */
void matrix_symmetrise(int dtype, const struct gemm_matrix *from, void *to, bool zero_above);

/* Halves what lies below the diagonal of a row-major [n,n] matrix, and mirrors it above. */
void matrix_halve_below(int dtype, int64_t n, void *a);

/* The weights times what lies below the diagonal, on it and above it. */
struct matrix_weights {
    double below, diagonal, above;
};
/* to = the weighted parts of from, or added. A weight of 0 gives 0 whatever it weighs. */
void matrix_weigh(int dtype, const struct gemm_matrix *from, const struct matrix_weights *weights,
                  void *to, bool accumulate);

/* Turns a row-major [n,n] matrix in place. */
void matrix_turn(int dtype, int64_t n, void *a);

bool matrix_finite(int dtype, int64_t n, const void *data);
void matrix_fill(int dtype, int64_t n, void *data, double value);

/* 1, or -1 where the element of greatest magnitude, the first of several, is negative. */
double matrix_sign_of(int dtype, int64_t n, const void *data);
/* Multiplies n elements, `step` apart. */
void matrix_scale(int dtype, int64_t n, void *data, int64_t step, double by);

/* The greater of two numbers; a NaN as the second does not count. fmax in a loop makes gcc 12 for
 * 64-bit ARM fail. */
static inline double matrix_greater(double a, double b)
{
    return b > a ? b : a;
}

static inline void *matrix_element(int dtype, const void *data, int64_t at)
{
    return (char *)(uintptr_t)data + at * (int64_t)kernel_dtype_bytes(dtype);
}

/* Bytes of n elements, up to whole cache lines: parts of a workspace. */
static inline size_t matrix_bytes(int dtype, int64_t n)
{
    return dense_rounded((size_t)n * kernel_dtype_bytes(dtype));
}

/* Refuses input i unless it is f32 or f64, with two axes at least, equal ones where `square`, and
 * few enough elements for LAPACK to count. */
int matrix_require(const struct kernel_call *call, int i, bool square);

/* Shape rules of ops whose result is like their operand, square matrices, and of those that have
 * another operand of its shape. */
int matrix_shape_square(const struct kernel_call *call, struct kernel_shape *out);
int matrix_shape_pair(const struct kernel_call *call, struct kernel_shape *out);

/* Adds "matrix 3: " to refusals of a batch: which one it is; "" where there is one. */
struct matrix_place {
    char text[32];
};
struct matrix_place matrix_place_of(const struct matrix_walk *walk);

/* Extents of operands a [...,n,n] and b [n] or [...,n,k]: leading axes broadcast into out, which
 * ends in those of b. The two operands are inputs 0 and 1; `columns` is what b's rows must
 * equal. */
int matrix_solution_shape(const struct kernel_call *call, int64_t rows, int64_t result_rows,
                          struct kernel_shape *out);

#endif
