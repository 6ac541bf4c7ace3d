/* collect_overhead.c: what observing adds to the times that it observes.
 *
 * Between the two readings of the clock that enclose an op there is the time of one reading.
 * Readings of a sweep are chained, so that there the counters' updates are enclosed as well. Both
 * are measured when a profile begins, as the least of several batches: what is more than that is
 * the system's or the cache's.
 */
#include "collect.h"

enum { BATCHES = 32, READINGS = 64 };

static uint64_t batch_forward(uint64_t (*read)(void))
{
    uint64_t first = read(), last = first;
    for (int i = 0; i < READINGS; i++)
        last = read();
    return last - first;
}

/* The counters that a pullback's stamp goes to; volatile stands for their being the tape's. */
static uint64_t batch_backward(uint64_t (*read)(void))
{
    static _Thread_local volatile uint64_t counter[3];
    uint64_t first = read(), last = first;
    for (int i = 0; i < READINGS; i++) {
        uint64_t now = read();
        counter[0] += now - last;
        counter[1] += now - last;
        counter[2]++;
        last = now;
    }
    return last - first;
}

static double overhead_least(uint64_t (*batch)(uint64_t (*read)(void)), uint64_t (*read)(void))
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < BATCHES; i++) {
        uint64_t ticks = batch(read);
        best = ticks < best ? ticks : best;
    }
    return (double)best / READINGS;
}

void collect_overhead_measure(struct collect_overhead *overhead, const struct collect_clock *clock)
{
    *overhead = (struct collect_overhead){0};
    if (clock->read != clock->peek) /* a clock that moves when it is read, by as much as it says */
        return;
    overhead->forward_ticks = overhead_least(batch_forward, clock->read);
    overhead->backward_ticks = overhead_least(batch_backward, clock->read);
}
