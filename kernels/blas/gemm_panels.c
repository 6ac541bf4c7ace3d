/* gemm_panels.c: which products go by panels.
 *
 * Measured against OpenBLAS 0.3.21 on a Zen 3 (AVX2), one thread, over 5800 products of extents
 * from 1 to 1500, of all three kinds and both dtypes: by panels they take 0.55 of the time on
 * average (docs/decisions/102-products-go-by-panels.md). BLAS is faster where the result is
 * narrower than a vector, where a long first operand is read across its rows, where the rows of a
 * second operand come from beyond the second-level cache, and where the product is so large that
 * it pays to copy the first operand as well.
 */
#include "gemm_panels.h"

#include "elementwise.h"

enum {
    LARGEST = 1 << 27, /* multiplications */
    FAR_DEPTH = 128,
    FAR_ELEMENTS = 1 << 15,
    NEAR_BYTES = 1 << 19
};

gemm_panels_function *gemm_panels_for(int dtype, const struct gemm_panels *all)
{
    const bool a_is_far = all->a_row == 1 && all->m > 1 && all->k >= FAR_DEPTH &&
                          (int64_t)all->m * all->k > FAR_ELEMENTS;
    const bool b_is_far = !all->b_transposed &&
                          all->k * all->b_leading * (int64_t)kernel_dtype_bytes(dtype) > NEAR_BYTES;
    const double size = (double)all->m * all->n * all->k;
    const int lanes = dtype == KERNEL_F32 ? 8 : 4;
    if (all->n < lanes || a_is_far || b_is_far || size > LARGEST)
        return NULL;
    return kernel_isa_get()->gemm_panels[dtype];
}
