/* tape_unnamed.h: a file that no directory names: it ends with its descriptor, or with
 * the process. */
#ifndef TAPE_UNNAMED_H
#define TAPE_UNNAMED_H

#include <stddef.h>

/* A descriptor of a new one in this directory, or -1 and errno. `directory` has this room behind
 * its length, and is as it was afterwards. */
enum { TAPE_UNNAMED_ROOM = sizeof "/tapescope-XXXXXX" };
int tape_unnamed_file(char *directory, size_t length);

#endif
