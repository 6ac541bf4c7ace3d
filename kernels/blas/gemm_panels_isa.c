/* gemm_panels_isa.c: products by panels for one instruction set.
 *
 * Compiled once for each instruction set, and empty for the portable one: by vectors of one element
 * BLAS is faster.
 */
#include "gemm_panels.h"

#include <math.h>
#include <stddef.h>

#define LANES_DTYPE 32
#include "lanes.h"

#if LANES_ISA > 1
#include "gemm_panels_loops.h"
#undef LANES_DTYPE

#define LANES_DTYPE 64
#include "lanes.h"

#include "gemm_panels_loops.h"
#define PANELS(dtype) gemm_panels_##dtype
#else
#define PANELS(dtype) NULL
#endif
#undef LANES_DTYPE

gemm_panels_function *const LANES_JOIN(kernel_gemm_panels_, KERNEL_ISA)[2] = {PANELS(32),
                                                                              PANELS(64)};
