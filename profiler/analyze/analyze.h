/* analyze.h: the rows of all tapes joined with symbols: what each source line cost.
 *
 * Invariant: `sum` is the exact sum of the lines and of `left_out`, `total` comes from the tapes'
 * own counters; the two are equal but for ops that were under way when a living tape was read.
 * Times in ns are rounded so that the lines' times add up to the rounded time of their ticks.
 */
#ifndef PROFILER_ANALYZE_H
#define PROFILER_ANALYZE_H

#include "counters.def"
#include "read.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The whole numbers of a cost: the row's counters, of its times also the ns, and what samples say;
 * counters.def says what each is. untimed_calls: that took an unknown time. */
#define ANALYZE_COST_MEMBERS(X)                                                                    \
    ROW_COUNTERS(X)                                                                                \
    COUNTERS(ANALYZE_COST_NS, COUNTER_NONE, X) SAMPLE_COST_NAMES(X) X(untimed_calls)
#define ANALYZE_COST_NS(X, name, field, unit, phase, out, ...) ANALYZE_COST_NS_##unit(X, out)
#define ANALYZE_COST_NS_TICKS(X, out) X(out)
#define ANALYZE_COST_NS_COUNT(X, out)
#define ANALYZE_COST_NS_FLOPS(X, out)
#define ANALYZE_COST_NS_BYTES(X, out)

/* The member that is shown for a counter: of times the ns. */
#define ANALYZE_COST_SHOWN(unit, name, out) ANALYZE_COST_SHOWN_##unit(name, out)
#define ANALYZE_COST_SHOWN_TICKS(name, out) out
#define ANALYZE_COST_SHOWN_COUNT(name, out) name
#define ANALYZE_COST_SHOWN_FLOPS(name, out) name
#define ANALYZE_COST_SHOWN_BYTES(name, out) name

/* Cost of a line, a function, an op, or everything. peak_bytes counts the tape with the greatest
 * peak alone, so that the lines add up to a peak that really was. n samples have a standard error
 * of sqrt(n). */
struct analyze_cost {
#define X(name) uint64_t name;
    ANALYZE_COST_MEMBERS(X)
#undef X
    /* Bytes on the tape times the ns that each was live; sums of it are rounded. 0 where the
     * profile has no classes of bytes. */
    double byte_ns;
};

/* A few distinct names in the order in which they were met; `more` if there were others. */
enum { ANALYZE_NAMES = 4 };
struct analyze_names {
    const char *name[ANALYZE_NAMES];
    unsigned n;
    bool more;
};

/* Stands where the function's name does. */
#define ANALYZE_IDLE_NAME "(idle BLAS threads)"

struct analyze_line {
    bool own;             /* of the tape itself (padding, room in blocks): no site */
    bool idle;            /* threads of the library for products that ask for work: no site */
    const char *file;     /* absolute; NULL: unknown */
    const char *function; /* NULL: unknown */
    const char *module;   /* path; NULL: unknown */
    uint32_t line;        /* 0: unknown */
    uint32_t function_line;
    uint64_t offset; /* where there is no file: in the function, or in the module */
    struct analyze_names ops, kept_by;
    const char *shape; /* of the op's result and operands; NULL: unknown, or several */
    struct analyze_cost cost;
};

struct analyze_totals {
    uint64_t forward_ticks, backward_ticks, recompute_ticks;
    uint64_t forward_ns, backward_ns, recompute_ns;
    uint64_t overhead_ns; /* the profiler's own, not in the times above */
    uint64_t handed_out_bytes, live_bytes;
    uint64_t peak_bytes, reserved_bytes, touched_bytes; /* the greatest of any one tape */
    uint64_t sweeps, records, tapes;
    /* Of tapes that have a file (ad_tape_options.spill): written to it, the most that was memory of
     * any one tape, and how long that took, within the times above. 0: nothing was written. */
    uint64_t spilled_bytes, memory_peak_bytes, disk_write_ns, disk_read_ns;
    /* Of the samples' signals: fired = recorded + partial + lost + outside; shared: of the samples,
     * those of threads at work for another's op. */
    uint64_t fired, recorded, partial, lost, outside, samples_shared;
    uint64_t process_cpu_ns; /* of the whole process, while it was sampled */
};

