/* analyze.h: the rows of all tapes joined with symbols: what each source line cost.
 *
 * May include: profiler/format, profiler/symbols.
 * Invariant: `sum` is the exact sum of the lines, `total` comes from the tapes' own counters;
 * the two are equal but for ops that were under way when a living tape was read. Times in ns are
 * rounded so that the lines' times add up to the rounded time of their ticks.
 */
#ifndef PROFILER_ANALYZE_H
#define PROFILER_ANALYZE_H

#include "reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Cost of a line, a function, an op, or everything. peak_bytes counts the tape with the greatest
 * peak alone, so that the lines add up to a peak that really was. */
struct prof_cost {
#define X(name) uint64_t name;
    PROF_ROW_COUNTERS(X)
#undef X
    uint64_t forward_ns, backward_ns, recompute_ns;
};

/* A few distinct names in the order in which they were met; `more` if there were others. */
enum { PROF_NAMES = 4 };
struct prof_names {
    const char *name[PROF_NAMES];
    unsigned n;
    bool more;
};

struct prof_line {
    bool own;             /* of the tape itself (padding, seeds): no site */
    const char *file;     /* absolute; NULL: unknown */
    const char *function; /* NULL: unknown */
    const char *module;   /* path; NULL: unknown */
    uint32_t line;        /* 0: unknown */
    uint32_t function_line;
    uint64_t offset; /* where there is no file: in the function, or in the module */
    struct prof_names ops, kept_by;
    struct prof_cost cost;
};

struct prof_totals {
    uint64_t forward_ticks, backward_ticks, recompute_ticks;
    uint64_t forward_ns, backward_ns, recompute_ns;
    uint64_t handed_out_bytes, live_bytes;
    uint64_t peak_bytes, reserved_bytes, touched_bytes; /* the greatest of any one tape */
    uint64_t sweeps, records, tapes;
};

struct prof_symbols;

/* Called with one line of text for each file whose symbols cannot be used. */
typedef void prof_warn_fn(void *payload, const char *message);

struct prof_analysis {
    const struct prof_profile *profile;
    struct prof_symbols *symbols; /* owns the lines' strings */
    struct prof_line *line;       /* one for each {file, line, function, op}, in this order */
    size_t n_lines;
    size_t n_unlined;  /* of them: sites without line information */
    size_t n_unusable; /* files whose symbols could not be used */
    struct prof_cost sum;
    struct prof_totals total;
    prof_warn_fn *warn;
    void *warn_payload;
};

/* Joins the profile (borrowed; it must outlive the analysis). warn may be NULL. Returns NULL
 * when memory is exhausted. The caller frees it with prof_analysis_free. */
struct prof_analysis *prof_analyze(const struct prof_profile *profile, prof_warn_fn *warn,
                                   void *payload);
void prof_analysis_free(struct prof_analysis *analysis);

enum prof_by { PROF_BY_LINE, PROF_BY_FUNCTION, PROF_BY_OP };

/* The analysis' lines merged; the result holds *n lines, in the order of the source, and is the
 * caller's to free(); its strings belong to the analysis. NULL when memory is exhausted. */
struct prof_line *prof_analysis_group(const struct prof_analysis *analysis, enum prof_by by,
                                      size_t *n);

/* Adds b to a. */
void prof_cost_add(struct prof_cost *a, const struct prof_cost *b);

/* Adds the names of b that a lacks. */
void prof_names_add(struct prof_names *a, const struct prof_names *b);

/* In all phases. */
uint64_t prof_cost_ns(const struct prof_cost *cost);

/* Records, values and adjoints. */
uint64_t prof_cost_tape_bytes(const struct prof_cost *cost);

/* Files of the analysis whose path is `path`, or else ends in it at a "/"; NULL: all. Writes up
 * to `room` of them, each once, and returns how many there are. Pointers are equal for equal
 * files. */
size_t prof_analysis_files(const struct prof_analysis *analysis, const char *path,
                           const char **file, size_t room);

#endif
