/* symbols_path.h: paths in one canonical spelling.
 *
 * Private to profiler/symbols. Invariant: two equal texts of one set are the same pointer.
 */
#ifndef PROFILER_SYMBOLS_PATH_H
#define PROFILER_SYMBOLS_PATH_H

#include "base_strings.h"

/* The copy of a text in the set, or NULL when memory is exhausted. */
const char *symbols_path_text(struct base_strings *strings, const char *text);

/* The same of directory/path (directory: or NULL) without "//", "/./" and "x/../" (by its text:
 * links are not followed). */
const char *symbols_path_add(struct base_strings *strings, const char *directory, const char *path);

#endif
