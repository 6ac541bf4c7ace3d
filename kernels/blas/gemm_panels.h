/* gemm_panels.h: matrix products by own loops, where they take less time than BLAS.
 *
 * Internal to kernels/. The second operand is copied panel by panel, a few vectors of columns wide,
 * and each panel is multiplied with four rows of the first at a time, which are read where they
 * lie.
 */
#ifndef GEMM_PANELS_H
#define GEMM_PANELS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    GEMM_PANELS_BYTES = 24 << 10, /* of a panel, which stays in the first cache */
    GEMM_PANELS_ROWS = 4,
    GEMM_PANELS_VECTORS = 3
};

/* c [m,n] = start + a [m,k] b [k,n]; strides in elements. */
struct gemm_panels {
    const void *a, *b;
    const void *start; /* NULL: 0; or c itself */
    void *c;
    int64_t a_row, a_deep;
    int64_t b_leading; /* between its rows, or between its columns if it is transposed */
    int64_t c_leading, start_leading; /* 0: one row for all */
    int m, n, k;                      /* none is 0 */
    bool b_transposed;
};

typedef void gemm_panels_function(const struct gemm_panels *product);

/* The loops of one instruction set, by dtype; NULL where it has none. */
extern gemm_panels_function *const kernel_gemm_panels_portable[2],
    *const kernel_gemm_panels_avx2[2], *const kernel_gemm_panels_avx512[2];

/* What computes the product on the calling thread; NULL where BLAS is faster. */
gemm_panels_function *gemm_panels_for(int dtype, const struct gemm_panels *product);

#endif
