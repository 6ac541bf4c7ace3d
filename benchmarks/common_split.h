/* common_split.h: how well samples tell two lines of a known ratio apart.
 *
 * Line A does exactly what line B does, three times as often, so that it takes three quarters of
 * the time of both, forward and backward: whatever samples say else is an error.
 */
#ifndef COMMON_SPLIT_H
#define COMMON_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

enum { SPLIT_PERIODS = 12 };

/* Periods of the program in ns, from 40 us to 8 ms: parts, multiples and none of a sampling period
 * of 1 or 4 ms. */
extern const uint64_t split_periods[SPLIT_PERIODS];

/* In percentage points of the time of both lines; *_se: the standard error that so many samples
 * have. */
struct split_error {
    double forward_pp, backward_pp, forward_se, backward_se;
};

/* Where a period waits for SPLIT_WAIT_NS: nowhere, before line A, before line B. */
enum split_wait { SPLIT_NO_WAIT, SPLIT_WAIT_BEFORE_A, SPLIT_WAIT_BEFORE_B };
enum { SPLIT_WAIT_NS = 2100000, SPLIT_MOST_THREADS = 4 };

/* A program of that period, in so many threads at once, each with a tape of its own. scalar:
 * statements, else ops on tensors. */
struct split_program {
    bool scalar;
    uint64_t period_ns;
    enum split_wait wait;
    int threads;
};

/* Repeats a program for so many seconds under samples at `hz` a second, whose profile goes to
 * `file` and is removed. False: it failed, and why is on standard error. One at a time. */
bool split_measure(const struct split_program *program, double seconds, unsigned hz,
                   const char *file, struct split_error *error);

#endif
