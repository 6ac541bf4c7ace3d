/* gemm_tiles.c: in which pieces a product is handed to BLAS.
 *
 * OpenBLAS packs both operands before it multiplies, which costs as much as the product itself
 * where that is narrow. On AVX-512 it has kernels that read the operands in place, but for at most
 * a million multiplications (and, where the second operand is transposed, 1200 results). So a
 * product that is larger is cut into pieces of that size where this was measured to be faster,
 * with each call's second operand and result out of the second-level cache, as a sweep finds them:
 * over 125 shapes of each kind of product, extents from 16 to 1024, f64 0.77 to 0.84 of the time
 * of the whole on average, f32 0.80 to 0.88, never more than 1.09; one thread, OpenBLAS 0.3.21 on
 * Zen 5 (its Cooperlake kernels).
 */
#include "gemm.h"

#include <cblas.h>
#include <limits.h>
#include <string.h>

enum {
    IN_PLACE = 1000000,
    IN_PLACE_RESULTS = 1200,
    IN_PLACE_DEPTH = 32,
    LEAST_ROWS = 8,
    LEAST_COLUMNS = 16,
    DEEPEST = 4096 /* as far as was measured */
};

enum gemm_product { PRODUCT_NN, PRODUCT_NT, PRODUCT_TN };

/* Pieces of at most rows x columns and `depth` deep, for products of m rows, k deep. Pieces of few
 * rows and whole vectors of columns lose least. Where the depth is not cut, the second operand has
 * to stay in the second-level cache while all pieces read it (512 KiB), or its rows to be few. */
static const struct rule {
    int dtype;
    enum gemm_product product;
    int rows, columns, depth;
    int most_m, least_k;
} rules[] = {
    {KERNEL_F32, PRODUCT_NN, 8, 192, 512, 32, 256},
    {KERNEL_F32, PRODUCT_NN, 8, 192, 512, 64, 512},
    {KERNEL_F32, PRODUCT_NN, 128, 128, INT_MAX, INT_MAX, 16},
    {KERNEL_F32, PRODUCT_NT, 8, 96, 1024, INT_MAX, 64},
    {KERNEL_F32, PRODUCT_TN, 24, 128, 256, INT_MAX, 256},
    {KERNEL_F32, PRODUCT_TN, 12, 512, 128, INT_MAX, 16},
    {KERNEL_F64, PRODUCT_NN, 8, 96, 512, INT_MAX, 512},
    {KERNEL_F64, PRODUCT_NN, 128, 128, INT_MAX, INT_MAX, 16},
    {KERNEL_F64, PRODUCT_NT, 8, 128, 512, INT_MAX, 64},
    {KERNEL_F64, PRODUCT_TN, 24, 128, 256, INT_MAX, 256},
    {KERNEL_F64, PRODUCT_TN, 12, 512, 128, INT_MAX, 16},
};

bool gemm_reads_in_place(void)
{
    const char *core = openblas_get_corename();
    return strcmp(core, "SkylakeX") == 0 || strcmp(core, "Cooperlake") == 0 ||
           strcmp(core, "SapphireRapids") == 0;
}

/* Two cases beyond the bounds of the rules. Rows that are a page apart share lines of the
 * first-level cache, and strips of rows are slow to read from memory. Packing them once is faster
 * then. */
static bool pays(const struct rule *rule, int m, int n, int k)
{
    const int64_t row_bytes = n * (int64_t)kernel_dtype_bytes(rule->dtype), panel = row_bytes * k;
    const bool near = row_bytes < 4096;
    if (rule->product ==
        PRODUCT_NT) /* packed, f32 gains with the rows, its pieces with the depth */
        return rule->dtype == KERNEL_F64 || k >= 2 * m;
    if (rule->product == PRODUCT_TN)
        return true;
    if (rule->depth == INT_MAX)
        return m <= 16 || (panel <= 512 << 10 && (near || m < 64));
    return m <= 32 || (rule->dtype == KERNEL_F64 ? near : panel <= 2 << 20);
}

static const struct rule *rule_for(int dtype, enum gemm_product product, int m, int n, int k)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct rule *rule = &rules[i];
        if (rule->dtype == dtype && rule->product == product && m <= rule->most_m &&
            k >= rule->least_k && pays(rule, m, n, k))
            return rule;
    }
    return NULL;
}

static int at_most(int extent, int limit)
{
    return extent < limit ? extent : limit;
}

struct gemm_tile gemm_tile_of(int dtype, bool flip_a, bool flip_b, int m, int n, int k)
{
    const struct gemm_tile whole = {m, n, k};
    const int64_t multiplications = (int64_t)m * n * k;
    const bool few_results = flip_b && (int64_t)m * n <= IN_PLACE_RESULTS && k >= IN_PLACE_DEPTH;
    if ((flip_a && flip_b) || k > DEEPEST ||
        (multiplications <= IN_PLACE && (!flip_b || few_results)))
        return whole;
    const struct rule *rule = rule_for(dtype,
                                       flip_b   ? PRODUCT_NT
                                       : flip_a ? PRODUCT_TN
                                                : PRODUCT_NN,
                                       m, n, k);
    if (rule == NULL || !gemm_reads_in_place() || openblas_get_num_threads() != 1)
        return whole;
    struct gemm_tile tile = {at_most(m, rule->rows), at_most(n, rule->columns),
                             at_most(k, rule->depth)};
    while (tile.rows > LEAST_ROWS && (int64_t)tile.rows * tile.columns * tile.depth > IN_PLACE)
        tile.rows = tile.rows / 2 < LEAST_ROWS ? LEAST_ROWS : tile.rows / 2;
    while (tile.columns > LEAST_COLUMNS &&
           (int64_t)tile.rows * tile.columns * tile.depth > IN_PLACE)
        tile.columns /= 2;
    return (int64_t)tile.rows * tile.columns * tile.depth <= IN_PLACE ? tile : whole;
}

/* Shapes alone decide, so that workspace, and with it every count of bytes, is the same on every
 * processor; where BLAS has no kernels that read in place the workspace is left unused.
 *
 * The kernels that read in place are slow where the second operand is transposed, and take no more
 * than 1200 results. Where b is small beside the product, a copy of it costs less: for f64 0.68 to
 * 0.86 of the time at depths of 32 and 64, for f32 0.85 to 0.95; measured as the pieces above. */
bool gemm_untransposes(int dtype, int64_t m, int64_t k, int64_t n)
{
    const int64_t deepest = dtype == KERNEL_F32 && m >= 128 ? 128 : 64;
    return m >= 64 && k <= deepest && n * k <= 1 << 15 && m * n > IN_PLACE_RESULTS;
}
