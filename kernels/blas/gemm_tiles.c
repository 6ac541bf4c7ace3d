/* gemm_tiles.c: in which pieces a product of few rows is handed to BLAS.
 *
 * OpenBLAS packs both operands before it multiplies, which costs as much as the product itself
 * where that has few rows. On AVX-512 it has kernels that read the operands in place, but for at
 * most a million multiplications (and, where the second operand is transposed, 1200 results). So a
 * product of few rows that is larger is cut into pieces of that size, which takes 0.8 of the time
 * of the whole (docs/decisions/014-products-in-pieces.md). Those of more rows go by panels.
 */
#include "gemm.h"

#include <cblas.h>
#include <limits.h>
#include <string.h>

enum {
    IN_PLACE_RESULTS = 1200,
    IN_PLACE_DEPTH = 32,
    LEAST_ROWS = 8,
    LEAST_COLUMNS = 16,
    DEEPEST = 4096 /* as far as was measured */
};

enum gemm_product { PRODUCT_NN, PRODUCT_NT, PRODUCT_TN };

/* Pieces of at most rows x columns and `depth` deep, for products `least_k` deep. Pieces of few
 * rows and whole vectors of columns lose least. */
static const struct rule {
    int dtype;
    enum gemm_product product;
    int rows, columns, depth;
    int least_k;
} rules[] = {
    {KERNEL_F32, PRODUCT_NN, 8, 192, 512, 256},
    {KERNEL_F32, PRODUCT_NN, 128, 128, INT_MAX, 16},
    {KERNEL_F32, PRODUCT_NT, 8, 96, 1024, 64},
    {KERNEL_F32, PRODUCT_TN, 24, 128, 256, 256},
    {KERNEL_F32, PRODUCT_TN, 12, 512, 128, 16},
    {KERNEL_F64, PRODUCT_NN, 8, 96, 512, 512},
    {KERNEL_F64, PRODUCT_NN, 128, 128, INT_MAX, 16},
    {KERNEL_F64, PRODUCT_NT, 8, 128, 512, 64},
    {KERNEL_F64, PRODUCT_TN, 24, 128, 256, 256},
    {KERNEL_F64, PRODUCT_TN, 12, 512, 128, 16},
};

bool gemm_reads_in_place(void)
{
    const char *core = openblas_get_corename();
    return strcmp(core, "SkylakeX") == 0 || strcmp(core, "Cooperlake") == 0 ||
           strcmp(core, "SapphireRapids") == 0;
}

static const struct rule *rule_for(int dtype, enum gemm_product product, int k)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct rule *rule = &rules[i];
        if (rule->dtype == dtype && rule->product == product && k >= rule->least_k)
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
    if (m >= GEMM_FEW_ROWS || (flip_a && flip_b) || k > DEEPEST ||
        (multiplications <= GEMM_IN_PLACE && (!flip_b || few_results)))
        return whole;
    const struct rule *rule = rule_for(dtype,
                                       flip_b   ? PRODUCT_NT
                                       : flip_a ? PRODUCT_TN
                                                : PRODUCT_NN,
                                       k);
    if (rule == NULL || !gemm_reads_in_place() || openblas_get_num_threads() != 1)
        return whole;
    struct gemm_tile tile = {at_most(m, rule->rows), at_most(n, rule->columns),
                             at_most(k, rule->depth)};
    while (tile.rows > LEAST_ROWS && (int64_t)tile.rows * tile.columns * tile.depth > GEMM_IN_PLACE)
        tile.rows = tile.rows / 2 < LEAST_ROWS ? LEAST_ROWS : tile.rows / 2;
    while (tile.columns > LEAST_COLUMNS &&
           (int64_t)tile.rows * tile.columns * tile.depth > GEMM_IN_PLACE)
        tile.columns /= 2;
    return (int64_t)tile.rows * tile.columns * tile.depth <= GEMM_IN_PLACE ? tile : whole;
}
