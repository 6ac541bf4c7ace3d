/* cli_pack.h: packing a profile, and saying what was written, for the commands that leave one. */
#ifndef PROFILER_CLI_CLI_PACK_H
#define PROFILER_CLI_CLI_PACK_H

#include "cli_args.h"

/* Packs the profile at `from`, of which this is the analysis, into `to`; both may be one file.
 * Returns an exit status; why not is said. */
int cli_pack_profile(const struct analyze_result *analysis, const char *from, const char *to);

/* With --json, what `command` has written at `path`, made from n profiles. Returns an exit
 * status. */
int cli_say_written(const struct cli_args *args, const char *command, const char *path,
                    const struct read_profile *const *from, size_t n);

#endif
