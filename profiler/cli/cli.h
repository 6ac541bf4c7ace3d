/* cli.h: what the commands of the program `tapescope` share.
 *
 * May include: profiler/report, profiler/analyze, profiler/format.
 * Invariant: a command returns its exit status and never exits; messages go to standard error,
 * one line each, beginning with "tapescope: ".
 */
#ifndef PROFILER_CLI_CLI_H
#define PROFILER_CLI_CLI_H

#include "report.h"

enum cli_status {
    CLI_OK = 0,
    CLI_FAILED = 1, /* the report could not be written */
    CLI_USAGE = 2,
    CLI_BAD_PROFILE = 3,
    CLI_CANNOT_EXECUTE = 126,
    CLI_NOT_FOUND = 127,
};

#define CLI_DEFAULT_PROFILE "tapescope.prof"

/* Each runs one command; argv[0] is the command's name. */
int cmd_record(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_annotate(int argc, char **argv);
int cmd_info(int argc, char **argv);

#endif
