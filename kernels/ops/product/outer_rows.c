/* outer_rows.c: outer products of rows as one matrix, and BLAS on it. */
#include "outer_rows.h"
#include "dense.h"

#include <string.h>

enum { STRIP_BYTES = 1 << 20 };

bool outer_rows_fit(kernel_ref a, kernel_ref b)
{
    return a->rank > 0 && a->rank == b->rank &&
           memcmp(a->shape, b->shape, (size_t)(a->rank - 1) * sizeof *a->shape) == 0;
}

struct outer_rows outer_rows_make(kernel_ref x1, kernel_ref x2, int64_t o)
{
    struct outer_rows all = {.dtype = x1->dtype,
                             .rows = 1,
                             .m = x1->shape[x1->rank - 1],
                             .n = x2->shape[x2->rank - 1],
                             .o = o};
    for (int axis = 0; axis < x1->rank - 1; axis++)
        all.rows *= x1->shape[axis];
    const double row = (double)all.m * (double)all.n * (double)kernel_dtype_bytes(all.dtype);
    all.strip = all.rows;
    if (row * (double)all.rows > STRIP_BYTES)
        all.strip = row < STRIP_BYTES ? (int64_t)(STRIP_BYTES / row) : 1;
    return all;
}

static void *element(const struct outer_rows *all, const void *data, int64_t offset)
{
    return kernel_behind(data, offset * (int64_t)kernel_dtype_bytes(all->dtype));
}

/* The matrices of a strip: products, rows of o elements, and w. */
static struct gemm_matrix products_of(const struct outer_rows *all, void *data, int64_t rows)
{
    return (struct gemm_matrix){data, rows, all->m * all->n, all->m * all->n, 1};
}

static struct gemm_matrix rows_of(const struct outer_rows *all, const void *data, int64_t from,
                                  int64_t rows)
{
    return (struct gemm_matrix){element(all, data, from * all->o), rows, all->o, all->o, 1};
}

static struct gemm_matrix weights_of(const struct outer_rows *all, const void *data)
{
    return (struct gemm_matrix){(void *)data, all->o, all->m * all->n, all->m * all->n, 1};
}

static struct gemm_matrix flipped(struct gemm_matrix a)
{
    return (struct gemm_matrix){a.data, a.columns, a.rows, a.column_stride, a.row_stride};
}

static size_t products_bytes(const struct outer_rows *all)
{
    return dense_rounded((size_t)(all->strip * all->m * all->n) * kernel_dtype_bytes(all->dtype));
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t product_space(const struct outer_rows *all, int64_t rows)
{
    const struct gemm_matrix products = products_of(all, NULL, rows);
    const struct gemm_matrix y = rows_of(all, NULL, 0, rows), w = weights_of(all, NULL);
    const struct gemm_matrix turned = flipped(w), across = flipped(y);
    return larger(gemm_workspace(all->dtype, &products, &turned, &y),
                  gemm_workspace(all->dtype, &across, &products, &w));
}

size_t outer_rows_space(const struct outer_rows *all)
{
    const int64_t rest = all->strip > 0 ? all->rows % all->strip : 0;
    return products_bytes(all) + larger(product_space(all, all->strip), product_space(all, rest));
}

#define OUTER(REAL, name)                                                                          \
    static void name(int64_t rows, int64_t m, int64_t n, const REAL *a, const REAL *b, REAL *to)   \
    {                                                                                              \
        if (m == 0 || n == 0) /* then an operand may be NULL */                                    \
            return;                                                                                \
        for (int64_t r = 0; r < rows; r++, b += n)                                                 \
            for (int64_t i = 0; i < m; i++, a++, to += n)                                          \
                for (int64_t j = 0; j < n; j++)                                                    \
                    to[j] = *a * b[j];                                                             \
    }
OUTER(float, outer_narrow)
OUTER(double, outer_wide)

static struct gemm_matrix products_make(const struct outer_rows *all, const void *x1,
                                        const void *x2, int64_t from, int64_t rows, void *space)
{
    const void *a = element(all, x1, from * all->m), *b = element(all, x2, from * all->n);
    if (all->dtype == KERNEL_F32)
        outer_narrow(rows, all->m, all->n, a, b, space);
    else
        outer_wide(rows, all->m, all->n, a, b, space);
    return products_of(all, space, rows);
}

void outer_rows_forward(const struct outer_rows *all, const void *x1, const void *x2, const void *w,
                        void *y, bool accumulate, void *space)
{
    const struct gemm_matrix turned = flipped(weights_of(all, w));
    for (int64_t from = 0; from < all->rows; from += all->strip) {
        const int64_t rows = all->rows - from < all->strip ? all->rows - from : all->strip;
        const struct gemm_matrix products = products_make(all, x1, x2, from, rows, space);
        const struct gemm_matrix result = rows_of(all, y, from, rows);
        gemm_run(all->dtype, &products, &turned, &result, accumulate,
                 (char *)space + products_bytes(all));
    }
}

void outer_rows_to_weights(const struct outer_rows *all, const void *g, const void *x1,
                           const void *x2, void *w, bool accumulate, void *space)
{
    const struct gemm_matrix weights = weights_of(all, w);
    const int64_t size = all->o * all->m * all->n;
    if (!accumulate && size > 0)
        memset(w, 0, (size_t)size * kernel_dtype_bytes(all->dtype));
    for (int64_t from = 0; from < all->rows; from += all->strip) {
        const int64_t rows = all->rows - from < all->strip ? all->rows - from : all->strip;
        const struct gemm_matrix products = products_make(all, x1, x2, from, rows, space);
        const struct gemm_matrix across = flipped(rows_of(all, g, from, rows));
        gemm_run(all->dtype, &across, &products, &weights, true,
                 (char *)space + products_bytes(all));
    }
}

uint64_t outer_rows_flops(const struct outer_rows *all)
{
    const uint64_t products = (uint64_t)(all->rows * all->m * all->n);
    return products + 2 * products * (uint64_t)all->o;
}
