/* export.h: a profile in the form that another program reads.
 *
 * Invariant: what a consumer adds up is what the reports say: each cost is exported once, on the
 * call path and line that it belongs to, in whole nanoseconds, bytes and counts.
 */
#ifndef PROFILER_EXPORT_EXPORT_H
#define PROFILER_EXPORT_EXPORT_H

#include "analyze_space.h"
#include "analyze_tree.h"
#include "export_formats.def"

#include <stdio.h>

/* What a consumer can be shown, and how one command line names it. */
enum export_metric {
    EXPORT_TIME, /* all phases, and of samples other time */
    EXPORT_FORWARD,
    EXPORT_BACKWARD,
    EXPORT_RECOMPUTE,
    EXPORT_CALLS,
    EXPORT_TAPE,
    EXPORT_PEAK,
    EXPORT_OTHER, /* this and those below: of profiles with samples */
    EXPORT_WAITING,
    EXPORT_SAMPLES,
    EXPORT_METRICS,                   /* that a format of many figures has */
    EXPORT_LIFETIME = EXPORT_METRICS, /* bytes times us: rounded, so that only the rows add up */
    EXPORT_CHOICES                    /* of a format that has one */
};
extern const char *const export_metric_names[EXPORT_CHOICES + 1]; /* ends with NULL */
extern const char *const export_metric_units[EXPORT_METRICS];     /* nanoseconds, bytes, count */

/* What a cost's phase is called; `other` is READ_PHASE_NONE. */
extern const char *const export_phase_names[READ_PHASES];

uint64_t export_cost(const struct analyze_cost *cost, enum export_metric metric);
/* Whether this profile has it: false of what only samples tell in one without samples, and of
 * lifetimes where times are not exact. */
bool export_has(const struct read_profile *profile, enum export_metric metric);

struct export_job {
    const struct analyze_result *analysis;
    const struct analyze_tree *tree; /* from the outermost calls; `callers`: inverted */
    enum export_metric metric;       /* of formats that hold one alone */
    bool split;                      /* phases are side by side: as outermost frames, or columns */
    FILE *out;                       /* errors of writing stay with it */
    char *error;                     /* room for one line: why this profile cannot be exported */
    size_t error_room;
};

/* What a format needs of a job. */
enum export_needs {
    EXPORT_CALLERS = 1 << 0, /* an inverted tree */
    EXPORT_BINARY = 1 << 1,  /* nothing for a terminal */
    EXPORT_RANKS = 1 << 2,   /* of a set of ranks each apart: the analysis' `ranks` */
    EXPORT_PARTS = 1 << 3,   /* a tree with parts */
    EXPORT_SPLIT = 1 << 4,   /* the same if `split`, which it has */
    EXPORT_ORDER = 1 << 5,   /* it has `split`, for which it needs nothing */
};

struct export_format {
    const char *name, *opener, *has; /* what opens it; what it has */
    unsigned needs;
    /* Returns 0, or 1 with a line in job->error. */
    int (*write)(const struct export_job *job);
};

#define EXPORT_KIND_ROW(X, name, ...) EXPORT_KIND_##name,
enum export_kind { EXPORT_FORMATS(EXPORT_KIND_ROW, ) EXPORT_KINDS };
#undef EXPORT_KIND_ROW
extern const struct export_format export_formats[EXPORT_KINDS];
extern const char *const export_format_names[EXPORT_KINDS + 1]; /* ends with NULL */

#endif
