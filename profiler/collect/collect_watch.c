/* collect_watch.c: see collect_watch.h.
 *
 * The times between looks are drawn at random: a fixed period would fall into step with the
 * program's own. Where nothing is found they grow, so that a program at rest is not woken for
 * nothing; a look counts as much time as passed since the one before it, so that the estimate stays
 * unbiased.
 */
#include "collect_watch.h"

#include "collect.h"

enum {
    PERIOD_NS = 1000000,
    MOST_PERIOD_NS = 16000000,
    AGAIN_MOST = 16 /* looks at a thread that does not run; it is at nothing then */
};

/* Between half the period and 3/2 of it. */
static uint64_t watch_interval(struct collect_watch *watch)
{
    return watch->period_ns / 2 + collect_random(&watch->random, watch->period_ns);
}

static uint64_t watch_tick(void *payload)
{
    struct collect_watch *watch = payload;
    enum tape_looked (*look)(bool again, uint64_t now) =
        __atomic_load_n(&watch->look, __ATOMIC_ACQUIRE);
    if (look == NULL) {
        watch->again = 0;
        return MOST_PERIOD_NS;
    }
    const enum tape_looked looked = look(watch->again > 0, watch->clock->peek());
    watch->found = (watch->again > 0 && watch->found) || looked == TAPE_LOOKED_FOUND;
    if (looked == TAPE_LOOKED_PENDING && watch->again++ < AGAIN_MOST)
        return TAPE_LOOK_NS;
    watch->again = 0;
    if (watch->found)
        watch->period_ns = PERIOD_NS;
    else if (watch->period_ns < MOST_PERIOD_NS)
        watch->period_ns += watch->period_ns / 16;
    return watch_interval(watch);
}

const char *collect_watch_begin(struct collect_watch *watch, const struct collect_clock *clock,
                                enum tape_looked (*look)(bool again, uint64_t now))
{
    watch->clock = clock;
    __atomic_store_n(&watch->look, look, __ATOMIC_RELEASE);
    if (watch->helper.runs)
        return NULL;
    watch->random = clock->peek() * UINT64_C(0x9E3779B97F4A7C15) | 1;
    watch->period_ns = PERIOD_NS;
    return collect_helper_begin(&watch->helper, PERIOD_NS, watch_tick, watch);
}

void collect_watch_end(struct collect_watch *watch)
{
    __atomic_store_n(&watch->look, NULL, __ATOMIC_RELEASE);
}
