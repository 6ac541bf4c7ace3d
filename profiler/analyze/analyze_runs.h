/* analyze_runs.h: several profiles of one program as one: what a run costs, and how much of that is
 * chance.
 *
 * Invariant: the mean of one run is that run.
 */
#ifndef PROFILER_ANALYZE_RUNS_H
#define PROFILER_ANALYZE_RUNS_H

#include "analyze.h"

/* Runs, and their mean: each line with the mean of its costs, 0 where a run has no such line. Its
 * strings are the runs', which must outlive it; its profile is the one of the middle run. */
struct analyze_runs {
    const struct analyze_result *const *run; /* borrowed */
    size_t n, middle; /* middle: the run with the middle time in ops and sweeps */
    struct analyze_result mean;
    struct analyze_line *line; /* of the mean; owned, NULL where it is the only run's */
};

void analyze_runs_make(struct analyze_runs *runs, const struct analyze_result *const *run,
                       size_t n);
void analyze_runs_free(struct analyze_runs *runs);

/* What a cost counts for. */
typedef uint64_t analyze_value_fn(void *payload, const struct analyze_cost *cost);

/* The lines of each run of two sides in a view. */
struct analyze_noise {
    const struct analyze_runs *side[2];
    enum analyze_by by;
    struct analyze_line **line[2];
    size_t *n_lines[2];
    double errors; /* so many standard errors of a change are what chance makes */
};

/* ANALYZE_BY_LINE keeps the ops of a line apart, as a join does. The caller frees it. */
void analyze_noise_make(struct analyze_noise *noise, const struct analyze_runs *base,
                        const struct analyze_runs *now, enum analyze_by by);
void analyze_noise_free(struct analyze_noise *noise);

/* The standard error of the change from the base's mean of a row to the other's. line[i]: of side
 * i, NULL: that has none; both NULL: of all. Negative: not known, both sides are one run, whose
 * times are exact. */
double analyze_noise_error(const struct analyze_noise *noise,
                           const struct analyze_line *const line[2], analyze_value_fn *value,
                           void *payload);

#endif
