/* test_gemm_tiles.c: products that are handed to BLAS in pieces are those of the whole.
 *
 * The elements are small whole numbers, so that every sum is exact in both dtypes, whatever its
 * order, and results are compared bit by bit.
 */
#include "gemm.h"
#include "run_cases.h"

#include <cblas.h>
#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { MARGIN = 3 }; /* unused columns at the end of each row */

static double whole_number(int64_t i)
{
    return (double)((i * 2654435761u >> 7) % 9) - 4;
}

static void set(int dtype, void *data, int64_t i, double value)
{
    if (dtype == KERNEL_F32)
        ((float *)data)[i] = (float)value;
    else
        ((double *)data)[i] = value;
}

static double get(int dtype, const void *data, int64_t i)
{
    return dtype == KERNEL_F32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

/* A matrix [rows, columns], stored as its transpose if `flip`, with a margin. */
static struct gemm_matrix matrix_new(int dtype, int rows, int columns, bool flip)
{
    const int64_t lines = flip ? columns : rows, leading = (flip ? rows : columns) + MARGIN;
    const size_t elements = (size_t)(lines * leading);
    struct gemm_matrix a = {malloc(elements * kernel_dtype_bytes(dtype)), rows, columns,
                            flip ? 1 : leading, flip ? leading : 1};
    ck_assert_ptr_nonnull(a.data);
    for (int64_t i = 0; i < (int64_t)elements; i++)
        set(dtype, a.data, i, whole_number(i));
    return a;
}

static double at(int dtype, const struct gemm_matrix *a, int64_t row, int64_t column)
{
    return get(dtype, a->data, row * a->row_stride + column * a->column_stride);
}

/* What the sums begin with: 0, the result, one row for all, a matrix stored across. */
enum from { FROM_ZERO, FROM_RESULT, FROM_ROW, FROM_ACROSS };

static void check_product(int dtype, bool flip_a, bool flip_b, int m, int n, int k, enum from from)
{
    struct gemm_matrix a = matrix_new(dtype, m, k, flip_a), b = matrix_new(dtype, k, n, flip_b),
                       c = matrix_new(dtype, m, n, false), was = matrix_new(dtype, m, n, false);
    double *row = malloc((size_t)n * sizeof *row);
    ck_assert_ptr_nonnull(row);
    const size_t bytes = gemm_workspace(dtype, &a, &b, &c);
    void *workspace = malloc(bytes + 1);
    ck_assert_ptr_nonnull(workspace);
    struct gemm_matrix start = matrix_new(dtype, m, n, from == FROM_ACROSS);
    void *const data = start.data;
    if (from == FROM_ROW)
        start.row_stride = 0;
    if (from < FROM_ROW)
        gemm_run(dtype, &a, &b, &c, from == FROM_RESULT, workspace);
    else
        gemm_run_from(dtype, &a, &b, &c, &start, workspace);
    free(workspace);
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++)
            row[j] = from == FROM_ZERO ? 0 : at(dtype, from == FROM_RESULT ? &was : &start, i, j);
        for (int l = 0; l < k; l++)
            for (int j = 0; j < n; j++)
                row[j] += at(dtype, &a, i, l) * at(dtype, &b, l, j);
        for (int j = 0; j < n; j++)
            ck_assert_msg(at(dtype, &c, i, j) == row[j],
                          "%s %c%c %d x %d x %d: [%d,%d] is %g, not %g", kernel_dtype_name(dtype),
                          flip_a ? 'T' : 'N', flip_b ? 'T' : 'N', m, n, k, i, j,
                          at(dtype, &c, i, j), row[j]);
        for (int j = n; j < n + MARGIN && i < m; j++)
            ck_assert_msg(at(dtype, &c, i, j) == at(dtype, &was, i, j), "the margin changed");
    }
    free(row);
    free(data);
    free(a.data);
    free(b.data);
    free(c.data);
    free(was.data);
}

/* Larger than the pieces along each axis, with and without a rest; narrow; flat; deep. */
static const int sizes[][3] = {{64, 128, 128},  {70, 151, 131},  {129, 257, 40},  {16, 300, 300},
                               {300, 16, 257},  {131, 17, 700},  {9, 130, 1000},  {40, 40, 1500},
                               {257, 129, 64},  {1, 1100, 1000}, {1100, 1, 1000}, {64, 20, 19},
                               {61, 200, 1030}, {25, 520, 270},  {67, 33, 61},    {130, 301, 100},
                               {65, 512, 10}};

