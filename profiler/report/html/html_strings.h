/* html_strings.h: the names in a page, each once.
 *
 * Private to profiler/report/html. Invariant: number 0 is the empty text, which also stands for
 * none; equal texts have one number.
 */
#ifndef PROFILER_REPORT_HTML_HTML_STRINGS_H
#define PROFILER_REPORT_HTML_HTML_STRINGS_H

#include "base_strings.h"

/* The number of a text, NULL as "". What is longer than 1000 bytes ends in "...", cut between
 * characters. */
uint32_t html_string(struct base_strings *strings, const char *text);

#endif
