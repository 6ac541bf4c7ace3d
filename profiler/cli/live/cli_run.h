/* cli_run.h: runs a program that writes its profile.
 *
 * Invariant: signals that are sent to us while the program runs are its own.
 */
#ifndef PROFILER_CLI_CLI_RUN_H
#define PROFILER_CLI_CLI_RUN_H

#include <stdbool.h>
#include <sys/types.h>

/* Starts a program whose profile goes to `profile`, an absolute path (NULL: none is taken). One at
 * a time. Returns 0, or the errno of what failed: it does not run then. */
int cli_start_program(char **argv, const char *profile);

/* The same with its standard input and output at /dev/null. */
int cli_start_quiet_program(char **argv, const char *profile);

/* The same with standard input, output and error at these descriptors; -1: as they are. */
int cli_start_program_at(char **argv, const char *profile, const int streams[3]);

/* Waits for its end; returns the status that waitpid() gave. */
int cli_wait_program(void);
/* Whether it has ended, with that status in *status; then it is not to be waited for. */
bool cli_program_ended(int *status);
/* Its number; 0: none runs. */
pid_t cli_program(void);

/* Where the modules of this installation lie. False: errno says why that is not known. */
bool cli_modules_folder(char *path, size_t room);

/* The path from the root; to be freed. NULL: errno says why. */
char *cli_absolute_path(const char *path);

#endif