TEST_EACH(products_in_pieces_are_exact, 4)
{
    openblas_set_num_threads(_i & 1 ? 1 : 2);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int flips = 0; flips < 4; flips++)
            check_product(_i & 2 ? KERNEL_F32 : KERNEL_F64, flips & 1, flips & 2, sizes[s][0],
                          sizes[s][1], sizes[s][2], (enum from)((s + (size_t)flips) % 4));
}

/* Results that lie across, and with gaps between their columns, which BLAS cannot write. */
TEST_EACH(sums_begin_with_a_matrix_of_any_strides, 8)
{
    const int dtype = _i & 1 ? KERNEL_F32 : KERNEL_F64, m = 13, n = 17, k = _i & 4 ? 6 : 0;
    struct gemm_matrix a = matrix_new(dtype, m, k, false), b = matrix_new(dtype, k, n, false),
                       c = matrix_new(dtype, m, _i & 2 ? n : 2 * n, _i & 2),
                       start = matrix_new(dtype, 1, n, false);
    start.rows = m;
    start.row_stride = 0;
    if (!(_i & 2)) {
        c.columns = n;
        c.column_stride = 2;
    }
    void *workspace = malloc(gemm_workspace(dtype, &a, &b, &c) + 1);
    ck_assert_ptr_nonnull(workspace);
    gemm_run_from(dtype, &a, &b, &c, &start, workspace);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double right = at(dtype, &start, i, j);
            for (int l = 0; l < k; l++)
                right += at(dtype, &a, i, l) * at(dtype, &b, l, j);
            ck_assert_msg(at(dtype, &c, i, j) == right, "[%d,%d] is %g, not %g", i, j,
                          at(dtype, &c, i, j), right);
        }
    free(workspace);
    free(a.data);
    free(b.data);
    free(c.data);
    free(start.data);
}

TEST(pieces_are_cut_where_openblas_reads_in_place)
{
    const char *core = openblas_get_corename();
    const bool in_place = strcmp(core, "SkylakeX") == 0 || strcmp(core, "Cooperlake") == 0 ||
                          strcmp(core, "SapphireRapids") == 0;
    openblas_set_num_threads(1);
    static const struct {
        int dtype;
        bool flip_a, flip_b;
        int m, n, k;
        struct gemm_tile tile; /* where rows are 0, the whole */
    } cases[] = {
        {KERNEL_F64, false, false, 31, 200, 200, {31, 128, 200}},
        {KERNEL_F64, false, false, 32, 200, 200, {0}}, /* by panels */
        {KERNEL_F64, false, false, 31, 64, 32, {0}},   /* small as it is */
        {KERNEL_F64, false, false, 16, 256, 1024, {8, 96, 512}},
        {KERNEL_F32, false, false, 16, 512, 512, {8, 192, 512}},
        {KERNEL_F64, false, true, 16, 1024, 1024, {8, 128, 512}},
        {KERNEL_F64, false, true, 16, 512, 10, {0}}, /* too flat: ten classes, say */
        {KERNEL_F32, false, true, 16, 1024, 1024, {8, 96, 1024}},
        {KERNEL_F64, true, false, 24, 1024, 64, {12, 512, 64}},
        {KERNEL_F32, true, false, 24, 512, 256, {24, 128, 256}},
        {KERNEL_F64, true, false, 24, 512, 250, {12, 512, 128}},
        {KERNEL_F64, true, true, 24, 256, 256, {0}},
        {KERNEL_F64, false, true, 16, 512, 5000, {0}}, /* deeper than was measured */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int m = cases[i].m, n = cases[i].n, k = cases[i].k;
        const struct gemm_tile whole = {m, n, k},
                               tile = gemm_tile_of(cases[i].dtype, cases[i].flip_a, cases[i].flip_b,
                                                   m, n, k);
        const struct gemm_tile *right = in_place && cases[i].tile.rows ? &cases[i].tile : &whole;
        ck_assert_msg(tile.rows == right->rows && tile.columns == right->columns &&
                          tile.depth == right->depth,
                      "case %d: %d x %d x %d", (int)i, tile.rows, tile.columns, tile.depth);
    }
    openblas_set_num_threads(2); /* which share the whole */
    ck_assert_int_eq(gemm_tile_of(KERNEL_F64, false, true, 16, 512, 512).rows, 16);
}

RUN_TESTS(NULL, NULL)