struct symbols;
struct analyze_map;
struct analyze_ranks;

/* Called with one line of text for each file whose symbols cannot be used. */
typedef void analyze_warn_fn(void *payload, const char *message);

/* The highest rates that any line reached in either direction, among lines with at least
 * 1/1000 of the time, whether they are shown or not; 0: not known. They stand for the machine's
 * limits. */
struct analyze_roof {
    double flops_per_ns, bytes_per_ns;
};

struct analyze_result {
    const struct read_profile *profile;
    struct symbols *symbols;   /* owns the lines' strings */
    size_t n_mappings;         /* of the profile when they were opened */
    struct analyze_line *line; /* one for each {file, line, function, op, shape}, in this order */
    size_t n_lines;
    size_t n_unlined;  /* of them: sites without line information */
    size_t n_unusable; /* files whose symbols could not be used */
    struct analyze_cost sum;
    struct analyze_cost left_out; /* of lines that analyze_select() has removed */
    size_t n_left_out;
    struct analyze_roof roof_of_all; /* before lines were removed; zeros: none was */
    struct analyze_totals total;
    /* What analyze_select() was asked for; NULL: all lines. */
    bool (*keep)(void *payload, const struct analyze_line *line);
    void *keep_payload;
    struct analyze_line *through; /* what analyze_call_through() found; owned */
    size_t n_through;
    struct analyze_map *map; /* what analyze_map() was told; owned */
    bool libraries;          /* what analyze_show_libraries() asked for */
    bool threads; /* in trees those of a parallel loop are apart from the one that began it */
    analyze_warn_fn *warn;
    void *warn_payload;
    /* Of a sum of ranks: each apart, where somebody has asked for that; NULL. Borrowed. */
    const struct analyze_ranks *ranks;
};

/* Joins the profile (borrowed; it must outlive the analysis). warn may be NULL. Returns NULL
 * when memory is exhausted. The caller frees it with analyze_free. */
struct analyze_result *analyze_profile(const struct read_profile *profile, analyze_warn_fn *warn,
                                       void *payload);
/* The same of a profile of the same program: the files that both need are read once. `beside` may
 * be freed before; both are of one thread at a time. NULL: none. */
struct analyze_result *analyze_profile_beside(const struct read_profile *profile,
                                              analyze_warn_fn *warn, void *payload,
                                              const struct analyze_result *beside);
void analyze_free(struct analyze_result *analysis);

/* Joins a later state of the same profile; the one before may be gone. What is known of the
 * program's symbols stays, and with it the lines' strings, unless libraries came. What was selected
 * is not. */
void analyze_again(struct analyze_result *analysis, const struct read_profile *profile);

/* The places of all sites of the profile, for read_pack(); the array is the caller's to free(), its
 * strings are borrowed from the analysis. */
struct read_symbol *analyze_symbols(const struct analyze_result *analysis, size_t *n);

/* Samples in libraries of the system are on their own lines, not on those of the program that
 * called them. Before lines are selected. */
void analyze_show_libraries(struct analyze_result *analysis);

/* Files below the folder `from` (or that file itself) are shown and read as if they lay below
 * `to`, in all that is joined with the analysis. */
void analyze_map(struct analyze_result *analysis, const char *from, const char *to);

/* Removes the lines for which keep() is false: their cost goes to left_out. The tape's own rows
 * are lines too. What is joined with the analysis later, such as a space, asks keep() as well: it
 * and its payload must outlive the analysis. */
void analyze_select(struct analyze_result *analysis,
                    bool (*keep)(void *payload, const struct analyze_line *line), void *payload);
/* What was asked for, of any line. */
bool analyze_keeps(const struct analyze_result *analysis, const struct analyze_line *line);

/* Joins the call paths: lines through which others were called, each with the cost of what was
 * called, are in `through`. Of the lines that are kept.
 */
