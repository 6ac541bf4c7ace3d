/* analyze_live.h: what a program does at this time, from one state of its growing profile to the
 * next.
 *
 * Invariant: a view holds differences of running totals and nothing estimated beside them.
 */
#ifndef PROFILER_ANALYZE_LIVE_H
#define PROFILER_ANALYZE_LIVE_H

#include "analyze.h"

#define PROF_LIVE_ROW(X, NAME, ...) PROF_LIVE_##NAME,
enum prof_live_phase {
    PHASE_LIST(PROF_LIVE_ROW, )
        PROF_LIVE_OUTSIDE, /* of ops and sweeps: processor time if sampled, else all other time */
    PROF_LIVE_PHASES
};
#undef PROF_LIVE_ROW

enum { PROF_LIVE_HISTORY = 512 };

struct prof_live_view {
    const struct prof_analysis *analysis; /* of the state; its profile's numbers alone are valid */
    bool is_sampled, has_bytes;
    uint64_t taken_ns; /* when the last state was taken, by the caller's clock */
    /* Of about the last second: how long that was, time in each phase, and sweeps and steps. */
    uint64_t span_ns, phase_ns[PROF_LIVE_PHASES], span_sweeps, span_steps;
    /* Since the state before: which line took the most, in which phase and how much of it all. */
    uint64_t recent_ns, line_ns, all_ns;
    const struct prof_line *line; /* of the analysis; NULL: none took any */
    enum prof_live_phase line_phase;
    /* Live bytes of all tapes, the greatest of each stretch of time, from the beginning on. */
    uint64_t history[PROF_LIVE_HISTORY];
    unsigned n_history;
    bool has_steps;
    uint64_t steps;
};

struct prof_live;

struct prof_live *prof_live_new(void);
/* Takes the next state; now_ns: any clock that goes forward. */
void prof_live_take(struct prof_live *live, const struct read_profile *state, uint64_t now_ns);
/* The view; NULL: no state was taken yet. Valid until the next state. */
const struct prof_live_view *prof_live_view(const struct prof_live *live);
void prof_live_free(struct prof_live *live);

#endif
