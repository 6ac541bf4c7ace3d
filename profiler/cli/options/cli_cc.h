/* cli_cc.h: what `tapescope cc` and `tapescope c++` share; cmd_cc.c has it. */
#ifndef PROFILER_CLI_CLI_CC_H
#define PROFILER_CLI_CLI_CC_H

#include "cli_args.h"

enum { CLI_CC_OPTIONS = 2 };
extern const struct cli_option cli_cc_options[CLI_CC_OPTIONS];
extern const char cli_cc_about[], cli_cc_notes[];

/* Becomes the compiler; returns an exit status where it cannot. */
int cli_cc_run(const struct cli_command *command, const char *compiler, int argc, char **argv);

#endif
