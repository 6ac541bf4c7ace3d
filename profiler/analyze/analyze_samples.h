/* analyze_samples.h: samples joined with symbols: where the processor's time went, by line.
 *
 * May include: analyze.h.
 * Invariant: `sum` is the exact sum of the lines, and of all samples of the profile. All of it is
 * estimated from samples: n of them have a standard error of sqrt(n).
 */
#ifndef PROFILER_ANALYZE_SAMPLES_H
#define PROFILER_ANALYZE_SAMPLES_H

#include "analyze.h"

/* What a sample found a thread at. */
enum prof_share {
    PROF_OTHER,    /* code that has nothing to do with tapes */
    PROF_FORWARD,  /* an op, or the formula of a scalar statement */
    PROF_BACKWARD, /* a pullback, or what else a sweep does */
    PROF_RECOMPUTE,
    PROF_SHARES
};

struct prof_sampled {
    uint64_t count[PROF_SHARES];
    uint64_t cpu_ns[PROF_SHARES];
    uint64_t wall_ns[PROF_SHARES]; /* beyond cpu_ns the thread waited */
};

/* A source line; without one, a function of a module. */
struct prof_sampled_line {
    const char *file, *function, *module; /* NULL: unknown */
    uint32_t line;                        /* 0: unknown */
    struct prof_names ops;
    struct prof_sampled cost;
};

struct prof_sampling {
    const struct prof_analysis *analysis;
    struct prof_sampled_line *line; /* by file, line, function, module */
    size_t n_lines;
    struct prof_sampled sum;
    uint64_t fired, recorded, partial, lost, shared; /* of all threads; shared: of `sum` */
};

/* Joins the samples of the analysis' profile (both borrowed). NULL: no memory. To be freed with
 * prof_sampling_free. */
struct prof_sampling *prof_analyze_samples(const struct prof_analysis *analysis);
void prof_sampling_free(struct prof_sampling *sampling);

/* The lines merged by line, function or op; *n of them, the caller's to free(). NULL: no memory. */
struct prof_sampled_line *prof_sampling_group(const struct prof_sampling *sampling, enum prof_by by,
                                              size_t *n);

void prof_sampled_add(struct prof_sampled *a, const struct prof_sampled *b);
/* Sums over what threads were found at. */
uint64_t prof_sampled_count(const struct prof_sampled *cost);
uint64_t prof_sampled_cpu(const struct prof_sampled *cost);
uint64_t prof_sampled_waiting(const struct prof_sampled *cost);
/* The standard error of a time that n samples stand for: ns / sqrt(n). */
uint64_t prof_sampled_error(uint64_t ns, uint64_t n);

#endif
