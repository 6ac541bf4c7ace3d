/* gates.h: limits that a profile is held against, and what became of each.
 *
 * Invariant: a gate that cannot be judged has failed.
 */
#ifndef PROFILER_REPORT_GATES_H
#define PROFILER_REPORT_GATES_H

#include "report_many.h"

/* One gate: "max-peak" of "a.prof": "64.0MiB, at most 60.0MiB". Strings are owned. */
struct gate {
    char *name, *subject, *text;
    bool failed;
};

struct gates {
    struct gate *gate;
    size_t n, room;
};

/* Adds a gate. subject: a profile, or a line of one. */
void gates_add(struct gates *gates, bool failed, const char *name, const char *subject,
               const char *format, ...) __attribute__((format(printf, 5, 6)));
void gates_free(struct gates *gates);
size_t gates_failed(const struct gates *gates);

/* The tape's bytes: at its peak, and handed out in all. */
void gate_peak(struct gates *gates, const struct analyze_result *analysis, uint64_t most);
void gate_total_tape(struct gates *gates, const struct analyze_result *analysis, uint64_t most);

/* Bytes that one source line put on the tape. file: as the user wrote it, the end of a path. */
void gate_line_tape(struct gates *gates, const struct analyze_result *analysis, const char *file,
                    uint32_t line, uint64_t most);

/* Backward over forward time of the whole. */
void gate_ratio(struct gates *gates, const struct analyze_result *analysis, double most);

/* No row's bytes, and not the whole, grow significantly faster than size^most. The tape's own rows
 * (padding) are in the whole alone: no line of a program mends them. */
void gate_growth(struct gates *gates, const struct report_growth *growth,
                 const struct report_sizes *sizes, double most);

/* What the source states by AD_EXPECT_RATIO and AD_EXPECT_TAPE_BYTES; that it states something. One
 * that was never come by holds. */
void gate_expectations(struct gates *gates, const struct analyze_result *analysis);

/* No row has more bytes on the tape than in the base, nor the whole, nor its peak, by more than
 * `bytes` (a fraction); and no more time by more than `time`, unless that is negative. The tape's
 * own rows are in the whole alone. */
void gate_baseline(struct gates *gates, const struct analyze_result *base,
                   const struct analyze_result *now, double bytes, double time);

/* One line for each gate, failing ones first; or JSON. */
void gates_print(const struct gates *gates, const struct report_style *style);

/* The same as JUnit's XML. */
void gates_put_junit(const struct gates *gates, FILE *out);

#endif
