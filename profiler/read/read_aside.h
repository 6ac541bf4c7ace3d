/* read_aside.h: a file that appears under its name when it is whole, or not at all.
 *
 * Invariant: until it is settled a file has a name of its own beside the one that it is for; after
 * a failure nothing of it is left, and what was there before is as it was. What is no file, such
 * as a device or a pipe, is written to as it is and stays what it is.
 */
#ifndef PROFILER_READ_ASIDE_H
#define PROFILER_READ_ASIDE_H

#include <stdio.h>

/* Makes an empty file beside `path`, with the rights of any new file, and opens it for writing as
 * *fd. Returns its name ("": path is no file), which read_aside_settle frees, or NULL with errno
 * set. One thread at a time: it looks at the process' umask. */
char *read_aside_make(const char *path, int *fd);

/* Gives the closed file its name `path` if `error`, an errno, is 0; else removes it. Returns 0 or
 * why not. aside may be NULL if there is an error. */
int read_aside_settle(char *aside, const char *path, int error);

/* As read_aside_make, with the file as a stream; NULL with errno set. */
FILE *read_aside_open(const char *path, char **aside);

/* Closes the stream and settles the file: what could not be written is an error as well. error:
 * what came before, or 0. Returns 0 or why there is no file. */
int read_aside_close(FILE *out, char *aside, const char *path, int error);

/* Notes the file that is under way, and removes it: for a process that must end here and now.
 * read_aside_open notes its file, and read_aside_settle ends that. */
void read_aside_note(const char *aside);
void read_aside_drop(void);

#endif
