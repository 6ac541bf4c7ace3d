/* report_gates.h: limits that a profile is held against, and what became of each.
 *
 * Invariant: a gate that cannot be judged has failed.
 */
#ifndef PROFILER_REPORT_GATES_H
#define PROFILER_REPORT_GATES_H

#include "report_many.h"

/* One gate: "max-peak" of "a.prof": "64.0MiB, at most 60.0MiB". Strings are owned. file, line: the
 * source line that it is about; NULL and 0: it is about the whole. */
struct report_gate {
    char *name, *subject, *text, *file;
    uint32_t line;
    bool failed;
};

struct report_gates {
    struct report_gate *gate;
    size_t n, room;
};

void report_gates_free(struct report_gates *gates);
size_t report_gates_failed(const struct report_gates *gates);

/* The tape's bytes: at its peak, and handed out in all. */
void report_gate_peak(struct report_gates *gates, const struct analyze_result *analysis,
                      uint64_t most);
void report_gate_total_tape(struct report_gates *gates, const struct analyze_result *analysis,
                            uint64_t most);

/* Bytes that one source line put on the tape. file: as the user wrote it, the end of a path. */
void report_gate_line_tape(struct report_gates *gates, const struct analyze_result *analysis,
                           const char *file, uint32_t line, uint64_t most);

/* Backward over forward time of the whole. */
void report_gate_ratio(struct report_gates *gates, const struct analyze_result *analysis,
                       double most);

/* No row's bytes, and not the whole, grow significantly faster than size^most. The tape's own rows
 * (padding) are in the whole alone: no line of a program mends them. */
void report_gate_growth(struct report_gates *gates, const struct report_growth *growth,
                        const struct report_sizes *sizes, double most);

/* What the source states by AD_EXPECT_RATIO and AD_EXPECT_TAPE_BYTES; that it states something. One
 * that was never come by holds. */
void report_gate_expectations(struct report_gates *gates, const struct analyze_result *analysis);

/* No row has more bytes on the tape than the mean of the base's runs, nor the whole, nor its peak,
 * by more than `bytes` (a fraction); and no more time by more than `time`, unless that is negative,
 * and by more than chance makes, as far as the runs tell. The tape's own rows are in the whole
 * alone. */
void report_gate_baseline(struct report_gates *gates, const struct analyze_runs *base,
                          const struct analyze_result *now, double bytes, double time);

/* One line for each gate, failing ones first; or JSON. */
void report_gates_print(const struct report_gates *gates, const struct report_style *style);

/* For continuous integration: all gates as JUnit's XML; those that failed as SARIF 2.1.0 (OASIS),
 * and as the workflow commands that GitHub shows at a source line. */
void report_gates_put_junit(const struct report_gates *gates, FILE *out);

/* Where files are named from: those below `folder` without it. whole: the file that a gate without
 * a line is about. */
struct report_gates_names {
    const char *folder, *whole, *version;
};
void report_gates_put_sarif(const struct report_gates *gates,
                            const struct report_gates_names *names, FILE *out);
void report_gates_put_github(const struct report_gates *gates,
                             const struct report_gates_names *names, FILE *out);

#endif
