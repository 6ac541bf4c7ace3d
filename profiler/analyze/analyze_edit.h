/* analyze_edit.h: which line of a source is which, after it was edited and the program built again.
 *
 * Profiles do not have the sources, so this is worked out from what both recorded: the lines of a
 * file, each with its function and op, are aligned in their order. Invariant: two lines of one file
 * never become one.
 */
#ifndef PROFILER_ANALYZE_EDIT_H
#define PROFILER_ANALYZE_EDIT_H

#include "analyze.h"

struct analyze_edit;

/* From the lines of `base` to those of `now`; NULL where both are of one build, or one is NULL: no
 * line has moved. */
struct analyze_edit *analyze_edit_make(const struct analyze_result *base,
                                       const struct analyze_result *now);
void analyze_edit_free(struct analyze_edit *edit);

/* The number that a line of `base` has in `now`: that of the line that it is aligned with, or moved
 * as far as the nearest ones before and after it, if these have moved alike. 0: not known. */
uint32_t analyze_edit_line(const struct analyze_edit *edit, const char *file, uint32_t line);

#endif