void analyze_call_through(struct analyze_result *analysis);

struct analyze_roof analyze_roof(const struct analyze_result *analysis);

/* Backward over forward time as the ops' counts of flops and bytes moved let it be expected on a
 * machine with that roof: each direction takes as long as its flops or its bytes, whichever is
 * longer (the roofline model: Williams, Waterman, Patterson, doi:10.1145/1498765.1498785). 0: the
 * counts say nothing. */
double analyze_cost_expected_ratio(const struct analyze_cost *cost,
                                   const struct analyze_roof *roof);

/* Whether a line's backward pass is dearer than its counts explain: over twice the expected ratio,
 * and what is beyond twice is at least 1 % of all time and, where it is from samples, more than
 * two of its standard errors. Lines that hold a sweep's own time are not
 * judged: nothing counts what that should take. Nor is a pullback that ran once, nor an op whose
 * time is a function's of the user's, which nothing counts either. */
bool analyze_line_is_slow_backward(const struct analyze_line *line,
                                   const struct analyze_result *analysis,
                                   const struct analyze_roof *roof);

/* The backward time, of exact times as if each call were as short as the shortest one: a few that
 * were interrupted are not the pullback's. */
uint64_t analyze_cost_steady_ns(const struct analyze_cost *cost);

/* What a row may stand for: X(NAME, its word in options and notes, what says where it is). */
#define ANALYZE_PLACES(X)                                                                          \
    X(LINE, "line", "line, op, function")                                                          \
    X(FUNCTION, "function", "function, file, op")                                                  \
    X(OP, "op", "op")                                                                              \
    X(FILE, "file", "file, op")                                                                    \
    X(MODULE, "module", "module, op")
/* A shape is one of an op, on whatever line. */
#define ANALYZE_VIEWS(X) ANALYZE_PLACES(X) X(SHAPE, "shape", "op, shape")

enum analyze_by {
#define X(NAME, ...) ANALYZE_BY_##NAME,
    ANALYZE_VIEWS(X)
#undef X
        ANALYZE_BY_LINE_AND_OP,
    ANALYZE_BY_LINE_OP_AND_SHAPE,
};

/* The analysis' lines merged; the result holds *n lines, in the order of the source, and is the
 * caller's to free(); its strings belong to the analysis. */
struct analyze_line *analyze_group(const struct analyze_result *analysis, enum analyze_by by,
                                   size_t *n);

/* Where a row of the profile is, with its cost. */
void analyze_line_of_row(const struct analyze_result *analysis, const struct read_row *row,
                         struct analyze_line *line);

/* The totals of a profile alone, without symbols. */
struct analyze_totals analyze_profile_totals(const struct read_profile *profile);

/* The totals as a cost: times and bytes from the tapes' own counters. */
struct analyze_cost analyze_total(const struct analyze_result *analysis);

/* A scope with all that it and the scopes within it cost. */
struct analyze_scope_cost {
    const char *name; /* without those of the scopes around it; belongs to the profile */
    size_t parent;    /* place plus 1, less than its own; 0: none */
    uint64_t thread;  /* 0: of several */
    uint64_t calls, recorded_calls, records;
    uint64_t open_calls;       /* of calls: those that had not ended when the profile did */
    uint64_t wall_ns, self_ns; /* between begin and end, with and without the scopes within it */
    uint64_t forward_ns;       /* of wall_ns, what was not in sweeps: the user's own code too */
    struct analyze_cost cost;  /* of what was recorded in it, wherever it was swept */
};

struct analyze_scope_costs {
    struct analyze_scope_cost *scope;
    size_t n;
    size_t *place;               /* of the profile's scopes, in their order, in `scope` */
    struct analyze_cost outside; /* of what was recorded in no scope */
};

/* What each scope of the profile cost; those of several threads with the same name and place in the
 * forest are one unless by_thread. The caller frees it
 * by analyze_scope_costs_free in either case. */
void analyze_scope_costs_make(struct analyze_scope_costs *costs, const struct read_profile *profile,
                              bool by_thread);
