/* report_units.h: quantities as short text: three digits and a unit, at most seven characters wide.
 *
 * Invariant: every function fills buf (REPORT_UNITS_ROOM bytes) and returns it.
 */
#ifndef PROFILER_REPORT_UNITS_H
#define PROFILER_REPORT_UNITS_H

#include <stdbool.h>
#include <stdint.h>

enum { REPORT_UNITS_ROOM = 32 };

/* "0", "823ns", "1.23ms", "45.6s". utf8: the sign of micro may be written as such, else "us". */
char *report_units_time(char buf[REPORT_UNITS_ROOM], uint64_t ns, bool utf8);
/* "0", "823B", "1.23KiB", "45.6MiB". */
char *report_units_bytes(char buf[REPORT_UNITS_ROOM], uint64_t bytes);
/* "0", "9999", "12.3k", "4.56M". */
char *report_units_count(char buf[REPORT_UNITS_ROOM], uint64_t n);
/* part of whole in percent: "0.0%", "12.3%", "100%"; "-" where the whole is 0. */
char *report_units_share(char buf[REPORT_UNITS_ROOM], uint64_t part, uint64_t whole);
/* The same of what may be beyond 64 bits. */
char *report_units_part(char buf[REPORT_UNITS_ROOM], double part, double whole);
/* a / b: "2.13", "12.3"; "-" where b is 0. */
char *report_units_ratio(char buf[REPORT_UNITS_ROOM], uint64_t a, uint64_t b);
/* What is held against a bound: three significant digits, and as many more as show on which side of
 * it x is. */
char *report_units_against(char buf[REPORT_UNITS_ROOM], double x, double bound);
/* A plain integer. */
char *report_units_exact(char buf[REPORT_UNITS_ROOM], uint64_t n);

#endif
