/* html_strings.h: the names in a page, each once.
 *
 * May include: nothing. Private to profiler/report/html.
 * Invariant: number 0 is the empty text, which also stands for none; equal texts have one number.
 */
#ifndef PROFILER_REPORT_HTML_HTML_STRINGS_H
#define PROFILER_REPORT_HTML_HTML_STRINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct html_strings {
    char **text; /* owned */
    size_t n, room;
    uint32_t *slot; /* hash table: number plus 1 */
    size_t n_slots;
    bool failed; /* memory was exhausted: some numbers are 0 */
};

/* The number of a text, NULL as "". What is longer than 1000 bytes ends in "...", cut between
 * characters. */
uint32_t html_string(struct html_strings *strings, const char *text);
void html_strings_free(struct html_strings *strings);

#endif
