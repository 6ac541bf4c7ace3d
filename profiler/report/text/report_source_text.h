/* report_source_text.h: the lines of a source file.
 *
 * Invariant: a missing or unreadable file is a source of no lines.
 */
#ifndef PROFILER_REPORT_SOURCE_TEXT_H
#define PROFILER_REPORT_SOURCE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct read_profile;

struct report_source_text {
    char *bytes;
    char **line; /* from line 1 at index 0; without line ends */
    size_t n_lines;
};

/* Reads path. Returns 0, or an error number (EIO ...); the source is then empty. */
int report_source_text_read(struct report_source_text *source, const char *path);
/* The text of a line, counted from 1; NULL if there is none. */
const char *report_source_text_line(const struct report_source_text *source, size_t line);
/* Whether the source was changed after the program was built or recorded, so that its lines may not
 * be those of the profile. False: also where the program or the source is not there. */
bool report_source_text_is_newer(const char *path, const struct read_profile *profile);
void report_source_text_free(struct report_source_text *source);

#endif
