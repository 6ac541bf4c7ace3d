/* common_rounds.h: two programs measured in turn, and the row that says how they compare.
 *
 * Invariant: a ratio is made of two rounds that ran one after the other, so that what changes
 * slowly on the machine falls on both.
 */
#ifndef COMMON_ROUNDS_H
#define COMMON_ROUNDS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ROUNDS_MAX_METRICS = 8, ROUNDS_MAX = 1000 };

/* One of the two. round() works for so many seconds and puts a figure for each metric into result.
 * It returns false if it could not, and has said why. */
struct rounds_side {
    const char *name;
    bool (*round)(void *context, double seconds, double *result);
    void *context;
};

struct rounds_plan {
    const char *suite, *case_name, *unit;
    const char *metric[ROUNDS_MAX_METRICS]; /* NULL: measured, but not printed */
    int n_metrics;
    bool elsewhere; /* ours works in a process that goes on: its processor time is not known yet */
    int rounds;     /* 1 to ROUNDS_MAX */
    double seconds; /* a round, on each side */
};

/* A warm-up of both, then the rounds: ours, peer, ours, peer, ... Prints one JSON object a line and
 * metric on standard output: medians of the rounds, and the median of their ratios ours / peer.
 * Standard error tells of rounds of one side that differ a lot, and of a busy machine. Returns
 * false, having printed no row, if a round fails. */
bool rounds_compare(const struct rounds_plan *plan, const struct rounds_side *ours,
                    const struct rounds_side *peer);

/* A round() of work that is done again and again: its mean time in nanoseconds, as one figure. The
 * context is a struct rounds_repeated; run() returns false if it failed, and has said why. */
struct rounds_repeated {
    bool (*run)(void *of);
    void *of;
};
bool rounds_repeat(void *context, double seconds, double *result);

/* Prints one row on standard output. Figures are printed with nine digits, ratios with four. */
void rounds_row(const char *suite, const char *case_name, const char *metric, double ours,
                const char *peer_name, double peer, double ratio, const char *unit);

/* The middle value (the upper one of two); reorders the values. NaN if there are none. */
double rounds_median(double *values, size_t n);

/* Nanoseconds, a whole number, of a clock that never goes back. */
double rounds_now(void);

#ifdef __cplusplus
}
#endif

#endif
