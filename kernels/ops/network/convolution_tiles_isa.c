/* convolution_tiles_isa.c: the loops of convolution_tiles.h for one instruction set.
 *
 * Compiled once for each instruction set. The portable one has none: BLAS chooses its own kernels
 * there, and is faster than loops of single elements.
 */
#include "convolution_tiles.h"

#include <math.h>
#include <stddef.h>

#define LANES_DTYPE 32
#include "lanes.h"

#if LANES_ISA > 1

#include "convolution_loops.h"
#undef LANES_DTYPE

#define LANES_DTYPE 64
#include "lanes.h"

#include "convolution_loops.h"
#undef LANES_DTYPE

const struct convolution_tiles LANES_JOIN(kernel_convolution_, KERNEL_ISA) = {
    .frame = {convolution_frame_32, convolution_frame_64},
    .spread = {convolution_spread_32, convolution_spread_64},
    .weigh = {convolution_weigh_32, convolution_weigh_64},
    .weigh_tiles = {convolution_weigh_tiles_32, convolution_weigh_tiles_64},
    .turn = {convolution_turn_32, convolution_turn_64},
};

#else

const struct convolution_tiles LANES_JOIN(kernel_convolution_, KERNEL_ISA) = {.frame = {NULL}};

#endif
