/* gemm_panels.c: which products go by panels.
 *
 * Measured against OpenBLAS 0.3.21, one thread, over thousands of products of extents from 1 to
 * 1500, of all three kinds and both dtypes (docs/decisions/102-products-go-by-panels.md). On AVX2
 * BLAS is faster where the result is narrower than a vector, where a long first operand is read
 * across its rows, where the rows of a second operand come from beyond the second-level cache, and
 * where the product is so large that it pays to copy the first operand as well. On AVX-512 it has
 * loops that copy nothing: for a few rows, and for small products, but with a second operand that
 * is transposed they are slow.
 */
#include "gemm_panels.h"

#include "elementwise.h"
#include "gemm.h"

enum {
    LARGEST = 1 << 27, /* multiplications */
    FAR_DEPTH = 128,
    FAR_ELEMENTS = 1 << 15,
    NEAR_BYTES = 1 << 19,
    VECTOR_OF_AVX512 = 64
};

/* Whether panels read an operand again and again across its rows, or from beyond the second-level
 * cache: BLAS copies it once. */
static bool operand_is_far(int dtype, const struct gemm_panels *all)
{
    const bool a_is_far = all->a_row == 1 && all->m > 1 && all->k >= FAR_DEPTH &&
                          (int64_t)all->m * all->k > FAR_ELEMENTS;
    return a_is_far || (!all->b_transposed &&
                        all->k * all->b_leading * (int64_t)kernel_dtype_bytes(dtype) > NEAR_BYTES);
}

gemm_panels_function *gemm_panels_for(int dtype, const struct gemm_panels *all)
{
    const struct kernel_isa *const isa = kernel_isa_get();
    const double size = (double)all->m * all->n * all->k;
    if (all->n < isa->vector_bytes / (int)kernel_dtype_bytes(dtype) || size > LARGEST)
        return NULL;
    const bool copies = all->m >= GEMM_FEW_ROWS && (all->b_transposed || size > GEMM_IN_PLACE);
    const bool blas = isa->vector_bytes == VECTOR_OF_AVX512 && gemm_reads_in_place()
                          ? !copies
                          : operand_is_far(dtype, all);
    return blas ? NULL : isa->gemm_panels[dtype];
}
