/* collect_overhead.c: what observing adds to the times that it observes.
 *
 * Between the two readings of the clock that enclose an op, or a pullback, there is the time of one
 * reading. It is measured when a profile begins, as the least of several batches: what is more than
 * that is the system's or the cache's. What counting takes lies outside of both (hook->apart).
 */
#include "collect.h"

enum { BATCHES = 32, READINGS = 64 };

static uint64_t overhead_readings(uint64_t (*read)(void))
{
    uint64_t first = read(), last = first;
    for (int i = 0; i < READINGS; i++)
        last = read();
    return last - first;
}

static double overhead_least(uint64_t (*read)(void))
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < BATCHES; i++) {
        uint64_t ticks = overhead_readings(read);
        best = ticks < best ? ticks : best;
    }
    return (double)best / READINGS;
}

void collect_overhead_measure(struct collect_overhead *overhead, const struct collect_clock *clock)
{
    *overhead = (struct collect_overhead){0};
    if (clock->read != clock->peek) /* a clock that moves when it is read, by as much as it says */
        return;
    overhead->forward_ticks = overhead_least(clock->read);
    overhead->backward_ticks = overhead->forward_ticks;
}
