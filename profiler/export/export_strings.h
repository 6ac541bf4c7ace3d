/* export_strings.h: texts that a file holds once and names by number.
 *
 * May include: nothing. Private to profiler/export.
 */
#ifndef PROFILER_EXPORT_STRINGS_H
#define PROFILER_EXPORT_STRINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Begins as zeros. */
struct export_strings {
    char **text; /* in the order in which they came */
    size_t n, room;
    uint32_t *slot; /* hash table: place plus 1 */
    size_t n_slots;
    bool failed; /* memory was exhausted; all places are 0 from then on */
};

/* The place of a text, which is copied the first time. */
uint32_t export_intern(struct export_strings *strings, const char *text);
void export_strings_free(struct export_strings *strings);

#endif
