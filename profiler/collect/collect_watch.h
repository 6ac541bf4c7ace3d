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
    /* Atomic; NULL: nothing is observed. */
    enum tape_looked (*look)(enum tape_look_kind kind, uint64_t now);
    /* The helper thread's. */
    uint64_t random;
    uint64_t period_ns;
    uint32_t early;  /* looks that found something, up to EARLY_LOOKS */
    uint32_t number; /* of first looks */
    uint32_t again;  /* how often the last first look was followed by others; 0: one comes next */
    bool found;      /* by any of them */
};

/* From now on: once in an observation. NULL, or why there are no looks. Under the collector's
 * mutex. */
const char *collect_watch_begin(struct collect_watch *watch, const struct collect_clock *clock,
                                enum tape_looked (*look)(enum tape_look_kind kind, uint64_t now));
/* The observation ends; another may begin. */
void collect_watch_end(struct collect_watch *watch);

#endif
