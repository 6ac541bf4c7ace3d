/* exhaustive.h: whether the loops that try every case do so, or a fixed sample of the cases.
 *
 * The tests take a sample, always the same. scripts/soak sets TAPESCOPE_EXHAUSTIVE, and then every
 * case is tried.
 */
#ifndef EXHAUSTIVE_H
#define EXHAUSTIVE_H

#include <stdbool.h>
#include <stdlib.h>

static inline bool exhaustive_is_asked(void)
{
    return getenv("TAPESCOPE_EXHAUSTIVE") != NULL;
}

/* Of a loop over cases, one of which in `step` is in the sample. */
static inline unsigned exhaustive_step(unsigned step)
{
    return exhaustive_is_asked() ? 1 : step;
}

#endif
