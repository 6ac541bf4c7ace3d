/* read_merge.h: profiles of one program as one. */
#ifndef PROFILER_READ_MERGE_H
#define PROFILER_READ_MERGE_H

#include "read.h"

/* Profiles may be merged if their programs are one file, by build id where that is known. */
bool read_may_merge(const struct read_profile *a, const struct read_profile *b);

/* Writes the sum of n profiles (n > 0) to `to`, compressed. Rows are one if module, offset in it,
 * line, op, call path and scope are; all tapes become one that stands for them, as destroyed tapes
 * do: counters are sums, peaks are those of the one tape with the greatest, and so is what was live
 * change by change. Call paths are joined; scopes, samples with the threads that they are of, and
 * classes of residuals are added up. Times become ns since the earliest start. Events are read once
 * more from the profiles' paths; processes are numbered in the order of the profiles. symbol[i],
 * n_symbols[i]: the places of profile i's sites. Returns 0, or -1 with one line in `error`. */
int read_merge(const char *to, const struct read_profile *const *profile,
               const struct read_symbol *const *symbol, const size_t *n_symbols, size_t n,
               char *error, size_t room);

/* As read_merge(), of the ranks of one run in their order: the sum keeps the profile of each,
 * packed with its symbols. */
int read_merge_ranks(const char *to, const struct read_profile *const *profile,
                     const struct read_symbol *const *symbol, const size_t *n_symbols, size_t n,
                     char *error, size_t room);

#endif
