/* report_json.h: what the JSON of several reports has in common.
 *
 * Private to profiler/report. Invariant: names of members, once given, stay: docs/reference/json.md
 * lists them.
 */
#ifndef PROFILER_REPORT_REPORT_JSON_H
#define PROFILER_REPORT_REPORT_JSON_H

#include "base_json.h"
#include "report.h"

/* Begins the document of a command: {"tapescope": command, "version": 1. */
void report_json_begin(struct base_json *json, FILE *out, const char *command);

/* "profile": {path, program, arguments, complete ...}. */
void report_json_profile(struct base_json *json, const char *name,
                         const struct read_profile *profile);

/* The members of a cost, into the object that is open; null: the profile does not know it. */
void report_json_cost(struct base_json *json, const struct analyze_cost *cost,
                      const struct read_profile *profile);
/* A number that may not be known. */
void report_json_known(struct base_json *json, const char *name, uint64_t value, bool known);

/* "byte_seconds", which are known from exact times. */
void report_json_byte_seconds(struct base_json *json, double byte_ns,
                              const struct read_profile *profile);

/* Where a line, function or op is: file, line, function, module, offset, own, ops, kept_by. */
void report_json_place(struct base_json *json, const struct analyze_line *line);

/* "ranks" and "messages" of a set of ranks; null where there is none. */
void report_json_ranks(struct base_json *json, const struct analyze_ranks *ranks);

/* a / b, or null where b is 0. */
void report_json_ratio(struct base_json *json, const char *name, uint64_t a, uint64_t b);

/* "total": {...}, from the tapes' own counters. */
void report_json_totals(struct base_json *json, const char *name,
                        const struct analyze_result *analysis);

#endif
