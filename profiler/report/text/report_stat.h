/* report_stat.h: what repeated runs of one program cost: mean, standard deviation, least. */
#ifndef PROFILER_REPORT_REPORT_STAT_H
#define PROFILER_REPORT_REPORT_STAT_H

#include "report.h"

/* What is measured of each run. Times in ns. */
enum stat_metric {
    STAT_WALL, /* of the whole process, from start to end */
    STAT_FORWARD,
    STAT_BACKWARD,
    STAT_RECOMPUTE,    /* where functions of checkpoints ran again */
    STAT_TAPE,         /* bytes handed out */
    STAT_PEAK,         /* bytes of one tape */
    STAT_RATIO,        /* forward, backward and recomputation's time over forward time */
    STAT_PRIMAL,       /* of another program, from start to end */
    STAT_PRIMAL_RATIO, /* wall time over the other program's */
    STAT_METRICS,
};

/* One metric over the runs: mean and standard deviation by Welford's recurrence (Technometrics 4,
 * 1962, doi:10.1080/00401706.1962.10490022). */
struct stat_series {
    size_t n;
    double mean, squares, least, most;
};

void stat_add(struct stat_series *series, double value);
/* Of the sample: over n - 1; 0 for fewer than two values. */
double stat_deviation(const struct stat_series *series);

struct report_stat {
    const char *const *command; /* ends with NULL */
    const char *primal;         /* NULL: none */
    size_t warmup;
    bool sampled;                            /* times but wall times are estimates */
    struct stat_series series[STAT_METRICS]; /* those without values are not shown */
};

/* The table. */
void report_stat_print(const struct report_stat *stat, const struct report_style *style);

#endif
