/* cli_written.h: profiles that commands leave: packed, added up, and what is said of them. */
#ifndef PROFILER_CLI_CLI_WRITTEN_H
#define PROFILER_CLI_CLI_WRITTEN_H

#include "cli_args.h"

/* Packs the profile at `from`, of which this is the analysis, into `to`; both may be one file.
 * Returns an exit status; why not is said. */
int cli_pack_profile(const char *command, const struct analyze_result *analysis, const char *from,
                     const char *to);

/* With --json, what `command` has written at `path`, made from n profiles. Returns an exit
 * status. */
int cli_say_written(const struct cli_args *args, const char *command, const char *path,
                    const struct read_profile *const *from, size_t n);

/* Writes the sum of profiles that may be merged (read_may_merge) to `output`, which may be one of
 * them. Returns an exit status; why not is said. */
int cli_sum_profiles(const char *command, const struct cli_profiles *opened, const char *output);
/* As that, of the n ranks of a run, by their analyses in order; the sum keeps each. */
int cli_sum_ranks(const char *command, const struct analyze_result *const *analysis, size_t n,
                  const char *output);

/* What report_summary writes, to be freed. */
char *cli_summarize(const struct analyze_result *analysis, bool utf8);

#endif
