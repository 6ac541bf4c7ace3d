/* cli_ranks.h: the profiles of the ranks of one run, read as one. */
#ifndef PROFILER_CLI_CLI_RANKS_H
#define PROFILER_CLI_CLI_RANKS_H

#include "cli_args.h"

/* The names "PATH.0", "PATH.1", ... where they are there; *n of them, which cli_ranks_free frees.
 * NULL: PATH is no such set. Of the files headers alone are read. */
char **cli_ranks_find(const char *path, size_t *n);
void cli_ranks_free(char **of_rank, size_t n);

/* Says so if profiles of ranks that are newer have the name of this one, which hides them. */
void cli_ranks_tell(const struct read_profile *profile);

/* Whether each of the files is the profile of a rank. */
bool cli_ranks_are(char *const *path, size_t n);

/* Whether they are different ranks, of as many in all: a set, if they are of one run. */
bool cli_ranks_differ(char *const *path, size_t n);

/* Whether they are the ranks of one run, each once; says why not, and which are missing if `all`
 * should be there. */
bool cli_ranks_check(const struct read_profile *const *part, size_t n, bool all);

/* cli_open_apart() for a command that cannot do without. Says so if it is no set of ranks. */
int cli_ranks_apart(const char *command, struct cli_profile *opened, const struct cli_args *args);

/* Of a sum that keeps the profiles of its ranks: reads them into opened->part, if they are not
 * there. False: it has said why not. */
bool cli_ranks_unpack(struct cli_profile *opened);
/* Reads those that --rank asks for in place of the sum, as cli_ranks_read. */
bool cli_ranks_kept(struct cli_profile *opened, const struct cli_args *args);

/* Says so if times of different ranks are laid side by side by clocks that have not met. */
void cli_ranks_tell_clocks(const struct cli_profile *opened);

/* Those of the files that --rank asks for, or all; *n of them. The array is the caller's to free(),
 * the names stay what they were. NULL: it has said why not. */
char **cli_ranks_choose(const struct cli_args *args, char *const *path, size_t *n);
/* Whether --rank asks for all that this profile is of; if not, says so. */
bool cli_ranks_chosen(const struct cli_args *args, const struct read_profile *profile);

/* Reads them, or those that --rank asks for, as one profile, called `name`, into opened->profile,
 * and each of them into opened->part; of one rank alone it is that rank's profile. False: it has
 * said why not. */
bool cli_ranks_read(struct cli_profile *opened, const struct cli_args *args, const char *name,
                    char *const *path, size_t n);

#endif
