/* test_kernel_corners.c: conversions of every pair of types and layout, which matrices BLAS reads
 * in place, and the ends of psi's derivatives.
 */
#include "gamma_functions.h"
#include "gemm.h"
#include "kernel_box.h"
#include "kernel_ops.h"
#include "run_cases.h"

#include <check.h>
#include <limits.h>
#include <math.h>
#include <string.h>

static void check_cast(int from, int to, enum layout layout, bool accumulate)
{
    const int64_t shape[] = {3, 7}, attr[] = {to};
    int64_t index[KERNEL_MAX_RANK] = {0};
    struct box x, y;
    box_make(&x, from, 2, shape, layout);
    box_make(&y, to, 2, shape, DENSE);
    do {
        const double value = (double)(2 * index[0] - index[1]);
        set_at(&x.array, offset_of(&x.array, 2, index), value);
    } while (index_next(2, shape, index));
    box_random(&y, 4, 4);
    const kernel_ref in[] = {&x.array};
    ck_assert_int_eq(box_run(&kernel_op_cast, in, &y.array, NULL, 1, attr, accumulate, NULL), 0);
    memset(index, 0, sizeof index);
    do {
        const double right = (double)(2 * index[0] - index[1]) + (accumulate ? 4 : 0);
        ck_assert_double_eq(get_at(&y.array, offset_of(&y.array, 2, index)), right);
    } while (index_next(2, shape, index));
    box_free(&x);
    box_free(&y);
}

TEST(every_type_becomes_every_other_float_type_in_every_layout)
{
    for (int from = KERNEL_F32; from <= KERNEL_I64; from++)
        for (int to = KERNEL_F32; to <= KERNEL_F64; to++)
            for (int layout = 0; layout < LAYOUTS && from != to; layout++)
                for (int accumulate = 0; accumulate < 2; accumulate++)
                    check_cast(from, to, (enum layout)layout, accumulate);
}

/* Whether gemm_workspace() wants a copy of a matrix beside two that need none. */
static bool is_copied(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride)
{
    const struct gemm_matrix dense = {NULL, 2, 2, 2, 1};
    const struct gemm_matrix a = {NULL, rows, columns, row_stride, column_stride};
    const size_t bytes = gemm_workspace(KERNEL_F64, &dense, &a, &dense);
    const size_t whole = ((size_t)(rows * columns) * sizeof(double) + 63) / 64 * 64;
    ck_assert(bytes == 0 || bytes == whole);
    return bytes != 0;
}

TEST(a_matrix_is_copied_only_if_blas_cannot_read_it)
{
    const int64_t far = (int64_t)INT_MAX + 1;
    static const struct {
        int64_t rows, columns, row_stride, column_stride;
        bool copied;
    } cases[] = {
        {3, 4, 4, 1, false}, /* row-major */
        {3, 4, 9, 1, false}, /* with gaps */
        {3, 4, 1, 3, false}, /* transposed */
        {3, 4, 1, 8, false}, /* with gaps */
        {3, 4, 8, 2, true},  /* neither axis is dense */
        {3, 4, 3, 1, true},  /* rows overlap */
        {3, 4, 1, 2, true},  /* columns overlap */
        {3, 4, 0, 1, true},  /* one row, three times */
        {3, 4, 1, 0, true},  /* one column, four times */
        {1, 4, 0, 1, false}, /* one row needs no stride */
        {1, 4, 0, 5, false}, /* a row of a column-major matrix */
        {3, 1, 5, 0, false}, /* a column with a stride, as rows */
        {3, 1, 1, 0, false}, /* a column */
        {1, 1, 0, 0, false}, /* a number */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(is_copied(cases[i].rows, cases[i].columns, cases[i].row_stride,
                                cases[i].column_stride) == cases[i].copied,
                      "case %zu", i);
    /* Strides beyond BLAS's integers. */
    ck_assert(!is_copied(2, 2, INT_MAX, 1) && is_copied(2, 2, far, 1));
    ck_assert(!is_copied(2, 2, 1, INT_MAX) && is_copied(2, 2, 1, far));
}

TEST(extents_up_to_blas_integers_fit)
{
    const int64_t most = INT_MAX, more = most + 1;
    ck_assert(gemm_fits(most, most, most));
    ck_assert(!gemm_fits(more, 1, 1));
    ck_assert(!gemm_fits(1, more, 1));
    ck_assert(!gemm_fits(1, 1, more));
}

TEST(axes_fold_into_rows_where_one_stride_walks_them)
{
    static const struct {
        int64_t shape[4], strides[4];
        bool folds;
        int64_t rows, row_stride;
    } cases[] = {
        {{2, 3, 4, 5}, {60, 20, 5, 1}, true, 24, 5},
        {{2, 3, 4, 5}, {240, 80, 20, 2}, true, 24, 20},
        {{2, 3, 4, 5}, {60, 20, 6, 1}, false, 24, 6}, /* a gap within */
        {{2, 3, 4, 5}, {61, 20, 5, 1}, false, 24, 5}, /* a gap at the first axis */
        {{2, 3, 4, 5}, {61, 25, 5, 1}, false, 24, 5}, /* two gaps */
        {{2, 3, 1, 5}, {15, 5, 99, 1}, true, 6, 5},   /* an extent of 1 has no stride */
        {{1, 1, 1, 5}, {9, 9, 9, 1}, true, 1, 5},     /* one row */
        {{0, 3, 4, 5}, {7, 8, 9, 1}, true, 0, 9},     /* nothing */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gemm_matrix m;
        const struct kernel_array a = {
            .shape = cases[i].shape, .strides = cases[i].strides, .rank = 4, .dtype = KERNEL_F64};
        ck_assert_msg(gemm_matrix_fold(&a, &m) == cases[i].folds, "case %zu", i);
        ck_assert_int_eq(m.rows, cases[i].rows);
        ck_assert_int_eq(m.columns, 5);
        ck_assert_int_eq(m.column_stride, cases[i].strides[3]);
        if (cases[i].folds)
            ck_assert_int_eq(m.row_stride, cases[i].row_stride);
    }
}

TEST(derivatives_of_psi_end_in_nan_far_below_zero)
{
    ck_assert(isnan(kernel_polygamma(2, -10001.5)));
    ck_assert(isfinite(kernel_polygamma(2, -100.5)));
    ck_assert(isfinite(kernel_polygamma(1, -10001.5)));
    ck_assert(isnan(kernel_polygamma(1, NAN)) && isnan(kernel_polygamma(1, -INFINITY)));
    ck_assert_double_eq(kernel_polygamma(1, INFINITY), 0);
    ck_assert_double_eq(kernel_polygamma(2, INFINITY), 0);
    /* psi'(1) = pi^2 / 6, psi''(1) = -2 zeta(3) */
    ck_assert_double_eq_tol(kernel_polygamma(1, 1), 1.6449340668482264, 1e-14);
    ck_assert_double_eq_tol(kernel_polygamma(2, 1), -2.4041138063191886, 1e-13);
}

RUN_TESTS(NULL, NULL)
