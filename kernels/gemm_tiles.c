/* gemm_tiles.c: in which pieces a product is handed to BLAS.
 *
 * May include: gemm.h, cblas. OpenBLAS packs both operands before it multiplies, which costs as
 * much as the product itself where that is narrow. On AVX-512 it has kernels that read the operands
 * in place, but for at most a million multiplications (and, where the second operand is transposed,
 * 1200 results). So a product that is larger is cut into pieces of that size where this was
 * measured to be faster: on average 0.75 to 0.85 of the time of the whole for f64 and 0.89 for f32,
 * over 290 shapes of extents from 16 to 1024, one thread, OpenBLAS 0.3.21 on Zen 5 (its Cooperlake
 * kernels), never more than 1.05.
 */
#include "gemm.h"

#include <cblas.h>
#include <string.h>

enum { IN_PLACE = 1000000, IN_PLACE_RESULTS = 1200, IN_PLACE_DEPTH = 32 };

/* Pieces of at most rows x columns, for products whose second operand has at most `panel` bytes,
 * so that it stays in the second-level cache while all pieces read it, or that have at most `few`
 * rows, so that packing the second operand would not pay; and that are `depth` deep at least, the
 * least that was measured to gain: at a depth of 16 a transposed operand makes pieces twice as slow
 * as the whole. */
static const struct rule {
    int rows, columns, few, depth;
    int64_t panel;
} rules[2][3] = {
    {{128, 128, 16, 16, 512 << 10}, {8, 32, 64, 256, 512 << 10}, {128, 32, 64, 16, 64 << 10}},
    {{128, 128, 16, 16, 512 << 10}, {8, 128, 16, 128, 512 << 10}, {128, 16, 16, 16, INT64_MAX}},
};

/* Whether this machine has the kernels that read in place. */
static bool reads_in_place(void)
{
    const char *core = openblas_get_corename();
    return strcmp(core, "SkylakeX") == 0 || strcmp(core, "Cooperlake") == 0 ||
           strcmp(core, "SapphireRapids") == 0;
}

struct gemm_tile gemm_tile_of(int dtype, bool flip_a, bool flip_b, int m, int n, int k)
{
    const struct gemm_tile whole = {m, n};
    const int64_t multiplications = (int64_t)m * n * k;
    const bool few_results = flip_b && (int64_t)m * n <= IN_PLACE_RESULTS && k >= IN_PLACE_DEPTH;
    if ((flip_a && flip_b) || k > IN_PLACE / (8 * 16))
        return whole;
    if (multiplications <= IN_PLACE && (!flip_b || few_results))
        return whole;
    const struct rule *rule = &rules[dtype == KERNEL_F64][flip_b ? 1 : flip_a ? 2 : 0];
    const int64_t panel = (int64_t)n * k * (int64_t)kernel_dtype_bytes(dtype);
    if ((panel > rule->panel && m > rule->few) || k < rule->depth || !reads_in_place() ||
        openblas_get_num_threads() != 1)
        return whole;
    struct gemm_tile tile = {m < rule->rows ? m : rule->rows,
                             n < rule->columns ? n : rule->columns};
    while (tile.rows > 8 && (int64_t)tile.rows * tile.columns * k > IN_PLACE)
        tile.rows /= 2;
    while (tile.columns > 16 && (int64_t)tile.rows * tile.columns * k > IN_PLACE)
        tile.columns /= 2;
    return tile;
}

/* The kernels that read in place are slow where the second operand is transposed, and take no more
 * than 1200 results. Where b is small beside the product, a copy of it costs less: for f64 0.68 to
 * 0.86 of the time at depths of 32 and 64, for f32 0.85 to 0.95; measured as the pieces above. */
bool gemm_untransposes(int dtype, int64_t m, int64_t k, int64_t n)
{
    const int64_t deepest = dtype == KERNEL_F32 && m >= 128 ? 128 : 64;
    return m >= 64 && k <= deepest && n * k <= 1 << 15 && m * n > IN_PLACE_RESULTS &&
           reads_in_place();
}
