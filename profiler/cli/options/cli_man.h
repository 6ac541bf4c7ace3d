/* cli_man.h: the manual page, from the commands' tables. */
#ifndef PROFILER_CLI_CLI_MAN_H
#define PROFILER_CLI_CLI_MAN_H

#include "cli_args.h"

/* Writes tapescope(1) in the man macros of troff (man(7)): every command with every option. */
void cli_put_manual(FILE *out, const char *version);

#endif
