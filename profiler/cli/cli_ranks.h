/* cli_ranks.h: the profiles of the ranks of one run, read as one. */
#ifndef PROFILER_CLI_CLI_RANKS_H
#define PROFILER_CLI_CLI_RANKS_H

#include "cli_args.h"

/* The names "PATH.0", "PATH.1", ... where they are there; *n of them, which cli_ranks_free frees.
 * NULL: PATH is no such set. */
char **cli_ranks_find(const char *path, size_t *n);
void cli_ranks_free(char **of_rank, size_t n);

/* Says so if profiles of ranks that are newer have the name of this one, which hides them. */
void cli_ranks_tell(const struct read_profile *profile);

/* Whether each of the files is the profile of a rank. */
bool cli_ranks_are(char *const *path, size_t n);

/* Whether they are the ranks of one run, each once; says why not, and which are missing. */
bool cli_ranks_check(const struct read_profile *const *part, size_t n);

/* Reads them as one profile, called `name`, into opened->profile. False: it has said why not. */
bool cli_ranks_read(struct cli_profile *opened, const char *name, char *const *path, size_t n);

#endif
