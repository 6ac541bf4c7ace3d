/* report_live.h: the gauge of a running program, as lines of text.
 *
 * Invariant: a gauge has exactly the rows that it was asked for, and none of them takes more
 * columns than the style's width; the same state gives the same bytes.
 */
#ifndef PROFILER_REPORT_REPORT_LIVE_H
#define PROFILER_REPORT_REPORT_LIVE_H

#include "analyze_live.h"
#include "report.h"

struct report_live {
    const struct analyze_live_view *view; /* NULL: nothing is known yet */
    const char *program;
    uint64_t now_ns;     /* by the clock of the view */
    uint64_t running_ns; /* since the program began */
    uint64_t cpu_ns;     /* processor time that it has used */
    double cores;        /* processors that it uses at this time */
    unsigned rows;       /* 1 or more */
    int sort;            /* enum report_sort; -1: by time, or by bytes where none is measured */
    bool has_keys;       /* the gauge answers to keys, */
    bool shows_keys;     /* and shows them */
    bool is_paused;      /* it shows what was then */
};

/* Writes the gauge: `rows` lines with a line end each, in colours if the style says so. */
void report_live(const struct report_live *live, const struct report_style *style);

#endif
