/* report_howto.h: the pages of docs/ that findings name, where they are installed beside the
 * program.
 *
 * Invariant: no file outside of the folders of these pages is read, whatever the name.
 */
#ifndef PROFILER_REPORT_REPORT_HOWTO_H
#define PROFILER_REPORT_REPORT_HOWTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* "profile#sampled-mode" of "docs/how-to/profile.md#sampled-mode": what `tapescope help` takes. */
enum { REPORT_HOWTO_ROOM = 128 };
void report_howto_topic(char buf[REPORT_HOWTO_ROOM], const char *howto);
/* The page of a topic, or of how-to as above, or its section of that heading, to be freed; NULL:
 * there is none, or the docs are not installed. */
char *report_howto_text(const char *topic);

/* Writes what the glossary has of a word, or of several, and the commands that print the sections
 * of the docs that have it: first those with it in their heading, then those that have it most
 * often, what says how to do something before references.
 * False: nothing has it. Case and a plural's s are no difference. */
bool report_howto_find(const char *word, FILE *out, unsigned width);

#endif
