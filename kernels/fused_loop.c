/* fused loop.c: see fused loop.h: which loops are used, and the names of the kinds. */
#include "fused_loop.h"

#include "elementwise.h"

const char *const kernel_fused_loop_name[KERNEL_FUSED_LOOP_KINDS] = {
#define NAME(name) [KERNEL_FUSED_LOOP_##name] = #name,
    KERNEL_FUSED_LOOPS(NAME)[KERNEL_FUSED_LOOP_custom] = "custom", [KERNEL_FUSED_LOOP_compiled] =
                                                                       "loop"};

const struct kernel_fused_loop_loops *kernel_fused_loop_loops_get(void)
{
    return kernel_isa_get()->fused_loops;
}
