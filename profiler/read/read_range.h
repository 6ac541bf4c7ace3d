/* read_range.h: profiles that lie one behind the other in one file without a name.
 *
 * They are named by its descriptor and their place there, so that they are read again as others
 * are, and many need no descriptor each.
 */
#ifndef PROFILER_READ_RANGE_H
#define PROFILER_READ_RANGE_H

#include <stdint.h>
#include <stdio.h>

/* The name of n bytes from `at` on of the open file fd; to be freed. */
char *read_range_name(int fd, uint64_t at, uint64_t n);

/* As fopen(path, "re"), also of such names: those bytes alone, without a seek. The descriptor must
 * stay open. */
FILE *read_range_open(const char *path);

#endif
