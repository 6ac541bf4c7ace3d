/* collect_overhead.c: what observing adds to the times that it observes.
 *
 * The tape's side measures it when a profile begins. What counting takes lies outside of these
 * times (hook->apart).
 */
#include "collect.h"

void collect_overhead_measure(struct collect_overhead *overhead, const struct collect_clock *clock,
                              const struct tape_collect_options *options)
{
    *overhead = (struct collect_overhead){0};
    if (clock->read != clock->peek) /* a clock that moves when it is read, by as much as it says */
        return;
    if (options->time != TAPE_TIME_EXACT || options->calibrate == NULL)
        return;
    options->calibrate(clock->read, &overhead->forward_ticks, &overhead->backward_ticks);
}
