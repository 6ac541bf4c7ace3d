/* gemm.c: matrix products by panels (gemm_panels.h), or by cblas_sgemm and cblas_dgemm.
 *
 * BLAS is never called with an extent of 0 or with a leading dimension that it would refuse.
 */
#include "gemm.h"
#include "dense.h"
#include "elementwise.h"
#include "gemm_panels.h"
#include "threads.h"

#include <cblas.h>
#include <limits.h>
#include <math.h>
#include <string.h>

/* Multiplications that a thread makes in a ns, times the bytes of an element; rows and columns that
 * a piece has at least. */
enum { PRODUCTS_A_NS = 160, LEAST_ROWS = 32, LEAST_COLUMNS = 64, PANELS_TILE = 16, BLAS_TILE = 48 };

struct gemm_matrix gemm_matrix_of(kernel_ref array)
{
    return (struct gemm_matrix){
        .data = array->data,
        .rows = array->shape[0],
        .columns = array->shape[1],
        .row_stride = array->strides[0],
        .column_stride = array->strides[1],
    };
}

bool gemm_matrix_fold(kernel_ref array, struct gemm_matrix *matrix)
{
    const int last = array->rank - 1;
    *matrix = (struct gemm_matrix){.data = array->data, .rows = 1, .columns = array->shape[last]};
    matrix->column_stride = array->strides[last];
    matrix->row_stride = matrix->columns;
    bool folds = true, first = true;
    for (int axis = last - 1; axis >= 0; axis--) {
        const int64_t extent = array->shape[axis];
        if (extent == 1)
            continue;
        if (first)
            matrix->row_stride = array->strides[axis];
        else
            folds = folds && array->strides[axis] == matrix->row_stride * matrix->rows;
        first = false;
        matrix->rows *= extent;
    }
    return folds || matrix->rows == 0;
}

bool gemm_fits(int64_t m, int64_t k, int64_t n)
{
    return m <= INT_MAX && k <= INT_MAX && n <= INT_MAX;
}

/* True if BLAS reads the matrix in place; *transposed and *leading say how. */
static bool in_place(const struct gemm_matrix *a, bool *transposed, int64_t *leading)
{
    *transposed = false;
    *leading = 1;
    if ((a->column_stride == 1 || a->columns == 1) &&
        (a->rows == 1 || (a->row_stride >= a->columns && a->row_stride <= INT_MAX))) {
        *leading = a->rows == 1 ? a->columns : a->row_stride;
        return true;
    }
    *transposed = true;
    if ((a->row_stride == 1 || a->rows == 1) &&
        (a->columns == 1 || (a->column_stride >= a->rows && a->column_stride <= INT_MAX))) {
        *leading = a->columns == 1 ? a->rows : a->column_stride;
        return true;
    }
    return false;
}

static size_t packed_bytes(int dtype, const struct gemm_matrix *a)
{
    const size_t bytes = (size_t)a->rows * (size_t)a->columns * kernel_dtype_bytes(dtype);
    return dense_rounded(bytes);
}

static size_t copy_bytes(int dtype, const struct gemm_matrix *a)
{
    bool transposed;
    int64_t leading;
    return in_place(a, &transposed, &leading) ? 0 : packed_bytes(dtype, a);
}

size_t gemm_workspace(int dtype, const struct gemm_matrix *a, const struct gemm_matrix *b,
                      const struct gemm_matrix *c)
{
    return copy_bytes(dtype, a) + copy_bytes(dtype, b) + copy_bytes(dtype, c);
}

/* An array over the matrix; shape and strides belong to the caller. */
static struct kernel_array matrix_array(const struct gemm_matrix *a, int dtype, int64_t *shape,
                                        int64_t *strides)
{
    shape[0] = a->rows;
    shape[1] = a->columns;
    strides[0] = a->row_stride;
    strides[1] = a->column_stride;
    return (struct kernel_array){
        .data = a->data,
        .shape = shape,
        .strides = strides,
        .size = a->rows * a->columns,
        .dtype = (uint8_t)dtype,
        .rank = 2,
        .contiguous = a->column_stride == 1 && a->row_stride == a->columns,
    };
}

static void matrix_copy(int dtype, const struct gemm_matrix *from, const struct gemm_matrix *to,
                        bool accumulate)
{
    int64_t shape[2][2], strides[2][2];
    const struct kernel_array in = matrix_array(from, dtype, shape[0], strides[0]);
    struct kernel_array out = matrix_array(to, dtype, shape[1], strides[1]);
    const kernel_ref operand = &in;
    kernel_elementwise(LOOP_copy, &out, 1, &operand, NULL, accumulate);
}

/* A dense matrix of the shape of `a` in the workspace, which is moved on. */
static struct gemm_matrix matrix_take(int dtype, const struct gemm_matrix *a, char **workspace)
{
    struct gemm_matrix copy = *a;
    copy.data = *workspace;
    copy.row_stride = a->columns;
    copy.column_stride = 1;
    *workspace += packed_bytes(dtype, a);
    return copy;
}

