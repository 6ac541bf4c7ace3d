/* collect_watch.c: see collect_watch.h.
 *
 * The times between looks are drawn at random: a fixed period would fall into step with the
 * program's own. Where nothing is found they grow, so that a program at rest is not woken for
 * nothing; a look counts as much time as passed since the one before it, so that the estimate stays
 * unbiased. The first looks come EARLY times as often, since a short program would be met by few.
 * Looks at sweeps have no time, but are counted: so one of EARLY is at sweeps as well.
 */
#include "collect_watch.h"

#include "collect.h"

enum {
    PERIOD_NS = 1000000,
    EARLY = 10,
    EARLY_LOOKS = 20 * EARLY,
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
    enum tape_looked (*look)(enum tape_look_kind kind, uint64_t now) =
        __atomic_load_n(&watch->look, __ATOMIC_ACQUIRE);
    if (look == NULL) {
        watch->again = 0;
        return MOST_PERIOD_NS;
    }
    const bool early = watch->early < EARLY_LOOKS;
    const enum tape_looked looked = look(watch->again > 0                   ? TAPE_LOOK_AGAIN
                                         : early && watch->number++ % EARLY ? TAPE_LOOK_RECORDING
                                                                            : TAPE_LOOK_FIRST,
                                         watch->clock->peek());
    watch->found = (watch->again > 0 && watch->found) || looked == TAPE_LOOKED_FOUND;
    if (looked == TAPE_LOOKED_PENDING && watch->again++ < AGAIN_MOST)
        return TAPE_LOOK_NS;
    watch->again = 0;
    if (watch->found) {
        watch->early += early;
        watch->period_ns = early ? PERIOD_NS / EARLY : PERIOD_NS;
    } else if (watch->period_ns < MOST_PERIOD_NS) {
        watch->period_ns += watch->period_ns / 16;
    }
    return watch_interval(watch);
}

const char *collect_watch_begin(struct collect_watch *watch, const struct collect_clock *clock,
                                enum tape_looked (*look)(enum tape_look_kind kind, uint64_t now))
{
    watch->clock = clock;
    __atomic_store_n(&watch->look, look, __ATOMIC_RELEASE);
    if (watch->helper.runs)
        return NULL;
    watch->random = clock->peek() * UINT64_C(0x9E3779B97F4A7C15) | 1;
    watch->period_ns = PERIOD_NS / EARLY;
    return collect_helper_begin(&watch->helper, PERIOD_NS / EARLY, watch_tick, watch);
}

void collect_watch_end(struct collect_watch *watch)
{
    __atomic_store_n(&watch->look, NULL, __ATOMIC_RELEASE);
}
