/* cli_sum.h: profiles of one program added up, for the commands that do so. */
#ifndef PROFILER_CLI_CLI_SUM_H
#define PROFILER_CLI_CLI_SUM_H

#include "cli_args.h"

/* Writes the sum of profiles that may be merged (read_may_merge) to `output`, which may be one of
 * them. Returns an exit status; why not is said. */
int cli_sum_profiles(const char *command, const struct cli_profiles *opened, const char *output);

#endif
