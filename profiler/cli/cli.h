/* cli.h: the commands of the program `tapescope`, and what they end with.
 *
 * May include: profiler/serve, profiler/export, profiler/report, profiler/analyze, profiler/format.
 * Invariant: a command returns its exit status and never exits; messages go to standard error,
 * one line each, beginning with "tapescope: ".
 */
#ifndef PROFILER_CLI_CLI_H
#define PROFILER_CLI_CLI_H

#include "report.h"

enum cli_status {
    CLI_OK = 0,
    CLI_FAILED = 1, /* the report could not be written, or a gate failed */
    CLI_USAGE = 2,
    CLI_BAD_PROFILE = 3,
    CLI_CANNOT_EXECUTE = 126,
    CLI_NOT_FOUND = 127,
};

#define CLI_DEFAULT_PROFILE "tapescope.prof"

/* Every command, in the order of `tapescope --help`. For each name here the file cmd_NAME.c has
 * cmd_NAME(), which runs it (argv[0] is the command's name), and cli_NAME, which describes it. */
#define CLI_COMMANDS(X)                                                                            \
    X(record)                                                                                      \
    X(live)                                                                                        \
    X(attach)                                                                                      \
    X(stat)                                                                                        \
    X(top)                                                                                         \
    X(tree)                                                                                        \
    X(annotate)                                                                                    \
    X(tape)                                                                                        \
    X(dump)                                                                                        \
    X(whatif)                                                                                      \
    X(growth)                                                                                      \
    X(diff)                                                                                        \
    X(merge)                                                                                       \
    X(pack)                                                                                        \
    X(check)                                                                                       \
    X(export)                                                                                      \
    X(info)                                                                                        \
    X(html)                                                                                        \
    X(view)                                                                                        \
    X(completion)

struct cli_command;
#define X(name)                                                                                    \
    int cmd_##name(int argc, char **argv);                                                         \
    extern const struct cli_command cli_##name;
CLI_COMMANDS(X)
#undef X

#endif
