/* cli.h: the commands of the program `tapescope`, and what they end with.
 *
 * Invariant: a command returns its exit status and never exits, unless memory ends; messages go to
 * standard error, one line each, beginning with "tapescope: ".
 */
#ifndef PROFILER_CLI_CLI_H
#define PROFILER_CLI_CLI_H

#include "report.h"

/* What the program ends with: X(NAME, number, text). --help, the manual page and the page
 * docs/reference/commands.md (scripts/reference) are made from this list. */
#define CLI_STATUSES(X)                                                                            \
    X(OK, 0, "all went well")                                                                      \
    X(FAILED, 1, "the report could not be written, or a gate of check failed")                     \
    X(USAGE, 2, "wrong usage")                                                                     \
    X(BAD_PROFILE, 3, "a bad profile (check: also an incomplete one)")                             \
    X(NO_MEMORY, 4, "out of memory")                                                               \
    X(NO_PROFILE, 125, "record: the program ended well but left no profile")                       \
    X(CANNOT_EXECUTE, 126, "the program could not be run")                                         \
    X(NOT_FOUND, 127, "there is no such program")

enum cli_status {
#define X(NAME, number, text) CLI_##NAME = (number),
    CLI_STATUSES(X)
#undef X
};

#define CLI_DEFAULT_PROFILE "tapescope.prof"

/* What a command is for: the headings of `tapescope --help` (X(NAME, heading)). */
#define CLI_GROUPS(X)                                                                              \
    X(MEASURE, "Measure")                                                                          \
    X(LOOK, "Look")                                                                                \
    X(DECIDE, "Decide")                                                                            \
    X(FILES, "Files")                                                                              \
    X(HELP, "Help")

/* Every command with its group, in the order of `tapescope --help`. For each name here the file
 * cmd_NAME.c has cmd_NAME(), which runs it (argv[0] is the command's name), and cli_NAME, which
 * describes it. */
#define CLI_COMMANDS(X)                                                                            \
    X(MEASURE, record)                                                                             \
    X(MEASURE, live)                                                                               \
    X(MEASURE, attach)                                                                             \
    X(MEASURE, stat)                                                                               \
    X(MEASURE, cc)                                                                                 \
    X(MEASURE, cxx)                                                                                \
    X(LOOK, top)                                                                                   \
    X(LOOK, tree)                                                                                  \
    X(LOOK, annotate)                                                                              \
    X(LOOK, tape)                                                                                  \
    X(LOOK, ranks)                                                                                 \
    X(LOOK, html)                                                                                  \
    X(DECIDE, whatif)                                                                              \
    X(DECIDE, diff)                                                                                \
    X(DECIDE, growth)                                                                              \
    X(DECIDE, check)                                                                               \
    X(FILES, merge)                                                                                \
    X(FILES, export)                                                                               \
    X(FILES, info)                                                                                 \
    X(HELP, help)

enum cli_group {
#define X(NAME, heading) CLI_##NAME,
    CLI_GROUPS(X)
#undef X
};

struct cli_command;
#define X(GROUP, name)                                                                             \
    int cmd_##name(int argc, char **argv);                                                         \
    extern const struct cli_command cli_##name;
CLI_COMMANDS(X)
#undef X

#endif
