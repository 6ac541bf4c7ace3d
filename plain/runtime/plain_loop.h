/* plain_loop.h: what records of loops and of nests share; in plain_loop.c. */
#ifndef PLAIN_LOOP_H
#define PLAIN_LOOP_H

#include <tapescope/ad_plain.h>

#include "plain_calls.h"

#include <stdbool.h>
#include <stdint.h>

/* A number from before the loop. */
struct loop_scalar {
    double value;
    uint64_t index;
};

/* An array's elements as operands: parts of consecutive indices, or of constants. `part` has room
 * for `most`. */
struct loop_look {
    struct ad_plain_operand_ *part;
    int n, most;
    bool full, active;
};

/* `active` of a call that did not come, in place of results that are recorded: no double of the
 * program was ever a variable, so nothing was looked at, and nothing is to be forgotten. As in
 * plain/pass/pass_derive.h. */
#define LOOP_IDLE UINT64_MAX

/* Looks at n numbers that are `step` bytes apart. False: a check does not fit. */
bool plain_loop_look(struct loop_look *s, const char *at, int64_t step, int64_t n, uint32_t tag);

/* What lies at n places, `step` bytes apart, has the index and tag `first`, and on by `by`. */
void plain_loop_name(const char *at, int64_t step, int64_t n, uint64_t first, int64_t by);
void plain_loop_forget(const char *at, int64_t step, int64_t n);

#endif
