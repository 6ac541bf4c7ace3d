/* report_dump.h: the events of a timeline, one by one: what was recorded, and the pullbacks in the
 * order of the sweep.
 *
 * Invariant: memory grows with rows, scopes and threads, not with events.
 */
#ifndef PROFILER_REPORT_REPORT_DUMP_H
#define PROFILER_REPORT_REPORT_DUMP_H

#include "report.h"

struct report_dump_options {
    size_t limit;            /* events; 0: all */
    uint64_t from_ns, to_ns; /* since the start: what was under way within; both included */
};

struct report_dump;

/* Begins a dump, with its heading. The style's phases choose ops and
 * recomputation (forward) or sweeps and pullbacks (backward). What it is given must outlive it. */
struct report_dump *report_dump_open(const struct analyze_result *analysis,
                                     const struct report_dump_options *options,
                                     const struct report_style *style);
/* The next event of the profile. */
void report_dump_event(struct report_dump *dump, const struct read_event *event);
/* Ends it: where all events came (`whole`), with what was left out; else it stays cut off, a JSON
 * document too. */
void report_dump_close(struct report_dump *dump, bool whole);

#endif