void analyze_scope_costs_free(struct analyze_scope_costs *costs);

/* An expectation that the source states, held against what was measured: of a scope with those in
 * it, or of the lines of a function. */
struct analyze_expected_cost {
    const struct read_expectation *stated; /* the first, where a compiler made several of one */
    uint64_t times;                        /* that the line was passed */
    const char *file, *function;           /* where it stands; NULL: unknown */
    uint32_t line;
    size_t scope;    /* place plus 1 in the costs of scopes, 0: its function */
    bool known;      /* there is something to compare: a forward time, a passing of the line */
    bool holds;      /* measured <= bound, or not known */
    double measured; /* backward over forward time; tape bytes for each time */
};

struct analyze_expected_costs {
    struct analyze_expected_cost *expected; /* in the order of the profile, each line's once */
    size_t n, n_failed;
    struct analyze_scope_costs scopes;
};

/* The caller frees it by analyze_expected_costs_free in
 * either case. */
void analyze_expected_costs_make(struct analyze_expected_costs *costs,
                                 const struct analyze_result *analysis);
void analyze_expected_costs_free(struct analyze_expected_costs *costs);

/* A pattern of a sparse derivative that a line has found: of the sites that a compiler made of the
 * line, those that found the same one are one. */
struct analyze_pattern {
    const struct read_pattern *found; /* the first of them */
    uint64_t calls;
    struct analyze_line line; /* where it was found; no costs, no ops */
};

/* Those of a profile, in its order; the caller frees the array, which is never NULL. */
struct analyze_pattern *analyze_patterns(const struct analyze_result *analysis, size_t *n);
/* Which share of its elements are values, 0 to 1; 0 where it has no elements. */
double analyze_pattern_share(const struct read_pattern *pattern);

/* What a row cost, its times in ticks alone; peak: it is of the tape whose peak is the greatest. */
struct analyze_cost analyze_row_cost(const struct read_profile *profile, const struct read_row *row,
                                     bool peak);

/* Adds b to a. */
void analyze_cost_add(struct analyze_cost *a, const struct analyze_cost *b);
/* Whether all of it is 0 but byte_ns, whose sums are rounded. */
bool analyze_cost_is_nothing(const struct analyze_cost *cost);

/* Adds the names of b that a lacks. */
void analyze_names_add(struct analyze_names *a, const struct analyze_names *b);

/* Time in all phases, and other time. */
uint64_t analyze_cost_time(const struct analyze_cost *cost);
/* The standard error of `ns`, which is all or a part of the cost's time: of n samples with
 * processor time it is 1/sqrt(n) of the value. 0: the time is exact, or none was sampled. */
double analyze_cost_error(const struct analyze_cost *cost, uint64_t ns);
/* Of times of statements, where all others are exact: the standard error in ns of forward and of
 * backward time. 0: they have no estimated part. */
double analyze_cost_forward_error(const struct analyze_cost *cost);
double analyze_cost_backward_error(const struct analyze_cost *cost);
/* It has time of statements, which is an estimate. */
bool analyze_cost_is_estimate(const struct analyze_cost *cost);
/* Forward code ran, and nothing is known of its time: it is not 0. */
bool analyze_cost_is_untimed(const struct analyze_cost *cost);
/* There is anything to say of recomputation. */
bool analyze_cost_recomputes(const struct analyze_cost *cost);

/* Records, values and adjoints. */
uint64_t analyze_cost_tape_bytes(const struct analyze_cost *cost);
/* Waiting neither for input or output nor for a lock. */
uint64_t analyze_cost_waiting_other_ns(const struct analyze_cost *cost);

/* Files of the analysis whose path is `path`, or else ends in it at a "/"; NULL: all. Writes up
 * to `room` of them, each once, and returns how many there are. Pointers are equal for equal
 * files. */
size_t analyze_files(const struct analyze_result *analysis, const char *path, const char **file,
                     size_t room);

/* The place of the tape whose peak is the greatest. */
size_t analyze_peak_tape(const struct read_profile *profile);

#endif
