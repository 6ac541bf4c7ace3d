/* collect_helper.h: a thread of the collector's own in the user's process. It blocks all signals,
 * so that no signal of the program's ever comes to it, and sleeps between its ticks.
 */
#ifndef COLLECT_HELPER_H
#define COLLECT_HELPER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct collect_helper {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool runs; /* atomic */
    bool stop;
    pid_t tid;
    uint64_t used_ns; /* processor time that it had used at its end */
    uint64_t first_ns;
    uint64_t (*tick)(void *payload);
    void *payload;
};

/* Begins the thread, which calls tick after first_ns, and then each time after as many ns as tick
 * has returned. NULL, or why it cannot be had. */
const char *collect_helper_begin(struct collect_helper *helper, uint64_t first_ns,
                                 uint64_t (*tick)(void *payload), void *payload);
/* Processor time that it has used, in ns. */
uint64_t collect_helper_ns(const struct collect_helper *helper);
/* Ends it, which may be in `tick`: without any lock that tick takes. Nothing if it does not run. */
void collect_helper_join(struct collect_helper *helper);
/* In the child of a fork, where it does not exist. */
void collect_helper_forget(struct collect_helper *helper);

#endif
