/* cli_export.h: a profile for other programs, for the commands that write one. */
#ifndef PROFILER_CLI_CLI_EXPORT_H
#define PROFILER_CLI_CLI_EXPORT_H

#include "cli_args.h"
#include "export.h"

/* What the user says of an export; zeros are the defaults. */
struct cli_export_args {
    int metric, frames;
    int by; /* 0 lines, 1 functions */
    bool split;
};

/* Writes a profile in a format; what --focus and --ignore leave out is not in it. Returns an exit
 * status, after saying what is wrong with the profile; errors of writing stay with `out`. */
int cli_export_to(FILE *out, const struct analyze_result *analysis, enum export_kind kind,
                  const struct cli_args *args, const struct cli_export_args *export_args);

#endif
