/* cli_pack.h: packing a profile, for the commands that leave one.
 *
 * May include: cli.h and what it stands on.
 */
#ifndef PROFILER_CLI_CLI_PACK_H
#define PROFILER_CLI_CLI_PACK_H

#include "cli.h"

/* Packs the profile at `from`, of which this is the analysis, into `to`; both may be one file.
 * Returns an exit status; why not is said. */
int cli_pack_profile(const struct prof_analysis *analysis, const char *from, const char *to);

#endif
