/* cli_summary.h: a profile in one line, for the commands that leave one. */
#ifndef PROFILER_CLI_CLI_SUMMARY_H
#define PROFILER_CLI_CLI_SUMMARY_H

#include "cli.h"

/* What report_summary writes, to be freed. */
char *cli_summarize(const struct analyze_result *analysis, bool utf8);

#endif
