/* collect_watch.h: a thread that looks at statements, for estimates of their time in a profile
 * whose other times are exact. It interrupts nothing: it reads what the recording threads write
 * anyway (tape_hook.watch).
 */
#ifndef COLLECT_WATCH_H
#define COLLECT_WATCH_H

#include "collect_helper.h"
#include "tape_hook.h"

struct collect_clock;

struct collect_watch {
    struct collect_helper helper;
    const struct collect_clock *clock;
    enum tape_looked (*look)(bool again, uint64_t now); /* atomic; NULL: nothing is observed */
    /* The helper thread's. */
    uint64_t random;
    uint64_t period_ns;
    uint32_t again; /* how often the last first look was followed by others; 0: one comes next */
    bool found;     /* by any of them */
};

/* From now on: once in an observation. NULL, or why there are no looks. Under the collector's
 * mutex. */
const char *collect_watch_begin(struct collect_watch *watch, const struct collect_clock *clock,
                                enum tape_looked (*look)(bool again, uint64_t now));
/* The observation ends; another may begin. */
void collect_watch_end(struct collect_watch *watch);

#endif
