/* report_stat.h: what repeated runs of one program cost: mean, standard deviation, least. */
#ifndef PROFILER_REPORT_REPORT_STAT_H
#define PROFILER_REPORT_REPORT_STAT_H

#include "report.h"

/* What is measured of each run. Times in ns. */
enum report_stat_metric {
    REPORT_STAT_WALL, /* of the whole process, from start to end */
    REPORT_STAT_FORWARD,
    REPORT_STAT_BACKWARD,
    REPORT_STAT_RECOMPUTE,    /* where functions of checkpoints ran again */
    REPORT_STAT_TAPE,         /* bytes handed out */
    REPORT_STAT_PEAK,         /* bytes of one tape */
    REPORT_STAT_RATIO,        /* forward, backward and recomputation's time over forward time */
    REPORT_STAT_PRIMAL,       /* of another program, from start to end */
    REPORT_STAT_PRIMAL_RATIO, /* wall time over the other program's */
    REPORT_STAT_METRICS,
};

/* One metric over the runs: mean and standard deviation by Welford's recurrence (Technometrics 4,
 * 1962, doi:10.1080/00401706.1962.10490022). */
struct report_stat_series {
    size_t n;
    double mean, squares, least, most;
};

void report_stat_add(struct report_stat_series *series, double value);

struct report_stat {
    const char *const *command; /* ends with NULL */
    const char *primal;         /* NULL: none */
    size_t warmup;
    bool sampled;                                          /* times but wall times are estimates */
    struct report_stat_series series[REPORT_STAT_METRICS]; /* those without values are not shown */
};

/* The table. */
void report_stat_print(const struct report_stat *stat, const struct report_style *style);

#endif
