/* segment.c: see segment.h: which loops are used, and the names of the kinds. */
#include "segment.h"

#include "elementwise.h"

const char *const kernel_segment_name[KERNEL_SEGMENT_KINDS] = {
#define NAME(name) [KERNEL_SEGMENT_##name] = #name,
    KERNEL_SEGMENTS(NAME)[KERNEL_SEGMENT_custom] = "custom"};

const struct kernel_segment_loops *kernel_segment_loops_get(void)
{
    return kernel_isa_get()->segments;
}
