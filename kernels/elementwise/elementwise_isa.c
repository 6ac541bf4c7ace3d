/* elementwise_isa.c: the loops of all rows for one instruction set.
 *
 * Compiled once for each instruction set with -DKERNEL_ISA=portable, avx2 or avx512 and the flags
 * that it needs.
 *
 * Invariant: nothing but the table leaves this file, so no function compiled for a wider machine
 * can be picked by the linker for a narrower one.
 */
#include "elementwise.h"
#include "gamma_functions.h"

#include <math.h>

/* Each template stands on the one before it. */
#define LANES_DTYPE 32
#include "lanes.h"

#include "lanes_exp.h"

#include "lanes_tanh.h"

#include "lanes_functions.h"

#include "elementwise_loops.h"

#include "row_loops.h"

#include "network_loops.h"

#include "norm_loops.h"

#include "pool_loops.h"
#undef LANES_DTYPE

#define LANES_DTYPE 64
#include "lanes.h"

#include "lanes_exp.h"

#include "lanes_tanh.h"

#include "lanes_functions.h"

#include "elementwise_loops.h"

#include "row_loops.h"

#include "network_loops.h"

#include "norm_loops.h"

#include "pool_loops.h"
#undef LANES_DTYPE

#define LOOP_ENTRY(id)                                                                             \
    [LOOP_##id] = {{id##_assign_32, id##_accumulate_32}, {id##_assign_64, id##_accumulate_64}},
#define ROW1(id, ...) LOOP_ENTRY(id) LOOP_ENTRY(id##_dx)
#define ROW2(id, ...) LOOP_ENTRY(id) LOOP_ENTRY(id##_da) LOOP_ENTRY(id##_db)
#define ROW3(id, ...) LOOP_ENTRY(id) LOOP_ENTRY(id##_da) LOOP_ENTRY(id##_db) LOOP_ENTRY(id##_dc)

const struct kernel_isa LANES_JOIN(kernel_isa_, KERNEL_ISA) = {
    .name = LANES_TEXT(KERNEL_ISA),
    .vector_bytes = sizeof(vec_64),
    .loop =
        {
#include "elementwise.def"
        },
    .sum = {row_sum_32, row_sum_64},
    .max = {row_max_32, row_max_64},
    .max_into = {row_max_into_32, row_max_into_64},
    .fill = {row_fill_32, row_fill_64},
    .fold = {row_fold_32, row_fold_64},
    .exp_shift = {row_exp_shift_32, row_exp_shift_64},
    .lstm = {row_lstm_32, row_lstm_64},
    .lstm_back = {row_lstm_back_32, row_lstm_back_64},
    .softmax = {row_softmax_32, row_softmax_64},
    .softmax_gradient = {row_softmax_gradient_32, row_softmax_gradient_64},
    .softmax_back = {row_softmax_back_32, row_softmax_back_64},
    .norm_spread = {norm_spread_32, norm_spread_64},
    .norm_apply = {norm_apply_32, norm_apply_64},
    .norm_sums = {norm_sums_32, norm_sums_64},
    .norm_back = {norm_back_32, norm_back_64},
    .pool_max = {pool_max_32, pool_max_64},
    .fused_loops = &LANES_JOIN(kernel_fused_loops_, KERNEL_ISA),
    .hash = LANES_JOIN(kernel_hash_, KERNEL_ISA),
    .gemm_panels = LANES_JOIN(kernel_gemm_panels_, KERNEL_ISA),
    .convolution = &LANES_JOIN(kernel_convolution_, KERNEL_ISA),
};
