/* cli_args.h: options, messages, and opening a profile, for all commands.
 *
 * May include: cli.h and what it stands on.
 */
#ifndef PROFILER_CLI_CLI_ARGS_H
#define PROFILER_CLI_CLI_ARGS_H

#include "cli.h"

#include <getopt.h>

/* One line on standard error, after "tapescope: ". */
void cli_message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What options a command was given. */
struct cli_args {
    struct report_style style;
    const char *output;
    const char *sort, *by;
    size_t limit;
    size_t around; /* context of annotate; SIZE_MAX: all */
    int color;     /* 1, 0, or -1: by the terminal */
};

/* Reads the options that `accepted` names (letters of getopt: o s b n a e c C) and --help.
 * Returns -1 if the command should go on, with optind at the first operand; else an exit status. */
int cli_parse(struct cli_args *args, int argc, char **argv, const char *accepted, const char *help);

/* The place of name among n names, or -1. A unique beginning is enough. */
int cli_choice(const char *name, const char *const *names, int n);

/* The known name nearest to a mistyped one, or NULL if none is near. */
const char *cli_nearest(const char *name, const char *const *names, int n);

/* A profile with its analysis; warnings were printed. */
struct cli_profile {
    struct prof_profile *profile;
    struct prof_analysis *analysis;
};

/* Opens path, or the default profile if it is NULL. Returns CLI_OK, or prints why not. */
int cli_open(struct cli_profile *opened, const char *path);
void cli_close(struct cli_profile *opened);

/* Ends a report: its status, and whether standard output took all of it. */
int cli_finish(int report_status);

#endif
