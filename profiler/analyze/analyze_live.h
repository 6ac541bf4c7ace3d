/* analyze_live.h: what a program does at this time, from one state of its growing profile to the
 * next.
 *
 * Invariant: a view holds differences of running totals and nothing estimated beside them.
 */
#ifndef PROFILER_ANALYZE_LIVE_H
#define PROFILER_ANALYZE_LIVE_H

#include "analyze.h"

#define ANALYZE_LIVE_ROW(X, NAME, ...) ANALYZE_LIVE_##NAME,
enum analyze_live_phase {
    PHASE_LIST(ANALYZE_LIVE_ROW, )
        ANALYZE_LIVE_OUTSIDE, /* of ops and sweeps: processor time if sampled, else all */
    ANALYZE_LIVE_PHASES
};
#undef ANALYZE_LIVE_ROW

enum { ANALYZE_LIVE_HISTORY = 512 };

struct analyze_live_view {
    const struct analyze_result *analysis; /* of the state; its profile's numbers alone are valid */
    bool is_sampled, has_bytes;
    uint64_t taken_ns; /* when the last state was taken, by the caller's clock */
    /* Of about the last second: how long that was, time in each phase, and sweeps and steps. */
    uint64_t span_ns, phase_ns[ANALYZE_LIVE_PHASES], span_sweeps, span_steps;
    /* Since the state before: which line took the most, in which phase and how much of it all. */
    uint64_t recent_ns, line_ns, all_ns;
    const struct analyze_line *line; /* of the analysis; NULL: none took any */
    enum analyze_live_phase line_phase;
    /* Live bytes of all tapes, the greatest of each stretch of time, from the beginning on. */
    uint64_t history[ANALYZE_LIVE_HISTORY];
    unsigned n_history;
    bool has_steps;
    uint64_t steps;
};

struct analyze_live;

struct analyze_live *analyze_live_new(void);
/* Takes the next state; now_ns: any clock that goes forward. */
void analyze_live_take(struct analyze_live *live, const struct read_profile *state,
                       uint64_t now_ns);
/* The view; NULL: no state was taken yet. Valid until the next state. */
const struct analyze_live_view *analyze_live_view(const struct analyze_live *live);
void analyze_live_free(struct analyze_live *live);

#endif
