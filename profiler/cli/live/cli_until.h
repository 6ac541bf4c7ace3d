/* cli_until.h: `record --until-error`: samples of a place until they are enough. */
#ifndef PROFILER_CLI_CLI_UNTIL_H
#define PROFILER_CLI_CLI_UNTIL_H

#include "cli_args.h"

struct cli_until {
    struct cli_list goal; /* "FILE:LINE=P%" or "FUNCTION=P%" */
    size_t most_runs;
};

/* Whether every goal can be understood; says which cannot. */
bool cli_until_check(const struct cli_until *until);

/* Runs the program again and again and adds each profile to the one at `path`, which one run has
 * written, until all goals are met. Says after each run how far it is. Returns the exit status:
 * that of a run that failed and was not added; CLI_FAILED: a goal cannot be met. */
int cli_until_repeat(const struct cli_until *until, const struct cli_args *args, char **argv,
                     const char *path);

#endif