static struct gemm_matrix matrix_flip(const struct gemm_matrix *a)
{
    return (struct gemm_matrix){a->data, a->columns, a->rows, a->column_stride, a->row_stride};
}

static void *element(int dtype, const void *data, int64_t offset)
{
    return kernel_behind(data, offset * (int64_t)kernel_dtype_bytes(dtype));
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* A product whose operands are in place, and its result row-major; in how many pieces it is shared
 * among threads. */
struct gemm_shared {
    int dtype;
    bool flip_a;
    struct gemm_panels all;
    gemm_panels_function *by_panels; /* NULL: by BLAS */
    int rows, columns;               /* of pieces */
};

/* By BLAS, what was begun with is in c. */
static void multiply_by_blas(int dtype, bool flip_a, const struct gemm_panels *all)
{
    const bool flip_b = all->b_transposed;
    const int m = all->m, n = all->n, k = all->k;
    const int64_t leading_a = flip_a ? all->a_deep : all->a_row, leading_b = all->b_leading;
    const CBLAS_TRANSPOSE op_a = flip_a ? CblasTrans : CblasNoTrans;
    const CBLAS_TRANSPOSE op_b = flip_b ? CblasTrans : CblasNoTrans;
    const struct gemm_tile tile = gemm_tile_of(dtype, flip_a, flip_b, m, n, k);
    /* Columns are the outermost loop: the result's columns stay in cache while the depth is
     * summed. */
    for (int column = 0; column < n; column += tile.columns)
        for (int deep = 0; deep < k; deep += tile.depth)
            for (int row = 0; row < m; row += tile.rows) {
                const struct gemm_tile piece = {least(m - row, tile.rows),
                                                least(n - column, tile.columns),
                                                least(k - deep, tile.depth)};
                const int64_t at_a = flip_a ? deep * leading_a + row : row * leading_a + deep;
                const int64_t at_b = flip_b ? column * leading_b + deep : deep * leading_b + column;
                const void *x = element(dtype, all->a, at_a), *y = element(dtype, all->b, at_b);
                void *z = element(dtype, all->c, row * all->c_leading + column);
                const int beta = all->start != NULL || deep > 0;
                if (dtype == KERNEL_F32)
                    cblas_sgemm(CblasRowMajor, op_a, op_b, piece.rows, piece.columns, piece.depth,
                                1, x, (int)leading_a, y, (int)leading_b, (float)beta, z,
                                (int)all->c_leading);
                else
                    cblas_dgemm(CblasRowMajor, op_a, op_b, piece.rows, piece.columns, piece.depth,
                                1, x, (int)leading_a, y, (int)leading_b, beta, z,
                                (int)all->c_leading);
            }
}

/* Where piece `at` of `pieces` begins: at whole cache lines of the result, if its rows do, and at
 * whole tiles of BLAS' loops, so that only the last ones are narrower. */
static int piece_begin(const struct gemm_shared *p, int extent, int at, int pieces)
{
    const int tile = p->by_panels != NULL ? PANELS_TILE : BLAS_TILE;
    const int tiles = (extent + tile - 1) / tile;
    return least(extent, (int)((int64_t)tiles * at / pieces) * tile);
}

static void product_part(void *of, int part, int parts)
{
    const struct gemm_shared *const p = of;
    const int dtype = p->dtype, row = part / p->columns, column = part % p->columns;
    const int from = piece_begin(p, p->all.m, row, p->rows);
    const int from_column = piece_begin(p, p->all.n, column, p->columns);
    struct gemm_panels piece = p->all;
    (void)parts;
    piece.m = piece_begin(p, p->all.m, row + 1, p->rows) - from;
    piece.n = piece_begin(p, p->all.n, column + 1, p->columns) - from_column;
    piece.a = element(dtype, p->all.a, from * piece.a_row);
    piece.b = element(dtype, p->all.b, from_column * (piece.b_transposed ? piece.b_leading : 1));
    piece.c = element(dtype, p->all.c, from * piece.c_leading + from_column);
    if (piece.start != NULL)
        piece.start = element(dtype, p->all.start, from * piece.start_leading + from_column);
    if (piece.m == 0 || piece.n == 0)
        return;
    if (p->by_panels != NULL)
        p->by_panels(&piece);
    else
        multiply_by_blas(dtype, p->flip_a, &piece);
}

/* As many for each thread. */
static int pieces_of(int most, int extent, int threads)
{
    const int n = least(most, extent);
    return n < 1 ? 1 : n > threads ? n - n % threads : n;
}

/* Whether pieces by OpenBLAS have the bits of the whole: seen with its loops for Haswell, which Zen
 * has too. Those of other processors have tiles of other widths, and were not compared. */
static bool pieces_are_alike(void)
{
    const char *const core = openblas_get_corename();
    return strcmp(core, "Haswell") == 0 || strcmp(core, "Zen") == 0;
}

/* Sets into how many pieces the product is cut; an element is summed in the same order in all of
 * them. Pieces side by side share nothing that has to be copied; BLAS copies the first operand for
 * each of them. */
static void product_cut(struct gemm_shared *p)
{
    const double size = (double)p->all.m * p->all.n * p->all.k;
    const double ns = fmin(size * (double)kernel_dtype_bytes(p->dtype) / PRODUCTS_A_NS, 1e15);
    const int parts = threads_parts((uint64_t)ns), threads = least(kernel_threads(), parts);
    const int most = p->by_panels != NULL ? parts : threads;
    p->rows = p->columns = 1;
    if (threads <= 1 || (p->by_panels == NULL && !pieces_are_alike()))
        return;
    p->columns = pieces_of(most, p->all.n / LEAST_COLUMNS, threads);
    p->rows = pieces_of(most / p->columns, p->all.m / LEAST_ROWS, threads);
}

/* OpenBLAS on one thread for each piece, or on threads of its own where there is one piece that
 * could not be cut. */
static int product_hold(struct gemm_shared *p)
{
    const int pieces = p->rows * p->columns, m = p->all.m, k = p->all.k, n = p->all.n;
    const int held = pieces > 1 ? gemm_threads_hold(pieces) : -1;
    if (held >= 0)
        return held;
    p->rows = p->columns = 1;
    return kernel_threads() > 1 && !pieces_are_alike() ? gemm_threads_limit(m, k, n)
                                                       : gemm_threads_alone(m, k, n);
}

/* c is in place, and row-major. */
static void multiply(int dtype, const struct gemm_matrix *a, const struct gemm_matrix *b,
                     const struct gemm_matrix *c, int64_t leading_c,
                     const struct gemm_matrix *start)
{
    bool flip_b;
    int64_t leading_a, leading_b;
    struct gemm_shared p = {.dtype = dtype};
    (void)in_place(a, &p.flip_a, &leading_a);
    (void)in_place(b, &flip_b, &leading_b);
    p.all = (struct gemm_panels){.a = a->data,
                                 .b = b->data,
                                 .c = c->data,
                                 .a_row = p.flip_a ? 1 : leading_a,
                                 .a_deep = p.flip_a ? leading_a : 1,
                                 .b_leading = leading_b,
                                 .c_leading = leading_c,
                                 .m = (int)c->rows,
                                 .n = (int)c->columns,
                                 .k = (int)a->columns,
                                 .b_transposed = flip_b};
    if (start == NULL || start->column_stride == 1)
        p.by_panels = gemm_panels_for(dtype, &p.all);
    if (start != NULL && p.by_panels == NULL && start->data != c->data)
        matrix_copy(dtype, start, c, false);
    if (start != NULL) {
        p.all.start = p.by_panels != NULL ? start->data : c->data;
        p.all.start_leading = p.by_panels != NULL ? start->row_stride : leading_c;
    }
    product_cut(&p);
    const int held = p.by_panels == NULL ? product_hold(&p) : 0;
    threads_run(p.rows * p.columns, product_part, &p);
    gemm_threads_restore(held);
}

void gemm_run(int dtype, const struct gemm_matrix *a, const struct gemm_matrix *b,
              const struct gemm_matrix *c, bool accumulate, void *workspace)
{
    gemm_run_from(dtype, a, b, c, accumulate ? c : NULL, workspace);
}

void gemm_run_from(int dtype, const struct gemm_matrix *a, const struct gemm_matrix *b,
                   const struct gemm_matrix *c, const struct gemm_matrix *start, void *workspace)
{
    char *space = workspace;
    bool flip;
    int64_t leading;
    if (c->rows == 0 || c->columns == 0)
        return;
    const bool apart = start != NULL && start->data != c->data;
    if (a->columns == 0) {
        int64_t shape[2], strides[2];
        struct kernel_array out = matrix_array(c, dtype, shape, strides);
        if (apart)
            matrix_copy(dtype, start, c, false);
        else if (start == NULL)
            kernel_fill(&out, 0);
        return;
    }
    struct gemm_matrix x = *a, y = *b;
    if (!in_place(a, &flip, &leading)) {
        x = matrix_take(dtype, a, &space);
        matrix_copy(dtype, a, &x, false);
    }
    if (!in_place(b, &flip, &leading)) {
        y = matrix_take(dtype, b, &space);
        matrix_copy(dtype, b, &y, false);
    }
    if (!in_place(c, &flip, &leading)) {
        const struct gemm_matrix z = matrix_take(dtype, c, &space);
        if (apart)
            matrix_copy(dtype, start, c, false);
        multiply(dtype, &x, &y, &z, z.columns, NULL);
        matrix_copy(dtype, &z, c, start != NULL);
    } else if (flip) {
        const struct gemm_matrix fx = matrix_flip(&x), fy = matrix_flip(&y), fc = matrix_flip(c);
        const struct gemm_matrix fs = start != NULL ? matrix_flip(start) : fc;
        multiply(dtype, &fy, &fx, &fc, leading, start != NULL ? &fs : NULL);
    } else {
        multiply(dtype, &x, &y, c, leading, start);
    }
}
